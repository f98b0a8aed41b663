// SPDX-License-Identifier: GPL-2.0-only
/*
 * Split virtqueues (virtio 1.2, 2.7), device side, from the specification.
 *
 * A chain is translated and copied into a struct req before anything else is
 * done with it; what makes no sense is kept with its reason, so that a test
 * sees it in the log.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define MAX_SEGS	65536	/* longer chains are loops */

bool ring_start(struct vq *vq, uint64_t desc, uint64_t avail, uint64_t used,
		uint16_t last_avail)
{
	vq->desc = dev.transport->map(desc, 16ULL * vq->num);
	vq->avail = dev.transport->map(avail, 6 + 2ULL * vq->num);
	vq->used = dev.transport->map(used, 6 + 8ULL * vq->num);
	vq->last_avail = last_avail;
	vq->used_idx = vq->used ? vq->used->idx : 0;
	vq->ready = vq->desc && vq->avail && vq->used;
	return vq->ready;
}

static void add_seg(struct req *r, const struct vring_desc *d)
{
	struct seg *s;

	if (!(r->nsegs & (r->nsegs - 1)))
		r->seg = realloc(r->seg, sizeof(*s) *
				 (r->nsegs ? r->nsegs * 2 : 1));
	s = &r->seg[r->nsegs++];
	s->len = d->len;
	s->write = d->flags & VRING_DESC_F_WRITE;
	s->p = dev.transport->map(d->addr, d->len);
	if (!s->p)
		r->bad = "a buffer outside of guest memory";
	else if (!s->write && r->in_len)
		r->bad = "a readable descriptor behind a writable one";
	if (s->write)
		r->in_len += s->len;
	else
		r->out_len += s->len;
}

/* Follow one table: the ring's own, or an indirect one */
static void walk(struct req *r, struct vring_desc *table, unsigned int num,
		 unsigned int i, bool indirect)
{
	for (;;) {
		struct vring_desc d;

		if (i >= num) {
			r->bad = "a descriptor index outside of its table";
			return;
		}
		d = table[i];
		if (d.flags & VRING_DESC_F_INDIRECT) {
			struct vring_desc *t;

			if (indirect || d.flags & VRING_DESC_F_NEXT ||
			    d.len % 16 || !d.len) {
				r->bad = "an indirect descriptor that breaks the rules";
				return;
			}
			t = dev.transport->map(d.addr, d.len);
			r->indirect = true;
			if (t)
				walk(r, t, d.len / 16, 0, true);
			else
				r->bad = "an indirect table outside of guest memory";
			return;
		}
		add_seg(r, &d);
		if (!(d.flags & VRING_DESC_F_NEXT))
			return;
		if (r->nsegs >= MAX_SEGS) {
			r->bad = "a chain without an end";
			return;
		}
		i = d.next;
	}
}

static void parse_header(struct req *r)
{
	struct { uint32_t type, ioprio; uint64_t sector; } h;

	if (req_read(r, 0, &h, sizeof(h)) != sizeof(h)) {
		r->bad = r->bad ?: "a header of less than 16 bytes";
		return;
	}
	r->type = h.type;
	r->ioprio = h.ioprio;
	r->sector = h.sector;
	if (!r->in_len)
		r->bad = r->bad ?: "no room for the status byte";
}

/* Behind the used ring stands the avail index at which we want a kick */
static uint16_t *avail_event(struct vq *vq)
{
	void *end = &vq->used->ring[vq->num];

	return end;
}

/* The next request of a queue, or NULL when there is none */
struct req *ring_pop(struct vq *vq)
{
	static uint64_t seq;
	struct req *r;

	if (vq->last_avail == __atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE)) {
		if (!has_feature(F_EVENT_IDX))
			return NULL;
		/* ask for a kick at the next entry, then look once more */
		*avail_event(vq) = vq->last_avail;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (vq->last_avail == __atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE))
			return NULL;
	}
	r = calloc(1, sizeof(*r));
	r->seq = ++seq;
	r->vq = vq;
	r->head = vq->avail->ring[vq->last_avail++ % vq->num];
	walk(r, vq->desc, vq->num, r->head, false);
	if (!r->bad || r->nsegs)
		parse_header(r);
	return r;
}

/* id isn't checked: a hostile answer is a used element like any other */
void ring_push(struct vq *vq, uint32_t id, uint32_t len, unsigned int jump)
{
	struct vring_used_elem *e = &vq->used->ring[vq->used_idx % vq->num];

	e->id = id;
	e->len = len;
	vq->used_idx += 1 + jump;
	__atomic_store_n(&vq->used->idx, vq->used_idx, __ATOMIC_RELEASE);
}

/* Interrupt the driver if it asked for one since the used index was old */
void ring_notify(struct vq *vq, uint16_t old)
{
	uint16_t event;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (vq->noirq)
		return;
	if (has_feature(F_EVENT_IDX)) {
		event = vq->avail->ring[vq->num];
		if ((uint16_t)(vq->used_idx - event - 1) >=
		    (uint16_t)(vq->used_idx - old))
			return;
	} else if (vq->avail->flags & VRING_AVAIL_F_NO_INTERRUPT) {
		return;
	}
	dev.transport->irq(vq);
}

void req_free(struct req *r)
{
	free(r->seg);
	free(r);
}

/* Copy between buf and the readable (or writable) bytes, seen as one stream */
static uint64_t stream(struct req *r, bool write, uint64_t off, void *buf,
		       uint64_t len)
{
	uint64_t done = 0;

	for (unsigned int i = 0; i < r->nsegs && done < len; i++) {
		struct seg *s = &r->seg[i];
		uint64_t n;

		if (s->write != write)
			continue;
		if (off >= s->len) {
			off -= s->len;
			continue;
		}
		if (!s->p)
			break;
		n = s->len - off < len - done ? s->len - off : len - done;
		if (write)
			memcpy((char *)s->p + off, (char *)buf + done, n);
		else
			memcpy((char *)buf + done, (char *)s->p + off, n);
		done += n;
		off = 0;
	}
	return done;
}

uint64_t req_read(struct req *r, uint64_t off, void *buf, uint64_t len)
{
	return stream(r, false, off, buf, len);
}

uint64_t req_write(struct req *r, uint64_t off, const void *buf, uint64_t len)
{
	return stream(r, true, off, (void *)buf, len);
}
