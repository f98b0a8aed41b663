// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtblk_uring.ko: works beside a virtio_blk that can't be replaced, under
 * names of its own, and takes only devices that are handed to it.
 */
#include <linux/module.h>

#include "virtblk.h"

/* LVM knows disks by the beginning of their major's name: "virtblk" it takes. */
const char virtblk_name[] = "virtblk_uring";
const char virtblk_blkdev_name[] = "virtblk_uring";
const char virtblk_class_name[] = "vblk-uring";

/*
 * Matches nothing, and has no alias: neither a hotplugged device nor one that
 * another driver has let go comes here by itself. Refusing in probe would be
 * too late, as the virtio core has then told the device that a driver failed.
 */
const struct virtio_device_id virtblk_ids[] = {
	{ }
};

static char *prefix = "vu";
module_param(prefix, charp, 0444);
MODULE_PARM_DESC(prefix,
		 "What disk names begin with: 2 to 8 small letters, not those of another driver (default vu: /dev/vua, /dev/vuac0)");

const char *virtblk_prefix(void)
{
	return prefix;
}

/* With letters behind them these make names of other drivers' disks. */
static const char *const virtblk_foreign[] = { "vd", "sd", "hd", "xv" };

static bool virtblk_prefix_good(void)
{
	size_t i, len = strlen(prefix);

	if (len < 2 || len > 8 || strspn(prefix, "abcdefghijklmnopqrstuvwxyz") != len)
		return false;
	for (i = 0; i < ARRAY_SIZE(virtblk_foreign); i++)
		if (!strncmp(prefix, virtblk_foreign[i], 2))
			return false;
	return true;
}

/*
 * The bus's own bind file takes what the id table matches. This one, at the
 * same place, takes any block device whose name is written to it.
 */
static ssize_t bind_store(struct device_driver *driver, const char *buf,
			  size_t count)
{
	struct device *dev = bus_find_device_by_name(driver->bus, NULL, buf);
	int err = -ENODEV;

	if (dev && dev_to_virtio(dev)->id.device == VIRTIO_ID_BLOCK)
		err = device_driver_attach(driver, dev);
	put_device(dev);
	return err ?: count;
}
static DRIVER_ATTR_WO(bind);

static ssize_t unbind_store(struct device_driver *driver, const char *buf,
			    size_t count)
{
	struct device *dev = bus_find_device_by_name(driver->bus, NULL, buf);
	int err = -ENODEV;

	if (dev && dev->driver == driver) {
		device_release_driver(dev);
		err = 0;
	}
	put_device(dev);
	return err ?: count;
}
static DRIVER_ATTR_WO(unbind);

static struct attribute *virtblk_driver_attrs[] = {
	&driver_attr_bind.attr,
	&driver_attr_unbind.attr,
	NULL,
};
ATTRIBUTE_GROUPS(virtblk_driver);

int virtblk_flavour_init(struct device_driver *driver)
{
	if (!virtblk_prefix_good()) {
		pr_err("virtblk_uring: prefix=%s: say 2 to 8 small letters, not beginning with vd, sd, hd or xv\n",
		       prefix);
		return -EINVAL;
	}
	driver->suppress_bind_attrs = true;
	driver->groups = virtblk_driver_groups;
	return 0;
}
