/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one place that knows kernels differ. HAVE_x are decided by Kbuild, which
 * looks into the headers it builds against: stable kernels take interfaces
 * back, so a version number says little. What has no HAVE_x is the same from
 * Linux 6.1 on.
 */
#ifndef _VIRTBLK_COMPAT_H
#define _VIRTBLK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hdreg.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#if IS_ENABLED(CONFIG_IO_URING)
#ifdef HAVE_IO_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/io_uring_types.h>
#endif
#ifdef HAVE_BLK_MQ_VIRTIO_H
#include <linux/blk-mq-virtio.h>
#endif

/*
 * For locals of the hot path that are written before they are read: kernels
 * built with INIT_STACK_ALL clear every one at each call.
 */
#if __has_attribute(__uninitialized__)
#define compat_uninitialized	__attribute__((__uninitialized__))
#else
#define compat_uninitialized
#endif

/* ---- blk-mq: lists of requests (6.13, taken back to 6.12.y) ---- */

#ifdef HAVE_RQ_LIST
typedef struct rq_list compat_rq_list;
#define COMPAT_RQ_LIST_EMPTY	{ }

/**
 * compat_rq_list_fifo() - oldest request first
 * @list: the list that ->queue_rqs() was given
 *
 * Older kernels' plugs had the newest request in front.
 */
static inline void compat_rq_list_fifo(compat_rq_list *list)
{
}

/**
 * compat_rq_list_add_tail() - put a request behind all others
 * @list: where to
 * @req: the request
 */
static inline void compat_rq_list_add_tail(compat_rq_list *list,
					   struct request *req)
{
	rq_list_add_tail(list, req);
}

/**
 * compat_iob_add() - a completed request for the batch's end
 * @iob: what the poller ends at once
 * @req: the request
 *
 * The order there is nobody's concern.
 */
static inline void compat_iob_add(struct io_comp_batch *iob,
				  struct request *req)
{
	rq_list_add_tail(&iob->req_list, req);
}

/**
 * compat_claim_tag() - let the tag lead to the request
 * @req: a request that ->queue_rqs() is about to send
 *
 * Before 6.7 this was left to ->queue_rqs(); without it a completion finds no
 * request by its tag.
 */
static inline void compat_claim_tag(struct request *req)
{
}
#else
typedef struct request *compat_rq_list;
#define COMPAT_RQ_LIST_EMPTY	NULL

static inline void compat_rq_list_fifo(compat_rq_list *list)
{
	struct request *req, *fifo = NULL;

	while ((req = rq_list_pop(list)))
		rq_list_add(&fifo, req);
	*list = fifo;
}

static inline void compat_rq_list_add_tail(compat_rq_list *list,
					   struct request *req)
{
	while (*list)
		list = &(*list)->rq_next;
	req->rq_next = NULL;
	*list = req;
}

static inline void compat_iob_add(struct io_comp_batch *iob,
				  struct request *req)
{
	rq_list_add(&iob->req_list, req);
}

static inline void compat_claim_tag(struct request *req)
{
	req->mq_hctx->tags->rqs[req->tag] = req;
}
#endif

/* ---- blk-mq: small things ---- */

#ifdef HAVE_INIT_REQUEST_INT_NODE
typedef int compat_numa_t;
#else
typedef unsigned int compat_numa_t;
#endif

#ifdef HAVE_SHOULD_MERGE
#define COMPAT_MQ_F_SHOULD_MERGE	BLK_MQ_F_SHOULD_MERGE
#else
#define COMPAT_MQ_F_SHOULD_MERGE	0
#endif

/**
 * compat_blk_rq_map_sg() - fill a scatterlist
 * @req: the request
 * @sgl: room for all of its segments
 *
 * Return: the number of entries filled.
 */
static inline int compat_blk_rq_map_sg(struct request *req,
				       struct scatterlist *sgl)
{
#ifdef HAVE_MAP_SG_QUEUE
	return blk_rq_map_sg(req->q, req, sgl);
#else
	return blk_rq_map_sg(req, sgl);
#endif
}

/**
 * compat_map_irq_queues() - CPUs to queues, as the interrupts lie
 * @map: the kind of queues to map
 * @vdev: the device, whose first interrupt is of the first queue
 */
