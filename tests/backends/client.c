// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one client of every back end: the same data, commands and errors whoever
 * serves the disk. Where the disk has no char node (null_blk, nbd, ublk), the
 * block half of it.
 */
#define _GNU_SOURCE
#include "../uring/helper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each mode and direction has a place of its own on the disk, and at its end
 * the commands that change content. */
#define PLACE		(2 * MiB)
#define LARGEST		(256 * KiB)
#define COMMANDS_AT	(40 * MiB)
#define LAST_BYTE	(64 * MiB)

#define DEPTH		16
/* I/Os of a load that has begun: enough for all kinds to be in flight */
#define BEGUN		200

static const struct mode {
	const char *name;
	bool vec, fixed, poll, io64;
} modes[] = {
	{ .name = "plain" },
	{ .name = "vectored", .vec = true },
	{ .name = "registered", .fixed = true },
	{ .name = "polled", .poll = true },
	{ .name = "polled-registered", .poll = true, .fixed = true },
	{ .name = "sqe64", .io64 = true },
};

static bool has_node;
static const char *expected_id;

/* ---- the disk: with a node or without ---- */

static void open_disk(const char *name)
{
	struct stat st;
	int fd;

	if (!strncmp(name, "/dev/", 5))
		name += 5;
	snprintf(disk.name, sizeof(disk.name), "%s", name);
	snprintf(disk.blk, sizeof(disk.blk), "/dev/%s", disk.name);
	snprintf(disk.chr, sizeof(disk.chr), "/dev/%sc0", disk.name);
	/* the name of the list of what was written, see expect_on_image() */
	snprintf(disk.serial, sizeof(disk.serial), "written");
	fd = open(disk.blk, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &disk.bytes) ||
	    ioctl(fd, BLKSSZGET, &disk.lbs))
		die("%s: %s", disk.blk, strerror(errno));
	close(fd);
	if (disk.bytes < LAST_BYTE)
		die("%s: smaller than %llu bytes", disk.blk, LAST_BYTE);
	has_node = stat(disk.chr, &st) == 0;
	if (!has_node)
		return;
	fd = open(disk.chr, O_RDONLY | O_CLOEXEC);
	disk.info.size = sizeof(disk.info);
	if (fd < 0 || ioctl(fd, VIRTBLK_IOCTL_INFO, &disk.info))
		die("%s: %s", disk.chr, strerror(errno));
	close(fd);
}

/* ---- one I/O of a mode, by the node or by the block device ---- */

struct io {
	struct ring	ring;
	int		fd;
	char		*buf;
	struct iovec	vec[3];
	unsigned int	n_vec;
};

static unsigned int ring_flags(const struct mode *m, bool node)
{
	return (m->poll ? IORING_SETUP_IOPOLL : 0) |
	       (node && !m->io64 ? WIDE : 0);
}

static void io_open(struct io *io, const struct mode *m, bool node)
{
	struct iovec all;

	memset(io, 0, sizeof(*io));
	io->fd = node ? open_chr(O_RDWR) : open_blk(O_RDWR | O_DIRECT);
	ring_open(&io->ring, 8, ring_flags(m, node));
	io->buf = map_pages(LARGEST);
	all = (struct iovec){ io->buf, LARGEST };
	if (m->fixed)
		want_res(io_uring_register_buffers(&io->ring.u, &all, 1), 0,
			 "registering a buffer");
}

static void io_close(struct io *io)
{
	ring_close(&io->ring);
	close(io->fd);
}

/* Unequal parts, the way nobody would split it */
static void split(struct io *io, size_t len)
{
	size_t first = len / 4 / disk.lbs * disk.lbs, second = len / 8 / disk.lbs * disk.lbs;

	io->n_vec = first && second ? 3 : 1;
	if (io->n_vec == 1)
		first = len;
	io->vec[0] = (struct iovec){ io->buf, first };
	io->vec[1] = (struct iovec){ io->buf + first, second };
	io->vec[2] = (struct iovec){ io->buf + first + second, len - first - second };
}

static void put_node(struct io *io, const struct mode *m, bool write,
		     uint64_t off, size_t len)
{
	struct vcmd c = vcmd(io->fd, VIRTBLK_URING_CMD_IO,
			     write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN,
			     off / 512, io->buf, len);

	if (m->vec) {
		c.data = (uintptr_t)io->vec;
		c.len = io->n_vec;
	}
	c.op = m->io64 ? (m->vec ? VIRTBLK_URING_CMD_IO64_VEC : VIRTBLK_URING_CMD_IO64)
		       : (m->vec ? VIRTBLK_URING_CMD_IO_VEC : VIRTBLK_URING_CMD_IO);
	c.uring_flags = m->fixed ? IORING_URING_CMD_FIXED : 0;
	ring_put(&io->ring, &c);
}

