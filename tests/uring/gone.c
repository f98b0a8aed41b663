// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks that go while they are in use: unbind, unplug, module unload, suspend
 *
 * Disks: 1 throttled, with a poll queue, 2 throttled, with 16 tags. Every
 * behaviour leaves the disk bound and under its old name.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IO		VIRTBLK_URING_CMD_IO
#define PLACE		(64 * MiB)
/* apart from each other: QEMU would merge neighbours into one throttled I/O */
#define STRIDE		16
#define DEPTH		32
/* for the host to know them again in QEMU's trace */
#define KEXEC_PLACE	(192 * MiB)
#define KEXEC_READS	200
#define DRIVER		"/sys/bus/virtio/drivers/virtio_blk"

static const unsigned int irq, polled = IORING_SETUP_IOPOLL;

/* ---- taking the device away and back ---- */

static char virtio_name[32];	/* "virtio3" */
static char pci_path[PATH_MAX];	/* of the PCI device below it */

static void find_device(void)
{
	char path[PATH_MAX], link[128];

	snprintf(link, sizeof(link), "/sys/block/%s/device", disk.name);
	if (!realpath(link, path))
		fail("%s: %s", link, strerror(errno));
	snprintf(virtio_name, sizeof(virtio_name), "%.31s",
		 strrchr(path, '/') + 1);
	*strrchr(path, '/') = 0;
	strcpy(pci_path, path);
}

static void await_node(void)
{
	uint64_t begin = now_ms();
	int fd;

	while ((fd = open(disk.chr, O_RDONLY | O_CLOEXEC)) < 0 ||
	       access(disk.blk, R_OK)) {
		if (now_ms() - begin > 10000)
			fail("%s 10 s after the device came: got %s", disk.chr,
			     strerror(errno));
		pause_ms(10);
	}
	close(fd);
}

struct removal {
	const char	*file;		/* to write to */
	const char	*text;
	volatile bool	done;
	int		res;
	uint64_t	ms;
	pthread_t	thread;
};

static void *removal_thread(void *arg)
{
	struct removal *rm = arg;
	uint64_t begin = now_ms();

	rm->res = sys_write(rm->text, "%s", rm->file);
	rm->ms = now_ms() - begin;
	rm->done = true;
	return NULL;
}

static void removal_start(struct removal *rm, const char *file, const char *text)
{
	*rm = (struct removal){ .file = file, .text = text };
	pthread_create(&rm->thread, NULL, removal_thread, rm);
}

static void unbind_start(struct removal *rm)
{
	find_device();
	removal_start(rm, DRIVER "/unbind", virtio_name);
}

static int module_remove(void)
{
	return module_unload("virtio_blk");
}

static int module_insert(void)
{
	return module_load(getenv("VM_MODULE"), getenv("VM_PARAMS"));
}

/* A disk that a failed behaviour left without its driver gets it back */
static void bind_orphans(void)
{
	glob_t g;
	size_t i;

	if (glob("/sys/bus/virtio/devices/virtio*", 0, NULL, &g))
		return;
	for (i = 0; i < g.gl_pathc; i++) {
		const char *path = g.gl_pathv[i];
		char link[200];

		snprintf(link, sizeof(link), "%s/driver", path);
		if (access(link, F_OK) &&
		    sys_number("%s/device", path) == 2)
			sys_write(strrchr(path, '/') + 1, DRIVER "/bind");
	}
	globfree(&g);
	if (access(disk.chr, F_OK)) {
		sys_write("1", "/sys/bus/pci/rescan");
		module_insert();
	}
}

static void run(const char *name, void (*fn)(const void *), const void *arg)
{
	bind_orphans();
	t_run(name, fn, arg);
}

static void removal_wait(struct removal *rm, unsigned int limit_ms)
{
	pthread_join(rm->thread, NULL);
	want_res(rm->res, 0, "write to %s", rm->file);
	if (rm->ms > limit_ms)
		fail("removal: got %llu ms, wanted at most %u",
		     (unsigned long long)rm->ms, limit_ms);
}

