// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything /dev/vdXc0 must refuse: the errno, and that nothing was sent
 *
 * Disks: 1 writable, 2 read-only, 3 with 4096-byte blocks, 4 without DISCARD
 * and WRITE_ZEROES. The reads of MARK_BEGIN and MARK_END enclose the refusals
 * that must leave no trace in QEMU; the host looks there.
 */
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

#define MARK_BEGIN	(900 * KiB)
#define MARK_END	(904 * KiB)
#define PLACE		(1 * MiB)	/* where accepted commands may write */
#define SEC(off)	((off) / 512)

#define IO		VIRTBLK_URING_CMD_IO
#define VEC		VIRTBLK_URING_CMD_IO_VEC
#define IO64		VIRTBLK_URING_CMD_IO64
#define VEC64		VIRTBLK_URING_CMD_IO64_VEC

enum mode { RW = O_RDWR, RO = O_RDONLY, WO = O_WRONLY };

struct refusal {
	const char	*name;
	int		want;
	enum mode	mode;
	struct vcmd	c;
	unsigned int	disk;	/* 0: the first */
	bool		nobody;	/* after dropping all capabilities */
	bool		reg;	/* with buf registered as buffer 0 */
};

static char *buf;		/* 64 KiB, a forbidden page behind it */
static char *guard;		/* first byte of that page */
static char *ro_map;		/* 64 KiB that can't be written */
static char *lazy;		/* 3 GiB of address space */
static struct iovec *iov;	/* 1024 iovecs, at the very end of a page */
static struct virtio_blk_discard_write_zeroes *range;

static void make_buffers(void)
{
	size_t size = 1026 * sizeof(*iov);
	char *mem;

	buf = map_pages(64 * KiB);
	guard = buf + 64 * KiB;
	memset(buf, 0x5a, 64 * KiB);
	ro_map = map_pages(64 * KiB);
	memset(ro_map, 0x5a, 64 * KiB);
	if (mprotect(ro_map, 64 * KiB, PROT_READ))
		fail("mprotect: %s", strerror(errno));
	lazy = mmap(NULL, 3 * GiB, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		    MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mem = map_pages(size);
	iov = (struct iovec *)(mem + (size + 4095) / 4096 * 4096 - size);
	range = map_pages(4096);
}

/* One command; in every form of it that exists, at once and from a worker */
static void refused_in(const struct refusal *f, int fd, uint32_t op,
		       uint8_t sqe_flags)
{
	struct vcmd c = f->c;
	struct iovec reg = { buf, 64 * KiB };
	uint64_t sent;
	struct answer a;
	struct ring r;

	ring_open(&r, 8, WIDE);
	if (f->reg && io_uring_register_buffers(&r.u, &reg, 1))
		fail("cannot register the buffer");
	c.fd = fd;
	c.op = op;
	c.sqe_flags = sqe_flags;
	sent = node_commands();
	a = ring_do(&r, &c);
	want_res(a.res, f->want, "op %u%s", op, sqe_flags ? ", async" : "");
	want_eq(a.big0, 0, "op %u%s: big_cqe[0]", op, sqe_flags ? ", async" : "");
	want_eq(node_commands(), sent, "commands sent, by the node's stat");
	ring_close(&r);
}

static void check_refusal(const struct refusal *f)
{
	int fd = open_chr(f->mode);
	uint32_t op = f->c.op;
	uint8_t flags;

	if (f->nobody)
		drop_capabilities();
	for (flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
		refused_in(f, fd, op, flags);
		if ((op == IO || op == VEC) && has_io64() &&
		    f->c.ioprio <= 0xffff && f->c.flag <= 0xffff)
			refused_in(f, fd, op == IO ? IO64 : VEC64, flags);
	}
	close(fd);
}

static void test_refusal(const void *arg)
{
	const struct refusal *f = arg;

	if (f->disk) {
		if (!t_disk(f->disk))
			skip("no disk of that kind given");
		disk_open(t_disk(f->disk));
	}
	check_refusal(f);
	want_byte(buf, 64 * KiB, 0x5a, "the buffer");
}

static struct vcmd cmd(uint32_t op, uint32_t type, uint64_t off,
		       const void *data, uint32_t len)
{
	return vcmd(-1, op, type, SEC(off), data, len);
}

#define IN(off, data, len)	cmd(IO, VIRTIO_BLK_T_IN, off, data, len)
#define OUT(off, data, len)	cmd(IO, VIRTIO_BLK_T_OUT, off, data, len)
#define VIN(n)			cmd(VEC, VIRTIO_BLK_T_IN, PLACE, iov, n)

static void refuse(const char *name, int want, struct vcmd c)
{
	struct refusal f = { .name = name, .want = want, .mode = RW, .c = c };

	t_run(name, test_refusal, &f);
}

static void refuse_mode(const char *name, int want, enum mode mode,
			struct vcmd c)
{
	struct refusal f = { .name = name, .want = want, .mode = mode, .c = c };

	t_run(name, test_refusal, &f);
}

static void refuse_disk(const char *name, int want, unsigned int n,
			struct vcmd c)
{
	struct refusal f = { .name = name, .want = want, .mode = RW, .c = c,
		.disk = n };

	t_run(name, test_refusal, &f);
}

static void refuse_nobody(const char *name, int want, struct vcmd c)
{
	struct refusal f = { .name = name, .want = want, .mode = RW, .c = c,
		.nobody = true };

	t_run(name, test_refusal, &f);
}

static struct vcmd with(struct vcmd c, uint32_t ioprio, uint32_t flag,
			uint32_t uring_flags)
{
	c.ioprio = ioprio;
	c.flag = flag;
	c.uring_flags = uring_flags;
	return c;
}

static void refuse_fields(void)
{
	struct vcmd in = IN(PLACE, buf, 4096);
	static const uint32_t ops[] = { 0, 5, 128, 0xc0484e80, ~0U };
	char name[64];
	unsigned int i;
	struct vcmd c;

	refuse("flag-1", -EINVAL, with(in, 0, 1, 0));
	refuse("flag-top-bit", -EINVAL, with(in, 0, 1U << 31, 0));
	refuse("ioprio-bit-16", -EINVAL, with(in, 1 << 16, 0, 0));
	refuse("ioprio-class-4", -EINVAL, with(in, 4 << 13, 0, 0));
	refuse("ioprio-class-7", -EINVAL, with(in, 7 << 13, 0, 0));
	refuse_nobody("ioprio-RT-without-capability", -EPERM,
		      with(in, 1 << 13, 0, 0));
	refuse("uring-flags-MULTISHOT", -EINVAL, with(in, 0, 0, 1 << 1));
	for (i = 2; i < 32; i += 7) {
		snprintf(name, sizeof(name), "uring-flags-bit-%u", i);
		refuse(name, -EINVAL, with(in, 0, 0, 1U << i));
	}
	refuse("uring-flags-bit-31", -EINVAL, with(in, 0, 0, 1U << 31));
	refuse("uring-flags-bit-30", -EINVAL, with(in, 0, 0, 1U << 30));
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		c = in;
		c.op = ops[i];
		snprintf(name, sizeof(name), "cmd_op-%#x", ops[i]);
		refuse(name, -ENOTTY, c);
	}
}

