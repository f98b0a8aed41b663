/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmd_type=vblk: an io_u becomes a virtio-blk command, a CQE becomes an error
 * or none
 */
#include "vblk.h"
#include "../zbd.h"

#include <linux/virtio_blk.h>

/* The range list of a trim must stay in place until the command is sent. */
struct vblk_slot {
	uint64_t status;		/* the device's answer, 0 if none */
	bool cut;			/* something would be cut off */
	struct virtio_blk_discard_write_zeroes range[];
};

struct vblk_thread {
	struct vblk_job job;
	size_t slot_size;
	char *slots;
};

static struct vblk_slot *vblk_slot(struct vblk_thread *vt, struct io_u *io_u)
{
	return (struct vblk_slot *)(vt->slots + io_u->index * vt->slot_size);
}

struct vblk_thread *fio_vblk_init(struct thread_data *td,
				  const struct vblk_job *job)
{
	struct vblk_thread *vt = calloc(1, sizeof(*vt));

	if (!vt)
		return NULL;
	vt->job = *job;
	/* to fio num_range=0 is one range, as is 1 */
	vt->slot_size = sizeof(struct vblk_slot) + (job->nr_ranges ?: 1) *
		sizeof(struct virtio_blk_discard_write_zeroes);
	vt->slots = calloc(td->o.iodepth, vt->slot_size);
	if (!vt->slots) {
		free(vt);
		return NULL;
	}
	return vt;
}

void fio_vblk_cleanup(struct vblk_thread *vt)
{
	if (vt)
		free(vt->slots);
	free(vt);
}

/*
 * rw=write:N, zoneskip= and iologs lead to any byte. Commands count in sectors:
 * what that would cut off, fio_vblk_queue_sync() refuses.
 */
static uint64_t vblk_sector(struct vblk_slot *slot, struct io_u *io_u,
			    uint64_t offset, uint64_t bytes)
{
	const struct vblk_data *data = FILE_ENG_DATA(io_u->file);

	if ((offset | bytes) % data->info.logical_block_size)
		slot->cut = true;
	return offset >> 9;
}

static void vblk_range(struct vblk_slot *slot, unsigned int nr,
		       struct io_u *io_u, uint64_t offset, uint64_t bytes,
		       bool unmap)
{
	struct virtio_blk_discard_write_zeroes *range = &slot->range[nr];
	uint32_t flags = unmap ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0;
	uint32_t sectors = bytes >> 9;

	range->sector = cpu_to_le64(vblk_sector(slot, io_u, offset, bytes));
	range->num_sectors = cpu_to_le32(sectors);
	range->flags = cpu_to_le32(flags);
}

/* fio puts the ranges of a multi-range trim into the data buffer. */
static unsigned int vblk_trim_ranges(struct vblk_thread *vt, struct io_u *io_u)
{
	struct vblk_slot *slot = vblk_slot(vt, io_u);
#if FIO_IOOPS_VERSION >= 36	/* fio 3.38 and newer */
	if (vt->job.nr_ranges > 1) {
		const struct trim_range *tr = io_u->xfer_buf;
		unsigned int i;

		for (i = 0; i < io_u->number_trim; i++)
			vblk_range(slot, i, io_u, tr[i].start, tr[i].len,
				   false);
		return io_u->number_trim;
	}
#endif
	vblk_range(slot, 0, io_u, io_u->offset, io_u->xfer_buflen, false);
	return 1;
}

static void vblk_cmd_ranges(struct virtblk_uring_cmd *cmd,
			    struct vblk_slot *slot, unsigned int nr)
{
	cmd->data = (uintptr_t)slot->range;
	cmd->data_len = nr * sizeof(slot->range[0]);
}

static void vblk_cmd_data(struct vblk_thread *vt, struct io_uring_sqe *sqe,
			  struct io_u *io_u, struct iovec *iov)
{
	struct virtblk_uring_cmd *cmd = (struct virtblk_uring_cmd *)sqe->cmd;

