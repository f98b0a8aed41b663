// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a CQE says: res and big_cqe[0], by interrupt and polled, good and bad
 *
 * The disk fails reads and writes of sector BAD_IO and writes of sector
 * BAD_WRITE with an I/O error (QEMU's blkdebug); the rest is good.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define BAD_IO		4096
#define GOOD		8192
#define DEPTH		64

static const unsigned int irq, polled = IORING_SETUP_IOPOLL;

static void want_answer(struct ring *r, const struct vcmd *c, int res,
			uint64_t big0, const char *what)
{
	struct answer a = ring_do(r, c);

	want_res(a.res, res, "%s", what);
	want_eq(a.big0, r->setup & IORING_SETUP_CQE32 ? big0 : 0,
		"%s: big_cqe[0]", what);
}

/* res and the raw status for one answer of each kind (P03, P04) */
static void test_answers(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDWR);
	struct vcmd in, bad, out, unknown, fault;
	struct ring r;

	need_poll(setup);
	ring_open(&r, 8, setup | IORING_SETUP_SQE128);
	in = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN, GOOD, buf, 512);
	bad = in;
	bad.sector = BAD_IO;
	out = bad;
	out.type = VIRTIO_BLK_T_OUT;
	unknown = in;
	unknown.type = 200;
	unknown.sector = 0;
	fault = in;
	fault.data = 4096;
	want_answer(&r, &in, 0, 0, "a good read");
	want_answer(&r, &bad, -EIO, VIRTIO_BLK_S_IOERR, "a failed read");
	want_answer(&r, &fault, -EFAULT, 0, "a bad pointer after a failed read");
	want_answer(&r, &out, -EIO, VIRTIO_BLK_S_IOERR, "a failed write");
	want_answer(&r, &in, 0, 0, "a good read after a failed write");
	want_answer(&r, &unknown, -EOPNOTSUPP, VIRTIO_BLK_S_UNSUPP,
		    "an unknown type");
	want_answer(&r, &in, 0, 0, "a good read after an unknown type");
	bad.sector = BAD_IO - 1;
	want_answer(&r, &bad, 0, 0, "the sector before the bad one");
	bad.sector = BAD_IO + 8;
	want_answer(&r, &bad, 0, 0, "the sectors behind the bad one");
	bad.sector = disk.bytes / 512;
	want_answer(&r, &bad, -EIO, VIRTIO_BLK_S_IOERR, "a read past the end");
}

/*
 * Good and bad in one batch: every CQE tells of its own command. A driver that
 * reads a status after the request is gone, or batches it away, fails here.
 */
static void test_mixed(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	unsigned int rounds = t_rounds(40, 2000), round, i;
	char *buf = map_pages(DEPTH * 512);
	int fd = open_chr(O_RDWR);
	bool seen[DEPTH];
	struct answer a;
	struct ring r;
	struct vcmd c;

	need_poll(setup);
	ring_open(&r, DEPTH, setup | WIDE);
	for (round = 0; round < rounds; round++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < DEPTH; i++) {
			c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN,
				 mix64(round * DEPTH + i) & 1 ? BAD_IO : GOOD + i,
				 buf + i * 512, 512);
			c.user_data = i | (uint64_t)(c.sector == BAD_IO) << 32;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < DEPTH; i++) {
			a = ring_take(&r);
			want_res(a.res, a.user_data >> 32 ? -EIO : 0,
				 "round %u command %u", round,
				 (unsigned int)a.user_data);
			want_eq(a.big0, a.user_data >> 32 ? VIRTIO_BLK_S_IOERR : 0,
				"round %u command %u: big_cqe[0]", round,
				(unsigned int)a.user_data);
			want_eq(seen[a.user_data % DEPTH], 0,
				"CQEs of command %u before",
				(unsigned int)a.user_data);
			seen[a.user_data % DEPTH] = true;
		}
	}
}

/* Two rings on the same poll queue keep their CQEs apart */
struct poller {
	unsigned int	id, rounds;
};

static void *poll_thread(void *arg)
{
	struct poller *p = arg;
	char *buf = map_pages(DEPTH * 512);
	int fd = open_chr(O_RDONLY);
	unsigned int round, i;
	bool seen[DEPTH];
	struct answer a;
	struct ring r;
	struct vcmd c;

	ring_open(&r, DEPTH, WIDE | IORING_SETUP_IOPOLL);
	for (round = 0; round < p->rounds; round++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < DEPTH; i++) {
			c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN,
				 i % 8 == p->id ? BAD_IO : GOOD + i,
				 buf + i * 512, 512);
			c.user_data = (uint64_t)p->id << 48 |
				(uint64_t)round << 16 | i;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < DEPTH; i++) {
			unsigned int n;

			a = ring_take(&r);
			n = a.user_data & 0xffff;
			want_eq(a.user_data >> 48, p->id, "owner of the CQE");
			want_eq(a.user_data >> 16 & 0xffffffff, round, "its round");
			want_res(a.res, n % 8 == p->id ? -EIO : 0,
				 "ring %u command %u", p->id, n);
			want_eq(seen[n % DEPTH], 0, "CQEs of command %u", n);
			seen[n % DEPTH] = true;
		}
	}
	return NULL;
}

