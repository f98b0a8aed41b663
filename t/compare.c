// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring-vblk: block and passthrough by turns on the same disk
 *
 * One run after the other would measure the machine's mood as much as the
 * driver. So short runs alternate, which side goes first alternates too, and
 * the ratio is taken within each pair; its range says what it is worth.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define RAMP	0.2	/* seconds that aren't counted */

enum side { BLOCK, PASSTHROUGH, SIDES };

struct sample {
	double iops, p50, p99, syscalls;
};

struct row {
	char		name[64];
	unsigned int	pairs;
	struct sample	*samples[SIDES];
	const char	*skipped;
};

struct comparison {
	struct options	o[SIDES];
	struct target	t[SIDES];
	char		path[SIDES][80];
	bool		failed;
	bool		stop;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread {
	double low, median, high;
};

static struct spread spread_of(double *v, unsigned int n)
{
	struct spread s = { 0, 0, 0 };

	if (!n)
		return s;
	qsort(v, n, sizeof(*v), by_value);
	s.low = v[0];
	s.high = v[n - 1];
	s.median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	return s;
}

static struct spread field_spread(const struct row *row, enum side side, size_t field)
{
	double v[row->pairs + 1];
	unsigned int i;

	for (i = 0; i < row->pairs; i++)
		memcpy(&v[i], (const char *)&row->samples[side][i] + field, sizeof(v[i]));
	return spread_of(v, row->pairs);
}

#define SPREAD(row, side, field) \
	field_spread(row, side, __builtin_offsetof(struct sample, field))

static struct spread ratio_spread(const struct row *row)
{
	double v[row->pairs + 1];
	unsigned int i;

	for (i = 0; i < row->pairs; i++)
		v[i] = row->samples[BLOCK][i].iops ?
		       row->samples[PASSTHROUGH][i].iops / row->samples[BLOCK][i].iops : 0;
	return spread_of(v, row->pairs);
}

/* One short run of one side */
static int measure(struct comparison *c, enum side side, struct sample *s)
{
	static struct run run;
	struct run *r = &run;

	memset(r, 0, sizeof(*r));
	r->o = &c->o[side];
	r->targets = &c->t[side];
	r->ntargets = 1;
	r->ramp = RAMP;
	r->quiet = true;
	if (run_once(r) || r->failed) {
		c->failed = c->stop = true;
		return -1;
	}
	if (run_interrupted) {
		c->stop = true;
		return -1;
	}
	s->iops = r->seconds > 0 ? r->counted.done / r->seconds : 0;
	s->p50 = hist_percentile_ns(&r->hist, 50) / 1e3;
	s->p99 = hist_percentile_ns(&r->hist, 99) / 1e3;
	s->syscalls = syscalls_per_io(&r->counted);
	return 0;
}

/* The finished rows are the progress where nobody watches a terminal */
static void progress(const struct row *row, unsigned int pairs)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%*s\r", 60, "");
	if (row->pairs < pairs)
		fprintf(stderr, "%-38s pair %u of %u", row->name, row->pairs + 1, pairs);
}

static void measure_row(struct comparison *c, struct row *row)
{
	unsigned int i;
	int turn;

	for (i = 0; i < c->o[BLOCK].repeats && !c->stop; i++) {
		progress(row, c->o[BLOCK].repeats);
		for (turn = 0; turn < SIDES; turn++) {
			enum side side = (turn + i) % SIDES;

			if (measure(c, side, &row->samples[side][i]))
				return;
		}
		row->pairs++;
	}
	progress(row, row->pairs);
}

static void print_table_head(FILE *f, const struct comparison *c)
{
	const struct options *o = &c->o[BLOCK];

	fprintf(f, "%s (block) and %s (passthrough), %u bytes %s, %u threads, %u pairs of %g s by turns; medians\n\n",
		c->path[BLOCK], c->path[PASSTHROUGH], o->bs, o->random ? "random" : "sequential",
		o->threads, o->repeats, o->runtime);
	fprintf(f, "%-34s %17s  %17s  %17s  %13s  %s\n", "", "IOPS", "p50 usec", "p99 usec",
		"syscalls/IO", "IOPS ratio in a pair");
	fprintf(f, "%-34s %8s %8s  %8s %8s  %8s %8s  %6s %6s  %6s  %-13s n\n", "", "block",
		"passthr.", "block", "passthr.", "block", "passthr.", "block", "pass.", "median",
		"range");
	fflush(f);
}

static void print_row(FILE *f, const struct row *row)
{
	struct spread ratio = ratio_spread(row);

	if (row->skipped) {
		fprintf(f, "%-34s not run: %s\n", row->name, row->skipped);
		fflush(f);
		return;
	}
	fprintf(f, "%-34s %8.0f %8.0f  %8.1f %8.1f  %8.1f %8.1f  %6.3f %6.3f  %6.2f  %5.2f - %5.2f %u\n",
		row->name, SPREAD(row, BLOCK, iops).median, SPREAD(row, PASSTHROUGH, iops).median,
		SPREAD(row, BLOCK, p50).median, SPREAD(row, PASSTHROUGH, p50).median,
		SPREAD(row, BLOCK, p99).median, SPREAD(row, PASSTHROUGH, p99).median,
		SPREAD(row, BLOCK, syscalls).median, SPREAD(row, PASSTHROUGH, syscalls).median,
		ratio.median, ratio.low, ratio.high, row->pairs);
	fflush(f);
}

