# SPDX-License-Identifier: GPL-2.0-only
# Tests of vhost_blk: build/tests/vhost/NAME

VHOST_TESTS_O	:= $(O)/tests/vhost
VHOST_PROGS	:= ring hostile
VHOST_DEPS	:= tests/vhost/driver.h tests/vhost/worker.h tests/uring/helper.h include/uapi/linux/vhost_blk.h

#: make vhost-tests    programs that drive /dev/vhost-blk and put a disk on it
vhost-tests: $(VHOST_PROGS:%=$(VHOST_TESTS_O)/%) $(VHOST_TESTS_O)/bridge
#: make vhost-figures  counts per I/O of vhost-blk with one worker and several, and of QEMU (5 min)
vhost-figures:
	tests/vhost/figures

.PHONY: vhost-tests vhost-figures

$(VHOST_TESTS_O)/driver.o: tests/vhost/driver.c $(VHOST_DEPS)
	@mkdir -p $(@D)
	$(CC) $(URING_CFLAGS) -c -o $@ $<

$(VHOST_PROGS:%=$(VHOST_TESTS_O)/%): $(VHOST_TESTS_O)/%: tests/vhost/%.c $(VHOST_TESTS_O)/driver.o $(O)/tests/uring/helper.o $(VHOST_DEPS)
	$(CC) $(URING_CFLAGS) -o $@ $< $(VHOST_TESTS_O)/driver.o $(O)/tests/uring/helper.o -luring

$(VHOST_TESTS_O)/bridge: tests/vhost/bridge.c tests/vhost/worker.h include/uapi/linux/vhost_blk.h VERSION
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -DVERSION='"$(shell cat VERSION)"' -Iinclude/uapi -o $@ $<
