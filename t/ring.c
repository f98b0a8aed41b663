// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: a ring, and the SQEs put on it */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sched.h>

#include <linux/falloc.h>

#include "tool.h"

/* What headers of Linux 6.1 lack: discard by io_uring on a block node (6.12) */
#ifndef BLOCK_URING_CMD_DISCARD
#define BLOCK_URING_CMD_DISCARD	_IO(0x12, 0)
#endif

/* A waiting loop that spins this long before it sleeps in the kernel */
#define SQPOLL_SPINS	20000

static bool want_sqe128(const struct worker *w)
{
	return w->o->sqe128 || (w->o->passthrough && !w->o->sqe64);
}

/* From the flags wished for down to what any kernel has */
static int setup(struct worker *w)
{
	static const unsigned int wishes[] = {
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER,
		IORING_SETUP_COOP_TASKRUN,
		0,
	};
	const struct options *o = w->o;
	struct io_uring_params p;
	unsigned int i, last = o->defer == 1 ? 0 : 3, base = 0;
	int ret = -EINVAL;

	w->cqe32 = o->passthrough;
	base |= o->polled ? IORING_SETUP_IOPOLL : 0;
	base |= want_sqe128(w) ? IORING_SETUP_SQE128 : 0;
	base |= w->cqe32 ? IORING_SETUP_CQE32 : 0;
	base |= o->sqpoll ? IORING_SETUP_SQPOLL : 0;
	base |= o->sqpoll && o->sqpoll_cpu >= 0 ? IORING_SETUP_SQ_AFF : 0;
	/* With SQPOLL completions are the kernel thread's: no task-run modes */
	i = o->sqpoll ? 3 : o->defer == 0 ? 2 : 0;
	for (; i <= last && ret == -EINVAL; i++) {
		memset(&p, 0, sizeof(p));
		p.flags = w->setup_flags = base | wishes[i];
		p.sq_thread_cpu = o->sqpoll_cpu >= 0 ? o->sqpoll_cpu : 0;
		p.sq_thread_idle = o->sqpoll_idle;
		ret = io_uring_queue_init_params(o->depth, &w->ring, &p);
	}
	return ret;
}

static int register_files(struct worker *w)
{
	int fds[MAX_TARGETS], ret;
	unsigned int i;

	for (i = 0; i < w->load.nregions; i++)
		fds[i] = w->load.regions[i].t->fd;
	ret = io_uring_register_files(&w->ring, fds, i);
	if (ret)
		complain("files not registered: %s; -F0 does without", strerror(-ret));
	return ret;
}

static int register_buffers(struct worker *w)
{
	struct iovec bufs[w->o->depth];
	unsigned int i;
	int ret;

	for (i = 0; i < w->o->depth; i++)
		bufs[i] = (struct iovec){ w->slots[i].buf, w->o->bs };
	ret = io_uring_register_buffers(&w->ring, bufs, w->o->depth);
	if (ret)
		explain_buffers(w, -ret);
	return ret;
}

int ring_up(struct worker *w)
{
	int ret = setup(w);

	if (ret) {
		explain_ring(w, -ret);
		return -1;
	}
	w->ring_up = true;
	if (w->o->fixedbufs && register_buffers(w))
		return -1;
	if (w->o->regfiles && w->load.nregions && register_files(w))
		return -1;
	/* Saves a reference per call; a kernel without it works all the same */
	if (w->o->ringfd)
		io_uring_register_ring_fd(&w->ring);
	return 0;
}

void ring_down(struct worker *w)
{
	if (w->ring_up)
		io_uring_queue_exit(&w->ring);
	w->ring_up = false;
}

static void prep_command(struct worker *w, struct slot *s, struct io_uring_sqe *sqe)
{
	enum virtblk_form form = w->o->sqe64 ? VIRTBLK_SQE64 : VIRTBLK_SQE128;
	uint32_t type = s->op == OP_READ ? VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT;
	uint64_t sector;
	int fd = s->r->t->fd;

	if (s->op == OP_FLUSH) {
		virtblk_prep_flush(sqe, form, fd);
		return;
	}
	sector = slot_byte(s, w->o) / SECTOR;
	if (s->op == OP_TRIM || s->op == OP_ZEROES) {
		s->range = virtblk_range(sector, w->o->bs / SECTOR, 0);
		if (s->op == OP_TRIM)
			virtblk_prep_discard(sqe, form, fd, &s->range, 1);
		else
			virtblk_prep_write_zeroes(sqe, form, fd, &s->range, 1);
		return;
	}
	if (w->o->vectored)
		virtblk_prepv(sqe, form, fd, type, sector, s->iov, w->o->iovecs);
	else
		virtblk_prep(sqe, form, fd, type, sector, s->buf, w->o->bs);
	if (w->o->fixedbufs)
		virtblk_set_fixed(sqe, s->index);
}