static inline void compat_map_irq_queues(struct blk_mq_queue_map *map,
					 struct virtio_device *vdev)
{
	/* The old one where both exist: 6.12.y's new one knows no virtio. */
#ifdef HAVE_BLK_MQ_VIRTIO_H
	blk_mq_virtio_map_queues(map, vdev, 0);
#else
	blk_mq_map_hw_queues(map, &vdev->dev, 0);
#endif
}

/**
 * compat_execute_at_head() - whether a passthrough request goes to the head
 * @req: the request
 *
 * Before 6.4 (dd6216bb16e8) a plug gave a scheduler even requests that bypass
 * it, and bfq looks for their bio. At the head they go past plug and scheduler.
 *
 * Return: true where it has to, to get past a scheduler.
 */
static inline bool compat_execute_at_head(const struct request *req)
{
#ifdef HAVE_RQF_USE_SCHED
	return false;
#else
	return req->q->elevator;
#endif
}

/**
 * compat_unfreeze_queue() - undo blk_freeze_queue_start()
 * @q: the queue
 */
static inline void compat_unfreeze_queue(struct request_queue *q)
{
#ifdef HAVE_FREEZE_MEMFLAGS
	blk_mq_unfreeze_queue_nomemrestore(q);
#else
	blk_mq_unfreeze_queue(q);
#endif
}

/**
 * compat_bdev_mapping() - the page cache of a block device
 * @bdev: the block device, opened or held
 *
 * Return: its address space.
 */
static inline struct address_space *
compat_bdev_mapping(struct block_device *bdev)
{
#ifdef HAVE_BD_MAPPING
	return bdev->bd_mapping;
#else
	return bdev->bd_inode->i_mapping;
#endif
}

/* ---- queue limits (at allocation from 6.9, feature bits from 6.11) ---- */

#ifdef HAVE_BLK_MAX_BLOCK_SIZE
#define COMPAT_MAX_BLOCK_SIZE	BLK_MAX_BLOCK_SIZE
#else
#define COMPAT_MAX_BLOCK_SIZE	PAGE_SIZE
#endif

#ifdef HAVE_LIMITS_FEATURES
/**
 * compat_alloc_disk() - a disk with its queue and limits
 * @set: its tags
 * @lim: the limits that were asked of the device
 * @queuedata: what the queue shall lead to
 * @wc: there is a volatile write cache
 *
 * Return: the disk or an ERR_PTR.
 */
static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *set,
						struct queue_limits *lim,
						void *queuedata, bool wc)
{
	/* As in-tree: the host's medium is unknown. */
	lim->features |= BLK_FEAT_ROTATIONAL;
	if (wc)
		lim->features |= BLK_FEAT_WRITE_CACHE;
	return blk_mq_alloc_disk(set, lim, queuedata);
}

/**
 * compat_commit_limits() - limits in place of the old ones
 * @q: the queue
 * @lim: what queue_limits_start_update() gave, changed
 *
 * The queue is frozen meanwhile: requests in flight were made for the old
 * limits.
 *
 * Return: 0 or an errno.
 */
static inline int compat_commit_limits(struct request_queue *q,
				       struct queue_limits *lim)
{
#ifdef HAVE_COMMIT_UPDATE_FROZEN
	return queue_limits_commit_update_frozen(q, lim);
#else
	int err;

	blk_freeze_queue_start(q);
	blk_mq_freeze_queue_wait(q);
	err = queue_limits_commit_update(q, lim);
	compat_unfreeze_queue(q);
	return err;
#endif
}

/**
 * compat_set_write_cache() - tell the block layer whether to flush
 * @q: the queue of a disk in use
 * @wc: there is a volatile write cache
 *
 * Return: 0 or an errno.
 */
static inline int compat_set_write_cache(struct request_queue *q, bool wc)
{
	struct queue_limits lim = queue_limits_start_update(q);

	if (wc)
		lim.features |= BLK_FEAT_WRITE_CACHE;
	else
		lim.features &= ~BLK_FEAT_WRITE_CACHE;
	return compat_commit_limits(q, &lim);
}

/**
 * compat_limits_set_zoned() - limits of a zoned disk
 * @lim: the limits
 * @append: sectors that one zone append may have
 */
static inline void compat_limits_set_zoned(struct queue_limits *lim, u32 append)
{
	lim->features |= BLK_FEAT_ZONED;
#ifdef HAVE_MAX_HW_ZONE_APPEND
	lim->max_hw_zone_append_sectors = append;
#else
	lim->max_zone_append_sectors = append;
#endif
}

/**
 * compat_revalidate_zones() - let the block layer read all zones
 * @disk: a zoned disk
 *
 * Return: 0 or an errno.
 */
