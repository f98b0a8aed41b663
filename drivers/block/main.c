// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-blk: the device. Probe and removal, limits, capacity, sysfs, suspend.
 */
#include <linux/hdreg.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string_helpers.h>
#include <linux/virtio_ring.h>

#include "virtblk.h"

/* More segments than this don't fit into any virtqueue (virtio 1.2, 2.7). */
#define VIRTBLK_MAX_SEGMENTS	(32768 - 2)

static unsigned int num_request_queues;
module_param(num_request_queues, uint, 0644);
MODULE_PARM_DESC(num_request_queues,
		 "Use at most this many request queues per disk; 0: as many as the device and the CPUs allow");

static unsigned int poll_queues;
module_param(poll_queues, uint, 0644);
MODULE_PARM_DESC(poll_queues,
		 "How many of the request queues serve polled I/O; polled io_uring rings need at least 1");

static unsigned int queue_depth;
module_param(queue_depth, uint, 0444);
MODULE_PARM_DESC(queue_depth,
		 "Requests per queue; 0: as many as the ring takes");

static bool direct_descriptors;
module_param(direct_descriptors, bool, 0444);
MODULE_PARM_DESC(direct_descriptors,
		 "Every segment takes a slot of the ring, not one of a table: cheaper for small I/O, but fewer and smaller requests");

static int virtblk_major;
static DEFINE_IDA(virtblk_index_ida);
struct workqueue_struct *virtblk_wq;

/* ---- virtqueues ---- */

/* How many virtqueues to use, and of which kind. */
static int virtblk_count_queues(struct virtblk *vblk)
{
	struct virtio_device *vdev = vblk->vdev;
	unsigned int limit = min_not_zero(num_request_queues, nr_cpu_ids);
	unsigned int polled;
	u16 offered = 1;

	if (!virtio_cread_feature(vdev, VIRTIO_BLK_F_MQ,
				  struct virtio_blk_config, num_queues,
				  &offered) && !offered) {
		dev_err(&vdev->dev, "device offers multiqueue with 0 queues\n");
		return -EINVAL;
	}

	vblk->num_vqs = min_t(unsigned int, offered, limit);
	polled = min_t(unsigned int, poll_queues, vblk->num_vqs - 1);
	vblk->io_queues[HCTX_TYPE_DEFAULT] = vblk->num_vqs - polled;
	vblk->io_queues[HCTX_TYPE_READ] = 0;
	vblk->io_queues[HCTX_TYPE_POLL] = polled;
	dev_info(&vdev->dev, "%d/%d/%d default/read/poll queues\n",
		 vblk->io_queues[HCTX_TYPE_DEFAULT],
		 vblk->io_queues[HCTX_TYPE_READ],
		 vblk->io_queues[HCTX_TYPE_POLL]);
	return 0;
}

static int virtblk_alloc_vqs(struct virtblk *vblk)
{
	u16 i, irqs = vblk->io_queues[HCTX_TYPE_DEFAULT];

	vblk->vqs = kcalloc(vblk->num_vqs, sizeof(*vblk->vqs), GFP_KERNEL);
	if (!vblk->vqs)
		return -ENOMEM;
	for (i = 0; i < vblk->num_vqs; i++) {
		struct virtblk_vq *vq = &vblk->vqs[i];

		spin_lock_init(&vq->lock);
		snprintf(vq->name, sizeof(vq->name), "%s.%u",
			 i < irqs ? "req" : "req_poll", i);
	}
	return 0;
}

static int virtblk_find_vqs(struct virtblk *vblk)
{
	struct irq_affinity affinity = { };
	int irqs = vblk->io_queues[HCTX_TYPE_DEFAULT];
	struct compat_vq_info *info;
	struct virtqueue **vqs;
	int i, err = -ENOMEM;

	info = kcalloc(vblk->num_vqs, sizeof(*info), GFP_KERNEL);
	vqs = kcalloc(vblk->num_vqs, sizeof(*vqs), GFP_KERNEL);
	if (!info || !vqs)
		goto out;

	for (i = 0; i < vblk->num_vqs; i++) {
		info[i].name = vblk->vqs[i].name;
		/* A polled queue has no interrupt. */
		if (i < irqs)
			info[i].callback = virtblk_interrupt;
	}
	err = compat_find_vqs(vblk->vdev, vblk->num_vqs, vqs, info, &affinity);
	if (err)
		goto out;

	for (i = 0; i < vblk->num_vqs; i++) {
		spin_lock_irq(&vblk->vqs[i].lock);
		vblk->vqs[i].vq = vqs[i];
		spin_unlock_irq(&vblk->vqs[i].lock);
	}
out:
	kfree(vqs);
	kfree(info);
	return err;
}