static void prep_block_data(struct worker *w, struct slot *s, struct io_uring_sqe *sqe)
{
	bool read = s->op == OP_READ;

	sqe->off = slot_byte(s, w->o);
	if (w->o->vectored) {
		sqe->opcode = read ? IORING_OP_READV : IORING_OP_WRITEV;
		sqe->addr = (uintptr_t)s->iov;
		sqe->len = w->o->iovecs;
		return;
	}
	sqe->addr = (uintptr_t)s->buf;
	sqe->len = w->o->bs;
	if (w->o->fixedbufs) {
		sqe->opcode = read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
		sqe->buf_index = s->index;
	} else {
		sqe->opcode = read ? IORING_OP_READ : IORING_OP_WRITE;
	}
}

static void prep_block(struct worker *w, struct slot *s, struct io_uring_sqe *sqe)
{
	switch (s->op) {
	case OP_TRIM:
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->cmd_op = BLOCK_URING_CMD_DISCARD;
		sqe->addr = slot_byte(s, w->o);
		sqe->addr3 = w->o->bs;
		break;
	case OP_ZEROES:
		sqe->opcode = IORING_OP_FALLOCATE;
		sqe->off = slot_byte(s, w->o);
		sqe->addr = w->o->bs;
		sqe->len = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
		break;
	case OP_FLUSH:
		sqe->opcode = IORING_OP_FSYNC;
		sqe->fsync_flags = IORING_FSYNC_DATASYNC;
		break;
	default:
		prep_block_data(w, s, sqe);
	}
}

/* The ring holds as many SQEs as there are slots: there always is one */
void ring_prep(struct worker *w, struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);

	memset(sqe, 0, w->setup_flags & IORING_SETUP_SQE128 ? 128 : 64);
	if (!s->r)
		sqe->opcode = IORING_OP_NOP;
	else if (s->r->t->passthrough)
		prep_command(w, s, sqe);
	else
		prep_block(w, s, sqe);
	if (s->r) {
		sqe->fd = w->o->regfiles ? (int)s->r->index : s->r->t->fd;
		sqe->flags = w->o->regfiles ? IOSQE_FIXED_FILE : 0;
	}
	sqe->user_data = s->index;
}

/* Retry is the caller's loop: it reaps, which is what these ask for */
static int submit_result(int ret)
{
	return ret >= 0 || ret == -EAGAIN || ret == -EBUSY || ret == -EINTR || ret == -ETIME ?
	       0 : ret;
}

/*
 * The kernel thread submits; a system call is made only to wake it, and to
 * sleep when spinning has brought nothing.
 */
static int submit_sqpoll(struct worker *w, unsigned int wait)
{
	unsigned int flags, spins;
	int ret;

	flags = IO_URING_READ_ONCE(*w->ring.sq.kflags);
	if (flags & (IORING_SQ_NEED_WAKEUP | IORING_SQ_CQ_OVERFLOW))
		w->c.calls++;
	ret = io_uring_submit(&w->ring);
	if (submit_result(ret) || !wait)
		return submit_result(ret);
	for (spins = 0; spins < SQPOLL_SPINS; spins++)
		if (io_uring_cq_ready(&w->ring) >= wait)
			return 0;
	w->c.calls++;
	return submit_result(io_uring_submit_and_wait(&w->ring, wait));
}

int ring_submit(struct worker *w, unsigned int wait)
{
	if (w->o->sqpoll)
		return submit_sqpoll(w, wait);
	w->c.calls++;
	return submit_result(io_uring_submit_and_wait(&w->ring, wait));
}

/* Without waiting, but let completions in that only a call lets in */
int ring_submit_look(struct worker *w)
{
	if (w->o->sqpoll)
		return submit_sqpoll(w, 0);
	w->c.calls++;
	return submit_result(io_uring_submit_and_get_events(&w->ring));
}

/* Wait for at most ns; a polled ring knows no time-outs and only looks */
int ring_submit_until(struct worker *w, unsigned int wait, uint64_t ns)
{
	struct __kernel_timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	struct io_uring_cqe *cqe;

	if (w->o->polled || w->o->sqpoll)
		return ring_submit_look(w);
	w->c.calls++;
	return submit_result(io_uring_submit_and_wait_timeout(&w->ring, &cqe, wait, &ts, NULL));
}
