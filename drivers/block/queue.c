// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-blk: requests against the virtqueue (stages 5 and 6)
 *
 * Block requests are prepared here from their bios. REQ_OP_DRV_IN/OUT requests
 * come prepared: virtblk_prep_drv() has set the header and whoever made them
 * keeps the data's scatterlist.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/virtio_ring.h>

#include "virtblk.h"

static struct virtblk_vq *virtblk_req_vq(struct request *req)
{
	struct virtblk *vblk = req->q->queuedata;

	return &vblk->vqs[req->mq_hctx->queue_num];
}

/* What a status byte means to the block layer (virtio 1.2, 5.2.6). */
static blk_status_t virtblk_result(const struct virtblk_req *vbr)
{
	static const blk_status_t results[] = {
		[VIRTIO_BLK_S_IOERR] = BLK_STS_IOERR,
		[VIRTIO_BLK_S_UNSUPP] = BLK_STS_NOTSUPP,
		[VIRTIO_BLK_S_ZONE_INVALID_CMD] = BLK_STS_IOERR,
		[VIRTIO_BLK_S_ZONE_UNALIGNED_WP] = BLK_STS_IOERR,
		[VIRTIO_BLK_S_ZONE_OPEN_RESOURCE] = BLK_STS_ZONE_OPEN_RESOURCE,
		[VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE] =
			BLK_STS_ZONE_ACTIVE_RESOURCE,
	};
	u8 status = virtblk_status(vbr);

	if (status == VIRTIO_BLK_S_OK)
		return BLK_STS_OK;
	/* Beyond the table: nonsense, or unwritten. */
	return status < ARRAY_SIZE(results) ? results[status] : BLK_STS_IOERR;
}

static int virtblk_init_request(struct blk_mq_tag_set *set, struct request *req,
				unsigned int hctx_idx, compat_numa_t node)
{
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

	/* These never change, so they aren't built again for each command. */
	sg_init_one(&vbr->hdr_sg, &vbr->out_hdr, sizeof(vbr->out_hdr));
	sg_init_one(&vbr->status_sg, &vbr->in.status, sizeof(vbr->in.status));
	sg_init_one(&vbr->append_sg, &vbr->in, VIRTBLK_APPEND_IN_LEN);
	sg_init_table(vbr->sg, VIRTBLK_INLINE_SG);
	return 0;
}

/* Hardware queues and virtqueues go one to one, in the same order. */
static int virtblk_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			     unsigned int hctx_idx)
{
	struct virtblk *vblk = data;

	vblk->vqs[hctx_idx].hctx = hctx;
	return 0;
}

static void virtblk_set_header(struct virtblk *vblk, struct virtblk_req *vbr,
			       u32 type, u64 sector, u32 ioprio)
{
	struct virtio_device *vdev = vblk->vdev;

	vbr->out_hdr.type = cpu_to_virtio32(vdev, type);
	vbr->out_hdr.ioprio = cpu_to_virtio32(vdev, ioprio);
	vbr->out_hdr.sector = cpu_to_virtio64(vdev, sector);
	vbr->in.status = VIRTBLK_URING_S_UNWRITTEN;
	vbr->killed = false;
	vbr->append = type == VIRTIO_BLK_T_ZONE_APPEND;
	vbr->cleanup = VIRTBLK_CLEAN_NONE;
}

/**
 * virtblk_prep_drv() - prepare a REQ_OP_DRV_IN/OUT request without data
 * @vblk:	the disk
 * @req:	the request
 * @type:	VIRTIO_BLK_T_*
 * @sector:	512-byte units
 * @ioprio:	as in the header
 *
 * A command with data then sets nr_data, data and to_device.
 */
void virtblk_prep_drv(struct virtblk *vblk, struct request *req, u32 type,
		      u64 sector, u32 ioprio)
{
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

	virtblk_set_header(vblk, vbr, type, sector, ioprio);
	vbr->nr_data = 0;
}

