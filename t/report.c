// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: results, as text and as JSON */
#include <string.h>

#include "tool.h"

#ifndef VERSION
#define VERSION "unknown"
#endif

static const double percents[] = { 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99 };
#define NPERCENTS	(sizeof(percents) / sizeof(percents[0]))

double syscalls_per_io(const struct counters *c)
{
	return c->done ? (double)c->calls / c->done : 0;
}

static void print_iops(FILE *f, const char *name, double iops, const char *end)
{
	if (iops > 1000000)
		fprintf(f, "%s=%.2fM%s", name, iops / 1e6, end);
	else if (iops > 100000)
		fprintf(f, "%s=%.2fK%s", name, iops / 1e3, end);
	else
		fprintf(f, "%s=%.0f%s", name, iops, end);
}

/* The line that scripts around t/io_uring parse */
void report_second(FILE *f, const struct options *o, const struct counters *d, double seconds)
{
	double iops = d->done / seconds, mib = iops * o->bs / 1048576;

	print_iops(f, "IOPS", iops, ", ");
	if (!o->nop && mib > 2000)
		fprintf(f, "BW=%.2fGiB/s, ", mib / 1024);
	else if (!o->nop)
		fprintf(f, "BW=%.0fMiB/s, ", mib);
	if (d->calls)
		fprintf(f, "IOS/call=%llu/%llu\n",
			(unsigned long long)((d->submitted + d->calls / 2) / d->calls),
			(unsigned long long)((d->done + d->calls / 2) / d->calls));
	else
		fprintf(f, "IOS/call=-1/-1\n");
}

static void latency_text(FILE *f, const struct run *r)
{
	const struct hist *h = &r->hist;
	size_t i;

	if (!h->n)
		return;
	fprintf(f, "Latency (usec) of %llu I/Os%s: min=%.1f, avg=%.1f, max=%.1f\n",
		(unsigned long long)h->n, r->o->rate ? ", from when each was due" : "",
		ticks_to_ns(h->min) / 1e3, ticks_to_ns(h->sum / h->n) / 1e3,
		ticks_to_ns(h->max) / 1e3);
	fprintf(f, "    percentiles (usec):\n");
	for (i = 0; i < NPERCENTS; i++)
		fprintf(f, "%s %7.4fth=[%8.1f]%s", i % 3 ? "" : "     |", percents[i],
			hist_percentile_ns(h, percents[i]) / 1e3,
			i % 3 == 2 || i == NPERCENTS - 1 ? "\n" : ",");
}

void report_text(FILE *f, const struct run *r)
{
	const struct options *o = r->o;
	int op;

	fprintf(f, "Exiting on %s\n", r->reason);
	print_iops(f, "Maximum IOPS", r->max_iops, "\n");
	fprintf(f, "%llu I/Os in %.2f s: %.0f IOPS, %.3f syscalls per I/O, %llu errors\n",
		(unsigned long long)r->counted.done, r->seconds,
		r->seconds > 0 ? r->counted.done / r->seconds : 0,
		syscalls_per_io(&r->counted), (unsigned long long)r->total.errors);
	if (!o->nop && o->write) {
		const char *separator = "";

		for (op = 0; op < OP_NR; op++) {
			if (!r->total.ops[op])
				continue;
			fprintf(f, "%s%llu %s", separator, (unsigned long long)r->total.ops[op],
				op_names[op]);
			separator = ", ";
		}
		fprintf(f, "\n");
	}
	if (o->rate)
		fprintf(f, "Rate asked %.0f, latest start %.1f usec after it was due\n", o->rate,
			r->late_max_ns / 1e3);
	if (o->verify)
		fprintf(f, "Verify: %llu wrong reads, %llu of %llu blocks read back: %s\n",
			(unsigned long long)r->total.mismatches, (unsigned long long)r->verified,
			(unsigned long long)r->to_verify, r->failed ? "FAILED" : "all right");
	if (o->latency || o->rate)
		latency_text(f, r);
}

static void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", *s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void json_disks(FILE *f, const struct run *r)
{
	unsigned int i;

	fprintf(f, "  \"disks\": [");
	for (i = 0; i < r->ntargets; i++) {
		const struct target *t = &r->targets[i];

		fprintf(f, "%s\n    {\"path\": ", i ? "," : "");
		json_string(f, t->path);
		fprintf(f, ", \"passthrough\": %s, \"bytes\": %llu, \"block_size\": %u, "
			"\"first_byte\": %llu, \"blocks\": %llu}",
			t->passthrough ? "true" : "false", (unsigned long long)t->bytes, t->lbs,
			(unsigned long long)t->first, (unsigned long long)t->blocks);
	}
	fprintf(f, "%s],\n", r->ntargets ? "\n  " : "");
}

static void json_latency(FILE *f, const struct hist *h)
{
	size_t i;

	fprintf(f, "  \"latency_ns\": {\"n\": %llu", (unsigned long long)h->n);
	if (h->n) {
		fprintf(f, ", \"min\": %.0f, \"mean\": %.0f, \"max\": %.0f", ticks_to_ns(h->min),
			ticks_to_ns(h->sum / h->n), ticks_to_ns(h->max));
		for (i = 0; i < NPERCENTS; i++)
			fprintf(f, ", \"p%g\": %.0f", percents[i],
				hist_percentile_ns(h, percents[i]));
	}
	fprintf(f, "},\n");
}

void report_json(FILE *f, const struct run *r)
{
	const struct options *o = r->o;
	int op;

	fprintf(f, "{\n  \"tool\": \"" TOOL "\", \"version\": \"" VERSION "\",\n");
	json_disks(f, r);
	fprintf(f, "  \"options\": {\"depth\": %u, \"submit\": %u, \"complete\": %u, "
		"\"block_size\": %u, \"threads\": %u, \"polled\": %d, \"fixedbufs\": %d, "
		"\"vectored\": %d, \"random\": %d, \"rate\": %.0f},\n", o->depth, o->batch_submit,
		o->batch_complete, o->bs, o->threads, o->polled, o->fixedbufs, o->vectored,
		o->random, o->rate);
	fprintf(f, "  \"seconds\": %.6f, \"ios\": %llu, \"iops\": %.1f, \"bytes_per_second\": %.0f,\n",
		r->seconds, (unsigned long long)r->counted.done,
		r->seconds > 0 ? r->counted.done / r->seconds : 0,
		r->seconds > 0 ? r->counted.done * (double)o->bs / r->seconds : 0);
	fprintf(f, "  \"max_iops\": %.1f, \"syscalls\": %llu, \"syscalls_per_io\": %.4f,\n",
		r->max_iops, (unsigned long long)r->counted.calls, syscalls_per_io(&r->counted));
	fprintf(f, "  \"ops\": {");
	for (op = 0; op < OP_NR; op++)
		fprintf(f, "%s\"%s\": %llu", op ? ", " : "", op_names[op],
			(unsigned long long)r->total.ops[op]);
	fprintf(f, "},\n");
	json_latency(f, &r->hist);
	fprintf(f, "  \"latest_start_ns\": %.0f, \"wrong_reads\": %llu, \"blocks_read_back\": %llu, "
		"\"blocks_to_read_back\": %llu,\n",
		r->late_max_ns, (unsigned long long)r->total.mismatches,
		(unsigned long long)r->verified, (unsigned long long)r->to_verify);
	fprintf(f, "  \"errors\": %llu, \"reason\": \"%s\", \"ok\": %s\n}\n",
		(unsigned long long)r->total.errors, r->reason, r->failed ? "false" : "true");
}
