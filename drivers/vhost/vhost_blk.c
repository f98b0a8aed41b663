// SPDX-License-Identifier: GPL-2.0-only
/*
 * vhost-blk: serves virtio-blk queues from an O_DIRECT file or block device.
 *
 * What happens to a request:
 *
 *	1 take		a chain from the ring, by vhost_get_vq_desc()
 *	2 parse		header and status byte; what makes no request breaks the queue
 *	3 submit	IN and OUT by an asynchronous kiocb; what may sleep long
 *			(FLUSH, DISCARD, WRITE_ZEROES) by the workqueue
 *	4 end		in any context: onto the queue's list, wake the worker
 *	5 answer	status byte, used ring, interrupt
 *
 * 1 to 3 and 5 run in the queue's vhost worker, which has the owner's memory,
 * under vq->mutex. A running queue has the device as its vhost backend. To
 * drain is to take that away, wait until nothing is in flight, let the workers
 * answer, and give it back: the file, and what belongs to the requests, change
 * only in between.
 *
 * The ring is the guest's: each descriptor and the header are read once, a head
 * in flight isn't taken again (which bounds what is in flight), and a request
 * must lie on the disk, so that a guest can't make the file longer.
 *
 * Locks: vblk->lock, then dev.mutex, then vq->mutex.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/virtio_blk.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <uapi/linux/vhost_blk.h>

#include "vhost.h"
#include "layout.h"

/* Requests a queue may start before others on its worker get their turn */
#define VBLK_WEIGHT	256

/*
 * Not offered: the dirty log (so no live migration), CONFIG_WCE (the cache is
 * always what FLUSH makes of it), the packed ring, zones.
 */
#define VBLK_FEATURES						\
	((VHOST_FEATURES & ~BIT_ULL(VHOST_F_LOG_ALL)) |		\
	 BIT_ULL(VIRTIO_BLK_F_SIZE_MAX) |			\
	 BIT_ULL(VIRTIO_BLK_F_SEG_MAX) |			\
	 BIT_ULL(VIRTIO_BLK_F_GEOMETRY) |			\
	 BIT_ULL(VIRTIO_BLK_F_RO) |				\
	 BIT_ULL(VIRTIO_BLK_F_BLK_SIZE) |			\
	 BIT_ULL(VIRTIO_BLK_F_FLUSH) |				\
	 BIT_ULL(VIRTIO_BLK_F_TOPOLOGY) |			\
	 BIT_ULL(VIRTIO_BLK_F_MQ) |				\
	 BIT_ULL(VIRTIO_BLK_F_DISCARD) |			\
	 BIT_ULL(VIRTIO_BLK_F_WRITE_ZEROES))

struct vblk_queue;

struct vblk_req {
	union {
		struct kiocb iocb;		/* IN, OUT */
		struct work_struct work;	/* the others */
	};
	struct vblk_queue *q;
	struct llist_node done;
	u8 __user *status;
	struct virtio_blk_discard_write_zeroes *ranges;
	unsigned int nr_ranges;
	u32 type;
	size_t len;			/* bytes of data */
	u32 written;			/* if all goes well */
	int result;			/* 0 or -errno */
	u16 head;
	bool busy;
};

struct vblk_queue {
	struct vhost_virtqueue vq;
	struct vblk *vblk;
	struct vblk_req *reqs;		/* by head; there while the queue runs */
	bool broken;
	struct vhost_work answer;
	struct llist_head done;
	atomic_t busy;			/* requests between 3 and 4 */
};

struct vblk {
	struct mutex lock;		/* one command at a time */
	struct vhost_dev dev;
	struct vhost_virtqueue **vqs;
	struct workqueue_struct *wq;	/* its own: another guest's flush may take long */
	struct file *file;		/* NULL: stopped */
	int ki_flags;
	u8 serial[VHOST_BLK_SERIAL_BYTES];
};

static struct vblk_queue *vblk_queue(struct vhost_virtqueue *vq)
{
	return container_of(vq, struct vblk_queue, vq);
}

#define for_each_queue(vblk, i, q)						\
	for ((i) = 0; (i) < (vblk)->dev.nvqs &&				\
	     ((q) = vblk_queue((vblk)->vqs[i])); (i)++)

