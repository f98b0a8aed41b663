// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every kind of ring, every way to submit
 *
 * Disks: 1 with a poll queue, 2 without one, 3 with a queue of few entries;
 * then device-mapper devices over 1 and 2.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AREA(n)		(512 * MiB + (n) * 4 * MiB)
#define IO		VIRTBLK_URING_CMD_IO
#define VEC		VIRTBLK_URING_CMD_IO_VEC
#define IO64		VIRTBLK_URING_CMD_IO64
#define VEC64		VIRTBLK_URING_CMD_IO64_VEC

static const unsigned int irq, polled = IORING_SETUP_IOPOLL;

static void use_disk(unsigned int n)
{
	if (!t_disk(n))
		skip("no disk of that kind given");
	disk_open(t_disk(n));
}

/* ---- every setup flag (P05) ---- */

struct setup {
	const char	*name;
	unsigned int	flags;
};

static const struct setup setups[] = {
	{ "plain", 0 },
	{ "SQPOLL", IORING_SETUP_SQPOLL },
	{ "IOPOLL", IORING_SETUP_IOPOLL },
	{ "SQPOLL+IOPOLL", IORING_SETUP_SQPOLL | IORING_SETUP_IOPOLL },
	{ "HYBRID_IOPOLL", IORING_SETUP_IOPOLL | IORING_SETUP_HYBRID_IOPOLL },
	{ "DEFER_TASKRUN", IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN },
	{ "DEFER_TASKRUN+IOPOLL", IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_IOPOLL },
	{ "SINGLE_ISSUER", IORING_SETUP_SINGLE_ISSUER },
	{ "COOP_TASKRUN", IORING_SETUP_COOP_TASKRUN },
	{ "COOP_TASKRUN+FLAG", IORING_SETUP_COOP_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG },
	{ "SUBMIT_ALL", IORING_SETUP_SUBMIT_ALL },
	{ "CLAMP", IORING_SETUP_CLAMP },
	{ "R_DISABLED", IORING_SETUP_R_DISABLED },
};

static int expected(uint32_t op, unsigned int flags)
{
	if (flags & IORING_SETUP_IOPOLL && !has_poll())
		return -EOPNOTSUPP;
	if (op_is_64(op))
		return has_io64() ? 0 : -EOPNOTSUPP;
	return flags & IORING_SETUP_SQE128 ? 0 : -EOPNOTSUPP;
}

static void test_setup(const void *arg)
{
	static const unsigned int sizes[] = { 0, IORING_SETUP_CQE32,
		IORING_SETUP_SQE128, WIDE };
	const struct setup *s = arg;
	char *buf = map_pages(8192), *ref = map_pages(4096);
	struct iovec iov = { buf, 4096 };
	int fd = open_chr(O_RDONLY);
	unsigned int i, flags;
	struct answer a;
	struct ring r;
	struct vcmd c;
	uint32_t op;

	blk_read(AREA(0), ref, 4096);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		flags = s->flags | sizes[i];
		ring_open(&r, 8, flags);
		if (flags & IORING_SETUP_R_DISABLED)
			syscall(__NR_io_uring_register, r.u.ring_fd,
				IORING_REGISTER_ENABLE_RINGS, NULL, 0);
		for (op = IO; op <= VEC64; op++) {
			memset(buf, 0xa5, 4096);
			c = vcmd(fd, op, VIRTIO_BLK_T_IN, AREA(0) / 512,
				 op % 2 ? (void *)buf : &iov, op % 2 ? 4096 : 1);
			ring_put(&r, &c);
			ring_submit(&r);
			if (!ring_take_within(&r, &a, 10000))
				fail("op %u, flags %#x: got no CQE in 10 s", op,
				     flags);
			want_res(a.res, expected(op, flags), "op %u, flags %#x",
				 op, flags);
			if (a.res == 0 && memcmp(buf, ref, 4096))
				fail("op %u, flags %#x: got other data", op, flags);
		}
		ring_close(&r);
	}
}

/* The same on a disk without poll queues (P07: promptly, not never) */
static void test_setup_unpolled(const void *arg)
{
	use_disk(1);
	want_eq(disk.info.poll_queues, 0, "poll queues of that disk");
	test_setup(arg);
}

/* ---- flags that this liburing doesn't know: the ring by hand ---- */

#define BY_HAND_CQES	4096	/* where they lie in memory of our own */

