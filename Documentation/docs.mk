# SPDX-License-Identifier: GPL-2.0-only

#: make docs-check     compares the documents with the code: links, options, parameters, messages, man pages
docs-check:
	@Documentation/check

# What git has of this version, under one folder. Built from a commit, so that the
# same commit gives the same archive.
DIST	= virtblk-uring-$(shell cat VERSION)

#: make dist           build/virtblk-uring-VERSION.tar.gz, of what is committed
dist:
	@mkdir -p $(O)
	@git rev-parse -q --verify HEAD >/dev/null || { echo "make dist archives a commit: it needs a git clone" >&2; exit 1; }
	@test -z "$$(git status --porcelain -uno)" || echo "note: changes that aren't committed are left out" >&2
	git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -9n >$(O)/$(DIST).tar.gz.new
	@mv $(O)/$(DIST).tar.gz.new $(O)/$(DIST).tar.gz
	@echo $(O)/$(DIST).tar.gz

#: make dist-check     unpacks that archive and builds the driver and the tools from it (KVER=REL)
dist-check: dist
	rm -rf $(O)/dist
	mkdir -p $(O)/dist
	tar -C $(O)/dist -xzf $(O)/$(DIST).tar.gz
	+$(MAKE) -C $(O)/dist/$(DIST) module tools $(if $(filter command line environment,$(origin KVER)),KVER="$(KVER)")
	rm -rf $(O)/dist

.PHONY: docs-check dist dist-check