/* ---- 4 end, 5 answer ---- */

/* In any context, also below the backend's interrupt. r is the worker's after it. */
static void vblk_end(struct vblk_req *r, int result)
{
	struct vblk_queue *q = r->q;

	r->result = result;
	llist_add(&r->done, &q->done);
	/* No worker is left when the owner was killed: vblk_drain() cleans up. */
	vhost_vq_work_queue(&q->vq, &q->answer);
	/* q may be gone as soon as busy is 0; the variable's address is all that's used. */
	if (atomic_dec_and_test(&q->busy))
		wake_up_var(&q->busy);
}

static u8 vblk_status(int result)
{
	switch (result) {
	case 0:
		return VIRTIO_BLK_S_OK;
	case -EOPNOTSUPP:
		return VIRTIO_BLK_S_UNSUPP;
	default:
		return VIRTIO_BLK_S_IOERR;
	}
}

/*
 * The used length counts bytes from the front. Of a read that failed nobody
 * knows which were written, but for the status byte, which comes last.
 */
static u32 vblk_used_len(const struct vblk_req *r)
{
	return r->result && r->written > 1 ? 0 : r->written;
}

static void vblk_add_used(struct vblk_queue *q, unsigned int n)
{
	/* No used ring, no answers: vhost has told it. */
	if (n && vhost_add_used_n(&q->vq, q->vq.heads, n))
		q->broken = true;
}

static void vblk_answer(struct vhost_work *work)
{
	struct vblk_queue *q = container_of(work, struct vblk_queue, answer);
	struct vhost_virtqueue *vq = &q->vq;
	struct vblk_req *r, *next;
	struct llist_node *list;
	unsigned int n = 0;

	mutex_lock(&vq->mutex);
	list = llist_reverse_order(llist_del_all(&q->done));
	llist_for_each_entry_safe(r, next, list, done) {
		if (put_user(vblk_status(r->result), r->status))
			vq_err(vq, "head %u: no memory at its status byte\n", r->head);
		vq->heads[n].id = cpu_to_vhost32(vq, r->head);
		vq->heads[n].len = cpu_to_vhost32(vq, vblk_used_len(r));
		r->busy = false;
		if (++n == vq->dev->iov_limit) {
			vblk_add_used(q, n);
			n = 0;
		}
	}
	if (list) {
		vblk_add_used(q, n);
		vhost_signal(vq->dev, vq);
	}
	mutex_unlock(&vq->mutex);
}

/* ---- 3 submit ---- */

static bool vblk_on_disk(const struct file *file, u64 sector, u64 nr)
{
	/* The size of this moment: a file that grew can be used at once. */
	u64 size = i_size_read(file->f_mapping->host) >> SECTOR_SHIFT;

	return sector <= size && nr <= size - sector;
}

static bool vblk_may_write(const struct vblk_queue *q)
{
	return q->vblk->file->f_mode & FMODE_WRITE &&
	       !(q->vq.acked_features & BIT_ULL(VIRTIO_BLK_F_RO));
}

static void vblk_rw_done(struct kiocb *iocb, long ret)
{
	struct vblk_req *r = container_of(iocb, struct vblk_req, iocb);

	if (iocb->ki_flags & IOCB_WRITE)
		kiocb_end_write(iocb);
	vblk_end(r, ret == r->len ? 0 : ret < 0 ? ret : -EIO);
}

static void vblk_rw(struct vblk_req *r, u64 sector, struct iov_iter *data)
{
	struct vblk_queue *q = r->q;
	struct file *file = q->vblk->file;
	ssize_t ret = -EIO;

	r->len = iov_iter_count(data);
	if (!r->len || r->len % SECTOR_SIZE || r->len > MAX_RW_COUNT ||
	    !vblk_on_disk(file, sector, r->len >> SECTOR_SHIFT)) {
		vblk_end(r, ret);
		return;
	}

	init_sync_kiocb(&r->iocb, file);
	r->iocb.ki_flags = q->vblk->ki_flags;
	r->iocb.ki_pos = sector << SECTOR_SHIFT;
	r->iocb.ki_complete = vblk_rw_done;
	if (r->type == VIRTIO_BLK_T_IN) {
		ret = vfs_iocb_iter_read(file, &r->iocb, data);
	} else if (vblk_may_write(q)) {
		/* Without FLUSH the guest relies on a write being durable. */
		if (!vhost_has_feature(&q->vq, VIRTIO_BLK_F_FLUSH))
			r->iocb.ki_flags |= IOCB_DSYNC;
		r->iocb.ki_flags |= IOCB_WRITE;
		ret = vfs_iocb_iter_write(file, &r->iocb, data);
	}
	if (ret != -EIOCBQUEUED)
		vblk_end(r, ret == r->len ? 0 : ret < 0 ? ret : -EIO);
}