static unsigned char *by_hand_map(struct io_uring_params *p, int fd,
				  unsigned char *own, struct io_uring_sqe **sqes)
{
	unsigned char *ring = own;

	*sqes = (void *)(own + BY_HAND_CQES);
	if (p->flags & IORING_SETUP_NO_MMAP)
		return own;
	ring = mmap(NULL, p->cq_off.cqes + p->cq_entries * 32,
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	*sqes = mmap(NULL, p->sq_entries * 128, PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, IORING_OFF_SQES);
	if (ring == MAP_FAILED || *sqes == MAP_FAILED)
		fail("cannot map the ring: %s", strerror(errno));
	return ring;
}

static void test_setup_by_hand(const void *arg)
{
	const struct setup *s = arg;
	struct io_uring_params p = { .flags = WIDE | s->flags };
	unsigned int enter = IORING_ENTER_GETEVENTS;
	unsigned char *ring, *own = map_pages(2 * BY_HAND_CQES);
	char *buf = map_pages(4096), *ref = map_pages(4096);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct vcmd c;
	int fd;

	blk_read(AREA(0), ref, 4096);
	if (s->flags & IORING_SETUP_NO_MMAP) {
		p.cq_off.resv2 = (uintptr_t)own;
		p.sq_off.resv2 = (uintptr_t)own + BY_HAND_CQES;
	}
	if (s->flags & IORING_SETUP_REGISTERED_FD_ONLY)
		enter |= IORING_ENTER_REGISTERED_RING;
	fd = syscall(__NR_io_uring_setup, 4, &p);
	if (fd < 0 && errno == EINVAL)
		skip("this kernel has no ring with flags %#x", p.flags);
	if (fd < 0)
		fail("io_uring_setup: got %s", err_name(-errno));
	ring = by_hand_map(&p, fd, own, &sqe);
	c = vcmd(open_chr(O_RDONLY), IO, VIRTIO_BLK_T_IN, AREA(0) / 512, buf,
		 4096);
	sqe_fill(sqe, &c, true);
	if (!(s->flags & IORING_SETUP_NO_SQARRAY))
		*(unsigned int *)(ring + p.sq_off.array) = 0;
	__atomic_store_n((unsigned int *)(ring + p.sq_off.tail), 1,
			 __ATOMIC_RELEASE);
	want_res(syscall(__NR_io_uring_enter, fd, 1, 1, enter, NULL, 0), 1,
		 "io_uring_enter");
	cqe = (void *)(ring + p.cq_off.cqes);
	want_res(cqe->res, 0, "IN");
	if (memcmp(buf, ref, 4096))
		fail("IN: got other data than by block");
}

/* ---- rings that mix sizes: Linux 6.19, no liburing here knows them ---- */

#define SETUP_MIXED	(1U << 18 | 1U << 19)	/* CQE_MIXED, SQE_MIXED */
#define OP_URING_CMD128	64
#define CQE_F_32	(1U << 15)

struct mixed {
	int			fd;
	unsigned char		*ring;
	struct io_uring_params	p;
	struct io_uring_sqe	*sqes;
	unsigned int		sq, cq;		/* both in small entries */
};

static void mixed_open(struct mixed *m)
{
	memset(m, 0, sizeof(*m));
	m->p.flags = SETUP_MIXED | IORING_SETUP_NO_SQARRAY;
	m->fd = syscall(__NR_io_uring_setup, 16, &m->p);
	if (m->fd < 0 && errno == EINVAL)
		skip("this kernel has no mixed rings");
	if (m->fd < 0)
		fail("io_uring_setup: got %s", err_name(-errno));
	m->ring = by_hand_map(&m->p, m->fd, NULL, &m->sqes);
}

/* One command in a small SQE or a big one; its CQE, and whether that is big */
static bool mixed_do(struct mixed *m, const struct vcmd *c, bool big,
		     int res, uint64_t status)
{
	struct io_uring_sqe *sqe = &m->sqes[m->sq];
	unsigned int n = big ? 2 : 1;
	struct io_uring_cqe *cqe;
	bool is_big;

	sqe_fill(sqe, c, big);
	if (big)
		sqe->opcode = OP_URING_CMD128;
	m->sq += n;
	__atomic_store_n((unsigned int *)(m->ring + m->p.sq_off.tail), m->sq,
			 __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, m->fd, n, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) < 1)
		fail("io_uring_enter: got %s", err_name(-errno));
	cqe = (void *)(m->ring + m->p.cq_off.cqes + 16 * m->cq);
	is_big = cqe->flags & CQE_F_32;
	want_res(cqe->res, res, "op %u in %u bytes", c->op, 64 * n);
	want_eq(is_big ? cqe->big_cqe[0] : 0, status, "big_cqe[0]");
	m->cq += is_big ? 2 : 1;
	want_eq(*(unsigned int *)(m->ring + m->p.cq_off.tail), m->cq,
		"entries of the completion queue");
	__atomic_store_n((unsigned int *)(m->ring + m->p.cq_off.head), m->cq,
			 __ATOMIC_RELEASE);
	return is_big;
}

/* A CQE is big only if it has something to say; an op fits the SQE it is in */
static void test_mixed(const void *arg)
{
	char *buf = map_pages(4096), *ref = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	struct mixed m;
	struct vcmd c;

	blk_read(AREA(0), ref, 4096);
	mixed_open(&m);
	c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(0) / 512, buf, 4096);
	want_eq(mixed_do(&m, &c, true, 0, 0), false, "big CQE for a good IN");
	if (memcmp(buf, ref, 4096))
		fail("IN: got other data than by block");
	mixed_do(&m, &c, false, -EOPNOTSUPP, 0);
	c.op = IO64;
	want_eq(mixed_do(&m, &c, false, 0, 0), false, "big CQE for IO64");
	c = vcmd(fd, IO, VIRTIO_BLK_T_IN, disk.bytes / 512, buf, 4096);
	want_eq(mixed_do(&m, &c, true, -EIO, VIRTIO_BLK_S_IOERR), true,
		"big CQE for a failed IN");
	c.op = IO64;
	want_eq(mixed_do(&m, &c, false, -EIO, VIRTIO_BLK_S_IOERR), true,
		"big CQE for a failed IO64");
}

static void run_setups_by_hand(void)
{
	static const struct setup setups[] = {
		{ "P05-NO_SQARRAY", IORING_SETUP_NO_SQARRAY },
		{ "P05-NO_MMAP", IORING_SETUP_NO_MMAP },
		{ "P05-NO_MMAP+REGISTERED_FD_ONLY", IORING_SETUP_NO_MMAP |
			IORING_SETUP_REGISTERED_FD_ONLY },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(setups); i++)
		t_run(setups[i].name, test_setup_by_hand, &setups[i]);
	t_run("P05-mixed-sizes", test_mixed, NULL);
}

/* ---- polled rings ---- */

/* Submitting alone must bring CQEs, and an early close no busy kernel (P06) */
static void test_submit_reaps(const void *arg)
{
	char *buf = map_pages(32 * 4096);
	int fd = open_chr(O_RDONLY);
	struct io_uring_cqe *cqe;
	uint64_t begin = now_ms();
	struct ring r;

	need_poll(polled);
	ring_open(&r, 64, WIDE | polled);
	ring_put_reads(&r, fd, AREA(0), 8, buf, 32);
	while (io_uring_cq_ready(&r.u) == 0) {
		ring_submit(&r);
		if (now_ms() - begin > 5000)
			fail("CQEs after 5 s of io_uring_submit: got 0, wanted some");
	}
	while (io_uring_peek_cqe(&r.u, &cqe) == 0)
		io_uring_cqe_seen(&r.u, cqe);
}

