/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a block of the storm looks like; for the guest's program and the host's
 * checker alike
 *
 * Every block says where it belongs, which generation it is, and a checksum of
 * all of it. A block of zeroes is generation 0: never written.
 */
#ifndef STORM_BLOCK_H
#define STORM_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pattern-core.h"

#define STORM_BLOCK	4096
#define STORM_WORKERS	7
#define STORM_BLOCKS	256	/* of each worker */
#define STORM_MAGIC	0x6d726f7473626c76ULL

struct storm_block {
	uint64_t	magic;
	uint64_t	place;		/* in blocks */
	uint64_t	generation;
	uint64_t	sum;		/* of all the rest */
	uint64_t	filler[STORM_BLOCK / 8 - 4];
};

static inline uint64_t storm_sum(const struct storm_block *b)
{
	uint64_t sum = pattern_mix(b->place + 1) ^ pattern_mix(b->generation + 2);
	size_t i;

	for (i = 0; i < sizeof(b->filler) / 8; i++)
		sum = (sum << 7 | sum >> 57) ^ (b->filler[i] * 0x9e3779b97f4a7c15ULL);
	return sum;
}

static inline void storm_fill(struct storm_block *b, uint64_t place,
			      uint64_t generation)
{
	b->magic = STORM_MAGIC;
	b->place = place;
	b->generation = generation;
	pattern_put(b->filler, sizeof(b->filler), place * STORM_BLOCK, generation);
	b->sum = storm_sum(b);
}

/* The generation, or -1 if this is no block of that place */
static inline int64_t storm_generation(const struct storm_block *b, uint64_t place)
{
	const char *p = (const char *)b;

	if (b->magic == STORM_MAGIC)
		return b->place == place && b->sum == storm_sum(b) ?
			(int64_t)b->generation : -1;
	return p[0] == 0 && !memcmp(p, p + 1, STORM_BLOCK - 1) ? 0 : -1;
}

#endif