/* REQ_OP_* to VIRTIO_BLK_T_*, or -1. */
static int virtblk_op_type(enum req_op op)
{
	switch (op) {
	case REQ_OP_READ:
		return VIRTIO_BLK_T_IN;
	case REQ_OP_WRITE:
		return VIRTIO_BLK_T_OUT;
	case REQ_OP_FLUSH:
		return VIRTIO_BLK_T_FLUSH;
	case REQ_OP_DISCARD:
		return VIRTIO_BLK_T_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return VIRTIO_BLK_T_WRITE_ZEROES;
	case REQ_OP_SECURE_ERASE:
		return VIRTIO_BLK_T_SECURE_ERASE;
	case REQ_OP_ZONE_OPEN:
		return VIRTIO_BLK_T_ZONE_OPEN;
	case REQ_OP_ZONE_CLOSE:
		return VIRTIO_BLK_T_ZONE_CLOSE;
	case REQ_OP_ZONE_FINISH:
		return VIRTIO_BLK_T_ZONE_FINISH;
	case REQ_OP_ZONE_APPEND:
		return VIRTIO_BLK_T_ZONE_APPEND;
	case REQ_OP_ZONE_RESET:
		return VIRTIO_BLK_T_ZONE_RESET;
	case REQ_OP_ZONE_RESET_ALL:
		return VIRTIO_BLK_T_ZONE_RESET_ALL;
	default:
		return -1;
	}
}

static bool virtblk_op_has_sector(enum req_op op)
{
	return op != REQ_OP_FLUSH && op != REQ_OP_ZONE_RESET_ALL;
}

static bool virtblk_op_has_ranges(enum req_op op)
{
	return op == REQ_OP_DISCARD || op == REQ_OP_WRITE_ZEROES ||
	       op == REQ_OP_SECURE_ERASE;
}

/*
 * One range per bio, adjacent ones joined: a disk with a single range per
 * command gets its discards merged only where they touch.
 */
static int virtblk_map_ranges(struct request *req, struct virtblk_req *vbr)
{
	struct virtio_blk_discard_write_zeroes *range;
	unsigned int n = 0, room = 0;
	u64 end = 0;
	u32 flags = 0;
	struct bio *bio;

	__rq_for_each_bio(bio, req)
		room++;
	range = kmalloc_array(room, sizeof(*range), GFP_ATOMIC);
	if (!range)
		return -ENOMEM;

	if (req_op(req) == REQ_OP_WRITE_ZEROES &&
	    !(req->cmd_flags & REQ_NOUNMAP))
		flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;

	__rq_for_each_bio(bio, req) {
		u64 sector = bio->bi_iter.bi_sector;
		u32 nr = bio_sectors(bio);

		if (n && sector == end) {
			le32_add_cpu(&range[n - 1].num_sectors, nr);
		} else {
			range[n].sector = cpu_to_le64(sector);
			range[n].num_sectors = cpu_to_le32(nr);
			range[n].flags = cpu_to_le32(flags);
			n++;
		}
		end = sector + nr;
	}

	sg_set_buf(&vbr->sg[0], range, n * sizeof(*range));
	sg_mark_end(&vbr->sg[0]);
	vbr->data = vbr->sg;
	vbr->nr_data = 1;
	vbr->cleanup = VIRTBLK_CLEAN_RANGES;
	return 0;
}

static int virtblk_map_bios(struct request *req, struct virtblk_req *vbr)
{
	unsigned int nr = blk_rq_nr_phys_segments(req);

	vbr->data = vbr->sg;
	if (nr == 1) {
		struct bio_vec bv = req_bvec(req);

		/* Most requests are one bvec, and need no walk. */
		if (bv.bv_len == blk_rq_bytes(req)) {
			sg_set_page(vbr->sg, bv.bv_page, bv.bv_len,
				    bv.bv_offset);
			sg_mark_end(vbr->sg);
			vbr->nr_data = 1;
			return 0;
		}
	} else if (nr > VIRTBLK_INLINE_SG) {
		vbr->table.sgl = vbr->sg;
		if (sg_alloc_table_chained(&vbr->table, nr, vbr->sg,
					   VIRTBLK_INLINE_SG)) {
			/* A part of the chain may be linked to, and gone. */
			sg_init_table(vbr->sg, VIRTBLK_INLINE_SG);
			return -ENOMEM;
		}
		vbr->data = vbr->table.sgl;
		vbr->cleanup = VIRTBLK_CLEAN_CHAIN;
	}
	vbr->nr_data = compat_blk_rq_map_sg(req, vbr->data);
	return 0;
}