static inline int compat_revalidate_zones(struct gendisk *disk)
{
	return blk_revalidate_disk_zones(disk);
}

/**
 * compat_write_cache() - whether the block layer sends flushes
 * @q: the queue
 *
 * Return: what compat_set_write_cache() or sysfs set last.
 */
static inline bool compat_write_cache(struct request_queue *q)
{
	return blk_queue_write_cache(q);
}

/**
 * compat_zone_resources() - how many zones may be open and active
 * @disk: the disk
 * @open: set to the limit, 0 for none
 * @active: likewise
 *
 * Left alone where kernels negotiate no zones.
 */
static inline void compat_zone_resources(struct gendisk *disk, u32 *open,
					 u32 *active)
{
	*open = disk->queue->limits.max_open_zones;
	*active = disk->queue->limits.max_active_zones;
}
#else
#ifdef HAVE_ALLOC_DISK_LIMITS
/**
 * compat_alloc_disk_limits() - a disk, without its write cache
 * @set: its tags
 * @lim: the limits
 * @queuedata: what the queue shall lead to
 *
 * Return: the disk or an ERR_PTR.
 */
static inline struct gendisk *
compat_alloc_disk_limits(struct blk_mq_tag_set *set, struct queue_limits *lim,
			 void *queuedata)
{
	return blk_mq_alloc_disk(set, lim, queuedata);
}
#else
/**
 * compat_apply_limits() - set limits one by one
 * @q: a queue that is not in use yet
 * @lim: all of them; 0 leaves a default where 0 makes no sense
 */
static inline void compat_apply_limits(struct request_queue *q,
				       const struct queue_limits *lim)
{
	/* First, as the others are checked against it. */
	blk_queue_logical_block_size(q, lim->logical_block_size);
	if (lim->physical_block_size)
		blk_queue_physical_block_size(q, lim->physical_block_size);
	if (lim->alignment_offset)
		blk_queue_alignment_offset(q, lim->alignment_offset);
	if (lim->io_min)
		blk_queue_io_min(q, lim->io_min);
	if (lim->io_opt)
		blk_queue_io_opt(q, lim->io_opt);
	blk_queue_max_segments(q, lim->max_segments);
	blk_queue_max_segment_size(q, lim->max_segment_size);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	if (lim->max_hw_discard_sectors)
		blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
	if (lim->max_discard_segments) {
		blk_queue_max_discard_segments(q, lim->max_discard_segments);
		q->limits.discard_granularity = lim->discard_granularity;
	}
	blk_queue_max_secure_erase_sectors(q, lim->max_secure_erase_sectors);
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
}

static inline struct gendisk *
compat_alloc_disk_limits(struct blk_mq_tag_set *set, struct queue_limits *lim,
			 void *queuedata)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);

	if (!IS_ERR(disk))
		compat_apply_limits(disk->queue, lim);
	return disk;
}
#endif

static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *set,
						struct queue_limits *lim,
						void *queuedata, bool wc)
{
	struct gendisk *disk = compat_alloc_disk_limits(set, lim, queuedata);

	if (!IS_ERR(disk))
		blk_queue_write_cache(disk->queue, wc, false);
	return disk;
}

static inline int compat_set_write_cache(struct request_queue *q, bool wc)
{
	blk_queue_write_cache(q, wc, false);
	return 0;
}

static inline bool compat_write_cache(struct request_queue *q)
{
	return test_bit(QUEUE_FLAG_WC, &q->queue_flags);
}

static inline void compat_zone_resources(struct gendisk *disk, u32 *open,
					 u32 *active)
{
}
#endif

/* ---- block device operations ---- */

#ifdef HAVE_GETGEO_DISK
#define COMPAT_GETGEO(name, body)					\
static int name(struct gendisk *disk, struct hd_geometry *geo)		\
{									\
	return body(disk, geo);						\
}
#else
#define COMPAT_GETGEO(name, body)					\
static int name(struct block_device *bdev, struct hd_geometry *geo)	\
{									\
	return body(bdev->bd_disk, geo);				\
}
#endif

#ifdef HAVE_REPORT_ZONES_ARGS
typedef struct blk_report_zones_args compat_report_t;
#define COMPAT_REPORT_ZONES_ARGS					\
	struct gendisk *disk, sector_t sector, unsigned int nr_zones,	\
	struct blk_report_zones_args *args