static void unbind(void)
{
	struct removal rm;

	unbind_start(&rm);
	removal_wait(&rm, 35000);
}

static void bind_again(void)
{
	want_res(sys_write(virtio_name, DRIVER "/bind"), 0, "bind");
	await_node();
}

static void want_works(void)
{
	char *buf = map_pages(4096);

	chr_read(PLACE, buf, 4096);
	blk_read(PLACE, buf, 4096);
}

/* ---- the host ---- */

/* Asks the script on the host for something and waits for its answer */
static void host_do(const char *what)
{
	const char *dir = getenv("VM_SCRATCH");
	char ask[256], answer[256], text[64] = "";
	uint64_t begin = now_ms();
	FILE *f;

	snprintf(ask, sizeof(ask), "%s/ask.new", dir);
	snprintf(answer, sizeof(answer), "%s/answer", dir);
	unlink(answer);
	f = fopen(ask, "we");
	if (!f || fprintf(f, "%s\n", what) < 0 || fclose(f))
		fail("%s: %s", ask, strerror(errno));
	snprintf(text, sizeof(text), "%.50s/ask", dir);
	if (rename(ask, text))
		fail("%s: %s", text, strerror(errno));
	while (!(f = fopen(answer, "re"))) {
		if (now_ms() - begin > 60000)
			fail("the host's answer to \"%s\": got none in 60 s", what);
		pause_ms(20);
	}
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (strcmp(text, "ok"))
		fail("the host's answer to \"%s\": got %s, wanted ok", what, text);
}

/* ---- commands in flight ---- */

static void put_reads(struct ring *r, int fd, char *buf, unsigned int n)
{
	ring_put_reads(r, fd, PLACE, STRIDE, buf, n);
	ring_enter(r);
}

/* One CQE for each: done, or -ENODEV without a word from the device */
static unsigned int want_one_each(struct ring *r, unsigned int n)
{
	unsigned int seen[256] = { 0 }, i, lost = 0;
	struct answer a;

	for (i = 0; i < n; i++) {
		if (!ring_take_within(r, &a, 20000))
			fail("CQEs: got %u, wanted %u", i, n);
		if (a.res != 0 && a.res != -ENODEV)
			fail("command %u: got %s, wanted 0 or -ENODEV",
			     (unsigned int)a.user_data, err_name(a.res));
		want_eq(a.big0, 0, "big_cqe[0]");
		lost += a.res != 0;
		want_eq(seen[a.user_data]++, 0, "earlier CQEs of command %u",
			(unsigned int)a.user_data);
	}
	if (ring_take_within(r, &a, 20))
		fail("a CQE too many");
	return lost;
}

static void *block_reader(void *arg)
{
	int fd = open_blk(O_RDONLY | O_DIRECT);
	char *buf = map_pages(4096);
	ssize_t n;

	while ((n = pread(fd, buf, 4096, PLACE)) == 4096)
		;
	/* a disk that shrank to nothing reads 0 bytes */
	if (n < 0 && errno != EIO && errno != ENODEV && errno != ENXIO)
		fail("block read at removal: got %s", strerror(errno));
	close(fd);
	return NULL;
}

