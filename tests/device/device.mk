# SPDX-License-Identifier: GPL-2.0-only
#
# The programmable virtio-blk device of the tests, and a client for the node

VBLK_DEVICE_SRC := $(wildcard tests/device/*.c)
DEVICE_TOOLS := $(addprefix $(O)/tests/device/,vblk-device node-cmd discards)
DEVICE_CFLAGS = $(CFLAGS) $(WARN) -DVERSION='"$(shell cat VERSION)"'

#: make device         tests' programmable virtio-blk device
device: $(DEVICE_TOOLS)

$(O)/tests/device/vblk-device: $(VBLK_DEVICE_SRC) tests/device/device.h VERSION
	@mkdir -p $(@D)
	$(CC) $(DEVICE_CFLAGS) -o $@ $(VBLK_DEVICE_SRC)

$(O)/tests/device/node-cmd: tests/device/node/node-cmd.c include/uapi/linux/virtio_blk_uring.h VERSION
	@mkdir -p $(@D)
	$(CC) $(DEVICE_CFLAGS) -Iinclude/uapi -o $@ $< -luring

$(O)/tests/device/discards: tests/device/node/discards.c
	@mkdir -p $(@D)
	$(CC) $(DEVICE_CFLAGS) -D_GNU_SOURCE -o $@ $< -luring

.PHONY: device
