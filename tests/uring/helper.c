// SPDX-License-Identifier: GPL-2.0-only
/* What the tests of /dev/vdXc0 share; see helper.h */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pattern-core.h"

#define MAX_DISKS	8
#define SKIPPED		77

struct disk disk;
unsigned int kernel_release;
unsigned int soak_minutes;

static const char *prefix = "";
static const char *only;
static const char *disks[MAX_DISKS + 1];
static const char *self;
static unsigned int limit_s = 60;
static unsigned int n_pass, n_fail, n_skip;
static int message_fd = -1;

/* ---- outcomes ---- */

const char *err_name(int err)
{
	static char text[4][40];
	static unsigned int turn;
	char *t = text[turn++ % 4];
	const char *name = err < 0 ? strerrorname_np(-err) : NULL;

	if (name)
		snprintf(t, 40, "-%s", name);
	else
		snprintf(t, 40, "%d", err);
	return t;
}

__attribute__((noreturn))
static void leave(int status, const char *fmt, va_list ap)
{
	if (message_fd >= 0)
		vdprintf(message_fd, fmt, ap);
	else
		vfprintf(stderr, fmt, ap);
	_exit(status);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leave(1, fmt, ap);
}

void skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leave(SKIPPED, fmt, ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", self);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

void want_res(int got, int want, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	if (got == want)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fail("%s: got %s, wanted %s", what, err_name(got), err_name(want));
}

void want_eq(uint64_t got, uint64_t want, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	if (got == want)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fail("%s: got %llu, wanted %llu", what, (unsigned long long)got,
	     (unsigned long long)want);
}

static void usage(const char *about)
{
	printf("usage: %s [-n PREFIX] [-t PATTERN] [-l SECONDS] DISK...\n"
	       "%s\n"
	       "  -n PREFIX   put before the name of each behaviour\n"
	       "  -t PATTERN  run only behaviours whose name matches\n"
	       "  -l SECONDS  time allowed for one behaviour (default 60)\n"
	       "  DISK        vda, vdb...; its serial must begin with \"scratch\"\n"
	       "SOAK=MINUTES in the environment asks for the long forms.\n",
	       self, about);
	exit(0);
}

static void read_kernel_release(void)
{
	unsigned int major, minor;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		die("cannot read the kernel's release");
	kernel_release = major * 100 + minor;
}

void t_start_any(int argc, char **argv, const char *about)
{
	int c, i;

	self = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "--help"))
		usage(about);
	while ((c = getopt(argc, argv, "+n:t:l:h")) != -1) {
		switch (c) {
		case 'n':
			prefix = optarg;
			break;
		case 't':
			only = optarg;
			break;
		case 'l':
			limit_s = strtoul(optarg, NULL, 0);
			break;
		case 'h':
			usage(about);
			break;
		default:
			exit(1);
		}
	}
	for (i = 0; i < MAX_DISKS && optind < argc; i++)
		disks[i] = argv[optind++];
	if (getenv("SOAK"))
		soak_minutes = strtoul(getenv("SOAK"), NULL, 0);
	limit_s += soak_minutes * 60;
	read_kernel_release();
}

void t_start(int argc, char **argv, const char *about)
{
	t_start_any(argc, argv, about);
	if (!disks[0])
		die("no disk named; try --help");
	disk_open(disks[0]);
}

const char *t_disk(unsigned int n)
{
	return n < MAX_DISKS ? disks[n] : NULL;
}

const char *t_self(void)
{
	static char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		die("cannot read /proc/self/exe");
	path[n] = 0;
	return path;
}

void t_limit(unsigned int seconds)
{
	limit_s = seconds;
}

unsigned int t_rounds(unsigned int usually, unsigned int in_half_an_hour)
{
	unsigned int n = (uint64_t)in_half_an_hour * soak_minutes / 30;

	return n > usually ? n : usually;
}

int t_end(void)
{
	if (n_fail)
		return 1;
	return n_pass || !n_skip ? 0 : SKIPPED;
}

/*
 * Where the threads of a hung behaviour's processes sleep, for whoever has to
 * find out why
 */