static void refuse_lengths(void)
{
	struct vcmd huge;

	refuse("in-length-0", -EINVAL, IN(PLACE, buf, 0));
	refuse("in-length-1", -EINVAL, IN(PLACE, buf, 1));
	refuse("in-length-511", -EINVAL, IN(PLACE, buf, 511));
	refuse("in-length-513", -EINVAL, IN(PLACE, buf, 513));
	refuse("out-length-0", -EINVAL, OUT(PLACE, buf, 0));
	refuse("out-length-513", -EINVAL, OUT(PLACE, buf, 513));
	refuse("P13-in-length-2^31", -EINVAL, IN(PLACE, buf, 1U << 31));
	refuse("P13-in-length-2^32-512", -EINVAL, IN(PLACE, buf, 0U - 512));
	huge = IN(PLACE, lazy, disk.info.max_bytes + 4096);
	refuse("P12-in-over-max-bytes", -EINVAL, huge);
	refuse("flush-length-512", -EINVAL,
	       cmd(IO, VIRTIO_BLK_T_FLUSH, 0, buf, 512));
	refuse("get-id-19", -EINVAL, cmd(IO, VIRTIO_BLK_T_GET_ID, 0, buf, 19));
	refuse("get-id-21", -EINVAL, cmd(IO, VIRTIO_BLK_T_GET_ID, 0, buf, 21));
	refuse("V27-get-id-512", -EINVAL,
	       cmd(IO, VIRTIO_BLK_T_GET_ID, 0, buf, 512));
	refuse("flush-sector-8", -EINVAL,
	       cmd(IO, VIRTIO_BLK_T_FLUSH, 4096, NULL, 0));
	refuse("get-id-sector-8", -EINVAL,
	       cmd(IO, VIRTIO_BLK_T_GET_ID, 4096, buf, 20));
	refuse_disk("P25-4096-disk-length-512", -EINVAL, 2,
		    IN(PLACE, buf, 512));
	refuse_disk("P25-4096-disk-sector-1", -EINVAL, 2,
		    IN(PLACE + 512, buf, 4096));
	refuse_disk("4096-disk-out-sector-1", -EINVAL, 2,
		    OUT(PLACE + 512, buf, 4096));
	refuse_disk("4096-disk-out-length-4608", -EINVAL, 2,
		    OUT(PLACE, buf, 4608));
}

