// SPDX-License-Identifier: GPL-2.0-only
/*
 * The load that is measured: N I/Os of one kind, between markers for the
 * plugin. Nothing is in flight when the gate opens or closes, so what is
 * counted belongs to exactly N I/Os. One line of JSON tells the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/virtio_blk_uring.h>

#include "marker.h"

#define PAGE		4096UL
#define MAX_VEC		64

/* Until RCU and work queues have done what the preparations left them to do, µs */
#define SETTLE		50000

#ifndef IORING_URING_CMD_FIXED
#define IORING_URING_CMD_FIXED	(1U << 0)
#endif

enum path { BLOCK, PT, PT64, NOP, LOOP };
static const char *const path_names[] = { "block", "pt", "pt64", "nop", "loop" };

static struct {
	enum path path;
	const char *file;
	unsigned int depth, batch, size, vec, threads;
	unsigned long ios, warmup;
	bool fixed, write, mixed, poll, defer, huge, plain_file, submit_only;
} opt = {
	.path = BLOCK, .depth = 32, .batch = 8, .size = 4096, .threads = 1,
	.ios = 20000, .warmup = 2000,
};

struct slot {
	char *buf;
	struct iovec vec[MAX_VEC];
};

struct worker {
	pthread_t thread;
	struct io_uring ring;
	struct slot *slots;
	unsigned int *idle;		/* slots not in flight, a stack */
	unsigned int idles;
	uint64_t blocks, random;
	unsigned long enters;
};

static pthread_barrier_t barrier;
static int dev_fd = -1;
static uint64_t dev_bytes;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "client: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	exit(1);
}

static void check(int ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, strerror(-ret));
}

/*
 * Buffers whose pages don't lie side by side in memory, as after a while of
 * uptime, so that a page is a segment: touched from the last page to the
 * first, which hands them out downwards. --huge: the contrary.
 */
static char *get_buffer(void)
{
	size_t len = opt.huge ? (opt.size + (2UL << 20) - 1) & ~((2UL << 20) - 1)
			      : opt.size;
	size_t room = len + (opt.huge ? 2UL << 20 : 0);
	char *buf = mmap(NULL, room, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		die("no memory for buffers");
	if (opt.huge)
		buf = (char *)(((uintptr_t)buf + (2UL << 20) - 1) & ~((2UL << 20) - 1));
	if (madvise(buf, len, opt.huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		die("madvise: %s", strerror(errno));
	for (size_t at = len; at; at -= PAGE)
		buf[at - PAGE] = 1;
	return buf;
}

static void set_vec(struct slot *s)
{
	unsigned int part = opt.size / opt.vec;

	for (unsigned int i = 0; i < opt.vec; i++) {
		s->vec[i].iov_base = s->buf + i * part;
		s->vec[i].iov_len = part;
	}
}

/* Of the I/O whose place was taken last */
static bool is_write(const struct worker *w)
{
	return opt.write && (!opt.mixed || w->random >> 63);
}

static void prep_block(struct worker *w, struct io_uring_sqe *sqe,
		       unsigned int i, uint64_t pos)
{
	struct slot *s = &w->slots[i];
	int fd = opt.plain_file ? dev_fd : 0;
	bool out = is_write(w);

	if (opt.vec)
		io_uring_prep_rw(out ? IORING_OP_WRITEV : IORING_OP_READV,
				 sqe, fd, s->vec, opt.vec, pos);
	else
		io_uring_prep_rw(opt.fixed ? out ? IORING_OP_WRITE_FIXED :
							 IORING_OP_READ_FIXED :
				 out ? IORING_OP_WRITE : IORING_OP_READ,
				 sqe, fd, s->buf, opt.size, pos);
	sqe->buf_index = opt.fixed ? i : 0;
}

static void prep_pt(struct worker *w, struct io_uring_sqe *sqe,
		    unsigned int i, uint64_t pos)
{
	struct virtblk_uring_cmd *cmd = (struct virtblk_uring_cmd *)sqe->cmd;
	struct slot *s = &w->slots[i];

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = opt.plain_file ? dev_fd : 0;
	sqe->cmd_op = opt.vec ? VIRTBLK_URING_CMD_IO_VEC : VIRTBLK_URING_CMD_IO;
	cmd->type = is_write(w) ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN;
	cmd->sector = pos / 512;
	cmd->data = opt.vec ? (uintptr_t)s->vec : (uintptr_t)s->buf;
	cmd->data_len = opt.vec ? opt.vec : opt.size;
	if (opt.fixed) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = i;
	}
}

static void prep_pt64(struct worker *w, struct io_uring_sqe *sqe,
		      unsigned int i, uint64_t pos)
{
	struct virtblk_uring_cmd64 *cmd = (struct virtblk_uring_cmd64 *)sqe->cmd;
	struct slot *s = &w->slots[i];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = opt.plain_file ? dev_fd : 0;
	sqe->cmd_op = opt.vec ? VIRTBLK_URING_CMD_IO64_VEC :
				VIRTBLK_URING_CMD_IO64;
	sqe->addr = opt.vec ? (uintptr_t)s->vec : (uintptr_t)s->buf;
	sqe->len = opt.vec ? opt.vec : opt.size;
	cmd->type = is_write(w) ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN;
	cmd->sector = pos / 512;
	if (opt.fixed) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = i;
	}
}

/* Random, so that the block layer has nothing to merge */
static uint64_t next_pos(struct worker *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return w->blocks ? (w->random >> 20) % w->blocks * opt.size : 0;
}

static void prep(struct worker *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);
	unsigned int i = w->idle[--w->idles];

	switch (opt.path) {
	case BLOCK:
		prep_block(w, sqe, i, next_pos(w));
		break;
	case PT:
		prep_pt(w, sqe, i, next_pos(w));
		break;
	case PT64:
		prep_pt64(w, sqe, i, next_pos(w));
		break;
	default:
		io_uring_prep_nop(sqe);
		break;
	}
	if (opt.path < NOP && !opt.plain_file)
		sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = i;
}