/* The device is reset: nobody may find the virtqueues any more. */
static void virtblk_del_vqs(struct virtblk *vblk)
{
	int i;

	for (i = 0; i < vblk->num_vqs; i++) {
		spin_lock_irq(&vblk->vqs[i].lock);
		vblk->vqs[i].vq = NULL;
		spin_unlock_irq(&vblk->vqs[i].lock);
	}
	/* Gone already if a restore has failed; not every transport minds. */
	if (!list_empty(&vblk->vdev->vqs))
		vblk->vdev->config->del_vqs(vblk->vdev);
}

/* Entries of the smallest ring */
static unsigned int virtblk_ring_size(struct virtblk *vblk)
{
	unsigned int i, size = UINT_MAX;

	for (i = 0; i < vblk->num_vqs; i++)
		size = min(size, virtqueue_get_vring_size(vblk->vqs[i].vq));
	return size;
}

static unsigned int virtblk_queue_depth(struct virtblk *vblk)
{
	unsigned int free = virtblk_ring_size(vblk);

	if (queue_depth)
		return queue_depth;
	/* A read or write takes three slots at least: no tag that finds none. */
	if (direct_descriptors)
		return max(free / 3, 1u);
	/* Without indirect descriptors a request takes two or more slots. */
	if (!virtio_has_feature(vblk->vdev, VIRTIO_RING_F_INDIRECT_DESC))
		return max(free / 2, 1u);
	return free;
}

/* ---- limits ---- */

/* Reads a config field if its feature is there, else keeps what *v holds. */
#define virtblk_read_if(vdev, feature, field, v) \
	virtio_cread_feature(vdev, feature, struct virtio_blk_config, field, v)
#define virtblk_read(vdev, field, v) \
	virtio_cread(vdev, struct virtio_blk_config, field, v)

static int virtblk_read_segments(struct virtblk *vblk, struct queue_limits *lim)
{
	struct virtio_device *vdev = vblk->vdev;
	u32 seg_max = 1, size_max = U32_MAX, ring;

	virtblk_read_if(vdev, VIRTIO_BLK_F_SEG_MAX, seg_max, &seg_max);
	/* One it has to take, whatever it says. */
	seg_max = clamp_t(u32, seg_max, 1, VIRTBLK_MAX_SEGMENTS);
	/*
	 * A direct chain of header, data and status must fit into the ring,
	 * else the request could never be sent (virtio 1.2, 2.7.5.3.1).
	 */
	ring = virtblk_ring_size(vblk);
	if (!virtio_has_feature(vdev, VIRTIO_RING_F_INDIRECT_DESC)) {
		if (ring < 3) {
			dev_err(&vdev->dev, "a ring of %u entries holds no request\n",
				ring);
			return -EINVAL;
		}
		seg_max = min(seg_max, ring - 2);
	}
	lim->max_segments = seg_max;

	virtblk_read_if(vdev, VIRTIO_BLK_F_SIZE_MAX, size_max, &size_max);
	/* QEMU's storage daemon says 0 behind vhost-user, and means no limit. */
	if (!size_max)
		size_max = BLK_MAX_SEGMENT_SIZE;
	lim->max_segment_size = min_t(size_t, size_max,
				      virtio_max_dma_size(vdev));
	if (lim->max_segment_size < PAGE_SIZE) {
		dev_err(&vdev->dev, "size_max %u is below a page: can't work with it\n",
			lim->max_segment_size);
		return -EINVAL;
	}
	lim->max_hw_sectors = UINT_MAX;
	return 0;
}

static int virtblk_read_block_size(struct virtblk *vblk,
				   struct queue_limits *lim)
{
	struct virtio_device *vdev = vblk->vdev;
	u32 size = SECTOR_SIZE, opt_io_size = 0;
	u16 min_io_size = 0;
	u8 exp = 0, align = 0;

	virtblk_read_if(vdev, VIRTIO_BLK_F_BLK_SIZE, blk_size, &size);
	if (size < SECTOR_SIZE || size > COMPAT_MAX_BLOCK_SIZE ||
	    !is_power_of_2(size)) {
		dev_err(&vdev->dev, "invalid block size %u: must be a power of 2 from 512 to %lu\n",
			size, (unsigned long)COMPAT_MAX_BLOCK_SIZE);
		return -EINVAL;
	}
	lim->logical_block_size = size;