static void put_block(struct io *io, const struct mode *m, bool write,
		      uint64_t off, size_t len)
{
	struct io_uring_sqe *sqe = ring_sqe(&io->ring);

	if (m->vec)
		io_uring_prep_rw(write ? IORING_OP_WRITEV : IORING_OP_READV,
				 sqe, io->fd, io->vec, io->n_vec, off);
	else if (m->fixed)
		io_uring_prep_rw(write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED,
				 sqe, io->fd, io->buf, len, off);
	else
		io_uring_prep_rw(write ? IORING_OP_WRITE : IORING_OP_READ,
				 sqe, io->fd, io->buf, len, off);
}

static void io_do(struct io *io, const struct mode *m, bool node, bool write,
		  uint64_t off, size_t len)
{
	if (m->vec)
		split(io, len);
	(node ? put_node : put_block)(io, m, write, off, len);
	ring_submit(&io->ring);
	want_res(ring_take(&io->ring).res, node ? 0 : (int)len, "%s of %zu at %llu by the %s",
		 write ? "write" : "read", len, (unsigned long long)off,
		 node ? "node" : "block device");
}

/* ---- data ---- */

static const size_t sizes[] = { 512, 4096, 64 * KiB, LARGEST };

struct transfer {
	const struct mode *mode;
	bool node_writes;	/* and the block device reads; else the reverse */
	uint64_t place;
};

static void need_mode(const struct mode *m)
{
	if (m->poll && has_node && !has_poll())
		fail("poll queues: got none, wanted some");
	if (m->io64 && !has_io64())
		skip("this driver has no 64-byte commands");
}

/* Writes by one path in a mode, reads by the other in the same mode */
static void data(const void *arg)
{
	const struct transfer *t = arg;
	struct io out, in;
	unsigned int i;

	need_mode(t->mode);
	io_open(&out, t->mode, t->node_writes);
	io_open(&in, t->mode, has_node && !t->node_writes);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t off = t->place + i * PLACE / 4;
		size_t len = sizes[i] < disk.lbs ? disk.lbs : sizes[i];

		pattern_fill(out.buf, len, off, off);
		memset(in.buf, 0x5a, len);
		io_do(&out, t->mode, t->node_writes, true, off, len);
		io_do(&in, t->mode, has_node && !t->node_writes, false, off, len);
		want_pattern(in.buf, len, off, off, "read back");
		expect_on_image(off, len, off);
	}
	io_close(&out);
	io_close(&in);
}

static void all_data(void)
{
	unsigned int i, dir;
	const char *can_poll = getenv("BACKEND_POLL");
	struct transfer t;
	char name[80];

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		t.mode = &modes[i];
		if ((t.mode->io64 && !has_node) ||
		    (t.mode->poll && !(can_poll && *can_poll)))
			continue;
		for (dir = 0; dir < (has_node ? 2 : 1); dir++) {
			t.node_writes = has_node && dir == 0;
			t.place = MiB + (i * 2 + dir) * PLACE;
			snprintf(name, sizeof(name), "%s-%s", !has_node ? "block" :
				 dir ? "block-to-node" : "node-to-block", t.mode->name);
			t_run(name, data, &t);
		}
	}
}

/* ---- commands ---- */

static struct answer command(uint32_t type, const void *data, uint32_t len)
{
	struct vcmd c;
	struct answer a;
	struct ring r;
	int fd = open_chr(O_RDWR);

	c = vcmd(fd, VIRTBLK_URING_CMD_IO, type, 0, data, len);
	ring_open(&r, 4, WIDE);
	a = ring_do(&r, &c);
	ring_close(&r);
	close(fd);
	return a;
}

static void need_command(uint32_t type, const char *name)
{
	if (!has_command(type))
		skip("the device does not offer %s", name);
}

static void flush(const void *arg)
{
	if (has_node) {
		need_command(VIRTIO_BLK_T_FLUSH, "FLUSH");
		want_res(command(VIRTIO_BLK_T_FLUSH, NULL, 0).res, 0, "FLUSH");
	}
	want_res(fsync(open_blk(O_RDWR)) ? -errno : 0, 0, "fsync");
}