static unsigned int reap(struct worker *w)
{
	int wanted = opt.path == BLOCK ? (int)opt.size : 0;
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&w->ring, head, cqe) {
		if (cqe->res != wanted)
			die("an I/O ended with %d (%s), wanted %d", cqe->res,
			    cqe->res < 0 ? strerror(-cqe->res) : "bytes", wanted);
		w->idle[w->idles++] = cqe->user_data;
		n++;
	}
	io_uring_cq_advance(&w->ring, n);
	return n;
}

/* Keeps up to a depth in flight, in batches, as t/io_uring of fio does */
static void run_batches(struct worker *w, unsigned long ios)
{
	unsigned long left = ios;

	while (left || w->idles < opt.depth) {
		unsigned int n = w->idles < opt.batch ? w->idles : opt.batch;
		unsigned int inflight, wait = 0;

		if (n > left)
			n = left;
		for (unsigned int i = 0; i < n; i++)
			prep(w);
		left -= n;
		inflight = opt.depth - w->idles;
		if (!left || inflight + opt.batch > opt.depth)
			wait = inflight < opt.batch ? inflight : opt.batch;
		check(io_uring_submit_and_wait(&w->ring, wait), "submit");
		w->enters++;
		reap(w);
	}
}

/*
 * liburing makes every enter of a polled ring poll; this one only submits.
 */
static int submit_plainly(struct io_uring *ring, unsigned int n)
{
	struct io_uring_sq *sq = &ring->sq;
	unsigned int tail = *sq->ktail;

	while (sq->sqe_head != sq->sqe_tail)
		sq->array[tail++ & sq->ring_mask] = sq->sqe_head++ & sq->ring_mask;
	io_uring_smp_store_release(sq->ktail, tail);
	return io_uring_enter(ring->ring_fd, n, 0, 0, NULL);
}

/* The gate is open for the submitting call only; the completion is polled */
static void run_submissions(struct worker *w, unsigned long ios, bool count)
{
	while (ios) {
		unsigned int n = 0;

		for (; n < opt.batch && n < ios; n++)
			prep(w);
		if (count)
			marker(MARK_OPEN);
		check(submit_plainly(&w->ring, n), "submit");
		if (count)
			marker(MARK_CLOSE);
		w->enters++;
		ios -= n;
		for (unsigned int got = 0; got < n; got += reap(w))
			check(io_uring_submit_and_wait(&w->ring, 1), "wait");
	}
}

static void loop(void)
{
	unsigned int n = 1000;

	asm volatile("1: dec %0; jnz 1b" : "+r"(n));
}

/*
 * What the meter must show is known beforehand: 2000 user instructions each,
 * and as many again while the gate is closed, which it must not show.
 */
static void run_loops(unsigned long ios, bool count)
{
	while (ios--) {
		loop();
		if (count)
			marker(MARK_CLOSE);
		loop();
		if (count)
			marker(MARK_OPEN);
	}
}