	virtblk_read_if(vdev, VIRTIO_BLK_F_TOPOLOGY, physical_block_exp, &exp);
	virtblk_read_if(vdev, VIRTIO_BLK_F_TOPOLOGY, alignment_offset, &align);
	virtblk_read_if(vdev, VIRTIO_BLK_F_TOPOLOGY, min_io_size, &min_io_size);
	virtblk_read_if(vdev, VIRTIO_BLK_F_TOPOLOGY, opt_io_size, &opt_io_size);
	/* Hints: one that doesn't fit its limit's type is worth nothing. */
	if (exp && ilog2(size) + exp < 32)
		lim->physical_block_size = size << exp;
	if (align)
		lim->alignment_offset = size * align;
	if (min_io_size)
		lim->io_min = size * min_io_size;
	if (opt_io_size && opt_io_size <= U32_MAX / size)
		lim->io_opt = size * opt_io_size;
	return 0;
}

static void virtblk_read_discard(struct virtblk *vblk)
{
	struct virtio_device *vdev = vblk->vdev;
	struct virtblk_ranges *r = &vblk->discard;

	if (!virtio_has_feature(vdev, VIRTIO_BLK_F_DISCARD))
		return;
	virtblk_read(vdev, max_discard_sectors, &r->max_sectors);
	virtblk_read(vdev, max_discard_seg, &r->max_seg);
	virtblk_read(vdev, discard_sector_alignment, &r->alignment);
	if (!r->max_sectors)
		r->max_sectors = UINT_MAX;
}

static void virtblk_read_write_zeroes(struct virtblk *vblk)
{
	struct virtio_device *vdev = vblk->vdev;
	struct virtblk_ranges *r = &vblk->write_zeroes;
	u8 unmap = 0;

	if (!virtio_has_feature(vdev, VIRTIO_BLK_F_WRITE_ZEROES))
		return;
	virtblk_read(vdev, max_write_zeroes_sectors, &r->max_sectors);
	virtblk_read(vdev, max_write_zeroes_seg, &r->max_seg);
	virtblk_read(vdev, write_zeroes_may_unmap, &unmap);
	if (!r->max_sectors)
		r->max_sectors = UINT_MAX;
	r->max_seg = max(r->max_seg, 1u);
	vblk->write_zeroes_may_unmap = unmap;
}

/* virtio 1.2, 5.2.5: with SECURE_ERASE none of the three may be zero. */
static int virtblk_read_secure_erase(struct virtblk *vblk)
{
	struct virtio_device *vdev = vblk->vdev;
	struct virtblk_ranges *r = &vblk->secure_erase;

	if (!virtio_has_feature(vdev, VIRTIO_BLK_F_SECURE_ERASE))
		return 0;
	virtblk_read(vdev, max_secure_erase_sectors, &r->max_sectors);
	virtblk_read(vdev, max_secure_erase_seg, &r->max_seg);
	virtblk_read(vdev, secure_erase_sector_alignment, &r->alignment);
	if (r->max_sectors && r->max_seg && r->alignment)
		return 0;
	dev_err(&vdev->dev, "secure erase offered with a limit of 0 (sectors %u, segments %u, alignment %u)\n",
		r->max_sectors, r->max_seg, r->alignment);
	return -EINVAL;
}

/*
 * The block layer keeps one number of ranges and one granularity for discard
 * and secure erase together: the smaller of each.
 */
static void virtblk_set_range_limits(struct virtblk *vblk,
				     struct queue_limits *lim)
{
	u32 seg = min_not_zero(vblk->discard.max_seg,
			       vblk->secure_erase.max_seg);
	u32 alignment = min_not_zero(vblk->discard.alignment,
				     vblk->secure_erase.alignment);

	lim->max_write_zeroes_sectors = vblk->write_zeroes.max_sectors;
	if (!vblk->discard.max_sectors && !vblk->secure_erase.max_sectors)
		return;

	if (!seg)
		seg = lim->max_segments;
	lim->max_discard_segments = min_t(u32, seg, VIRTBLK_MAX_RANGES);
	lim->max_hw_discard_sectors = vblk->discard.max_sectors;
	lim->max_secure_erase_sectors = vblk->secure_erase.max_sectors;
	if (alignment && alignment <= UINT_MAX >> SECTOR_SHIFT)
		lim->discard_granularity = alignment << SECTOR_SHIFT;
	else
		lim->discard_granularity = lim->logical_block_size;
	if (vblk->discard.max_sectors && !vblk->discard.max_seg)
		vblk->discard.max_seg = lim->max_discard_segments;
}

