// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page cache of /dev/vdX against commands through /dev/vdXc0
 *
 * Disks: 1 plain, 2 throttled, 3 with sector BAD failing.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE(n)	(64 * MiB + (n) * MiB)
#define BAD		4096		/* sector that disk 3 fails */
#define IO		VIRTBLK_URING_CMD_IO
#define IO64		VIRTBLK_URING_CMD_IO64

static void use_disk(unsigned int n)
{
	if (!t_disk(n))
		skip("no disk of that kind given");
	disk_open(t_disk(n));
}

static void cached_write(int fd, uint64_t off, size_t len, uint64_t seed)
{
	char *buf = map_pages(len);

	pattern_fill(buf, len, off, seed);
	if (pwrite(fd, buf, len, off) != (ssize_t)len)
		fail("buffered write: %s", strerror(errno));
	munmap(buf, len);
}

static void cached_want(int fd, uint64_t off, size_t len, uint64_t seed,
			const char *what)
{
	char *buf = map_pages(len);

	if (pread(fd, buf, len, off) != (ssize_t)len)
		fail("buffered read: %s", strerror(errno));
	want_pattern(buf, len, off, seed, what);
	munmap(buf, len);
}

static void direct_want(uint64_t off, size_t len, uint64_t seed, const char *what)
{
	char *buf = map_pages(len);

	blk_read(off, buf, len);
	want_pattern(buf, len, off, seed, what);
	munmap(buf, len);
}

/* Passthrough in one way of submitting it: at once, by a worker, polled */
static int node_io(const void *arg, uint32_t type, uint64_t off, void *buf,
		   size_t len)
{
	const char *how = arg;
	int fd = open_chr(O_RDWR);
	struct answer a;
	struct ring r;
	struct vcmd c = vcmd(fd, IO, type, off / 512, buf, len);

	if (!strcmp(how, "async"))
		c.sqe_flags = IOSQE_ASYNC;
	if (!strcmp(how, "IO64")) {
		if (!has_io64())
			skip("the driver has no IO64 here");
		c.op = IO64;
	}
	if (!strcmp(how, "polled") && !has_poll())
		skip("the disk has no poll queue");
	ring_open(&r, 4, WIDE | (!strcmp(how, "polled") ? IORING_SETUP_IOPOLL
				 : !strcmp(how, "SQPOLL") ? IORING_SETUP_SQPOLL
				 : 0));
	a = ring_do(&r, &c);
	ring_close(&r);
	close(fd);
	return a.res;
}

static void node_write(const void *how, uint64_t off, size_t len, uint64_t seed)
{
	char *buf = map_pages(len);

	pattern_fill(buf, len, off, seed);
	want_res(node_io(how, VIRTIO_BLK_T_OUT, off, buf, len), 0, "OUT");
	munmap(buf, len);
}

static void node_want(const void *how, uint64_t off, size_t len, uint64_t seed,
		      const char *what)
{
	char *buf = map_pages(len);

	want_res(node_io(how, VIRTIO_BLK_T_IN, off, buf, len), 0, "IN");
	want_pattern(buf, len, off, seed, what);
	munmap(buf, len);
}

/* A read finds what was written into the cache only */
static void test_read_sees_dirty(const void *how)
{
	int fd = open_blk(O_RDWR);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		cached_write(fd, PLACE(0), 64 * KiB, i);
		node_want(how, PLACE(0) + 8 * KiB, 4096, i, "a dirty page");
		node_want(how, PLACE(0), 64 * KiB, i, "dirty pages");
	}
}

/* A cached page is not the truth any more after a write */
static void test_no_stale_reads(const void *how)
{
	int fd = open_blk(O_RDWR);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		cached_write(fd, PLACE(1), 64 * KiB, 100);
		fsync(fd);
		cached_want(fd, PLACE(1), 64 * KiB, 100, "cached");
		node_write(how, PLACE(1) + 4096, 8192, i);
		cached_want(fd, PLACE(1) + 4096, 8192, i, "after the write");
		cached_want(fd, PLACE(1), 4096, 100, "before its range");
		cached_want(fd, PLACE(1) + 12288, 8192, 100, "behind its range");
	}
}

