// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-blk: zoned devices (virtio 1.2, 5.2.6.3 f.; feature ZONED)
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "virtblk.h"

#define virtblk_read_zoned_field(vdev, field, v) \
	virtio_cread(vdev, struct virtio_blk_config, zoned.field, v)

/**
 * virtblk_read_zoned_limits() - limits of a host-managed device
 * @vblk:	the disk
 * @lim:	filled in
 *
 * Return: 0, or -ENODEV if the block layer can't work with what it says.
 */
int virtblk_read_zoned_limits(struct virtblk *vblk, struct queue_limits *lim)
{
	struct virtio_device *vdev = vblk->vdev;
	u32 zone, open, active, append, granularity;

	virtblk_read_zoned_field(vdev, zone_sectors, &zone);
	virtblk_read_zoned_field(vdev, max_open_zones, &open);
	virtblk_read_zoned_field(vdev, max_active_zones, &active);
	virtblk_read_zoned_field(vdev, max_append_sectors, &append);
	virtblk_read_zoned_field(vdev, write_granularity, &granularity);

	if (!is_power_of_2(zone)) {
		dev_err(&vdev->dev, "zone size of %u sectors: Linux needs a power of 2\n",
			zone);
		return -ENODEV;
	}
	if (!granularity || !append ||
	    (u64)append << SECTOR_SHIFT < granularity) {
		dev_err(&vdev->dev, "zones can't be written: granularity %u bytes, append limit %u sectors\n",
			granularity, append);
		return -ENODEV;
	}

	vblk->zone_sectors = zone;
	vblk->max_append_sectors = append;
	lim->chunk_sectors = zone;
	lim->max_open_zones = open;
	lim->max_active_zones = active;
	lim->zone_write_granularity = granularity;
	lim->physical_block_size = granularity;
	lim->io_min = granularity;
	compat_limits_set_zoned(lim, append);

	if (virtio_has_feature(vdev, VIRTIO_BLK_F_DISCARD)) {
		dev_warn(&vdev->dev, "DISCARD has no place on a zoned device: ignored\n");
		lim->max_hw_discard_sectors = 0;
		vblk->discard.max_sectors = 0;
	}
	return 0;
}

/**
 * virtblk_revalidate_zones() - let the block layer read a zoned disk's zones
 * @vblk:	the disk, which takes requests
 *
 * Return: 0, also if it isn't zoned, or a negative errno.
 */
int virtblk_revalidate_zones(struct virtblk *vblk)
{
	if (!vblk->zone_sectors)
		return 0;
	return compat_revalidate_zones(vblk->disk);
}

/* ---- zone report ---- */

/**
 * struct virtblk_report - buffer for one answer
 * @buf:	what the device writes
 * @len:	its bytes
 * @zones:	how many descriptors fit
 * @sg:		@buf as a scatterlist
 * @nr:		entries of @sg
 */
struct virtblk_report {
	struct virtio_blk_zone_report	*buf;
	size_t				len;
	unsigned int			zones;
	struct scatterlist		*sg;
	unsigned int			nr;
};

static void virtblk_report_free(struct virtblk_report *r)
{
	kfree(r->sg);
	kvfree(r->buf);
}

/* As many descriptors as asked for, as one command carries, as there's room. */
static int virtblk_report_alloc(struct virtblk *vblk, unsigned int nr_zones,
				struct virtblk_report *r)
{
	struct request_queue *q = vblk->disk->queue;
	size_t most = (size_t)max(queue_max_segments(q) - 1, 1) << PAGE_SHIFT;

	r->len = struct_size(r->buf, zones, nr_zones);
	r->len = min(r->len, min_t(size_t, most, SZ_1M));
	for (;; r->len /= 2) {
		if (r->len < struct_size(r->buf, zones, 1))
			return -ENOMEM;
		r->buf = kvzalloc(r->len, GFP_KERNEL | __GFP_NOWARN);
		if (r->buf)
			break;
	}
	r->zones = (r->len - sizeof(*r->buf)) / sizeof(r->buf->zones[0]);
	r->nr = virtblk_sg_count(r->buf, r->len);
	r->sg = kmalloc_array(r->nr, sizeof(*r->sg), GFP_KERNEL);
	if (!r->sg) {
		kvfree(r->buf);
		return -ENOMEM;
	}
	virtblk_sg_fill(r->sg, r->buf, r->len);
	return 0;
}

static int virtblk_zone_type(u8 type, u8 *to)
{
	static const u8 types[] = {
		[VIRTIO_BLK_ZT_CONV]	= BLK_ZONE_TYPE_CONVENTIONAL,
		[VIRTIO_BLK_ZT_SWR]	= BLK_ZONE_TYPE_SEQWRITE_REQ,
		[VIRTIO_BLK_ZT_SWP]	= BLK_ZONE_TYPE_SEQWRITE_PREF,
	};

	if (type >= ARRAY_SIZE(types) || !types[type])
		return -EIO;
	*to = types[type];
	return 0;
}

