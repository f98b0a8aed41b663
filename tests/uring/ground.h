/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What both fuzzers stand on: memory with canaries, a disk with a window that
 * holds a pattern, and what is right whatever was asked for: each accepted SQE
 * gets one CQE with an errno of the contract, and no byte changes outside what
 * writable descriptors were told to write.
 */
#ifndef URING_GROUND_H
#define URING_GROUND_H

#include "helper.h"

/*
 * The disk's first WINDOW bytes hold a pattern. In it each of AREAS writers may
 * change AREA bytes of its own. The host sees that the rest is still empty.
 */
#define WINDOW		(32 * MiB)
#define AREA		(4 * MiB)
#define AREA_OF(id)	(4 * MiB + (id) * 8 * MiB)
#define AREAS		3

#define BATCH		64		/* most commands at a time */
#define SLOTS		8

/* Each slot has a canary page in front and a forbidden one behind */
struct ground {
	size_t		slot_size;
	char		*slot[SLOTS];
	char		*read_only;	/* 64 KiB */
};

/* Commands that are reaped before the next ones are built */
struct batch {
	struct vcmd	cmd[BATCH];
	bool		must_fail[BATCH];
	unsigned int	n;
	char		about[256];	/* how to have it once more */
};

void ground_make(struct ground *g, size_t slot_size);
void ground_check(const struct ground *g);
void ground_register(const struct ground *g, struct ring *r);
void window_fill(void);
void window_check(unsigned int writer, unsigned int writers);
void batch_run(struct batch *b, struct ring *r);

#endif
