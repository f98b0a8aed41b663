// SPDX-License-Identifier: GPL-2.0-only
/*
 * What vhost-blk promises a well-behaved guest and its hypervisor. Disks: a
 * block device, a regular file, and a programmable disk (tests/device) that
 * VBLK_CTL talks to: it holds requests, so that "while in flight" is a state
 * and no matter of luck.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK	VIRTIO_BLK_S_OK
#define IOERR	VIRTIO_BLK_S_IOERR
#define UNSUPP	VIRTIO_BLK_S_UNSUPP
#define STATUS	(buf_at(0) + sizeof(struct virtio_blk_outhdr))

static const char *disk_path(void) { return t_disk(0); }
static const char *file_path(void) { return t_disk(1); }

static void want_status(uint8_t got, uint8_t want, const char *what)
{
	want_eq(got, want, "status of %s", what);
}

/* What is on the disk, by another way than vhost-blk */
static void want_on_disk(int fd, uint64_t off, size_t len, uint64_t seed, const char *what)
{
	char *buf = map_pages(len);

	if (pread(fd, buf, len, off) != (ssize_t)len)
		die("reading back: %s", strerror(errno));
	want_pattern(buf, len, off, seed, what);
}

static void put_on_disk(int fd, uint64_t off, size_t len, uint64_t seed)
{
	char *buf = map_pages(len);

	pattern_fill(buf, len, off, seed);
	if (pwrite(fd, buf, len, off) != (ssize_t)len)
		die("writing before: %s", strerror(errno));
}

/* ---- data ---- */

struct shape {
	const char *path;
	uint64_t features;
	uint32_t piece;
	bool indirect;
};

static uint8_t shaped(struct vdev *v, const struct shape *s, uint32_t type, uint64_t off, uint32_t len)
{
	struct chain c;

	chain_cmd(v, &c, buf_at(0), type, off / 512, buf_at(1), len, s->piece);
	if (!s->indirect)
		return send_chain(v, &c, STATUS);
	queue_indirect(v, 0, &c, buf_at(3));
	queue_kick(&v->q[0]);
	return queue_wait(&v->q[0], 1, 5000) ? *mem_at(v, STATUS) : UNANSWERED;
}

static void data(const void *arg)
{
	static const uint32_t sizes[] = { 512, 4096, 20480, 128 * KiB, 256 * KiB };
	const struct shape *s = arg;
	struct vdev v = { .q[0].num = 256 };
	int fd = open_backend(s->path, O_RDWR | O_DIRECT);
	uint64_t off = MiB;

	dev_open(&v, 1, FEATURES | s->features);
	dev_start(&v, fd);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++, off += MiB) {
		char *buf = mem_at(&v, buf_at(1));

		pattern_fill(buf, sizes[i], off, off + s->piece);
		want_status(shaped(&v, s, VIRTIO_BLK_T_OUT, off, sizes[i]), OK, "OUT");
		want_on_disk(fd, off, sizes[i], off + s->piece, "written through vhost-blk");
		put_on_disk(fd, off, sizes[i], off + 7);
		memset(buf, 0, sizes[i]);
		want_status(shaped(&v, s, VIRTIO_BLK_T_IN, off, sizes[i]), OK, "IN");
		want_pattern(buf, sizes[i], off, off + 7, "read through vhost-blk");
		want_eq(v.q[0].used->ring[(v.q[0].seen - 1) % v.q[0].num].len, sizes[i] + 1, "used length");
	}
	mem_intact(&v);
}

/* Virtio 1 leaves the borders of descriptors free */
static void layouts(const void *arg)
{
	static const uint8_t cuts[] = { 1, 4, 8, 15 };
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	uint64_t hdr = buf_at(0), to = buf_at(1);
	struct virtio_blk_outhdr h = { .type = VIRTIO_BLK_T_IN, .sector = 2048 };
	struct vdev v = { 0 };
	struct chain c;

	dev_open(&v, 1, FEATURES);
	dev_start(&v, fd);
	put_on_disk(fd, MiB, 4096, 11);
	memcpy(mem_at(&v, hdr), &h, sizeof(h));
	for (unsigned int i = 0; i < ARRAY_SIZE(cuts); i++) {
		c.n = 0;
		chain_add(&c, hdr, cuts[i], 0);
		chain_add(&c, hdr, 0, 0);
		chain_add(&c, hdr + cuts[i], 16 - cuts[i], 0);
		chain_add(&c, to, 1024, W);
		/* the rest, and the status byte behind it in the same descriptor */
		chain_add(&c, to + 1024, 3072 + 1, W);
		chain_add(&c, to, 0, W);
		*mem_at(&v, to + 4096) = (char)UNANSWERED;
		want_status(send_chain(&v, &c, to + 4096), OK, "a header cut in two");
		want_pattern(mem_at(&v, to), 4096, MiB, 11, "data of one descriptor with the status");
	}
	/* header and data in one, and memory on both sides of a region's border */
	h = (struct virtio_blk_outhdr){ .type = VIRTIO_BLK_T_OUT, .sector = 4096 };
	to = MEM_BASE + MEM_SIZE / 2 - 2048 - 16;
	memcpy(mem_at(&v, to), &h, sizeof(h));
	pattern_fill(mem_at(&v, to + 16), 4096, 2 * MiB, 12);
	c.n = 0;
	chain_add(&c, to, 16 + 4096, 0);
	chain_add(&c, STATUS, 1, W);
	want_status(send_chain(&v, &c, STATUS), OK, "header and data in one descriptor");
	want_on_disk(fd, 2 * MiB, 4096, 12, "data across two regions");
	mem_intact(&v);
}