static void get_id(const void *arg)
{
	char id[21] = "", sys[32];

	want_res(command(VIRTIO_BLK_T_GET_ID, id, 20).res, 0, "GET_ID");
	sys_string(sys, sizeof(sys), "/sys/block/%s/serial", disk.name);
	if (strcmp(id, sys))
		fail("GET_ID: got '%s', wanted sysfs' '%s'", id, sys);
	if (expected_id && strcmp(id, expected_id))
		fail("GET_ID: got '%s', wanted '%s'", id, expected_id);
}

/* 64 KiB in the middle of 192 KiB are discarded or zeroed: what is around them stays */
#define PART	(64 * KiB)

static int range_by_node(uint32_t type, uint64_t off)
{
	struct virtio_blk_discard_write_zeroes range = {
		.sector = htole64(off / 512), .num_sectors = htole32(PART / 512) };

	return command(type, &range, sizeof(range)).res;
}

static int range_by_block(uint32_t type, uint64_t off)
{
	uint64_t range[2] = { off, PART };
	int fd = open_blk(O_RDWR);

	return ioctl(fd, type == VIRTIO_BLK_T_DISCARD ? BLKDISCARD : BLKZEROOUT,
		     range) ? -errno : 0;
}

struct range {
	uint32_t	type;
	const char	*name;
	bool		node;
	uint64_t	place;
};

static void need_range(const struct range *r)
{
	const char *lacks = getenv("BACKEND_LACKS");

	/* what a server offers and can't do on this image, of its node only */
	if (r->node && lacks && strstr(lacks, r->name))
		skip("%s", lacks);
	if (has_node)
		need_command(r->type, r->name);
	else if (r->type == VIRTIO_BLK_T_DISCARD &&
		 !sys_number("/sys/block/%s/queue/discard_max_bytes", disk.name))
		skip("the device does not offer DISCARD");
}

static void change_range(const void *arg)
{
	const struct range *r = arg;
	char *buf = map_pages(3 * PART);
	int ret;

	need_range(r);
	pattern_fill(buf, 3 * PART, r->place, r->place);
	blk_write(r->place, buf, 3 * PART);
	ret = r->node ? range_by_node(r->type, r->place + PART)
		      : range_by_block(r->type, r->place + PART);
	want_res(ret, 0, "%s", r->name);
	memset(buf, 0x5a, 3 * PART);
	if (has_node)
		chr_read(r->place, buf, 3 * PART);
	else
		blk_read(r->place, buf, 3 * PART);
	want_pattern(buf, PART, r->place, r->place, "before the range");
	want_pattern(buf + 2 * PART, PART, r->place + 2 * PART, r->place, "behind the range");
	if (r->type == VIRTIO_BLK_T_WRITE_ZEROES)
		want_byte(buf + PART, PART, 0, "in the range");
	expect_on_image(r->place, PART, r->place);
	expect_on_image(r->place + 2 * PART, PART, r->place);
}

static void all_commands(void)
{
	static const struct range ranges[] = {
		{ VIRTIO_BLK_T_DISCARD, "DISCARD", true, COMMANDS_AT },
		{ VIRTIO_BLK_T_WRITE_ZEROES, "WRITE_ZEROES", true, COMMANDS_AT + MiB },
		{ VIRTIO_BLK_T_DISCARD, "DISCARD", false, COMMANDS_AT + 2 * MiB },
		{ VIRTIO_BLK_T_WRITE_ZEROES, "WRITE_ZEROES", false, COMMANDS_AT + 3 * MiB },
	};
	char name[80];
	unsigned int i;

	for (i = has_node ? 0 : 2; i < ARRAY_SIZE(ranges); i++) {
		snprintf(name, sizeof(name), "%s-%s", ranges[i].node ? "node" : "block",
			 ranges[i].name);
		t_run(name, change_range, &ranges[i]);
	}
	t_run("FLUSH", flush, NULL);
	if (has_node)
		t_run("GET_ID", get_id, NULL);
}

/* ---- errors ---- */

