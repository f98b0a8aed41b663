# SPDX-License-Identifier: GPL-2.0-only
# Every way a virtio-blk disk is served; see Documentation/backends.md

BACKENDS_O	:= $(O)/tests/backends
BACKENDS	:= $(BACKENDS_O)/client $(BACKENDS_O)/count $(BACKENDS_O)/ublk

$(BACKENDS_O)/client: tests/backends/client.c $(O)/tests/uring/helper.o
	@mkdir -p $(@D)
	$(CC) $(URING_CFLAGS) -o $@ $< $(O)/tests/uring/helper.o -luring

$(BACKENDS_O)/count: tests/backends/count.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -o $@ $<

$(BACKENDS_O)/ublk: tests/backends/ublk.c VERSION
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -DVERSION='"$(shell cat VERSION)"' -o $@ $< -luring -lpthread

backends-tools: $(BACKENDS)

#: make backends       one client on every back end: what works, counts per I/O, times (BACKENDS_ARGS=…)
backends:
	tests/vm/need +vm +kernels +build strace iproute2
	$(MAKE) --no-print-directory module backends-tools bench-tools uring-tests vhost-tests
	-$(MAKE) --no-print-directory vhost-module
	tests/backends/matrix $(BACKENDS_ARGS)

.PHONY: backends backends-tools
