// SPDX-License-Identifier: GPL-2.0-only
/* What the node's ioctls and sysfs files answer, also to 32-bit callers */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd_of(const void *arg)
{
	return open_chr(*(const int *)arg);
}

static uint64_t queue_number(const char *name)
{
	return sys_number("/sys/block/%s/queue/%s", disk.name, name);
}

static void test_block_ioctls(const void *arg)
{
	int fd = fd_of(arg), v = -1;
	uint64_t size = 0;
	unsigned int pbs = 0;

	want_res(ioctl(fd, BLKGETSIZE64, &size) ? -errno : 0, 0, "BLKGETSIZE64");
	want_eq(size, sys_number("/sys/block/%s/size", disk.name) * 512,
		"BLKGETSIZE64");
	want_res(ioctl(fd, BLKSSZGET, &v) ? -errno : 0, 0, "BLKSSZGET");
	want_eq(v, queue_number("logical_block_size"), "BLKSSZGET");
	want_res(ioctl(fd, BLKPBSZGET, &pbs) ? -errno : 0, 0, "BLKPBSZGET");
	want_eq(pbs, queue_number("physical_block_size"), "BLKPBSZGET");
	v = -1;
	want_res(ioctl(fd, BLKROGET, &v) ? -errno : 0, 0, "BLKROGET");
	want_eq(v, sys_number("/sys/block/%s/ro", disk.name), "BLKROGET");
}

static void test_roget_follows(const void *arg)
{
	int fd = open_chr(O_RDONLY), blk = open_blk(O_RDONLY), v, on;
	struct virtblk_uring_info info;

	if (disk.readonly)
		skip("the disk is read-only anyway");
	for (on = 1; on >= 0; on--) {
		want_res(ioctl(blk, BLKROSET, &on) ? -errno : 0, 0, "BLKROSET");
		want_res(ioctl(fd, BLKROGET, &v) ? -errno : 0, 0, "BLKROGET");
		want_eq(v, on, "BLKROGET after BLKROSET %d", on);
		info.size = sizeof(info);
		want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, &info) ? -errno : 0, 0,
			 "VIRTBLK_IOCTL_INFO");
		want_eq(info.flags & VIRTBLK_URING_INFO_RO, on, "INFO's flag");
	}
}

static void test_errors(const void *arg)
{
	int fd = open_chr(O_RDONLY), i;
	static const unsigned long unknown[] = { 0, BLKRRPART, BLKFLSBUF,
		BLKROSET, BLKDISCARD, _IO(0xB2, 0x02), _IO(0xB2, 0x00),
		0x5331, ~0U };
	char *end = (char *)map_pages(4096) + 4096;

	for (i = 0; i < (int)ARRAY_SIZE(unknown); i++)
		want_res(ioctl(fd, unknown[i], end - 512) ? -errno : 0, -ENOTTY,
			 "ioctl %#lx", unknown[i]);
	want_res(ioctl(fd, BLKGETSIZE64, NULL) ? -errno : 0, -EFAULT,
		 "BLKGETSIZE64 to nowhere");
	want_res(ioctl(fd, BLKSSZGET, end) ? -errno : 0, -EFAULT,
		 "BLKSSZGET to nowhere");
	want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, NULL) ? -errno : 0, -EFAULT,
		 "INFO to nowhere");
	*(uint32_t *)(end - 64) = VIRTBLK_URING_INFO_SIZE_V0;
	want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, end - 64) ? -errno : 0, -EFAULT,
		 "INFO that reaches into a forbidden page");
}

static void test_info_sizes(const void *arg)
{
	static const uint32_t bad[] = { 0, 1, 4, VIRTBLK_URING_INFO_SIZE_V0 - 1,
		4097, 1U << 31, ~0U };
	static const uint32_t good[] = { VIRTBLK_URING_INFO_SIZE_V0,
		VIRTBLK_URING_INFO_SIZE_V0 + 1, 512, 4096 };
	unsigned char *p = map_pages(8192);
	int fd = open_chr(O_RDONLY);
	uint32_t size;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(p, 0xa5, 8192);
		memcpy(p, &bad[i], 4);
		want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, p) ? -errno : 0, -EINVAL,
			 "INFO with size %u", bad[i]);
		want_byte(p + 4, 8188, 0xa5, "the answer to a refused size");
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		memset(p, 0xa5, 8192);
		memcpy(p, &good[i], 4);
		want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, p) ? -errno : 0, 0,
			 "INFO with size %u", good[i]);
		memcpy(&size, p, 4);
		want_eq(size, VIRTBLK_URING_INFO_SIZE_V0, "size that came back");
		want_byte(p + size, good[i] - size, 0, "room behind the answer");
		want_byte(p + good[i], 8192 - good[i], 0xa5, "what isn't ours");
	}
}