static void test_two_pollers(const void *arg)
{
	struct poller p[3];
	pthread_t t[3];
	unsigned int i;

	need_poll(IORING_SETUP_IOPOLL);
	for (i = 0; i < 3; i++) {
		p[i] = (struct poller){ i, t_rounds(40, 3000) };
		pthread_create(&t[i], NULL, poll_thread, &p[i]);
	}
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

/* A command in a ring with 32-byte CQEs leaves nothing stale in big_cqe */
static void test_nothing_stale(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	struct io_uring_cqe *cqe;
	unsigned int i, k;
	struct ring r;
	struct vcmd c;

	need_poll(setup);
	ring_open(&r, 4, setup | WIDE);
	memset((char *)r.u.cq.cqes, 0xff, 8 * 32);
	for (i = 0; i < 64; i++) {
		for (k = 0; k < 2; k++) {
			c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN,
				 k == i % 2 ? BAD_IO : GOOD, buf, 512);
			if (i % 5 == 4 && k != i % 2)
				c.data = 4096;
			c.user_data = k == i % 2;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (k = 0; k < 2; k++) {
			if (io_uring_wait_cqe(&r.u, &cqe))
				fail("wait: got an error");
			want_eq(cqe->big_cqe[0], cqe->user_data ?
				VIRTIO_BLK_S_IOERR : 0, "big_cqe[0]");
			want_eq(cqe->big_cqe[1], 0, "big_cqe[1]");
			want_eq(cqe->flags, 0, "cqe->flags");
			io_uring_cqe_seen(&r.u, cqe);
		}
	}
}

/* Many good commands: none may come back as failed */
static void test_none_fails(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	unsigned int rounds = t_rounds(50, 2000), round, i;
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY);
	struct answer a;
	struct ring r;

	need_poll(setup);
	ring_open(&r, DEPTH, setup | WIDE);
	for (round = 0; round < rounds; round++) {
		ring_put_reads(&r, fd, GOOD * 512, 8, buf, DEPTH);
		ring_submit(&r);
		for (i = 0; i < DEPTH; i++) {
			a = ring_take(&r);
			want_res(a.res, 0, "round %u", round);
			want_eq(a.big0, 0, "round %u: big_cqe[0]", round);
		}
	}
}

/* 16-byte CQEs: the second half of a pair of CQEs belongs to the next one */
static void test_narrow_cqes(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	unsigned int i;
	struct answer a;
	struct ring r;
	struct vcmd c;

	need_poll(setup);
	ring_open(&r, 16, setup | IORING_SETUP_SQE128);
	for (i = 0; i < 400; i++) {
		c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN,
			 i % 3 ? GOOD : BAD_IO, buf, 512);
		c.user_data = 1000 + i;
		a = ring_do(&r, &c);
		want_eq(a.user_data, 1000 + i, "user_data");
		want_res(a.res, i % 3 ? 0 : -EIO, "command %u", i);
	}
}

int main(int argc, char **argv)
{
	static const unsigned int irq32 = IORING_SETUP_CQE32,
		polled32 = IORING_SETUP_IOPOLL | IORING_SETUP_CQE32;

	t_start(argc, argv, "What the CQEs say, on a disk with a bad sector.");
	t_run("P04-answers", test_answers, &irq32);
	t_run("P03-answers-polled", test_answers, &polled32);
	t_run("answers-16-byte-cqes", test_answers, &irq);
	t_run("answers-16-byte-cqes-polled", test_answers, &polled);
	t_run("mixed-batch", test_mixed, &irq);
	t_run("P03-mixed-batch-polled", test_mixed, &polled);
	t_run("two-rings-one-poll-queue", test_two_pollers, NULL);
	t_run("nothing-stale", test_nothing_stale, &irq);
	t_run("nothing-stale-polled", test_nothing_stale, &polled);
	t_run("good-stays-good", test_none_fails, &irq);
	t_run("good-stays-good-polled", test_none_fails, &polled);
	t_run("narrow-cqes", test_narrow_cqes, &irq);
	t_run("narrow-cqes-polled", test_narrow_cqes, &polled);
	return t_end();
}
