# SPDX-License-Identifier: MIT
#
# The examples, and what shows that their header does for C, C++ and 32-bit programs

EXAMPLES_O	:= $(O)/examples
EXAMPLES	:= read-block copy-disk zone-writer check-header check-node readme
EXAMPLES_FLAGS	 = $(CFLAGS) $(WARN) -Iinclude -Iinclude/uapi
EXAMPLES_DEPS	:= include/virtblk_uring_helpers.h include/uapi/linux/virtio_blk_uring.h \
		   examples/examples.mk

#: make examples       the programs of examples/, in build/examples/
examples: $(EXAMPLES:%=$(EXAMPLES_O)/%) $(EXAMPLES_O)/check-header-c++ $(EXAMPLES_O)/m32
tools: examples
.PHONY: examples tools

$(patsubst %,$(EXAMPLES_O)/%,$(filter-out readme,$(EXAMPLES))): $(EXAMPLES_O)/%: examples/%.c $(EXAMPLES_DEPS)
	@mkdir -p $(@D)
	$(CC) $(EXAMPLES_FLAGS) -o $@ $< $(LDFLAGS) -luring

# README's lines for liburing users, as they stand there, made a program
$(EXAMPLES_O)/readme.c: README.md examples/examples.mk
	@mkdir -p $(@D)
	@{ printf '%s\n' '#include <fcntl.h>' '#include <stdlib.h>' '#include <unistd.h>'; \
	   sed -n '/^## Use it from liburing/,/^## /{/^```c$$/,/^```$$/p}' README.md | grep '^#include'; \
	   echo 'int main(void)'; echo '{ static char buf[4096] __attribute__((aligned(4096))); struct io_uring_cqe *cqe;'; \
	   sed -n '/^## Use it from liburing/,/^## /{/^```c$$/,/^```$$/p}' README.md | grep -v '^```\|^#include'; \
	   echo 'io_uring_wait_cqe(&ring, &cqe); if (!cqe->res) write(1, buf, 4096); return cqe->res ? 1 : 0; }'; } >$@

$(EXAMPLES_O)/readme: $(EXAMPLES_O)/readme.c $(EXAMPLES_DEPS)
	$(CC) $(EXAMPLES_FLAGS) -Wno-unused-result -o $@ $< $(LDFLAGS) -luring

# The same source as C++; a machine without a C++ compiler has all the rest
$(EXAMPLES_O)/check-header-c++: examples/check-header.c $(EXAMPLES_DEPS)
	@mkdir -p $(@D)
	@if ! command -v $(CXX) >/dev/null; then \
		printf '#!/bin/sh\necho "there is no C++ compiler"; exit 77\n' >$@; chmod +x $@; \
	else \
		set -x; $(CXX) -x c++ $(EXAMPLES_FLAGS) -o $@ $< $(LDFLAGS) -luring; \
	fi

# Compiled only: the 32-bit C library's headers are those of 64 bits, plus a file
# that lists functions it lacks, which programs can do without.
EXAMPLES_M32	= -m32 -fsyntax-only -I/usr/include/$(shell $(CC) -print-multiarch) -I$(EXAMPLES_O)/stubs

$(EXAMPLES_O)/m32: examples/check-header.c $(EXAMPLES_DEPS)
	@mkdir -p $(EXAMPLES_O)/stubs/gnu
	@: >$(EXAMPLES_O)/stubs/gnu/stubs-32.h
	@if echo '#include <stdlib.h>' | $(CC) $(EXAMPLES_M32) -x c - 2>$@.why; then \
		set -x; $(CC) $(EXAMPLES_FLAGS) $(EXAMPLES_M32) $< && echo compiles >$@; \
	else \
		head -n 1 $@.why | sed 's/^/no 32-bit headers: /' >$@; \
	fi