static unsigned long kworker_ticks(void)
{
	DIR *d = opendir("/proc");
	unsigned long u, s, sum = 0;
	struct dirent *e;
	char path[300], name[64];
	FILE *f;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%60[^)]) %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lu %lu",
			   name, &u, &s) == 3 &&
		    (!strncmp(name, "kworker", 7) || !strncmp(name, "iou", 3)))
			sum += u + s;
		fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

static void test_close_unreaped(const void *arg)
{
	char *buf = map_pages(32 * 4096);
	int fd = open_chr(O_RDONLY);
	unsigned long before, busy;
	uint64_t begin;
	struct ring r;

	need_poll(polled);
	ring_open(&r, 64, WIDE | polled);
	ring_put_reads(&r, fd, AREA(0), 8, buf, 32);
	ring_submit(&r);
	ring_close(&r);
	/* a worker that spins uses every tick; quiet is below a fifth of them */
	begin = now_ms();
	do {
		before = kworker_ticks();
		pause_ms(500);
		busy = kworker_ticks() - before;
	} while (busy > 10 && now_ms() - begin < 5000);
	if (busy > 10)
		fail("kworkers 5 s after the close: got %lu ticks of 50 used",
		     busy);
}

/* An IOPOLL ring and ordinary block reads in one process (P22) */
static void test_polled_and_block(const void *arg)
{
	char *buf = map_pages(8192);
	int fd = open_chr(O_RDONLY), i;
	struct ring r;
	struct vcmd c;

	need_poll(polled);
	ring_open(&r, 8, WIDE | polled);
	for (i = 0; i < 50; i++) {
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(0) / 512, buf, 4096);
		ring_put(&r, &c);
		ring_submit(&r);
		blk_read(AREA(0), buf + 4096, 4096);
		want_res(ring_take(&r).res, 0, "polled read");
		if (memcmp(buf, buf + 4096, 4096))
			fail("polled and block read: got different data");
	}
}

/*
 * A device-mapper device over the disk, polled, and the node meanwhile: one
 * that cannot poll says so, none waits for ever (V35)
 */
static void test_stacked(const void *arg)
{
	unsigned int n = *(const unsigned int *)arg, i;
	char *buf = map_pages(5 * 4096), path[64];
	struct io_uring_sqe *sqe;
	struct ring over, r;
	struct answer a;
	int fd, dm;

	if (!t_disk(3 + n))
		skip("no device-mapper device given");
	snprintf(path, sizeof(path), "/dev/%s", t_disk(3 + n));
	use_disk(n);
	fd = open_chr(O_RDONLY);
	dm = open(path, O_RDONLY | O_DIRECT);
	if (dm < 0)
		fail("%s: %s", path, strerror(errno));
	ring_open(&over, 4, polled);
	ring_open(&r, 4, WIDE | (has_poll() ? polled : irq));
	for (i = 0; i < 50; i++) {
		sqe = ring_sqe(&over);
		io_uring_prep_read(sqe, dm, buf + 4 * 4096, 4096, AREA(0));
		ring_put_reads(&r, fd, AREA(0), 8, buf, 4);
		ring_enter(&over);
		ring_enter(&r);
		if (!ring_take_within(&over, &a, 10000))
			fail("polled read of %s: got no CQE in 10 s", path);
		if (a.res != 4096 && a.res != -EOPNOTSUPP)
			fail("polled read of %s: got %s, wanted 4096 or -EOPNOTSUPP",
			     path, err_name(a.res));
		ring_want_done(&r, 4, "IN beside it");
		if (a.res == 4096 && memcmp(buf, buf + 4 * 4096, 4096))
			fail("polled read of %s: got other data", path);
	}
}

/* Polled and interrupt-driven commands from one CPU (P15) */
static void test_mixed_rings(const void *arg)
{
	unsigned int rounds = t_rounds(300, 20000), i;
	char *buf = map_pages(32 * 4096);
	int fd = open_chr(O_RDONLY);
	struct ring r[2];
	cpu_set_t set;

	need_poll(polled);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	ring_open(&r[0], 32, WIDE);
	ring_open(&r[1], 32, WIDE | polled);
	for (i = 0; i < rounds; i++) {
		ring_put_reads(&r[0], fd, AREA(0), 8, buf, 16);
		ring_put_reads(&r[1], fd, AREA(0), 8, buf + 16 * 4096, 16);
		ring_submit(&r[i % 2]);
		ring_submit(&r[!(i % 2)]);
		ring_want_done(&r[0], 16, "round %u", i);
		ring_want_done(&r[1], 16, "round %u, polled", i);
	}
}

/* ---- the full matrix (P08) ---- */

#define M_CMDS		4
#define M_LEN		(32 * KiB)
#define M_ROOM		(M_LEN + 10 * 512)	/* pieces lie 512 bytes apart */

struct matrix {
	unsigned int	setup;
	/* the inner half; fixed: buffer and file are registered */
	bool		fixed, async, linked, write;
	unsigned int	iovecs;			/* 0: not vectored */
	uint64_t	seed;
	struct ring	r;
	int		fd, blk;
	char		*arena, *ref;
	struct iovec	iov[M_CMDS][9];
};

static const char *m_name(const struct matrix *m)
{
	static char text[100];

	snprintf(text, sizeof(text), "%s%s%s%s, %u iovecs",
		 m->write ? "write" : "read", m->fixed ? " fixed" : "",
		 m->async ? " async" : "", m->linked ? " linked" : "", m->iovecs);
	return text;
}

static void m_iovecs(struct matrix *m, unsigned int cmd)
{
	unsigned int n = m->iovecs ? m->iovecs : 1, i;
	size_t done = 0, part;

	for (i = 0; i < n; i++) {
		part = i == n - 1 ? M_LEN - done : M_LEN / n / 512 * 512;
		m->iov[cmd][i] = (struct iovec){ m->arena + cmd * M_ROOM +
			done + i * 512, part };
		done += part;
	}
}