static void refuse_buffers(void)
{
	struct vcmd c;

	refuse("in-null", -EFAULT, IN(PLACE, NULL, 4096));
	refuse("in-unmapped", -EFAULT, IN(PLACE, (void *)4096, 4096));
	refuse("in-kernel-address", -EFAULT,
	       IN(PLACE, (void *)0xffff888000000000UL, 4096));
	refuse("in-address-wraps", -EFAULT, IN(PLACE, (void *)-4096L, 8192));
	refuse("in-non-canonical", -EFAULT,
	       IN(PLACE, (void *)0x8000000000000000UL, 4096));
	refuse("P13-in-into-guard-page", -EFAULT,
	       IN(PLACE, guard - 4096, 8192));
	refuse("in-into-guard-page-unaligned", -EFAULT,
	       IN(PLACE, guard - 4095, 4096));
	refuse("in-into-guard-page-odd-sector", -EFAULT,
	       IN(PLACE, guard - 4096 + 512, 4096));
	refuse("in-into-read-only-map", -EFAULT, IN(PLACE, ro_map, 4096));
	refuse("in-into-read-only-map-unaligned", -EFAULT,
	       IN(PLACE, ro_map + 1, 4096));
	refuse("out-null", -EFAULT, OUT(PLACE, NULL, 4096));
	refuse("P13-out-from-guard-page", -EFAULT,
	       OUT(PLACE, guard - 4096, 8192));
	refuse("out-from-guard-page-unaligned", -EFAULT,
	       OUT(PLACE, guard - 4095, 4096));
	refuse("get-id-into-guard-page", -EFAULT,
	       cmd(IO, VIRTIO_BLK_T_GET_ID, 0, guard - 19, 20));
	refuse("get-id-into-read-only-map", -EFAULT,
	       cmd(IO, VIRTIO_BLK_T_GET_ID, 0, ro_map, 20));
	c = with(IN(PLACE, buf, 4096), 0, 0, IORING_URING_CMD_FIXED);
	refuse("fixed-nothing-registered", -EFAULT, c);
}

static void refuse_fixed_one(const char *name, int want, struct vcmd c)
{
	struct refusal f = { .name = name, .want = want, .mode = RW, .c = c,
		.reg = true };

	f.c.uring_flags = IORING_URING_CMD_FIXED;
	t_run(name, test_refusal, &f);
}

static void refuse_fixed(void)
{
	struct vcmd c = IN(PLACE, buf, 4096);

	c.buf_index = 1;
	refuse_fixed_one("fixed-bad-index", -EFAULT, c);
	c.buf_index = 0xffff;
	refuse_fixed_one("fixed-index-65535", -EFAULT, c);
	refuse_fixed_one("fixed-before-the-buffer", -EFAULT,
			 IN(PLACE, buf - 512, 4096));
	refuse_fixed_one("fixed-behind-the-buffer", -EFAULT,
			 IN(PLACE, guard - 512, 4096));
	refuse_fixed_one("fixed-elsewhere", -EFAULT, IN(PLACE, ro_map, 4096));
	refuse_fixed_one("fixed-length-0", -EINVAL, IN(PLACE, buf, 0));
	refuse_fixed_one("fixed-length-513", -EINVAL, IN(PLACE, buf, 513));
	iov[0] = (struct iovec){ buf, 4096 };
	if (has_fixed_vec()) {
		iov[0].iov_base = ro_map;
		refuse_fixed_one("P09-fixed-vec-elsewhere", -EFAULT, VIN(1));
	} else {
		refuse_fixed_one("P09-fixed-vec", -EOPNOTSUPP, VIN(1));
	}
}

static void refuse_vectors(void)
{
	struct iovec *end = iov + 1026;
	unsigned int i;

	for (i = 0; i < 1026; i++)
		iov[i] = (struct iovec){ buf + i % 16 * 512, 512 };
	refuse("P24-vec-1025", -EINVAL, VIN(1025));
	refuse("vec-2^32-1", -EINVAL, VIN(~0U));
	refuse("vec-0", -EINVAL, VIN(0));
	refuse("vec-array-unmapped", -EFAULT,
	       cmd(VEC, VIRTIO_BLK_T_IN, PLACE, (void *)4096, 3));
	refuse("vec-array-null", -EFAULT,
	       cmd(VEC, VIRTIO_BLK_T_IN, PLACE, NULL, 3));
	refuse("vec-array-into-guard-page", -EFAULT,
	       cmd(VEC, VIRTIO_BLK_T_IN, PLACE, end - 2, 3));
	iov[1].iov_base = (void *)4096;
	refuse("vec-second-unmapped", -EFAULT, VIN(3));
	iov[1].iov_base = guard - 256;
	refuse("vec-second-into-guard-page", -EFAULT, VIN(3));
	iov[1] = (struct iovec){ buf, 1ULL << 63 };
	refuse("vec-negative-length", -EINVAL, VIN(3));
	iov[1] = (struct iovec){ buf, 100 };
	refuse("P24-vec-sum-no-multiple", -EINVAL, VIN(3));
	for (i = 0; i < 3; i++)
		iov[i] = (struct iovec){ buf, 0 };
	refuse("vec-all-empty", -EINVAL, VIN(3));
	iov[0] = (struct iovec){ lazy, 1536 * MiB };
	iov[1] = (struct iovec){ lazy + 1536 * MiB, 1536 * MiB };
	refuse("vec-3-GiB-never-shortened", -EINVAL, VIN(2));
	iov[0] = (struct iovec){ lazy, (1U << 31) - 4096 };
	iov[1] = (struct iovec){ lazy, 4096 };
	refuse("vec-2-GiB-never-shortened", -EINVAL, VIN(2));
	for (i = 0; i < 1024; i++)
		iov[i] = (struct iovec){ lazy, 2 * MiB };
	refuse("P12-vec-over-max-bytes", -EINVAL, VIN(1024));
}