/* With event_idx the device interrupts when it is asked to, not before */
static void event_idx(const void *arg)
{
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	struct vdev v = { 0 };
	struct queue *q = &v.q[0];
	uint16_t event;
	struct chain c;

	dev_open(&v, 1, FEATURES | F(VIRTIO_RING_F_EVENT_IDX));
	dev_start(&v, fd);
	want_status(command(&v, VIRTIO_BLK_T_IN, 0, buf_at(1), 4096), OK, "the first, which always interrupts");
	event_within(q->call, 0);
	q->avail->ring[q->num] = q->seen + 3;	/* after four more */
	for (unsigned int i = 0; i < 4; i++) {
		if (i == 3 && event_within(q->call, 50))
			fail("got an interrupt after 3 answers, wanted it after the fourth");
		chain_cmd(&v, &c, buf_at(0), VIRTIO_BLK_T_IN, 0, buf_at(1), 4096, 4096);
		queue_put(&v, 0, &c);
		queue_kick(q);
		while (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != (uint16_t)(q->seen + i + 1))
			;
	}
	if (!event_within(q->call, 5000))
		fail("got no interrupt after the fourth answer, wanted one");
	/* where it wants its next kick stands behind the used ring */
	memcpy(&event, &q->used->ring[q->num], sizeof(event));
	want_eq(event, q->avail_idx, "avail_event");
}

/* ---- commands ---- */

static void get_id(const void *arg)
{
	struct vdev v = { 0 };
	char *buf;

	dev_open(&v, 1, FEATURES);
	dev_start(&v, open_backend(disk_path(), O_RDWR | O_DIRECT));
	buf = mem_at(&v, buf_at(1));
	memset(buf, '#', 32);
	want_status(command(&v, VIRTIO_BLK_T_GET_ID, 0, buf_at(1), 20), OK, "GET_ID");
	if (memcmp(buf, "vhost-blk-serial-20b####", 24))
		fail("got the serial %.24s, wanted vhost-blk-serial-20b", buf);
	memset(buf, '#', 32);
	want_status(command(&v, VIRTIO_BLK_T_GET_ID, 0, buf_at(1), 5), OK, "GET_ID of 5 bytes");
	if (memcmp(buf, "vhost####", 9))
		fail("got %.9s, wanted vhost####", buf);
}

/* Types are numbers, not bits: bit 0 of an unknown one means nothing */
static void unknown_types(const void *arg)
{
	static const uint32_t types[] = { 2, 3, 5, 7, 9, 10, 12, 14, 15, 16, 24, 255,
		VIRTIO_BLK_T_BARRIER, VIRTIO_BLK_T_BARRIER | VIRTIO_BLK_T_OUT, UINT32_MAX };
	struct vdev v = { 0 };

	dev_open(&v, 1, FEATURES & ~F(VIRTIO_BLK_F_DISCARD) & ~F(VIRTIO_BLK_F_WRITE_ZEROES));
	dev_start(&v, open_backend(disk_path(), O_RDWR | O_DIRECT));
	for (unsigned int i = 0; i < ARRAY_SIZE(types); i++)
		want_eq(command(&v, types[i], 0, buf_at(1), 512), UNSUPP, "status of type %#x", types[i]);
	want_status(command(&v, VIRTIO_BLK_T_DISCARD, 0, buf_at(1), 16), UNSUPP, "DISCARD without its feature");
	want_status(command(&v, VIRTIO_BLK_T_WRITE_ZEROES, 0, buf_at(1), 16), UNSUPP, "WRITE_ZEROES without its feature");
}

static void refused_io(const void *arg)
{
	struct vdev v = { 0 };
	struct stat before, after;
	int fd = open_backend(file_path(), O_RDWR | O_DIRECT);
	uint64_t end;

	fstat(fd, &before);
	end = before.st_size / 512;
	dev_open(&v, 1, FEATURES);
	dev_start(&v, fd);
	for (uint32_t type = VIRTIO_BLK_T_IN; type <= VIRTIO_BLK_T_OUT; type++) {
		want_status(command(&v, type, end - 1, buf_at(1), 512), OK, "the last sector");
		want_status(command(&v, type, end, buf_at(1), 512), IOERR, "a sector past the end");
		want_status(command(&v, type, end - 1, buf_at(1), 1024), IOERR, "a range past the end");
		want_status(command(&v, type, UINT64_MAX, buf_at(1), 512), IOERR, "sector 2^64 - 1");
		want_status(command(&v, type, UINT64_MAX / 512, buf_at(1), 512), IOERR, "byte 2^64");
		want_status(command(&v, type, 0, buf_at(1), 0), IOERR, "no data");
		want_status(command(&v, type, 0, buf_at(1), 511), IOERR, "511 bytes");
		want_status(command(&v, type, 0, buf_at(1), 512), OK, "a good one after them");
	}
	want_status(command(&v, VIRTIO_BLK_T_GET_ID, 0, buf_at(1), 0), IOERR, "GET_ID without room");
	fstat(fd, &after);
	want_eq(after.st_size, before.st_size, "size of the file");
	mem_intact(&v);
}