/* Every value has a second source: sysfs */
static void test_info_values(const void *arg)
{
	struct virtblk_uring_info *i = &disk.info;
	char bits[80];
	uint64_t features = 0, any;
	unsigned int k;

	want_eq(i->capacity, sys_number("/sys/block/%s/size", disk.name),
		"capacity");
	want_eq(i->logical_block_size, queue_number("logical_block_size"),
		"logical_block_size");
	want_eq(i->physical_block_size, queue_number("physical_block_size"),
		"physical_block_size");
	want_eq(i->max_segments, queue_number("max_segments"), "max_segments");
	want_eq(i->max_segment_size, queue_number("max_segment_size"),
		"max_segment_size");
	any = queue_number("max_hw_sectors_kb") * 1024;
	any = any < GiB ? any : GiB;
	if (i->max_bytes > any)
		fail("max_bytes: got %u, wanted at most %llu", i->max_bytes,
		     (unsigned long long)any);
	if (i->max_bytes_any > i->max_bytes ||
	    i->max_bytes_any % i->logical_block_size)
		fail("max_bytes_any: got %u with max_bytes %u", i->max_bytes_any,
		     i->max_bytes);
	any = (i->max_segments - 1) * (uint64_t)getpagesize();
	want_eq(i->max_bytes_any, any < i->max_bytes ? any : i->max_bytes,
		"max_bytes_any");
	if (!sys_string(bits, sizeof(bits), "/sys/block/%s/device/features",
			disk.name))
		fail("no features in sysfs");
	for (k = 0; bits[k]; k++)
		features |= (uint64_t)(bits[k] == '1') << k;
	want_eq(i->virtio_features, features, "virtio_features");
	want_eq(i->dma_alignment, 511, "dma_alignment");
	want_eq(i->reserved, 0, "reserved");
}

static void test_info_commands(const void *arg)
{
	struct virtblk_uring_info *i = &disk.info;
	bool discard = i->virtio_features >> VIRTIO_BLK_F_DISCARD & 1;
	bool zeroes = i->virtio_features >> VIRTIO_BLK_F_WRITE_ZEROES & 1;

	want_eq(has_command(VIRTIO_BLK_T_IN), 1, "IN");
	want_eq(has_command(VIRTIO_BLK_T_OUT), !disk.readonly, "OUT");
	want_eq(has_command(VIRTIO_BLK_T_GET_ID), 1, "GET_ID");
	want_eq(has_command(VIRTIO_BLK_T_FLUSH),
		i->virtio_features >> VIRTIO_BLK_F_FLUSH & 1, "FLUSH");
	want_eq(has_command(VIRTIO_BLK_T_DISCARD), discard && !disk.readonly,
		"DISCARD");
	want_eq(has_command(VIRTIO_BLK_T_WRITE_ZEROES), zeroes && !disk.readonly,
		"WRITE_ZEROES");
	want_eq(has_command(2) + has_command(3), 0, "the SCSI types");
	want_eq(has_io64(), kernel_release >= 612, "IO64 on this kernel");
	if (discard)
		want_eq(i->max_discard_sectors * 512ULL,
			queue_number("discard_max_hw_bytes"), "max_discard_sectors");
}

static void test_stat(const void *arg)
{
	uint64_t before, after;
	char *buf = map_pages(4096), line[256];

	if (!sys_string(line, sizeof(line), "/sys/class/vblk-generic/%sc0/stat",
			disk.name))
		fail("no stat below /sys/class/vblk-generic/%sc0", disk.name);
	before = node_commands();
	chr_read(0, buf, 4096);
	after = node_commands();
	if (after == before)
		fail("stat after a read: got the same counters, wanted more");
	before = after;
	blk_read(0, buf, 4096);
	want_eq(node_commands(), before, "counters after a block read");
}