static void show_stacks(pid_t group)
{
	char cmd[400];

	snprintf(cmd, sizeof(cmd),
		 "for p in $(ps -eo pid=,pgid= | sed -n 's/^ *\\([0-9]*\\) *%d$/\\1/p'); do "
		 "for t in /proc/$p/task/*; do echo \"-- $t $(cat $t/comm)\"; "
		 "cat $t/stack; done; done 1>&2", group);
	if (system(cmd))
		fprintf(stderr, "no stacks of %d\n", group);
}

/* Waits for the child; false if it doesn't end, not even by SIGKILL */
static bool wait_child(pid_t pid, int *status, bool *late)
{
	struct pollfd p = { .events = POLLIN };

	p.fd = syscall(SYS_pidfd_open, pid, 0);
	if (p.fd < 0)
		die("pidfd_open: %s", strerror(errno));
	*late = poll(&p, 1, limit_s * 1000) == 0;
	if (*late) {
		show_stacks(pid);
		kill(-pid, SIGKILL);
		if (poll(&p, 1, 10000) == 0) {
			close(p.fd);
			return false;
		}
	}
	close(p.fd);
	return waitpid(pid, status, 0) == pid;
}

static void report(const char *name, int status, bool ended, bool late,
		   const char *msg, double s)
{
	if (!ended || late) {
		printf("FAIL %s%s: got no end in %u s%s, wanted one\n", prefix,
		       name, limit_s, ended ? "" : " nor by SIGKILL");
		n_fail++;
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("PASS %s%s (%.1f s)\n", prefix, name, s);
		n_pass++;
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		printf("SKIP %s%s: %s\n", prefix, name, msg);
		n_skip++;
	} else {
		if (WIFSIGNALED(status))
			printf("FAIL %s%s: got signal %d, wanted an exit\n",
			       prefix, name, WTERMSIG(status));
		else
			printf("FAIL %s%s: %s\n", prefix, name, msg);
		n_fail++;
	}
}

void t_run(const char *name, void (*fn)(const void *arg), const void *arg)
{
	uint64_t begin = now_ms();
	bool ended, late;
	char msg[1024];
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (only && fnmatch(only, name, 0))
		return;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		die("pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		setpgid(0, 0);
		message_fd = fds[1];
		close(fds[0]);
		fn(arg);
		_exit(0);
	}
	close(fds[1]);
	ended = wait_child(pid, &status, &late);
	n = read(fds[0], msg, sizeof(msg) - 1);
	msg[n > 0 ? n : 0] = 0;
	close(fds[0]);
	report(name, status, ended, late, msg, (now_ms() - begin) / 1000.0);
}

/* ---- commands and rings ---- */

int ring_try(struct ring *r, unsigned int entries, unsigned int setup)
{
	struct io_uring_params p = { .flags = setup };

	if (setup & IORING_SETUP_SQPOLL)
		p.sq_thread_idle = 200;
	r->setup = setup;
	return io_uring_queue_init_params(entries, &r->u, &p);
}

void ring_open(struct ring *r, unsigned int entries, unsigned int setup)
{
	int ret = ring_try(r, entries, setup);

	if (ret == -EINVAL)
		skip("this kernel has no ring with flags %#x", setup);
	if (ret)
		fail("a ring with flags %#x: got %s, wanted 0", setup,
		     err_name(ret));
}

void ring_close(struct ring *r)
{
	io_uring_queue_exit(&r->u);
}

/* Everything but the command itself is 0, whatever the slot held before */
void sqe_fill(struct io_uring_sqe *sqe, const struct vcmd *c, bool wide)
{
	char *payload = (char *)sqe + offsetof(struct io_uring_sqe, cmd);

	memset(sqe, 0, sizeof(*sqe));
	if (wide)
		memset((char *)sqe + sizeof(*sqe), 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = c->sqe_flags;
	sqe->fd = c->fd;
	sqe->cmd_op = c->op;
	sqe->uring_cmd_flags = c->uring_flags;
	sqe->buf_index = c->buf_index;
	sqe->user_data = c->user_data;
	if (op_is_64(c->op)) {
		struct virtblk_uring_cmd64 cmd = { .sector = c->sector,
			.type = c->type, .ioprio = c->ioprio, .flag = c->flag };

		sqe->addr = c->data;
		sqe->len = c->len;
		memcpy(payload, &cmd, sizeof(cmd));
	} else {
		struct virtblk_uring_cmd cmd = { .type = c->type,
			.ioprio = c->ioprio, .sector = c->sector,
			.data = c->data, .data_len = c->len, .flag = c->flag };

		memcpy(payload, &cmd, wide ? sizeof(cmd) : 16);
	}
}

struct io_uring_sqe *ring_sqe(struct ring *r)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&r->u))) {
		ring_submit(r);
		if (r->setup & IORING_SETUP_SQPOLL)
			io_uring_sqring_wait(&r->u);
	}
	memset((char *)sqe, 0, r->setup & IORING_SETUP_SQE128 ? 128 : 64);
	return sqe;
}

