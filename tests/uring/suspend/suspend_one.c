// SPDX-License-Identifier: GPL-2.0-only
/*
 * "insmod suspend_one.ko device=virtio3" suspends one virtio device and leaves it
 * so, as a resume does that fails before it comes to the driver. With restore=1
 * the driver is restored, and finds no virtqueues. With back=50 it is restored
 * after 50 ms, as a resume does it.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of a virtio device: virtio0...");

static bool restore;
module_param(restore, bool, 0444);
MODULE_PARM_DESC(restore, "restore it, but let the driver find no virtqueues");

static unsigned int back;
module_param(back, uint, 0444);
MODULE_PARM_DESC(back, "restore it after so many milliseconds; 0: not at all");

static int suspend_no_vqs(void)
{
	return -ENODEV;
}

static int suspend_bad_restore(struct virtio_device *vdev)
{
	const struct virtio_config_ops *config = vdev->config;
	struct virtio_config_ops bad = *config;
	int err;

	/* Its arguments depend on the kernel. */
	bad.find_vqs = (void *)suspend_no_vqs;
	vdev->config = &bad;
	err = virtio_device_restore(vdev);
	vdev->config = config;
	return err ? 0 : -EIO;
}

/* For no device: it knows the bus. */
static const struct virtio_device_id suspend_ids[] = { { } };
static struct virtio_driver suspend_driver = {
	.driver.name	= KBUILD_MODNAME,
	.driver.owner	= THIS_MODULE,
	.id_table	= suspend_ids,
};

static int __init suspend_init(void)
{
	struct device *dev;
	int err;

	err = register_virtio_driver(&suspend_driver);
	if (err)
		return err;
	dev = bus_find_device_by_name(suspend_driver.driver.bus, NULL, device);
	unregister_virtio_driver(&suspend_driver);
	if (!dev)
		return -ENODEV;

	device_lock(dev);
	err = virtio_device_freeze(dev_to_virtio(dev));
	if (!err && restore)
		err = suspend_bad_restore(dev_to_virtio(dev));
	if (!err && back) {
		msleep(back);
		err = virtio_device_restore(dev_to_virtio(dev));
	}
	device_unlock(dev);
	put_device(dev);
	return err;
}
module_init(suspend_init);

static void __exit suspend_exit(void)
{
}
module_exit(suspend_exit);

MODULE_DESCRIPTION("Suspends a virtio device for a test");
MODULE_LICENSE("GPL");