/* What a descriptor is good for when its disk is gone (V02) */
static void want_dead(int fd, int blk)
{
	static const unsigned long ask[] = { BLKSSZGET, BLKPBSZGET, BLKROGET,
		BLKGETSIZE64 };
	struct virtblk_uring_info info = { .size = sizeof(info) };
	struct hd_geometry geo;
	char path[64], *buf = map_pages(4096);
	uint64_t v;
	struct ring r;
	struct vcmd c = vcmd(fd, IO, VIRTIO_BLK_T_IN, 0, buf, 4096);
	unsigned int i;
	int again;

	ring_open(&r, 4, WIDE);
	for (i = 0; i < 2; i++) {
		want_res(ring_do(&r, &c).res, -ENODEV, "IN on a disk that is gone");
		c.sqe_flags = IOSQE_ASYNC;
	}
	c = vcmd(fd, IO, VIRTIO_BLK_T_FLUSH, 0, NULL, 0);
	want_res(ring_do(&r, &c).res, -ENODEV, "FLUSH on a disk that is gone");
	ring_close(&r);
	want_res(ioctl(fd, VIRTBLK_IOCTL_INFO, &info) ? -errno : 0, -ENODEV,
		 "VIRTBLK_IOCTL_INFO");
	for (i = 0; i < ARRAY_SIZE(ask); i++)
		want_res(ioctl(fd, ask[i], &v) ? -errno : 0, -ENODEV, "ioctl %#lx",
			 ask[i]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	if (again >= 0 || (errno != ENXIO && errno != ENODEV))
		fail("opening the node again: got %s, wanted -ENXIO",
		     again >= 0 ? "success" : err_name(-errno));
	if (blk >= 0 && ioctl(blk, HDIO_GETGEO, &geo) == 0)
		fail("HDIO_GETGEO: got success, wanted an error");
	if (access(disk.chr, F_OK) == 0)
		fail("%s: still there", disk.chr);
}

/* ---- unbind ---- */

static void test_in_flight(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY), blk = open_blk(O_RDONLY);
	struct removal rm;
	struct ring r;
	pthread_t t;

	need_poll(setup);
	ring_open(&r, DEPTH, WIDE | setup);
	pthread_create(&t, NULL, block_reader, NULL);
	put_reads(&r, fd, buf, DEPTH);
	unbind_start(&rm);
	want_one_each(&r, DEPTH);
	removal_wait(&rm, 30000);
	pthread_join(t, NULL);
	want_dead(fd, blk);
	close(blk);
	close(fd);
	bind_again();
	want_works();
}

/* Submitting never stops while the disk goes: each answer is 0 or -ENODEV */
static void test_under_load(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg, after = 0;
	char *buf = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	struct removal rm;
	struct answer a;
	struct ring r;
	struct vcmd c = vcmd(fd, IO, VIRTIO_BLK_T_IN, PLACE / 512, buf, 4096);

	need_poll(setup);
	ring_open(&r, 8, WIDE | setup);
	unbind_start(&rm);
	while (!rm.done || after++ < 10) {
		a = ring_do(&r, &c);
		if (a.res != 0 && a.res != -ENODEV)
			fail("during removal: got %s, wanted 0 or -ENODEV",
			     err_name(a.res));
	}
	removal_wait(&rm, 30000);
	want_res(a.res, -ENODEV, "after removal");
	close(fd);
	bind_again();
	want_works();
}

/* Polled commands nobody reaps, then the disk goes */
static void test_unreaped(const void *arg)
{
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY);
	struct removal rm;
	struct ring r;

	need_poll(polled);
	ring_open(&r, DEPTH, WIDE | polled);
	put_reads(&r, fd, buf, DEPTH);
	unbind_start(&rm);
	/* long before the request time-out of 30 s would reap them */
	removal_wait(&rm, 12000);
	want_one_each(&r, DEPTH);
	close(fd);
	bind_again();
	want_works();
}

/* Four times as many commands as tags: most wait for one when the disk goes */
static void test_tags_exhausted(const void *arg)
{
	enum { N = 64 };
	char *buf = map_pages(N * 4096);
	unsigned int lost;
	struct removal rm;
	struct ring r;
	int fd;

	if (!t_disk(1))
		skip("no disk with a small queue given");
	disk_open(t_disk(1));
	fd = open_chr(O_RDONLY);
	ring_open(&r, N, WIDE);
	put_reads(&r, fd, buf, N);
	unbind_start(&rm);
	lost = want_one_each(&r, N);
	removal_wait(&rm, 30000);
	want_dead(fd, -1);
	close(fd);
	bind_again();
	want_works();
	if (!lost)
		skip("all had been answered before the disk was gone");
}