static void virtblk_unmap(struct virtblk_req *vbr)
{
	switch (vbr->cleanup) {
	case VIRTBLK_CLEAN_CHAIN:
		sg_free_table_chained(&vbr->table, VIRTBLK_INLINE_SG);
		/* The chain's link lay in sg[]: undo it for the next command. */
		sg_init_table(vbr->sg, VIRTBLK_INLINE_SG);
		break;
	case VIRTBLK_CLEAN_RANGES:
		kfree(sg_virt(vbr->sg));
		break;
	}
	vbr->cleanup = VIRTBLK_CLEAN_NONE;
}

/* What has to leave the slot before a block request ends. */
static void virtblk_settle(struct request *req, struct virtblk_req *vbr)
{
	if (unlikely(vbr->cleanup))
		virtblk_unmap(vbr);
	if (unlikely(vbr->append)) {
		struct virtblk *vblk = req->q->queuedata;

		req->__sector = virtio64_to_cpu(vblk->vdev, vbr->in.sector);
	}
}

static blk_status_t virtblk_prep_bios(struct virtblk *vblk, struct request *req,
				      struct virtblk_req *vbr)
{
	enum req_op op = req_op(req);
	int type = virtblk_op_type(op);
	bool ranges = virtblk_op_has_ranges(op);
	int err = 0;

	if (unlikely(type < 0))
		return BLK_STS_NOTSUPP;

	virtblk_set_header(vblk, vbr, type,
			   virtblk_op_has_sector(op) && !ranges ?
			   blk_rq_pos(req) : 0, req_get_ioprio(req));
	vbr->nr_data = 0;
	vbr->to_device = op_is_write(op);
	if (unlikely(ranges))
		err = virtblk_map_ranges(req, vbr);
	else if (blk_rq_nr_phys_segments(req))
		err = virtblk_map_bios(req, vbr);
	return err ? BLK_STS_RESOURCE : BLK_STS_OK;
}

static blk_status_t virtblk_prep(struct request *req)
{
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);
	blk_status_t status;

	if (!blk_rq_is_passthrough(req)) {
		status = virtblk_prep_bios(req->q->queuedata, req, vbr);
		if (unlikely(status))
			return status;
	}
	blk_mq_start_request(req);
	return BLK_STS_OK;
}

/*
 * Stage 5: put a prepared request on the ring. Called with the lock held.
 *
 * Returns 0, -ENOSPC (ring full), -ENOMEM, or -EIO (broken or gone, or no memory
 * can be mapped: a packed ring).
 */
static int virtblk_add(struct virtblk_vq *vq, struct virtblk_req *vbr)
{
	struct scatterlist *sgs[3];
	unsigned int out = 1, in = 1;

	if (unlikely(!vq->vq))
		return -EIO;

	sgs[0] = &vbr->hdr_sg;
	sgs[1] = vbr->data;
	if (vbr->nr_data) {
		if (vbr->to_device)
			out = 2;
		else
			in = 2;
	}
	sgs[out + in - 1] = vbr->append ? &vbr->append_sg : &vbr->status_sg;

	return virtqueue_add_sgs(vq->vq, sgs, out, in, vbr, GFP_ATOMIC);
}

static bool virtblk_kick_prepare(struct virtblk_vq *vq)
{
	return vq->vq && virtqueue_kick_prepare(vq->vq);
}

/*
 * What a failed virtblk_add() means to blk-mq. A full ring stops the queue, and
 * the next answer starts it; but when nothing is on its way no answer will
 * come, and blk-mq has to come back by itself.
 */
static blk_status_t virtblk_add_failed(struct virtblk_vq *vq,
				       struct blk_mq_hw_ctx *hctx, int err)
{
	switch (err) {
	case -ENOSPC:
		if (vq->vq->num_free == virtqueue_get_vring_size(vq->vq))
			return BLK_STS_RESOURCE;
		blk_mq_stop_hw_queue(hctx);
		return BLK_STS_DEV_RESOURCE;
	case -ENOMEM:
		return BLK_STS_RESOURCE;
	default:
		/* What a packed ring says if memory can't be mapped, too. */
		if (vq->vq && !virtqueue_is_broken(vq->vq))
			return BLK_STS_RESOURCE;
		return BLK_STS_OFFLINE;
	}
}