#define COMPAT_REPORT_ZONES(name, body)					\
int name(COMPAT_REPORT_ZONES_ARGS)					\
{									\
	return body(disk, sector, nr_zones, args);			\
}
#else
/* The callback and its argument travel together. */
typedef struct {
	report_zones_cb	cb;
	void		*data;
} compat_report_t;
#define COMPAT_REPORT_ZONES_ARGS					\
	struct gendisk *disk, sector_t sector, unsigned int nr_zones,	\
	report_zones_cb cb, void *data
#define COMPAT_REPORT_ZONES(name, body)					\
int name(COMPAT_REPORT_ZONES_ARGS)					\
{									\
	compat_report_t report = { .cb = cb, .data = data };		\
									\
	return body(disk, sector, nr_zones, &report);			\
}
#endif

/**
 * compat_report_zone() - pass a zone to who asked for the report
 * @disk: the disk
 * @zone: the zone
 * @idx: its place in the report
 * @report: what ->report_zones() was called with
 *
 * Return: 0 or an errno, which ends the report.
 */
static inline int compat_report_zone(struct gendisk *disk,
				     struct blk_zone *zone, unsigned int idx,
				     compat_report_t *report)
{
#ifdef HAVE_REPORT_ZONES_ARGS
	return disk_report_zone(disk, zone, idx, report);
#else
	return report->cb(zone, idx, report->data);
#endif
}

/* ---- virtio ---- */

/* The transport's own reset (6.14) */
#ifdef HAVE_RESET_PREPARE
#define COMPAT_RESET_PREPARE
#endif

#ifdef HAVE_VIRTQUEUE_INFO
#define compat_vq_info	virtqueue_info

/**
 * compat_find_vqs() - set up all virtqueues
 * @vdev: the device
 * @nr: how many
 * @vqs: room for them
 * @info: name and callback of each
 * @affinity: how to spread their interrupts
 *
 * Return: 0 or an errno.
 */
static inline int compat_find_vqs(struct virtio_device *vdev, unsigned int nr,
				  struct virtqueue *vqs[],
				  struct compat_vq_info *info,
				  struct irq_affinity *affinity)
{
	return virtio_find_vqs(vdev, nr, vqs, info, affinity);
}
#else
struct compat_vq_info {
	const char	*name;
	vq_callback_t	*callback;
};

static inline int compat_find_vqs(struct virtio_device *vdev, unsigned int nr,
				  struct virtqueue *vqs[],
				  struct compat_vq_info *info,
				  struct irq_affinity *affinity)
{
	vq_callback_t **callbacks = kcalloc(nr, sizeof(*callbacks), GFP_KERNEL);
	const char **names = kcalloc(nr, sizeof(*names), GFP_KERNEL);
	unsigned int i;
	int err = -ENOMEM;

	if (callbacks && names) {
		for (i = 0; i < nr; i++) {
			callbacks[i] = info[i].callback;
			names[i] = info[i].name;
		}
		err = virtio_find_vqs(vdev, nr, vqs, callbacks, names,
				      affinity);
	}
	kfree(callbacks);
	kfree(names);
	return err;
}
#endif

/*
 * Zoned devices came with 6.3, the limits that zoned.c sets with 6.11; where
 * one is missing the feature isn't negotiated. Kbuild asks for the same two.
 */
#if defined(HAVE_VIRTIO_ZONED) && defined(HAVE_LIMITS_FEATURES)
#define COMPAT_ZONED
#define VIRTBLK_ZONED	IS_ENABLED(CONFIG_BLK_DEV_ZONED)

/**
 * compat_zone_model() - the zone model that the device tells
 * @vdev: the device
 *
 * Return: VIRTIO_BLK_Z_NONE or another, unchecked.
 */
static inline u8 compat_zone_model(struct virtio_device *vdev)
{
	u8 model = VIRTIO_BLK_Z_NONE;

	virtio_cread_feature(vdev, VIRTIO_BLK_F_ZONED,
			     struct virtio_blk_config, zoned.model, &model);
	return model;
}
#else
#define VIRTBLK_ZONED		0
#define VIRTIO_BLK_Z_NONE	0
#define VIRTIO_BLK_Z_HM		1
#define VIRTIO_BLK_Z_HA		2

static inline u8 compat_zone_model(struct virtio_device *vdev)
{
	return VIRTIO_BLK_Z_NONE;
}
#endif

/* ---- io_uring commands; only uring.c uses these ---- */