static void test_ring_outlives(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	unsigned int rounds = t_rounds(3, 100), i;
	char *buf = map_pages(DEPTH * 4096);
	long pinned = pinned_pages();
	struct removal rm;
	struct ring r;
	uint64_t begin;
	int fd;

	need_poll(setup);
	for (i = 0; i < rounds; i++) {
		fd = open_chr(O_RDONLY);
		ring_open(&r, DEPTH, WIDE | setup);
		put_reads(&r, fd, buf, DEPTH);
		unbind_start(&rm);
		/* the ring goes while the removal is under way */
		close(fd);
		ring_close(&r);
		removal_wait(&rm, 35000);
		bind_again();
	}
	begin = now_ms();
	while (pinned_pages() != pinned && now_ms() - begin < 10000)
		pause_ms(20);
	want_eq(pinned_pages() - pinned, 0, "pages left pinned");
	want_works();
}

/* The node's descriptor lives on long after the disk (V02) */
static void test_lifetime(const void *arg)
{
	uint64_t end = now_ms() + t_rounds(2000, 60000);
	int fd = open_chr(O_RDWR), blk = open_blk(O_RDONLY);

	unbind();
	do {
		want_dead(fd, blk);
		pause_ms(100);
	} while (now_ms() < end);
	close(fd);
	if (pread(blk, &end, 1, 0) > 0)
		fail("reading the block node: got data");
	close(blk);
	bind_again();
	want_works();
}

static void test_held_rounds(const void *arg)
{
	unsigned int rounds = t_rounds(8, 500), i;
	int fd[4];

	for (i = 0; i < rounds; i++) {
		fd[i % 4] = open_chr(O_RDONLY);
		unbind();
		if (i % 2)
			want_dead(fd[i % 4], -1);
		close(fd[i % 4]);
		bind_again();
	}
	want_works();
}

/* A PCI device taken from under the driver, and found again */
static void test_pci_remove(const void *arg)
{
	char *buf = map_pages(DEPTH * 4096), file[PATH_MAX + 8];
	int fd = open_chr(O_RDONLY);
	struct removal rm;
	struct ring r;

	find_device();
	snprintf(file, sizeof(file), "%s/remove", pci_path);
	if (access(file, W_OK))
		skip("no PCI device below the disk");
	ring_open(&r, DEPTH, WIDE);
	put_reads(&r, fd, buf, DEPTH);
	removal_start(&rm, file, "1");
	want_one_each(&r, DEPTH);
	removal_wait(&rm, 30000);
	want_dead(fd, -1);
	close(fd);
	want_res(sys_write("1", "/sys/bus/pci/rescan"), 0, "rescan");
	await_node();
	want_works();
}

/*
 * A device that has stopped to answer: after 30 s removal gives up on it. The
 * host throttles it to a byte a second.
 */
static void test_silent(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY);
	struct removal rm;
	struct ring r;

	need_poll(setup);
	ring_open(&r, DEPTH, WIDE | setup);
	host_do("slow");
	put_reads(&r, fd, buf, DEPTH);
	unbind_start(&rm);
	removal_wait(&rm, 45000);
	if (rm.ms < 25000)
		fail("removal: got %llu ms, wanted 30 s of patience",
		     (unsigned long long)rm.ms);
	if (!want_one_each(&r, DEPTH))
		fail("commands that ended with -ENODEV: got 0, wanted some");
	want_dead(fd, -1);
	close(fd);
	host_do("fast");
	bind_again();
	want_works();
}

/* ---- the module ---- */

static void test_module_held(const void *arg)
{
	int fd = open_chr(O_RDONLY);
	int ret = module_remove();

	if (ret != -EAGAIN && ret != -EBUSY)
		fail("rmmod with the node open: got %s, wanted -EAGAIN",
		     err_name(ret));
	unbind();
	ret = module_remove();
	if (ret != -EAGAIN && ret != -EBUSY)
		fail("rmmod with a dead node open: got %s, wanted -EAGAIN",
		     err_name(ret));
	want_dead(fd, -1);
	close(fd);
	bind_again();
	want_works();
}

