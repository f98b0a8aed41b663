/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * virtio-blk with io_uring passthrough: what the four files share
 *
 *	main.c	the device: probe, limits, capacity, sysfs, suspend, removal
 *	queue.c	requests against the virtqueue, for every kind of request
 *	uring.c	/dev/vdXc0: passthrough commands by io_uring
 *	zoned.c	zoned devices
 *	flavour-*.c	names, and which devices: the only thing in which
 *		virtio_blk.ko and virtblk_uring.ko differ
 *
 * A passthrough command passes eight stages; the functions carry the numbers:
 *
 *	1 decode	the SQE's fields, each read once
 *	2 policy	one table, one function, a reason for each refusal
 *	3 pin		pages, range list, cache coherence, allocations: may fault
 *			and sleep, so it comes before a tag is held
 *	4 request	a REQ_OP_DRV_IN/OUT request of the disk's queue
 *	5 virtqueue	added to the ring, one kick per batch
 *	6 done		by interrupt or poll
 *	7 end_io	status leaves the request, which is gone afterwards
 *	8 task work	unpin, CQE (a polled ring's commands: where they are polled)
 *
 * Block requests enter at 5; 5 and 6 are the same code for both.
 */
#ifndef _VIRTBLK_H
#define _VIRTBLK_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/workqueue.h>
#include <linux/virtio_blk.h>

#include "compat.h"

#include <uapi/linux/virtio_blk_uring.h>

/* Segments whose scatterlist lies in the request itself, as in-tree. */
#define VIRTBLK_INLINE_SG	2

/* Ranges of one DISCARD by the block layer; each is 16 bytes of payload. */
#define VIRTBLK_MAX_RANGES	256

/* No passthrough command carries more, whatever the device takes. */
#define VIRTBLK_MAX_BYTES	SZ_1G

/* How long removal and suspend wait for a silent device. */
#define VIRTBLK_SILENCE		(30 * HZ)

#define VIRTBLK_NAME_LEN	16

#define VIRTBLK_PART_BITS	4
#define VIRTBLK_MAX_DISKS	(1 << (MINORBITS - VIRTBLK_PART_BITS))

/**
 * struct virtblk_vq - a virtqueue and what serialises it
 * @vq:		the virtqueue
 * @lock:	held over the ring only; @vq is NULL while there is none
 *		(suspended, reset, removed)
 * @hctx:	blk-mq's side of it
 * @answers:	counts visits that found something; the removal's watchdog
 *		compares it to see whether the device still answers
 * @name:	in /proc/interrupts
 */
struct virtblk_vq {
	struct virtqueue	*vq;
	spinlock_t		lock;
	struct blk_mq_hw_ctx	*hctx;
	unsigned int		answers;
	char			name[VIRTBLK_NAME_LEN];
} ____cacheline_aligned_in_smp;

/**
 * struct virtblk_ranges - limits of a command that carries a list of ranges
 * @max_sectors:	of one range, 0 if the command isn't offered
 * @max_seg:		ranges in one command
 * @alignment:		of a range, in sectors
 */
struct virtblk_ranges {
	u32	max_sectors;
	u32	max_seg;
	u32	alignment;
};

/**
 * struct virtblk_limits - what a passthrough command is measured by
 * @block_mask:		logical block size - 1
 * @dma_mask:		address and length bits that the device can't take
 * @max_segments:	of one command
 * @max_segment_size:	bytes
 * @max_bytes:		largest transfer, whole blocks
 */
struct virtblk_limits {
	u32	block_mask;
	u32	dma_mask;
	u32	max_segments;
	u32	max_segment_size;
	u32	max_bytes;
};

struct virtblk_node;

struct io_uring_cmd;

/**
 * struct virtblk_chain - passthrough commands that ended together
 * @first:	of those of one ring and task, which go back in one task work
 * @last:	of those
 * @polled:	those of polled rings, which need none
 * @ring:	the ring that polls, NULL if it isn't known
 */
struct virtblk_chain {
	struct io_uring_cmd	*first;
	struct io_uring_cmd	*last;
	struct io_uring_cmd	*polled;
	const void		*ring;
};

/**
 * struct virtblk - one disk
 * @vdev_mutex:	held by whatever may run after virtblk_remove() has set @vdev
 *		to NULL. A request in flight keeps @vdev valid, as removal waits
 *		for it.
 * @vdev:	the device, NULL once removed
 * @disk:	the disk; its reference keeps this struct
 * @tag_set:	tags of @disk's queue
 * @config_work: reads the new capacity in process context
 * @silence:	ends requests a removed device doesn't answer
 * @silent_since: when @answers last changed, in jiffies
 * @answers:	sum of all virtqueues' at that time
 * @quiesced:	suspended: the queue is quiesced until there are virtqueues
 * @index:	number behind the name and the minors
 * @num_vqs:	virtqueues
 * @io_queues:	virtqueues by kind; polled ones come last
 * @vqs:	the virtqueues; the array stays as long as the disk
 * @discard:	limits of DISCARD, for the node
 * @write_zeroes: limits of WRITE_ZEROES
 * @secure_erase: limits of SECURE_ERASE
 * @write_zeroes_may_unmap: WRITE_ZEROES with UNMAP can deallocate
 * @zone_sectors: size of a zone, 0 if not zoned
 * @max_append_sectors: largest ZONE_APPEND, 0 if not zoned
 * @zone_model:	VIRTIO_BLK_Z_*
 * @features:	negotiated features, good also once the device is gone
 * @lim:	limits in the form that commands read them
 * @mapping:	the block node's page cache
 * @node:	/dev/vdXc0
 */
struct virtblk {
	struct mutex		vdev_mutex;
	struct virtio_device	*vdev;
	struct gendisk		*disk;
	struct blk_mq_tag_set	tag_set;
	struct delayed_work	config_work;

	struct delayed_work	silence;
	unsigned long		silent_since;
	unsigned int		answers;
	bool			quiesced;

	int			index;
	int			num_vqs;
	int			io_queues[HCTX_MAX_TYPES];
	struct virtblk_vq	*vqs;

	struct virtblk_ranges	discard;
	struct virtblk_ranges	write_zeroes;
	struct virtblk_ranges	secure_erase;
	bool			write_zeroes_may_unmap;

	unsigned int		zone_sectors;
	unsigned int		max_append_sectors;
	u8			zone_model;

	u64			features;
	struct virtblk_limits	lim;
	struct address_space	*mapping;

	struct virtblk_node	*node;
};

/* virtblk_req.cleanup */
enum {
	VIRTBLK_CLEAN_NONE,
	VIRTBLK_CLEAN_CHAIN,	/* a scatterlist from the chain pool */
	VIRTBLK_CLEAN_RANGES,	/* a kmalloc'ed list of ranges in sg[0] */
};

/**
 * struct virtblk_req - a request's part of ours (blk-mq pdu)
 * @out_hdr:	what the device reads first (virtio 1.2, 5.2.6)
 * @in:		what it writes last: the status byte, preceded by the sector
 *		written if the command is a zone append
 * @in.status:	preset to VIRTBLK_URING_S_UNWRITTEN, as the slot still holds
 *		what the previous command's device wrote
 * @killed:	ended without an answer (removal, reset)
 * @cleanup:	what completion has to give back, see below
 * @to_device:	@data is read by the device
 * @append:	the device writes all of @in, not only the status
 * @nr_data:	segments of @data, 0 if the command has no data
 * @data:	the data's scatterlist: @sg, the chain's, or for DRV requests one
 *		that the request's owner keeps
 * @table:	the chain, if that is what @cleanup says
 * @hdr_sg:	describes @out_hdr, set once per slot
 * @status_sg:	describes @in.status, set once per slot
 * @append_sg:	describes all of @in, likewise
 * @sg:		room for small requests
 */
struct virtblk_req {
	struct virtio_blk_outhdr out_hdr;
	struct {
		__virtio64	sector;
		u8		status;
	} in;
	bool			killed;
	u8			cleanup;
	bool			to_device;
	bool			append;
	unsigned int		nr_data;
	struct scatterlist	*data;
	struct sg_table		table;
	struct scatterlist	hdr_sg;
	struct scatterlist	status_sg;
	struct scatterlist	append_sg;
	struct scatterlist	sg[VIRTBLK_INLINE_SG];
};

/* The zone append's in-header is 9 bytes on the wire, without padding. */
#define VIRTBLK_APPEND_IN_LEN	(offsetof(struct virtblk_req, in.status) - \
				 offsetof(struct virtblk_req, in) + 1)

