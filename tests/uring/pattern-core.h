/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The content of every tested byte follows from where it lies on the disk and
 * from a seed, so that data in the wrong place is as visible as wrong data.
 * Apart from helper.c because the host's checker needs this alone.
 */
#ifndef URING_PATTERN_CORE_H
#define URING_PATTERN_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t pattern_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* off and len are multiples of 8 */
static inline void pattern_put(void *buf, size_t len, uint64_t off,
			       uint64_t seed)
{
	uint64_t base = pattern_mix(seed + 1), word;
	size_t i;

	for (i = 0; i < len; i += 8) {
		word = pattern_mix(base + off + i);
		memcpy((char *)buf + i, &word, 8);
	}
}

static inline long pattern_find_wrong(const void *buf, size_t len, uint64_t off,
				      uint64_t seed)
{
	uint64_t base = pattern_mix(seed + 1), word;
	size_t i;

	for (i = 0; i < len; i += 8) {
		word = pattern_mix(base + off + i);
		if (memcmp((const char *)buf + i, &word, 8))
			return (long)i;
	}
	return -1;
}

#endif