static blk_status_t virtblk_queue_rq(struct blk_mq_hw_ctx *hctx,
				     const struct blk_mq_queue_data *bd)
{
	struct request *req = bd->rq;
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);
	struct virtblk_vq *vq = virtblk_req_vq(req);
	blk_status_t status;
	bool kick = false;
	int err;

	status = virtblk_prep(req);
	if (unlikely(status))
		return status;

	spin_lock_irq(&vq->lock);
	err = virtblk_add(vq, vbr);
	if (unlikely(err))
		status = virtblk_add_failed(vq, hctx, err);
	/* On failure too: a full ring empties if the device knows of it. */
	if (bd->last || err)
		kick = virtblk_kick_prepare(vq);
	spin_unlock_irq(&vq->lock);

	if (kick)
		virtqueue_notify(vq->vq);
	if (unlikely(err))
		virtblk_unmap(vbr);
	return status;
}

static void virtblk_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct virtblk *vblk = hctx->queue->queuedata;
	struct virtblk_vq *vq = &vblk->vqs[hctx->queue_num];
	bool kick;

	spin_lock_irq(&vq->lock);
	kick = virtblk_kick_prepare(vq);
	spin_unlock_irq(&vq->lock);

	if (kick)
		virtqueue_notify(vq->vq);
}

/* Adds started requests of one virtqueue, linked by rq_next, and kicks once. */
static void virtblk_add_run(struct virtblk_vq *vq, struct request *req)
{
	struct request *next, *failed = NULL;
	bool kick;

	spin_lock_irq(&vq->lock);
	for (; req; req = next) {
		next = req->rq_next;
		if (unlikely(virtblk_add(vq, blk_mq_rq_to_pdu(req)))) {
			req->rq_next = failed;
			failed = req;
		}
	}
	kick = virtblk_kick_prepare(vq);
	spin_unlock_irq(&vq->lock);

	if (kick)
		virtqueue_notify(vq->vq);

	/* They come back one by one through queue_rq, which knows why. */
	for (req = failed; req; req = next) {
		next = req->rq_next;
		virtblk_unmap(blk_mq_rq_to_pdu(req));
		blk_mq_requeue_request(req, true);
	}
}

static void virtblk_queue_rqs(compat_rq_list *rqlist)
{
	struct request *req, *run = NULL, **tail = &run;
	compat_rq_list unready = COMPAT_RQ_LIST_EMPTY;
	struct virtblk_vq *vq = NULL;

	compat_rq_list_fifo(rqlist);
	while ((req = rq_list_pop(rqlist))) {
		struct virtblk_vq *this_vq = virtblk_req_vq(req);

		if (run && vq != this_vq) {
			virtblk_add_run(vq, run);
			run = NULL;
			tail = &run;
		}
		vq = this_vq;
		compat_claim_tag(req);
		if (unlikely(virtblk_prep(req))) {
			compat_rq_list_add_tail(&unready, req);
			continue;
		}
		req->rq_next = NULL;
		*tail = req;
		tail = &req->rq_next;
	}
	if (run)
		virtblk_add_run(vq, run);
	*rqlist = unready;
}

/* Stage 6, for one request: end it. */
static void virtblk_request_done(struct request *req)
{
	struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);
	blk_status_t status = BLK_STS_OK;

	if (unlikely(vbr->killed))
		status = BLK_STS_OFFLINE;
	else if (!blk_rq_is_passthrough(req))
		status = virtblk_result(vbr);

	if (!blk_rq_is_passthrough(req))
		virtblk_settle(req, vbr);
	blk_mq_end_request(req, status);
}

/*
 * blk_mq_end_request_batch() frees tags without looking whether dispatch waits
 * for one, as freeing a single request does (blk_mq_sched_restart()). Without
 * this a request that once found no tag or a full ring is never sent.
 */
