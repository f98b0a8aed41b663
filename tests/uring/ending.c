// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exactly one ending: processes, rings and files that end with commands in
 * flight, and what other parts of the kernel do meanwhile
 *
 * Disks: 1 throttled, with a poll queue; 2 with a queue of few entries.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH		64
#define IO		VIRTBLK_URING_CMD_IO
#define PLACE		(64 * MiB)
/* apart from each other: QEMU would merge neighbours into one throttled I/O */
#define STRIDE		16

struct way {
	const char	*name;
	unsigned int	setup;
	bool		fixed, async;
};

static const struct way ways[] = {
	{ "plain", 0, false, false },
	{ "fixed", 0, true, false },
	{ "async", 0, false, true },
	{ "polled", IORING_SETUP_IOPOLL, false, false },
	{ "polled-fixed", IORING_SETUP_IOPOLL, true, false },
	{ "SQPOLL", IORING_SETUP_SQPOLL, false, false },
	{ "DEFER_TASKRUN", IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN, true, false },
};

/* DEPTH reads in flight */
static void fill_ring(struct ring *r, const struct way *w, char *buf, int fd)
{
	struct iovec reg = { buf, DEPTH * 4096 };
	unsigned int i;
	struct vcmd c;

	ring_open(r, DEPTH, WIDE | w->setup);
	if (w->fixed)
		want_res(io_uring_register_buffers(&r->u, &reg, 1), 0,
			 "register_buffers");
	for (i = 0; i < DEPTH; i++) {
		c = vcmd(fd, IO, VIRTIO_BLK_T_IN, PLACE / 512 + i * STRIDE,
			 buf + i * 4096, 4096);
		c.uring_flags = w->fixed ? IORING_URING_CMD_FIXED : 0;
		c.sqe_flags = w->async ? IOSQE_ASYNC : 0;
		c.user_data = i;
		ring_put(r, &c);
	}
	if (w->setup & IORING_SETUP_SQPOLL)
		ring_submit(r);
	else
		ring_enter(r);
}

/* Until nothing is pinned any more and the disk answers */
static void settle(long pinned, const char *after)
{
	char *buf = map_pages(4096);
	uint64_t begin = now_ms();
	long left;

	while ((left = pinned_pages() - pinned) != 0 && now_ms() - begin < 20000)
		pause_ms(20);
	if (left)
		fail("pages pinned 20 s after %s: got %ld, wanted 0", after, left);
	chr_read(PLACE, buf, 4096);
}

/* ---- processes that end (P19) ---- */