static int virtblk_zone_cond(u8 state, u8 *to)
{
	/* One more than the condition, as 0 is a condition. */
	static const u8 conds[] = {
		[VIRTIO_BLK_ZS_NOT_WP]	= BLK_ZONE_COND_NOT_WP + 1,
		[VIRTIO_BLK_ZS_EMPTY]	= BLK_ZONE_COND_EMPTY + 1,
		[VIRTIO_BLK_ZS_IOPEN]	= BLK_ZONE_COND_IMP_OPEN + 1,
		[VIRTIO_BLK_ZS_EOPEN]	= BLK_ZONE_COND_EXP_OPEN + 1,
		[VIRTIO_BLK_ZS_CLOSED]	= BLK_ZONE_COND_CLOSED + 1,
		[VIRTIO_BLK_ZS_RDONLY]	= BLK_ZONE_COND_READONLY + 1,
		[VIRTIO_BLK_ZS_FULL]	= BLK_ZONE_COND_FULL + 1,
		[VIRTIO_BLK_ZS_OFFLINE]	= BLK_ZONE_COND_OFFLINE + 1,
	};

	if (state >= ARRAY_SIZE(conds) || !conds[state])
		return -EIO;
	*to = conds[state] - 1;
	return 0;
}

/* Where the block layer starts: the place is checked here, the rest there. */
static int virtblk_parse_zone(struct virtblk *vblk, sector_t expected,
			      const struct virtio_blk_zone_descriptor *d,
			      struct blk_zone *zone)
{
	struct virtio_device *vdev = vblk->vdev;
	sector_t capacity = get_capacity(vblk->disk);

	memset(zone, 0, sizeof(*zone));
	zone->start = virtio64_to_cpu(vdev, d->z_start);
	zone->capacity = virtio64_to_cpu(vdev, d->z_cap);
	zone->wp = virtio64_to_cpu(vdev, d->z_wp);
	/* A zone elsewhere would send the walk in circles. */
	if (zone->start != expected ||
	    virtblk_zone_type(d->z_type, &zone->type) ||
	    virtblk_zone_cond(d->z_state, &zone->cond)) {
		dev_err_ratelimited(&vdev->dev,
				    "bad zone at sector %llu: start %llu, type %u, state %u\n",
				    (u64)expected, zone->start,
				    d->z_type, d->z_state);
		return -EIO;
	}

	zone->len = min_t(u64, vblk->zone_sectors, capacity - zone->start);
	switch (zone->cond) {
	case BLK_ZONE_COND_FULL:
		zone->wp = zone->start + zone->len;
		break;
	case BLK_ZONE_COND_READONLY:
	case BLK_ZONE_COND_OFFLINE:
		zone->wp = ULONG_MAX;
		break;
	}
	return 0;
}

/* One answer's zones, from @idx on. Returns how many, or an error. */
static int virtblk_report_part(struct virtblk *vblk, struct virtblk_report *r,
			       sector_t sector, unsigned int idx,
			       unsigned int wanted, compat_report_t *report)
{
	struct blk_zone zone;
	unsigned int i, nr;
	int err;

	memset(r->buf, 0, r->len);
	err = virtblk_execute(vblk, VIRTIO_BLK_T_ZONE_REPORT, sector,
			      r->sg, r->nr);
	if (err)
		return err;

	/* The device's count is a claim: no further than the buffer. */
	nr = min_t(u64, virtio64_to_cpu(vblk->vdev, r->buf->nr_zones),
		   min(r->zones, wanted));
	for (i = 0; i < nr && sector < get_capacity(vblk->disk); i++) {
		err = virtblk_parse_zone(vblk, sector, &r->buf->zones[i],
					 &zone);
		if (!err)
			err = compat_report_zone(vblk->disk, &zone, idx + i,
						 report);
		if (err)
			return err;
		sector += vblk->zone_sectors;
	}
	return i;
}

static int virtblk_report(struct gendisk *disk, sector_t sector,
			  unsigned int nr_zones, compat_report_t *report)
{
	struct virtblk *vblk = disk->private_data;
	struct virtblk_report r;
	unsigned int idx = 0;
	sector_t zones;
	int ret;

	if (!vblk->zone_sectors)
		return -EOPNOTSUPP;
	sector = round_down(sector, vblk->zone_sectors);
	zones = DIV_ROUND_UP_SECTOR_T(get_capacity(disk), vblk->zone_sectors);
	nr_zones = min_t(sector_t, nr_zones, zones);

	ret = virtblk_report_alloc(vblk, nr_zones, &r);
	if (ret)
		return ret;

	mutex_lock(&vblk->vdev_mutex);
	if (!vblk->vdev)
		ret = -ENXIO;
	while (!ret && idx < nr_zones && sector < get_capacity(disk)) {
		ret = virtblk_report_part(vblk, &r, sector, idx,
					  nr_zones - idx, report);
		if (ret <= 0)
			break;
		idx += ret;
		sector += (sector_t)ret * vblk->zone_sectors;
		ret = 0;
	}
	mutex_unlock(&vblk->vdev_mutex);

	virtblk_report_free(&r);
	if (ret < 0)
		return ret;
	/* A zoned disk without a zone where one was asked for isn't one. */
	return idx ? idx : -EIO;
}
COMPAT_REPORT_ZONES(virtblk_report_zones, virtblk_report)
