// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random commands on random rings from several threads; ground.h says what is
 * right
 *
 * FUZZ_SEED=N repeats a run, FUZZ_COUNT=N is the number of commands.
 *
 * A batch of commands is reaped before the next one is built: where the kernel
 * reads a linked SQE late, it must not find another command's bytes with its
 * own descriptor.
 */
#define _GNU_SOURCE
#include "ground.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define REACH		(1 * MiB)	/* longest write */
#define SLOT_SIZE	(64 * KiB)
#define THREADS		AREAS
#define SOME_IOVECS	12

struct thread {
	pthread_t	pthread;
	unsigned int	id;
	uint64_t	rnd, count;
	int		rw, ro, wo;
	struct ground	ground;
	struct ring	r;
	bool		scribbled;	/* another thread rewrites the SQEs */
	struct iovec	iov[BATCH][SOME_IOVECS];
	struct virtio_blk_discard_write_zeroes range[BATCH][2];
	struct batch	batch;
};

static uint64_t seed;
static volatile bool stop;

static uint64_t rnd(struct thread *t, uint64_t below)
{
	return random_next(&t->rnd) % below;
}

/* true once in n */
static bool once(struct thread *t, unsigned int n)
{
	return rnd(t, n) == 0;
}

#define PICK(t, array)	((array)[rnd(t, ARRAY_SIZE(array))])

/* ---- memory ---- */

static uint32_t random_len(struct thread *t)
{
	static const uint32_t odd[] = { 0, 1, 15, 16, 17, 19, 20, 21, 511, 513,
		4095, 1U << 31, ~0U, 0U - 512, 1U << 30 };

	switch (rnd(t, 8)) {
	case 0:
		return PICK(t, odd);
	case 1:
		return rnd(t, SLOT_SIZE);
	case 2:
		return 20;
	default:
		return (1 + rnd(t, 32)) * 512;
	}
}

static uint64_t random_addr(struct thread *t, uint32_t len)
{
	static const uint64_t bad[] = { 0, 4096, 0xffff888000000000ULL,
		-4096ULL, 1ULL << 63, 0x00007ffffffff000ULL };
	uint64_t at, room = len < SLOT_SIZE ? SLOT_SIZE - len : 1;
	unsigned int n = rnd(t, SLOTS);

	if (once(t, 20))
		return PICK(t, bad);
	if (once(t, 30))
		return (uintptr_t)t->ground.read_only;
	at = once(t, 8) ? rnd(t, SLOT_SIZE) : rnd(t, room + 1);
	if (!once(t, 5))
		at = at / 512 * 512;
	return (uintptr_t)t->ground.slot[n] + at;
}

/* ---- commands ---- */

static uint32_t random_type(struct thread *t)
{
	static const uint32_t known[] = { 2, 3, 4, 8, 10, 11, 13, 14, 15, 16, 18,
		20, 22, 24, 26 };

	switch (rnd(t, 16)) {
	case 0 ... 6:
		return VIRTIO_BLK_T_IN;
	case 7 ... 10:
		return VIRTIO_BLK_T_OUT;
	case 11:
		return once(t, 2) ? VIRTIO_BLK_T_DISCARD
			: VIRTIO_BLK_T_WRITE_ZEROES;
	case 12:
		return rnd(t, 256);
	case 13:
		return once(t, 4) ? random_next(&t->rnd) : VIRTIO_BLK_T_GET_ID;
	default:
		return PICK(t, known);
	}
}

/* Where a command that may change the disk may do so: here or nowhere */
static uint64_t write_sector(struct thread *t)
{
	if (once(t, 20))
		return disk.bytes / 512 + rnd(t, 1ULL << 40);
	if (once(t, 40))
		return -1ULL - rnd(t, 1000);
	return (AREA_OF(t->id) + rnd(t, AREA - REACH)) / 512;
}

static uint64_t any_sector(struct thread *t)
{
	return once(t, 10) ? random_next(&t->rnd) : rnd(t, disk.bytes / 512);
}

static void random_vec(struct thread *t, struct vcmd *c, unsigned int slot)
{
	struct iovec *iov = t->iov[slot];
	unsigned int i, n = 1 + rnd(t, SOME_IOVECS);

	for (i = 0; i < n; i++) {
		uint32_t len = once(t, 4) ? random_len(t) : 512 * rnd(t, 8);

		/* the sum of a write stays below REACH */
		iov[i].iov_len = len;
		if (once(t, 60))
			iov[i].iov_len = random_next(&t->rnd);
		iov[i].iov_base = (void *)random_addr(t, len);
	}
	c->data = once(t, 40) ? random_addr(t, 16) : (uintptr_t)iov;
	c->len = n;
	if (once(t, 40))
		c->len = once(t, 2) ? 0 : 1025 + rnd(t, 1U << 31);
	/* a slot's content as iovecs could point anywhere in this process */
	if (c->data != (uintptr_t)iov)
		c->data = 4096;
	else if (c->len > SOME_IOVECS && c->len <= 1024)
		c->len = n;
}