	cmd->sector = vblk_sector(vblk_slot(vt, io_u), io_u, io_u->offset,
				  io_u->xfer_buflen);
	if (iov) {
		iov->iov_base = io_u->xfer_buf;
		iov->iov_len = io_u->xfer_buflen;
		sqe->cmd_op = VIRTBLK_URING_CMD_IO_VEC;
		cmd->data = (uintptr_t)iov;
		cmd->data_len = 1;
	} else {
		cmd->data = (uintptr_t)io_u->xfer_buf;
		cmd->data_len = io_u->xfer_buflen;
	}
	if (vt->job.fixedbufs) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = io_u->index;
	}
}

/*
 * Fills all of the SQE except fd, flags and user_data, which are the same for
 * every command type. @iov is NULL for non-vectored I/O.
 */
int fio_vblk_prep(struct vblk_thread *vt, struct io_uring_sqe *sqe,
		  struct thread_data *td, struct io_u *io_u, struct iovec *iov)
{
	struct virtblk_uring_cmd *cmd = (struct virtblk_uring_cmd *)sqe->cmd;
	struct vblk_slot *slot = vblk_slot(vt, io_u);

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->cmd_op = VIRTBLK_URING_CMD_IO;
	sqe->uring_cmd_flags = 0;
	sqe->buf_index = 0;
	memset(cmd, 0, sizeof(*cmd));
	cmd->ioprio = td->ioprio;
	slot->status = 0;
	slot->cut = false;

	switch (io_u->ddir) {
	case DDIR_READ:
		cmd->type = VIRTIO_BLK_T_IN;
		vblk_cmd_data(vt, sqe, io_u, iov);
		return 0;
	case DDIR_WRITE:
		if (!vt->job.write_zeroes) {
			cmd->type = VIRTIO_BLK_T_OUT;
			vblk_cmd_data(vt, sqe, io_u, iov);
			return 0;
		}
		cmd->type = VIRTIO_BLK_T_WRITE_ZEROES;
		vblk_range(slot, 0, io_u, io_u->offset, io_u->xfer_buflen,
			   vt->job.unmap);
		vblk_cmd_ranges(cmd, slot, 1);
		return 0;
	case DDIR_TRIM:
		cmd->type = VIRTIO_BLK_T_DISCARD;
		vblk_cmd_ranges(cmd, slot, vblk_trim_ranges(vt, io_u));
		return 0;
	case DDIR_SYNC:
	case DDIR_DATASYNC:
		cmd->type = VIRTIO_BLK_T_FLUSH;
		return 0;
	default:
		/* for fio itself the job would be at its end, without error */
		log_err("fio: vblk: %s: no virtio-blk command does %s\n",
			io_u->file->file_name, io_ddir_name(io_u->ddir));
		td_verror(td, ENOTSUP, "cmd_type=vblk");
		return -ENOTSUP;
	}
}

void fio_vblk_set_ioprio(struct io_uring_sqe *sqe, unsigned int ioprio)
{
	((struct virtblk_uring_cmd *)sqe->cmd)->ioprio = ioprio;
}

/*
 * Three kinds of io_u never reach the ring: what isn't whole blocks; a trim of
 * a zone, which means to reset it; and the sync that fio does by itself before
 * it verifies, on a disk without a write cache. (fsync= and its like are
 * refused on such a disk.) Returns whether @io_u is complete.
 */
bool fio_vblk_queue_sync(struct vblk_thread *vt, struct thread_data *td,
			 struct io_u *io_u)
{
	struct vblk_data *data = FILE_ENG_DATA(io_u->file);
	int ret;

	if (ddir_sync(io_u->ddir) &&
	    !vblk_accepts(&data->info, VIRTIO_BLK_T_FLUSH)) {
		fio_gettime(&io_u->issue_time, NULL);
		return true;
	}
	if (vblk_slot(vt, io_u)->cut) {
		fio_gettime(&io_u->issue_time, NULL);
		io_u->error = EINVAL;
		fio_vblk_log_error(vt, td, io_u);
		return true;
	}
	if (io_u->ddir != DDIR_TRIM || td->o.zone_mode != ZONE_MODE_ZBD)
		return false;

