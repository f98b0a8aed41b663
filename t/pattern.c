// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data that tells where it belongs
 *
 * Each 512-byte sector carries its own number, the seed and the generation of
 * its write, and a checksum over all of it: a sector that is lost, stale,
 * swapped with another or torn shows as what it is, without a copy to compare
 * with.
 */
#include <stddef.h>
#include <string.h>

#include "tool.h"

#define PATTERN_MAGIC	0x5652424b4c425649ULL

struct pattern_sector {
	uint64_t magic;
	uint64_t sector;
	uint64_t seed;
	uint32_t gen;
	uint32_t zero;
	uint64_t fill[SECTOR / 8 - 5];
	uint64_t sum;
};

_Static_assert(sizeof(struct pattern_sector) == SECTOR, "a sector is 512 bytes");

/* A bijection that spreads every bit (the constants are splitmix64's) */
uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint64_t sum_of(const struct pattern_sector *p)
{
	const unsigned char *bytes = (const unsigned char *)p;
	uint64_t sum = 0, word;
	size_t at;

	for (at = 0; at < offsetof(struct pattern_sector, sum); at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3ULL;
		sum ^= sum >> 29;
	}
	return sum;
}

void pattern_fill(void *buf, size_t len, uint64_t sector, uint64_t seed, uint32_t gen)
{
	struct pattern_sector p = { .magic = PATTERN_MAGIC, .seed = seed, .gen = gen };
	size_t at, i;
	uint64_t x;

	for (at = 0; at + SECTOR <= len; at += SECTOR, sector++) {
		p.sector = sector;
		x = mix64(sector ^ mix64(seed + gen));
		for (i = 0; i < sizeof(p.fill) / sizeof(p.fill[0]); i++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			p.fill[i] = x;
		}
		p.sum = sum_of(&p);
		memcpy((char *)buf + at, &p, SECTOR);
	}
}

static enum pattern_fault sector_fault(const struct pattern_sector *p, uint64_t sector,
				       uint64_t seed, uint32_t gen)
{
	if (p->magic != PATTERN_MAGIC || p->seed != seed)
		return PATTERN_ALIEN;
	if (p->sum != sum_of(p))
		return PATTERN_DAMAGED;
	if (p->sector != sector)
		return PATTERN_MISPLACED;
	if (p->gen != gen)
		return PATTERN_STALE;
	return PATTERN_OK;
}

bool pattern_check(const void *buf, size_t len, uint64_t sector, uint64_t seed,
		   uint32_t gen, struct pattern_result *res)
{
	struct pattern_sector p;
	size_t at;

	res->fault = PATTERN_OK;
	for (at = 0; at + SECTOR <= len; at += SECTOR, sector++) {
		memcpy(&p, (const char *)buf + at, SECTOR);
		res->fault = sector_fault(&p, sector, seed, gen);
		if (res->fault == PATTERN_OK)
			continue;
		res->sector = sector;
		res->found_sector = p.sector;
		res->found_gen = p.gen;
		return false;
	}
	return true;
}

bool pattern_zero(const void *buf, size_t len)
{
	const char *p = buf;

	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

const char *pattern_words(const struct pattern_result *res, char *out, size_t len)
{
	unsigned long long at = res->sector, found = res->found_sector;

	switch (res->fault) {
	case PATTERN_ALIEN:
		snprintf(out, len, "sector %llu holds data that was never written here", at);
		break;
	case PATTERN_MISPLACED:
		snprintf(out, len, "sector %llu holds what belongs in sector %llu", at, found);
		break;
	case PATTERN_STALE:
		snprintf(out, len, "sector %llu holds its write number %u, not the last one",
			 at, res->found_gen);
		break;
	case PATTERN_DAMAGED:
		snprintf(out, len, "sector %llu has a wrong checksum", at);
		break;
	default:
		snprintf(out, len, "sector %llu is right", at);
	}
	return out;
}