/* A host-aware device is used as a conventional one, as in-tree. */
static int virtblk_read_zoned(struct virtblk *vblk, struct queue_limits *lim)
{
	struct virtio_device *vdev = vblk->vdev;

	vblk->zone_model = compat_zone_model(vdev);
	switch (vblk->zone_model) {
	case VIRTIO_BLK_Z_NONE:
	case VIRTIO_BLK_Z_HA:
		return 0;
	case VIRTIO_BLK_Z_HM:
		if (VIRTBLK_ZONED)
			return virtblk_read_zoned_limits(vblk, lim);
		dev_err(&vdev->dev, "host-managed zoned device: needs a kernel with CONFIG_BLK_DEV_ZONED\n");
		return -EOPNOTSUPP;
	default:
		dev_err(&vdev->dev, "unknown zone model %u\n",
			vblk->zone_model);
		return -EINVAL;
	}
}

static int virtblk_read_limits(struct virtblk *vblk, struct queue_limits *lim)
{
	int err;

	err = virtblk_read_segments(vblk, lim);
	if (!err)
		err = virtblk_read_block_size(vblk, lim);
	if (!err)
		err = virtblk_read_secure_erase(vblk);
	if (err)
		return err;

	virtblk_read_discard(vblk);
	virtblk_read_write_zeroes(vblk);
	virtblk_set_range_limits(vblk, lim);
	return virtblk_read_zoned(vblk, lim);
}

/* ---- write cache ---- */

static bool virtblk_write_cache(struct virtio_device *vdev)
{
	u8 wce = 0;

	if (!virtblk_read_if(vdev, VIRTIO_BLK_F_CONFIG_WCE, wce, &wce))
		return wce;
	/* Not configurable: there is one if it can be flushed (5.2.6.2). */
	return virtio_has_feature(vdev, VIRTIO_BLK_F_FLUSH);
}

/* ---- capacity ---- */

static void virtblk_update_capacity(struct virtblk *vblk, bool resize)
{
	unsigned int block = queue_logical_block_size(vblk->disk->queue);
	char si[10], iec[10];
	u64 capacity, blocks;

	virtblk_read(vblk->vdev, capacity, &capacity);
	/* What the byte arithmetic of the block layer can't hold isn't there. */
	capacity = min_t(u64, capacity, LLONG_MAX >> SECTOR_SHIFT);
	blocks = DIV_ROUND_UP_ULL(capacity, block >> SECTOR_SHIFT);

	string_get_size(blocks, block, STRING_UNITS_10, si, sizeof(si));
	string_get_size(blocks, block, STRING_UNITS_2, iec, sizeof(iec));
	dev_notice(&vblk->vdev->dev,
		   "[%s] %s%llu %u-byte logical blocks (%s/%s)\n",
		   vblk->disk->disk_name, resize ? "new size: " : "",
		   blocks, block, si, iec);
	set_capacity_and_notify(vblk->disk, capacity);
}

static void virtblk_config_work(struct work_struct *work)
{
	struct virtblk *vblk = container_of(to_delayed_work(work),
					    struct virtblk, config_work);

	/* Who holds it may wait for an answer, and suspend waits for this. */
	if (!mutex_trylock(&vblk->vdev_mutex)) {
		queue_delayed_work(virtblk_wq, &vblk->config_work, HZ / 10);
		return;
	}
	if (vblk->vdev)
		virtblk_update_capacity(vblk, true);
	mutex_unlock(&vblk->vdev_mutex);
}

static void virtblk_config_changed(struct virtio_device *vdev)
{
	struct virtblk *vblk = vdev->priv;

	queue_delayed_work(virtblk_wq, &vblk->config_work, 0);
}

/* ---- block device operations and sysfs ---- */

static int virtblk_disk_getgeo(struct gendisk *disk, struct hd_geometry *geo)
{
	struct virtblk *vblk = disk->private_data;
	struct virtio_device *vdev;
	int ret = 0;

	mutex_lock(&vblk->vdev_mutex);
	vdev = vblk->vdev;
	if (!vdev) {
		ret = -ENXIO;
	} else if (virtio_has_feature(vdev, VIRTIO_BLK_F_GEOMETRY)) {
		virtblk_read(vdev, geometry.cylinders, &geo->cylinders);
		virtblk_read(vdev, geometry.heads, &geo->heads);
		virtblk_read(vdev, geometry.sectors, &geo->sectors);
	} else {
		/* 1 MiB cylinders, as old partitioning tools like them. */
		geo->heads = 64;
		geo->sectors = 32;
		geo->cylinders = get_capacity(disk) / (64 * 32);
	}
	mutex_unlock(&vblk->vdev_mutex);
	return ret;
}
COMPAT_GETGEO(virtblk_getgeo, virtblk_disk_getgeo)