/* what: 0 fill with the pattern, 1 check it, 2 wipe */
static void m_content(struct matrix *m, unsigned int cmd, int what)
{
	unsigned int n = m->iovecs ? m->iovecs : 1, i;
	uint64_t off = AREA(1) + cmd * M_LEN;

	if (what != 1)
		memset(m->arena + cmd * M_ROOM, 0xa5, M_ROOM);
	for (i = 0; i < n; i++) {
		struct iovec *v = &m->iov[cmd][i];

		if (what == 0)
			pattern_fill(v->iov_base, v->iov_len, off, m->seed);
		if (what == 1)
			want_pattern(v->iov_base, v->iov_len, off, m->seed,
				     m_name(m));
		if (what == 1)
			want_byte((char *)v->iov_base + v->iov_len, 512, 0xa5,
				  "behind a piece");
		off += v->iov_len;
	}
}

static void m_submit(struct matrix *m)
{
	uint32_t plain = m->setup & IORING_SETUP_SQE128 ? IO : IO64;
	unsigned int i;
	struct vcmd c;

	for (i = 0; i < M_CMDS; i++) {
		c = vcmd(m->fd, plain + !!m->iovecs,
			 m->write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN,
			 (AREA(1) + i * M_LEN) / 512, m->iov[i], m->iovecs);
		if (!m->iovecs) {
			c.data = (uintptr_t)m->iov[i][0].iov_base;
			c.len = M_LEN;
		}
		c.uring_flags = m->fixed ? IORING_URING_CMD_FIXED : 0;
		c.sqe_flags = (m->async ? IOSQE_ASYNC : 0) |
			(m->linked && i < M_CMDS - 1 ? IOSQE_IO_LINK : 0);
		if (m->fixed) {
			c.fd = 0;
			c.sqe_flags |= IOSQE_FIXED_FILE;
		}
		c.user_data = i;
		ring_put(&m->r, &c);
	}
	ring_submit(&m->r);
}

static void m_transfer(struct matrix *m, bool write)
{
	bool refused = m->fixed && m->iovecs && !has_fixed_vec();
	unsigned int i;
	struct answer a;
	int want;

	m->write = write;
	m_submit(m);
	for (i = 0; i < M_CMDS; i++) {
		a = ring_take(&m->r);
		want = !refused ? 0 : m->linked && a.user_data ? -ECANCELED
			: -EOPNOTSUPP;
		want_res(a.res, want, "%s, command %u", m_name(m),
			 (unsigned int)a.user_data);
	}
}

static void m_one(struct matrix *m)
{
	unsigned int i;

	m->seed++;
	for (i = 0; i < M_CMDS; i++) {
		m_iovecs(m, i);
		m_content(m, i, 0);
	}
	m_transfer(m, true);
	if (m->fixed && m->iovecs && !has_fixed_vec())
		return;
	if (pread(m->blk, m->ref, M_CMDS * M_LEN, AREA(1)) != M_CMDS * M_LEN)
		fail("block read: %s", strerror(errno));
	want_pattern(m->ref, M_CMDS * M_LEN, AREA(1), m->seed, m_name(m));
	for (i = 0; i < M_CMDS; i++)
		m_content(m, i, 2);
	m_transfer(m, false);
	for (i = 0; i < M_CMDS; i++)
		m_content(m, i, 1);
}

static void test_matrix(const void *arg)
{
	static const unsigned int counts[] = { 0, 1, 3, 9 };
	struct matrix m = *(const struct matrix *)arg;
	struct iovec reg;
	unsigned int i, k;

	need_poll(m.setup);
	if (!(m.setup & IORING_SETUP_SQE128) && !has_io64())
		skip("the driver has no IO64 here");
	m.fd = open_chr(O_RDWR);
	m.blk = open_blk(O_RDONLY | O_DIRECT);
	m.arena = map_pages(M_CMDS * M_ROOM);
	m.ref = map_pages(M_CMDS * M_LEN);
	ring_open(&m.r, 64, m.setup);
	reg = (struct iovec){ m.arena, M_CMDS * M_ROOM };
	want_res(io_uring_register_buffers(&m.r.u, &reg, 1), 0, "registering");
	want_res(io_uring_register_files(&m.r.u, &m.fd, 1), 0, "register files");
	for (i = 0; i < 8; i++)
		for (k = 0; k < ARRAY_SIZE(counts); k++) {
			m.fixed = i & 1;
			m.async = i & 2;
			m.linked = i & 4;
			m.iovecs = counts[k];
			m_one(&m);
		}
}

static void run_matrix(void)
{
	static const struct setup sizes[] = { { "SQE128", WIDE }, { "SQE64", 0 } },
		polls[] = { { "", 0 }, { "-IOPOLL", IORING_SETUP_IOPOLL },
		{ "-HYBRID", IORING_SETUP_IOPOLL | IORING_SETUP_HYBRID_IOPOLL } },
		/* io_uring doesn't take SQPOLL and DEFER_TASKRUN together */
		tasks[] = { { "", 0 }, { "-SQPOLL", IORING_SETUP_SQPOLL },
		{ "-DEFER", IORING_SETUP_SINGLE_ISSUER |
			IORING_SETUP_DEFER_TASKRUN } };
	unsigned int s, p, t;
	struct matrix m = { 0 };
	char name[80];

	for (s = 0; s < ARRAY_SIZE(sizes); s++)
		for (p = 0; p < ARRAY_SIZE(polls); p++)
			for (t = 0; t < ARRAY_SIZE(tasks); t++) {
				m.setup = sizes[s].flags | polls[p].flags |
					tasks[t].flags;
				snprintf(name, sizeof(name), "P08-matrix-%s%s%s",
					 sizes[s].name, tasks[t].name,
					 polls[p].name);
				t_run(name, test_matrix, &m);
			}
}

/* ---- what other threads rewrite ---- */

static volatile bool racing;

