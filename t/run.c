// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: start the workers, print a line a second, stop them */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define GIVE_UP_SECONDS	30	/* after the stop, with I/O still unanswered */
#define ECHO_SECONDS	1	/* timeout(1) sends its signal twice at once */

volatile bool run_interrupted;

static bool interrupted_again;
static uint64_t interrupted_at;
static sigset_t signals;

/* Blocked everywhere: the main thread fetches them when it has the time */
void run_signals(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static double seconds_since(uint64_t ns)
{
	return (clock_ns() - ns) / 1e9;
}

static void note_interruption(void)
{
	interrupted_again |= run_interrupted && seconds_since(interrupted_at) > ECHO_SECONDS;
	if (!run_interrupted)
		interrupted_at = clock_ns();
	run_interrupted = true;
}

/* Until a signal or for `seconds`; notes an interruption */
static int wait_signal(double seconds)
{
	struct timespec ts = { .tv_sec = seconds > 0 ? seconds : 0 };
	int sig;

	if (seconds > 0)
		ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	sig = sigtimedwait(&signals, NULL, &ts);
	if (sig == SIGINT || sig == SIGTERM)
		note_interruption();
	return sig;
}

static void sum_counters(const struct run *r, struct counters *sum)
{
	unsigned int i;
	int op;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < r->o->threads; i++) {
		const struct counters *c = &r->workers[i].c;

		sum->submitted += __atomic_load_n(&c->submitted, __ATOMIC_RELAXED);
		sum->done += __atomic_load_n(&c->done, __ATOMIC_RELAXED);
		sum->calls += __atomic_load_n(&c->calls, __ATOMIC_RELAXED);
		sum->errors += __atomic_load_n(&c->errors, __ATOMIC_RELAXED);
		sum->mismatches += __atomic_load_n(&c->mismatches, __ATOMIC_RELAXED);
		for (op = 0; op < OP_NR; op++)
			sum->ops[op] += __atomic_load_n(&c->ops[op], __ATOMIC_RELAXED);
	}
}

static void subtract(struct counters *d, const struct counters *a, const struct counters *b)
{
	*d = *a;
	d->submitted -= b->submitted;
	d->done -= b->done;
	d->calls -= b->calls;
}

/*
 * As in t/io_uring: threads are dealt out to the disks in turn; with more disks
 * than threads a thread has several.
 */
static int deal_targets(struct run *r)
{
	unsigned int n = r->o->threads, t = r->ntargets, i, shares;

	for (i = 0; i < (n > t ? n : t) && t; i++) {
		shares = n > t ? (n - i % t + t - 1) / t : 1;
		if (load_add_target(&r->workers[i % n].load, &r->targets[i % t],
				    n > t ? i / t : 0, shares))
			return -1;
	}
	return 0;
}

static int numa_cpu(const struct run *r, unsigned int thread);

static int make_workers(struct run *r)
{
	struct options *o = r->o;
	unsigned int i;

	r->workers = calloc(o->threads, sizeof(*r->workers));
	if (!r->workers) {
		complain("no memory for %u threads", o->threads);
		return -1;
	}
	for (i = 0; i < o->threads; i++) {
		struct worker *w = &r->workers[i];

		w->o = o;
		w->run = r;
		w->index = i;
		w->cpu = o->npins ? o->pin[i % o->npins] : o->numa ? numa_cpu(r, i) : -1;
		hist_reset(&w->hist);
		load_init(&w->load, o, i);
	}
	return deal_targets(r);
}

/* The thread'th CPU of the NUMA node its disk is on; -1: no node known */
static int numa_cpu(const struct run *r, unsigned int thread)
{
	int node = r->ntargets ? r->targets[thread % r->ntargets].numa_node : -1;
	int cpu, seen = 0, first = -1;
	char path[96];

	if (node < 0)
		return -1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpu%d", node, cpu);
		if (access(path, F_OK))
			continue;
		if (first < 0)
			first = cpu;
		if (seen++ == (int)(thread / r->ntargets))
			return cpu;
	}
	return first;
}

static void stop_all(struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->o->threads; i++)
		r->workers[i].stop = true;
}

static bool all_ended(const struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->o->threads; i++)
		if (!r->workers[i].ended)
			return false;
	return true;
}

static int start_workers(struct run *r)
{
	unsigned int i, ready = 0;
	int ret;

	for (i = 0; i < r->o->threads; i++) {
		ret = pthread_create(&r->workers[i].thread, NULL, worker_main, &r->workers[i]);
		if (ret) {
			complain("thread %u: %s", i, strerror(ret));
			r->cancel = true;
			r->o->threads = i;	/* the ones to join */
			return -1;
		}
	}
	while (ready < r->o->threads && !run_interrupted) {
		wait_signal(0.1);
		for (ready = 0; ready < r->o->threads && r->workers[ready].ready; ready++)
			;
	}
	for (i = 0; i < r->o->threads; i++)
		r->cancel |= r->workers[i].failed || run_interrupted;
	return r->cancel ? -1 : 0;
}