static void refuse_access(void)
{
	static const uint32_t writers[] = { VIRTIO_BLK_T_OUT,
		VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES };
	char name[64];
	unsigned int i;
	struct vcmd c;

	range->sector = SEC(PLACE);
	range->num_sectors = 8;
	for (i = 0; i < ARRAY_SIZE(writers); i++) {
		c = i ? cmd(IO, writers[i], 0, range, 16) : OUT(PLACE, buf, 4096);
		snprintf(name, sizeof(name), "P29-read-only-fd-type-%u",
			 writers[i]);
		refuse_mode(name, -EACCES, RO, c);
		snprintf(name, sizeof(name), "P29-read-only-disk-type-%u",
			 writers[i]);
		refuse_disk(name, -EROFS, 1, c);
		if (!i)
			continue;
		snprintf(name, sizeof(name), "no-feature-type-%u", writers[i]);
		refuse_disk(name, -EOPNOTSUPP, 3, c);
	}
	refuse_mode("write-only-fd-in", -EACCES, WO, IN(PLACE, buf, 4096));
	refuse_mode("write-only-fd-get-id", -EACCES, WO,
		    cmd(IO, VIRTIO_BLK_T_GET_ID, 0, buf, 20));
	refuse_mode("read-only-fd-unknown-type", -EACCES, RO,
		    cmd(IO, 201, 0, buf, 512));
	refuse_nobody("nobody-unknown-type-200", -EACCES,
		      cmd(IO, 200, 0, buf, 512));
	refuse_nobody("nobody-unknown-type-201", -EACCES,
		      cmd(IO, 201, 0, buf, 512));
	refuse_nobody("nobody-type-2^16", -EACCES,
		      cmd(IO, 1 << 16, 0, buf, 512));
	refuse("scsi-2", -EOPNOTSUPP, cmd(IO, 2, 0, buf, 512));
	refuse("scsi-3", -EOPNOTSUPP, cmd(IO, 3, 0, buf, 512));
	refuse("barrier-in", -EOPNOTSUPP, cmd(IO, 1U << 31, PLACE, buf, 512));
	refuse("barrier-out", -EOPNOTSUPP,
	       cmd(IO, 1U << 31 | 1, PLACE, buf, 512));
	refuse("barrier-unknown", -EOPNOTSUPP, cmd(IO, ~0U, 0, buf, 512));
}

static void refuse_ranges(void)
{
	uint32_t types[] = { VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES };
	unsigned int i, t;
	char name[64];
	struct {
		const char *what;
		uint32_t len, sectors, flags;
		uint64_t off;
	} bad[] = {
		{ "length-0", 0, 8, 0, 0 },
		{ "length-15", 15, 8, 0, 0 },
		{ "length-17", 17, 8, 0, 0 },
		{ "length-2^31", 1U << 31, 8, 0, 0 },
		{ "too-many-ranges", 4096, 8, 0, 0 },
		{ "too-many-sectors", 16, ~0U, 0, 0 },
		{ "unknown-flag", 16, 8, 2, 0 },
		{ "flag-top-bit", 16, 8, 1U << 31, 0 },
		{ "sector-8", 16, 8, 0, 4096 },
	};

	for (t = 0; t < 2; t++) {
		if (!has_command(types[t]))
			continue;
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			range->sector = SEC(PLACE);
			range->num_sectors = bad[i].sectors;
			range->flags = bad[i].flags;
			snprintf(name, sizeof(name), "type-%u-%s", types[t],
				 bad[i].what);
			refuse(name, -EINVAL, cmd(IO, types[t], bad[i].off,
						  range, bad[i].len));
		}
		*range = (struct virtio_blk_discard_write_zeroes){
			.sector = SEC(PLACE), .num_sectors = 8 };
		snprintf(name, sizeof(name), "type-%u-list-unmapped", types[t]);
		refuse(name, -EFAULT, cmd(IO, types[t], 0, (void *)4096, 16));
		snprintf(name, sizeof(name), "type-%u-list-into-guard", types[t]);
		refuse(name, -EFAULT, cmd(IO, types[t], 0, guard - 15, 16));
	}
	range->flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	refuse("type-11-unmap-flag", -EINVAL,
	       cmd(IO, VIRTIO_BLK_T_DISCARD, 0, range, 16));
	range->flags = 0;
	range->sector = SEC(PLACE) + 1;
	refuse_disk("4096-disk-discard-sector-1", -EINVAL, 2,
		    cmd(IO, VIRTIO_BLK_T_DISCARD, 0, range, 16));
}