struct race {
	char		*sqes;
	size_t		size, type_at;
	unsigned int	n;
	struct iovec	*iov;
	struct virtio_blk_discard_write_zeroes *range;
	char		*buf;
};

static void *flip_types(void *arg)
{
	struct race *race = arg;
	unsigned int i = 0;

	while (racing) {
		*(volatile uint32_t *)(race->sqes + i % race->n * race->size +
				       race->type_at) = i / race->n % 2;
		i++;
	}
	return NULL;
}

/* Types flip in the shared SQEs; a read-only descriptor stays one (P18) */
static void test_type_racer(const void *arg)
{
	uint32_t op = *(const uint32_t *)arg;
	uint64_t end = now_ms() + t_rounds(2000, 60000);
	char *buf = map_pages(64 * 4096), *ref = map_pages(64 * 4096);
	int fd = open_chr(O_RDONLY);
	unsigned int i, sent = 0, refused = 0;
	struct race race;
	struct answer a;
	pthread_t t;
	struct ring r;
	struct vcmd c;

	if (op_is_64(op) && !has_io64())
		skip("the driver has no IO64 here");
	pattern_fill(ref, 64 * 4096, AREA(2), 18);
	blk_write(AREA(2), ref, 64 * 4096);
	memset(buf, 0xee, 64 * 4096);
	ring_open(&r, 64, IORING_SETUP_SQPOLL | (op_is_64(op) ? 0 : WIDE));
	race = (struct race){ .sqes = (char *)r.u.sq.sqes, .n = 64,
		.size = op_is_64(op) ? 64 : 128,
		.type_at = op_is_64(op) ? 48 + 8 : 48 };
	racing = true;
	pthread_create(&t, NULL, flip_types, &race);
	/* on a busy machine the racer's turn may come late */
	while (now_ms() < end || (!refused && now_ms() < end + 10000)) {
		for (i = 0; i < 32; i++, sent++) {
			c = vcmd(fd, op, VIRTIO_BLK_T_IN, AREA(2) / 512 + 8 * i,
				 buf + i * 4096, 4096);
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < 32; i++) {
			a = ring_take(&r);
			if (a.res == -EACCES)
				refused++;
			else
				want_res(a.res, 0, "a raced command");
		}
	}
	racing = false;
	pthread_join(t, NULL);
	blk_read(AREA(2), buf, 64 * 4096);
	want_pattern(buf, 64 * 4096, AREA(2), 18, "the disk");
	if (!refused)
		skip("no flip was seen in %u commands", sent);
}

static void *flip_iovecs(void *arg)
{
	struct race *race = arg;
	static const size_t lens[] = { 512, 513, 4096, 1UL << 40, 0, -1UL };
	unsigned int i = 0;

	while (racing) {
		*(volatile size_t *)&race->iov[0].iov_len = lens[i % 6];
		*(void *volatile *)&race->iov[0].iov_base =
			i % 7 ? race->buf : (void *)4096;
		i++;
	}
	return NULL;
}

struct racer {
	unsigned int	setup;
	int		mode;		/* of the descriptor */
};

/*
 * Lengths and bases flip under a write, or under a read by a descriptor that
 * may do no more: only whole legal ones take place
 */
static void test_iovec_racer(const void *arg)
{
	const struct racer *how = arg;
	uint32_t type = how->mode == O_RDONLY ? VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT;
	uint64_t end = now_ms() + t_rounds(1500, 60000);
	char *ref = map_pages(64 * KiB), *around = map_pages(3 * 4096);
	char *buf = around + 4096;
	struct iovec *iov = map_pages(4096);
	struct race race = { .iov = iov, .buf = buf };
	int fd = open_chr(how->mode);
	unsigned int done = 0;
	struct answer a;
	pthread_t t;
	struct ring r;
	struct vcmd c;

	pattern_fill(ref, 64 * KiB, AREA(3), 1);
	blk_write(AREA(3), ref, 64 * KiB);
	memset(around, 0xee, 3 * 4096);
	iov[0] = (struct iovec){ buf, 512 };
	ring_open(&r, 8, WIDE | how->setup);
	racing = true;
	pthread_create(&t, NULL, flip_iovecs, &race);
	while (now_ms() < end) {
		c = vcmd(fd, VEC, type, AREA(3) / 512, iov, 1);
		a = ring_do(&r, &c);
		if (a.res == 0)
			done++;
		else if (a.res != -EINVAL && a.res != -EFAULT)
			fail("got %s, wanted 0, -EINVAL or -EFAULT",
			     err_name(a.res));
		want_eq(a.big0, 0, "big_cqe[0]");
	}
	racing = false;
	pthread_join(t, NULL);
	blk_read(AREA(3), ref, 64 * KiB);
	want_pattern(ref + 4096, 60 * KiB, AREA(3) + 4096, 1, "behind 4 KiB");
	want_byte(around, 4096, 0xee, "the memory before");
	want_byte(buf + 4096, 4096, 0xee, "the memory behind");
	if (!done)
		skip("no legal combination was hit");
}

static void *flip_ranges(void *arg)
{
	struct race *race = arg;
	unsigned int i = 0;

	/* They differ in a byte: a copy made byte by byte is one or the other. */
	while (racing) {
		*(volatile uint32_t *)&race->range->num_sectors =
			i % 2 ? 8 : 0xff000008;
		*(volatile uint32_t *)&race->range->flags = i % 3 ? 0 : 1 << 7;
		i++;
	}
	return NULL;
}

