# SPDX-License-Identifier: GPL-2.0-only
# The C tests of the char node: build/tests/uring/NAME from tests/uring/NAME.c

URING_O		:= $(O)/tests/uring
URING_PROGS	:= data refuse complete ioctl rings coherence ending gone fuzz guided
URING_CFLAGS	:= $(CFLAGS) $(WARN) -Iinclude/uapi -pthread
URING_DEPS	:= $(wildcard tests/uring/*.h) include/uapi/linux/virtio_blk_uring.h

#: make uring-tests    the C tests of /dev/vdXc0, run in guests by make check
uring-tests: $(URING_PROGS:%=$(URING_O)/%) $(URING_O)/pattern
.PHONY: uring-tests

$(URING_O)/%.o: tests/uring/%.c $(URING_DEPS)
	@mkdir -p $(@D)
	$(CC) $(URING_CFLAGS) -c -o $@ $<

# What both fuzzers stand on
$(URING_O)/fuzz $(URING_O)/guided: $(URING_O)/ground.o

$(URING_O)/pattern: tests/uring/pattern.c $(URING_DEPS)
	@mkdir -p $(@D)
	$(CC) $(URING_CFLAGS) -o $@ $<

$(URING_PROGS:%=$(URING_O)/%): $(URING_O)/%: tests/uring/%.c $(URING_O)/helper.o $(URING_DEPS)
	$(CC) $(URING_CFLAGS) -o $@ $< $(filter %.o,$^) -luring

# For the cases that suspend one device, which ask for their kernel's
$(O)/%/suspend_one.ko: tests/uring/suspend/suspend_one.c tests/uring/suspend/Kbuild
	@mkdir -p $(O)/$*/suspend
	@cp $^ $(O)/$*/suspend/
	$(MAKE) -C $(call kdir,$*) M=$(CURDIR)/$(O)/$*/suspend modules
	@cp $(O)/$*/suspend/suspend_one.ko $@