#if IS_ENABLED(CONFIG_IO_URING)

/**
 * compat_cmd_payload() - the bytes of sqe->cmd
 * @ioucmd: the command
 *
 * Return: 16 of them or, of a 128-byte SQE, 80.
 */
static inline const void *compat_cmd_payload(const struct io_uring_cmd *ioucmd)
{
#ifdef HAVE_URING_CMD_SQE
	return ioucmd->sqe->cmd;
#else
	return ioucmd->cmd;
#endif
}

#ifdef HAVE_URING_CMD_SQE
#define COMPAT_IO64	1

/**
 * compat_cmd_buffer() - sqe->addr and sqe->len
 * @ioucmd: a command that may have been punted
 * @addr: set to the one
 * @len: set to the other
 *
 * Left alone before 6.5, where the driver never sees the SQE itself: there
 * COMPAT_IO64 is 0, and commands that want these are refused.
 */
static inline void compat_cmd_buffer(const struct io_uring_cmd *ioucmd,
				     u64 *addr, u32 *len)
{
	*addr = READ_ONCE(ioucmd->sqe->addr);
	*len = READ_ONCE(ioucmd->sqe->len);
}
#else
#define COMPAT_IO64	0

static inline void compat_cmd_buffer(const struct io_uring_cmd *ioucmd,
				     u64 *addr, u32 *len)
{
}
#endif

/**
 * compat_cmd_keep_sqe() - make the copy of a punted SQE the one that is read
 * @ioucmd: the command
 * @issue_flags: as it was issued
 *
 * To be called before -EAGAIN is returned. Where io_uring puts off its copy of
 * the SQE (5eff57fa9f3a, in 6.12.y too) it makes one when a command is punted,
 * but lets @ioucmd->sqe point to the ring, where the next SQE may lie by the
 * time a worker issues the command. Kernels with vectored registered buffers
 * have that mended, and keep something else in front of the copy.
 */
static inline void compat_cmd_keep_sqe(struct io_uring_cmd *ioucmd,
				       unsigned int issue_flags)
{
#if defined(HAVE_URING_CMD_SQE) && !defined(HAVE_IMPORT_FIXED_VEC)
	struct io_kiocb *req = cmd_to_io_kiocb(ioucmd);
	size_t sqe = sizeof(*ioucmd->sqe);

	if (!(req->flags & REQ_F_ASYNC_DATA) ||
	    ioucmd->sqe == req->async_data)
		return;
	memcpy(req->async_data, ioucmd->sqe,
	       issue_flags & IO_URING_F_SQE128 ? 2 * sqe : sqe);
	ioucmd->sqe = req->async_data;
#endif
}

/**
 * compat_cmd_is_compat() - whether a 32-bit program sent it
 * @ioucmd: the command
 * @issue_flags: as it was issued
 *
 * Return: true if the ring is that of one.
 */
static inline bool compat_cmd_is_compat(struct io_uring_cmd *ioucmd,
					unsigned int issue_flags)
{
#ifdef HAVE_URING_F_COMPAT
	return issue_flags & IO_URING_F_COMPAT;
#else
	return cmd_to_io_kiocb(ioucmd)->ctx->compat;
#endif
}

/**
 * compat_import_fixed() - a piece of a registered buffer
 * @addr: where it begins
 * @len: its bytes
 * @dir: WRITE (to the disk) or READ
 * @iter: set to its pages
 * @ioucmd: the command, whose SQE names the buffer
 * @issue_flags: as it was issued
 *
 * Return: 0 or an errno.
 */
static inline int compat_import_fixed(u64 addr, size_t len, int dir,
				      struct iov_iter *iter,
				      struct io_uring_cmd *ioucmd,
				      unsigned int issue_flags)
{
#ifdef HAVE_IMPORT_FIXED_FLAGS
	return io_uring_cmd_import_fixed(addr, len, dir, iter, ioucmd,
					 issue_flags);
#else
	return io_uring_cmd_import_fixed(addr, len, dir, iter, ioucmd);
#endif
}

#ifdef HAVE_IMPORT_FIXED_VEC
#define COMPAT_FIXED_VEC	1

/**
 * compat_import_fixed_vec() - pieces of a registered buffer
 * @iovs: the user's address of the iovecs
 * @nr: how many
 * @dir: WRITE (to the disk) or READ
 * @iter: set to their pages
 * @ioucmd: the command, whose SQE names the buffer
 * @issue_flags: as it was issued
 *
 * Return: 0 or an errno; -EOPNOTSUPP where the kernel has no such thing.
 */