/* The list that was checked is the list that is sent */
static void test_range_racer(const void *arg)
{
	const struct racer *how = arg;
	uint64_t end = now_ms() + t_rounds(1500, 60000);
	char *ref = map_pages(64 * KiB);
	struct virtio_blk_discard_write_zeroes *range = map_pages(4096);
	struct race race = { .range = range };
	int fd = open_chr(how->mode);
	unsigned int done = 0;
	struct answer a;
	pthread_t t;
	struct ring r;
	struct vcmd c;

	if (!has_command(VIRTIO_BLK_T_WRITE_ZEROES))
		skip("the disk has no WRITE_ZEROES");
	pattern_fill(ref, 64 * KiB, AREA(4), 1);
	blk_write(AREA(4), ref, 64 * KiB);
	range->sector = AREA(4) / 512;
	range->num_sectors = 8;
	ring_open(&r, 8, WIDE | how->setup);
	racing = true;
	pthread_create(&t, NULL, flip_ranges, &race);
	while (now_ms() < end) {
		c = vcmd(fd, IO, VIRTIO_BLK_T_WRITE_ZEROES, 0, range, 16);
		a = ring_do(&r, &c);
		done += a.res == 0;
		if (how->mode == O_RDONLY)
			want_res(a.res, -EACCES, "by a descriptor for reading");
		else if (a.res != 0 && a.res != -EINVAL)
			fail("got %s, wanted 0 or -EINVAL", err_name(a.res));
		want_eq(a.big0, 0, "big_cqe[0]");
	}
	racing = false;
	pthread_join(t, NULL);
	blk_read(AREA(4), ref, 64 * KiB);
	want_pattern(ref + 4096, 60 * KiB, AREA(4) + 4096, 1, "behind the range");
	if (how->mode == O_RDONLY)
		want_pattern(ref, 4096, AREA(4), 1, "the range");
	else if (!done)
		skip("no legal combination was hit");
}

/* ---- more commands than tags ---- */

struct flood {
	uint32_t	op;
	unsigned int	setup, depth;
	bool		reuse, async;
};

/*
 * Far more commands than the queue has entries, and the SQEs overwritten as
 * soon as they were submitted: whatever is punted keeps its own copy.
 */