static void random_range(struct thread *t, struct vcmd *c, unsigned int slot)
{
	struct virtio_blk_discard_write_zeroes *r = t->range[slot];
	static const uint32_t lens[] = { 16, 16, 16, 16, 32, 0, 15, 8 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		r[i].sector = write_sector(t);
		r[i].num_sectors = once(t, 10) ? ~0U - rnd(t, 9) :
			rnd(t, REACH / 512);
		r[i].flags = once(t, 6) ? 1U << rnd(t, 32) : 0;
		if (!once(t, 3)) {	/* as a disk may want it */
			r[i].sector &= ~7ULL;
			r[i].num_sectors &= ~7U;
		}
	}
	c->data = once(t, 30) ? 4096 : (uintptr_t)r;
	c->len = PICK(t, lens);
	c->uring_flags &= ~IORING_URING_CMD_FIXED;
	c->sector = once(t, 10) ? 8 : 0;
	/* a vectored list is a list of lists: only the plain ops here */
	c->op = op_is_64(c->op) ? VIRTBLK_URING_CMD_IO64 : VIRTBLK_URING_CMD_IO;
}

static bool is_range_type(uint32_t type)
{
	return type == VIRTIO_BLK_T_DISCARD || type == VIRTIO_BLK_T_WRITE_ZEROES ||
	       type == VIRTIO_BLK_T_SECURE_ERASE;
}

/* Most commands of a zone have to name its first sector */
static void random_zone(struct thread *t, struct vcmd *c)
{
	if (c->type == VIRTIO_BLK_T_ZONE_RESET_ALL)
		c->sector = once(t, 8) ? 8 : 0;
	else if (t->rw == c->fd && once(t, 2))
		c->sector = AREA_OF(t->id) / 512;
	if (c->type != VIRTIO_BLK_T_ZONE_APPEND && !once(t, 4))
		c->len = 0;
}

static bool is_zone_type(uint32_t type)
{
	return type == VIRTIO_BLK_T_ZONE_APPEND ||
	       type == VIRTIO_BLK_T_ZONE_OPEN || type == VIRTIO_BLK_T_ZONE_CLOSE ||
	       type == VIRTIO_BLK_T_ZONE_FINISH ||
	       type == VIRTIO_BLK_T_ZONE_RESET ||
	       type == VIRTIO_BLK_T_ZONE_RESET_ALL;
}

static void random_flags(struct thread *t, struct vcmd *c)
{
	c->ioprio = once(t, 12) ? random_next(&t->rnd) >> rnd(t, 64) : 0;
	if (once(t, 12))
		c->flag = random_next(&t->rnd) >> rnd(t, 64);
	if (once(t, 4))
		c->uring_flags = IORING_URING_CMD_FIXED;
	if (once(t, 30))
		c->uring_flags = 1U << rnd(t, 32);
	c->buf_index = rnd(t, SLOTS + 2);
	if (once(t, 6))
		c->sqe_flags |= IOSQE_ASYNC;
	if (once(t, 8))
		c->sqe_flags |= IOSQE_IO_LINK;
	if (once(t, 30))
		c->sqe_flags |= IOSQE_IO_HARDLINK;
	/*
	 * No IOSQE_IO_DRAIN: together with links and refused SQEs 6.12's
	 * io_uring loses count and never starts what waits for the drain, also
	 * with commands that never leave the driver (rings.c tests it alone).
	 */
}

/* What only CAP_SYS_RAWIO may send, and mostly nothing with it */
static void random_raw(struct thread *t, struct vcmd *c)
{
	c->type = 64 + rnd(t, 1U << 20);
	c->flag = c->ioprio = 0;
	c->uring_flags = once(t, 3) ? 0 : IORING_URING_CMD_FIXED;
	c->buf_index = rnd(t, SLOTS);
	c->len = once(t, 3) ? random_len(t) : 0;
	c->data = once(t, 2) ? 0 : (uintptr_t)t->ground.slot[c->buf_index];
}

static void random_command(struct thread *t, struct vcmd *c, unsigned int slot)
{
	static const uint32_t ops[] = { 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4 };
	bool rw = !t->scribbled && !once(t, 4);

	memset(c, 0, sizeof(*c));
	c->fd = rw ? t->rw : once(t, 8) && !t->scribbled ? -1 : t->ro;
	c->op = PICK(t, ops);
	c->type = random_type(t);
	c->sector = rw ? write_sector(t) : any_sector(t);
	if (c->type == VIRTIO_BLK_T_IN)
		c->sector = any_sector(t);
	random_flags(t, c);
	c->len = random_len(t);
	c->data = random_addr(t, c->len);
	/* a long write must not leave the thread's area */
	if (is_range_type(c->type))
		random_range(t, c, slot);
	else if (c->op == VIRTBLK_URING_CMD_IO_VEC ||
		 c->op == VIRTBLK_URING_CMD_IO64_VEC)
		random_vec(t, c, slot);
	else if (c->type != VIRTIO_BLK_T_IN && c->len == 0 && once(t, 2))
		c->sector = 0;
	if (once(t, 100) && (c->op == VIRTBLK_URING_CMD_IO ||
			     c->op == VIRTBLK_URING_CMD_IO64))
		random_raw(t, c);
	if (is_zone_type(c->type))
		random_zone(t, c);
	if (c->type == VIRTIO_BLK_T_GET_ID || c->type == VIRTIO_BLK_T_FLUSH ||
	    c->type == VIRTIO_BLK_T_GET_LIFETIME)
		c->sector = once(t, 8) ? 8 : 0;
	if (c->type == VIRTIO_BLK_T_FLUSH && !once(t, 4))
		c->len = 0;
	if (c->type == VIRTIO_BLK_T_GET_LIFETIME && !once(t, 4))
		c->len = 6;	/* struct virtio_blk_lifetime, newer than some headers */
	if (once(t, 100))
		c->op = random_next(&t->rnd) >> rnd(t, 64);
	t->batch.must_fail[slot] = !t->scribbled && c->fd != t->rw &&
		c->type == VIRTIO_BLK_T_OUT;
}