/* ---- what isn't one command on one ring ---- */

/* ops 1 and 2 in 64-byte SQEs: the next SQE's bytes are not theirs */
static void test_narrow(const void *arg)
{
	uint32_t op = *(const uint32_t *)arg;
	int fd = open_chr(O_RDWR);
	struct io_uring_sqe *sqe;
	struct answer a;
	unsigned int i;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 8, IORING_SETUP_CQE32);
	c = vcmd(fd, op, VIRTIO_BLK_T_IN, SEC(PLACE), NULL, 0);
	c.user_data = 1;
	ring_put(&r, &c);
	/* as a 128-byte SQE the two would be a legal read of 512 bytes */
	sqe = ring_sqe(&r);
	memcpy(sqe, &(struct { uint64_t data; uint32_t len, flag; }){
	       (uintptr_t)buf, 512, 0 }, 16);
	sqe->user_data = 2;
	ring_submit(&r);
	for (i = 0; i < 2; i++) {
		if (!ring_take_within(&r, &a, 5000))
			break;
		if (a.user_data == 1)
			want_res(a.res, -EOPNOTSUPP, "op %u", op);
	}
	want_byte(buf, 64 * KiB, 0x5a, "the buffer named by the next SQE");
}

/* SQE fields that are not of the command */
static void test_sqe_fields(const void *arg)
{
	int fd = open_chr(O_RDWR);
	struct vcmd c = vcmd(fd, IO, VIRTIO_BLK_T_IN, SEC(PLACE), buf, 4096);
	struct io_uring_sqe *sqe;
	struct ring r;

	ring_open(&r, 8, WIDE);
	ring_put(&r, &c)->ioprio = 1;
	ring_submit(&r);
	want_res(ring_take(&r).res, -EINVAL, "sqe->ioprio 1");
	sqe = ring_put(&r, &c);
	sqe->__pad1 = 1;
	ring_submit(&r);
	want_res(ring_take(&r).res, -EINVAL, "sqe->__pad1 1");
	/* ignored: addr and len with ops 1 and 2, the rest of sqe->cmd */
	sqe = ring_put(&r, &c);
	sqe->addr = 1;
	sqe->len = 77;
	memset((char *)sqe + 48 + 32, 0xff, 128 - 48 - 32);
	ring_submit(&r);
	want_res(ring_take(&r).res, 0, "with other bytes of the SQE set");
	c.fd = -1;
	want_res(ring_do(&r, &c).res, -EBADF, "fd -1");
}

static void test_accepted(const void *arg)
{
	int fd = open_chr(O_RDWR), wo = open_chr(O_WRONLY),
	    flags = open_chr(O_RDONLY | O_DIRECT | O_NONBLOCK);
	struct vcmd c = vcmd(fd, IO, VIRTIO_BLK_T_IN, SEC(PLACE), buf, 4096);
	static const uint32_t prio[] = { 0, 1 << 13 | 4, 2 << 13 | 7, 3 << 13 };
	unsigned int i;
	struct ring r;

	ring_open(&r, 8, WIDE);
	for (i = 0; i < ARRAY_SIZE(prio); i++) {
		c.ioprio = prio[i];
		want_res(ring_do(&r, &c).res, 0, "ioprio %#x", prio[i]);
	}
	c.ioprio = 0;
	c.fd = flags;
	want_res(ring_do(&r, &c).res, 0, "IN by O_DIRECT | O_NONBLOCK");
	c.fd = wo;
	c.type = VIRTIO_BLK_T_OUT;
	want_res(ring_do(&r, &c).res, 0, "OUT by O_WRONLY");
	c = vcmd(wo, IO, VIRTIO_BLK_T_FLUSH, 0, NULL, 0);
	want_res(ring_do(&r, &c).res, 0, "FLUSH by O_WRONLY");
	c.fd = flags;
	want_res(ring_do(&r, &c).res, 0, "FLUSH by O_RDONLY");
}

