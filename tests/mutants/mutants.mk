# SPDX-License-Identifier: GPL-2.0-only

#: make mutants        breaks the driver in one place after the other and sees the tests fail (ONLY=glob)
mutants:
	+@tests/mutants/run $(if $(ONLY),--only "$(ONLY)")

.PHONY: mutants
