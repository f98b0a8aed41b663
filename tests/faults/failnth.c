// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation fails once: the first, the second, and so on until an
 * operation comes to its end without meeting one
 *
 * Needs a kernel with fault injection (make debug-kernel). The kernel counts
 * the allocations of one task (/proc/thread-self/fail-nth); a stack filter
 * leaves those that the driver itself asks for, directly or through others.
 * What is right: the operation succeeds or says -ENOMEM, the same operation
 * succeeds afterwards, and nothing stays behind. Leaks are kmemleak's to find:
 * tests/kernels/run asks it when this has ended.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEBUGFS		"/sys/kernel/debug"
#define DRIVER		"/sys/bus/virtio/drivers/virtio_blk"
#define BIG		(1 * MiB)
#define MOST		4000	/* allocations of one operation */

static const char *const injectors[] = { "failslab", "fail_page_alloc" };

static int nth_fd = -1;

/* ---- injection ---- */

/* The driver's text: what has an address of it on its stack is the driver's. */
static void driver_text(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], kind;
	unsigned long at;

	*start = ~0UL;
	*end = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[virtio_blk]") ||
		    sscanf(line, "%lx %c", &at, &kind) != 2 ||
		    (kind != 't' && kind != 'T'))
			continue;
		*start = at < *start ? at : *start;
		*end = at + 4096 > *end ? at + 4096 : *end;
	}
	if (f)
		fclose(f);
	if (*start >= *end)
		fail("no symbol of the driver in /proc/kallsyms");
}

static void set(const char *injector, const char *file, unsigned long value)
{
	char text[32];
	int err;

	snprintf(text, sizeof(text), "%lu", value);
	err = sys_write(text, DEBUGFS "/%s/%s", injector, file);
	if (err && err != -ENOENT)
		fail("%s/%s: got %s, wanted 0", injector, file, err_name(err));
}

static void set_switch(const char *injector, const char *file, const char *word)
{
	int err = sys_write(word, DEBUGFS "/%s/%s", injector, file);

	if (err && err != -ENOENT)
		fail("%s/%s: got %s, wanted 0", injector, file, err_name(err));
}

/* only: count what the driver asks for, and nothing else */
static void prepare(bool only)
{
	unsigned long start = 0, end = ~0UL;
	unsigned int i;

	if (access(DEBUGFS "/failslab", F_OK))
		skip("this kernel injects no faults: make debug-kernel builds one that does");
	if (only)
		driver_text(&start, &end);
	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		const char *name = injectors[i];
		char text[32];

		set(name, "probability", 0);
		set(name, "verbose", 0);
		set(name, "times", -1UL >> 33);
		set_switch(name, "task-filter", "N");
		set_switch(name, "ignore-gfp-wait", "N");
		set(name, "min-order", 0);
		set(name, "stacktrace-depth", only ? 32 : 0);
		snprintf(text, sizeof(text), "%#lx", start);
		sys_write(text, DEBUGFS "/%s/require-start", name);
		snprintf(text, sizeof(text), "%#lx", end);
		sys_write(text, DEBUGFS "/%s/require-end", name);
	}
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		skip("this kernel has no fail-nth: make debug-kernel builds one that has");
}

static bool armed, hit;
static unsigned int left;	/* of what was given to inject() */

/* The n-th allocation from here on fails; hit says so once quiet() was called */
static void inject(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	hit = false;
	armed = n;
	if (pwrite(nth_fd, text, len, 0) != len)
		fail("fail-nth: got %s, wanted 0", err_name(-errno));
}

/* The end of what is tested; what comes behind it meets no fault */
static void quiet(void)
{
	char text[16] = "";

	if (!armed)
		return;
	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		fail("fail-nth: cannot be read");
	inject(0);
	left = atoi(text);
	hit = left == 0;
}

/* ---- the systematic part ---- */

struct op {
	const char	*name;
	int		(*run)(const struct op *op);	/* 0 or -errno */
	void		(*prepare)(const struct op *op);
	uint32_t	cmd_op, type, len, uring_flags;
	unsigned int	addr;		/* offset in the buffer */
	bool		anywhere;	/* also what isn't the driver's */
	bool		polled;
	bool		none;		/* there must not be any */
	unsigned int	fewest;		/* allocations there must be */
	unsigned int	stride;		/* beyond the 24th only every so many */
	unsigned int	last;		/* only so many of the last */
};