/* Nothing stays behind: the module comes and goes as often as one likes */
static void test_module_rounds(const void *arg)
{
	unsigned int rounds = t_rounds(4, 200), i;
	uint64_t begin;
	int ret;

	if (!getenv("VM_MODULE"))
		skip("VM_MODULE doesn't say which file to load");
	for (i = 0; i < rounds; i++) {
		char *buf = map_pages(4096);

		chr_read(PLACE, buf, 4096);
		/* the kernel gives files back a moment after close() */
		begin = now_ms();
		while ((ret = module_remove()) == -EAGAIN &&
		       now_ms() - begin < 5000)
			pause_ms(10);
		want_res(ret, 0, "rmmod, round %u", i);
		if (access("/sys/class/vblk-generic", F_OK) == 0)
			fail("/sys/class/vblk-generic: still there after rmmod");
		if (access(disk.chr, F_OK) == 0)
			fail("%s: still there after rmmod", disk.chr);
		want_res(module_insert(), 0, "insmod, round %u", i);
		await_node();
	}
	want_works();
}

/* rmmod while commands are in flight and their file is closed already */
static void test_module_in_flight(const void *arg)
{
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY), ret;
	uint64_t begin;
	struct ring r;

	if (!getenv("VM_MODULE"))
		skip("VM_MODULE doesn't say which file to load");
	ring_open(&r, DEPTH, WIDE);
	put_reads(&r, fd, buf, DEPTH);
	close(fd);
	begin = now_ms();
	while ((ret = module_remove()) == -EAGAIN && now_ms() - begin < 20000)
		pause_ms(1);
	want_res(ret, 0, "rmmod");
	want_one_each(&r, DEPTH);
	want_res(module_insert(), 0, "insmod");
	await_node();
	want_works();
}

/* ---- suspend (V05) ---- */

/* The function is reset below the driver: what was in flight ends, later I/O works */
static void test_pci_reset(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(DEPTH * 4096), file[PATH_MAX + 8];
	struct removal rm;
	struct ring r;
	int fd;

	need_poll(setup);
	if (kernel_release < 614)
		skip("virtio drivers aren't told of a PCI reset before Linux 6.14");
	find_device();
	snprintf(file, sizeof(file), "%s/reset", pci_path);
	if (access(file, W_OK))
		skip("this PCI device has no reset");
	fd = open_chr(O_RDONLY);
	ring_open(&r, DEPTH, WIDE | setup);
	put_reads(&r, fd, buf, DEPTH);
	removal_start(&rm, file, "1");
	removal_wait(&rm, 12000);
	want_one_each(&r, DEPTH);
	close(fd);
	want_works();
}

/* A suspend finds what nobody reaps, and it is reaped after it */
static void test_unreaped_suspend(const void *arg)
{
	const char *module = getenv("SUSPEND_MODULE");
	char *buf = map_pages(DEPTH * 4096), params[64];
	uint64_t begin;
	struct ring r;
	int fd;

	need_poll(polled);
	if (!module || !*module)
		skip("SUSPEND_MODULE doesn't say which file to load");
	fd = open_chr(O_RDONLY);
	ring_open(&r, DEPTH, WIDE | polled);
	find_device();
	snprintf(params, sizeof(params), "device=%s restore=0", virtio_name);
	put_reads(&r, fd, buf, DEPTH);
	begin = now_ms();
	want_res(module_load(module, params), 0, "suspending the device");
	module_unload("suspend_one");
	/* long before the request time-out of 30 s would reap them */
	if (now_ms() - begin > 12000)
		fail("suspend: got %llu ms, wanted less than 12 s",
		     (unsigned long long)(now_ms() - begin));
	want_eq(want_one_each(&r, DEPTH), 0, "commands that failed");
	close(fd);
	unbind();
	bind_again();
	want_works();
}

/*
 * A device that was suspended and never comes back, or comes without
 * virtqueues: commands wait, or fail; either way the disk can be removed.
 */