static void readonly(const void *arg)
{
	int fd = open_backend(disk_path(), O_RDONLY | O_DIRECT);
	struct virtio_blk_discard_write_zeroes range = { .num_sectors = 8 };
	struct vdev v = { 0 };

	dev_open(&v, 1, FEATURES);
	memcpy(mem_at(&v, buf_at(1)), &range, sizeof(range));
	for (int ro_feature = 0; ro_feature < 2; ro_feature++) {
		dev_start(&v, fd);
		want_status(command(&v, VIRTIO_BLK_T_IN, 0, buf_at(2), 512), OK, "IN");
		want_status(command(&v, VIRTIO_BLK_T_OUT, 0, buf_at(1), 512), IOERR, "OUT");
		want_status(command(&v, VIRTIO_BLK_T_DISCARD, 0, buf_at(1), 16), IOERR, "DISCARD");
		want_status(command(&v, VIRTIO_BLK_T_WRITE_ZEROES, 0, buf_at(1), 16), IOERR, "WRITE_ZEROES");
		dev_stop(&v);
		dev_rings(&v);
		v.features |= F(VIRTIO_BLK_F_RO);
		vhost_do(&v, VHOST_SET_FEATURES, &v.features, "SET_FEATURES");
		fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	}
}

static uint8_t ranges(struct vdev *v, uint32_t type, const struct virtio_blk_discard_write_zeroes *r, unsigned int n)
{
	memcpy(mem_at(v, buf_at(1)), r, n * sizeof(*r));
	return command(v, type, 0, buf_at(1), n * sizeof(*r));
}

static blkcnt_t blocks(int fd)
{
	struct stat st;

	fsync(fd);
	fstat(fd, &st);
	return st.st_blocks;
}

static void want_zero(int fd, uint64_t off, size_t len, const char *what)
{
	char *buf = map_pages(len);

	if (pread(fd, buf, len, off) != (ssize_t)len)
		die("reading back: %s", strerror(errno));
	want_byte(buf, len, 0, what);
}

static void trims(const void *arg)
{
	const char *path = arg;
	struct virtio_blk_discard_write_zeroes two[] = {
		{ .sector = 4096, .num_sectors = 128, .flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP },
		{ .sector = 8192, .num_sectors = 64 },
	}, bad = { .sector = UINT64_MAX - 1, .num_sectors = 8 };
	int fd = open_backend(path, O_RDWR | O_DIRECT);
	blkcnt_t before;
	struct vdev v = { 0 };

	dev_open(&v, 1, FEATURES);
	dev_start(&v, fd);
	put_on_disk(fd, 2 * MiB, 256 * KiB, 21);
	put_on_disk(fd, 4 * MiB, 64 * KiB, 22);
	before = blocks(fd);
	want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, two, 2), OK, "WRITE_ZEROES of two ranges");
	want_zero(fd, 2 * MiB, 64 * KiB, "the first range");
	want_zero(fd, 4 * MiB, 32 * KiB, "the second range");
	want_on_disk(fd, 2 * MiB + 64 * KiB, 192 * KiB, 21, "what lies behind the first");
	if (path == file_path() && before - blocks(fd) < 100)
		fail("got %ld blocks freed by UNMAP, wanted 128", (long)(before - blocks(fd)));
	two[0].flags = 0;
	put_on_disk(fd, 2 * MiB, 64 * KiB, 23);
	want_status(ranges(&v, VIRTIO_BLK_T_DISCARD, two, 1), OK, "DISCARD");
	if (path == file_path())
		want_zero(fd, 2 * MiB, 64 * KiB, "the discarded range");

	put_on_disk(fd, 2 * MiB, 64 * KiB, 24);
	want_status(ranges(&v, VIRTIO_BLK_T_DISCARD, &bad, 1), IOERR, "a range past the end");
	two[1] = bad;
	want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, two, 2), IOERR, "a bad range behind a good one");
	two[0].flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	want_status(ranges(&v, VIRTIO_BLK_T_DISCARD, two, 1), UNSUPP, "DISCARD with the flag of WRITE_ZEROES");
	two[0].flags = 2;
	want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, two, 1), UNSUPP, "an unknown flag");
	want_status(command(&v, VIRTIO_BLK_T_DISCARD, 0, buf_at(1), 17), IOERR, "17 bytes of ranges");
	want_status(command(&v, VIRTIO_BLK_T_DISCARD, 0, buf_at(1), 0), IOERR, "no range");
	want_status(command(&v, VIRTIO_BLK_T_DISCARD, 0, buf_at(1), 16 * (VHOST_BLK_MAX_RANGES + 1)), IOERR, "257 ranges");
	want_on_disk(fd, 2 * MiB, 64 * KiB, 24, "what bad ones must not touch");
}