static void test_flood(const void *arg)
{
	const struct flood *f = arg;
	bool wide = !op_is_64(f->op);
	unsigned int rounds = t_rounds(3, 60), n = f->depth, i, k;
	char *buf = map_pages(n * 512ULL);
	int fd;
	struct ring r;
	struct vcmd c;

	use_disk(2);
	need_poll(f->setup);
	fd = open_chr(O_RDWR);
	if (!wide && !has_io64())
		skip("the driver has no IO64 here");
	ring_open(&r, n, f->setup | (wide ? WIDE : 0));
	for (i = 0; i < 2 * rounds; i++) {
		for (k = 0; k < n; k++) {
			uint64_t off = AREA(5) + k * 512;

			if (i % 2)
				memset(buf + k * 512, 0xa5, 512);
			else
				pattern_fill(buf + k * 512, 512, off, i);
			c = vcmd(fd, f->op, i % 2 ? VIRTIO_BLK_T_IN :
				 VIRTIO_BLK_T_OUT, off / 512, buf + k * 512, 512);
			c.sqe_flags = f->async ? IOSQE_ASYNC : 0;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		if (f->reuse)
			memset((char *)r.u.sq.sqes, 0xff, n * (wide ? 128 : 64));
		ring_want_done(&r, n, "round %u of %u commands", i, n);
		if (i % 2)
			want_pattern(buf, n * 512, AREA(5), i - 1, "flood");
	}
}

/* Block I/O and passthrough fight for the same tags, by many threads */
struct fight {
	unsigned int	disk;
	const char	*sched;
	unsigned int	ms;	/* of a long form */
};

static volatile bool stop;
static uint64_t progress[8];

static void *fight_thread(void *arg)
{
	unsigned int id = *(unsigned int *)arg, i;
	char *buf = map_pages(64 * 4096);
	int fd = id % 2 ? open_blk(O_RDONLY | O_DIRECT) : open_chr(O_RDONLY);
	struct iovec iov[64][8];
	struct io_uring_sqe *sqe;
	struct answer a;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 64, WIDE);
	while (!stop) {
		for (i = 0; i < 64; i++) {
			unsigned int k;

			for (k = 0; k < 8; k++)
				iov[i][k] = (struct iovec){ buf + (i + k * 7) %
					64 * 4096, 512 };
			if (id % 2) {
				sqe = ring_sqe(&r);
				io_uring_prep_readv(sqe, fd, iov[i], 8,
						    AREA(6) + i * 4096);
				continue;
			}
			c = vcmd(fd, VEC, VIRTIO_BLK_T_IN, AREA(6) / 512 + i * 8,
				 iov[i], 8);
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < 64; i++) {
			a = ring_take(&r);
			want_res(a.res, id % 2 ? 4096 : 0, "thread %u", id);
			__atomic_fetch_add(&progress[id], 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void test_fight(const void *arg)
{
	const struct fight *f = arg;
	uint64_t end = now_ms() + t_rounds(3000, f->ms), last[8] = { 0 };
	unsigned int id[8], i, idle = 0;
	pthread_t t[8];

	use_disk(f->disk);
	want_res(sys_write(f->sched, "/sys/block/%s/queue/scheduler", disk.name),
		 0, "scheduler %s", f->sched);
	for (i = 0; i < 8; i++) {
		id[i] = i;
		pthread_create(&t[i], NULL, fight_thread, &id[i]);
	}
	while (now_ms() < end) {
		pause_ms(1000);
		/* under TCG on a busy machine one thread may starve, not all */
		uint64_t sum = 0;

		for (i = 0; i < 8; i++) {
			sum += progress[i] - last[i];
			last[i] = progress[i];
		}
		/* A busy host's pauses end, a lost wake-up's doesn't. */
		idle = sum ? 0 : idle + 1;
		if (idle)
			end += 1000;
		if (idle == 20)
			fail("commands ended within 20 s: got 0, wanted some");
	}
	stop = true;
	for (i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	sys_write("none", "/sys/block/%s/queue/scheduler", disk.name);
}

/* ---- links, drains, overflow, company ---- */

static void test_links(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg, i, bad;
	char *buf = map_pages(8 * 4096);
	int fd = open_chr(O_RDONLY);
	struct answer a;
	struct ring r;
	struct vcmd c;
	int want;

	need_poll(setup);
	ring_open(&r, 8, WIDE | setup);
	for (bad = 0; bad <= 8; bad++) {
		for (i = 0; i < 8; i++) {
			c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(0) / 512 + 8 * i,
				 buf + i * 4096, i == bad ? 513 : 4096);
			c.sqe_flags = i < 7 ? IOSQE_IO_LINK : 0;
			c.user_data = i;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < 8; i++) {
			a = ring_take(&r);
			want_eq(a.user_data, i, "order of linked commands");
			want = i < bad ? 0 : i == bad ? -EINVAL : -ECANCELED;
			want_res(a.res, want, "command %u, %u is bad", i, bad);
		}
	}
}

/* Write, flush, read, in a hard link: the read sees the write */
static void test_write_then_read(const void *arg)
{
	char *buf = map_pages(4096), *back = map_pages(4096);
	int fd = open_chr(O_RDWR);
	unsigned int i;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 8, WIDE);
	for (i = 0; i < 50; i++) {
		pattern_fill(buf, 4096, AREA(7), i);
		c = vcmd(fd, IO, VIRTIO_BLK_T_OUT, AREA(7) / 512, buf, 4096);
		c.sqe_flags = IOSQE_IO_HARDLINK;
		ring_put(&r, &c);
		c = vcmd(fd, IO, VIRTIO_BLK_T_FLUSH, 0, NULL, 0);
		c.sqe_flags = IOSQE_IO_HARDLINK;
		ring_put(&r, &c);
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(7) / 512, back, 4096);
		ring_put(&r, &c);
		ring_submit(&r);
		want_res(ring_take(&r).res, 0, "OUT");
		want_res(ring_take(&r).res, has_command(VIRTIO_BLK_T_FLUSH) ? 0
			 : -EOPNOTSUPP, "FLUSH");
		want_res(ring_take(&r).res, 0, "IN");
		want_pattern(back, 4096, AREA(7), i, "read after a linked write");
	}
}

/*
 * A link's later SQEs overwritten early. Kernels that keep no copy of them
 * (6.12) execute what stands there then: shown, and said, not failed.
 */
static void test_link_reuse(const void *arg)
{
	char *buf = map_pages(8192), *ref = map_pages(8192);
	int fd = open_chr(O_RDONLY);
	struct io_uring_sqe *second;
	unsigned int i, late = 0;
	struct ring r;
	struct vcmd c, other;

	pattern_fill(ref, 8192, AREA(8), 3);
	blk_write(AREA(8), ref, 8192);
	ring_open(&r, 8, WIDE);
	for (i = 0; i < 20; i++) {
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(8) / 512, buf, 4096);
		c.sqe_flags = IOSQE_IO_LINK | IOSQE_ASYNC;
		ring_put(&r, &c);
		c.sqe_flags = 0;
		c.data += 4096;
		second = ring_put(&r, &c);
		ring_submit(&r);
		other = c;
		other.sector += 8;
		sqe_fill(second, &other, true);
		want_res(ring_take(&r).res, 0, "the first");
		want_res(ring_take(&r).res, 0, "the second");
		if (pattern_check(buf + 4096, 4096, AREA(8), 3) < 0)
			continue;
		late++;
		want_pattern(buf + 4096, 4096, AREA(8) + 4096, 3,
			     "what the overwritten SQE asks for");
	}
	if (late)
		skip("this kernel's io_uring reads a linked SQE only after its predecessor (%u of 20)",
		     late);
}

/* What is behind a drain may overtake it, but not what is before it */
static void test_drain(const void *arg)
{
	char *buf = map_pages(16 * 4096);
	int fd = open_chr(O_RDONLY);
	unsigned int i, k;
	struct answer a;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 32, WIDE);
	for (k = 0; k < 20; k++) {
		for (i = 0; i < 17; i++) {
			c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(0) / 512 + i * 8,
				 buf + i % 16 * 4096, 4096);
			c.sqe_flags = i == 8 ? IOSQE_IO_DRAIN : 0;
			c.user_data = i;
			ring_put(&r, &c);
		}
		ring_submit(&r);
		for (i = 0; i < 17; i++) {
			a = ring_take(&r);
			want_res(a.res, 0, "command %u",
				 (unsigned int)a.user_data);
			if (i < 8 && a.user_data >= 8)
				fail("a command of the drain or behind it ended too early");
		}
	}
}

/* More CQEs than the completion ring has room for: none is lost */
static void test_overflow(const void *arg)
{
	struct io_uring_params p = { .flags = WIDE | IORING_SETUP_CQSIZE |
		*(const unsigned int *)arg, .cq_entries = 8 };
	char *buf = map_pages(64 * 4096);
	int fd = open_chr(O_RDONLY), ret;
	unsigned int i;
	struct answer a;
	struct ring r;
	struct vcmd c;
	uint64_t seen = 0;

	need_poll(p.flags);
	r.setup = p.flags;
	ret = io_uring_queue_init_params(8, &r.u, &p);
	want_res(ret, 0, "a ring with 8 CQEs");
	for (i = 0; i < 64; i++) {
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, AREA(0) / 512 + i * 8,
			 buf + i * 4096, 4096);
		c.user_data = i;
		ring_put(&r, &c);
		ret = io_uring_submit(&r.u);
		/* the kernel may ask to reap first; that is not a loss */
		while (ret == -EBUSY || ret == -EAGAIN) {
			a = ring_take(&r);
			want_res(a.res, 0, "command %u",
				 (unsigned int)a.user_data);
			seen |= 1ULL << a.user_data;
			ret = io_uring_submit(&r.u);
		}
	}
	while (seen != ~0ULL) {
		a = ring_take(&r);
		want_res(a.res, 0, "command %u", (unsigned int)a.user_data);
		want_eq(seen >> a.user_data & 1, 0, "CQEs of command %u before",
			(unsigned int)a.user_data);
		seen |= 1ULL << a.user_data;
	}
}