/* A write smaller than the dirty page it falls into: both survive */
static void test_smaller_than_page(const void *how)
{
	int fd = open_blk(O_RDWR);
	uint64_t off = PLACE(2);
	unsigned int i;

	if (disk.lbs > 512)
		skip("blocks of %u bytes fill the page", disk.lbs);
	for (i = 0; i < 10; i++) {
		cached_write(fd, off, 4096, 200 + i);
		node_write(how, off + 1024, 512, 300 + i);
		cached_want(fd, off, 1024, 200 + i, "the page before it");
		cached_want(fd, off + 1024, 512, 300 + i, "the write");
		cached_want(fd, off + 1536, 2560, 200 + i, "the page behind it");
		fsync(fd);
		direct_want(off, 1024, 200 + i, "the disk before it");
		direct_want(off + 1024, 512, 300 + i, "the disk");
		direct_want(off + 1536, 2560, 200 + i, "the disk behind it");
	}
}

/* Dirty memory of a mapping counts as well */
static void test_mapped(const void *how)
{
	int fd = open_blk(O_RDWR);
	uint64_t off = PLACE(3);
	char *map = mmap(NULL, 64 * KiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 off);

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	pattern_fill(map, 64 * KiB, off, 31);
	node_want(how, off, 64 * KiB, 31, "written by a mapping");
	node_write(how, off + 4096, 4096, 32);
	want_pattern(map + 4096, 4096, off + 4096, 32, "read by the mapping");
	want_pattern(map, 4096, off, 31, "the mapping before it");
}

static void test_zeroes_drop_cache(const void *arg)
{
	uint32_t type = *(const uint32_t *)arg;
	struct virtio_blk_discard_write_zeroes range = {
		.sector = PLACE(4) / 512 + 8, .num_sectors = 8 };
	int fd = open_blk(O_RDWR), chr = open_chr(O_RDWR);
	char *buf = map_pages(4096), *now = map_pages(4096);
	struct ring r;
	struct vcmd c;

	if (!has_command(type))
		skip("the disk has no command %u", type);
	cached_write(fd, PLACE(4), 16 * KiB, 41);	/* dirty */
	ring_open(&r, 4, WIDE);
	c = vcmd(chr, IO, type, 0, &range, sizeof(range));
	want_res(ring_do(&r, &c).res, 0, "type %u", type);
	cached_want(fd, PLACE(4), 4096, 41, "before the range");
	cached_want(fd, PLACE(4) + 8192, 8192, 41, "behind the range");
	fsync(fd);
	blk_read(PLACE(4) + 4096, now, 4096);
	if (pread(fd, buf, 4096, PLACE(4) + 4096) != 4096)
		fail("buffered read: %s", strerror(errno));
	if (memcmp(buf, now, 4096))
		fail("cached content of the range: got other than the disk's");
	if (type == VIRTIO_BLK_T_WRITE_ZEROES)
		want_byte(buf, 4096, 0, "the range");
}

/*
 * Write-back of a page is under way on a slow disk when passthrough writes the
 * same place: the later one wins.
 */
static void test_writeback_in_flight(const void *how)
{
	uint64_t off = PLACE(5);
	int fd;

	use_disk(1);
	fd = open_blk(O_RDWR);
	cached_write(fd, off, 64 * KiB, 51);
	if (sync_file_range(fd, off, 64 * KiB, SYNC_FILE_RANGE_WRITE))
		fail("sync_file_range: %s", strerror(errno));
	node_write(how, off + 8192, 4096, 52);
	node_want(how, off + 8192, 4096, 52, "after both");
	cached_want(fd, off + 8192, 4096, 52, "cached after both");
	fsync(fd);
	direct_want(off, 8192, 51, "before it");
	direct_want(off + 8192, 4096, 52, "the write");
	direct_want(off + 12288, 52 * KiB, 51, "behind it");
}

