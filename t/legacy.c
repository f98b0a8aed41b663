// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring-vblk: the ways without a ring, to compare with: preadv2 (-S1) and
 * Linux's older aio (-a1, by its system calls, so that no library is needed)
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/aio_abi.h>

#include "tool.h"

static struct slot *take(struct worker *w)
{
	struct slot *s = w->idle[w->nidle - 1];

	if (!load_next(&w->load, s))
		return NULL;
	s->start = w->o->latency ? ticks_now() : 0;
	w->nidle--;
	w->inflight++;
	w->c.submitted++;
	return s;
}

static void finish(struct worker *w, struct slot *s, int res)
{
	if (s->start && w->measuring)
		hist_add(&w->hist, ticks_now() - s->start, 1);
	worker_complete(w, s, res, 0);
}

void sync_loop(struct worker *w)
{
	int flags = w->o->polled ? RWF_HIPRI : 0;
	struct slot *s;
	ssize_t n;

	while (!w->stop && (s = take(w))) {
		uint64_t at = slot_byte(s, w->o);

		w->c.calls++;
		if (s->op == OP_READ)
			n = preadv2(s->r->t->fd, s->iov, w->o->iovecs, at, flags);
		else
			n = pwritev2(s->r->t->fd, s->iov, w->o->iovecs, at, flags);
		finish(w, s, n < 0 ? -errno : (int)n);
	}
}

static void aio_prep(struct worker *w, struct slot *s, struct iocb *cb)
{
	memset(cb, 0, sizeof(*cb));
	cb->aio_data = s->index;
	cb->aio_fildes = s->r->t->fd;
	cb->aio_lio_opcode = s->op == OP_READ ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
	cb->aio_buf = (uintptr_t)s->iov;
	cb->aio_nbytes = w->o->iovecs;
	cb->aio_offset = slot_byte(s, w->o);
	cb->aio_rw_flags = w->o->polled ? RWF_HIPRI : 0;
}

/* Submit one by one what a partial io_submit() left over; false: gave up */
static bool aio_submit(struct worker *w, aio_context_t ctx, struct iocb **cbs, unsigned int n)
{
	unsigned int done = 0;
	int err;
	long ret;

	while (done < n) {
		w->c.calls++;
		ret = syscall(SYS_io_submit, ctx, (long)(n - done), cbs + done);
		err = errno;
		if (ret < 0 && err != EAGAIN && err != EINTR) {
			for (; done < n; done++)
				finish(w, &w->slots[cbs[done]->aio_data], -err);
			return false;
		}
		done += ret > 0 ? ret : 0;
	}
	return true;
}

static void aio_reap(struct worker *w, aio_context_t ctx, unsigned int wait)
{
	unsigned int max = w->o->depth;
	struct io_event events[max];
	long i, n;

	w->c.calls++;
	n = syscall(SYS_io_getevents, ctx, (long)wait, (long)max, events, NULL);
	for (i = 0; i < n; i++)
		finish(w, &w->slots[events[i].data], (int)events[i].res);
}

void aio_loop(struct worker *w)
{
	const struct options *o = w->o;
	struct iocb cb[o->batch_submit], *cbs[o->batch_submit];
	aio_context_t ctx = 0;
	struct slot *s;
	unsigned int n;

	if (syscall(SYS_io_setup, o->depth, &ctx)) {
		worker_trouble(w, "no aio context: %s; see sysctl fs.aio-max-nr", strerror(errno));
		return;
	}
	while (!w->stop) {
		for (n = 0; n < o->batch_submit && w->nidle && (s = take(w)); n++) {
			aio_prep(w, s, &cb[n]);
			cbs[n] = &cb[n];
		}
		if (!w->inflight || !aio_submit(w, ctx, cbs, n))
			break;
		if (!n || w->inflight + o->batch_submit > o->depth)
			aio_reap(w, ctx, min_u(w->inflight, o->batch_complete));
	}
	while (w->inflight)
		aio_reap(w, ctx, 1);
	syscall(SYS_io_destroy, ctx);
}
