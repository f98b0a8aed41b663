// SPDX-License-Identifier: GPL-2.0-only
/* What both fuzzers stand on; see ground.h */
#define _GNU_SOURCE
#include "ground.h"

#include <sys/mman.h>

#define CANARY		0xc5
#define READ_ONLY	(64 * KiB)
#define SEED_OF_DISK	99

/* ---- memory ---- */

void ground_make(struct ground *g, size_t slot_size)
{
	unsigned int i;
	char *p;

	g->slot_size = slot_size;
	for (i = 0; i < SLOTS; i++) {
		p = map_pages(4096 + slot_size);
		memset(p, CANARY, 4096);
		g->slot[i] = p + 4096;
	}
	g->read_only = map_pages(READ_ONLY);
	memset(g->read_only, CANARY, READ_ONLY);
	mprotect(g->read_only, READ_ONLY, PROT_READ);
}

void ground_check(const struct ground *g)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		want_byte(g->slot[i] - 4096, 4096, CANARY, "a canary page");
	want_byte(g->read_only, READ_ONLY, CANARY, "read-only memory");
}

void ground_register(const struct ground *g, struct ring *r)
{
	struct iovec reg[SLOTS];
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		reg[i] = (struct iovec){ g->slot[i], g->slot_size };
	want_res(io_uring_register_buffers(&r->u, reg, SLOTS), 0, "registering");
}

/* ---- the disk ---- */

void window_fill(void)
{
	char *buf = map_pages(MiB);
	uint64_t off;

	if (disk.bytes < 2 * WINDOW)
		die("%s: the disk is smaller than %llu bytes", disk.blk, 2 * WINDOW);
	for (off = 0; off < WINDOW; off += MiB) {
		pattern_fill(buf, MiB, off, SEED_OF_DISK);
		blk_write(off, buf, MiB);
	}
	munmap(buf, MiB);
}

/* Outside the areas of so many writers, and the node still answers */
void window_check(unsigned int writer, unsigned int writers)
{
	char *buf = map_pages(MiB);
	uint64_t off;
	unsigned int i;

	for (off = 0; off < WINDOW; off += MiB) {
		for (i = writer; i < writer + writers; i++)
			if (off >= AREA_OF(i) && off < AREA_OF(i) + AREA)
				break;
		if (i < writer + writers)
			continue;
		blk_read(off, buf, MiB);
		want_pattern(buf, MiB, off, SEED_OF_DISK,
			     "the disk outside the allowed areas");
	}
	chr_read(0, buf, 4096);
	want_pattern(buf, 4096, 0, SEED_OF_DISK, "by passthrough afterwards");
	munmap(buf, MiB);
}

/* ---- answers ---- */

static bool contract_errno(int res)
{
	static const int known[] = { 0, -EIO, -EOPNOTSUPP, -EINVAL, -EACCES,
		-EPERM, -EFAULT, -ENOMEM, -ENOTTY, -EBADF, -ECANCELED,
		-ETOOMANYREFS, -EOVERFLOW };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (res == known[i])
			return true;
	return false;
}

__attribute__((noreturn))
static void no_cqe(const struct batch *b, const struct ring *r, const bool *seen)
{
	unsigned int i, missing = 0, first = b->n;
	const struct vcmd *c;

	for (i = 0; i < b->n; i++)
		if (!seen[i]) {
			missing++;
			first = first < b->n ? first : i;
		}
	c = &b->cmd[first];
	fail("%s: got no CQE in 30 s for %u of %u commands, ring flags %#x; the first is %u: op %u type %u sector %llu length %u, flags of sqe %#x, uring %#x, fd %d",
	     b->about, missing, b->n, r->setup, first, c->op, c->type,
	     (unsigned long long)c->sector, c->len, c->sqe_flags,
	     c->uring_flags, c->fd);
}

static void take_one(const struct batch *b, struct ring *r, bool *seen)
{
	struct answer a;

	if (!ring_take_within(r, &a, 30000))
		no_cqe(b, r, seen);
	if (a.user_data >= b->n || seen[a.user_data])
		fail("%s: got a CQE for command %llu of %u, ring flags %#x",
		     b->about, (unsigned long long)a.user_data, b->n, r->setup);
	seen[a.user_data] = true;
	if (!contract_errno(a.res))
		fail("%s: command %llu: got %s, which the contract doesn't have",
		     b->about, (unsigned long long)a.user_data, err_name(a.res));
	if (b->must_fail[a.user_data] && a.res == 0)
		fail("%s: command %llu: got 0, wanted a refusal", b->about,
		     (unsigned long long)a.user_data);
}

void batch_run(struct batch *b, struct ring *r)
{
	unsigned int sent = 0, got = 0, i;
	bool seen[BATCH] = { false };
	int ret;

	for (i = 0; i < b->n; i++) {
		b->cmd[i].user_data = i;
		sqe_fill(ring_sqe(r), &b->cmd[i], r->setup & IORING_SETUP_SQE128);
	}
	/* one bad SQE ends a submission: the rest takes another */
	while (sent < b->n) {
		ret = io_uring_submit(&r->u);
		if (ret < 0 && ret != -EBUSY && ret != -EAGAIN && ret != -EINTR)
			fail("%s: submit: got %s", b->about, err_name(ret));
		if (ret > 0)
			sent += ret;
		if (r->setup & IORING_SETUP_SQPOLL)
			break;
		while (got < sent && ret <= 0)
			take_one(b, r, seen), got++;
	}
	for (; got < b->n; got++)
		take_one(b, r, seen);
}