/* What a disk can't do, or can't do so finely: block layer and file system check little of it */
static void trims_of_4k(const void *arg)
{
	struct virtio_blk_discard_write_zeroes odd_start = { .sector = 1, .num_sectors = 8 },
		odd_end = { .num_sectors = 4 }, whole = { .sector = 8, .num_sectors = 8 };
	int fd = open_backend(arg, O_RDWR | O_DIRECT);
	struct vdev v = { 0 };

	dev_open(&v, 1, FEATURES);
	dev_start(&v, fd);
	put_on_disk(fd, 0, 12288, 51);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t type = i ? VIRTIO_BLK_T_WRITE_ZEROES : VIRTIO_BLK_T_DISCARD;

		want_status(ranges(&v, type, &odd_start, 1), IOERR, "a range from the middle of a block");
		want_status(ranges(&v, type, &odd_end, 1), IOERR, "a range of half a block");
	}
	want_status(command(&v, VIRTIO_BLK_T_OUT, 8, buf_at(1), 512), IOERR, "OUT of an eighth of a block");
	want_on_disk(fd, 0, 12288, 51, "what none of them may touch");
	want_status(ranges(&v, VIRTIO_BLK_T_DISCARD, &whole, 1), OK, "DISCARD of a block");
	want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, &whole, 1), OK, "WRITE_ZEROES of a block");
	want_on_disk(fd, 0, 4096, 51, "the block before");
	want_zero(fd, 4096, 4096, "the block");
	want_on_disk(fd, 8192, 4096, 51, "the block behind");
}

static void trims_of_none(const void *arg)
{
	struct virtio_blk_discard_write_zeroes r = { .sector = 8, .num_sectors = 8 };
	int fd = open_backend(arg, O_RDWR | O_DIRECT);
	struct vdev v = { 0 };

	dev_open(&v, 1, FEATURES);
	dev_start(&v, fd);
	want_status(ranges(&v, VIRTIO_BLK_T_DISCARD, &r, 1), UNSUPP, "DISCARD of a disk that has none");
	for (unsigned int i = 0; i < 2; i++) {
		r.flags = i ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0;
		put_on_disk(fd, 4096, 4096, 52);
		want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, &r, 1), OK, "WRITE_ZEROES");
		want_zero(fd, 4096, 4096, "the range");
	}
}

/* ---- the hypervisor's side ---- */

static void refused_commands(const void *arg)
{
	uint64_t packed = F(VIRTIO_F_VERSION_1) | F(VIRTIO_F_RING_PACKED), log = F(VHOST_F_LOG_ALL);
	struct vhost_blk_backend odd = { .fd = -1, .flags = 1 };
	uint32_t none = 0, most = VHOST_BLK_MAX_QUEUES, many = most + 1, one = 1;
	struct vhost_vring_state num = { 0, 128 };
	struct vhost_vring_addr nowhere = { .index = 0, .desc_user_addr = F(63), .avail_user_addr = F(63), .used_user_addr = F(63) };
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	struct vdev v = { .fd = open("/dev/vhost-blk", O_RDWR) };

	want_res(dev_try_backend(&v, fd), -EPERM, "SET_BACKEND without an owner");
	want_res(vhost_try(&v, VHOST_BLK_SET_QUEUES, &none), -EINVAL, "no queues");
	want_res(vhost_try(&v, VHOST_BLK_SET_QUEUES, &many), -EINVAL, "1025 queues");
	vhost_do(&v, VHOST_SET_OWNER, NULL, "SET_OWNER");
	want_res(dev_try_backend(&v, fd), -EINVAL, "SET_BACKEND without rings");
	vhost_do(&v, VHOST_RESET_OWNER, NULL, "RESET_OWNER");
	vhost_do(&v, VHOST_BLK_SET_QUEUES, &most, "SET_QUEUES 1024");
	vhost_do(&v, VHOST_SET_OWNER, NULL, "SET_OWNER");
	num.index = most - 1;
	vhost_do(&v, VHOST_SET_VRING_NUM, &num, "SET_VRING_NUM of the last queue");
	num.index = most;
	want_res(vhost_try(&v, VHOST_SET_VRING_NUM, &num), -ENOBUFS, "a queue more");
	num.index = 0;
	close(v.fd);

	dev_open(&v, 1, FEATURES);
	want_res(vhost_try(&v, VHOST_BLK_SET_QUEUES, &one), -EBUSY, "SET_QUEUES with an owner");
	want_res(vhost_try(&v, VHOST_SET_FEATURES, &packed), -EOPNOTSUPP, "packed rings");
	want_res(vhost_try(&v, VHOST_SET_FEATURES, &log), -EOPNOTSUPP, "the dirty log");
	want_res(dev_try_backend(&v, 1000), -EBADF, "no file");
	want_res(dev_try_backend(&v, open("/", O_RDONLY)), -EINVAL, "a folder");
	want_res(dev_try_backend(&v, open("/dev/null", O_RDWR)), -EINVAL, "a character device");
	want_res(dev_try_backend(&v, open(disk_path(), O_RDWR)), -EINVAL, "a file without O_DIRECT");
	want_res(dev_try_backend(&v, open(disk_path(), O_WRONLY | O_DIRECT)), -EINVAL, "a write-only file");
	want_res(dev_try_backend(&v, open(file_path(), O_RDWR | O_DIRECT | O_APPEND)), -EINVAL, "a file to append to");
	want_res(vhost_try(&v, VHOST_BLK_SET_BACKEND, &odd), -EINVAL, "an unknown flag");
	dev_start(&v, fd);
	want_res(vhost_try(&v, VHOST_SET_FEATURES, &v.features), -EBUSY, "SET_FEATURES while it runs");
	want_res(vhost_try(&v, VHOST_SET_VRING_NUM, &num), -EBUSY, "SET_VRING_NUM while it runs");
	dev_stop(&v);
	vhost_do(&v, VHOST_SET_VRING_ADDR, &nowhere, "SET_VRING_ADDR, looked at later");
	want_res(dev_try_backend(&v, fd), -EFAULT, "rings nowhere");
	dev_rings(&v);
	dev_start(&v, fd);
	want_status(command(&v, VIRTIO_BLK_T_IN, 0, buf_at(1), 512), OK, "IN after all that");
}