static bool expected(const struct op *op, int ret)
{
	if (ret == 0 || ret == -ENOMEM)
		return true;
	/* io_uring's, VFS's and sysfs' words for it */
	return op->anywhere && (ret == -EAGAIN || ret == -ENFILE ||
				ret == -ENOBUFS);
}

/* The first to fail */
static unsigned int first(const struct op *op)
{
	unsigned int all;

	if (!op->last)
		return 1;
	inject(1U << 30);
	want_res(op->run(op), 0, "while its allocations were counted");
	quiet();
	all = (1U << 30) - left;
	return all > op->last ? all - op->last : 1;
}

/* Each of the first 24; beyond, where that takes long, every so many: SEED says which */
static unsigned int next_nth(const struct op *op, unsigned int n)
{
	unsigned int seed = getenv("SEED") ? strtoul(getenv("SEED"), NULL, 0) : 0;

	if (soak_minutes || n < 24 || !op->stride)
		return n + 1;
	return n == 24 ? n + 1 + seed % op->stride : n + op->stride;
}

static void systematic(const void *arg)
{
	const struct op *op = arg;
	unsigned int n, hits = 0, failed = 0;
	int ret;

	prepare(!op->anywhere);
	if (op->prepare)
		op->prepare(op);
	want_res(op->run(op), 0, "at first");
	for (n = first(op); hits < MOST; n = next_nth(op, n)) {
		inject(n);
		ret = op->run(op);
		quiet();
		if (!hit) {
			want_res(ret, 0, "without a fault, n = %u", n);
			break;
		}
		hits++;
		failed += ret != 0;
		if (!expected(op, ret))
			fail("allocation %u fails: got %s, wanted 0 or -ENOMEM",
			     n, err_name(ret));
		/* where that takes long, the next one shows it */
		if (ret || !op->stride)
			want_res(op->run(op), 0, "after allocation %u failed", n);
	}
	if (hits >= MOST)
		fail("more than %u allocations", MOST);
	fprintf(stderr, "%s: %u allocations failed one by one, %u times the operation with it\n",
		op->name, hits, failed);
	if (hits && op->none)
		fail("%u allocations met, wanted none", hits);
	if (hits < op->fewest)
		fail("%u allocations met, wanted at least %u", hits, op->fewest);
}

/* ---- commands ---- */

static struct ring ring;
static int chr;
static char *buffer;
static struct iovec iov[4];
static long pinned_before;

static void commands(const struct op *op)
{
	struct iovec reg;
	unsigned int i;
	int ret;

	if (!has_command(op->type))
		skip("the disk has no command %u", op->type);
	if (op_is_64(op->cmd_op) && !has_io64())
		skip("this kernel has no IO64");
	need_poll(op->polled ? IORING_SETUP_IOPOLL : 0);
	buffer = map_pages(BIG + 4096);
	memset(buffer, 0, BIG + 4096);
	chr = open_chr(O_RDWR);
	ring_open(&ring, 8, WIDE | (op->polled ? IORING_SETUP_IOPOLL : 0));
	reg.iov_base = buffer;
	reg.iov_len = BIG + 4096;
	ret = io_uring_register_buffers(&ring.u, &reg, 1);
	if (ret)
		fail("register: got %s, wanted 0", err_name(ret));
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = buffer + op->addr + i * 8192;
		iov[i].iov_len = op->len / ARRAY_SIZE(iov);
	}
	pinned_before = pinned_pages();
}

/* Where a list of ranges goes; each of them changes what nobody reads */
static void ranges(const struct op *op)
{
	struct virtio_blk_discard_write_zeroes r = { .sector = 2048, .num_sectors = 8 };

	commands(op);
	memcpy(buffer + op->addr, &r, sizeof(r));
}

/* BIG, or what passes however its pages lie */
static uint32_t length(const struct op *op)
{
	uint32_t most = disk.info.max_bytes_any / 512 * 512;

	return op->len < most ? op->len : most;
}