/* blkdev_issue_discard() itself checks nothing. */
static int vblk_discard_bdev(struct block_device *bdev, u64 sector, u32 nr)
{
	if (!bdev_max_discard_sectors(bdev))
		return -EOPNOTSUPP;
	if (bdev_read_only(bdev))
		return -EPERM;
	if ((sector | nr) & ((bdev_logical_block_size(bdev) >> SECTOR_SHIFT) - 1))
		return -EINVAL;
	return blkdev_issue_discard(bdev, sector, nr, GFP_KERNEL);
}

static int vblk_range(struct vblk_req *r, u64 sector, u32 nr, u32 flags)
{
	struct file *file = r->q->vblk->file;
	loff_t pos = sector << SECTOR_SHIFT;
	loff_t len = (u64)nr << SECTOR_SHIFT;

	if (r->type == VIRTIO_BLK_T_DISCARD && S_ISBLK(file->f_mapping->host->i_mode))
		return vblk_discard_bdev(I_BDEV(file->f_mapping->host), sector, nr);
	if (r->type == VIRTIO_BLK_T_DISCARD || flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP) {
		int ret = vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, len);

		/* To unmap is a permission; zeroes are the order. */
		if (ret != -EOPNOTSUPP || r->type == VIRTIO_BLK_T_DISCARD)
			return ret;
	}
	return vfs_fallocate(file, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, pos, len);
}

/* All ranges are looked at before the first is touched */
static int vblk_check_ranges(const struct vblk_req *r)
{
	u32 known = r->type == VIRTIO_BLK_T_DISCARD ? 0 : VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	unsigned int i;

	for (i = 0; i < r->nr_ranges; i++) {
		if (le32_to_cpu(r->ranges[i].flags) & ~known)
			return -EOPNOTSUPP;
		if (!r->ranges[i].num_sectors ||
		    !vblk_on_disk(r->q->vblk->file, le64_to_cpu(r->ranges[i].sector),
				  le32_to_cpu(r->ranges[i].num_sectors)))
			return -EIO;
	}
	return 0;
}

static void vblk_work(struct work_struct *work)
{
	struct vblk_req *r = container_of(work, struct vblk_req, work);
	struct file *file = r->q->vblk->file;
	unsigned int i;
	int ret;

	if (r->type == VIRTIO_BLK_T_FLUSH) {
		ret = vfs_fsync(file, 1);
	} else {
		ret = vblk_check_ranges(r);
		for (i = 0; !ret && i < r->nr_ranges; i++)
			ret = vblk_range(r, le64_to_cpu(r->ranges[i].sector),
					 le32_to_cpu(r->ranges[i].num_sectors),
					 le32_to_cpu(r->ranges[i].flags));
		/* as in vblk_rw() */
		if (!ret && !vhost_has_feature(&r->q->vq, VIRTIO_BLK_F_FLUSH))
			ret = vfs_fsync(file, 1);
		kfree(r->ranges);
		r->ranges = NULL;
	}
	vblk_end(r, ret);
}

static void vblk_queue_work(struct vblk_req *r)
{
	INIT_WORK(&r->work, vblk_work);
	queue_work(r->q->vblk->wq, &r->work);
}

/* The workqueue has no guest memory: it gets a copy of the ranges. */
static void vblk_ranges(struct vblk_req *r, int feature, struct iov_iter *data)
{
	size_t len = iov_iter_count(data);
	int ret = -EIO;

	if (!vhost_has_feature(&r->q->vq, feature)) {
		ret = -EOPNOTSUPP;
		goto end;
	}
	if (!vblk_may_write(r->q) || !len || len % sizeof(*r->ranges) ||
	    len / sizeof(*r->ranges) > VHOST_BLK_MAX_RANGES)
		goto end;
	r->nr_ranges = len / sizeof(*r->ranges);
	r->ranges = kmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!r->ranges)
		goto end;
	if (!copy_from_iter_full(r->ranges, len, data)) {
		kfree(r->ranges);
		r->ranges = NULL;
		goto end;
	}
	vblk_queue_work(r);
	return;
