// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that breaks the rules of the ring. What is right: no word of the
 * kernel (the runner looks), nothing outside of the guest's memory changed,
 * nothing beyond the file's end written; the queue says broken by its error
 * eventfd, or the request is answered IOERR; and after stop and start all is
 * well again.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUS		(buf_at(0) + sizeof(struct virtio_blk_outhdr))
#define DATA		buf_at(1)
#define TABLE		buf_at(3)
#define MEM_END		(MEM_BASE + MEM_SIZE)
#define NEXT		VRING_DESC_F_NEXT
#define INDIRECT	VRING_DESC_F_INDIRECT

static int backend;

static void want_well_again(struct vdev *v)
{
	mem_intact(v);
	dev_again(v, backend);
	want_eq(command(v, VIRTIO_BLK_T_IN, 8, DATA, 4096), VIRTIO_BLK_S_OK, "status of a good IN after stop and start");
}

static void open_all(struct vdev *v, unsigned int nq)
{
	backend = open_backend(t_disk(0), O_RDWR | O_DIRECT);
	dev_open(v, nq, FEATURES);
	dev_start(v, backend);
}

/* ---- one malformation after the other ---- */

static void desc(struct vdev *v, unsigned int i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
	v->q[0].desc[i] = (struct vring_desc){ addr, len, flags, next };
}

static void in_table(struct vdev *v, unsigned int i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
	((struct vring_desc *)mem_at(v, TABLE))[i] = (struct vring_desc){ addr, len, flags, next };
}

/* An IN of 512 bytes by descriptors 0, 1 and 2 */
static void good(struct vdev *v)
{
	struct chain c;

	chain_cmd(v, &c, buf_at(0), VIRTIO_BLK_T_IN, 8, DATA, 512, 512);
	memcpy(v->q[0].desc, c.d, c.n * sizeof(c.d[0]));
}

static void offer(struct vdev *v, unsigned int head)
{
	queue_offer(&v->q[0], head);
}

static void head_outside(struct vdev *v) { offer(v, QUEUE_SIZE); }
static void head_far_outside(struct vdev *v) { offer(v, UINT16_MAX); }
static void index_ahead(struct vdev *v) { v->q[0].avail->idx = QUEUE_SIZE + 1; }
static void index_back(struct vdev *v) { v->q[0].avail->idx = UINT16_MAX; }

static void next_outside(struct vdev *v)
{
	v->q[0].desc[1].next = QUEUE_SIZE;
	offer(v, 0);
}

static void loop(struct vdev *v)
{
	v->q[0].desc[2].flags |= NEXT;
	v->q[0].desc[2].next = 1;
	offer(v, 0);
}

static void loop_of_one(struct vdev *v)
{
	desc(v, 0, DATA, 512, NEXT | W, 0);
	offer(v, 0);
}

static void address_zero(struct vdev *v) { v->q[0].desc[1].addr = 0; offer(v, 0); }
static void address_behind(struct vdev *v) { v->q[0].desc[1].addr = MEM_END; offer(v, 0); }
static void address_before(struct vdev *v) { v->q[0].desc[1].addr = MEM_BASE - 512; offer(v, 0); }
static void address_across_end(struct vdev *v) { v->q[0].desc[1].addr = MEM_END - 256; offer(v, 0); }
static void address_across_start(struct vdev *v) { v->q[0].desc[1].addr = MEM_BASE - 256; offer(v, 0); }
static void address_wraps(struct vdev *v) { v->q[0].desc[1].addr = UINT64_MAX - 255; offer(v, 0); }
static void length_4g(struct vdev *v) { v->q[0].desc[1].len = UINT32_MAX; offer(v, 0); }
static void header_outside(struct vdev *v) { v->q[0].desc[0].addr = MEM_END; offer(v, 0); }
static void status_outside(struct vdev *v) { v->q[0].desc[2].addr = MEM_END; offer(v, 0); }
static void out_after_in(struct vdev *v) { v->q[0].desc[2].flags = 0; offer(v, 0); }