static void json_spread(FILE *f, const char *name, struct spread s)
{
	fprintf(f, "\"%s\": {\"median\": %.4f, \"low\": %.4f, \"high\": %.4f}", name, s.median,
		s.low, s.high);
}

static void json_row(FILE *f, const struct row *row, bool first)
{
	static const char *const names[SIDES] = { "block", "passthrough" };
	int side;

	fprintf(f, "%s\n    {\"name\": \"%s\", ", first ? "" : ",", row->name);
	if (row->skipped) {
		fprintf(f, "\"skipped\": \"%s\"}", row->skipped);
		return;
	}
	fprintf(f, "\"n\": %u, ", row->pairs);
	for (side = 0; side < SIDES; side++) {
		fprintf(f, "\"%s\": {", names[side]);
		json_spread(f, "iops", SPREAD(row, side, iops));
		fprintf(f, ", ");
		json_spread(f, "p50_us", SPREAD(row, side, p50));
		fprintf(f, ", ");
		json_spread(f, "p99_us", SPREAD(row, side, p99));
		fprintf(f, ", ");
		json_spread(f, "syscalls_per_io", SPREAD(row, side, syscalls));
		fprintf(f, "}, ");
	}
	json_spread(f, "ratio", ratio_spread(row));
	fprintf(f, "}");
}

static void set_both(struct comparison *c, unsigned int depth, unsigned int batch, bool fixed,
		     bool polled)
{
	int side;

	for (side = 0; side < SIDES; side++) {
		c->o[side].depth = depth;
		c->o[side].batch_submit = c->o[side].batch_complete = batch;
		c->o[side].fixedbufs = fixed;
		c->o[side].polled = polled;
	}
}

/* Name and limits of the row the options now describe */
static void describe(const struct comparison *c, struct row *row)
{
	const struct options *o = &c->o[BLOCK];

	snprintf(row->name, sizeof(row->name), "QD%u, batches of %u, %s%s", o->depth,
		 o->batch_submit, o->fixedbufs ? "registered" : "plain", o->polled ? ", polled" : "");
	if (o->polled && !c->t[PASSTHROUGH].poll_queues)
		row->skipped = "no poll queues; load virtio_blk with poll_queues=1";
	else if (o->polled && (o->mix[OP_TRIM] || o->mix[OP_ZEROES] || o->mix[OP_FLUSH]))
		row->skipped = "polled rings of the block side only read and write";
}

static void do_row(struct comparison *c, bool json, bool *first)
{
	struct row row = { .pairs = 0 };
	int side;

	describe(c, &row);
	for (side = 0; side < SIDES; side++)
		row.samples[side] = calloc(c->o[side].repeats, sizeof(struct sample));
	if (!row.skipped)
		measure_row(c, &row);
	if (row.pairs || row.skipped) {
		if (json)
			json_row(stdout, &row, *first);
		print_row(json ? stderr : stdout, &row);
		*first = false;
	}
	for (side = 0; side < SIDES; side++)
		free(row.samples[side]);
}

static void do_matrix(struct comparison *c, bool json, bool *first)
{
	static const unsigned int loads[][2] = { { 1, 1 }, { 8, 4 }, { 32, 8 } };
	unsigned int kind, load;

	for (kind = 0; kind < 3; kind++)
		for (load = 0; load < 3 && !c->stop; load++) {
			set_both(c, loads[load][0], loads[load][1], kind > 0, kind == 2);
			do_row(c, json, first);
		}
}

static int open_sides(struct comparison *c, const struct options *o)
{
	struct options check;
	int side;

	if (target_partner(o->paths[0], c->path[BLOCK], c->path[PASSTHROUGH], sizeof(c->path[0])))
		return -1;
	for (side = 0; side < SIDES; side++) {
		c->o[side] = *o;
		c->o[side].passthrough = side == PASSTHROUGH;
		c->o[side].sqe64 = o->sqe64 && side == PASSTHROUGH;
		c->o[side].latency = true;
		c->o[side].runtime = o->runtime ? o->runtime : 1;
		if (target_open(&c->t[side], c->path[side], &c->o[side]))
			return -1;
		/* A matrix says row by row what this disk can't do */
		check = c->o[side];
		check.polled = check.polled && !o->matrix;
		if (target_check(&c->t[side], &check))
			return -1;
	}
	return 0;
}

int compare_run(struct options *o)
{
	static struct comparison c;
	bool first = true;
	int side, ret;

	for (side = 0; side < SIDES; side++)
		c.t[side].fd = c.t[side].guard = -1;
	ret = open_sides(&c, o);
	if (!ret) {
		if (o->json)
			printf("{\n  \"tool\": \"" TOOL "\", \"block\": \"%s\", \"passthrough\": \"%s\",\n"
			       "  \"block_size\": %u, \"seconds\": %g,\n  \"rows\": [", c.path[BLOCK],
			       c.path[PASSTHROUGH], o->bs, c.o[BLOCK].runtime);
		print_table_head(o->json ? stderr : stdout, &c);
		if (o->matrix)
			do_matrix(&c, o->json, &first);
		else
			do_row(&c, o->json, &first);
		if (o->json)
			printf("\n  ],\n  \"ok\": %s\n}\n", c.failed ? "false" : "true");
		if (run_interrupted)
			complain("interrupted: the table holds what was finished");
	}
	for (side = 0; side < SIDES; side++)
		target_close(&c.t[side]);
	return ret || c.failed;
}