static inline u8 virtblk_status(const struct virtblk_req *vbr)
{
	return READ_ONCE(vbr->in.status);
}

/* queue.c */
extern const struct blk_mq_ops virtblk_mq_ops;
void virtblk_interrupt(struct virtqueue *vq);
int virtblk_reap(struct virtblk *vblk, unsigned int qid,
		 struct io_comp_batch *iob);
void virtblk_end_batch(struct io_comp_batch *iob, const void *ring);
void virtblk_reap_polled(struct virtblk *vblk);
bool virtblk_busy(struct virtblk *vblk);
void virtblk_kill(struct virtblk *vblk);
void virtblk_prep_drv(struct virtblk *vblk, struct request *req, u32 type,
		      u64 sector, u32 ioprio);
unsigned int virtblk_sg_count(const void *buf, size_t len);
void virtblk_sg_fill(struct scatterlist *sg, void *buf, size_t len);
int virtblk_execute(struct virtblk *vblk, u32 type, u64 sector,
		    struct scatterlist *sg, unsigned int nr);

/* zoned.c, linked if the kernel has zoned block devices */
int virtblk_read_zoned_limits(struct virtblk *vblk, struct queue_limits *lim);
#if VIRTBLK_ZONED
int virtblk_report_zones(COMPAT_REPORT_ZONES_ARGS);
int virtblk_revalidate_zones(struct virtblk *vblk);
#else
static inline int virtblk_revalidate_zones(struct virtblk *vblk) { return 0; }
#endif