static void set_measuring(struct run *r, bool on)
{
	unsigned int i;

	for (i = 0; i < r->o->threads; i++)
		r->workers[i].measuring = on;
}

/* One line; returns the counters as they were then */
static void tell_second(struct run *r, struct counters *last, double seconds)
{
	struct counters now, d;
	double iops;

	sum_counters(r, &now);
	subtract(&d, &now, last);
	iops = d.done / seconds;
	if (iops > r->max_iops)
		r->max_iops = iops;
	if (!r->quiet) {
		report_second(r->o->json ? stderr : stdout, r->o, &d, seconds);
		fflush(stdout);
	}
	*last = now;
}

/* From go to stop; what is measured is what lies between ramp and stop */
static void watch(struct run *r)
{
	struct counters at_start, last, now;
	double end = r->o->runtime ? r->ramp + r->o->runtime : 1e18, left, t;
	uint64_t go = clock_ns(), start;
	double told;

	if (!r->ramp)
		set_measuring(r, true);
	r->go = true;
	while (r->ramp && seconds_since(go) < r->ramp && !run_interrupted && !all_ended(r))
		wait_signal(r->ramp - seconds_since(go));
	sum_counters(r, &at_start);
	if (!r->ramp)
		memset(&at_start, 0, sizeof(at_start));
	start = r->ramp ? clock_ns() : go;
	set_measuring(r, true);
	last = at_start;
	told = 0;
	while (!run_interrupted && !all_ended(r) && !r->reason) {
		t = seconds_since(start);
		if (seconds_since(go) >= end) {
			r->reason = "timeout";
			break;
		}
		if (t - told >= 1) {
			tell_second(r, &last, t - told);
			told = t;
		}
		left = end - seconds_since(go);
		wait_signal(left < told + 1 - t ? left : told + 1 - t);
	}
	set_measuring(r, false);
	sum_counters(r, &now);
	r->seconds = seconds_since(start);
	/* The last second is a whole one by intent: don't lose its line */
	if (r->seconds - told > 0.9 || !r->max_iops)
		tell_second(r, &last, r->seconds - told);
	subtract(&r->counted, &now, &at_start);
	if (!r->reason)
		r->reason = run_interrupted ? "signal" : "count";
	stop_all(r);
}

static void __attribute__((noreturn)) give_up(const char *why)
{
	complain("%s: leaving I/O unanswered; the device does not reply", why);
	fflush(stdout);
	_exit(1);
}

/* Workers drain before they end, which takes as long as the device does */
static void join_workers(struct run *r)
{
	uint64_t since = clock_ns();
	bool told = false;
	unsigned int i;
	struct timespec now;

	for (i = 0; i < r->o->threads; i++) {
		for (;;) {
			clock_gettime(CLOCK_REALTIME, &now);
			if (!pthread_timedjoin_np(r->workers[i].thread, NULL, &now))
				break;
			wait_signal(0.02);
			if (interrupted_again)
				give_up("interrupted twice");
			if (seconds_since(since) > 3 && !told)
				complain("waiting for I/O in flight (interrupt again to give up)");
			told |= seconds_since(since) > 3;
			if (seconds_since(since) > GIVE_UP_SECONDS)
				give_up("30 s after the stop");
		}
	}
}

static void gather(struct run *r)
{
	unsigned int i;

	hist_reset(&r->hist);
	sum_counters(r, &r->total);
	for (i = 0; i < r->o->threads; i++) {
		struct worker *w = &r->workers[i];

		hist_merge(&r->hist, &w->hist);
		r->failed |= w->failed;
		if (ticks_to_ns(w->late_max) > r->late_max_ns)
			r->late_max_ns = ticks_to_ns(w->late_max);
	}
	r->failed |= r->total.errors || r->total.mismatches;
}

/* What ended the run is no reason to leave its data unread; another signal is */
bool run_verify_ends(const struct run *r)
{
	wait_signal(0);
	return interrupted_again || (run_interrupted && !r->stopped_by_signal);
}

static void verify_all(struct run *r)
{
	unsigned int i;

	if (!r->quiet)
		fprintf(r->o->json ? stderr : stdout, "Reading everything back ...\n");
	fflush(stdout);
	r->stopped_by_signal = run_interrupted;
	for (i = 0; i < r->o->threads; i++)
		if (load_final(&r->workers[i].load, r))
			r->failed = true;
	if (!r->failed && r->verified < r->to_verify) {
		complain("interrupted: not all was read back");
		r->failed = true;
	}
}

/* 0: ran, see r->failed; -1: could not start (said so already) */
int run_once(struct run *r)
{
	unsigned int threads = r->o->threads, i;
	int ret;

	r->main = pthread_self();
	pthread_mutex_init(&r->lock, NULL);
	ret = make_workers(r);
	if (!ret) {
		ret = start_workers(r);
		if (!ret)
			watch(r);
		join_workers(r);
		gather(r);
		if (!ret && r->o->verify)
			verify_all(r);
		r->o->threads = threads;
	}
	for (i = 0; r->workers && i < threads; i++)
		worker_clean(&r->workers[i]);
	free(r->workers);
	r->workers = NULL;
	return ret;
}