static void test_lost_in_suspend(const void *arg)
{
	bool restore = *(const bool *)arg;
	const char *module = getenv("SUSPEND_MODULE");
	char *buf = map_pages(DEPTH * 4096), params[64];
	struct removal rm;
	struct answer a;
	struct ring r;
	int fd;

	if (!module || !*module)
		skip("SUSPEND_MODULE doesn't say which file to load");
	fd = open_chr(O_RDONLY);
	ring_open(&r, DEPTH, WIDE);
	find_device();
	snprintf(params, sizeof(params), "device=%s restore=%d", virtio_name,
		 restore);
	want_res(module_load(module, params), 0,
		 "suspending the device");
	module_unload("suspend_one");
	put_reads(&r, fd, buf, DEPTH);
	if (!restore && ring_take_within(&r, &a, 100))
		fail("a command while suspended: got %s, wanted to wait",
		     err_name(a.res));
	if (restore) {
		want_eq(want_one_each(&r, DEPTH), DEPTH, "commands that failed");
	} else {
		/* once more, with commands that wait for the resume */
		want_res(module_load(module, params), 0,
			 "suspending it again");
		module_unload("suspend_one");
	}
	unbind_start(&rm);
	if (!restore)
		want_eq(want_one_each(&r, DEPTH), DEPTH, "commands that failed");
	removal_wait(&rm, 35000);
	want_dead(fd, -1);
	close(fd);
	bind_again();
	want_works();
}

static volatile bool stop;

static void *verify_thread(void *arg)
{
	unsigned int setup = *(const unsigned int *)arg, round, i;
	char *buf = map_pages(16 * 4096);
	int fd = open_chr(O_RDWR);
	uint64_t base = PLACE + (setup ? MiB : 0);
	struct ring r;
	struct vcmd c;

	ring_open(&r, 16, WIDE | setup);
	for (round = 0; !stop; round++) {
		pattern_fill(buf, 16 * 4096, base, round);
		for (i = 0; i < 16; i++) {
			c = vcmd(fd, IO, VIRTIO_BLK_T_OUT, base / 512 + i * 8,
				 buf + i * 4096, 4096);
			ring_put(&r, &c);
		}
		ring_submit(&r);
		ring_want_done(&r, 16, "a write across a suspend");
		memset(buf, 0, 16 * 4096);
		ring_put_reads(&r, fd, base, 8, buf, 16);
		ring_submit(&r);
		ring_want_done(&r, 16, "a read across a suspend");
		want_pattern(buf, 16 * 4096, base, round, "across a suspend");
	}
	return NULL;
}

/* The same by the block node, whose requests take the same queue */
static void *block_thread(void *arg)
{
	char *buf = map_pages(16 * 4096);
	uint64_t base = PLACE + 2 * MiB;
	unsigned int round;

	for (round = 0; !stop; round++) {
		pattern_fill(buf, 16 * 4096, base, round);
		blk_write(base, buf, 16 * 4096);
		memset(buf, 0, 16 * 4096);
		blk_read(base, buf, 16 * 4096);
		want_pattern(buf, 16 * 4096, base, round, "by block across a suspend");
	}
	return NULL;
}

/*
 * pm_test stops after the devices are suspended and brings them back. The
 * guest's own files do not survive it (9p cannot be suspended), so this program
 * is locked into memory and the runner puts nothing behind it.
 */
static void test_suspend(const void *arg)
{
	unsigned int cycles = t_rounds(2, 20), i, n = has_poll() ? 2 : 1;
	static const unsigned int setups[] = { 0, IORING_SETUP_IOPOLL };
	pthread_t t[2], block;

	if (sys_write("devices", "/sys/power/pm_test"))
		skip("this kernel has no pm_test");
	sys_write("1", "/sys/module/suspend/parameters/pm_test_delay");
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall: %s", strerror(errno));
	for (i = 0; i < n; i++)
		pthread_create(&t[i], NULL, verify_thread, (void *)&setups[i]);
	pthread_create(&block, NULL, block_thread, NULL);
	for (i = 0; i < cycles; i++)
		want_res(sys_write("freeze", "/sys/power/state"), 0,
			 "suspend %u", i);
	stop = true;
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	pthread_join(block, NULL);
	want_works();
}

/*
 * After a suspend nobody can read a file any more, the runner's init included.
 * So this program says in the kernel log what init would have said, when what
 * it printed has gone out, and turns the guest off.
 */