struct io_uring_sqe *ring_put(struct ring *r, const struct vcmd *c)
{
	struct io_uring_sqe *sqe = ring_sqe(r);

	sqe_fill(sqe, c, r->setup & IORING_SETUP_SQE128);
	return sqe;
}

/* All of it: an SQE that io_uring itself refuses ends a submission early */
void ring_submit(struct ring *r)
{
	int ret;

	do {
		ret = io_uring_submit(&r->u);
		if (ret < 0 && ret != -EINTR)
			fail("submit: got %s, wanted success", err_name(ret));
	} while (ret == -EINTR || (!(r->setup & IORING_SETUP_SQPOLL) &&
				   io_uring_sq_ready(&r->u)));
}

static struct answer take_cqe(struct ring *r, struct io_uring_cqe *cqe)
{
	struct answer a = { .res = cqe->res, .user_data = cqe->user_data };

	if (r->setup & IORING_SETUP_CQE32)
		a.big0 = *(const uint64_t *)(cqe + 1);
	io_uring_cqe_seen(&r->u, cqe);
	return a;
}

struct answer ring_take(struct ring *r)
{
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe(&r->u, &cqe);
	} while (ret == -EINTR);
	if (ret)
		fail("wait: got %s, wanted a CQE", err_name(ret));
	return take_cqe(r, cqe);
}

