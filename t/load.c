// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: which I/O comes next, and what must come back */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

const char *const op_names[OP_NR] = { "read", "write", "trim", "zeroes", "flush" };

/* 4 bytes per block are kept: what is more than this wants a --size */
#define VERIFY_MAX_BLOCKS	(256ULL << 20)

#define MAX_FAULTS	5	/* told of a thread's blocks that are read back */

static uint64_t next_random(struct load *l)
{
	uint64_t x = l->rng;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return l->rng = x;
}

/* Unbiased enough for any disk: the high half of a 128-bit product */
static uint64_t random_below(struct load *l, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)next_random(l) * n) >> 64);
}

int load_init(struct load *l, const struct options *o, unsigned int thread)
{
	int op;

	memset(l, 0, sizeof(*l));
	l->o = o;
	l->rng = mix64(o->seed * 1000003 + thread) | 1;
	l->left = o->ios ? o->ios : UINT64_MAX;
	for (op = 0; op < OP_NR; op++)
		l->weights += o->mix[op];
	return 0;
}

/*
 * Give this worker its share of a target. To verify, no two workers may write
 * the same block; otherwise shares only set where sequential I/O begins.
 */
int load_add_target(struct load *l, struct target *t, unsigned int share, unsigned int shares)
{
	struct region *r = &l->regions[l->nregions];
	const struct options *o = l->o;
	uint64_t part = t->blocks / shares;

	r->t = t;
	r->index = l->nregions;
	r->blocks = t->blocks;
	r->cursor = part * share;
	if (o->verify) {
		r->first = part * share;
		r->blocks = part;
		r->cursor = 0;
		if (r->blocks <= o->depth) {
			complain("%s: --verify needs more blocks than I/Os in flight: a smaller -d, "
				 "-n or -b, or a larger --size", t->path);
			return -1;
		}
		if (r->blocks > VERIFY_MAX_BLOCKS) {
			complain("%s: --verify keeps track of at most %llu blocks a thread: "
				 "give a --size", t->path, (unsigned long long)VERIFY_MAX_BLOCKS);
			return -1;
		}
		r->gen = calloc(r->blocks, sizeof(*r->gen));
		if (!r->gen) {
			complain("%s: no memory to keep track of %llu blocks", t->path,
				 (unsigned long long)r->blocks);
			return -1;
		}
	}
	l->nregions++;
	return 0;
}

uint64_t slot_byte(const struct slot *s, const struct options *o)
{
	return s->r->t->first + s->block * o->bs;
}

static enum op choose_op(struct load *l)
{
	uint64_t x;
	int op = 0;

	if (l->o->mix[OP_READ] == l->weights)
		return OP_READ;
	x = random_below(l, l->weights);
	while (x >= l->o->mix[op])
		x -= l->o->mix[op++];
	return op;
}

static uint64_t choose_block(struct load *l, struct region *r)
{
	uint64_t b;

	if (l->o->random) {
		b = random_below(l, r->blocks);
	} else {
		b = r->cursor++;
		if (r->cursor >= r->blocks)
			r->cursor = 0;
	}
	/* More blocks than I/Os in flight: one is idle */
	while (r->gen && (r->gen[b] & GEN_BUSY))
		b = b + 1 < r->blocks ? b + 1 : 0;
	return b;
}

/* Note what the block will hold, and keep others off it meanwhile */
static void track(struct load *l, struct slot *s, uint64_t b)
{
	struct region *r = s->r;

	s->gen = r->gen[b];
	r->gen[b] |= GEN_BUSY;
	if (s->op == OP_ZEROES) {
		s->gen = GEN_ZERO;
	} else if (s->op == OP_TRIM) {
		s->gen = GEN_UNKNOWN;	/* zeroes or the old data: both are right */
	} else if (s->op == OP_WRITE) {
		if (++r->next_gen >= GEN_ZERO)
			r->next_gen = 1;
		s->gen = r->next_gen;
		pattern_fill(s->buf, l->o->bs, slot_byte(s, l->o) / SECTOR, l->o->seed, s->gen);
	}
}