static void flush_output(void)
{
	uint64_t begin = now_ms();
	int left = 1;

	while (ioctl(STDOUT_FILENO, FIONREAD, &left) == 0 && left > 0 &&
	       now_ms() - begin < 5000)
		pause_ms(10);
	pause_ms(300);	/* the reader's last write to the serial line */
}

__attribute__((noreturn))
static void end_guest(int status)
{
	char said[64];

	flush_output();
	snprintf(said, sizeof(said), "<1>vm: exit %d\n", status);
	sys_write(said, "/dev/kmsg");
	reboot(RB_POWER_OFF);
	_exit(status);
}

/* ---- another kernel (V30) ---- */

/*
 * Starts the kernel of KEXEC_KERNEL while the disk has reads in flight. What it
 * finds is for others to say; a return is a failure.
 */
static void test_kexec(const void *arg)
{
	const char *cmdline = getenv("KEXEC_CMDLINE");
	char *buf = map_pages(KEXEC_READS * 4096);
	int kernel, initrd;
	struct ring r;

	kernel = open(getenv("KEXEC_KERNEL"), O_RDONLY | O_CLOEXEC);
	initrd = open(getenv("KEXEC_INITRD"), O_RDONLY | O_CLOEXEC);
	if (kernel < 0 || initrd < 0)
		fail("KEXEC_KERNEL, KEXEC_INITRD: %s", strerror(errno));
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(cmdline) + 1,
		    cmdline, 0))
		fail("kexec_file_load: got %s", err_name(-errno));
	flush_output();
	ring_open(&r, KEXEC_READS, WIDE);
	ring_put_reads(&r, open_chr(O_RDONLY), KEXEC_PLACE, STRIDE, buf,
		       KEXEC_READS);
	ring_enter(&r);
	reboot(RB_KEXEC);
	fail("reboot: got %s", err_name(-errno));
}

/* ---- the host's doing: hot unplug and plug ---- */

struct host_job {
	const char	*what;
	volatile bool	done;
	uint64_t	ms;
};

static void *host_thread(void *arg)
{
	struct host_job *j = arg;
	uint64_t begin = now_ms();

	host_do(j->what);
	j->ms = now_ms() - begin;
	j->done = true;
	return NULL;
}

static void test_unplug(const void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	struct host_job job = { .what = "unplug" };
	char *buf = map_pages(DEPTH * 4096);
	int fd, blk;
	pthread_t t, t2;
	struct ring r;

	need_poll(setup);
	fd = open_chr(O_RDONLY);
	blk = open_blk(O_RDONLY);
	ring_open(&r, DEPTH, WIDE | setup);
	pthread_create(&t2, NULL, block_reader, NULL);
	put_reads(&r, fd, buf, DEPTH);
	pthread_create(&t, NULL, host_thread, &job);
	want_one_each(&r, DEPTH);
	pthread_join(t, NULL);
	pthread_join(t2, NULL);
	if (job.ms > 30000)
		fail("unplug: got %llu ms, wanted less than 30 s",
		     (unsigned long long)job.ms);
	want_dead(fd, blk);
	close(blk);
	close(fd);
	host_do("plug");
	await_node();
	want_works();
}

static void test_unplug_unreaped(const void *arg)
{
	struct host_job job = { .what = "unplug" };
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY);
	struct ring r;

	need_poll(polled);
	ring_open(&r, DEPTH, WIDE | polled);
	put_reads(&r, fd, buf, DEPTH);
	host_thread(&job);
	if (job.ms > 12000)
		fail("unplug: got %llu ms, wanted less than 12 s",
		     (unsigned long long)job.ms);
	want_one_each(&r, DEPTH);
	close(fd);
	host_do("plug");
	await_node();
	want_works();
}

