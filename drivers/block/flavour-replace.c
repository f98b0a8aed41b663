// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio_blk.ko: takes the in-tree driver's place, under its names.
 */
#include <linux/module.h>

#include "virtblk.h"

const char virtblk_name[] = "virtio_blk";
const char virtblk_blkdev_name[] = "virtblk";
const char virtblk_class_name[] = "vblk-generic";

const struct virtio_device_id virtblk_ids[] = {
	{ VIRTIO_ID_BLOCK, VIRTIO_DEV_ANY_ID },
	{ }
};
MODULE_DEVICE_TABLE(virtio, virtblk_ids);

const char *virtblk_prefix(void)
{
	return "vd";
}

int virtblk_flavour_init(struct device_driver *driver)
{
	return 0;
}
