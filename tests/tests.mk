# SPDX-License-Identifier: GPL-2.0-only

#: make check          everything that is tested: builds, lint, guests (KERNEL=REL ONLY=glob JOBS=n QUICK=1)
check:
	+@tests/check $(if $(KERNEL),--kernel "$(KERNEL)") $(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs $(JOBS)) $(if $(QUICK),--quick)

#: make soak           the long forms of the tests (SOAK=minutes each, default 10)
soak:
	+@tests/check --soak $(or $(SOAK),10) $(if $(KERNEL),--kernel "$(KERNEL)") $(if $(ONLY),--only "$(ONLY)")

#: make lint           shellcheck over every shell script
# (SC2317: functions called by name, from a guest or a dispatcher, are not dead.)
lint:
	@git ls-files | while read -r f; do \
		[ -f "$$f" ] || continue; \
		case $$f in *.sh) echo "$$f"; continue ;; esac; \
		head -n 1 "$$f" 2>/dev/null | grep -aqE '^#!.*[/ ](ba|da)?sh$$' && echo "$$f"; \
	done | xargs -r -d '\n' shellcheck -x -P SCRIPTDIR -e SC2317

.PHONY: check soak lint
