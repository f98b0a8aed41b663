// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data through /dev/vdXc0 equals data through /dev/vdX and in the image file
 *
 * Each behaviour writes into a region of its own, so that at the end the host
 * can compare the whole image with what should be there.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA	(4 * MiB)
#define HALF	(ARENA / 2)

enum path { P_BLK, P_IO, P_VEC, P_FIXED, P_IO64, P_VEC64, P_FIXED64, N_PATHS };

static const char * const path_name[] = { "block", "io", "vec", "fixed",
	"io64", "vec64", "fixed64" };

/* Rings and a registered arena: the first half is written, the second read */
struct kit {
	struct ring	wide, small;
	int		chr, blk;
	char		*out, *in;
};

static void kit_ring(struct ring *r, unsigned int setup, char *arena)
{
	struct iovec reg = { arena, ARENA };
	int ret;

	ring_open(r, 64, setup);
	ret = io_uring_register_buffers(&r->u, &reg, 1);
	want_res(ret, 0, "registering %llu bytes", ARENA);
}

static struct kit *kit_new(unsigned int setup)
{
	struct kit *k = calloc(1, sizeof(*k));

	k->chr = open_chr(O_RDWR);
	k->blk = open_blk(O_RDWR | O_DIRECT);
	k->out = map_pages(ARENA);
	k->in = k->out + HALF;
	memset(k->out, 0, ARENA);
	kit_ring(&k->wide, WIDE | setup, k->out);
	kit_ring(&k->small, setup, k->out);
	return k;
}

/*
 * Cuts buf into n pieces, uneven ones where the length allows; every fourth
 * is empty when there are more than three, and the sum stays len.
 */
static void cut(struct iovec *iov, unsigned int n, char *buf, size_t len)
{
	size_t units = len / 512, done = 0, part;
	unsigned int i;

	for (i = 0; i < n; i++) {
		part = (units - done) / (n - i);
		if (n > 3 && i % 4 == 1)
			part = 0;
		else if (part > 1 && i % 2)
			part--;
		if (i == n - 1)
			part = units - done;
		iov[i] = (struct iovec){ buf + done * 512, part * 512 };
		done += part;
	}
}

static void by_block(struct kit *k, bool write, uint64_t off, char *buf,
		     size_t len)
{
	ssize_t n = write ? pwrite(k->blk, buf, len, off)
			  : pread(k->blk, buf, len, off);

	if (n != (ssize_t)len)
		fail("block %s of %zu at %llu: got %zd (%s)",
		     write ? "write" : "read", len, (unsigned long long)off, n,
		     err_name(-errno));
}

static void by_node(struct kit *k, enum path p, bool write, uint64_t off,
		    char *buf, size_t len)
{
	static const uint32_t op[] = {
		[P_IO] = VIRTBLK_URING_CMD_IO,
		[P_VEC] = VIRTBLK_URING_CMD_IO_VEC,
		[P_FIXED] = VIRTBLK_URING_CMD_IO,
		[P_IO64] = VIRTBLK_URING_CMD_IO64,
		[P_VEC64] = VIRTBLK_URING_CMD_IO64_VEC,
		[P_FIXED64] = VIRTBLK_URING_CMD_IO64 };
	bool vec = p == P_VEC || p == P_VEC64;
	struct vcmd c = vcmd(k->chr, op[p], write ? VIRTIO_BLK_T_OUT
			     : VIRTIO_BLK_T_IN, off / 512, buf, len);
	struct iovec iov[3];
	struct answer a;

	if (vec) {
		cut(iov, 3, buf, len);
		c.data = (uintptr_t)iov;
		c.len = 3;
	}
	if (p == P_FIXED || p == P_FIXED64)
		c.uring_flags = IORING_URING_CMD_FIXED;
	a = ring_do(op_is_64(c.op) ? &k->small : &k->wide, &c);
	want_res(a.res, 0, "%s %s of %zu at %llu", path_name[p],
		 write ? "write" : "read", len, (unsigned long long)off);
	want_eq(a.big0, 0, "%s: big_cqe[0]", path_name[p]);
}

static void move(struct kit *k, enum path p, bool write, uint64_t off,
		 char *buf, size_t len)
{
	if (p == P_BLK)
		by_block(k, write, off, buf, len);
	else
		by_node(k, p, write, off, buf, len);
}

/* ---- every pair of paths ---- */

struct pair {
	enum path	w, r;
	unsigned int	index;
};

#define PAIR_ROOM	(2 * MiB)
#define PAIR_BASE	(16 * MiB)