static void virtblk_free(struct virtblk *vblk)
{
	ida_free(&virtblk_index_ida, vblk->index);
	mutex_destroy(&vblk->vdev_mutex);
	kfree(vblk->vqs);
	kfree(vblk);
}

/* Only called for a disk that has been added. */
static void virtblk_free_disk(struct gendisk *disk)
{
	virtblk_free(disk->private_data);
}

static const struct block_device_operations virtblk_fops = {
	.owner		= THIS_MODULE,
	.getgeo		= virtblk_getgeo,
	.free_disk	= virtblk_free_disk,
#if VIRTBLK_ZONED
	.report_zones	= virtblk_report_zones,
#endif
};

static ssize_t serial_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	struct virtblk *vblk = dev_to_disk(dev)->private_data;
	struct scatterlist sg;
	int err;

	/* The page is zeroed: an id of the full 20 bytes still ends. */
	sg_init_one(&sg, buf, VIRTIO_BLK_ID_BYTES);
	err = virtblk_execute(vblk, VIRTIO_BLK_T_GET_ID, 0, &sg, 1);
	/* The device has none, or doesn't know the command: an empty file. */
	if (err == -EIO || err == -EOPNOTSUPP)
		return 0;
	if (err)
		return err;
	return strnlen(buf, VIRTIO_BLK_ID_BYTES);
}
static DEVICE_ATTR_RO(serial);

static const char *const virtblk_cache_types[] = {
	"write through", "write back"
};

static ssize_t cache_type_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	struct virtblk *vblk = dev_to_disk(dev)->private_data;

	return sysfs_emit(buf, "%s\n",
			  virtblk_cache_types[virtblk_write_cache(vblk->vdev)]);
}

static ssize_t cache_type_store(struct device *dev,
				struct device_attribute *attr,
				const char *buf, size_t count)
{
	struct virtblk *vblk = dev_to_disk(dev)->private_data;
	int type, err;

	/* The mode says so too; this is for those who don't need a mode. */
	if (!virtio_has_feature(vblk->vdev, VIRTIO_BLK_F_CONFIG_WCE))
		return -EOPNOTSUPP;
	type = sysfs_match_string(virtblk_cache_types, buf);
	if (type < 0)
		return type;

	virtio_cwrite8(vblk->vdev, offsetof(struct virtio_blk_config, wce),
		       type);
	err = compat_set_write_cache(vblk->disk->queue,
				     virtblk_write_cache(vblk->vdev));
	return err ?: count;
}
static DEVICE_ATTR_RW(cache_type);

static umode_t virtblk_attr_mode(struct kobject *kobj, struct attribute *attr,
				 int n)
{
	struct virtblk *vblk = dev_to_disk(kobj_to_dev(kobj))->private_data;

	if (attr == &dev_attr_cache_type.attr &&
	    !virtio_has_feature(vblk->vdev, VIRTIO_BLK_F_CONFIG_WCE))
		return 0444;
	return attr->mode;
}

static struct attribute *virtblk_attrs[] = {
	&dev_attr_serial.attr,
	&dev_attr_cache_type.attr,
	NULL,
};

static const struct attribute_group virtblk_attr_group = {
	.attrs		= virtblk_attrs,
	.is_visible	= virtblk_attr_mode,
};

static const struct attribute_group *virtblk_attr_groups[] = {
	&virtblk_attr_group,
	NULL,
};

/* ---- a device that has stopped to answer ---- */

static bool virtblk_any_broken(struct virtblk *vblk)
{
	int i;

	for (i = 0; i < vblk->num_vqs; i++) {
		struct virtqueue *vq = vblk->vqs[i].vq;

		if (vq && virtqueue_is_broken(vq))
			return true;
	}
	return false;
}

/*
 * Did the device answer since the last call, or has nothing to answer? Returns
 * false once it has been silent for VIRTBLK_SILENCE or its ring is broken.
 */
static bool virtblk_still_answers(struct virtblk *vblk)
{
	unsigned int answers = 0;
	int i;

	virtblk_reap_polled(vblk);
	for (i = 0; i < vblk->num_vqs; i++)
		answers += READ_ONCE(vblk->vqs[i].answers);
	if (answers != vblk->answers || !virtblk_busy(vblk)) {
		vblk->answers = answers;
		vblk->silent_since = jiffies;
		return true;
	}
	return !virtblk_any_broken(vblk) &&
	       time_before(jiffies, vblk->silent_since + VIRTBLK_SILENCE);
}