/* A type nobody knows, without data in every form: the device says no to it */
static void test_raw_no_data(const void *arg)
{
	struct iovec reg = { buf, 64 * KiB }, none = { buf, 0 };
	int fd = open_chr(O_RDWR);
	unsigned int type, i;
	struct answer a;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 8, WIDE);
	want_res(io_uring_register_buffers(&r.u, &reg, 1), 0, "registering");
	for (type = 200; type < 202; type++)
		for (i = 0; i < 5; i++) {
			c = vcmd(fd, IO, type, 0, i % 2 ? buf : NULL, 0);
			c.uring_flags = i & 2 ? IORING_URING_CMD_FIXED : 0;
			if (i == 4)
				c = vcmd(fd, VEC, type, 0, &none, 1);
			a = ring_do(&r, &c);
			want_res(a.res, -EOPNOTSUPP, "type %u, form %u", type, i);
			want_eq(a.big0, VIRTIO_BLK_S_UNSUPP,
				"type %u, form %u: big_cqe[0]", type, i);
		}
}

/* Past the end: the device decides */
static void test_past_end(const void *arg)
{
	static const uint64_t wild[] = { 1ULL << 40, 1ULL << 55, 1ULL << 62,
		(1ULL << 63) - 8, 1ULL << 63, -8ULL, -16ULL };
	int fd = open_chr(O_RDWR);
	uint64_t end = disk.bytes / 512;
	struct answer a;
	unsigned int i, t;
	struct ring r;
	struct vcmd c;

	ring_open(&r, 8, WIDE);
	for (t = VIRTIO_BLK_T_IN; t <= VIRTIO_BLK_T_OUT; t++)
		for (i = 0; i < 2 + ARRAY_SIZE(wild); i++) {
			uint64_t s = i == 0 ? end : i == 1 ? end - 8
				: wild[i - 2];

			c = vcmd(fd, IO, t, s, buf, 8192);
			a = ring_do(&r, &c);
			want_res(a.res, -EIO, "type %u at sector %#llx", t,
				 (unsigned long long)s);
			want_eq(a.big0, VIRTIO_BLK_S_IOERR,
				"type %u at sector %#llx: big_cqe[0]", t,
				(unsigned long long)s);
		}
	blk_read(0, buf, 4096);
}

/* blockdev --setro */
static void test_setro(const void *arg)
{
	int blk = open_blk(O_RDONLY), fd = open_chr(O_RDWR), on = 1;
	struct refusal f = { .want = -EROFS, .mode = RW,
		.c = OUT(PLACE, buf, 4096) };
	struct ring r;
	struct vcmd c = vcmd(fd, IO, VIRTIO_BLK_T_OUT, SEC(PLACE), buf, 4096);

	if (ioctl(blk, BLKROSET, &on))
		fail("BLKROSET: %s", strerror(errno));
	check_refusal(&f);
	range->sector = SEC(PLACE);
	range->num_sectors = 8;
	f.c = cmd(IO, VIRTIO_BLK_T_WRITE_ZEROES, 0, range, 16);
	if (has_command(VIRTIO_BLK_T_WRITE_ZEROES))
		check_refusal(&f);
	on = 0;
	if (ioctl(blk, BLKROSET, &on))
		fail("BLKROSET: %s", strerror(errno));
	ring_open(&r, 4, WIDE);
	want_res(ring_do(&r, &c).res, 0, "OUT after --setrw");
}

/* A read-only disk reads, identifies and flushes (V27) */
static void test_ro_disk(const void *arg)
{
	struct vcmd c;
	struct ring r;
	int fd;

	if (!t_disk(1))
		skip("no read-only disk given");
	disk_open(t_disk(1));
	want_eq(disk.info.flags & VIRTBLK_URING_INFO_RO, VIRTBLK_URING_INFO_RO,
		"INFO's read-only flag");
	fd = open_chr(O_RDWR);
	ring_open(&r, 4, WIDE);
	c = vcmd(fd, IO, VIRTIO_BLK_T_IN, 0, buf, 4096);
	want_res(ring_do(&r, &c).res, 0, "IN");
	c = vcmd(fd, IO, VIRTIO_BLK_T_GET_ID, 0, buf, 20);
	want_res(ring_do(&r, &c).res, 0, "GET_ID");
	if (strncmp(buf, disk.serial, 20))
		fail("GET_ID: got %.20s, wanted %s", buf, disk.serial);
}

/*
 * What a sweep's command may return by the contract. Where two rules are
 * broken at once either errno is right.
 */