static void virtblk_restart(struct blk_mq_hw_ctx *hctx)
{
	if (test_bit(BLK_MQ_S_SCHED_RESTART, &hctx->state) &&
	    test_and_clear_bit(BLK_MQ_S_SCHED_RESTART, &hctx->state))
		blk_mq_run_hw_queue(hctx, true);
}

/**
 * virtblk_end_batch() - stage 6 for a batch that was collected by polling
 * @iob:	the batch, maybe of several hardware queues; empty afterwards
 * @ring:	the ring that polls, with its lock held, or NULL
 */
void virtblk_end_batch(struct io_comp_batch *iob, const void *ring)
{
	struct request *req = rq_list_pop(&iob->req_list);
	struct virtblk_chain chain = { .ring = ring };

	while (req) {
		struct io_comp_batch part = { .need_ts = iob->need_ts };
		struct blk_mq_hw_ctx *hctx = req->mq_hctx;

		do {
			if (blk_rq_is_passthrough(req))
				virtblk_uring_gather(req, &chain);
			else
				virtblk_settle(req, blk_mq_rq_to_pdu(req));
			compat_iob_add(&part, req);
			req = rq_list_pop(&iob->req_list);
		} while (req && req->mq_hctx == hctx);

		blk_mq_end_request_batch(&part);
		virtblk_restart(hctx);
	}
	/* Last: who is woken may find the tags that were freed. */
	virtblk_uring_flush(&chain);
}

static void virtblk_complete_batch(struct io_comp_batch *iob)
{
	virtblk_end_batch(iob, NULL);
}

/*
 * Takes what the device has returned off the ring; called with the lock held.
 * A request leaves here marked complete. Those that aren't to be finished on
 * another CPU are linked to @tail by rq_next.
 */
static unsigned int virtblk_collect(struct virtblk_vq *vq,
				    struct request ***tail)
{
	struct virtblk_req *vbr;
	unsigned int len, found = 0;

	while ((vbr = virtqueue_get_buf(vq->vq, &len))) {
		struct request *req = blk_mq_rq_from_pdu(vbr);

		found++;
		if (blk_mq_complete_request_remote(req))
			continue;
		req->rq_next = NULL;
		**tail = req;
		*tail = &req->rq_next;
	}
	return found;
}

/* Ends collected requests one by one, or leaves them in the caller's batch. */
static void virtblk_finish(struct request *req, struct io_comp_batch *iob)
{
	struct request *next;

	for (; req; req = next) {
		struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

		next = req->rq_next;
		if (!blk_mq_add_to_batch(req, iob,
					 virtblk_status(vbr) != VIRTIO_BLK_S_OK,
					 virtblk_complete_batch))
			virtblk_request_done(req);
	}
}

/* Ends what one virtqueue's interrupt has collected, as a batch. */
static void virtblk_finish_batch(struct virtblk_vq *vq, struct request *req)
{
	struct virtblk_chain chain = { };
	DEFINE_IO_COMP_BATCH(iob);
	struct request *next;

	for (; req; req = next) {
		struct virtblk_req *vbr = blk_mq_rq_to_pdu(req);

		next = req->rq_next;
		if (!blk_mq_add_to_batch(req, &iob,
					 virtblk_status(vbr) != VIRTIO_BLK_S_OK,
					 virtblk_complete_batch))
			virtblk_request_done(req);
		else if (blk_rq_is_passthrough(req))
			virtblk_uring_gather(req, &chain);
		else
			virtblk_settle(req, vbr);
	}
	if (!iob.complete)
		return;
	blk_mq_end_request_batch(&iob);
	virtblk_restart(vq->hctx);
	/* Last: who is woken may find the tags that were freed. */
	virtblk_uring_flush_irq(&chain);
}

static void virtblk_answered(struct virtblk_vq *vq)
{
	vq->answers++;
	/* In case the queue was stopped because the ring was full. */
	blk_mq_start_stopped_hw_queue(vq->hctx, true);
}

/**
 * virtblk_interrupt() - a virtqueue's interrupt
 * @vring:	which one
 */