/* status 0: refused by the driver; another: the device's own answer */
static const struct error {
	const char *what;
	int open_for;
	uint32_t op, type;
	uint64_t sector;
	uint32_t len, flag;
	int res;
	unsigned int status;
} errors[] = {
	{ "an empty read", O_RDWR, 1, VIRTIO_BLK_T_IN, 0, 0, 0, -EINVAL, 0 },
	{ "a read of 100 bytes", O_RDWR, 1, VIRTIO_BLK_T_IN, 0, 100, 0, -EINVAL, 0 },
	{ "a flag", O_RDWR, 1, VIRTIO_BLK_T_IN, 0, 4096, 1, -EINVAL, 0 },
	{ "a write, opened for reading", O_RDONLY, 1, VIRTIO_BLK_T_OUT, 0, 4096, 0, -EACCES, 0 },
	{ "a read, opened for writing", O_WRONLY, 1, VIRTIO_BLK_T_IN, 0, 4096, 0, -EACCES, 0 },
	{ "GET_ID of 19 bytes", O_RDWR, 1, VIRTIO_BLK_T_GET_ID, 0, 19, 0, -EINVAL, 0 },
	{ "SCSI", O_RDWR, 1, 2, 0, 512, 0, -EOPNOTSUPP, 0 },
	{ "an unknown operation", O_RDWR, 99, VIRTIO_BLK_T_IN, 0, 4096, 0, -ENOTTY, 0 },
	{ "a read past the end", O_RDWR, 1, VIRTIO_BLK_T_IN, 1ULL << 40, 4096, 0, -EIO, VIRTIO_BLK_S_IOERR },
	{ "a write past the end", O_RDWR, 1, VIRTIO_BLK_T_OUT, 1ULL << 40, 4096, 0, -EIO, VIRTIO_BLK_S_IOERR },
	{ "a type nobody knows", O_RDWR, 1, 4000, 0, 512, 0, -EOPNOTSUPP, VIRTIO_BLK_S_UNSUPP },
	{ "the read behind them", O_RDWR, 1, VIRTIO_BLK_T_IN, 0, 4096, 0, 0, 0 },
};

static void one_error(const struct error *e, char *buf)
{
	struct answer a;
	struct vcmd c;
	struct ring r;
	int fd = open_chr(e->open_for);

	c = vcmd(fd, e->op, e->type, e->sector, buf, e->len);
	c.flag = e->flag;
	ring_open(&r, 4, WIDE);
	a = ring_do(&r, &c);
	want_res(a.res, e->res, "%s", e->what);
	want_eq(a.big0, e->status, "the status of %s", e->what);
	ring_close(&r);
	close(fd);
}

static void error_table(const void *arg)
{
	char *buf = map_pages(4096);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		one_error(&errors[i], buf);
}

static void read_only(const void *arg)
{
	static const struct error e = { "a write to a read-only disk", O_RDWR, 1,
		VIRTIO_BLK_T_OUT, 0, 4096, 0, -EROFS, 0 };
	int on = 1, off = 0, fd = open_blk(O_RDONLY);

	if (ioctl(fd, BLKROSET, &on))
		fail("BLKROSET: got %s, wanted success", err_name(-errno));
	one_error(&e, map_pages(4096));
	if (ioctl(fd, BLKROSET, &off))
		fail("BLKROSET: got %s, wanted success", err_name(-errno));
}

/* ---- a disk that has grown ---- */

static void grown(const void *arg)
{
	uint64_t want = *(const uint64_t *)arg, end = now_ms() + 20000, bytes;
	char *buf = map_pages(4096);

	/* the device tells; the driver's work takes a moment */
	while ((bytes = sys_number("/sys/block/%s/size", disk.name) * 512) != want) {
		if (now_ms() > end)
			want_eq(bytes, want, "size");
		pause_ms(20);
	}
	pattern_fill(buf, 4096, want - 4096, 77);
	if (has_node)
		chr_write(want - 4096, buf, 4096);
	else
		blk_write(want - 4096, buf, 4096);
	memset(buf, 0, 4096);
	blk_read(want - 4096, buf, 4096);
	want_pattern(buf, 4096, want - 4096, 77, "the new end");
	expect_on_image(want - 4096, 4096, 77);
}

/* ---- removal: what is in flight ends, once each ---- */

struct load {
	struct ring	ring;
	int		fd;
	bool		node;
	char		*buf;
	bool		busy[DEPTH];
	unsigned int	inflight;
	unsigned long	done;
	int		error;
};