static void run(struct worker *w, unsigned long ios, bool count)
{
	if (opt.path == LOOP)
		run_loops(ios, count);
	else if (opt.submit_only)
		run_submissions(w, ios, count);
	else
		run_batches(w, ios);
}

static void register_all(struct worker *w)
{
	struct iovec *all;

	if (opt.path < NOP && !opt.plain_file)
		check(io_uring_register_files(&w->ring, &dev_fd, 1), "register file");
	if (!opt.fixed)
		return;
	all = calloc(opt.depth, sizeof(*all));
	for (unsigned int i = 0; i < opt.depth; i++) {
		all[i].iov_base = w->slots[i].buf;
		all[i].iov_len = opt.size;
	}
	check(io_uring_register_buffers(&w->ring, all, opt.depth),
	      "register buffers");
	free(all);
}

static void setup(struct worker *w, int number)
{
	unsigned int flags = 0;

	if (opt.path == PT)
		flags |= IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	if (opt.poll)
		flags |= IORING_SETUP_IOPOLL;
	if (opt.defer)
		flags |= IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER;
	check(io_uring_queue_init(opt.depth, &w->ring, flags), "io_uring_setup");
	w->random = number + 1;
	w->blocks = dev_bytes / opt.size;
	w->slots = calloc(opt.depth, sizeof(*w->slots));
	w->idle = calloc(opt.depth, sizeof(*w->idle));
	for (unsigned int i = 0; i < opt.depth; i++) {
		w->slots[i].buf = get_buffer();
		if (opt.vec)
			set_vec(&w->slots[i]);
		w->idle[w->idles++] = i;
	}
	register_all(w);
}

static void pin_to_cpu(int number)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % sysconf(_SC_NPROCESSORS_ONLN), &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static struct worker *workers;
static unsigned int starts, ends;
static uint64_t started, ended;

/* The first worker to start opens the gate, the last to end closes it */
static void run_counted(struct worker *w)
{
	if (__atomic_add_fetch(&starts, 1, __ATOMIC_SEQ_CST) == 1)
		started = now();
	if (!opt.submit_only)
		marker(MARK_OPEN);
	run(w, opt.ios, true);
	if (__atomic_add_fetch(&ends, 1, __ATOMIC_SEQ_CST) == opt.threads) {
		marker(MARK_CLOSE);
		ended = now();
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pin_to_cpu(w - workers);
	setup(w, w - workers);		/* DEFER_TASKRUN: by the one who submits */
	run(w, opt.warmup, false);
	w->enters = 0;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	run_counted(w);
	return NULL;
}

/* Interrupts of all virtio devices; only the disk under test is busy */
static unsigned long interrupts(void)
{
	FILE *f = fopen("/proc/interrupts", "r");
	unsigned long sum = 0;
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		char *at = strchr(line, ':'), *end;

		if (!at || !strstr(line, "virtio"))
			continue;
		for (at++;; at = end) {
			unsigned long n = strtoul(at, &end, 10);

			if (end == at || (*end != ' ' && *end != '\n'))
				break;
			sum += n;
		}
	}
	free(line);
	if (f)
		fclose(f);
	return sum;
}

static void measure(void)
{
	unsigned long enters = 0, irqs;
	struct rusage before, after;

	pthread_barrier_wait(&barrier);
	usleep(SETTLE);
	irqs = interrupts();
	getrusage(RUSAGE_SELF, &before);
	marker(MARK_CLEAR);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < opt.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		enters += workers[i].enters;
	}
	getrusage(RUSAGE_SELF, &after);
	irqs = interrupts() - irqs;
	marker(MARK_REPORT);
	printf("{\"ios\": %lu, \"ns\": %llu, \"enters\": %lu, \"irqs\": %lu, \"switches\": %ld}\n",
	       opt.ios * opt.threads, (unsigned long long)(ended - started), enters, irqs,
	       after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
}

static void open_device(void)
{
	struct stat st;

	if (opt.path >= NOP)
		return;
	if (!opt.file)
		die("--file is missing");
	dev_fd = open(opt.file, (opt.write ? O_RDWR : O_RDONLY) | O_DIRECT);
	if (dev_fd < 0 || fstat(dev_fd, &st))
		die("%s: %s", opt.file, strerror(errno));
	if (S_ISREG(st.st_mode))
		dev_bytes = st.st_size;
	else if (ioctl(dev_fd, BLKGETSIZE64, &dev_bytes))
		die("%s: BLKGETSIZE64: %s", opt.file, strerror(errno));
	if (dev_bytes < opt.size)
		die("%s is too small", opt.file);
}