/* ---- rings ---- */

static void random_ring(struct thread *t)
{
	static const unsigned int flags[] = { 0, 0, IORING_SETUP_IOPOLL,
		IORING_SETUP_SQPOLL, IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_IOPOLL | IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL,
		IORING_SETUP_IOPOLL | IORING_SETUP_HYBRID_IOPOLL };
	unsigned int setup;
	int ret;

	do {
		setup = t->scribbled ? IORING_SETUP_SQPOLL : PICK(t, flags);
		setup |= once(t, 3) ? 0 : IORING_SETUP_SQE128;
		setup |= once(t, 3) ? 0 : IORING_SETUP_CQE32;
		ret = ring_try(&t->r, BATCH, setup);
	} while (ret == -EINVAL);
	want_res(ret, 0, "a ring with flags %#x", setup);
	ground_register(&t->ground, &t->r);
}

static void one_batch(struct thread *t)
{
	struct batch *b = &t->batch;
	unsigned int i;

	b->n = 1 + rnd(t, BATCH);
	for (i = 0; i < b->n; i++)
		random_command(t, &b->cmd[i], i);
	batch_run(b, &t->r);
	t->count += b->n;
}

/* Rewrites what the driver decides by, under SQPOLL and a read-only file */
static void *scribble(void *arg)
{
	struct thread *t = arg;
	uint64_t state = seed ^ 0x5c61bb1e;

	while (!stop) {
		char *sqes = __atomic_load_n((char **)&t->r.u.sq.sqes,
					     __ATOMIC_RELAXED);
		uint64_t v = random_next(&state);
		size_t size = t->r.setup & IORING_SETUP_SQE128 ? 128 : 64;

		*(volatile uint32_t *)(sqes + v % BATCH * size + 48 +
				       (v >> 8) % 4 * 4) = v >> 40 & 15;
	}
	return NULL;
}

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	uint64_t want = getenv("FUZZ_COUNT") ? strtoull(getenv("FUZZ_COUNT"), NULL,
			0) : t_rounds(50000, 1000000);
	unsigned int batches = 0;
	pthread_t scribbler;

	want /= THREADS;
	t->rnd = mix64(seed + 1) + t->id;
	ground_make(&t->ground, SLOT_SIZE);
	snprintf(t->batch.about, sizeof(t->batch.about), "seed %llu",
		 (unsigned long long)seed);
	random_ring(t);
	if (t->scribbled)
		pthread_create(&scribbler, NULL, scribble, t);
	while (t->count < want) {
		/* the scribbler holds on to the first ring's memory */
		if (!t->scribbled && ++batches % 32 == 0) {
			ring_close(&t->r);
			random_ring(t);
			ground_check(&t->ground);
		}
		one_batch(t);
	}
	ground_check(&t->ground);
	return NULL;
}

static void test_fuzz(const void *arg)
{
	static struct thread t[THREADS];
	unsigned int i;

	window_fill();
	for (i = 0; i < THREADS; i++) {
		t[i].id = i;
		t[i].rw = i ? open_chr(O_RDWR) : -1;
		t[i].ro = open_chr(O_RDONLY);
		t[i].scribbled = i == 0;
		pthread_create(&t[i].pthread, NULL, run_thread, &t[i]);
	}
	for (i = 1; i < THREADS; i++)
		pthread_join(t[i].pthread, NULL);
	pthread_join(t[0].pthread, NULL);
	stop = true;
	window_check(1, THREADS - 1);
}

int main(int argc, char **argv)
{
	t_start(argc, argv, "Random commands. FUZZ_SEED=N repeats a run,\n"
		"FUZZ_COUNT=N sets the number of commands.");
	seed = getenv("FUZZ_SEED") ? strtoull(getenv("FUZZ_SEED"), NULL, 0)
		: now_ms() ^ (uint64_t)getpid() << 40;
	seed %= 1000000000;
	t_limit(120 + soak_minutes * 60);
	printf("# seed %llu\n", (unsigned long long)seed);
	t_run("fuzz", test_fuzz, NULL);
	return t_end();
}