/* main.c: for what must not wait for the CPU it was queued on */
extern struct workqueue_struct *virtblk_wq;

/* flavour-replace.c, flavour-beside.c */
extern const char virtblk_name[];
extern const char virtblk_blkdev_name[];
extern const char virtblk_class_name[];
extern const struct virtio_device_id virtblk_ids[];

/**
 * virtblk_prefix() - what the names of this flavour's disks begin with
 *
 * Return: the letters.
 */
const char *virtblk_prefix(void);

/**
 * virtblk_flavour_init() - what a flavour does before its driver is registered
 * @driver:	about to be registered
 *
 * Return: 0, or a negative errno: then the module isn't loaded.
 */
int virtblk_flavour_init(struct device_driver *driver);

/* uring.c */
#if IS_ENABLED(CONFIG_IO_URING)
int virtblk_node_init(void);
void virtblk_node_exit(void);
int virtblk_node_add(struct virtblk *vblk);
void virtblk_node_del(struct virtblk *vblk);
void virtblk_uring_gather(struct request *req, struct virtblk_chain *chain);
void virtblk_uring_flush(struct virtblk_chain *chain);
void virtblk_uring_flush_irq(struct virtblk_chain *chain);
#else
static inline int virtblk_node_init(void) { return 0; }
static inline void virtblk_node_exit(void) { }
static inline int virtblk_node_add(struct virtblk *vblk) { return 0; }
static inline void virtblk_node_del(struct virtblk *vblk) { }
static inline void virtblk_uring_gather(struct request *req,
					struct virtblk_chain *chain) { }
static inline void virtblk_uring_flush(struct virtblk_chain *chain) { }
static inline void virtblk_uring_flush_irq(struct virtblk_chain *chain) { }
#endif

#endif /* _VIRTBLK_H */