void virtblk_interrupt(struct virtqueue *vring)
{
	struct virtblk *vblk = vring->vdev->priv;
	struct virtblk_vq *vq = &vblk->vqs[vring->index];
	struct request *done = NULL, **tail = &done;
	unsigned int found = 0;
	unsigned long flags;

	spin_lock_irqsave(&vq->lock, flags);
	if (likely(vq->vq)) {
		do {
			virtqueue_disable_cb(vq->vq);
			found += virtblk_collect(vq, &tail);
		} while (!virtqueue_enable_cb(vq->vq));
	}
	spin_unlock_irqrestore(&vq->lock, flags);

	if (done)
		virtblk_finish_batch(vq, done);
	if (found)
		virtblk_answered(vq);
}

/**
 * virtblk_reap() - finish what a virtqueue's device has answered, by polling
 * @vblk:	the disk
 * @qid:	which virtqueue
 * @iob:	batch of the caller's, or NULL
 *
 * Return: how many were found.
 */
int virtblk_reap(struct virtblk *vblk, unsigned int qid,
		 struct io_comp_batch *iob)
{
	struct virtblk_vq *vq = &vblk->vqs[qid];
	struct request *done = NULL, **tail = &done;
	unsigned int found = 0;
	unsigned long flags;

	spin_lock_irqsave(&vq->lock, flags);
	if (likely(vq->vq))
		found = virtblk_collect(vq, &tail);
	spin_unlock_irqrestore(&vq->lock, flags);

	if (!found)
		return 0;
	virtblk_finish(done, iob);
	virtblk_answered(vq);
	return found;
}

/**
 * virtblk_reap_polled() - reap all polled virtqueues
 * @vblk:	the disk
 *
 * For whoever waits for the queue to drain: nobody else may be polling.
 */
void virtblk_reap_polled(struct virtblk *vblk)
{
	int qid = vblk->num_vqs - vblk->io_queues[HCTX_TYPE_POLL];

	for (; qid < vblk->num_vqs; qid++)
		virtblk_reap(vblk, qid, NULL);
}

static int virtblk_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	return virtblk_reap(hctx->queue->queuedata, hctx->queue_num, iob);
}

/*
 * No command times out, as in-tree; but a polled one whose owner has stopped
 * polling is found here, so that it holds up a freeze no longer than this.
 */
static enum blk_eh_timer_return virtblk_timeout(struct request *req)
{
	if (req->mq_hctx->type == HCTX_TYPE_POLL)
		virtblk_reap(req->q->queuedata, req->mq_hctx->queue_num, NULL);
	if (!blk_mq_request_started(req) || blk_mq_request_completed(req))
		return BLK_EH_DONE;
	return BLK_EH_RESET_TIMER;
}

static void virtblk_map_queues(struct blk_mq_tag_set *set)
{
	struct virtblk *vblk = set->driver_data;
	unsigned int i, first = 0;

	for (i = 0; i < set->nr_maps; i++) {
		struct blk_mq_queue_map *map = &set->map[i];

		map->nr_queues = vblk->io_queues[i];
		map->queue_offset = first;
		first += map->nr_queues;
		if (!map->nr_queues)
			continue;
		/* Without an interrupt there is no affinity to follow. */
		if (i == HCTX_TYPE_POLL)
			blk_mq_map_queues(map);
		else
			compat_map_irq_queues(map, vblk->vdev);
	}
}

const struct blk_mq_ops virtblk_mq_ops = {
	.queue_rq	= virtblk_queue_rq,
	.queue_rqs	= virtblk_queue_rqs,
	.commit_rqs	= virtblk_commit_rqs,
	.complete	= virtblk_request_done,
	.init_request	= virtblk_init_request,
	.init_hctx	= virtblk_init_hctx,
	.map_queues	= virtblk_map_queues,
	.poll		= virtblk_poll,
	.timeout	= virtblk_timeout,
};

static bool virtblk_count_busy(struct request *req, void *data)
{
	if (!blk_mq_request_completed(req))
		*(bool *)data = true;
	return true;
}

/**
 * virtblk_busy() - is a request with the device?
 * @vblk:	the disk
 *
 * Return: true if one is that hasn't been completed.
 */
