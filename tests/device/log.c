// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log: one JSON object per line, written out at once, so that a test that
 * has seen a completion finds its request here. Fields keep their order, which
 * lets shell scripts look for plain strings. Three kinds:
 *
 *  {"req":1,"q":0,"head":5,"type":14,"name":"secure_erase","ioprio":0,
 *   "sector":0,"out":32,"in":1,"indirect":true,
 *   "desc":[[16,"r"],[16,"r"],[1,"w"]],"ranges":[[8,16,0]]}
 *	a request as it came; desc = length and r (device reads) or w (device
 *	writes); "bad":"why" in the chains that make no request
 *  {"ans":1,"status":0,"id":5,"len":1}
 *	its answer; status -1: left unwritten
 *  {"event":"reset",...}
 *	status changes, resets, marks set by the test
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static FILE *out;

void log_open(const char *path)
{
	out = path ? fopen(path, "a") : NULL;
	if (path && !out)
		die("can't write the log %s: %s", path, strerror(errno));
}

static bool takes_ranges(uint32_t type)
{
	return type == T_DISCARD || type == T_WRITE_ZEROES ||
	       type == T_SECURE_ERASE;
}

static void log_ranges(struct req *r)
{
	struct { uint64_t sector; uint32_t num, flags; } range;
	const char *sep = "";

	fprintf(out, ",\"ranges\":[");
	for (uint64_t off = HEADER_SIZE; req_read(r, off, &range, 16) == 16;
	     off += 16) {
		fprintf(out, "%s[%llu,%u,%u]", sep,
			(unsigned long long)range.sector, range.num, range.flags);
		sep = ",";
	}
	fprintf(out, "]");
}

void log_request(struct req *r)
{
	if (!out)
		return;
	fprintf(out, "{\"req\":%llu,\"q\":%u,\"head\":%u,\"type\":%u,"
		"\"name\":\"%s\",\"ioprio\":%u,\"sector\":%llu,\"out\":%llu,"
		"\"in\":%llu,\"indirect\":%s,\"desc\":[",
		(unsigned long long)r->seq, r->vq->index, r->head, r->type,
		type_name(r->type), r->ioprio, (unsigned long long)r->sector,
		(unsigned long long)r->out_len, (unsigned long long)r->in_len,
		r->indirect ? "true" : "false");
	for (unsigned int i = 0; i < r->nsegs; i++)
		fprintf(out, "%s[%u,\"%c\"]", i ? "," : "", r->seg[i].len,
			r->seg[i].write ? 'w' : 'r');
	fprintf(out, "]");
	if (takes_ranges(r->type))
		log_ranges(r);
	if (r->bad)
		fprintf(out, ",\"bad\":\"%s\"", r->bad);
	fprintf(out, "}\n");
	fflush(out);
}

void log_answer(struct req *r, int status, uint32_t id, uint32_t len)
{
	if (!out)
		return;
	fprintf(out, "{\"ans\":%llu,\"status\":%d,\"id\":%u,\"len\":%u}\n",
		(unsigned long long)r->seq, status, id, len);
	fflush(out);
}

void log_event(const char *fmt, ...)
{
	va_list ap;

	if (!out)
		return;
	fprintf(out, "{\"event\":");
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fprintf(out, "}\n");
	fflush(out);
}