static bool sweep_right(uint32_t type, uint32_t len, enum mode mode, bool root,
			const struct answer *a)
{
	bool answered = a->big0 != 0;

	switch (type) {
	case VIRTIO_BLK_T_IN:
		return a->res == (len && len % disk.lbs == 0 ? 0 : -EINVAL);
	case VIRTIO_BLK_T_OUT:
		if (mode == RO)
			return a->res == -EACCES || (len % 512 && a->res == -EINVAL);
		return a->res == (len && len % disk.lbs == 0 ? 0 : -EINVAL);
	case VIRTIO_BLK_T_FLUSH:
		return a->res == (len ? -EINVAL : 0);
	case VIRTIO_BLK_T_GET_ID:
		return a->res == (len == 20 ? 0 : -EINVAL);
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES:
		if (mode == RO && a->res == -EACCES)
			return true;
		if (!has_command(type) && a->res == -EOPNOTSUPP)
			return true;
		if (len == 16)
			return mode != RO && a->res == 0;
		return a->res == -EINVAL && !answered;
	case 2: case 3: case VIRTIO_BLK_T_GET_LIFETIME:
	case VIRTIO_BLK_T_SECURE_ERASE: case VIRTIO_BLK_T_ZONE_APPEND:
	case VIRTIO_BLK_T_ZONE_REPORT: case VIRTIO_BLK_T_ZONE_OPEN:
	case VIRTIO_BLK_T_ZONE_CLOSE: case VIRTIO_BLK_T_ZONE_FINISH:
	case VIRTIO_BLK_T_ZONE_RESET: case VIRTIO_BLK_T_ZONE_RESET_ALL:
		return !answered && (a->res == -EOPNOTSUPP || a->res == -EINVAL ||
				     (mode == RO && a->res == -EACCES));
	}
	if (mode == RO || !root)
		return a->res == -EACCES && !answered;
	return a->res == 0 || (a->res == -EIO && answered) ||
	       (a->res == -EOPNOTSUPP && a->big0 == VIRTIO_BLK_S_UNSUPP);
}

struct sweep {
	enum mode	mode;
	bool		root;
};

/* Types 0 to 255 by lengths (P28); the disk answers afterwards */
static void test_sweep(const void *arg)
{
	static const uint32_t lens[] = { 0, 1, 15, 16, 17, 20, 512, 4096 };
	const struct sweep *s = arg;
	int fd = open_chr(s->mode);
	char *before = map_pages(MiB), *after = map_pages(MiB);
	unsigned int type, i;
	struct answer a;
	struct ring r;
	struct vcmd c;
	bool known;

	blk_read(0, before, MiB);
	if (!s->root)
		drop_capabilities();
	ring_open(&r, 8, WIDE);
	for (type = 0; type < 256; type++)
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			memset(buf, 0, 4096);
			*(struct virtio_blk_discard_write_zeroes *)buf =
				(struct virtio_blk_discard_write_zeroes){
				.sector = SEC(PLACE), .num_sectors = 8 };
			known = type <= VIRTIO_BLK_T_OUT;
			c = vcmd(fd, IO, type, known ? SEC(PLACE) : 0, buf,
				 lens[i]);
			if (!ring_take_within(&r, &(struct answer){ 0 }, 0))
				a = ring_do(&r, &c);
			else
				fail("type %u: a CQE too many", type);
			if (!sweep_right(type, lens[i], s->mode, s->root, &a))
				fail("type %u length %u: got %s with big_cqe[0] %llu",
				     type, lens[i], err_name(a.res),
				     (unsigned long long)a.big0);
		}
	if (!s->root)
		return;
	blk_read(0, after, MiB);
	if (memcmp(before, after, MiB))
		fail("the first MiB changed, wanted it as before");
}

/* Failed commands cost nothing that isn't given back (P14) */
static void test_no_leak(const void *arg)
{
	unsigned int rounds = t_rounds(10000, 200000), i, depth = 256;
	int fd = open_chr(O_RDWR), blk = open_blk(O_RDONLY | O_DIRECT);
	long pinned = pinned_pages();
	struct iovec bad = { (void *)4096, 4096 };
	struct io_uring_sqe *sqe;
	struct iovec reg = { buf, 4096 };
	struct ring r, with_buffer, *ring;
	struct vcmd c;
	int want;

	ring_open(&r, 512, WIDE);
	ring_open(&with_buffer, 4, WIDE);
	want_res(io_uring_register_buffers(&with_buffer.u, &reg, 1), 0,
		 "registering a buffer");
	for (i = 0; i < rounds; i++) {
		c = vcmd(fd, i % 2 ? VEC : IO, i / 2 % 2, SEC(PLACE),
			 i % 2 ? (void *)&bad : (void *)4096, i % 2 ? 1 : 4096);
		want = -EFAULT;
		ring = &r;
		if (i % 5 == 4) {
			c = vcmd(fd, IO, VIRTIO_BLK_T_IN, SEC(PLACE), buf, 4096);
			c.uring_flags = IORING_URING_CMD_FIXED;
		}
		if (i % 7 == 6) {	/* the first page is there */
			c = vcmd(fd, IO, 0, SEC(PLACE), guard - 4096, 8192);
			c.sqe_flags = i % 2 ? IOSQE_ASYNC : 0;
		}
		if (i % 11 == 10) {	/* not within the registered buffer */
			ring = &with_buffer;
			c = vcmd(fd, VEC, 0, SEC(PLACE), &bad, 1);
			c.uring_flags = IORING_URING_CMD_FIXED;
			want = disk.info.driver_features &
			       VIRTBLK_URING_F_FIXED_VEC ? -EFAULT : -EOPNOTSUPP;
		}
		want_res(ring_do(ring, &c).res, want, "round %u", i);
	}
	io_uring_unregister_buffers(&with_buffer.u);
	ring_close(&with_buffer);
	want_eq(pinned_pages() - pinned, 0, "pages left pinned");
	for (i = 0; i < depth; i++) {
		sqe = ring_sqe(&r);
		io_uring_prep_read(sqe, blk, buf, 4096, i * 4096);
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, i * 8, buf + 8192, 4096);
		ring_put(&r, &c);
	}
	ring_submit(&r);
	for (i = 0; i < 2 * depth; i++) {
		struct answer a = ring_take(&r);

		if (a.res != 0 && a.res != 4096)
			fail("afterwards: got %s, wanted 0 or 4096",
			     err_name(a.res));
	}
}