/* One request in each queue, put there before the device was started */
static void kicks_before(const void *arg)
{
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	struct vdev v = { 0 };
	struct chain c;

	dev_open(&v, 40, FEATURES);
	for (unsigned int i = 0; i < v.nq; i++) {
		chain_cmd(&v, &c, buf_at(0) + i * 32, VIRTIO_BLK_T_IN, i * 8, buf_at(1) + i * 4096, 4096, 4096);
		queue_put(&v, i, &c);
		/* without a kick at all */
	}
	dev_start(&v, fd);
	for (unsigned int i = 0; i < v.nq; i++) {
		want_eq(queue_wait(&v.q[i], 1, 5000), 1, "answers in queue %u", i);
		want_status(*mem_at(&v, buf_at(0) + i * 32 + 16), OK, "IN");
	}
	mem_intact(&v);
}

static unsigned int worker_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	char path[300], comm[20] = "", want[20];
	unsigned int n = 0;
	struct dirent *e;
	int fd;

	snprintf(want, sizeof(want), "vhost-%d", getpid());
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0 && !strncmp(comm, want, strlen(want)))
			n++;
		close(fd);
	}
	closedir(d);
	return n;
}

/* So many requests of every queue in flight, again and again */
static void load(struct vdev *v, unsigned int rounds, void (*between)(struct vdev *v, unsigned int round))
{
	struct chain c;

	for (unsigned int r = 0; r < rounds; r++) {
		for (unsigned int i = 0; i < v->nq; i++) {
			for (unsigned int k = 0; k < 8; k++) {
				unsigned int at = i * 8 + k;

				chain_cmd(v, &c, buf_at(0) + at * 32, VIRTIO_BLK_T_IN, at * 8, buf_at(1) + at * 4096, 4096, 4096);
				queue_put(v, i, &c);
			}
			queue_kick(&v->q[i]);
		}
		if (between)
			between(v, r);
		for (unsigned int i = 0; i < v->nq; i++)
			want_eq(queue_wait(&v->q[i], 8, 10000), 8, "answers in queue %u, round %u", i, r);
		for (unsigned int at = 0; at < v->nq * 8; at++) {
			want_status(*mem_at(v, buf_at(0) + at * 32 + 16), OK, "IN");
			want_pattern(mem_at(v, buf_at(1) + at * 4096), 4096, at * 4096, 31, "data");
			memset(mem_at(v, buf_at(1) + at * 4096), 0, 512);
		}
	}
}

static unsigned int worker_ids[3];

static void attach(struct vdev *v, unsigned int queue, unsigned int id)
{
	struct vhost_vring_worker w = { queue, id };

	vhost_do(v, VHOST_ATTACH_VRING_WORKER, &w, "ATTACH_VRING_WORKER");
	vhost_do(v, VHOST_GET_VRING_WORKER, &w, "GET_VRING_WORKER");
	want_eq(w.worker_id, id, "worker of queue %u", queue);
}

static void swap_workers(struct vdev *v, unsigned int round)
{
	attach(v, 0, worker_ids[round % 3]);
	attach(v, 1, worker_ids[(round + 1) % 3]);
}