bool virtblk_busy(struct virtblk *vblk)
{
	bool busy = false;

	blk_mq_tagset_busy_iter(&vblk->tag_set, virtblk_count_busy, &busy);
	return busy;
}

/*
 * Takes back what the device, now reset, still held. Taking back unmaps: it has
 * to come before the request's pages are given up.
 */
static void virtblk_kill_requests(struct virtblk *vblk)
{
	struct virtqueue *vring;
	struct virtblk_req *vbr;

	virtio_device_for_each_vq(vblk->vdev, vring) {
		while ((vbr = virtqueue_detach_unused_buf(vring))) {
			vbr->killed = true;
			blk_mq_complete_request(blk_mq_rq_from_pdu(vbr));
		}
	}
}

/**
 * virtblk_kill() - reset the device and end every request it holds
 * @vblk:	the disk
 *
 * Only after the reset is it certain that the device writes into no buffer any
 * more. The virtqueues stay unused: what comes later fails in virtblk_add().
 */
void virtblk_kill(struct virtblk *vblk)
{
	struct request_queue *q = vblk->disk->queue;
	int i;

	blk_mq_quiesce_queue(q);
	for (i = 0; i < vblk->num_vqs; i++) {
		spin_lock_irq(&vblk->vqs[i].lock);
		vblk->vqs[i].vq = NULL;
		spin_unlock_irq(&vblk->vqs[i].lock);
	}
	virtio_reset_device(vblk->vdev);
	virtblk_kill_requests(vblk);
	blk_mq_tagset_wait_completed_request(&vblk->tag_set);
	blk_mq_unquiesce_queue(q);
	/* A stopped queue would wait for an answer that won't come. */
	blk_mq_start_stopped_hw_queues(q, true);
}

static size_t virtblk_page_part(const void *p, size_t left)
{
	return min_t(size_t, left, PAGE_SIZE - offset_in_page(p));
}

/**
 * virtblk_sg_count() - how many entries virtblk_sg_fill() needs
 * @buf:	from kmalloc or vmalloc
 * @len:	bytes
 *
 * Return: the number of pages that @buf touches.
 */
unsigned int virtblk_sg_count(const void *buf, size_t len)
{
	return DIV_ROUND_UP(offset_in_page(buf) + len, PAGE_SIZE);
}

/**
 * virtblk_sg_fill() - describe kernel memory, page by page
 * @sg:		virtblk_sg_count() entries
 * @buf:	from kmalloc or vmalloc
 * @len:	bytes, at least 1
 */
void virtblk_sg_fill(struct scatterlist *sg, void *buf, size_t len)
{
	size_t part;

	sg_init_table(sg, virtblk_sg_count(buf, len));
	for (; len; buf += part, len -= part, sg++) {
		part = virtblk_page_part(buf, len);
		sg_set_page(sg, is_vmalloc_addr(buf) ? vmalloc_to_page(buf) :
			    virt_to_page(buf), part, offset_in_page(buf));
	}
}

/**
 * virtblk_execute() - one of the driver's own commands, synchronously
 * @vblk:	the disk; the caller keeps the device from going away or bears
 *		-ENODEV
 * @type:	a command that reads from the device
 * @sector:	512-byte units
 * @sg:		where the answer goes; stays the caller's
 * @nr:		its segments
 *
 * Return: 0, -EIO, -EOPNOTSUPP, or -ENODEV.
 */
int virtblk_execute(struct virtblk *vblk, u32 type, u64 sector,
		    struct scatterlist *sg, unsigned int nr)
{
	struct request *req;
	struct virtblk_req *vbr;
	blk_status_t status;

	req = blk_mq_alloc_request(vblk->disk->queue, REQ_OP_DRV_IN, 0);
	if (IS_ERR(req))
		return PTR_ERR(req);

	virtblk_prep_drv(vblk, req, type, sector, 0);
	vbr = blk_mq_rq_to_pdu(req);
	vbr->data = sg;
	vbr->nr_data = nr;
	vbr->to_device = false;

	status = blk_execute_rq(req, false);
	if (!status)
		status = virtblk_result(vbr);
	blk_mq_free_request(req);
	return blk_status_to_errno(status);
}