static void nothing_writable(struct vdev *v)
{
	desc(v, 0, buf_at(0), 16, 0, 0);
	offer(v, 0);
}

static void status_of_no_bytes(struct vdev *v)
{
	desc(v, 0, buf_at(0), 16, NEXT, 1);
	desc(v, 1, STATUS, 0, W, 0);
	offer(v, 0);
}

static void no_bytes_at_all(struct vdev *v)
{
	desc(v, 0, 0, 0, 0, 0);
	offer(v, 0);
}

static void indirect(struct vdev *v, uint64_t table, uint32_t len, uint16_t more)
{
	desc(v, 0, table, len, INDIRECT | more, 1);
	offer(v, 0);
}

static void indirect_odd(struct vdev *v) { indirect(v, TABLE, 17, 0); }
static void indirect_empty(struct vdev *v) { indirect(v, TABLE, 0, 0); }
static void indirect_outside(struct vdev *v) { indirect(v, MEM_END, 32, 0); }
static void indirect_across_end(struct vdev *v) { indirect(v, MEM_END - 16, 32, 0); }
static void indirect_too_long(struct vdev *v) { indirect(v, MEM_BASE, 65537 * 16, 0); }

static void indirect_in_indirect(struct vdev *v)
{
	in_table(v, 0, TABLE + 32, 32, INDIRECT, 0);
	indirect(v, TABLE, 16, 0);
}

static void indirect_without_end(struct vdev *v)
{
	for (unsigned int i = 0; i < 4; i++)
		in_table(v, i, STATUS, 1, NEXT | W, 0);
	indirect(v, TABLE, 64, 0);
}

/* More pieces than a chain can have */
static void pieces(struct vdev *v, unsigned int n)
{
	in_table(v, 0, buf_at(0), 16, NEXT, 1);
	for (unsigned int i = 1; i <= n; i++)
		in_table(v, i, DATA, 512, NEXT | W, i + 1);
	in_table(v, n + 1, STATUS, 1, W, 0);
	indirect(v, TABLE, (n + 2) * 16, 0);
}

static void pieces_1022(struct vdev *v) { pieces(v, 1022); }
static void pieces_1023(struct vdev *v) { pieces(v, 1023); }
static void pieces_5000(struct vdev *v) { pieces(v, 5000); }

/* Offered again while it is in flight: the first is answered */
static void twice(struct vdev *v)
{
	offer(v, 0);
	offer(v, 0);
}

static void status_alone(struct vdev *v)
{
	desc(v, 0, STATUS, 1, W, 0);
	offer(v, 0);
}

static void header_short(struct vdev *v) { v->q[0].desc[0].len = 15; offer(v, 0); }
static void header_writable(struct vdev *v) { v->q[0].desc[0].flags |= W; offer(v, 0); }
static void no_room(struct vdev *v) { v->q[0].desc[0].next = 2; offer(v, 0); }
static void length_511(struct vdev *v) { v->q[0].desc[1].len = 511; offer(v, 0); }

static void data_readonly_in(struct vdev *v)
{
	v->q[0].desc[1].flags &= ~W;
	offer(v, 0);
}

/* Memory that the hypervisor has taken away */
static void forbid(void *p, size_t len, int prot)
{
	if (mprotect(p, len, prot))
		die("mprotect: %s", strerror(errno));
}

static void no_desc(struct vdev *v) { forbid(v->q[0].desc, 4096, PROT_NONE); offer(v, 0); }
/* These offer first: they can't afterwards */
static void no_avail(struct vdev *v) { offer(v, 0); forbid(v->q[0].avail, 4096, PROT_NONE); }
static void no_used(struct vdev *v) { offer(v, 0); forbid(v->q[0].used, 4096, PROT_READ); }
static void no_data(struct vdev *v) { offer(v, 0); forbid(mem_at(v, DATA), 4096, PROT_NONE); }