end:
	vblk_end(r, ret);
}

static void vblk_get_id(struct vblk_req *r, struct iov_iter *data)
{
	const struct vblk *vblk = r->q->vblk;
	size_t len = min(iov_iter_count(data), sizeof(vblk->serial));

	/* the status byte follows at once if there is room for no more */
	r->written = len == iov_iter_count(data) ? len + 1 : len;
	vblk_end(r, len && copy_to_iter(vblk->serial, len, data) == len ? 0 : -EIO);
}

static void vblk_submit(struct vblk_req *r, u64 sector, struct iov_iter *out, struct iov_iter *in)
{
	switch (r->type) {
	case VIRTIO_BLK_T_IN:
		vblk_rw(r, sector, in);
		break;
	case VIRTIO_BLK_T_OUT:
		vblk_rw(r, sector, out);
		break;
	case VIRTIO_BLK_T_FLUSH:
		vblk_queue_work(r);
		break;
	case VIRTIO_BLK_T_GET_ID:
		vblk_get_id(r, in);
		break;
	case VIRTIO_BLK_T_DISCARD:
		vblk_ranges(r, VIRTIO_BLK_F_DISCARD, out);
		break;
	case VIRTIO_BLK_T_WRITE_ZEROES:
		vblk_ranges(r, VIRTIO_BLK_F_WRITE_ZEROES, out);
		break;
	default:
		vblk_end(r, -EOPNOTSUPP);
	}
}

/* ---- 1 take, 2 parse ---- */

/* Returns false if the chain is none that can be answered. */
static bool vblk_parse(struct vblk_queue *q, u16 head, unsigned int nr_out, unsigned int nr_in)
{
	struct vhost_virtqueue *vq = &q->vq;
	size_t out_len = iov_length(vq->iov, nr_out);
	size_t in_len = iov_length(vq->iov + nr_out, nr_in);
	struct vblk_req *r = &q->reqs[head];
	struct virtio_blk_outhdr hdr;
	struct iov_iter out, in;
	struct iovec *last;

	if (r->busy || !in_len)
		return false;
	last = &vq->iov[nr_out + nr_in - 1];
	r->busy = true;
	r->q = q;
	r->head = head;
	r->status = (u8 __user *)last->iov_base + last->iov_len - 1;
	atomic_inc(&q->busy);

	iov_iter_init(&out, ITER_SOURCE, vq->iov, nr_out, out_len);
	iov_iter_init(&in, ITER_DEST, vq->iov + nr_out, nr_in, in_len - 1);
	r->written = in_len == 1;
	if (!copy_from_iter_full(&hdr, sizeof(hdr), &out)) {
		vblk_end(r, -EIO);
		return true;
	}
	r->type = vhost32_to_cpu(vq, hdr.type);
	if (r->type == VIRTIO_BLK_T_IN && in_len <= U32_MAX)
		r->written = in_len;
	vblk_submit(r, vhost64_to_cpu(vq, hdr.sector), &out, &in);
	return true;
}

/* The guest broke the rules: nothing can be told it in the ring any more. */
static void vblk_broken(struct vblk_queue *q)
{
	struct vhost_virtqueue *vq = &q->vq;

	q->broken = true;
	vq_err(vq, "broken ring at avail index %u\n", vq->last_avail_idx);
}

static void vblk_take_all(struct vblk_queue *q)
{
	struct vhost_virtqueue *vq = &q->vq;
	unsigned int out, in;
	int head, n = 0;

	vhost_disable_notify(vq->dev, vq);
	do {
		head = vhost_get_vq_desc(vq, vq->iov, ARRAY_SIZE(vq->iov), &out, &in, NULL, NULL);
		if (head == vq->num) {
			if (!vhost_enable_notify(vq->dev, vq))
				return;
			/* one came in between */
			vhost_disable_notify(vq->dev, vq);
			continue;
		}
		if (head < 0 || !vblk_parse(q, head, out, in)) {
			vblk_broken(q);
			return;
		}
	} while (!vhost_exceeds_weight(vq, ++n, 0));
}