/*
 * Runs while del_gendisk() waits for the disk's requests: reaps polled ones
 * nobody polls for, and gives up on a device that doesn't answer.
 */
static void virtblk_silence_work(struct work_struct *work)
{
	struct virtblk *vblk = container_of(to_delayed_work(work),
					    struct virtblk, silence);

	if (!virtblk_still_answers(vblk)) {
		dev_err(&vblk->vdev->dev,
			"[%s] device doesn't answer: reset, requests in flight fail\n",
			vblk->disk->disk_name);
		virtblk_kill(vblk);
		return;
	}
	queue_delayed_work(virtblk_wq, &vblk->silence, HZ / 10);
}

static void virtblk_watch(struct virtblk *vblk)
{
	vblk->silent_since = jiffies;
	queue_delayed_work(virtblk_wq, &vblk->silence, 0);
}

/* ---- probe and removal ---- */

/* a…z, aa…zz, aaa…: what index means in the letters behind the prefix. */
static int virtblk_disk_name(const char *prefix, int index, char *name)
{
	char letters[DISK_NAME_LEN];
	int pos = sizeof(letters) - 1;

	letters[pos] = '\0';
	for (index++; index > 0 && pos > 0; index = (index - 1) / 26)
		letters[--pos] = 'a' + (index - 1) % 26;
	if (index > 0 ||
	    snprintf(name, DISK_NAME_LEN, "%s%s", prefix, letters + pos) >=
	    DISK_NAME_LEN)
		return -EINVAL;
	return 0;
}

static int virtblk_alloc_tags(struct virtblk *vblk)
{
	struct blk_mq_tag_set *set = &vblk->tag_set;

	set->ops = &virtblk_mq_ops;
	set->queue_depth = virtblk_queue_depth(vblk);
	set->numa_node = NUMA_NO_NODE;
	set->flags = COMPAT_MQ_F_SHOULD_MERGE;
	set->cmd_size = sizeof(struct virtblk_req);
	set->driver_data = vblk;
	set->nr_hw_queues = vblk->num_vqs;
	set->nr_maps = vblk->io_queues[HCTX_TYPE_POLL] ? HCTX_MAX_TYPES : 1;
	return blk_mq_alloc_tag_set(set);
}

static int virtblk_alloc_disk(struct virtblk *vblk)
{
	struct queue_limits lim = { .logical_block_size = SECTOR_SIZE };
	struct gendisk *disk;
	int err;

	err = virtblk_read_limits(vblk, &lim);
	if (err)
		return err;

	disk = compat_alloc_disk(&vblk->tag_set, &lim, vblk,
				 virtblk_write_cache(vblk->vdev));
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	err = virtblk_disk_name(virtblk_prefix(), vblk->index, disk->disk_name);
	if (err) {
		put_disk(disk);
		return err;
	}
	disk->major = virtblk_major;
	disk->first_minor = vblk->index << VIRTBLK_PART_BITS;
	disk->minors = 1 << VIRTBLK_PART_BITS;
	disk->fops = &virtblk_fops;
	disk->private_data = vblk;
	if (virtio_has_feature(vblk->vdev, VIRTIO_BLK_F_RO))
		set_disk_ro(disk, 1);
	vblk->disk = disk;
	return 0;
}

static struct virtblk *virtblk_alloc(struct virtio_device *vdev)
{
	struct virtblk *vblk;
	int index;

	vblk = kzalloc(sizeof(*vblk), GFP_KERNEL);
	if (!vblk)
		return ERR_PTR(-ENOMEM);

	index = ida_alloc_max(&virtblk_index_ida, VIRTBLK_MAX_DISKS - 1,
			      GFP_KERNEL);
	if (index < 0) {
		kfree(vblk);
		return ERR_PTR(index);
	}
	vblk->index = index;
	vblk->vdev = vdev;
	mutex_init(&vblk->vdev_mutex);
	INIT_DELAYED_WORK(&vblk->config_work, virtblk_config_work);
	INIT_DELAYED_WORK(&vblk->silence, virtblk_silence_work);
	return vblk;
}

