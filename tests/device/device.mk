# SPDX-License-Identifier: GPL-2.0-only
#
# The programmable virtio-blk device of the tests

VBLK_DEVICE_SRC := $(wildcard tests/device/*.c)

#: make device         tests' programmable virtio-blk device
device: $(O)/tests/device/vblk-device

$(O)/tests/device/vblk-device: $(VBLK_DEVICE_SRC) tests/device/device.h VERSION
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -DVERSION='"$(shell cat VERSION)"' -o $@ $(VBLK_DEVICE_SRC)

.PHONY: device