bool load_next(struct load *l, struct slot *s)
{
	uint64_t b;

	if (!l->left)
		return false;
	l->left--;
	s->r = NULL;
	s->op = OP_READ;
	if (l->o->nop)
		return true;
	s->r = &l->regions[l->next_region];
	if (++l->next_region == l->nregions)
		l->next_region = 0;
	s->op = choose_op(l);
	if (s->op == OP_FLUSH)
		return true;
	b = choose_block(l, s->r);
	s->block = s->r->first + b;
	if (s->r->gen)
		track(l, s, b);
	return true;
}

static bool content_right(struct load *l, struct slot *s, struct pattern_result *res)
{
	uint64_t sector = slot_byte(s, l->o) / SECTOR;

	if (s->gen == GEN_UNKNOWN)
		return true;
	if (s->gen != GEN_ZERO)
		return pattern_check(s->buf, l->o->bs, sector, l->o->seed, s->gen, res);
	*res = (struct pattern_result){ .fault = PATTERN_STALE, .sector = sector };
	return pattern_zero(s->buf, l->o->bs);
}

/* The I/O has ended; false if it was a read of something wrong */
bool load_done(struct load *l, struct slot *s, bool ok, struct pattern_result *res)
{
	struct region *r = s->r;

	if (!r || !r->gen || s->op == OP_FLUSH)
		return true;
	/* A failed write has done all, something or nothing */
	if (!ok)
		s->gen = s->op == OP_READ ? s->gen : GEN_UNKNOWN;
	r->gen[s->block - r->first] = s->gen;
	return !ok || s->op != OP_READ || content_right(l, s, res);
}

static int final_block(struct load *l, struct region *r, uint64_t b, void *buf)
{
	struct slot s = { .op = OP_READ, .r = r, .block = r->first + b, .gen = r->gen[b],
			  .buf = buf };
	struct pattern_result res;
	uint64_t at = slot_byte(&s, l->o);
	bool whole_disk = r->t->guard >= 0;
	ssize_t n = pread(whole_disk ? r->t->guard : r->t->fd, buf, l->o->bs,
			  at + (whole_disk ? r->t->partition_start : 0));
	char words[128];

	if (n != (ssize_t)l->o->bs) {
		complain("%s: reading back at byte %llu: %s", r->t->path, (unsigned long long)at,
			 n < 0 ? strerror(errno) : "short read");
		return -1;
	}
	if (content_right(l, &s, &res))
		return 0;
	complain("%s: read back through the block node: %s", r->t->path,
		 pattern_words(&res, words, sizeof(words)));
	return -1;
}

/*
 * Read everything back that this worker has written, by pread() on the block
 * node: not by the path that wrote it.
 */
int load_final(struct load *l, struct run *run)
{
	unsigned int i, faults = 0;
	bool ends = false;
	uint64_t b;
	void *buf;

	if (posix_memalign(&buf, 4096, l->o->bs)) {
		complain("no memory to read back");
		return -1;
	}
	for (i = 0; i < l->nregions; i++) {
		struct region *r = &l->regions[i];

		/* The disk's own node doesn't see the page cache of a partition */
		if (!r->t->passthrough && fsync(r->t->fd)) {
			complain("%s: fsync before reading back: %s", r->t->path, strerror(errno));
			faults++;
		}
		for (b = 0; b < r->blocks; b++) {
			if (r->gen[b] == GEN_UNKNOWN)
				continue;
			run->to_verify++;
			ends = ends || faults == MAX_FAULTS || run_verify_ends(run);
			if (ends)
				continue;
			faults += final_block(l, r, b, buf) != 0;
			run->verified++;
		}
	}
	free(buf);
	return faults ? -1 : 0;
}

void load_free(struct load *l)
{
	unsigned int i;

	for (i = 0; i < l->nregions; i++)
		free(l->regions[i].gen);
	l->nregions = 0;
}
