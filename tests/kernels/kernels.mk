# SPDX-License-Identifier: GPL-2.0-only
#
# Guest kernels that look for what an ordinary one can't see. They take long to build
# and to run: neither is part of "make check".

KIND ?= debug

#: make debug-kernel   builds a guest kernel with KASAN, lockdep, kmemleak, fault injection
#:                     (KIND=kcsan: data races; KIND=builtin: virtio_blk built in) into build/KIND
debug-kernel:
	tests/kernels/build -o $(O) $(KIND)

#: make newest         builds the driver for the newest kernel that Debian offers into build/newest
#:                     (IMAGE=1: with that kernel, for make check KERNEL=newest; AGAIN=1: fetches anew)
newest:
	tests/kernels/newest -o $(O) $(if $(IMAGE),--image) $(if $(AGAIN),--again)

#: make check-debug    the tests on the debug kernels (KINDS="debug kcsan" ONLY=glob JOBS=n)
check-debug:
	+@tests/kernels/check $(if $(KINDS),--kinds "$(KINDS)") $(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs $(JOBS))

#: make coverage       the same on KIND=debug, then lines and branches of the driver that were run
coverage:
	rm -rf $(O)/coverage
	+@COVERAGE_DIR=$(O)/coverage tests/kernels/check --kinds debug $(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs $(JOBS)) || \
		echo "Some tests failed; what they ran counts all the same."
	tests/kernels/coverage $(if $(ONLY),,--whole) $(O)/coverage

.PHONY: debug-kernel newest check-debug coverage