/* IO64 shares an ordinary ring with reads, writes and no-ops */
static void test_company(const void *arg)
{
	char *buf = map_pages(64 * 4096), *ref = map_pages(4096);
	int fd = open_chr(O_RDONLY), blk = open_blk(O_RDONLY | O_DIRECT);
	struct io_uring_sqe *sqe;
	unsigned int i;
	struct answer a;
	struct ring r;
	struct vcmd c;

	if (!has_io64())
		skip("the driver has no IO64 here");
	blk_read(AREA(0), ref, 4096);
	ring_open(&r, 64, 0);
	for (i = 0; i < 60; i++) {
		if (i % 3 == 0) {
			c = vcmd(fd, IO64, VIRTIO_BLK_T_IN, AREA(0) / 512,
				 buf + i * 4096, 4096);
			ring_put(&r, &c);
		} else {
			sqe = ring_sqe(&r);
			if (i % 3 == 1)
				io_uring_prep_read(sqe, blk, buf + i * 4096,
						   4096, AREA(0));
			else
				io_uring_prep_nop(sqe);
			sqe->user_data = i % 3;
		}
	}
	ring_submit(&r);
	for (i = 0; i < 60; i++) {
		a = ring_take(&r);
		want_res(a.res, a.user_data == 1 ? 4096 : 0, "kind %u",
			 (unsigned int)a.user_data);
	}
	for (i = 0; i < 60; i++)
		if (i % 3 < 2 && memcmp(buf + i * 4096, ref, 4096))
			fail("read %u: got other data", i);
}

/* Registered files, and a ring another process got by descriptor */
static void test_fixed_file(const void *arg)
{
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	struct ring r;
	struct vcmd c;

	ring_open(&r, 8, WIDE);
	want_res(io_uring_register_files(&r.u, &fd, 1), 0, "register files");
	close(fd);
	c = vcmd(0, IO, VIRTIO_BLK_T_IN, AREA(0) / 512, buf, 4096);
	c.sqe_flags = IOSQE_FIXED_FILE;
	want_res(ring_do(&r, &c).res, 0, "IN by a registered file");
	c.sqe_flags |= IOSQE_ASYNC;
	want_res(ring_do(&r, &c).res, 0, "the same by a worker");
	c.fd = 1;
	want_res(ring_do(&r, &c).res, -EBADF, "a file that isn't registered");
}

int main(int argc, char **argv)
{
	static const struct racer plain_writer = { 0, O_RDWR };
	static const struct racer polled_writer = { IORING_SETUP_SQPOLL, O_RDWR };
	static const struct racer polled_reader = { IORING_SETUP_SQPOLL, O_RDONLY };
	static const uint32_t io = IO, io64 = IO64;
	static const struct flood floods[] = {
		{ IO, 0, 1024, true, false }, { IO64, 0, 1024, true, false },
		{ IO64, IORING_SETUP_SQPOLL, 256, false, false },
		{ IO64, 0, 256, true, true }, { IO, 0, 256, true, true },
		{ IO, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		  1024, true, false },
	};
	static const char * const flood_name[] = { "flood", "flood-IO64",
		"flood-IO64-SQPOLL", "flood-IO64-async", "flood-async",
		"flood-DEFER_TASKRUN" };
	static const struct fight few = { 2, "none", 180000 },
		few_deadline = { 2, "mq-deadline", 180000 },
		many = { 0, "none", 600000 };
	static const unsigned int first = 0, second = 1;
	unsigned int i;
	char name[80];

	t_start(argc, argv, "Every kind of ring.\n"
		"Disks: with a poll queue, without one, with a small queue,\n"
		"device-mapper devices over the first and the second");
	for (i = 0; i < ARRAY_SIZE(setups); i++) {
		snprintf(name, sizeof(name), "P05-%s", setups[i].name);
		t_run(name, test_setup, &setups[i]);
	}
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "P07-no-poll-queue-%s",
			 setups[i].name);
		t_run(name, test_setup_unpolled, &setups[i]);
	}
	t_run("P06-submit-reaps", test_submit_reaps, NULL);
	t_run("P06-close-unreaped", test_close_unreaped, NULL);
	run_setups_by_hand();
	t_run("V35-dm-polled", test_stacked, &first);
	t_run("V35-dm-no-poll-queue", test_stacked, &second);
	t_run("P22-polled-and-block", test_polled_and_block, NULL);
	t_run("P15-polled-and-irq", test_mixed_rings, NULL);
	run_matrix();
	t_run("P18-type-racer", test_type_racer, &io);
	t_run("P18-type-racer-IO64", test_type_racer, &io64);
	t_run("P18-iovec-racer", test_iovec_racer, &plain_writer);
	t_run("P18-iovec-racer-SQPOLL", test_iovec_racer, &polled_writer);
	t_run("P18-iovec-racer-reader-SQPOLL", test_iovec_racer, &polled_reader);
	t_run("P18-range-racer", test_range_racer, &plain_writer);
	t_run("P18-range-racer-SQPOLL", test_range_racer, &polled_writer);
	t_run("P18-range-racer-reader-SQPOLL", test_range_racer, &polled_reader);
	for (i = 0; i < ARRAY_SIZE(floods); i++)
		t_run(flood_name[i], test_flood, &floods[i]);
	t_run("V14-few-tags", test_fight, &few);
	t_run("V14-few-tags-mq-deadline", test_fight, &few_deadline);
	t_run("V09-mixed-512-in-flight", test_fight, &many);
	t_run("links", test_links, &irq);
	t_run("links-polled", test_links, &polled);
	t_run("link-write-flush-read", test_write_then_read, NULL);
	t_run("link-slot-reuse", test_link_reuse, NULL);
	t_run("drain", test_drain, NULL);
	t_run("cq-overflow", test_overflow, &irq);
	t_run("cq-overflow-polled", test_overflow, &polled);
	t_run("IO64-in-company", test_company, NULL);
	t_run("registered-file", test_fixed_file, NULL);
	return t_end();
}