static int virtblk_probe(struct virtio_device *vdev)
{
	struct virtblk *vblk;
	int err;

	if (!vdev->config->get) {
		dev_err(&vdev->dev, "no access to the configuration space\n");
		return -EINVAL;
	}

	vblk = virtblk_alloc(vdev);
	if (IS_ERR(vblk))
		return PTR_ERR(vblk);
	vdev->priv = vblk;

	err = virtblk_count_queues(vblk);
	if (!err)
		err = virtblk_alloc_vqs(vblk);
	if (!err)
		err = virtblk_find_vqs(vblk);
	if (err)
		goto err_free;

	err = virtblk_alloc_tags(vblk);
	if (err)
		goto err_del_vqs;
	err = virtblk_alloc_disk(vblk);
	if (err)
		goto err_free_tags;

	vblk->features = vdev->features;
	virtblk_update_capacity(vblk, false);
	virtio_device_ready(vdev);

	/* From here on requests can be sent, and these need it. */
	err = virtblk_revalidate_zones(vblk);
	if (err)
		goto err_put_disk;
	err = device_add_disk(&vdev->dev, vblk->disk, virtblk_attr_groups);
	if (err)
		goto err_put_disk;

	/* Last, as programs can open it; a disk without one is still a disk. */
	err = virtblk_node_add(vblk);
	if (err)
		dev_err(&vdev->dev, "[%s] no passthrough node: error %d\n",
			vblk->disk->disk_name, err);
	return 0;

err_put_disk:
	/* An interrupt may still be ending the last report of the zones. */
	virtio_reset_device(vdev);
	virtblk_del_vqs(vblk);
	put_disk(vblk->disk);
err_free_tags:
	blk_mq_free_tag_set(&vblk->tag_set);
err_del_vqs:
	virtio_reset_device(vdev);
	virtblk_del_vqs(vblk);
err_free:
	cancel_delayed_work_sync(&vblk->config_work);
	virtblk_free(vblk);
	return err;
}

static void virtblk_unquiesce(struct virtblk *vblk)
{
	if (vblk->quiesced)
		blk_mq_unquiesce_queue(vblk->disk->queue);
	vblk->quiesced = false;
}

static void virtblk_remove(struct virtio_device *vdev)
{
	struct virtblk *vblk = vdev->priv;
	struct gendisk *disk = vblk->disk;

	virtblk_node_del(vblk);
	/* After a suspend whose end never came: requests fail now. */
	virtblk_unquiesce(vblk);
	virtblk_watch(vblk);
	del_gendisk(disk);
	/* For dispatchers that have yet to kick, though all is answered. */
	synchronize_rcu();
	cancel_delayed_work_sync(&vblk->silence);
	blk_mq_free_tag_set(&vblk->tag_set);

	mutex_lock(&vblk->vdev_mutex);
	virtio_reset_device(vdev);
	virtblk_del_vqs(vblk);
	vblk->vdev = NULL;
	mutex_unlock(&vblk->vdev_mutex);

	/* No change of the configuration is heard of any more. */
	cancel_delayed_work_sync(&vblk->config_work);
	/* Frees vblk, once the last descriptor is closed. */
	put_disk(disk);
}

/* ---- suspend and reset ---- */

/*
 * Waits until the device holds no request, and keeps new ones away. Freezing
 * waits for them; quiescing keeps the queue still without holding up those
 * who, like the suspend itself, have to enter it.
 */
static int virtblk_drain(struct virtblk *vblk)
{
	struct request_queue *q = vblk->disk->queue;
	int err = 0;

	/* Nobody has brought it back: it is empty, and keeps what has come. */
	if (vblk->quiesced)
		return 0;
	vblk->silent_since = jiffies;
	blk_freeze_queue_start(q);
	virtblk_reap_polled(vblk);
	while (!blk_mq_freeze_queue_wait_timeout(q, HZ / 50)) {
		if (virtblk_still_answers(vblk))
			continue;
		dev_err(&vblk->vdev->dev, "[%s] device doesn't answer: can't suspend it\n",
			vblk->disk->disk_name);
		err = -EBUSY;
		break;
	}
	/* Waits for dispatchers that have yet to kick, though all is answered. */
	if (!err) {
		blk_mq_quiesce_queue(q);
		vblk->quiesced = true;
	}
	compat_unfreeze_queue(q);
	return err;
}

static void virtblk_stop(struct virtblk *vblk)
{
	virtio_reset_device(vblk->vdev);
	virtblk_del_vqs(vblk);
}