static void no_header(struct vdev *v)
{
	v->q[0].desc[0].addr = TABLE;
	offer(v, 0);
	forbid(mem_at(v, TABLE), 4096, PROT_NONE);
}

static void no_status(struct vdev *v)
{
	v->q[0].desc[2].addr = TABLE;
	offer(v, 0);
	forbid(mem_at(v, TABLE), 4096, PROT_NONE);
}

enum wanted { BROKEN = 1, ANSWERED = 2 };

static const struct bad {
	const char *name;
	void (*make)(struct vdev *v);
	int wanted;
	uint8_t status;		/* if answered */
} bads[] = {
	{ "head-outside", head_outside, BROKEN, 0 },
	{ "head-far-outside", head_far_outside, BROKEN, 0 },
	{ "index-ahead", index_ahead, BROKEN, 0 },
	{ "index-back", index_back, BROKEN, 0 },
	{ "next-outside", next_outside, BROKEN, 0 },
	{ "loop", loop, BROKEN, 0 },
	{ "loop-of-one", loop_of_one, BROKEN, 0 },
	{ "address-zero", address_zero, BROKEN, 0 },
	{ "address-behind", address_behind, BROKEN, 0 },
	{ "address-before", address_before, BROKEN, 0 },
	{ "address-across-end", address_across_end, BROKEN, 0 },
	{ "address-across-start", address_across_start, BROKEN, 0 },
	{ "address-wraps", address_wraps, BROKEN, 0 },
	{ "length-4g", length_4g, BROKEN, 0 },
	{ "header-outside", header_outside, BROKEN, 0 },
	{ "status-outside", status_outside, BROKEN, 0 },
	{ "out-after-in", out_after_in, BROKEN, 0 },
	{ "nothing-writable", nothing_writable, BROKEN, 0 },
	{ "status-of-no-bytes", status_of_no_bytes, BROKEN, 0 },
	{ "no-bytes-at-all", no_bytes_at_all, BROKEN, 0 },
	{ "indirect-odd", indirect_odd, BROKEN, 0 },
	{ "indirect-empty", indirect_empty, BROKEN, 0 },
	{ "indirect-outside", indirect_outside, BROKEN, 0 },
	{ "indirect-across-end", indirect_across_end, BROKEN, 0 },
	{ "indirect-too-long", indirect_too_long, BROKEN, 0 },
	{ "indirect-in-indirect", indirect_in_indirect, BROKEN, 0 },
	{ "indirect-without-end", indirect_without_end, BROKEN, 0 },
	{ "pieces-1022", pieces_1022, ANSWERED, VIRTIO_BLK_S_OK },
	{ "pieces-1023", pieces_1023, BROKEN, 0 },
	{ "pieces-5000", pieces_5000, BROKEN, 0 },
	{ "head-twice", twice, BROKEN | ANSWERED, VIRTIO_BLK_S_OK },
	{ "status-alone", status_alone, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "header-short", header_short, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "header-writable", header_writable, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "no-room", no_room, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "length-511", length_511, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "data-readonly", data_readonly_in, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "memory-gone-desc", no_desc, BROKEN, 0 },
	{ "memory-gone-avail", no_avail, BROKEN, 0 },
	{ "memory-gone-used", no_used, BROKEN, 0 },
	{ "memory-gone-data", no_data, ANSWERED, VIRTIO_BLK_S_IOERR },
	{ "memory-gone-header", no_header, ANSWERED, VIRTIO_BLK_S_IOERR },
	/* it is answered where it can be, and told */
	{ "memory-gone-status", no_status, BROKEN | ANSWERED, UNANSWERED },
};