static void vblk_kick(struct vhost_work *work)
{
	struct vhost_poll *poll = container_of(work, struct vhost_poll, work);
	struct vblk_queue *q = vblk_queue(poll->vq);
	struct blk_plug plug;

	mutex_lock(&q->vq.mutex);
	if (vhost_vq_get_backend(&q->vq) && !q->broken) {
		blk_start_plug(&plug);
		vblk_take_all(q);
		blk_finish_plug(&plug);
	}
	mutex_unlock(&q->vq.mutex);
}

/* ---- start, drain, stop ---- */

static void vblk_set_vq_backend(struct vblk_queue *q, struct vblk *vblk)
{
	mutex_lock(&q->vq.mutex);
	vhost_vq_set_backend(&q->vq, vblk);
	mutex_unlock(&q->vq.mutex);
}

/* Answers that no worker came for: the owner was killed */
static void vblk_forget_answers(struct vblk_queue *q)
{
	struct vblk_req *r, *next;

	mutex_lock(&q->vq.mutex);
	llist_for_each_entry_safe(r, next, llist_del_all(&q->done), done)
		r->busy = false;
	mutex_unlock(&q->vq.mutex);
}

/* Comes back when nothing is in flight and nothing more is taken. */
static void vblk_drain(struct vblk *vblk)
{
	struct vblk_queue *q;
	int i;

	for_each_queue(vblk, i, q)
		vblk_set_vq_backend(q, NULL);
	for_each_queue(vblk, i, q)
		wait_var_event(&q->busy, !atomic_read(&q->busy));
	vhost_dev_flush(&vblk->dev);
	for_each_queue(vblk, i, q)
		vblk_forget_answers(q);
}

/* After a drain. Whatever was put into the rings meanwhile is looked for. */
static void vblk_resume(struct vblk *vblk)
{
	struct vblk_queue *q;
	int i;

	for_each_queue(vblk, i, q) {
		if (!q->reqs)
			continue;
		vblk_set_vq_backend(q, vblk);
		vhost_poll_queue(&q->vq.poll);
	}
}

static void vblk_stop(struct vblk *vblk)
{
	struct vblk_queue *q;
	int i;

	if (!vblk->file)
		return;
	vblk_drain(vblk);
	for_each_queue(vblk, i, q) {
		kvfree(q->reqs);
		q->reqs = NULL;
	}
	fput(vblk->file);
	vblk->file = NULL;
}

static int vblk_start_queue(struct vblk_queue *q)
{
	struct vhost_virtqueue *vq = &q->vq;
	int ret = -EFAULT;

	mutex_lock(&vq->mutex);
	if (!vhost_vq_access_ok(vq))
		goto out;
	ret = -ENOMEM;
	q->reqs = kvcalloc(vq->num, sizeof(*q->reqs), GFP_KERNEL_ACCOUNT);
	if (!q->reqs)
		goto out;
	q->broken = false;
	vhost_vq_set_backend(vq, q->vblk);
	ret = vhost_vq_init_access(vq);
out:
	mutex_unlock(&vq->mutex);
	/* A kick from before this moment was for nobody. */
	if (!ret)
		vhost_poll_queue(&vq->poll);
	return ret;
}

static int vblk_start(struct vblk *vblk)
{
	struct vblk_queue *q;
	int i, ret = -EINVAL;

	for_each_queue(vblk, i, q) {
		if (!q->vq.desc && !q->vq.avail && !q->vq.used)
			continue;
		ret = vblk_start_queue(q);
		if (ret)
			break;
	}
	if (ret)
		vblk_stop(vblk);
	return ret;
}

/* ---- commands ---- */

static struct file *vblk_get_file(int fd)
{
	struct file *file = fget(fd);
	umode_t mode;

	if (!file)
		return ERR_PTR(-EBADF);
	mode = file->f_mapping->host->i_mode;
	if ((S_ISREG(mode) || S_ISBLK(mode)) && file->f_mode & FMODE_READ &&
	    file->f_flags & O_DIRECT && !(file->f_flags & O_APPEND))
		return file;
	fput(file);
	return ERR_PTR(-EINVAL);
}