static unsigned int pair_sizes(size_t *size)
{
	size_t lbs = disk.lbs;
	/* 128 and more pages: more segments than the smallest rings hold */
	size_t want[] = { lbs, 2 * lbs, 4096, 4096 + lbs, 65536, 131072 - lbs,
			  disk.info.max_bytes_any / lbs * lbs };
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		if (want[i] <= disk.info.max_bytes_any && want[i] <= HALF / 2)
			size[n++] = want[i];
	return n;
}

static void test_pair(const void *arg)
{
	const struct pair *pair = arg;
	uint64_t off = PAIR_BASE + pair->index * PAIR_ROOM;
	uint64_t seed = 100 + pair->index;
	unsigned int i, n;
	size_t size[8];
	struct kit *k;

	if ((pair->w >= P_IO64 || pair->r >= P_IO64) && !has_io64())
		skip("the driver has no IO64 here");
	k = kit_new(0);
	n = pair_sizes(size);
	for (i = 0; i < n; i++) {
		pattern_fill(k->out, size[i], off, seed);
		memset(k->in, 0xa5, size[i] + 512);
		move(k, pair->w, true, off, k->out, size[i]);
		move(k, pair->r, false, off, k->in, size[i]);
		want_pattern(k->in, size[i], off, seed, "read back");
		want_pattern(k->out, size[i], off, seed, "the source");
		want_byte(k->in + size[i], 512, 0xa5, "behind the buffer");
		expect_on_image(off, size[i], seed);
		off += size[i];
	}
}

/* With PAIRS=few in the environment only those with block I/O */
static void run_pairs(void)
{
	bool few = getenv("PAIRS") && !strcmp(getenv("PAIRS"), "few");
	struct pair p = { 0, 0, 0 };
	char name[64];

	for (p.w = 0; p.w < N_PATHS; p.w++)
		for (p.r = 0; p.r < N_PATHS; p.r++) {
			/* two 64-byte forms are the same code as two wide ones */
			if (p.w >= P_IO64 && p.r >= P_IO64 && p.w != p.r)
				continue;
			if (few && (p.w == P_BLK) == (p.r == P_BLK))
				continue;
			snprintf(name, sizeof(name), "pair-%s-to-%s",
				 path_name[p.w], path_name[p.r]);
			t_run(name, test_pair, &p);
			p.index++;
		}
}

/* What the host put there before the boot */
static void test_from_host(const void *arg)
{
	unsigned long long off, len, seed;
	struct kit *k = kit_new(0);
	char path[256];
	enum path p;
	FILE *f;

	if (!getenv("VM_SCRATCH"))
		skip("no folder shared with the host");
	snprintf(path, sizeof(path), "%s/%s.prefill", getenv("VM_SCRATCH"),
		 disk.serial);
	f = fopen(path, "re");
	if (!f)
		skip("the host filled nothing in");
	while (fscanf(f, "%llu %llu %llu", &off, &len, &seed) == 3)
		for (p = P_BLK; p < (has_io64() ? N_PATHS : P_IO64); p++) {
			unsigned long long done, n;

			memset(k->in, 0, len);
			/* What passes however the buffer happens to lie. */
			for (done = 0; done < len; done += n) {
				n = len - done;
				if (n > disk.info.max_bytes_any)
					n = disk.info.max_bytes_any;
				move(k, p, false, off + done,
				     (char *)k->in + done, n);
			}
			want_pattern(k->in, len, off, seed, path_name[p]);
		}
}

/* ---- places ---- */

#define AREA(n)		(256 * MiB + (n) * 16 * MiB)

static void test_past_2tib(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	uint64_t high = ((1ULL << 32) + 8) * 512, low = 8 * 512;
	enum path p, paths = has_io64() ? N_PATHS : P_IO64;
	struct kit *k;
	uint64_t seed;

	need_poll(setup);
	k = kit_new(setup);
	if (disk.bytes < high + MiB)
		skip("the disk ends before 2 TiB");
	for (p = P_BLK; p < paths; p++) {
		seed = 7000 + p;
		pattern_fill(k->out, 4096, low, seed);
		blk_write(low, k->out, 4096);
		pattern_fill(k->out, 4096, high, seed);
		move(k, p, true, high, k->out, 4096);
		blk_read(low, k->in, 4096);
		want_pattern(k->in, 4096, low, seed, "sector 8");
		blk_read(high, k->in, 4096);
		want_pattern(k->in, 4096, high, seed, "sector 2^32+8 by block");
		memset(k->in, 0, 4096);
		move(k, p, false, high, k->in, 4096);
		want_pattern(k->in, 4096, high, seed, path_name[p]);
	}
	expect_on_image(low, 4096, 7000 + paths - 1);
	expect_on_image(high, 4096, 7000 + paths - 1);
}