static pid_t child_with_ring(const struct way *w, int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		char *buf = map_pages(DEPTH * 4096);
		struct ring r;

		fill_ring(&r, w, buf, open_chr(O_RDONLY));
		if (write(ready, "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	return pid;
}

static void test_kill(const void *arg)
{
	const struct way *w = arg;
	unsigned int rounds = t_rounds(4, 200), i;
	long pinned = pinned_pages();
	int fds[2], status;
	uint64_t begin;
	pid_t pid;
	char c;

	need_poll(w->setup);
	for (i = 0; i < rounds; i++) {
		if (pipe(fds))
			fail("pipe: %s", strerror(errno));
		pid = child_with_ring(w, fds[1]);
		close(fds[1]);
		if (read(fds[0], &c, 1) != 1) {
			waitpid(pid, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
		close(fds[0]);
		begin = now_ms();
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		if (now_ms() - begin > 15000)
			fail("end after SIGKILL: got %llu ms, wanted less than 15 s",
			     (unsigned long long)(now_ms() - begin));
	}
	settle(pinned, "SIGKILL");
}

/* exec with commands in flight; the new program finds nothing pinned by it */
static void test_exec(const void *arg)
{
	const struct way *w = arg;
	long pinned = pinned_pages();
	int status;
	pid_t pid;

	need_poll(w->setup);
	pid = fork();
	if (pid == 0) {
		struct ring r;

		fill_ring(&r, w, map_pages(DEPTH * 4096), open_chr(O_RDONLY));
		execl(t_self(), "ending", "--after-exec", NULL);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("VmPin of the new program: got status %#x, wanted 0 kB",
		     status);
	settle(pinned, "exec");
}

static int after_exec(void)
{
	return vm_pin_kb(getpid()) > 0;
}

/* The submitter ends; its child keeps ring and memory and gets every CQE */
static void test_fork_and_exit(const void *arg)
{
	const struct way *w = arg;
	char *buf = mmap(NULL, DEPTH * 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long pinned = pinned_pages();
	int status;
	pid_t pid;

	need_poll(w->setup);
	pid = fork();
	if (pid == 0) {
		struct ring r;
		pid_t parent = getpid();

		fill_ring(&r, w, buf, open_chr(O_RDONLY));
		if (fork() == 0) {
			while (getppid() == parent)
				pause_ms(5);
			pause_ms(100);
			_exit(0);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	settle(pinned, "the submitter's end");
}

static void test_close(const void *arg)
{
	const struct way *w = arg;
	unsigned int rounds = t_rounds(3, 100), i;
	long pinned = pinned_pages();
	char *buf = map_pages(DEPTH * 4096);

	need_poll(w->setup);
	for (i = 0; i < rounds; i++) {
		int fd = open_chr(O_RDONLY);
		struct ring r;

		fill_ring(&r, w, buf, fd);
		/* the node first: commands hold the file themselves */
		close(fd);
		ring_close(&r);
	}
	settle(pinned, "closing the ring");
	want_eq(vm_pin_kb(getpid()), 0, "VmPin");
}

/*
 * Cancel requests, by each key that io_uring knows: answered, and a command goes on
 * and ends once all the same
 */
#define CANCELS		(DEPTH / 8)

struct cancel_way {
	const char		*name;
	const struct way	*way;
	unsigned int		flags;		/* IORING_ASYNC_CANCEL_* */
	bool			sync;		/* by io_uring_register() */
};

static const struct cancel_way cancel_ways[] = {
	{ "by-fd", &ways[0], IORING_ASYNC_CANCEL_FD, false },
	{ "all-by-fd", &ways[0], IORING_ASYNC_CANCEL_FD |
		IORING_ASYNC_CANCEL_ALL, false },
	{ "any", &ways[0], IORING_ASYNC_CANCEL_ANY, false },
	{ "any-async", &ways[2], IORING_ASYNC_CANCEL_ANY, false },
	{ "any-polled", &ways[3], IORING_ASYNC_CANCEL_ANY, false },
	{ "any-SQPOLL", &ways[5], IORING_ASYNC_CANCEL_ANY, false },
	{ "sync-by-user-data", &ways[0], 0, true },
	{ "sync-any", &ways[0], IORING_ASYNC_CANCEL_ANY, true },
};

static void put_cancel(struct ring *r, unsigned int flags, int fd, unsigned int i)
{
	struct io_uring_sqe *sqe = ring_sqe(r);

	sqe->opcode = IORING_OP_ASYNC_CANCEL;
	sqe->fd = flags & IORING_ASYNC_CANCEL_FD ? fd : -1;
	sqe->addr = flags ? 0 : i;
	sqe->cancel_flags = flags;
	sqe->user_data = 1000 + i;
}

/* Waits for what it finds, unlike the others, but not longer than its time-out */
static void cancel_now(struct ring *r, unsigned int flags, unsigned int i)
{
	struct io_uring_sync_cancel_reg reg = { .addr = flags ? 0 : i,
		.fd = -1, .flags = flags, .timeout.tv_sec = 0,
		.timeout.tv_nsec = 20000000 };
	int ret = io_uring_register_sync_cancel(&r->u, &reg);

	if (ret < 0 && ret != -ENOENT && ret != -EALREADY && ret != -ETIME)
		fail("a synchronous cancel: got %s", err_name(ret));
}

static void want_one_end_each(struct ring *r, unsigned int cancels)
{
	unsigned int seen[DEPTH] = { 0 }, i, answers = 0;
	struct answer a;

	for (i = 0; i < DEPTH + cancels; i++) {
		a = ring_take(r);
		if (a.user_data >= 1000) {
			answers++;
			continue;
		}
		seen[a.user_data]++;
		if (a.res && a.res != -ECANCELED)
			fail("command %u: got %s, wanted 0 or -ECANCELED",
			     (unsigned int)a.user_data, err_name(a.res));
	}
	want_eq(answers, cancels, "answers to cancel requests");
	for (i = 0; i < DEPTH; i++)
		want_eq(seen[i], 1, "CQEs of command %u", i);
	if (ring_take_within(r, &a, 50))
		fail("a CQE too many");
}

static void cancel_some(const struct cancel_way *c)
{
	char *buf = map_pages(DEPTH * 4096);
	int fd = open_chr(O_RDONLY);
	struct ring r;
	unsigned int i;

	need_poll(c->way->setup);
	fill_ring(&r, c->way, buf, fd);
	for (i = 0; i < DEPTH; i += DEPTH / CANCELS) {
		if (c->sync)
			cancel_now(&r, c->flags, i);
		else
			put_cancel(&r, c->flags, fd, i);
	}
	ring_submit(&r);
	want_one_end_each(&r, c->sync ? 0 : CANCELS);
}

static void test_cancel(const void *arg)
{
	const struct cancel_way by_user_data = { .way = arg };

	cancel_some(&by_user_data);
}

static void test_cancel_way(const void *arg)
{
	cancel_some(arg);
}

/* ---- what the block layer does meanwhile ---- */

/* A scheduler switch freezes the queue: it must not need the sleeper's help */
static void test_scheduler_unreaped(const void *arg)
{
	char *buf = map_pages(DEPTH * 4096), old[16];
	uint64_t begin, ms, limit;
	struct ring r;

	need_poll(IORING_SETUP_IOPOLL);
	snprintf(old, sizeof(old), "%llu", (unsigned long long)
		 sys_number("/sys/block/%s/queue/io_timeout", disk.name));
	want_res(sys_write("2000", "/sys/block/%s/queue/io_timeout", disk.name),
		 0, "io_timeout");
	fill_ring(&r, &ways[3], buf, open_chr(O_RDONLY));
	begin = now_ms();
	want_res(sys_write("mq-deadline", "/sys/block/%s/queue/scheduler",
			   disk.name), 0, "mq-deadline");
	want_res(sys_write("none", "/sys/block/%s/queue/scheduler", disk.name),
		 0, "none");
	ms = now_ms() - begin;
	sys_write(old, "/sys/block/%s/queue/io_timeout", disk.name);
	limit = 2 * 2000 + 6000;
	if (ms > limit)
		fail("switching with unreaped polled commands: got %llu ms, wanted at most %llu",
		     (unsigned long long)ms, (unsigned long long)limit);
	ring_want_done(&r, DEPTH, "an unreaped command");
}

/* The scheduler switched back and forth under load, irq and polled */
static volatile bool stop;

static void *load_thread(void *arg)
{
	unsigned int setup = *(const unsigned int *)arg;
	char *buf = map_pages(16 * 4096);
	int fd = open_chr(O_RDONLY);
	struct ring r;

	ring_open(&r, 16, WIDE | setup);
	while (!stop) {
		ring_put_reads(&r, fd, PLACE, 8, buf, 16);
		ring_submit(&r);
		ring_want_done(&r, 16, "a read under scheduler switches");
	}
	return NULL;
}

static void test_scheduler_load(const void *arg)
{
	static const unsigned int setups[] = { 0, IORING_SETUP_IOPOLL };
	static const char * const sched[] = { "mq-deadline", "none", "kyber",
		"bfq" };
	unsigned int n = has_poll() ? 2 : 1, i, rounds = t_rounds(8, 400);
	pthread_t t[2];

	for (i = 0; i < n; i++)
		pthread_create(&t[i], NULL, load_thread, (void *)&setups[i]);
	for (i = 0; i < rounds; i++)
		sys_write(sched[i % ARRAY_SIZE(sched)],
			  "/sys/block/%s/queue/scheduler", disk.name);
	stop = true;
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	sys_write("none", "/sys/block/%s/queue/scheduler", disk.name);
}

/*
 * More threads than tags read into memory whose pages must first come from the
 * same disk, while the queue is frozen again and again. Whoever faults while
 * holding a tag waits for a tag, for ever.
 */
struct cold {
	char		*map;
	size_t		pages;
	unsigned int	id, step;
};

static void *cold_thread(void *arg)
{
	struct cold *c = arg;
	int fd = open_chr(O_RDONLY);
	struct ring r;
	struct vcmd v;
	size_t i;

	ring_open(&r, 4, WIDE);
	for (i = c->id; i < c->pages && !stop; i += c->step) {
		v = vcmd(fd, IO, VIRTIO_BLK_T_IN, PLACE / 512, c->map + i * 4096,
			 4096);
		want_res(ring_do(&r, &v).res, 0, "read into page %zu", i);
	}
	ring_close(&r);
	return NULL;
}

#define COLD_THREADS	17
#define COLD_PAGES	1024

struct cold_way {
	int	flags;		/* of the mapping */
	bool	in_fs;		/* a file in a file system on the disk, or the disk */
};

static void test_cold_file(const void *arg)
{
	const struct cold_way *way = arg;
	pthread_t t[COLD_THREADS];
	struct cold c[COLD_THREADS];
	unsigned int i, round;
	int file;

	if (!t_disk(1))
		skip("no disk with a small queue given");
	disk_open(t_disk(1));
	if (way->in_fs && !getenv("COLD_FILE"))
		skip("COLD_FILE names no file on that disk");
	file = way->in_fs ? open(getenv("COLD_FILE"), O_RDWR) : open_blk(O_RDWR);
	if (file < 0)
		fail("%s: %s", getenv("COLD_FILE"), strerror(errno));
	for (round = 0; round < t_rounds(1, 50); round++) {
		char *map = mmap(NULL, COLD_PAGES * 4096, PROT_READ | PROT_WRITE,
				 way->flags, file,
				 way->in_fs ? 0 : 128 * MiB);

		if (map == MAP_FAILED)
			fail("mmap: %s", strerror(errno));
		madvise(map, COLD_PAGES * 4096, MADV_RANDOM);
		sys_write("3", "/proc/sys/vm/drop_caches");
		stop = false;
		for (i = 0; i < COLD_THREADS; i++) {
			c[i] = (struct cold){ .map = map, .pages = COLD_PAGES,
				.id = i, .step = COLD_THREADS };
			pthread_create(&t[i], NULL, cold_thread, &c[i]);
		}
		for (i = 0; i < 6; i++)
			sys_write(i % 2 ? "none" : "mq-deadline",
				  "/sys/block/%s/queue/scheduler", disk.name);
		for (i = 0; i < COLD_THREADS; i++)
			pthread_join(t[i], NULL);
		munmap(map, COLD_PAGES * 4096);
	}
	sys_write("none", "/sys/block/%s/queue/scheduler", disk.name);
}

/* A polled command nobody reaps doesn't keep block I/O from being done */
static void test_unreaped_and_block(const void *arg)
{
	char *buf = map_pages(DEPTH * 4096), *other = map_pages(4096);
	struct ring r;
	unsigned int i;

	need_poll(IORING_SETUP_IOPOLL);
	fill_ring(&r, &ways[3], buf, open_chr(O_RDONLY));
	for (i = 0; i < 4; i++)
		blk_read(PLACE, other, 4096);
	chr_read(PLACE, other, 4096);
}

static void run_ways(const char *name, void (*fn)(const void *))
{
	char full[80];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		snprintf(full, sizeof(full), "%s-%s", name, ways[i].name);
		t_run(full, fn, &ways[i]);
	}
}

int main(int argc, char **argv)
{
	static const struct cold_way private = { MAP_PRIVATE, true },
		shared = { MAP_SHARED, true }, node = { MAP_SHARED, false };
	char name[64];
	unsigned int i;

	if (argc == 2 && !strcmp(argv[1], "--after-exec"))
		return after_exec();
	t_start(argc, argv, "Ends with commands in flight.\n"
		"Disks: throttled, with a small queue");
	run_ways("P19-kill", test_kill);
	run_ways("P19-exec", test_exec);
	run_ways("P19-fork-and-exit", test_fork_and_exit);
	run_ways("close", test_close);
	run_ways("cancel", test_cancel);
	for (i = 0; i < ARRAY_SIZE(cancel_ways); i++) {
		snprintf(name, sizeof(name), "cancel-%s", cancel_ways[i].name);
		t_run(name, test_cancel_way, &cancel_ways[i]);
	}
	t_run("unreaped-polled-and-block", test_unreaped_and_block, NULL);
	t_run("unreaped-polled-scheduler", test_scheduler_unreaped, NULL);
	t_run("scheduler-under-load", test_scheduler_load, NULL);
	t_run("cold-file-private", test_cold_file, &private);
	t_run("cold-file-shared", test_cold_file, &shared);
	t_run("cold-block-node", test_cold_file, &node);
	return t_end();
}
