// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring-vblk: I/O on virtio-blk disks through the block node or by io_uring
 * passthrough, with the options of fio's t/io_uring. tool.h lists the parts.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Passthrough bypasses the scheduler, and pays for its being there */
static void remark_scheduler(const struct target *t)
{
	char path[128], line[256] = "";
	FILE *f;

	if (!t->passthrough || !t->disk[0])
		return;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/scheduler", t->disk);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && !strstr(line, "[none]"))
		remark("%s has an I/O scheduler: passthrough is right but not batched; "
		       "echo none >%s", t->disk, path);
	if (f)
		fclose(f);
}

static int open_targets(struct run *r)
{
	struct options *o = r->o;
	int i;

	for (i = 0; i < o->npaths && !o->nop; i++) {
		struct target *t = &r->targets[r->ntargets++];

		if (target_open(t, o->paths[i], o) || target_check(t, o))
			return -1;
		remark_scheduler(t);
	}
	return 0;
}

static void print_head(const struct run *r)
{
	const struct options *o = r->o;
	FILE *f = o->json ? stderr : stdout;
	unsigned int i;

	for (i = 0; i < r->ntargets; i++)
		fprintf(f, "%s: %s, %llu bytes, blocks of %u\n", r->targets[i].path,
			r->targets[i].passthrough ? "passthrough" : "block",
			(unsigned long long)r->targets[i].bytes, r->targets[i].lbs);
	fprintf(f, "polled=%d, fixedbufs=%d, register_files=%d, buffered=%d, QD=%u\n", o->polled,
		o->fixedbufs, o->regfiles, !o->direct, o->depth);
	fflush(stdout);
}

static int run_disks(struct options *o)
{
	static struct target targets[MAX_TARGETS];
	static struct run run;
	struct run *r = &run;
	int ret = 1;
	unsigned int i;

	r->o = o;
	r->targets = targets;
	if (!open_targets(r)) {
		print_head(r);
		ret = run_once(r) ? 1 : 0;
		if (!ret && o->json)
			report_json(stdout, r);
		if (!ret)
			report_text(o->json ? stderr : stdout, r);
		ret |= r->failed;
	}
	for (i = 0; i < r->ntargets; i++)
		target_close(&targets[i]);
	return ret;
}

int main(int argc, char **argv)
{
	static struct options o;
	int ret;

	options_parse(&o, argc, argv);
	ticks_init(0);
	run_signals();
	ret = o.compare ? compare_run(&o) : run_disks(&o);
	if (fflush(stdout) || ferror(stdout)) {
		complain("writing the results failed");
		ret = 1;
	}
	return ret;
}