static void workers(const void *arg)
{
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	struct vhost_vring_worker first = { 0, 0 };
	struct vhost_worker_state w;
	struct vdev v = { 0 };

	put_on_disk(fd, 0, 64 * KiB, 31);
	dev_open(&v, 2, FEATURES);
	vhost_do(&v, VHOST_GET_VRING_WORKER, &first, "GET_VRING_WORKER");
	worker_ids[0] = first.worker_id;
	for (unsigned int i = 1; i < 3; i++) {
		vhost_do(&v, VHOST_NEW_WORKER, &w, "NEW_WORKER");
		worker_ids[i] = w.worker_id;
	}
	if (worker_ids[0] == worker_ids[1] || worker_ids[1] == worker_ids[2])
		fail("got workers %u %u %u, wanted three", worker_ids[0], worker_ids[1], worker_ids[2]);
	want_eq(worker_threads(), 3, "worker threads");
	dev_start(&v, fd);
	load(&v, 12, swap_workers);
	attach(&v, 0, worker_ids[1]);
	attach(&v, 1, worker_ids[2]);
	w.worker_id = worker_ids[1];
	want_res(vhost_try(&v, VHOST_FREE_WORKER, &w), -EBUSY, "FREE_WORKER of an attached one");
	w.worker_id = worker_ids[0];
	vhost_do(&v, VHOST_FREE_WORKER, &w, "FREE_WORKER");
	/* The kernel waits until it runs no more, not until it is gone from /proc */
	for (unsigned int i = 0; i < 5000 && worker_threads() > 2; i++)
		usleep(1000);
	want_eq(worker_threads(), 2, "worker threads");
	load(&v, 2, NULL);
	mem_intact(&v);
}

static void kthread_worker(const void *arg)
{
	int fd = open_backend(disk_path(), O_RDWR | O_DIRECT);
	struct vdev v = { .kthread = true };

	put_on_disk(fd, 0, 64 * KiB, 31);
	dev_open(&v, 2, FEATURES);
	dev_start(&v, fd);
	load(&v, 4, NULL);
	want_eq(worker_threads(), 0, "workers among the process's threads");
	dev_stop(&v);
	mem_intact(&v);
}

/* Each file holds what it holds; which one answers is known after the change */
static void change_backend(struct vdev *v, unsigned int round)
{
	dev_start(v, open_backend(round % 2 ? disk_path() : file_path(), O_RDWR | O_DIRECT));
}

static void set_table(struct vdev *v, unsigned int round)
{
	dev_table(v);
}

static void changes(const void *arg)
{
	int fds[2] = { open_backend(disk_path(), O_RDWR | O_DIRECT), open_backend(file_path(), O_RDWR | O_DIRECT) };
	struct vdev v = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		put_on_disk(fds[i], 0, 128 * KiB, 31);
		put_on_disk(fds[i], MiB, 4096, 40 + i);
	}
	dev_open(&v, 4, FEATURES);
	dev_start(&v, fds[0]);
	load(&v, 8, change_backend);
	load(&v, 8, set_table);
	for (unsigned int i = 0; i < 2; i++) {
		dev_start(&v, fds[i]);
		want_status(command(&v, VIRTIO_BLK_T_IN, 2048, buf_at(1), 4096), OK, "IN");
		want_pattern(mem_at(&v, buf_at(1)), 4096, MiB, 40 + i, "data of the new backend");
	}
	mem_intact(&v);
}

/* ---- with requests that the disk holds ---- */

static void ctl(const char *cmd)
{
	char line[300];

	snprintf(line, sizeof(line), "$VBLK_CTL %s >/tmp/ctl.out 2>&1", cmd);
	if (!getenv("VBLK_CTL"))
		skip("there is no programmable disk");
	if (system(line))
		fail("got an error from the programmable disk for %s, wanted none", cmd);
}

/* A read at sector 800 that the disk has and doesn't answer */
static void hold_one(struct vdev *v, uint32_t type, const char *rule)
{
	struct chain c;

	ctl("clear release");	/* what a failed behaviour may have left */
	ctl(rule);
	memset(mem_at(v, buf_at(1)), 0, 4096);
	chain_cmd(v, &c, buf_at(0), type, 800, buf_at(1), type == VIRTIO_BLK_T_FLUSH ? 0 : 4096, 4096);
	queue_put(v, 0, &c);
	queue_kick(&v->q[0]);
	ctl("'wait held=1 20'");
}

static void open_held(struct vdev *v)
{
	dev_open(v, 1, FEATURES);
	dev_start(v, open_backend(t_disk(2), O_RDWR | O_DIRECT));
}

static void flush_stalls_nothing(const void *arg)
{
	struct vdev v = { 0 };
	struct chain c;

	open_held(&v);
	/* the disk's cache must have something to flush */
	want_status(command(&v, VIRTIO_BLK_T_OUT, 0, buf_at(2), 4096), OK, "OUT");
	hold_one(&v, VIRTIO_BLK_T_FLUSH, "'rule type=flush hold'");
	for (unsigned int i = 0; i < 20; i++) {
		chain_cmd(&v, &c, buf_at(0) + 64, i % 2 ? VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT, i * 8, buf_at(2), 4096, 4096);
		want_status(send_chain(&v, &c, buf_at(0) + 64 + 16), OK, "I/O beside a flush");
	}
	want_status(*mem_at(&v, STATUS), UNANSWERED, "the flush");
	ctl("clear release");
	want_eq(queue_wait(&v.q[0], 1, 5000), 1, "answers");
	want_status(*mem_at(&v, STATUS), OK, "the flush");
}