/* ---- who may (U01) ---- */

static void as_user(gid_t gid, unsigned int setup, bool may)
{
	int status, fd;
	struct ring r;
	struct vcmd c;
	pid_t pid = fork();

	if (pid == 0) {
		if (setregid(gid, gid) || setreuid(1000, 1000))
			fail("cannot change the user");
		fd = open(disk.chr, O_RDWR | O_CLOEXEC);
		if (!may) {
			want_res(fd < 0 ? -errno : 0, -EACCES, "open by others");
			_exit(0);
		}
		if (fd < 0)
			fail("open by the group: got %s", err_name(-errno));
		ring_open(&r, 4, WIDE | setup);
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, SEC(PLACE), buf, 4096);
		want_res(ring_do(&r, &c).res, 0, "IN by the group");
		c.type = VIRTIO_BLK_T_OUT;
		want_res(ring_do(&r, &c).res, 0, "OUT by the group");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void test_group(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	struct stat st;

	if (stat(disk.chr, &st))
		fail("%s: %s", disk.chr, strerror(errno));
	if (chown(disk.chr, 0, 6) || chmod(disk.chr, 0660))
		fail("chown %s: %s", disk.chr, strerror(errno));
	as_user(6, setup, true);
	as_user(1000, setup, false);
	if (chown(disk.chr, st.st_uid, st.st_gid) ||
	    chmod(disk.chr, st.st_mode & 07777))
		fail("chown %s back: %s", disk.chr, strerror(errno));
}

static void test_mode(const void *arg)
{
	struct stat st;

	if (stat(disk.chr, &st))
		fail("%s: %s", disk.chr, strerror(errno));
	want_eq(S_ISCHR(st.st_mode), 1, "a character device");
	want_eq(st.st_mode & 07777, 0600, "mode of the new node");
	want_eq(st.st_uid, 0, "its owner");
}

static void test_quiet_log(const void *arg)
{
	want_eq(kernel_log_lines(), *(const long *)arg,
		"kernel log lines after refusals");
}

int main(int argc, char **argv)
{
	static const uint32_t io = IO, vec = VEC;
	static const unsigned int plain, sqpoll = IORING_SETUP_SQPOLL;
	static const struct sweep sweeps[] = { { RW, true }, { RO, true },
		{ RW, false } };
	static long log;

	t_start(argc, argv, "What the node must refuse.\n"
		"Disks: writable, read-only, 4096-byte blocks, no discard");
	make_buffers();
	t_run("U03-node-mode", test_mode, NULL);
	log = kernel_log_lines();
	chr_read(MARK_BEGIN, map_pages(4096), 4096);
	refuse_fields();
	refuse_lengths();
	refuse_buffers();
	refuse_fixed();
	refuse_vectors();
	refuse_access();
	refuse_ranges();
	t_run("op-1-in-64-byte-sqe", test_narrow, &io);
	t_run("op-2-in-64-byte-sqe", test_narrow, &vec);
	chr_read(MARK_END, map_pages(4096), 4096);
	t_run("P14-nothing-leaks", test_no_leak, NULL);
	t_run("quiet-log", test_quiet_log, &log);
	t_run("sqe-fields", test_sqe_fields, NULL);
	t_run("accepted", test_accepted, NULL);
	t_run("unknown-type-without-data", test_raw_no_data, NULL);
	t_run("past-the-end", test_past_end, NULL);
	t_run("blockdev-setro", test_setro, NULL);
	t_run("V27-read-only-disk", test_ro_disk, NULL);
	t_run("P28-sweep", test_sweep, &sweeps[0]);
	t_run("P28-sweep-read-only-fd", test_sweep, &sweeps[1]);
	t_run("P28-sweep-nobody", test_sweep, &sweeps[2]);
	t_run("U01-group-disk", test_group, &plain);
	t_run("U16-SQPOLL-of-a-group-member", test_group, &sqpoll);
	return t_end();
}