/* Broken is broken: also what is good isn't taken any more, nor written to */
static void want_deaf(struct vdev *v)
{
	struct chain c;

	forbid(v->mem, MEM_SIZE, PROT_READ | PROT_WRITE);
	v->q[0].next_head = 40;
	chain_cmd(v, &c, buf_at(2), VIRTIO_BLK_T_IN, 8, DATA, 512, 512);
	queue_put(v, 0, &c);
	queue_kick(&v->q[0]);
	want_eq(queue_wait(&v->q[0], 1, 50), 0, "answers of a broken queue");
	want_eq((uint8_t)*mem_at(v, buf_at(2) + 16), UNANSWERED, "status of a good IN in a broken queue");
}

/* The word may have been about the ring's flags: until its request's answer has failed too */
static void await_no_answer(struct vdev *v)
{
	uint64_t until = now_ms() + 5000;

	while (*(volatile uint8_t *)mem_at(v, STATUS) == UNANSWERED && now_ms() < until)
		poll(NULL, 0, 1);
	dev_settle(v);
}

static void bad_ring(const void *arg)
{
	const struct bad *b = arg;
	struct vdev v = { 0 };
	struct queue *q = &v.q[0];

	open_all(&v, 1);
	good(&v);
	dev_settle(&v);
	b->make(&v);
	queue_kick(q);
	if (b->wanted & BROKEN && !event_within(q->err, 5000))
		fail("got no word on the error eventfd, wanted one");
	if (b->wanted & ANSWERED)
		want_eq(queue_wait(q, 1, 5000), 1, "answers");
	if (b->make == no_used)
		await_no_answer(&v);
	if (b->wanted == BROKEN)
		want_deaf(&v);
	/* a broken device can be stopped, and what is in flight ends as it is */
	dev_stop(&v);
	forbid(v.mem, MEM_SIZE, PROT_READ | PROT_WRITE);
	if (b->wanted & ANSWERED)
		want_eq((uint8_t)*mem_at(&v, STATUS), b->status, "status");
	else
		want_eq(q->used->idx, 0, "answers");
	if (!(b->wanted & BROKEN) && event_within(q->err, 0))
		fail("got an error on the eventfd, wanted none");
	want_well_again(&v);
}

/* A broken queue holds up no other, and is deaf until it is started anew */
static void broken_alone(const void *arg)
{
	struct vdev v = { 0 };
	struct chain c;

	open_all(&v, 2);
	good(&v);
	head_outside(&v);
	queue_kick(&v.q[0]);
	if (!event_within(v.q[0].err, 5000))
		fail("got no word on the error eventfd, wanted one");
	for (unsigned int i = 0; i < 5; i++) {
		queue_kick(&v.q[0]);
		chain_cmd(&v, &c, buf_at(0), VIRTIO_BLK_T_IN, 8, DATA, 4096, 4096);
		queue_put(&v, 1, &c);
		queue_kick(&v.q[1]);
		want_eq(queue_wait(&v.q[1], 1, 5000), 1, "answers of the other queue");
		want_eq((uint8_t)*mem_at(&v, STATUS), VIRTIO_BLK_S_OK, "status in the other queue");
	}
	want_eq(v.q[0].used->idx, 0, "answers of the broken queue");
	want_well_again(&v);
}

/* ---- rings rewritten while they are read ---- */

static bool stop_rewriting;

static void *rewrite(void *arg)
{
	const uint64_t addrs[] = { DATA, MEM_END, MEM_BASE - 512, MEM_END - 256, UINT64_MAX - 3 };
	struct vdev *v = arg;
	struct virtio_blk_outhdr *h = (void *)mem_at(v, buf_at(0));
	uint64_t state = 7;

	while (!__atomic_load_n(&stop_rewriting, __ATOMIC_RELAXED)) {
		struct vring_desc *d = &v->q[0].desc[random_next(&state) % QUEUE_SIZE];
		uint64_t r = random_next(&state);

		switch (r % 8) {
		case 0: d->addr = addrs[(r >> 8) % ARRAY_SIZE(addrs)]; break;
		case 1: d->len = (r >> 8) % 3 ? 512 : UINT32_MAX; break;
		case 2: d->flags ^= (r >> 8) & (NEXT | W | INDIRECT); break;
		case 3: d->next = (r >> 8) % (QUEUE_SIZE + 2); break;
		case 4: h->sector = (r >> 8) % 2 ? 8 : UINT64_MAX >> (r >> 56); break;
		case 5: h->type = (r >> 8) % 16; break;
		case 6: v->q[0].avail->ring[(r >> 8) % QUEUE_SIZE] = (r >> 16) % (QUEUE_SIZE + 1); break;
		default: v->q[0].desc[0].addr = buf_at(0); v->q[0].desc[0].len = 16; break;
		}
	}
	return NULL;
}