bool ring_take_within(struct ring *r, struct answer *a, unsigned int ms)
{
	struct __kernel_timespec ts = { .tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000L };
	uint64_t end = now_ms() + ms;
	struct io_uring_cqe *cqe;
	int ret;

	/* a polled ring's wait knows no time-out: look without waiting */
	while (r->setup & IORING_SETUP_IOPOLL) {
		if (io_uring_peek_cqe(&r->u, &cqe) == 0)
			goto got;
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	do {
		ret = io_uring_wait_cqe_timeout(&r->u, &cqe, &ts);
	} while (ret == -EINTR && now_ms() < end);
	if (ret)
		return false;
got:
	*a = take_cqe(r, cqe);
	return true;
}

struct answer ring_do(struct ring *r, const struct vcmd *c)
{
	ring_put(r, c);
	ring_submit(r);
	return ring_take(r);
}

void ring_put_reads(struct ring *r, int fd, uint64_t off, unsigned int stride,
		    char *buf, unsigned int n)
{
	unsigned int i;
	struct vcmd c;

	for (i = 0; i < n; i++) {
		c = vcmd(fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_IN,
			 off / 512 + i * stride, buf + i * 4096, 4096);
		c.user_data = i;
		ring_put(r, &c);
	}
}

/* What io_uring_submit() does, but that one also polls */
void ring_enter(struct ring *r)
{
	unsigned int n = r->u.sq.sqe_tail - r->u.sq.sqe_head;

	__atomic_store_n(r->u.sq.ktail, r->u.sq.sqe_tail, __ATOMIC_RELEASE);
	r->u.sq.sqe_head = r->u.sq.sqe_tail;
	want_res(syscall(__NR_io_uring_enter, r->u.ring_fd, n, 0, 0, NULL, 0), n,
		 "io_uring_enter");
}

void ring_want_done(struct ring *r, unsigned int n, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	while (n--)
		want_res(ring_take(r).res, 0, "%s", what);
}

bool has_io64(void)
{
	return disk.info.driver_features & VIRTBLK_URING_F_IO64;
}

bool has_fixed_vec(void)
{
	return disk.info.driver_features & VIRTBLK_URING_F_FIXED_VEC;
}

bool has_poll(void)
{
	return disk.info.poll_queues > 0;
}

void need_poll(unsigned int setup)
{
	if (setup & IORING_SETUP_IOPOLL && !has_poll())
		skip("the disk has no poll queue");
}

bool has_command(unsigned int type)
{
	return type < 64 && disk.info.commands >> type & 1;
}

/* ---- the node and the block device ---- */

uint64_t sys_number(const char *fmt, ...)
{
	char path[256], text[64] = "";
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		fail("%s: got nothing, wanted a number", path);
	fclose(f);
	return strtoull(text, NULL, 0);
}

bool sys_string(char *out, size_t size, const char *fmt, ...)
{
	char path[256];
	va_list ap;
	FILE *f;
	bool ok;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	out[0] = 0;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(out, size, f);
	fclose(f);
	out[strcspn(out, "\n")] = 0;
	return ok;
}

int sys_write(const char *text, const char *fmt, ...)
{
	char path[256];
	ssize_t n, err;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	err = n < 0 ? -errno : 0;
	close(fd);
	return err;
}

int module_load(const char *file, const char *params)
{
	int fd, ret;

	fd = open(file ? file : "", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, params ? params : "", 0);
	ret = ret ? -errno : 0;
	close(fd);
	return ret;
}

int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

/* The node's stat counts commands that reached the queue; see its own text */
uint64_t node_commands(void)
{
	char line[512], *p = line, *end;
	uint64_t sum = 0, v;

	if (!sys_string(line, sizeof(line), "/sys/class/vblk-generic/%sc0/stat",
			disk.name))
		fail("/sys/class/vblk-generic/%sc0/stat: got nothing, wanted counters",
		     disk.name);
	for (; *p; p = end) {
		v = strtoull(p, &end, 10);
		if (end == p)
			break;
		sum += v;
	}
	return sum;
}

bool with_node(void)
{
	const char *driver = getenv("VM_DRIVER");

	return !driver || strcmp(driver, "stock");
}

void disk_open(const char *name)
{
	int fd;

	memset(&disk, 0, sizeof(disk));
	if (!strncmp(name, "/dev/", 5))
		name += 5;
	snprintf(disk.name, sizeof(disk.name), "%.16s", name);
	snprintf(disk.blk, sizeof(disk.blk), "/dev/%s", disk.name);
	snprintf(disk.chr, sizeof(disk.chr), "/dev/%sc0", disk.name);
	sys_string(disk.serial, sizeof(disk.serial), "/sys/block/%s/serial",
		   disk.name);
	if (strncmp(disk.serial, "scratch", 7))
		die("%s: the serial \"%s\" doesn't begin with \"scratch\": this disk may hold data, give another one",
		    disk.blk, disk.serial);
	disk.bytes = sys_number("/sys/block/%s/size", disk.name) * 512;
	disk.lbs = sys_number("/sys/block/%s/queue/logical_block_size",
			      disk.name);
	disk.readonly = sys_number("/sys/block/%s/ro", disk.name);
	if (!with_node()) {
		disk.info.poll_queues = sys_number("/sys/module/virtio_blk/parameters/poll_queues");
		return;
	}
	fd = open(disk.chr, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", disk.chr, strerror(errno));
	disk.info.size = sizeof(disk.info);
	if (ioctl(fd, VIRTBLK_IOCTL_INFO, &disk.info))
		die("%s: VIRTBLK_IOCTL_INFO: %s", disk.chr, strerror(errno));
	close(fd);
}

static int open_or_fail(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		fail("open %s: got %s, wanted success", path, err_name(-errno));
	return fd;
}

int open_chr(int flags)
{
	return open_or_fail(disk.chr, flags);
}

int open_blk(int flags)
{
	return open_or_fail(disk.blk, flags);
}

void blk_read(uint64_t off, void *buf, size_t len)
{
	int fd = open_blk(O_RDONLY | O_DIRECT);
	ssize_t n = pread(fd, buf, len, off);

	if (n != (ssize_t)len)
		fail("block read of %zu at %llu: got %zd (%s)", len,
		     (unsigned long long)off, n, strerror(errno));
	close(fd);
}

void blk_write(uint64_t off, const void *buf, size_t len)
{
	int fd = open_blk(O_WRONLY | O_DIRECT);
	ssize_t n = pwrite(fd, buf, len, off);

	if (n != (ssize_t)len)
		fail("block write of %zu at %llu: got %zd (%s)", len,
		     (unsigned long long)off, n, strerror(errno));
	close(fd);
}

static void chr_once(uint32_t type, uint64_t off, const void *buf, size_t len)
{
	struct ring r;
	struct vcmd c;
	int fd = open_chr(type == VIRTIO_BLK_T_IN ? O_RDONLY : O_WRONLY);

	ring_open(&r, 4, WIDE);
	c = vcmd(fd, VIRTBLK_URING_CMD_IO, type, off / 512, buf, len);
	want_res(ring_do(&r, &c).res, 0, "passthrough type %u of %zu at %llu",
		 type, len, (unsigned long long)off);
	ring_close(&r);
	close(fd);
}

void chr_read(uint64_t off, void *buf, size_t len)
{
	chr_once(VIRTIO_BLK_T_IN, off, buf, len);
}

void chr_write(uint64_t off, const void *buf, size_t len)
{
	chr_once(VIRTIO_BLK_T_OUT, off, buf, len);
}

/* ---- memory ---- */

void *map_pages(size_t len)
{
	size_t page = getpagesize();
	size_t whole = (len + page - 1) / page * page;
	char *p = mmap(NULL, whole + 2 * page, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + page, whole, PROT_READ | PROT_WRITE))
		fail("no memory for %zu bytes", len);
	return p + page;
}

void *map_huge(size_t len)
{
	size_t huge = 2 * MiB;
	void *p = mmap(NULL, (len + huge - 1) / huge * huge,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		skip("no huge pages for %zu bytes (vm.nr_hugepages)", len);
	return p;
}

void pattern_fill(void *buf, size_t len, uint64_t off, uint64_t seed)
{
	pattern_put(buf, len, off, seed);
}

long pattern_check(const void *buf, size_t len, uint64_t off, uint64_t seed)
{
	return pattern_find_wrong(buf, len, off, seed);
}

void want_pattern(const void *buf, size_t len, uint64_t off, uint64_t seed,
		  const char *what)
{
	long at = pattern_find_wrong(buf, len, off, seed);
	uint64_t got, want;

	if (at < 0)
		return;
	memcpy(&got, (const char *)buf + at, 8);
	pattern_put(&want, 8, off + at, seed);
	fail("%s: byte %ld of %zu at disk offset %llu: got %016llx, wanted %016llx",
	     what, at, len, (unsigned long long)off, (unsigned long long)got,
	     (unsigned long long)want);
}

void want_byte(const void *buf, size_t len, int byte, const char *what)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != byte)
			fail("%s: byte %zu of %zu: got %02x, wanted %02x", what,
			     i, len, p[i], byte);
}