static void test_last_block(const void *arg)
{
	uint64_t off = disk.bytes - disk.lbs;
	struct kit *k = kit_new(0);

	pattern_fill(k->out, disk.lbs, off, 5);
	move(k, P_IO, true, off, k->out, disk.lbs);
	blk_read(off, k->in, disk.lbs);
	want_pattern(k->in, disk.lbs, off, 5, "the last block");
	expect_on_image(off, disk.lbs, 5);
}

/* Only the bytes of block N change, whatever the block size (V19) */
static void test_units(const void *arg)
{
	uint64_t base = AREA(0), off = base + 8 * disk.lbs;
	size_t len = 16 * disk.lbs;
	struct kit *k = kit_new(0);

	pattern_fill(k->out, len, base, 19);
	blk_write(base, k->out, len);
	pattern_fill(k->out, disk.lbs, off, 20);
	move(k, P_IO, true, off, k->out, disk.lbs);
	blk_read(base, k->in, len);
	want_pattern(k->in, 8 * disk.lbs, base, 19, "the blocks before");
	want_pattern(k->in + 8 * disk.lbs, disk.lbs, off, 20, "the block");
	want_pattern(k->in + 9 * disk.lbs, 7 * disk.lbs, off + disk.lbs, 19,
		     "the blocks behind");
	expect_on_image(base, 8 * disk.lbs, 19);
	expect_on_image(off, disk.lbs, 20);
	expect_on_image(off + disk.lbs, 7 * disk.lbs, 19);
}

/* ---- vectors ---- */

static void test_iovecs(const void *arg)
{
	static const unsigned int counts[] = { 1, 2, 3, 9, 64, 1024 };
	uint32_t op = *(const uint32_t *)arg;
	struct iovec *iov = calloc(1024, sizeof(*iov));
	struct kit *k;
	struct ring *r;
	unsigned int i, flags;
	uint64_t off = AREA(1) + (op_is_64(op) ? 8 * MiB : 0);
	size_t len = 96 * KiB;
	struct vcmd c;

	if (op_is_64(op) && !has_io64())
		skip("the driver has no IO64 here");
	k = kit_new(0);
	r = op_is_64(op) ? &k->small : &k->wide;
	if (len > disk.info.max_bytes_any)
		len = disk.info.max_bytes_any / disk.lbs * disk.lbs;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		for (flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
			pattern_fill(k->out, len, off, i + flags);
			cut(iov, counts[i], k->out, len);
			c = vcmd(k->chr, op, VIRTIO_BLK_T_OUT, off / 512, iov,
				 counts[i]);
			c.sqe_flags = flags;
			want_res(ring_do(r, &c).res, 0, "write of %u iovecs%s",
				 counts[i], flags ? ", async" : "");
			blk_read(off, k->in, len);
			want_pattern(k->in, len, off, i + flags, "by block");
			memset(k->in, 0, len);
			cut(iov, counts[i], k->in, len);
			c.type = VIRTIO_BLK_T_IN;
			want_res(ring_do(r, &c).res, 0, "read of %u iovecs%s",
				 counts[i], flags ? ", async" : "");
			want_pattern(k->in, len, off, i + flags, "by iovecs");
		}
	expect_on_image(off, len, i - 1 + IOSQE_ASYNC);
}