static int __maybe_unused virtblk_freeze(struct virtio_device *vdev)
{
	struct virtblk *vblk = vdev->priv;
	int err;

	/* First: it may wait for one who waits for this disk's answer. */
	cancel_delayed_work_sync(&vblk->config_work);
	err = virtblk_drain(vblk);
	if (!err)
		virtblk_stop(vblk);
	else	/* No restore will look for a resize. */
		queue_delayed_work(virtblk_wq, &vblk->config_work, 0);
	return err;
}

/*
 * A reset comes whatever is said here, and is what somebody does to a device
 * that doesn't answer: what it holds ends now.
 */
static int __maybe_unused virtblk_reset_prepare(struct virtio_device *vdev)
{
	struct virtblk *vblk = vdev->priv;

	cancel_delayed_work_sync(&vblk->config_work);
	if (virtblk_drain(vblk)) {
		virtblk_kill(vblk);
		virtblk_drain(vblk);
	}
	virtblk_stop(vblk);
	return 0;
}

static int __maybe_unused virtblk_restore(struct virtio_device *vdev)
{
	struct virtblk *vblk = vdev->priv;
	int err;

	err = virtblk_find_vqs(vblk);
	if (!err)
		virtio_device_ready(vdev);
	/* If there are no virtqueues requests fail, instead of waiting. */
	virtblk_unquiesce(vblk);
	/* A resize while suspended has told nobody. */
	if (!err)
		queue_delayed_work(virtblk_wq, &vblk->config_work, 0);
	return err;
}

/* ---- module ---- */

static const unsigned int virtblk_features[] = {
	/* what legacy devices have, VIRTBLK_LEGACY_FEATURES of them */
	VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_SIZE_MAX, VIRTIO_BLK_F_GEOMETRY,
	VIRTIO_BLK_F_RO, VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_FLUSH,
	VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_MQ,
	VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES,
	VIRTIO_BLK_F_SECURE_ERASE,
	/* and what only modern ones have */
	VIRTIO_BLK_F_LIFETIME,
#ifdef COMPAT_ZONED
	VIRTIO_BLK_F_ZONED,
#endif
};

#define VIRTBLK_LEGACY_FEATURES	12

/* Before the features are settled: what is taken back here isn't negotiated. */
static int virtblk_validate(struct virtio_device *vdev)
{
	if (direct_descriptors)
		__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	return 0;
}

static struct virtio_driver virtblk_driver = {
	.driver.name			= virtblk_name,
	.driver.owner			= THIS_MODULE,
	.id_table			= virtblk_ids,
	.feature_table			= virtblk_features,
	.feature_table_size		= ARRAY_SIZE(virtblk_features),
	.feature_table_legacy		= virtblk_features,
	.feature_table_size_legacy	= VIRTBLK_LEGACY_FEATURES,
	.validate			= virtblk_validate,
	.probe				= virtblk_probe,
	.remove				= virtblk_remove,
	.config_changed			= virtblk_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze				= virtblk_freeze,
	.restore			= virtblk_restore,
#endif
#ifdef COMPAT_RESET_PREPARE
	.reset_prepare			= virtblk_reset_prepare,
	.reset_done			= virtblk_restore,
#endif
};

static int __init virtblk_init(void)
{
	int err;

	err = virtblk_flavour_init(&virtblk_driver.driver);
	if (err)
		return err;
	virtblk_wq = alloc_workqueue("virtio-blk", WQ_UNBOUND, 0);
	if (!virtblk_wq)
		return -ENOMEM;

	virtblk_major = register_blkdev(0, virtblk_blkdev_name);
	if (virtblk_major < 0) {
		err = virtblk_major;
		goto err_destroy_wq;
	}
	err = virtblk_node_init();
	if (err)
		goto err_unregister_blkdev;
	err = register_virtio_driver(&virtblk_driver);
	if (err)
		goto err_node_exit;
	return 0;

err_node_exit:
	virtblk_node_exit();
err_unregister_blkdev:
	unregister_blkdev(virtblk_major, virtblk_blkdev_name);
err_destroy_wq:
	destroy_workqueue(virtblk_wq);
	return err;
}
module_init(virtblk_init);

static void __exit virtblk_exit(void)
{
	unregister_virtio_driver(&virtblk_driver);
	virtblk_node_exit();
	unregister_blkdev(virtblk_major, virtblk_blkdev_name);
	destroy_workqueue(virtblk_wq);
	ida_destroy(&virtblk_index_ida);
}
module_exit(virtblk_exit);

MODULE_DESCRIPTION("Virtio block driver with io_uring passthrough");
MODULE_LICENSE("GPL");
MODULE_VERSION(VIRTBLK_VERSION);