uint64_t mix64(uint64_t x)
{
	return pattern_mix(x);
}

uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return pattern_mix(*state);
}

void expect_on_image(uint64_t off, uint64_t len, uint64_t seed)
{
	const char *dir = getenv("VM_SCRATCH");
	char path[256], line[100];
	int fd, n;

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/%s.expect", dir, disk.serial);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	n = snprintf(line, sizeof(line), "%llu %llu %llu\n",
		     (unsigned long long)off, (unsigned long long)len,
		     (unsigned long long)seed);
	if (fd < 0 || write(fd, line, n) != n)
		fail("%s: %s", path, strerror(errno));
	close(fd);
}

/* ---- time, processes, kernel log ---- */

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static long vmstat(const char *name)
{
	char line[128];
	long v = -1;
	FILE *f = fopen("/proc/vmstat", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) &&
		    line[strlen(name)] == ' ')
			v = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return v;
}

long pinned_pages(void)
{
	/* folds the per-CPU parts of the counters, which are inexact else */
	sys_write("1", "/proc/sys/vm/stat_refresh");
	return vmstat("nr_foll_pin_acquired") - vmstat("nr_foll_pin_released");
}

long vm_pin_kb(int pid)
{
	char path[64], line[128];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* Counted by sequence number: a full buffer drops old lines, not the count */
long kernel_log_lines(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char rec[8192], *seq;
	long last = -1;
	ssize_t n;

	if (fd < 0)
		return -1;
	for (;;) {
		n = read(fd, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		rec[n] = 0;
		seq = strchr(rec, ',');
		if (seq)
			last = strtol(seq + 1, NULL, 10);
	}
	close(fd);
	return last + 1;
}

void drop_capabilities(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534))
		fail("cannot become nobody: %s", strerror(errno));
}