/* Pieces at odd addresses and of odd lengths, whose sum is whole blocks */
static void test_odd_iovecs(const void *arg)
{
	struct kit *k = kit_new(0);
	uint64_t off = AREA(2);
	size_t len = 8 * disk.lbs, at = 0, part;
	char *spread = map_pages(64 * KiB);
	struct iovec iov[16];
	struct vcmd c;
	unsigned int n = 0, i;

	memset(spread, 0xa5, 64 * KiB);
	pattern_fill(k->out, len, off, 33);
	while (at < len) {
		part = n == 15 ? len - at : 1 + 37 * n * disk.lbs / 512;
		part = part < len - at ? part : len - at;
		iov[n++] = (struct iovec){ spread + 3 + at + n * 5, part };
		at += part;
	}
	for (i = 0, at = 0; i < n; at += iov[i++].iov_len)
		memcpy(iov[i].iov_base, k->out + at, iov[i].iov_len);
	c = vcmd(k->chr, VIRTBLK_URING_CMD_IO_VEC, VIRTIO_BLK_T_OUT, off / 512,
		 iov, n);
	want_res(ring_do(&k->wide, &c).res, 0, "write");
	blk_read(off, k->in, len);
	want_pattern(k->in, len, off, 33, "by block");
	memset(spread, 0xa5, 64 * KiB);
	c.type = VIRTIO_BLK_T_IN;
	want_res(ring_do(&k->wide, &c).res, 0, "read");
	for (i = 0, at = 0; i < n; at += iov[i++].iov_len) {
		if (memcmp(iov[i].iov_base, k->out + at, iov[i].iov_len))
			fail("iovec %u: got other data than written", i);
		memset(iov[i].iov_base, 0xa5, iov[i].iov_len);
	}
	want_byte(spread, 64 * KiB, 0xa5, "between the pieces");
}

/* ---- buffers ---- */

static void test_unaligned(const void *arg)
{
	static const unsigned int shift[] = { 1, 4, 7, 255, 256, 511, 512,
		1536, 4095 };
	struct kit *k = kit_new(0);
	unsigned int i, fixed;
	uint64_t off = AREA(3);
	size_t len = 12 * KiB;
	struct vcmd c;

	for (i = 0; i < ARRAY_SIZE(shift); i++)
		for (fixed = 0; fixed < 2; fixed++) {
			pattern_fill(k->out + shift[i], len, off, i);
			c = vcmd(k->chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT,
				 off / 512, k->out + shift[i], len);
			c.uring_flags = fixed ? IORING_URING_CMD_FIXED : 0;
			want_res(ring_do(&k->wide, &c).res, 0,
				 "write from +%u, fixed %u", shift[i], fixed);
			blk_read(off, k->out, len);
			want_pattern(k->out, len, off, i, "by block");
			memset(k->in, 0xa5, len + 8192);
			c.type = VIRTIO_BLK_T_IN;
			c.data = (uintptr_t)k->in + shift[i];
			want_res(ring_do(&k->wide, &c).res, 0,
				 "read to +%u, fixed %u", shift[i], fixed);
			want_pattern(k->in + shift[i], len, off, i, "read");
			want_byte(k->in, shift[i], 0xa5, "before the buffer");
			want_byte(k->in + shift[i] + len, 512, 0xa5, "behind it");
		}
	expect_on_image(off, len, i - 1);
}

/*
 * A small transfer out of a registered buffer with more pages than a command
 * may have segments: only the pages of the transfer count.
 */
static void test_fixed_small_of_large(const void *arg)
{
	uint64_t off = AREA(4);
	struct kit *k = kit_new(0);
	size_t at;
	struct vcmd c;

	if (ARENA / 4096 <= disk.info.max_segments)
		skip("%u segments are allowed, the buffer has fewer pages",
		     disk.info.max_segments);
	for (at = 0; at < HALF; at += HALF / 8 + 512) {
		pattern_fill(k->out + at, 4096, off, at);
		c = vcmd(k->chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT,
			 off / 512, k->out + at, 4096);
		c.uring_flags = IORING_URING_CMD_FIXED;
		want_res(ring_do(&k->wide, &c).res, 0, "fixed write at +%zu", at);
		blk_read(off, k->in, 4096);
		want_pattern(k->in, 4096, off, at, "by block");
	}
}

/* Huge pages of all kinds as registered buffers (P26) */
static void fixed_roundtrip(char *mem, size_t len, const char *kind)
{
	struct iovec reg = { mem, len };
	int ret, chr = open_chr(O_RDWR);
	uint64_t off = AREA(5);
	size_t half = MiB, part = disk.info.max_bytes_any;
	struct ring r;
	struct vcmd c;

	part = (part < half ? part : half) / 4096 * 4096;
	ring_open(&r, 8, WIDE);
	ret = io_uring_register_buffers(&r.u, &reg, 1);
	if (ret)
		skip("registering %s: %s", kind, err_name(ret));
	pattern_fill(mem, part, off, 26);
	c = vcmd(chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT, off / 512, mem,
		 part);
	c.uring_flags = IORING_URING_CMD_FIXED;
	want_res(ring_do(&r, &c).res, 0, "write from %s", kind);
	/* across the border between two huge pages when reading */
	mem += len >= 4 * MiB ? 2 * MiB - 4096 - 512 : half;
	c.data = (uintptr_t)mem;
	c.type = VIRTIO_BLK_T_IN;
	want_res(ring_do(&r, &c).res, 0, "read to %s", kind);
	want_pattern(mem, part, off, 26, kind);
	ring_close(&r);
	close(chr);
}

