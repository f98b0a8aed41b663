# SPDX-License-Identifier: GPL-2.0-only
#
# Guest kernels that look for what an ordinary one can't see. They take long to build
# and to run: neither is part of "make check".

KIND ?= debug

#: make debug-kernel   builds a guest kernel with KASAN, lockdep, kmemleak, fault injection
#:                     (KIND=kcsan: data races; KIND=builtin: virtio_blk built in) into build/KIND
debug-kernel:
	tests/kernels/build -o $(O) $(KIND)

.PHONY: debug-kernel