	fio_gettime(&io_u->issue_time, NULL);
	ret = zbd_do_io_u_trim(td, io_u);
	if (!ret)
		return false;	/* a conventional zone is discarded */
	if (ret < 0)
		io_u->error = -ret;
	return true;
}

void fio_vblk_event(struct vblk_thread *vt, struct io_u *io_u,
		    const struct io_uring_cqe *cqe)
{
	if (!cqe->res) {
		io_u->error = 0;
		return;
	}
	vblk_slot(vt, io_u)->status = cqe->big_cqe[0];
	io_u->error = cqe->res < 0 ? -cqe->res : EIO;
}

const char *fio_vblk_status_name(uint64_t status)
{
	switch (status) {
	case VIRTIO_BLK_S_IOERR:
		return "IOERR, an I/O error";
	case VIRTIO_BLK_S_UNSUPP:
		return "UNSUPP, it does not support the command";
	case VIRTIO_BLK_S_ZONE_INVALID_CMD:
		return "ZONE_INVALID_CMD, the zone does not take the command";
	case VIRTIO_BLK_S_ZONE_UNALIGNED_WP:
		return "ZONE_UNALIGNED_WP, not at the zone's write pointer";
	case VIRTIO_BLK_S_ZONE_OPEN_RESOURCE:
		return "ZONE_OPEN_RESOURCE, too many open zones";
	case VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE:
		return "ZONE_ACTIVE_RESOURCE, too many active zones";
	case VIRTBLK_URING_S_UNWRITTEN:
		return "nothing, it wrote no status";
	}
	return "a status without meaning";
}

static const char *vblk_refusal(struct vblk_thread *vt, struct io_u *io_u)
{
	const struct vblk_data *data = FILE_ENG_DATA(io_u->file);

	switch (io_u->error) {
	case EINVAL:
		if (vblk_slot(vt, io_u)->cut)
			return "not whole logical blocks of the disk; choose "
				"rw=..:N, zoneskip= or the iolog's offsets and "
				"lengths so that they are";
		if (io_u->ddir == DDIR_TRIM)
			return "more than the disk discards in one command "
				"(max_discard_sectors), or not at its "
				"discard_sector_alignment; use another bs";
		if (data && io_u->xfer_buflen > data->info.max_bytes_any)
			return "more segments than the disk's max_segments; "
				"use a smaller bs, or huge pages (mem=mmaphuge)";
		return "a length, sector or buffer breaks the disk's limits";
	case EACCES:
		return "the node was not opened for it";
	case EPERM:
		return "the I/O priority class needs CAP_SYS_NICE";
	case EROFS:
		return "the disk is read-only";
	case EOPNOTSUPP:
		return "the disk, the kernel or a polled ring without poll "
			"queues (poll_queues=) lacks the ability";
	case EIO:
		return "dirty cached pages of the block node could not be "
			"written back";
	case ENODEV:
		return "the disk is gone; it may or may not have been done";
	}
	return strerror(io_u->error);
}

char *fio_vblk_errdetails(struct vblk_thread *vt, struct io_u *io_u)
{
	uint64_t status = vblk_slot(vt, io_u)->status;
	char *msg = NULL;
	int ret;

	if (status)
		ret = asprintf(&msg, "vblk: %s: the device answered %s "
			       "(status %llu)", io_u->file->file_name,
			       fio_vblk_status_name(status),
			       (unsigned long long)status);
	else
		ret = asprintf(&msg, "vblk: %s: no answer from the device: %s",
			       io_u->file->file_name, vblk_refusal(vt, io_u));
	return ret < 0 ? NULL : msg;
}

/*
 * For a fio whose errdetails() isn't told the thread, and for errors that came
 * from no completion, of which no fio asks for details
 */
void fio_vblk_log_error(struct vblk_thread *vt, struct thread_data *td,
			struct io_u *io_u)
{
	char *msg;

	if (td_non_fatal_error(td, td_error_type(io_u->ddir, io_u->error),
			       io_u->error) && !td->o.error_dump)
		return;
	msg = fio_vblk_errdetails(vt, io_u);
	if (msg)
		log_err("fio: %s\n", msg);
	free(msg);
}
