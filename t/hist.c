// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time in ticks, and the latency histogram
 *
 * The CPU's counter is read where there is one: a clock_gettime() that isn't
 * served by the vDSO would be a system call per batch, in a tool that counts
 * system calls.
 */
#include <string.h>
#include <time.h>

#include "tool.h"

static double tick_hz = 1e9;

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t ticks_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return clock_ns();
#endif
}

double ticks_per_second(void)
{
	return tick_hz;
}

/* hz 0: find out, by 30 ms of both clocks. What was said first stays */
void ticks_init(uint64_t hz)
{
#ifdef __x86_64__
	static bool known;
	uint64_t ns, ticks;

	if (known)
		return;
	known = true;
	if (hz) {
		tick_hz = hz;
		return;
	}
	ns = clock_ns();
	ticks = ticks_now();
	while (clock_ns() - ns < 30000000)
		;
	ticks = ticks_now() - ticks;
	ns = clock_ns() - ns;
	tick_hz = ticks * 1e9 / ns;
#else
	(void)hz;
#endif
}

double ticks_to_ns(double ticks)
{
	return ticks * 1e9 / tick_hz;
}

/* Below 2^HIST_BITS a bucket per value, above 2^HIST_BITS per power of two */
static unsigned int bucket_of(uint64_t v)
{
	unsigned int shift;

	if (v < 1ULL << HIST_BITS)
		return v;
	shift = 63 - __builtin_clzll(v) - HIST_BITS;
	return ((shift + 1) << HIST_BITS) + ((v >> shift) & ((1U << HIST_BITS) - 1));
}

static double bucket_middle(unsigned int b)
{
	unsigned int shift;
	double low;

	if (b < 1U << HIST_BITS)
		return b;
	shift = (b >> HIST_BITS) - 1;
	low = (double)((1ULL << HIST_BITS) + (b & ((1U << HIST_BITS) - 1)));
	return (low + 0.5) * (double)(1ULL << shift);
}

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void hist_add(struct hist *h, uint64_t ticks, uint64_t n)
{
	/* Counters of two CPUs may differ a little; no latency is negative */
	if ((int64_t)ticks < 0)
		ticks = 0;
	h->count[bucket_of(ticks)] += n;
	h->n += n;
	h->sum += (double)ticks * n;
	if (ticks < h->min)
		h->min = ticks;
	if (ticks > h->max)
		h->max = ticks;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	unsigned int b;

	for (b = 0; b < HIST_BUCKETS; b++)
		into->count[b] += from->count[b];
	into->n += from->n;
	into->sum += from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
}

/* The value below which `percent` of the samples lie; 0 with no samples */
double hist_percentile_ns(const struct hist *h, double percent)
{
	double want = h->n * percent / 100.0, seen = 0, mid;
	unsigned int b;

	if (!h->n)
		return 0;
	for (b = 0; b < HIST_BUCKETS; b++) {
		seen += h->count[b];
		if (h->count[b] && seen >= want)
			break;
	}
	/* A bucket's middle may lie outside what was really seen */
	mid = bucket_middle(b < HIST_BUCKETS ? b : HIST_BUCKETS - 1);
	if (mid < h->min)
		mid = h->min;
	if (mid > h->max)
		mid = h->max;
	return ticks_to_ns(mid);
}