static void test_huge_anon(const void *arg)
{
	fixed_roundtrip(map_huge(4 * MiB), 4 * MiB, "MAP_HUGETLB");
}

static void test_huge_memfd(const void *arg)
{
	unsigned int flags = *(const unsigned int *)arg;
	int fd = memfd_create("uring", flags);
	char *p;

	if (fd < 0 || ftruncate(fd, 4 * MiB))
		skip("memfd with flags %#x: %s", flags, err_name(-errno));
	p = mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		skip("no huge pages for a memfd (vm.nr_hugepages)");
	fixed_roundtrip(p, 4 * MiB, "a memfd");
}

static void test_thp(const void *arg)
{
	char *p = mmap(NULL, 8 * MiB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	p = (char *)(((uintptr_t)p + 2 * MiB - 1) / (2 * MiB) * (2 * MiB));
	if (madvise(p, 4 * MiB, MADV_HUGEPAGE))
		skip("no transparent huge pages");
	memset(p, 1, 4 * MiB);
	fixed_roundtrip(p, 4 * MiB, "transparent huge pages");
}

/* LEN bytes that are the same two huge pages again and again */
static char *map_repeated(size_t len)
{
	int fd = memfd_create("uring", MFD_HUGETLB);
	char *whole, *p;

	if (fd < 0 || ftruncate(fd, 4 * MiB))
		skip("memfd of huge pages: %s", err_name(-errno));
	whole = mmap(NULL, len + 6 * MiB, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	whole = (char *)(((uintptr_t)whole + 2 * MiB - 1) / (2 * MiB) * (2 * MiB));
	for (p = whole; p < whole + len; p += 4 * MiB)
		if (mmap(p, 4 * MiB, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) != p)
			skip("no huge pages for a memfd (vm.nr_hugepages)");
	return whole;
}

/* The largest buffer that can be registered */
static void test_1gib(const void *arg)
{
	fixed_roundtrip(map_repeated(GiB), GiB, "1 GiB");
}

/* As long as INFO says that one command may be, of a place that was never written */
static void test_largest(const void *arg)
{
	size_t len = disk.info.max_segments * 2 * MiB;
	int chr = open_chr(O_RDONLY);
	struct ring r;
	struct vcmd c;
	char *p;

	if (disk.bytes < 3 * GiB)
		skip("the disk is smaller than 3 GiB");
	if (disk.info.max_segment_size < 2 * MiB)
		skip("segments of %u bytes", disk.info.max_segment_size);
	len = len < disk.info.max_bytes ? len : disk.info.max_bytes;
	p = map_repeated(len);
	memset(p, 0xff, 4 * MiB);
	ring_open(&r, 8, WIDE);
	c = vcmd(chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN, 2 * GiB / 512, p,
		 len);
	want_res(ring_do(&r, &c).res, 0, "read of %zu bytes", len);
	want_byte(p, 4 * MiB, 0, "what was read last");
	c.len += disk.info.logical_block_size;
	if (c.len > disk.info.max_bytes)
		want_res(ring_do(&r, &c).res, -EINVAL, "a block more");
}

/* ---- limits ---- */

static uint64_t frame_of(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t e = 0;

	if (fd < 0 || pread(fd, &e, 8, (uintptr_t)p / 4096 * 8) != 8)
		skip("no page map of this process");
	close(fd);
	return e & ((1ULL << 55) - 1);
}

/* n pages of which none follows its predecessor in physical memory */
static char **scattered_pages(unsigned int n)
{
	char **page = calloc(n, sizeof(*page)), *mem = map_pages(n * 3 * 4096ULL);
	uint64_t last = 0, f;
	unsigned int got = 0, i;

	memset(mem, 1, n * 3 * 4096ULL);
	for (i = 0; i < n * 3 && got < n; i++) {
		f = frame_of(mem + i * 4096ULL);
		if (!f)
			skip("frame numbers are hidden");
		if (got && (f == last + 1 || f + 1 == last))
			continue;
		page[got++] = mem + i * 4096ULL;
		last = f;
	}
	if (got < n)
		skip("no %u scattered pages", n);
	return page;
}

/* Exactly max_segments scattered pages pass, one more is refused (P12) */
static void test_max_segments(const void *arg)
{
	unsigned int n = disk.info.max_segments, i, extra;
	struct kit *k = kit_new(0);
	struct iovec *iov;
	uint64_t off = AREA(6);
	char **page;
	struct vcmd c;
	int want;

	if (n > 1023)
		skip("%u segments are more than iovecs can name", n);
	page = scattered_pages(n + 1);
	iov = calloc(n + 1, sizeof(*iov));
	for (i = 0; i <= n; i++) {
		iov[i] = (struct iovec){ page[i], 4096 };
		pattern_fill(page[i], 4096, off + i * 4096ULL, 12);
	}
	for (extra = 0; extra < 2; extra++) {
		want = extra ? -EINVAL : 0;
		c = vcmd(k->chr, VIRTBLK_URING_CMD_IO_VEC, VIRTIO_BLK_T_OUT,
			 off / 512, iov, n + extra);
		want_res(ring_do(&k->wide, &c).res, want,
			 "write of max_segments + %u pages", extra);
		c.sqe_flags = IOSQE_ASYNC;
		c.type = VIRTIO_BLK_T_IN;
		want_res(ring_do(&k->wide, &c).res, want,
			 "read of max_segments + %u pages", extra);
	}
	for (i = 0; i < n; i++)
		want_pattern(page[i], 4096, off + i * 4096ULL, 12, "a page");
	expect_on_image(off, n * 4096ULL, 12);
}

/* The size INFO promises for any alignment, from the worst alignment */
static void test_max_any(const void *arg)
{
	size_t len = disk.info.max_bytes_any / disk.lbs * disk.lbs;
	int chr = open_chr(O_RDWR);
	uint64_t off = AREA(7);
	char *buf;
	struct ring r;
	struct vcmd c;
	unsigned int i;

	if (len > 16 * MiB)
		len = 16 * MiB;
	buf = map_pages(len + 8192);
	ring_open(&r, 8, WIDE);
	for (i = 0; i < 3; i++) {
		char *p = buf + i * 512 + (i == 2);

		pattern_fill(p, len, off, i);
		c = vcmd(chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT, off / 512,
			 p, len);
		want_res(ring_do(&r, &c).res, 0, "write of %zu bytes from +%u",
			 len, (unsigned int)(p - buf));
		memset(p, 0, len);
		c.type = VIRTIO_BLK_T_IN;
		want_res(ring_do(&r, &c).res, 0, "read of %zu bytes to +%u",
			 len, (unsigned int)(p - buf));
		want_pattern(p, len, off, i, "read");
	}
	expect_on_image(off, len, i - 1);
}

/* One transfer far larger than max_segments pages, of few large segments */
static void test_large_contiguous(const void *arg)
{
	size_t len = 16 * MiB;
	int chr = open_chr(O_RDWR);
	uint64_t off = AREA(8);
	struct ring r;
	struct vcmd c;
	char *p;

	if (len > disk.info.max_bytes)
		len = disk.info.max_bytes;
	if (disk.info.max_segments < 16)
		skip("only %u segments", disk.info.max_segments);
	p = map_huge(len);
	ring_open(&r, 8, WIDE);
	pattern_fill(p, len, off, 8);
	c = vcmd(chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT, off / 512, p, len);
	want_res(ring_do(&r, &c).res, 0, "write of %zu bytes", len);
	memset(p, 0, len);
	c.type = VIRTIO_BLK_T_IN;
	want_res(ring_do(&r, &c).res, 0, "read of %zu bytes", len);
	want_pattern(p, len, off, 8, "read");
	expect_on_image(off, len, 8);
}

/* ---- polled, many at a time, from every CPU ---- */

static void test_polled(const void *arg)
{
	uint64_t off = AREA(9);
	size_t size[8];
	unsigned int i, n;
	struct kit *k;
	enum path p;

	need_poll(IORING_SETUP_IOPOLL);
	k = kit_new(IORING_SETUP_IOPOLL);
	n = pair_sizes(size);
	for (p = P_IO; p < (has_io64() ? N_PATHS : P_IO64); p++)
		for (i = 0; i < n; i++) {
			pattern_fill(k->out, size[i], off, p);
			by_node(k, p, true, off, k->out, size[i]);
			memset(k->in, 0, size[i]);
			by_block(k, false, off, k->in, size[i]);
			want_pattern(k->in, size[i], off, p, "by block");
			memset(k->in, 0, size[i]);
			by_node(k, p, false, off, k->in, size[i]);
			want_pattern(k->in, size[i], off, p, path_name[p]);
		}
}

struct stress {
	unsigned int	cpu, rounds, setup;
};

#define DEPTH	128

/* DEPTH writes in flight, then as many reads, each checked on its own */
static void *stress_thread(void *arg)
{
	struct stress *s = arg;
	uint64_t base = AREA(10) + s->cpu * 4 * MiB, off;
	char *buf = map_pages(DEPTH * 4096);
	int chr = open_chr(O_RDWR);
	unsigned int round, i, pass;
	struct answer a;
	struct ring r;
	cpu_set_t set;
	struct vcmd c;

	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	ring_open(&r, DEPTH, WIDE | s->setup);
	for (round = 0; round < s->rounds; round++)
		for (pass = 0; pass < 2; pass++) {
			for (i = 0; i < DEPTH; i++) {
				off = base + i * 4096;
				if (pass)
					memset(buf + i * 4096, 0, 4096);
				else
					pattern_fill(buf + i * 4096, 4096, off,
						     round);
				c = vcmd(chr, VIRTBLK_URING_CMD_IO, pass ?
					 VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT,
					 off / 512, buf + i * 4096, 4096);
				c.user_data = i;
				ring_put(&r, &c);
			}
			ring_submit(&r);
			for (i = 0; i < DEPTH; i++) {
				a = ring_take(&r);
				want_res(a.res, 0, "CPU %u command %llu",
					 s->cpu, (unsigned long long)a.user_data);
			}
			for (i = 0; i < DEPTH; i++)
				want_pattern(buf + i * 4096, 4096,
					     base + i * 4096, round, "stress");
		}
	ring_close(&r);
	return NULL;
}

static void test_every_cpu(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	unsigned int n = sysconf(_SC_NPROCESSORS_ONLN), i;
	struct stress s[16];
	pthread_t t[16];

	need_poll(setup);
	if (n > 4)
		n = 4;
	for (i = 0; i < n; i++) {
		s[i] = (struct stress){ i, t_rounds(4, 200), setup };
		pthread_create(&t[i], NULL, stress_thread, &s[i]);
	}
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* ---- the other commands a stock disk has ---- */

static void test_get_id(const void *arg)
{
	struct kit *k = kit_new(0);
	char *end = (char *)map_pages(4096) + 4096;
	struct vcmd c = vcmd(k->chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_GET_ID,
			     0, end - 20, 20);

	memset(end - 40, 0xa5, 40);
	want_res(ring_do(&k->wide, &c).res, 0, "GET_ID");
	if (strncmp(end - 20, disk.serial, 20))
		fail("GET_ID: got %.20s, wanted %s", end - 20, disk.serial);
	want_byte(end - 40, 20, 0xa5, "before the 20 bytes");
}

static void test_flush(const void *arg)
{
	struct kit *k = kit_new(0);
	struct vcmd c = vcmd(k->chr, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_FLUSH,
			     0, NULL, 0);
	bool offered = disk.info.virtio_features >> VIRTIO_BLK_F_FLUSH & 1;

	want_res(ring_do(&k->wide, &c).res, offered ? 0 : -EOPNOTSUPP, "FLUSH");
	c.data = 0x1000;
	c.uring_flags = IORING_URING_CMD_FIXED;
	want_res(ring_do(&k->wide, &c).res, offered ? 0 : -EOPNOTSUPP,
		 "FLUSH with data and FIXED, which it ignores");
}

/* Only the range named in the list is zeroed (the value of V19 and V22) */
static void test_zeroes(const void *arg)
{
	uint32_t type = *(const uint32_t *)arg;
	uint64_t base = AREA(type == VIRTIO_BLK_T_DISCARD ? 11 : 12);
	struct virtio_blk_discard_write_zeroes range;
	struct kit *k = kit_new(0);
	uint64_t off = base + 16 * KiB;
	struct vcmd c;

	if (!has_command(type))
		skip("the disk has no command %u", type);
	pattern_fill(k->out, 64 * KiB, base, type);
	blk_write(base, k->out, 64 * KiB);
	range.sector = off / 512;
	range.num_sectors = 16 * KiB / 512;
	range.flags = 0;
	c = vcmd(k->chr, VIRTBLK_URING_CMD_IO, type, 0, &range, sizeof(range));
	want_res(ring_do(&k->wide, &c).res, 0, "type %u", type);
	blk_read(base, k->in, 64 * KiB);
	want_pattern(k->in, 16 * KiB, base, type, "before the range");
	want_pattern(k->in + 32 * KiB, 32 * KiB, base + 32 * KiB, type,
		     "behind the range");
	if (type == VIRTIO_BLK_T_WRITE_ZEROES)
		want_byte(k->in + 16 * KiB, 16 * KiB, 0, "the range");
	expect_on_image(base, 16 * KiB, type);
	expect_on_image(base + 32 * KiB, 32 * KiB, type);
}

/*
 * The range list as iovecs that cut through its fields, as a registered
 * buffer, and at an odd address: it is gathered into one copy.
 */
static void test_zeroes_forms(const void *arg)
{
	struct virtio_blk_discard_write_zeroes *range;
	uint64_t off = AREA(13);
	struct kit *k = kit_new(0);
	struct iovec iov[3];
	unsigned int form;
	struct vcmd c;

	if (!has_command(VIRTIO_BLK_T_WRITE_ZEROES))
		skip("the disk has no WRITE_ZEROES");
	for (form = 0; form < 4; form++) {
		char *at = k->in + 64 * KiB + (form == 1 ? 3 : 0);
		struct virtio_blk_discard_write_zeroes v = {
			.sector = off / 512, .num_sectors = 8 };

		pattern_fill(k->out, 4096, off, form);
		blk_write(off, k->out, 4096);
		memcpy(at, &v, sizeof(v));
		range = (void *)at;
		c = vcmd(k->chr, form == 2 ? VIRTBLK_URING_CMD_IO_VEC :
			 VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_WRITE_ZEROES, 0,
			 range, sizeof(v));
		if (form == 2) {
			iov[0] = (struct iovec){ at, 3 };
			iov[1] = (struct iovec){ at + 3, 7 };
			iov[2] = (struct iovec){ at + 10, 6 };
			c.data = (uintptr_t)iov;
			c.len = 3;
		}
		c.uring_flags = form == 3 ? IORING_URING_CMD_FIXED : 0;
		want_res(ring_do(&k->wide, &c).res, 0, "form %u", form);
		blk_read(off, k->in, 4096);
		want_byte(k->in, 4096, 0, "the range");
	}
}

int main(int argc, char **argv)
{
	static const unsigned int irq, polled = IORING_SETUP_IOPOLL;
	static const unsigned int memfd_huge = MFD_HUGETLB, memfd_plain;
	static const uint32_t vec = VIRTBLK_URING_CMD_IO_VEC,
		vec64 = VIRTBLK_URING_CMD_IO64_VEC,
		discard = VIRTIO_BLK_T_DISCARD,
		zeroes = VIRTIO_BLK_T_WRITE_ZEROES;

	t_start(argc, argv, "Data through every path of a disk of 1 GiB and more.");
	if (disk.bytes < GiB)
		die("%s: the disk has less than 1 GiB", disk.blk);
	run_pairs();
	t_run("host-to-guest", test_from_host, NULL);
	t_run("P01-past-2TiB", test_past_2tib, &irq);
	t_run("P01-past-2TiB-polled", test_past_2tib, &polled);
	t_run("last-block", test_last_block, NULL);
	t_run("V19-units", test_units, NULL);
	t_run("P24-iovecs", test_iovecs, &vec);
	t_run("P24-iovecs-64", test_iovecs, &vec64);
	t_run("odd-iovecs", test_odd_iovecs, NULL);
	t_run("unaligned-buffers", test_unaligned, NULL);
	t_run("fixed-small-of-large", test_fixed_small_of_large, NULL);
	t_run("P26-fixed-hugetlb", test_huge_anon, NULL);
	t_run("P26-fixed-hugetlb-memfd", test_huge_memfd, &memfd_huge);
	t_run("P26-fixed-memfd", test_huge_memfd, &memfd_plain);
	t_run("P26-fixed-thp", test_thp, NULL);
	t_run("P26-fixed-1-GiB", test_1gib, NULL);
	t_run("P12-max-segments", test_max_segments, NULL);
	t_run("max-bytes-any-alignment", test_max_any, NULL);
	t_run("large-contiguous", test_large_contiguous, NULL);
	t_run("largest-transfer", test_largest, NULL);
	t_run("polled-paths", test_polled, NULL);
	t_run("every-cpu", test_every_cpu, &irq);
	t_run("every-cpu-polled", test_every_cpu, &polled);
	t_run("get-id", test_get_id, NULL);
	t_run("flush", test_flush, NULL);
	t_run("discard-range", test_zeroes, &discard);
	t_run("write-zeroes-range", test_zeroes, &zeroes);
	t_run("range-list-forms", test_zeroes_forms, NULL);
	return t_end();
}