/* The node hangs below the virtio device, named after the disk (V04) */
static void test_sysfs_place(const void *arg)
{
	char path[128], node[512], dev[512];
	struct stat st;
	unsigned int major, minor;

	snprintf(path, sizeof(path), "/sys/class/vblk-generic/%sc0/device",
		 disk.name);
	if (!realpath(path, node))
		fail("%s: got nothing, wanted the virtio device", path);
	snprintf(path, sizeof(path), "/sys/block/%s/device", disk.name);
	if (!realpath(path, dev) || strcmp(node, dev))
		fail("parent of the node: got %s, wanted %s", node, dev);
	if (!sys_string(path, sizeof(path), "/sys/class/vblk-generic/%sc0/dev",
			disk.name) ||
	    sscanf(path, "%u:%u", &major, &minor) != 2 || stat(disk.chr, &st))
		fail("no device number of the node");
	want_eq(st.st_rdev, (uint64_t)major << 8 | minor, "%s", disk.chr);
}

/*
 * A 32-bit call from a 64-bit program: int 0x80 takes the compat entry, with
 * everything it points to below 4 GiB.
 */
#ifdef __x86_64__
static long call32(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("push %%rbp; xor %%ebp, %%ebp; int $0x80; pop %%rbp"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#define IOCTL32			54
#define IO_URING_SETUP32	425
#define IO_URING_ENTER32	426
#define BLKGETSIZE64_32		_IOR(0x12, 114, uint32_t)

static char *low_memory(void)
{
	int status;
	char *p = mmap(NULL, MiB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory below 4 GiB");
	if (fork() == 0) {	/* without the entry this is a signal */
		call32(20, 0, 0, 0, 0, 0);
		_exit(0);
	}
	wait(&status);
	if (status)
		skip("the kernel runs no 32-bit programs");
	return p;
}

static void test_ioctl32(const void *arg)
{
	char *p = low_memory();
	int fd = open_chr(O_RDONLY);
	uint32_t size = sizeof(struct virtblk_uring_info);

	want_res(call32(IOCTL32, fd, BLKGETSIZE64_32, (long)p, 0, 0), 0,
		 "BLKGETSIZE64's 32-bit number");
	want_eq(*(uint64_t *)p, disk.bytes, "BLKGETSIZE64");
	want_res(call32(IOCTL32, fd, BLKSSZGET, (long)p, 0, 0), 0, "BLKSSZGET");
	want_eq(*(uint32_t *)p, disk.lbs, "BLKSSZGET");
	memcpy(p, &size, 4);
	want_res(call32(IOCTL32, fd, VIRTBLK_IOCTL_INFO, (long)p, 0, 0), 0,
		 "VIRTBLK_IOCTL_INFO");
	if (memcmp(p, &disk.info, sizeof(disk.info)))
		fail("INFO: got another answer than a 64-bit program");
}

/* A ring made by a 32-bit program reads 32-bit iovecs, whoever issues the command */
struct way32 {
	const char	*name;
	uint32_t	op;
	unsigned int	setup;
	uint8_t		sqe_flags;
};

static const struct way32 ways32[] = {
	{ "plain", VIRTBLK_URING_CMD_IO_VEC, WIDE, 0 },
	{ "async", VIRTBLK_URING_CMD_IO_VEC, WIDE, IOSQE_ASYNC },
	{ "SQPOLL", VIRTBLK_URING_CMD_IO_VEC, WIDE | IORING_SETUP_SQPOLL, 0 },
	{ "polled", VIRTBLK_URING_CMD_IO_VEC, WIDE | IORING_SETUP_IOPOLL, 0 },
	{ "IO64_VEC", VIRTBLK_URING_CMD_IO64_VEC, 0, 0 },
	{ "IO64_VEC-async", VIRTBLK_URING_CMD_IO64_VEC, 0, IOSQE_ASYNC },
};

/* Sends the command by 32-bit calls, with the ring's parameters at par; its result */
static int do32(struct io_uring_params *par, struct vcmd *c)
{
	unsigned int cqe_size = par->flags & IORING_SETUP_CQE32 ? 32 : 16;
	unsigned int sqe_size = par->flags & IORING_SETUP_SQE128 ? 128 : 64;
	unsigned int enter = IORING_ENTER_GETEVENTS;
	struct io_uring_sqe *sqe;
	unsigned char *sq;
	int ring, ret;

	if (par->flags & IORING_SETUP_SQPOLL)
		enter |= IORING_ENTER_SQ_WAKEUP;
	ring = call32(IO_URING_SETUP32, 4, (long)par, 0, 0, 0);
	if (ring < 0)
		fail("io_uring_setup by 32 bit: got %s", err_name(ring));
	sq = mmap(NULL, par->cq_off.cqes + cqe_size * par->cq_entries, PROT_READ |
		  PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, sqe_size * par->sq_entries, PROT_READ | PROT_WRITE,
		   MAP_SHARED, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || sqe == MAP_FAILED)
		fail("cannot map the ring");
	sqe_fill(sqe, c, sqe_size == 128);
	((unsigned int *)(sq + par->sq_off.array))[0] = 0;
	__atomic_store_n((unsigned int *)(sq + par->sq_off.tail), 1,
			 __ATOMIC_RELEASE);
	ret = call32(IO_URING_ENTER32, ring, 1, 1, enter, 0);
	want_res(ret, 1, "io_uring_enter by 32 bit");
	return ((struct io_uring_cqe *)(sq + par->cq_off.cqes))->res;
}

static void test_iovec32(const void *arg)
{
	const struct way32 *way = arg;
	struct {
		uint32_t base, len;
	} *iov32;
	char *p = low_memory(), *ref = map_pages(16 * KiB);
	struct io_uring_params *par = (void *)p;
	struct vcmd c;

	need_poll(way->setup);
	if (op_is_64(way->op) && !has_io64())
		skip("this kernel has no 64-byte commands");
	memset(par, 0, sizeof(*par));
	par->flags = way->setup;
	iov32 = (void *)(p + 4096);
	iov32[0].base = (uintptr_t)p + 8192;
	iov32[0].len = 4096;
	iov32[1].base = (uintptr_t)p + 64 * KiB;
	iov32[1].len = 8192;
	c = vcmd(open_chr(O_RDONLY), way->op, VIRTIO_BLK_T_IN, 0, iov32, 2);
	c.sqe_flags = way->sqe_flags;
	want_res(do32(par, &c), 0, "32-bit iovecs");
	blk_read(0, ref, 12 * KiB);
	if (memcmp(ref, p + 8192, 4096) ||
	    memcmp(ref + 4096, p + 64 * KiB, 8192))
		fail("the data: got other bytes than by block");
}

static void run_iovecs32(void)
{
	char name[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways32); i++) {
		snprintf(name, sizeof(name), "32-bit-iovecs-%s", ways32[i].name);
		t_run(name, test_iovec32, &ways32[i]);
	}
}
#else
static void test_ioctl32(const void *arg)
{
	skip("32-bit calls are only written for x86-64");
}

static void run_iovecs32(void)
{
	t_run("32-bit-iovecs", test_ioctl32, NULL);
}
#endif

/*
 * After a resize by the host: -t resized, with the new size in bytes in the
 * environment. A grown disk is usable at once, past the end of a shrunk one
 * the device says no.
 */
static void test_resized(const void *arg)
{
	const char *want = getenv("RESIZED_TO");
	uint64_t bytes, size = 0, begin = now_ms();
	const char *name = t_disk(0);
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDWR);
	struct ring r;
	struct vcmd c;

	if (!want)
		skip("no resize asked for");
	bytes = strtoull(want, NULL, 0);
	while (ioctl(fd, BLKGETSIZE64, &size) == 0 && size != bytes &&
	       now_ms() - begin < 10000)
		pause_ms(20);
	want_eq(size, bytes, "BLKGETSIZE64");
	disk_open(name);
	want_eq(disk.info.capacity, bytes / 512, "INFO's capacity");
	want_eq(disk.bytes, bytes, "sysfs' size");
	ring_open(&r, 4, WIDE);
	c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_OUT, bytes / 512 - 8,
		 buf, 4096);
	want_res(ring_do(&r, &c).res, 0, "the new last block");
	c.sector += 8;
	want_res(ring_do(&r, &c).res, -EIO, "the block past it");
}

int main(int argc, char **argv)
{
	static const int ro = O_RDONLY, wo = O_WRONLY, rw = O_RDWR;

	t_start(argc, argv, "The node's ioctls and sysfs files.");
	if (getenv("RESIZED_TO")) {
		t_run("V24-resized", test_resized, NULL);
		return t_end();
	}
	t_run("block-ioctls-O_RDONLY", test_block_ioctls, &ro);
	if (!disk.readonly) {
		t_run("block-ioctls-O_WRONLY", test_block_ioctls, &wo);
		t_run("block-ioctls-O_RDWR", test_block_ioctls, &rw);
	}
	t_run("BLKROGET-follows", test_roget_follows, NULL);
	t_run("errors", test_errors, NULL);
	t_run("info-sizes", test_info_sizes, NULL);
	t_run("info-values", test_info_values, NULL);
	t_run("info-commands", test_info_commands, NULL);
	t_run("stat", test_stat, NULL);
	t_run("sysfs-place", test_sysfs_place, NULL);
	t_run("32-bit-ioctls", test_ioctl32, NULL);
	run_iovecs32();
	return t_end();
}