static int command(const struct op *op)
{
	bool vec = op->cmd_op == VIRTBLK_URING_CMD_IO_VEC ||
		   op->cmd_op == VIRTBLK_URING_CMD_IO64_VEC;
	struct vcmd c = vcmd(chr, op->cmd_op, op->type,
			     op->type == VIRTIO_BLK_T_OUT ? 4096 : 0,
			     vec ? (void *)iov : buffer + op->addr,
			     vec ? ARRAY_SIZE(iov) : length(op));
	struct answer a;
	int ret;

	c.uring_flags = op->uring_flags;
	ring_put(&ring, &c);
	/* Where io_uring itself has no memory the entry stays for the next time. */
	ret = io_uring_submit(&ring.u);
	if (ret < 0) {
		quiet();
		ring_submit(&ring);
		ring_take(&ring);
		return ret;
	}
	a = ring_take(&ring);
	quiet();
	if (pinned_pages() != pinned_before)
		fail("pages pinned by a command that has ended: got %ld, wanted %ld",
		     pinned_pages(), pinned_before);
	return a.res;
}

/* ---- the rest of the node ---- */

static int open_node(const struct op *op)
{
	int fd = open(disk.chr, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return close(fd) ? -errno : 0;
}

static int ask(const struct op *op)
{
	struct virtblk_uring_info info = { .size = sizeof(info) };
	uint64_t bytes;
	int ret = 0;

	if (ioctl(chr, VIRTBLK_IOCTL_INFO, &info) ||
	    ioctl(chr, BLKGETSIZE64, &bytes))
		ret = -errno;
	return ret;
}

static int show(const struct op *op)
{
	char path[128], text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/serial", disk.name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? n : 0;
}

static int cache_type(const struct op *op)
{
	return sys_write("write back", "/sys/block/%s/cache_type", disk.name);
}

/* ---- block requests, sent by this task ---- */

static int blk;

static void open_disk(const struct op *op)
{
	buffer = map_pages(BIG);
	memset(buffer, 0x5a, BIG);
	blk = open_blk(O_RDWR | O_DIRECT);
}

/*
 * A driver that has no memory now makes the request wait, and no error of it.
 * Discards and flushes go out from a worker of the kernel, which fail-nth doesn't
 * reach: tests/cases/faults.sh has those.
 */
static int block(const struct op *op)
{
	ssize_t n = op->type == VIRTIO_BLK_T_IN ?
		    pread(blk, buffer, op->len, 4 * MiB) :
		    pwrite(blk, buffer, op->len, 4 * MiB);

	if (n == (ssize_t)op->len)
		return 0;
	return n < 0 ? -errno : -EIO;
}

/* A large report is read in pieces, as much at a time as there is memory for */
static int report_zones(const struct op *op)
{
	struct {
		struct blk_zone_report	head;
		struct blk_zone		zones[4];
	} r = { .head.nr_zones = 4 };

	if (ioctl(blk, BLKREPORTZONE, &r))
		return -errno;
	return r.head.nr_zones == 4 ? 0 : -EIO;
}

/* ---- the device comes and goes ---- */

static char virtio_name[64];

__attribute__((format(printf, 1, 2)))
static bool there(const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return access(path, F_OK) == 0;
}

static void unbind_first(const struct op *op)
{
	char path[128], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/block/%s/device", disk.name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		fail("%s: got %s, wanted a link", path, err_name(-errno));
	target[n] = 0;
	snprintf(virtio_name, sizeof(virtio_name), "%.60s", strrchr(target, '/') + 1);
	want_res(sys_write(virtio_name, DRIVER "/unbind"), 0, "unbind");
}

/*
 * Binds, and unbinds again. A bind that fails leaves no disk; one that succeeds
 * makes a disk, and a node unless the fault was the node's.
 */
static int bind_and_unbind(const struct op *op)
{
	int ret = sys_write(virtio_name, DRIVER "/bind");

	quiet();
	if (!there(DRIVER "/%s", virtio_name)) {
		if (there("/sys/block/%s", disk.name))
			fail("bind said %s: a disk is there, wanted none", err_name(ret));
		if (ret >= 0)
			fail("bind said 0: no disk is there, wanted one");
		/* whatever word the failed step has for it */
		return hit ? -ENOMEM : ret;
	}
	if (!hit && !there("/sys/class/vblk-generic/%sc0", disk.name))
		fail("bound: got no node, wanted one");
	want_res(sys_write(virtio_name, DRIVER "/unbind"), 0, "unbind");
	if (there("/sys/block/%s", disk.name) ||
	    there("/sys/class/vblk-generic/%sc0", disk.name))
		fail("unbound: the disk or its node is there, wanted none");
	return 0;
}

/* ---- the module ---- */

static int load(const struct op *op)
{
	int fd = open(getenv("VM_MODULE") ?: "", O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		fail("$VM_MODULE: got %s, wanted the module", err_name(-errno));
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	quiet();
	close(fd);
	if (!ret && syscall(SYS_delete_module, "virtio_blk", O_NONBLOCK))
		fail("unloading: got %s, wanted 0", err_name(-errno));
	if (there("/sys/module/virtio_blk") || there("/sys/class/vblk-generic"))
		fail("load said %s: something of the module is left", err_name(ret));
	/* the driver core's word, if it has no memory for the drivers' folder */
	return hit && ret == -EINVAL ? -ENOMEM : ret;
}

/* Without its devices, which bind counts; main() has them bound again */
static void load_alone(const struct op *op)
{
	want_res(sys_write("0", "/sys/bus/virtio/drivers_autoprobe"), 0, "drivers_autoprobe");
	if (syscall(SYS_delete_module, "virtio_blk", O_NONBLOCK))
		skip("the module is in use: %s", err_name(-errno));
}

#define CMD_FIELDS(n, c, t, l, f, a, few) .name = n, .run = command, .prepare = commands, \
	.cmd_op = VIRTBLK_URING_CMD_##c, .type = VIRTIO_BLK_T_##t, .len = (l), .uring_flags = (f), \
	.addr = (a), .fewest = (few)
#define CMD(...) { CMD_FIELDS(__VA_ARGS__) }
#define POLLED(...) { .polled = true, CMD_FIELDS(__VA_ARGS__) }
#define RANGES(n, t, l, f) { .name = n, .run = command, .prepare = ranges, \
	.cmd_op = VIRTBLK_URING_CMD_IO, .type = VIRTIO_BLK_T_##t, .len = (l), .uring_flags = (f), .fewest = 4 }
#define FIXED	IORING_URING_CMD_FIXED

static const struct op ops[] = {
	CMD("cmd-read", IO, IN, 4096, 0, 0, 1),
	CMD("cmd-write", IO, OUT, 4096, 0, 0, 1),
	CMD("cmd-read-1M", IO, IN, BIG, 0, 0, 3),
	CMD("cmd-write-1M", IO, OUT, BIG, 0, 0, 3),
	CMD("cmd-read-vectored", IO_VEC, IN, 16384, 0, 0, 4),
	CMD("cmd-write-vectored", IO_VEC, OUT, 16384, 0, 0, 4),
	CMD("cmd-read-vectored-copied", IO_VEC, IN, 16384, 0, 4, 4),
	CMD("cmd-read-fixed", IO, IN, 4096, FIXED, 0, 1),
	CMD("cmd-write-fixed", IO, OUT, 4096, FIXED, 0, 1),
	CMD("cmd-read-fixed-1M", IO, IN, BIG, FIXED, 0, 3),
	CMD("cmd-write-fixed-1M", IO, OUT, BIG, FIXED, 512, 3),
	CMD("cmd-read-copied", IO, IN, 65536, 0, 4, 4),
	CMD("cmd-write-copied", IO, OUT, 65536, 0, 4, 4),
	CMD("cmd-read-copied-fixed", IO, IN, 65536, FIXED, 4, 4),
	CMD("cmd-get-id", IO, GET_ID, 20, 0, 0, 4),
	CMD("cmd-get-id-fixed", IO, GET_ID, 20, FIXED, 0, 1),
	CMD("cmd-flush", IO, FLUSH, 0, 0, 0, 1),
	CMD("cmd-read-64", IO64, IN, 65536, 0, 0, 3),
	CMD("cmd-read-64-fixed", IO64, IN, 65536, FIXED, 0, 1),
	CMD("cmd-read-64-vectored", IO64_VEC, IN, 16384, 0, 0, 4),
	POLLED("polled-read", IO, IN, 4096, 0, 0, 1),
	POLLED("polled-write-copied", IO, OUT, 65536, 0, 4, 4),
	POLLED("polled-read-vectored", IO_VEC, IN, 16384, 0, 0, 4),
	POLLED("polled-read-fixed-1M", IO, IN, BIG, FIXED, 0, 3),
	POLLED("polled-read-64", IO64, IN, 65536, 0, 0, 3),
	POLLED("polled-get-id", IO, GET_ID, 20, 0, 0, 4),
	POLLED("polled-flush", IO, FLUSH, 0, 0, 0, 1),
	RANGES("cmd-discard", DISCARD, 16, 0),
	RANGES("cmd-discard-fixed", DISCARD, 16, FIXED),
	RANGES("cmd-write-zeroes", WRITE_ZEROES, 16, 0),
	/* What only the programmable device has; tests/cases/faults.sh */
	CMD("zone-report", IO, ZONE_REPORT, 4096, 0, 0, 1),
	CMD("zone-open", IO, ZONE_OPEN, 0, 0, 0, 1),
	CMD("zone-append", IO, ZONE_APPEND, 4096, 0, 0, 1),
	CMD("zone-append-fixed", IO, ZONE_APPEND, 4096, FIXED, 0, 1),
	CMD("zone-append-copied", IO, ZONE_APPEND, 4096, 0, 4, 3),
	CMD("zone-append-vectored", IO_VEC, ZONE_APPEND, 16384, 0, 0, 4),
	POLLED("zone-append-polled", IO, ZONE_APPEND, 4096, 0, 0, 1),
	CMD("zone-finish", IO, ZONE_FINISH, 0, 0, 0, 1),
	CMD("zone-reset", IO, ZONE_RESET, 0, 0, 0, 1),
	CMD("zone-reset-all", IO, ZONE_RESET_ALL, 0, 0, 0, 1),
	{ .name = "zones-by-ioctl", .run = report_zones, .prepare = open_disk, .fewest = 2 },
	RANGES("erase-secure", SECURE_ERASE, 16, 0),
	CMD("get-lifetime", IO, GET_LIFETIME, 6, 0, 0, 4),
	{ .name = "cmd-read-any-allocation", .run = command, .prepare = commands, .cmd_op = VIRTBLK_URING_CMD_IO,
	  .type = VIRTIO_BLK_T_IN, .len = 65536, .fewest = 3, .anywhere = true },
	{ .name = "open", .run = open_node, .anywhere = true, .fewest = 2 },
	/* answers from what it holds: an allocation here would be news */
	{ .name = "ioctl", .run = ask, .prepare = commands, .anywhere = true, .none = true },
	{ .name = "serial", .run = show, .fewest = 1 },
	{ .name = "cache-type", .run = cache_type, .anywhere = true, .fewest = 1 },
	{ .name = "block-read-1M", .run = block, .prepare = open_disk, .type = VIRTIO_BLK_T_IN, .len = BIG, .fewest = 1 },
	{ .name = "block-write-1M", .run = block, .prepare = open_disk, .type = VIRTIO_BLK_T_OUT, .len = BIG, .fewest = 1 },
	{ .name = "bind", .run = bind_and_unbind, .prepare = unbind_first, .fewest = 20, .stride = 11 },
	{ .name = "load", .run = load, .prepare = load_alone, .anywhere = true, .last = 120, .fewest = 60 },
};

int main(int argc, char **argv)
{
	unsigned int i;

	t_start(argc, argv, "Every allocation of an operation fails once");
	t_limit(soak_minutes ? 3600 : 600);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		t_run(ops[i].name, systematic, &ops[i]);
	sys_write("1", "/sys/bus/virtio/drivers_autoprobe");
	return t_end();
}