/* More flushes of one guest than a workqueue has workers, and its disk takes its time: no other guest's wait */
static void flush_of_others(const void *arg)
{
	struct vdev v = { .q[0].num = 512 }, other = { 0 };
	struct chain c;

	open_held(&v);
	dev_open(&other, 1, FEATURES);
	dev_start(&other, open_backend(disk_path(), O_RDWR | O_DIRECT));
	hold_one(&v, VIRTIO_BLK_T_FLUSH, "'rule type=flush hold'");
	for (unsigned int i = 1; i < 300; i++) {
		chain_cmd(&v, &c, buf_at(4) + i * 32, VIRTIO_BLK_T_FLUSH, 0, 0, 0, 1);
		queue_indirect(&v, 0, &c, buf_at(6) + i * 32);
	}
	queue_kick(&v.q[0]);
	chain_cmd(&other, &c, buf_at(0), VIRTIO_BLK_T_FLUSH, 0, 0, 0, 1);
	queue_put(&other, 0, &c);
	queue_kick(&other.q[0]);
	want_eq(queue_wait(&other.q[0], 1, 30000), 1, "flushes of the other guest");
	want_status(*mem_at(&other, STATUS), OK, "FLUSH");
	want_eq(v.q[0].used->idx, 0, "flushes of the slow disk");
	ctl("clear release");
	want_eq(queue_wait(&v.q[0], 300, 30000), 300, "answers");
}

/* Flushes that the disk was given so far, from its log */
static unsigned int flushes(void)
{
	FILE *f = fopen(getenv("VBLK_LOG") ?: "", "r");
	unsigned int n = 0;
	char line[1000];

	if (!f)
		skip("there is no log of the programmable disk");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "\"name\":\"flush\"") != NULL;
	fclose(f);
	return n;
}

/* Write-back with FLUSH; a guest that didn't take it has no other way to be safe */
static void cache_mode(const void *arg)
{
	struct virtio_blk_discard_write_zeroes zeroes = { .num_sectors = 8 };
	struct vdev v = { 0 };
	unsigned int before;

	ctl("clear");
	open_held(&v);
	before = flushes();
	want_status(command(&v, VIRTIO_BLK_T_OUT, 0, buf_at(1), 4096), OK, "OUT");
	want_eq(flushes() - before, 0, "flushes of the disk after OUT with FLUSH taken");
	dev_stop(&v);
	dev_rings(&v);
	v.features &= ~F(VIRTIO_BLK_F_FLUSH);
	vhost_do(&v, VHOST_SET_FEATURES, &v.features, "SET_FEATURES");
	dev_start(&v, open_backend(t_disk(2), O_RDWR | O_DIRECT));
	want_status(command(&v, VIRTIO_BLK_T_OUT, 0, buf_at(1), 4096), OK, "OUT");
	want_eq(flushes() - before, 1, "flushes of the disk after OUT without FLUSH");
	want_status(ranges(&v, VIRTIO_BLK_T_WRITE_ZEROES, &zeroes, 1), OK, "WRITE_ZEROES");
	want_eq(flushes() - before, 2, "flushes of the disk after WRITE_ZEROES without FLUSH");
}

struct drain {
	void (*command)(struct vdev *v);
	const char *what;
	bool goes_on;
};

static struct { struct vdev v; const struct drain *d; } draining;

static void *drain_thread(void *arg)
{
	draining.d->command(&draining.v);
	/* what is so when the command comes back */
	return (void *)(uintptr_t)(uint8_t)*mem_at(&draining.v, STATUS);
}

static void to_other_disk(struct vdev *v)
{
	dev_start(v, open_backend(disk_path(), O_RDWR | O_DIRECT));
}

/*
 * With a read in flight the command waits for its end. What is put into the
 * ring meanwhile is for whom comes after; its kick was for nobody.
 */
static void drains(const void *arg)
{
	struct vhost_vring_state base = { 0, 0 };
	struct vdev *v = &draining.v;
	struct timespec soon;
	struct chain c;
	pthread_t t;
	void *status;

	draining.d = arg;
	put_on_disk(open_backend(disk_path(), O_RDWR | O_DIRECT), MiB, 4096, 61);
	open_held(v);
	hold_one(v, VIRTIO_BLK_T_IN, "'rule type=in sector=800 hold'");
	pthread_create(&t, NULL, drain_thread, NULL);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	if (!pthread_timedjoin_np(t, &status, &soon))
		fail("got the end of %s with a read in flight, wanted it to wait", draining.d->what);
	chain_cmd(v, &c, buf_at(2), VIRTIO_BLK_T_IN, 2048, buf_at(3), 4096, 4096);
	queue_put(v, 0, &c);
	queue_kick(&v->q[0]);
	if (queue_wait(&v->q[0], 1, 100))
		fail("got an answer while %s waits, wanted none", draining.d->what);
	ctl("clear release");
	pthread_join(t, &status);
	want_status((uintptr_t)status, OK, "the read when the command came back");
	if (!draining.d->goes_on) {
		want_eq(v->q[0].used->idx, 1, "answers");
		vhost_do(v, VHOST_GET_VRING_BASE, &base, "GET_VRING_BASE");
		want_eq(base.num, 1, "ring position");
		to_other_disk(v);
	}
	want_eq(queue_wait(&v->q[0], 2, 5000), 2, "answers in the end");
	want_status(*mem_at(v, buf_at(2) + 16), OK, "the read of meanwhile");
	if (draining.d->command != dev_table)
		want_pattern(mem_at(v, buf_at(3)), 4096, MiB, 61, "its data, from the other disk");
}

