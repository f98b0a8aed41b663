# SPDX-License-Identifier: GPL-2.0-only
# Programs that make allocations fail and cross everything with everything:
# build/tests/faults/NAME

FAULTS_O	:= $(O)/tests/faults
FAULTS_PROGS	:= failnth storm ioctls
FAULTS_CFLAGS	:= $(CFLAGS) $(WARN) -Iinclude/uapi -Itests/uring -pthread
FAULTS_DEPS	:= $(wildcard tests/faults/*.h tests/uring/*.h) include/uapi/linux/virtio_blk_uring.h

#: make faults-tests   programs that inject faults and cross everything, run in guests by make check
faults-tests: $(FAULTS_PROGS:%=$(FAULTS_O)/%) $(FAULTS_O)/verify
uring-tests: faults-tests
.PHONY: faults-tests

$(FAULTS_O)/verify: tests/faults/verify.c $(FAULTS_DEPS)
	@mkdir -p $(@D)
	$(CC) $(FAULTS_CFLAGS) -o $@ $<

$(FAULTS_PROGS:%=$(FAULTS_O)/%): $(FAULTS_O)/%: tests/faults/%.c $(O)/tests/uring/helper.o $(FAULTS_DEPS)
	@mkdir -p $(@D)
	$(CC) $(FAULTS_CFLAGS) -o $@ $< $(O)/tests/uring/helper.o -luring