static int vblk_set_backend(struct vblk *vblk, void __user *argp)
{
	struct vhost_blk_backend b;
	struct file *file, *old;

	if (copy_from_user(&b, argp, sizeof(b)))
		return -EFAULT;
	if (b.flags || b.reserved)
		return -EINVAL;
	if (b.fd == VHOST_FILE_UNBIND) {
		vblk_stop(vblk);
		return 0;
	}
	file = vblk_get_file(b.fd);
	if (IS_ERR(file))
		return PTR_ERR(file);

	old = vblk->file;
	if (old)
		vblk_drain(vblk);
	vblk->file = file;
	vblk->ki_flags = file->f_iocb_flags | IOCB_DIRECT;
	memcpy(vblk->serial, b.serial, sizeof(vblk->serial));
	if (!old)
		return vblk_start(vblk);
	vblk_resume(vblk);
	fput(old);
	return 0;
}

static int vblk_set_features(struct vblk *vblk, u64 __user *argp)
{
	struct vblk_queue *q;
	u64 features;
	int i;

	if (copy_from_user(&features, argp, sizeof(features)))
		return -EFAULT;
	if (features & ~VBLK_FEATURES)
		return -EOPNOTSUPP;
	if (vblk->file)
		return -EBUSY;
	for_each_queue(vblk, i, q) {
		mutex_lock(&q->vq.mutex);
		q->vq.acked_features = features;
		mutex_unlock(&q->vq.mutex);
	}
	return 0;
}

static int vblk_reset_owner(struct vblk *vblk)
{
	struct vhost_iotlb *umem = vhost_dev_reset_owner_prepare();

	if (!umem)
		return -ENOMEM;
	vblk_stop(vblk);
	vhost_dev_stop(&vblk->dev);
	vhost_dev_reset_owner(&vblk->dev, umem);
	return 0;
}

/* Requests in flight still mean the old table: they end before it is let go. */
static long vblk_set_mem_table(struct vblk *vblk, unsigned int cmd, void __user *argp)
{
	long ret = vhost_dev_ioctl(&vblk->dev, cmd, argp);

	if (!ret && vblk->file) {
		vblk_drain(vblk);
		vblk_resume(vblk);
	}
	return ret;
}

/* Commands of ours, and of vhost's where we have to do with them; owner's only */
static long vblk_owner_ioctl(struct vblk *vblk, unsigned int cmd, void __user *argp)
{
	long ret = vhost_dev_check_owner(&vblk->dev);

	if (ret)
		return ret;
	switch (cmd) {
	case VHOST_BLK_SET_BACKEND:
		return vblk_set_backend(vblk, argp);
	case VHOST_SET_FEATURES:
		return vblk_set_features(vblk, argp);
	case VHOST_SET_MEM_TABLE:
		return vblk_set_mem_table(vblk, cmd, argp);
	default:
		return vblk_reset_owner(vblk);
	}
}

static void vblk_free_queues(struct vhost_virtqueue **vqs, unsigned int nr)
{
	while (nr--)
		kvfree(vblk_queue(vqs[nr]));
	kvfree(vqs);
}

static struct vhost_virtqueue **vblk_alloc_queues(struct vblk *vblk, unsigned int nr)
{
	struct vhost_virtqueue **vqs;
	struct vblk_queue *q;
	unsigned int i;

	vqs = kvcalloc(nr, sizeof(*vqs), GFP_KERNEL_ACCOUNT);
	if (!vqs)
		return NULL;
	for (i = 0; i < nr; i++) {
		q = kvzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
		if (!q) {
			vblk_free_queues(vqs, i);
			return NULL;
		}
		q->vblk = vblk;
		q->vq.handle_kick = vblk_kick;
		vhost_work_init(&q->answer, vblk_answer);
		init_llist_head(&q->done);
		vqs[i] = &q->vq;
	}
	return vqs;
}

