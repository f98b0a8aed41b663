// SPDX-License-Identifier: GPL-2.0-only
/* Tests of what io_uring-vblk computes: the histogram and the pattern */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int failures;

static void check(const char *name, bool ok, double got, double wanted)
{
	if (ok) {
		printf("PASS tool-selftest-%s (0.0 s)\n", name);
		return;
	}
	failures++;
	printf("FAIL tool-selftest-%s: got %g, wanted %g\n", name, got, wanted);
}

/* A percentile of 1..n is known; buckets may be off by less than 1 % */
static void percentiles_of(uint64_t scale)
{
	static const double percents[] = { 1, 50, 99, 99.9, 99.99 };
	static struct hist h;
	double got, wanted, worst = 0;
	uint64_t i;
	unsigned int p;

	hist_reset(&h);
	for (i = 1; i <= 100000; i++)
		hist_add(&h, i * scale, 1);
	for (p = 0; p < sizeof(percents) / sizeof(percents[0]); p++) {
		got = hist_percentile_ns(&h, percents[p]);
		wanted = ticks_to_ns(percents[p] * 1000 * scale);
		if (fabs(got / wanted - 1) > worst)
			worst = fabs(got / wanted - 1);
	}
	check(scale == 1 ? "hist-percentiles" : "hist-percentiles-large", worst < 0.01, worst, 0);
}

static void hist_edges(void)
{
	static struct hist h, sum;

	hist_reset(&h);
	check("hist-empty", hist_percentile_ns(&h, 50) == 0, hist_percentile_ns(&h, 50), 0);
	hist_add(&h, 0, 1);
	hist_add(&h, UINT64_MAX, 1);	/* two CPUs' counters: taken as 0 */
	check("hist-negative-is-zero", h.max == 0, h.max, 0);
	hist_add(&h, INT64_MAX, 1);
	check("hist-largest", h.max == INT64_MAX, h.max, INT64_MAX);
	hist_reset(&sum);
	hist_merge(&sum, &h);
	hist_merge(&sum, &h);
	check("hist-merge", sum.n == 6 && sum.min == 0 && sum.max == INT64_MAX, sum.n, 6);
}

static void pattern_faults(void)
{
	static unsigned char buf[8 * SECTOR], other[8 * SECTOR];
	struct pattern_result res;

	pattern_fill(buf, sizeof(buf), 100, 7, 3);
	check("pattern-right", pattern_check(buf, sizeof(buf), 100, 7, 3, &res), res.fault, 0);
	pattern_check(buf, sizeof(buf), 101, 7, 3, &res);
	check("pattern-misplaced", res.fault == PATTERN_MISPLACED && res.found_sector == 100,
	      res.fault, PATTERN_MISPLACED);
	pattern_check(buf, sizeof(buf), 100, 7, 4, &res);
	check("pattern-stale", res.fault == PATTERN_STALE, res.fault, PATTERN_STALE);
	pattern_check(buf, sizeof(buf), 100, 8, 3, &res);
	check("pattern-alien", res.fault == PATTERN_ALIEN, res.fault, PATTERN_ALIEN);

	/* Every single byte matters, in whatever sector */
	unsigned int at, missed = 0;

	for (at = 0; at < sizeof(buf); at++) {
		memcpy(other, buf, sizeof(buf));
		other[at] ^= 1;
		if (pattern_check(other, sizeof(other), 100, 7, 3, &res) ||
		    res.sector != 100 + at / SECTOR)
			missed++;
	}
	check("pattern-each-byte", missed == 0, missed, 0);
	/* Half of an older write of the same sector: torn */
	pattern_fill(other, sizeof(other), 100, 7, 2);
	memcpy(other, buf, SECTOR / 2);
	pattern_check(other, sizeof(other), 100, 7, 3, &res);
	check("pattern-torn", res.fault == PATTERN_DAMAGED, res.fault, PATTERN_DAMAGED);
}

int main(void)
{
	ticks_init(0);
	percentiles_of(1);
	percentiles_of(1000003);
	hist_edges();
	pattern_faults();
	return failures ? 1 : 0;
}