static void load_put(struct load *l, unsigned int slot)
{
	static uint64_t random = 7;
	uint64_t off = (random_next(&random) % (PLACE / 4096)) * 4096 + LAST_BYTE - PLACE;
	bool write = slot & 1;
	char *buf = l->buf + slot * 4096;
	struct io_uring_sqe *sqe;

	if (l->node) {
		struct vcmd c = vcmd(l->fd, VIRTBLK_URING_CMD_IO,
				     write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN,
				     off / 512, buf, 4096);

		sqe = ring_put(&l->ring, &c);
	} else {
		sqe = ring_sqe(&l->ring);
		io_uring_prep_rw(write ? IORING_OP_WRITE : IORING_OP_READ, sqe,
				 l->fd, buf, 4096, off);
	}
	sqe->user_data = slot;
	l->busy[slot] = true;
	l->inflight++;
}

static void load_open(struct load *l, bool node)
{
	memset(l, 0, sizeof(*l));
	l->node = node;
	l->fd = node ? open_chr(O_RDWR) : open_blk(O_RDWR | O_DIRECT);
	ring_open(&l->ring, DEPTH, node ? WIDE : 0);
	l->buf = map_pages(DEPTH * 4096);
}

static void load_got(struct load *l, const struct answer *a)
{
	if (a->user_data >= DEPTH || !l->busy[a->user_data])
		fail("a completion of slot %llu, which was not in flight",
		     (unsigned long long)a->user_data);
	l->busy[a->user_data] = false;
	l->inflight--;
	if (a->res < 0 || (!l->node && a->res != 4096))
		l->error = a->res < 0 ? a->res : -EIO;
	else
		l->done++;
}

/* Keeps the ring full until its first error; then takes what is in flight */
static void load_turn(struct load *l)
{
	unsigned int slot;
	struct answer a;

	for (slot = 0; slot < DEPTH && !l->error; slot++)
		if (!l->busy[slot])
			load_put(l, slot);
	ring_submit(&l->ring);
	while (l->inflight && ring_take_within(&l->ring, &a, 20))
		load_got(l, &a);
}

static void say_begun(void)
{
	int fd = open("/run/load-begun", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("/run/load-begun: %s", strerror(errno));
	close(fd);
}

/* How a command may end whose disk goes: never with 0 unless it was done */
static void want_gone(const struct load *l)
{
	if (l->node)
		want_res(l->error, -ENODEV, "the node's last answer");
	/* a disk that has gone has no room: -ENOSPC is io_uring's way to say so */
	else if (l->error != -EIO && l->error != -ENODEV && l->error != -ENXIO &&
		 l->error != -ENOSPC)
		want_res(l->error, -EIO, "the block device's last answer");
}

static void removal(const void *arg)
{
	struct load load[2];
	unsigned int i, n = 0;
	bool begun = false, over;

	if (has_node)
		load_open(&load[n++], true);
	load_open(&load[n++], false);
	do {
		over = true;
		for (i = 0; i < n; i++) {
			if (!load[i].error || load[i].inflight)
				load_turn(&load[i]);
			over &= load[i].error && !load[i].inflight;
		}
		if (!begun && load[0].done + load[n - 1].done > BEGUN) {
			begun = true;
			say_begun();
		}
	} while (!over);
	for (i = 0; i < n; i++)
		want_gone(&load[i]);
}

int main(int argc, char **argv)
{
	const char *phase;
	uint64_t bytes;

	t_start_any(argc, argv,
		    "One client for all back ends. Behind DISK comes what is tested: verify,\n"
		    "grown BYTES or removal. In the environment: BACKEND_ID, the ID\n"
		    "expected; BACKEND_POLL, if it has polled queues; BACKEND_LACKS, commands it offers and can't do here, with the reason.");
	if (!t_disk(0) || !t_disk(1))
		die("say DISK and verify, grown BYTES or removal; see --help");
	expected_id = getenv("BACKEND_ID");
	if (expected_id && !*expected_id)
		expected_id = NULL;
	open_disk(t_disk(0));
	phase = t_disk(1);
	if (!strcmp(phase, "verify")) {
		all_data();
		all_commands();
		if (has_node) {
			t_run("errors", error_table, NULL);
			t_run("read-only", read_only, NULL);
		}
	} else if (!strcmp(phase, "grown") && t_disk(2)) {
		bytes = strtoull(t_disk(2), NULL, 0);
		t_run("resize", grown, &bytes);
	} else if (!strcmp(phase, "removal")) {
		t_run("removal-under-load", removal, NULL);
	} else {
		die("unknown phase %s", phase);
	}
	return t_end();
}