/*
 * Let go a little later, from outside: whoever drains waits for it. No fork of
 * this program, which would hold the device open too.
 */
static void release_soon(void)
{
	if (system("(sleep 0.5; $VBLK_CTL clear release >/tmp/ctl.soon 2>&1) &"))
		die("no shell");
}

static void reset_drains(const void *arg)
{
	struct vdev v = { 0 };

	open_held(&v);
	hold_one(&v, VIRTIO_BLK_T_IN, "'rule type=in sector=800 hold'");
	release_soon();
	vhost_do(&v, VHOST_RESET_OWNER, NULL, "RESET_OWNER");
	want_status(*mem_at(&v, STATUS), OK, "the read when RESET_OWNER came back");
	close(v.fd);
	open_held(&v);
	want_status(command(&v, VIRTIO_BLK_T_IN, 0, buf_at(1), 512), OK, "IN with a new owner");
	hold_one(&v, VIRTIO_BLK_T_IN, "'rule type=in sector=800 hold'");
	release_soon();
	close(v.fd);
	want_status(*mem_at(&v, STATUS), OK, "the read when the device was closed");
}

static void owner_killed(const void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct vdev v = { 0 };

		open_held(&v);
		hold_one(&v, VIRTIO_BLK_T_IN, "'rule type=in sector=800 hold'");
		release_soon();
		raise(SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		fail("got status %#x of the owner, wanted a kill", status);
}

static void backend_errors(const void *arg)
{
	struct vdev v = { 0 };

	open_held(&v);
	ctl("clear");
	ctl("'rule type=in sector=800 status=1' 'rule type=out sector=800 status=1'");
	want_status(command(&v, VIRTIO_BLK_T_IN, 800, buf_at(1), 4096), IOERR, "IN the disk fails");
	want_eq(v.q[0].used->ring[0].len, 0, "used length of a failed read");
	want_status(command(&v, VIRTIO_BLK_T_OUT, 800, buf_at(1), 4096), IOERR, "OUT the disk fails");
	ctl("clear");
	want_status(command(&v, VIRTIO_BLK_T_IN, 800, buf_at(1), 4096), OK, "IN afterwards");
}

int main(int argc, char **argv)
{
	static const struct drain stop = { dev_stop, "SET_BACKEND -1", false },
		change = { to_other_disk, "SET_BACKEND", true },
		table = { dev_table, "SET_MEM_TABLE", true };
	struct shape s = { 0 };

	t_start_any(argc, argv, "vhost-blk's promises. DISK FILE [PROGRAMMABLE-DISK [4K-DISK NO-DISCARD-DISK]], all scratch");
	if (!file_path())
		die("give a block device and a regular file to write to; try --help");
	s.path = disk_path();
	s.piece = 4096;
	t_run("data-disk", data, &s);
	s.piece = 512;
	s.indirect = true;
	s.path = file_path();
	s.features = F(VIRTIO_RING_F_EVENT_IDX);
	/* 256 KiB in pieces of 512 bytes is more than MAX_DESC */
	s.piece = 1024;
	t_run("data-file-indirect-event-idx", data, &s);
	s.features = 0;
	s.piece = UINT32_MAX;
	t_run("data-file-whole", data, &s);
	t_run("descriptor-borders", layouts, NULL);
	t_run("event-idx", event_idx, NULL);
	t_run("get-id", get_id, NULL);
	t_run("unknown-types", unknown_types, NULL);
	t_run("refused-io", refused_io, NULL);
	t_run("read-only", readonly, NULL);
	t_run("trim-file", trims, file_path());
	t_run("trim-disk", trims, disk_path());
	t_run("refused-commands", refused_commands, NULL);
	t_run("kicks-before-start-40-queues", kicks_before, NULL);
	t_run("workers", workers, NULL);
	t_run("kernel-thread-worker", kthread_worker, NULL);
	t_run("changes-under-load", changes, NULL);
	if (!t_disk(2))
		return t_end();
	t_run("flush-stalls-nothing", flush_stalls_nothing, NULL);
	t_run("flush-of-others", flush_of_others, NULL);
	t_run("cache-mode", cache_mode, NULL);
	t_run("stop-drains", drains, &stop);
	t_run("change-drains", drains, &change);
	t_run("memory-table-drains", drains, &table);
	t_run("reset-and-close-drain", reset_drains, NULL);
	t_run("owner-killed", owner_killed, NULL);
	t_run("backend-errors", backend_errors, NULL);
	if (!t_disk(4))
		return t_end();
	t_run("trim-4k-blocks", trims_of_4k, t_disk(3));
	t_run("trim-without-discard", trims_of_none, t_disk(4));
	return t_end();
}