static void rewritten(const void *arg)
{
	unsigned int rounds = 0, starts = 0;
	struct vdev v = { 0 };
	struct stat before, after;
	uint64_t until;
	pthread_t t;

	open_all(&v, 1);
	fstat(backend, &before);
	until = now_ms() + 2000;
	pthread_create(&t, NULL, rewrite, &v);
	while (now_ms() < until) {
		struct chain c;

		chain_cmd(&v, &c, buf_at(0), VIRTIO_BLK_T_IN, 8, DATA, 4096, 512);
		queue_put(&v, 0, &c);
		queue_kick(&v.q[0]);
		rounds++;
		if (!queue_wait(&v.q[0], 1, 2) && event_within(v.q[0].err, 0)) {
			dev_again(&v, backend);
			starts++;
		}
	}
	__atomic_store_n(&stop_rewriting, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	fstat(backend, &after);
	want_eq(after.st_size, before.st_size, "size of the file");
	if (rounds < 20 || !starts)
		fail("got %u rounds with %u broken rings, wanted many", rounds, starts);
	want_well_again(&v);
}

/* ---- fuzz ---- */

static uint64_t pick(uint64_t *state, const uint64_t *from, unsigned int n)
{
	return from[random_next(state) % n];
}

static void fuzz_desc(struct vring_desc *d, uint64_t *s)
{
	static const uint64_t lens[] = { 0, 1, 15, 16, 17, 32, 48, 512, 4096, 65536, MEM_SIZE, UINT32_MAX };
	static const uint64_t addrs[] = { 0, MEM_BASE, MEM_END, MEM_END - 1, UINT64_MAX };
	uint64_t r = random_next(s);

	d->addr = r % 16 ? MEM_BASE + random_next(s) % MEM_SIZE : pick(s, addrs, ARRAY_SIZE(addrs));
	if (r & 1024)
		d->addr &= ~511ULL;
	d->len = pick(s, lens, ARRAY_SIZE(lens));
	d->flags = (r >> 16) % 12 ? (r >> 24) & (NEXT | W) : r >> 32;
	d->next = (r >> 12) % 64 ? random_next(s) % QUEUE_SIZE : r >> 40;
}

/* A request that is nearly right: most of what is random breaks at once */
static void fuzz_request(struct vdev *v, unsigned int nq, uint64_t *s)
{
	static const uint64_t types[] = { 0, 0, 1, 1, 4, 8, 11, 13, 2, 16, UINT32_MAX };
	uint64_t r = random_next(s), hdr = buf_at(0) + r % 64 * 32;
	struct queue *q = &v->q[nq];
	struct chain c;

	chain_cmd(v, &c, hdr, pick(s, types, ARRAY_SIZE(types)), random_next(s) % (r & 256 ? 4096 : UINT64_MAX),
		  buf_at(1 + r % 8), (r >> 8) % 33 * 512, 512 << (r >> 16) % 5);
	if ((r >> 24) % 4 == 0)
		fuzz_desc(&c.d[(r >> 32) % c.n], s);
	if ((r >> 26) % 4 == 0)
		queue_indirect(v, nq, &c, buf_at(12) + r % 7 * 16);
	else
		queue_put(v, nq, &c);
	if ((r >> 28) % 16 == 0)
		fuzz_desc(&q->desc[(r >> 40) % q->num], s);
	if ((r >> 32) % 64 == 0)
		queue_offer(q, r >> 40);
	if ((r >> 38) % 64 == 0)
		q->avail->idx = q->avail_idx += r >> 48;
}

/* What a hypervisor may do at any time */
static void fuzz_hypervisor(struct vdev *v, uint64_t *s)
{
	uint64_t r = random_next(s);
	struct vhost_vring_addr addr = { .index = r % 2 };
	struct vhost_vring_state base = { r % 2, r >> 48 };
	struct vhost_worker_state w;
	struct vhost_vring_worker a = { r % 2, r >> 8 & 3 };
	uint64_t off = random_next(s) % MEM_SIZE;

	switch (r % 7) {
	case 0: dev_table(v); break;
	case 1: dev_try_backend(v, backend); break;
	case 2: vhost_try(v, VHOST_SET_VRING_BASE, &base); break;
	case 3:
		addr.desc_user_addr = (uintptr_t)v->mem + off;
		addr.avail_user_addr = (uintptr_t)v->mem + (off ^ 4096);
		addr.used_user_addr = (uintptr_t)v->mem + (off ^ 8192);
		vhost_try(v, VHOST_SET_VRING_ADDR, &addr);
		break;
	case 4:
		if (r >> 16 & 1)
			vhost_try(v, VHOST_NEW_WORKER, &w);
		w.worker_id = r >> 20 & 3;
		vhost_try(v, VHOST_FREE_WORKER, &w);
		break;
	case 5: vhost_try(v, VHOST_ATTACH_VRING_WORKER, &a); break;
	case 6: dev_stop(v); dev_try_backend(v, backend); break;
	}
}

static void fuzz(const void *arg)
{
	uint64_t seed = *(const uint64_t *)arg, s = seed, until, n, i;
	unsigned int again = 0, answers = 0;
	struct vdev v = { 0 };
	struct stat before, after;

	until = now_ms() + (soak_minutes ? soak_minutes * 60000ULL : 4000);
	open_all(&v, 2);
	fstat(backend, &before);
	for (i = 0; now_ms() < until; i++) {
		n = random_next(&s) % 8;
		for (unsigned int k = 0; k < n; k++)
			fuzz_request(&v, k % 2, &s);
		for (unsigned int k = 0; k < 2; k++) {
			queue_kick(&v.q[k]);
			answers += queue_wait(&v.q[k], 1, 1);
		}
		if (random_next(&s) % 16 == 0)
			fuzz_hypervisor(&v, &s);
		if (event_within(v.q[0].err, 0) || event_within(v.q[1].err, 0) || i % 64 == 63) {
			dev_again(&v, backend);
			again++;
		}
		if (i % 32 == 0)
			mem_intact(&v);
	}
	fstat(backend, &after);
	want_eq(after.st_size, before.st_size, "size of the file, seed %llu", (unsigned long long)seed);
	if (i < 20 || !answers || !again)
		fail("got %llu rounds, %u answers, %u broken rings with seed %llu, wanted many",
		     (unsigned long long)i, answers, again, (unsigned long long)seed);
	want_well_again(&v);
	fprintf(stderr, "seed %llu: %llu rounds, %u answers, %u restarts\n",
		(unsigned long long)seed, (unsigned long long)i, answers, again);
}

int main(int argc, char **argv)
{
	uint64_t seed;

	t_start_any(argc, argv, "Guests that break the rules of the ring. FILE, scratch, and a seed");
	if (!t_disk(0))
		die("give a file or disk to write to; try --help");
	seed = t_disk(1) ? strtoull(t_disk(1), NULL, 0) : 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(bads); i++)
		t_run(bads[i].name, bad_ring, &bads[i]);
	t_run("broken-alone", broken_alone, NULL);
	t_run("rewritten-while-read", rewritten, NULL);
	if (soak_minutes)
		t_limit(soak_minutes * 60 + 120);
	t_run("fuzz", fuzz, &seed);
	return t_end();
}