static inline int compat_import_fixed_vec(u64 iovs, u32 nr, int dir,
					  struct iov_iter *iter,
					  struct io_uring_cmd *ioucmd,
					  unsigned int issue_flags)
{
	int err = io_uring_cmd_import_fixed_vec(ioucmd, u64_to_user_ptr(iovs),
						nr, dir, iter, issue_flags);

	/* Lengths whose sum is no number are as wrong as a sum too large. */
	return err == -EOVERFLOW ? -EINVAL : err;
}
#else
#define COMPAT_FIXED_VEC	0

static inline int compat_import_fixed_vec(u64 iovs, u32 nr, int dir,
					  struct iov_iter *iter,
					  struct io_uring_cmd *ioucmd,
					  unsigned int issue_flags)
{
	return -EOPNOTSUPP;
}
#endif

/**
 * compat_cmd_done() - complete a command
 * @ioucmd: the command, gone afterwards
 * @res: cqe->res
 * @result: big_cqe[0]
 * @big: the ring had 32-byte CQEs when the command was submitted
 * @issue_flags: of the context that this runs in
 */
static inline void compat_cmd_done(struct io_uring_cmd *ioucmd, int res,
				   u64 result, bool big,
				   unsigned int issue_flags)
{
#ifdef HAVE_CMD_DONE32
	/* In a mixed ring done32 always costs a big CQE. */
	if (big && result)
		io_uring_cmd_done32(ioucmd, res, result, issue_flags);
	else
		io_uring_cmd_done(ioucmd, res, issue_flags);
#else
	io_uring_cmd_done(ioucmd, res, result, issue_flags);
#endif
}

/* Defines @name as task work that calls @body(ioucmd, issue_flags). */
#ifdef HAVE_CMD_TW_TOKEN
#define COMPAT_CMD_TASK_WORK(name, body)				\
static void name(struct io_tw_req tw_req, io_tw_token_t tw)		\
{									\
	body(io_uring_cmd_from_tw(tw_req),				\
	     IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);			\
}
#else
#define COMPAT_CMD_TASK_WORK(name, body)				\
static void name(struct io_uring_cmd *ioucmd, unsigned int issue_flags)	\
{									\
	body(ioucmd, issue_flags);					\
}
#endif

#define compat_cmd_in_task(ioucmd, cb) \
	io_uring_cmd_complete_in_task(ioucmd, cb)
#ifdef HAVE_DO_IN_TASK_LAZY
#define compat_cmd_in_task_lazy(ioucmd, cb) \
	io_uring_cmd_do_in_task_lazy(ioucmd, cb)
#else
#define compat_cmd_in_task_lazy(ioucmd, cb) \
	io_uring_cmd_complete_in_task(ioucmd, cb)
#endif

/**
 * compat_cmd_ring() - the ring a command came by
 * @ioucmd: the command
 *
 * Return: something to be compared with another's.
 */
static inline const void *compat_cmd_ring(struct io_uring_cmd *ioucmd)
{
	return cmd_to_io_kiocb(ioucmd)->ctx;
}

/**
 * compat_cmd_same_owner() - do two commands belong together?
 * @a: a command
 * @b: another
 *
 * Return: true if both are of the same task and the same ring.
 */
static inline bool compat_cmd_same_owner(struct io_uring_cmd *a,
					 struct io_uring_cmd *b)
{
	struct io_kiocb *x = cmd_to_io_kiocb(a), *y = cmd_to_io_kiocb(b);

#ifdef HAVE_KIOCB_TCTX
	return x->ctx == y->ctx && x->tctx == y->tctx;
#else
	return x->ctx == y->ctx && x->task == y->task;
#endif
}

#ifdef HAVE_END_IO_IOB
#define COMPAT_END_IO_DECLARE(name)					\
static enum rq_end_io_ret name(struct request *req, blk_status_t status, \
			       const struct io_comp_batch *iob)
#else
#define COMPAT_END_IO_DECLARE(name)					\
static enum rq_end_io_ret name(struct request *req, blk_status_t status)
#endif

/* Defines @name as an end_io that calls @body(req, status). */
#define COMPAT_END_IO(name, body)					\
COMPAT_END_IO_DECLARE(name)						\
{									\
	return body(req, status);					\
}

#endif /* CONFIG_IO_URING */

#endif /* _VIRTBLK_COMPAT_H */