/* The vhost device is made anew: nobody can have it in use without an owner. */
static int vblk_init_queues(struct vblk *vblk, unsigned int nr)
{
	struct vhost_virtqueue **vqs = vblk_alloc_queues(vblk, nr);

	if (!vqs)
		return -ENOMEM;
	if (vblk->vqs) {
		/* an owner of before may have left a memory table */
		vhost_dev_cleanup(&vblk->dev);
		vblk_free_queues(vblk->vqs, vblk->dev.nvqs);
	}
	vblk->vqs = vqs;
	vhost_dev_init(&vblk->dev, vqs, nr, UIO_MAXIOV, VBLK_WEIGHT, 0, true, NULL);
	return 0;
}

static long vblk_set_queues(struct vblk *vblk, u32 __user *argp)
{
	u32 nr;

	if (get_user(nr, argp))
		return -EFAULT;
	if (!nr || nr > VHOST_BLK_MAX_QUEUES)
		return -EINVAL;
	if (vhost_dev_has_owner(&vblk->dev))
		return -EBUSY;
	return vblk_init_queues(vblk, nr);
}

static long vblk_vhost_ioctl(struct vblk *vblk, unsigned int cmd, void __user *argp)
{
	const u64 features = VBLK_FEATURES;
	long ret;

	switch (cmd) {
	case VHOST_GET_FEATURES:
		return copy_to_user(argp, &features, sizeof(features)) ? -EFAULT : 0;
	case VHOST_BLK_SET_BACKEND:
	case VHOST_SET_FEATURES:
	case VHOST_SET_MEM_TABLE:
	case VHOST_RESET_OWNER:
		return vblk_owner_ioctl(vblk, cmd, argp);
	case VHOST_SET_LOG_BASE:	/* no dirty log */
	case VHOST_SET_LOG_FD:
		return -EOPNOTSUPP;
	case VHOST_NEW_WORKER:
	case VHOST_FREE_WORKER:
	case VHOST_ATTACH_VRING_WORKER:
	case VHOST_GET_VRING_WORKER:
		return vhost_worker_ioctl(&vblk->dev, cmd, argp);
	}
	ret = vhost_dev_ioctl(&vblk->dev, cmd, argp);
	if (ret == -ENOIOCTLCMD)
		ret = vhost_vring_ioctl(&vblk->dev, cmd, argp);
	return ret;
}

static long vblk_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	struct vblk *vblk = f->private_data;
	long ret;

	mutex_lock(&vblk->lock);
	if (cmd == VHOST_BLK_SET_QUEUES) {
		ret = vblk_set_queues(vblk, (u32 __user *)arg);
	} else {
		mutex_lock(&vblk->dev.mutex);
		ret = vblk_vhost_ioctl(vblk, cmd, (void __user *)arg);
		mutex_unlock(&vblk->dev.mutex);
	}
	mutex_unlock(&vblk->lock);
	return ret;
}

static int vblk_open(struct inode *inode, struct file *f)
{
	struct vblk *vblk = kzalloc(sizeof(*vblk), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!vblk)
		return -ENOMEM;
	mutex_init(&vblk->lock);
	ret = -ENOMEM;
	/* Not for reclaim: file systems below wait for workqueues that are not either. */
	vblk->wq = alloc_workqueue("vhost_blk", WQ_UNBOUND, 0);
	if (!vblk->wq)
		goto free;
	ret = vblk_init_queues(vblk, 1);
	if (ret)
		goto free_wq;
	f->private_data = vblk;
	return 0;

free_wq:
	destroy_workqueue(vblk->wq);
free:
	kfree(vblk);
	return ret;
}

static int vblk_release(struct inode *inode, struct file *f)
{
	struct vblk *vblk = f->private_data;

	vblk_stop(vblk);
	vhost_dev_stop(&vblk->dev);
	vhost_dev_cleanup(&vblk->dev);
	/* The last of the work may be at its last steps still. */
	destroy_workqueue(vblk->wq);
	vblk_free_queues(vblk->vqs, vblk->dev.nvqs);
	kfree(vblk);
	return 0;
}

static const struct file_operations vblk_fops = {
	.owner = THIS_MODULE,
	.open = vblk_open,
	.release = vblk_release,
	.unlocked_ioctl = vblk_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice vblk_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vhost-blk",
	.fops = &vblk_fops,
};

module_misc_device(vblk_misc);

MODULE_DESCRIPTION("vhost-blk: virtio-blk served by the host's kernel");
MODULE_LICENSE("GPL");
MODULE_VERSION(VHOST_BLK_VERSION);