/* A disk added while another works hard (V04) */
static void test_hot_add(const void *arg)
{
	static const unsigned int setups[] = { 0 };
	char path[64];
	uint64_t begin;
	pthread_t t;
	unsigned int i;

	pthread_create(&t, NULL, verify_thread, (void *)&setups[0]);
	for (i = 0; i < t_rounds(2, 30); i++) {
		host_do("add");
		snprintf(path, sizeof(path), "/dev/%s", getenv("HOT_NAME"));
		begin = now_ms();
		while (access(path, F_OK)) {
			if (now_ms() - begin > 10000)
				fail("%s 10 s after it was added: not there", path);
			pause_ms(20);
		}
		host_do("del");
		begin = now_ms();
		while (access(path, F_OK) == 0) {
			if (now_ms() - begin > 10000)
				fail("%s 10 s after it was deleted: still there",
				     path);
			pause_ms(20);
		}
	}
	stop = true;
	pthread_join(t, NULL);
}

/* Every disk of the guest has its node, past vdz too (V04) */
static void test_names(const void *arg)
{
	unsigned int n = atoi(getenv("VM_DISKS") ? getenv("VM_DISKS") : "0"), i;
	char name[8], serial[32], want[32];

	if (n < 27)
		skip("%u disks don't reach past vdz", n);
	for (i = 0; i < n; i++) {
		if (i < 26)
			snprintf(name, sizeof(name), "vd%c", 'a' + i);
		else
			snprintf(name, sizeof(name), "vd%c%c", 'a' + i / 26 - 1,
				 'a' + i % 26);
		disk_open(name);
		snprintf(want, sizeof(want), "scratch%u", i);
		sys_string(serial, sizeof(serial), "/sys/block/%s/serial", name);
		if (strcmp(serial, want))
			fail("serial of %s: got %s, wanted %s", name, serial, want);
		if (i % 5 == 0 || i >= 25) {
			char *buf = map_pages(4096);

			chr_read(0, buf, 4096);
		}
	}
}

int main(int argc, char **argv)
{
	t_start(argc, argv, "Disks that go while they are in use.\n"
		"GONE=all|silent|suspend|plug|names|kexec says which part");
	const char *part = getenv("GONE") ? getenv("GONE") : "all";
	static const bool no, yes = true;

	if (!strcmp(part, "silent")) {
		run("silent-device", test_silent, &irq);
		run("silent-device-polled", test_silent, &polled);
	} else if (!strcmp(part, "suspend")) {
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			die("mlockall: %s", strerror(errno));
		run("V05-suspend", test_suspend, NULL);
		end_guest(t_end());
	} else if (!strcmp(part, "kexec")) {
		run("V30-kexec", test_kexec, NULL);
	} else if (!strcmp(part, "plug")) {
		run("V01-unplug-in-flight", test_unplug, &irq);
		run("V01-unplug-in-flight-polled", test_unplug, &polled);
		run("V01-unplug-unreaped-polled", test_unplug_unreaped, NULL);
		run("pci-reset-in-flight", test_pci_reset, &irq);
		run("pci-reset-unreaped-polled", test_pci_reset, &polled);
		run("V04-hot-add", test_hot_add, NULL);
	} else if (!strcmp(part, "names")) {
		run("V04-names", test_names, NULL);
	} else {
		run("V01-unbind-in-flight", test_in_flight, &irq);
		run("V01-unbind-in-flight-polled", test_in_flight, &polled);
		run("unbind-under-load", test_under_load, &irq);
		run("unbind-under-load-polled", test_under_load, &polled);
		run("unbind-unreaped-polled", test_unreaped, NULL);
		run("unbind-tags-exhausted", test_tags_exhausted, NULL);
		run("unbind-ring-outlives", test_ring_outlives, &irq);
		run("unbind-ring-outlives-polled", test_ring_outlives, &polled);
		run("V02-lifetime", test_lifetime, NULL);
		run("unbind-node-held", test_held_rounds, NULL);
		run("V01-pci-remove", test_pci_remove, NULL);
		run("V05-suspend-unreaped-polled", test_unreaped_suspend, NULL);
		run("V05-resume-never-comes", test_lost_in_suspend, &no);
		run("V05-resume-fails", test_lost_in_suspend, &yes);
		run("rmmod-node-held", test_module_held, NULL);
		run("V07-rmmod-rounds", test_module_rounds, NULL);
		run("rmmod-in-flight", test_module_in_flight, NULL);
	}
	return t_end();
}