/* A page that can't be written back: -EIO and nothing sent */
static void test_writeback_fails(const void *how)
{
	uint64_t page = BAD * 512ULL / 4096 * 4096, sent;
	char *buf = map_pages(4096);
	int fd;

	use_disk(2);
	fd = open_blk(O_RDWR);
	if (page != BAD * 512ULL)
		die("the bad sector must begin a page");
	cached_write(fd, page, 4096, 61);
	sent = node_commands();
	memset(buf, 0x77, 4096);
	want_res(node_io(how, VIRTIO_BLK_T_OUT, page + 1024, buf, 512), -EIO,
		 "OUT over a page that can't be written back");
	want_eq(node_commands(), sent, "commands sent, by the node's stat");
	blk_read(page + 1024, buf, 512);
	if (buf[0] == 0x77)
		fail("the disk: got the refused write's data");
}

/* Data behind the end keeps its dirty neighbours before the end safe */
static void test_over_the_end(const void *how)
{
	uint64_t off = disk.bytes - 4096;
	int fd = open_blk(O_RDWR);
	char *buf = map_pages(8192);

	cached_write(fd, off, 4096, 71);
	want_res(node_io(how, VIRTIO_BLK_T_OUT, off, buf, 8192), -EIO,
		 "OUT over the end");
	cached_want(fd, off, 4096, 71, "cached");
	fsync(fd);
	direct_want(off, 4096, 71, "on disk");
}

/* Readers fill the cache while passthrough writes: none stays stale */
static volatile bool stop;

static void *reader(void *arg)
{
	int fd = open_blk(O_RDONLY);
	char buf[4096];

	while (!stop)
		if (pread(fd, buf, 4096, PLACE(8)) != 4096)
			fail("buffered read: %s", strerror(errno));
	return NULL;
}

static void test_racing_readers(const void *how)
{
	uint64_t end = now_ms() + t_rounds(1500, 30000);
	int fd = open_blk(O_RDONLY), chr = open_chr(O_RDWR);
	char *buf = map_pages(4096);
	uint64_t seed = 0;
	pthread_t t[2];
	struct ring r;
	struct vcmd c;
	int i;

	ring_open(&r, 4, WIDE);
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, reader, NULL);
	while (now_ms() < end) {
		pattern_fill(buf, 4096, PLACE(8), ++seed);
		c = vcmd(chr, IO, VIRTIO_BLK_T_OUT, PLACE(8) / 512, buf, 4096);
		want_res(ring_do(&r, &c).res, 0, "OUT");
		cached_want(fd, PLACE(8), 4096, seed, "after a write among readers");
	}
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void run_all(const char *name, void (*fn)(const void *))
{
	static const char * const how[] = { "plain", "async", "IO64", "polled",
		"SQPOLL" };
	char full[80];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(how); i++) {
		snprintf(full, sizeof(full), "%s-%s", name, how[i]);
		t_run(full, fn, how[i]);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t discard = VIRTIO_BLK_T_DISCARD,
		zeroes = VIRTIO_BLK_T_WRITE_ZEROES;

	t_start(argc, argv, "The page cache against passthrough.\n"
		"Disks: plain, throttled, with sector 4096 failing");
	run_all("read-sees-dirty-page", test_read_sees_dirty);
	run_all("no-stale-read", test_no_stale_reads);
	run_all("write-into-dirty-page", test_smaller_than_page);
	run_all("mapping", test_mapped);
	run_all("write-back-in-flight", test_writeback_in_flight);
	run_all("write-back-fails", test_writeback_fails);
	run_all("over-the-end", test_over_the_end);
	t_run("discard-drops-cache", test_zeroes_drop_cache, &discard);
	t_run("write-zeroes-drops-cache", test_zeroes_drop_cache, &zeroes);
	t_run("racing-readers", test_racing_readers, NULL);
	return t_end();
}
