// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: the thread that keeps a ring busy */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include "tool.h"

#define ERROR_LINES	10	/* with --continue; else the first says it all */

/* One line about something wrong, and the run is a failed one */
void worker_trouble(struct worker *w, const char *fmt, ...)
{
	struct run *r = w->run;
	char line[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);

	pthread_mutex_lock(&r->lock);
	w->failed = true;
	if (r->reported < (w->o->keep_going ? ERROR_LINES : 1))
		complain("%s", line);
	else if (r->reported == ERROR_LINES)
		complain("more errors are only counted");
	r->reported++;
	if (!w->o->keep_going) {
		r->reason = "error";
		w->stop = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (!w->o->keep_going)
		pthread_kill(r->main, SIGUSR1);
}

static void account(struct worker *w, struct slot *s, bool ok)
{
	w->c.done++;
	w->c.ops[s->op]++;
	w->c.errors += !ok;
}

/* res and status as the CQE has them (status 0 where there is none) */
void worker_complete(struct worker *w, struct slot *s, int res, uint64_t status)
{
	bool data = s->r && (s->op == OP_READ || s->op == OP_WRITE);
	int good = data && !s->r->t->passthrough ? (int)w->o->bs : 0;
	bool ok = res == good;
	struct pattern_result wrong;
	char words[512];

	account(w, s, ok);
	if (!ok) {
		explain_io(w, s, res, res < 0 ? status : 0, words, sizeof(words));
		worker_trouble(w, "%s", words);
	}
	if (!load_done(&w->load, s, ok, &wrong)) {
		w->c.mismatches++;
		worker_trouble(w, "%s: wrong data: %s", s->r->t->path,
			       pattern_words(&wrong, words, sizeof(words)));
	}
	w->idle[w->nidle++] = s;
	w->inflight--;
}

static void reap(struct worker *w)
{
	bool timed = w->measuring && (w->o->latency || w->o->rate);
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;
	uint64_t now = timed ? ticks_now() : 0;

	io_uring_for_each_cqe(&w->ring, head, cqe) {
		struct slot *s = &w->slots[cqe->user_data];

		if (timed && s->start)
			hist_add(&w->hist, now - s->start, 1);
		worker_complete(w, s, cqe->res, w->cqe32 ? cqe->big_cqe[0] : 0);
		n++;
	}
	io_uring_cq_advance(&w->ring, n);
}

static bool start_one(struct worker *w, uint64_t start)
{
	struct slot *s = w->idle[w->nidle - 1];

	if (!load_next(&w->load, s))
		return false;
	s->start = start;
	ring_prep(w, s);
	w->nidle--;
	w->inflight++;
	w->c.submitted++;
	return true;
}

static bool submit_failed(struct worker *w, int ret)
{
	if (ret)
		worker_trouble(w, "submitting: %s", strerror(-ret));
	return ret;
}

/* What is in flight must come back before the buffers may go */
static void drain(struct worker *w)
{
	while (w->inflight) {
		if (ring_submit(w, 1))
			break;
		reap(w);
	}
}

/* As many in flight as -d says; t/io_uring's rule for when to wait */
static void closed_loop(struct worker *w)
{
	const struct options *o = w->o;
	unsigned int n, wait;
	uint64_t now;

	while (!w->stop) {
		now = o->latency ? ticks_now() : 0;
		for (n = 0; n < o->batch_submit && w->nidle; n++)
			if (!start_one(w, now))
				break;
		if (!w->inflight)
			break;
		wait = 0;
		if (!n || w->inflight + o->batch_submit > o->depth)
			wait = min_u(w->inflight, o->batch_complete);
		if (submit_failed(w, ring_submit(w, wait)))
			break;
		reap(w);
	}
}

static void sleep_ns(double ns)
{
	struct timespec ts = { .tv_sec = ns / 1e9 };

	ts.tv_nsec = ns - ts.tv_sec * 1e9;
	nanosleep(&ts, NULL);
}

/* Start what is due; how many were */
static unsigned int start_due(struct worker *w, double interval)
{
	uint64_t now = ticks_now();
	unsigned int n = 0;

	while (n < w->o->batch_submit && w->nidle && w->due <= now) {
		if (!start_one(w, w->due))
			break;
		if (now - (uint64_t)w->due > w->late_max)
			w->late_max = now - (uint64_t)w->due;
		w->due += interval;
		n++;
	}
	return n;
}

/*
 * I/Os become due at fixed times whatever the disk does; one that has to wait
 * for a free slot is late, and the wait is part of its latency.
 */
static void open_loop(struct worker *w)
{
	double interval = ticks_per_second() * w->o->threads / w->o->rate, rest;
	unsigned int n;
	int ret = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	w->due = ticks_now() + interval * w->index / w->o->threads;
	while (!w->stop && !submit_failed(w, ret)) {
		n = start_due(w, interval);
		if (!w->load.left && !w->inflight)
			break;
		rest = ticks_to_ns(w->due - ticks_now());
		if (!w->nidle || !w->load.left)
			ret = ring_submit(w, 1);
		else if (rest <= 0)
			ret = ring_submit_look(w);
		else if (w->inflight)
			ret = ring_submit_until(w, 1, rest);
		else
			sleep_ns(rest < 1e8 ? rest : 1e8);
		if (n || w->inflight)
			reap(w);
	}
}

/* Buffers: one area, a slot's part at a multiple of the page */
static size_t slot_stride(const struct options *o)
{
	return ((size_t)o->bs + 4095) & ~(size_t)4095;
}

static size_t huge_page_size(void)
{
	unsigned long kb = 2048;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Hugepagesize: %lu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

static void *map_huge_file(struct worker *w)
{
	const char *path = w->o->hugefile;
	struct statfs fs;
	void *p = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || fstatfs(fd, &fs)) {
		complain("-H %s: %s", path, strerror(errno));
	} else if (fs.f_type != HUGETLBFS_MAGIC) {
		complain("-H %s: not on a hugetlbfs (mount -t hugetlbfs none DIR)", path);
	} else {
		w->area_len = (w->area_len + fs.f_bsize - 1) / fs.f_bsize * fs.f_bsize;
		p = mmap(NULL, w->area_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 (off_t)w->area_len * w->index);
		if (p == MAP_FAILED)
			complain("-H %s: %zu bytes: %s; are there free huge pages "
				 "(sysctl vm.nr_hugepages)?", path, w->area_len, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return p;
}

static void *map_area(struct worker *w)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	size_t page;
	void *p;

	w->area_len = slot_stride(w->o) * w->o->depth;
	if (w->o->hugefile)
		return map_huge_file(w);
	if (w->o->huge) {
		page = huge_page_size();
		w->area_len = (w->area_len + page - 1) / page * page;
		flags |= MAP_HUGETLB;
	}
	p = mmap(NULL, w->area_len, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		complain("buffers of %zu bytes: %s%s", w->area_len, strerror(errno), w->o->huge ?
			 "; are there free huge pages (sysctl vm.nr_hugepages)?" : "");
	return p;
}

static void init_slot(struct worker *w, unsigned int i)
{
	struct slot *s = &w->slots[i];
	unsigned int v, part = w->o->bs / w->o->iovecs;

	s->index = i;
	s->buf = w->area + slot_stride(w->o) * i;
	s->iov = w->iovs + (size_t)i * w->o->iovecs;
	for (v = 0; v < w->o->iovecs; v++)
		s->iov[v] = (struct iovec){ s->buf + (size_t)part * v, part };
	/* Also touches each page, so that the first I/Os don't fault */
	pattern_fill(s->buf, w->o->bs, 0, w->o->seed, i);
	w->idle[w->nidle++] = s;
}

static int make_slots(struct worker *w)
{
	unsigned int i, depth = w->o->depth;

	w->slots = calloc(depth, sizeof(*w->slots));
	w->idle = calloc(depth, sizeof(*w->idle));
	w->iovs = calloc((size_t)depth * w->o->iovecs, sizeof(*w->iovs));
	if (!w->slots || !w->idle || !w->iovs) {
		complain("no memory for %u I/Os in flight", depth);
		return -1;
	}
	w->area = map_area(w);
	if (w->area == MAP_FAILED) {
		w->area = NULL;
		return -1;
	}
	for (i = depth; i--; )
		init_slot(w, i);
	return 0;
}

void worker_clean(struct worker *w)
{
	load_free(&w->load);
	if (w->area)
		munmap(w->area, w->area_len);
	free(w->slots);
	free(w->idle);
	free(w->iovs);
}

static int pin(struct worker *w)
{
	cpu_set_t set;

	if (w->cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	complain("--pin: thread %u cannot run on CPU %d: %s", w->index, w->cpu, strerror(errno));
	return -1;
}

static void wait_for_go(struct worker *w)
{
	w->ready = true;
	pthread_kill(w->run->main, SIGUSR1);
	while (!w->run->go && !w->run->cancel)
		sched_yield();
}

void *worker_main(void *arg)
{
	struct worker *w = arg;
	bool uring = w->o->engine == ENGINE_URING;

	w->tid = syscall(SYS_gettid);
	if (pin(w) || make_slots(w) || (uring && ring_up(w)))
		w->failed = true;
	wait_for_go(w);
	if (w->run->go) {
		if (w->o->engine == ENGINE_SYNC)
			sync_loop(w);
		else if (w->o->engine == ENGINE_AIO)
			aio_loop(w);
		else if (w->o->rate)
			open_loop(w);
		else
			closed_loop(w);
	}
	w->ended = true;
	pthread_kill(w->run->main, SIGUSR1);
	if (uring)
		drain(w);
	ring_down(w);
	return NULL;
}