static void usage(void)
{
	puts("usage: client --path block|pt|pt64|nop|loop --file DEV [options]\n"
	     "  --depth N     I/Os in flight (32)       --batch N    per submission (8)\n"
	     "  --ios N       counted I/Os (20000)      --warmup N   before them (2000)\n"
	     "  --size BYTES  of an I/O (4096)          --vec N      in so many iovecs\n"
	     "  --threads N   each with a ring (1)      --write      instead of reads\n"
	     "  --mixed       half of them writes\n"
	     "  --fixed       registered buffers        --huge       buffers of huge pages\n"
	     "  --plain-file  no registered file        --poll       IORING_SETUP_IOPOLL\n"
	     "  --defer       IORING_SETUP_DEFER_TASKRUN\n"
	     "  --submit-only count the submitting call, not the waiting one");
	exit(0);
}

static unsigned int parse_path(const char *name)
{
	for (unsigned int i = 0; i <= LOOP; i++)
		if (!strcmp(name, path_names[i]))
			return i;
	die("--path takes block, pt, pt64, nop or loop, not '%s'", name);
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end || !n)
		die("'%s' is not a number above 0", text);
	return n;
}

static void parse(int argc, char **argv)
{
	enum { WRITE = 1, FIXED, POLL, DEFER, HUGE, PLAIN, SUBMIT, MIXED };
	static const struct option options[] = {
		{ "path", 1, NULL, 'p' },	{ "file", 1, NULL, 'f' },
		{ "depth", 1, NULL, 'd' },	{ "batch", 1, NULL, 'b' },
		{ "size", 1, NULL, 's' },	{ "vec", 1, NULL, 'v' },
		{ "ios", 1, NULL, 'n' },	{ "warmup", 1, NULL, 'w' },
		{ "threads", 1, NULL, 't' },	{ "write", 0, NULL, WRITE },
		{ "fixed", 0, NULL, FIXED },	{ "poll", 0, NULL, POLL },
		{ "defer", 0, NULL, DEFER },	{ "huge", 0, NULL, HUGE },
		{ "plain-file", 0, NULL, PLAIN }, { "submit-only", 0, NULL, SUBMIT },
		{ "mixed", 0, NULL, MIXED },	{ "help", 0, NULL, 'h' },	{ }
	};

	for (;;) {
		switch (getopt_long(argc, argv, "h", options, NULL)) {
		case 'p': opt.path = parse_path(optarg); break;
		case 'f': opt.file = optarg; break;
		case 'd': opt.depth = number(optarg); break;
		case 'b': opt.batch = number(optarg); break;
		case 's': opt.size = number(optarg); break;
		case 'v': opt.vec = number(optarg); break;
		case 'n': opt.ios = number(optarg); break;
		case 'w': opt.warmup = number(optarg); break;
		case 't': opt.threads = number(optarg); break;
		case WRITE: opt.write = true; break;
		case MIXED: opt.mixed = opt.write = true; break;
		case FIXED: opt.fixed = true; break;
		case POLL: opt.poll = true; break;
		case DEFER: opt.defer = true; break;
		case HUGE: opt.huge = true; break;
		case PLAIN: opt.plain_file = true; break;
		case SUBMIT: opt.submit_only = true; break;
		case 'h': usage();
		case -1: return;
		default: exit(2);
		}
	}
}

static void check_options(void)
{
	if (opt.batch > opt.depth)
		die("--batch may not exceed --depth");
	if (opt.vec > MAX_VEC || (opt.vec && opt.size % (opt.vec * 512)))
		die("--vec: at most %d, and whole sectors each", MAX_VEC);
	if (opt.vec && opt.fixed && opt.path == BLOCK)
		die("--vec with --fixed: not on the block path");
	if (opt.submit_only && (opt.threads > 1 || !opt.poll))
		die("--submit-only: with --poll and one thread");
	if (opt.size % 512)
		die("--size: whole sectors");
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	check_options();
	open_device();
	workers = calloc(opt.threads, sizeof(*workers));
	pthread_barrier_init(&barrier, NULL, opt.threads + 1);
	for (unsigned int i = 0; i < opt.threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("cannot start a thread");
	measure();
	return 0;
}
