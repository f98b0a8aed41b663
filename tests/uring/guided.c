// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random commands, guided by what they reach in the driver
 *
 * A genome is a ring and one to four commands, each made of small choices. One
 * that takes a way through the driver which none took before is kept, and most
 * new ones are made of those kept. The ways are KCOV's: on a kernel without it
 * (make debug-kernel builds one that has it) the kept corpus is replayed, and
 * that is all. What is right for each of them says ground.h.
 *
 * GUIDED_CORPUS=FILE is the corpus, one genome a line: the ring, then a number
 * for each choice of each command. A choice is an index in a table below, so
 * tables only grow at their end. GUIDED_KEEP=FILE takes the new ones.
 * FUZZ_SEED=N repeats a run, GUIDED_COUNT=N is the number of genomes.
 *
 * Commands are sent by this thread alone: KCOV sees one thread.
 */
#define _GNU_SOURCE
#include "ground.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcov.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRITER		1
#define SLOT_SIZE	MiB
#define RANGES_SLOT	(SLOTS - 1)	/* never read into: its ranges are good */
#define COMMANDS	4
#define MOST_IOVECS	512
#define CORPUS		20000
#define LINE		400

enum { OP, TYPE, SECTOR, LEN, ADDR, SLOT, URING, BUF, SQE, FLAG, IOPRIO, FD, CHOICES };

struct genome {
	uint8_t	ring, n;
	uint8_t	choice[COMMANDS][CHOICES];
};

static const uint32_t ops[] = { 1, 2, 3, 4, 0, 5 };
static const uint32_t types[] = { VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_FLUSH,
	VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES,
	VIRTIO_BLK_T_SECURE_ERASE, VIRTIO_BLK_T_GET_LIFETIME, VIRTIO_BLK_T_ZONE_APPEND,
	VIRTIO_BLK_T_ZONE_REPORT, VIRTIO_BLK_T_ZONE_OPEN, VIRTIO_BLK_T_ZONE_RESET_ALL,
	2, 3, 1U << 31, 100, 101 };
static const uint64_t sectors[] = { 0, 1, 8, 4096, 1ULL << 40, -1ULL, -8ULL };
static const uint32_t lengths[] = { 0, 1, 6, 16, 20, 32, 64, 511, 512, 513, 4096, 8192,
	64 * KiB, 512 * KiB, MiB, 1U << 31, ~0U };
static const uint32_t counts[] = { 1, 2, 3, 4, 8, 40, 260, 0, 1025, ~0U };
static const uint64_t addresses[] = { 0, 512, 4, 1, 4092, SLOT_SIZE - 512 };	/* in a slot */
static const uint64_t nowhere[] = { 0, 4096, 0xffff888000000000ULL, 1ULL << 63 };
static const uint32_t uring_flags[] = { 0, IORING_URING_CMD_FIXED, 2, 1U << 31 };
static const uint8_t sqe_flags[] = { 0, IOSQE_IO_LINK, IOSQE_ASYNC, IOSQE_IO_HARDLINK };
static const uint32_t flags[] = { 0, 0, 0, 1, 1U << 31 };
static const uint32_t ioprios[] = { 0, 0, 2 << 13 | 4, 1 << 13 | 3, 3 << 13, 4 << 13, 1 << 16 };
static const uint32_t sums[] = { 8, 2048, 1, 0, ~0U };	/* sectors of a range */
static const unsigned int kinds[] = { 0, IORING_SETUP_IOPOLL, IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_SUBMIT_ALL,
	IORING_SETUP_IOPOLL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };

#define RINGS		(ARRAY_SIZE(kinds) * 4)
#define SHAPES		8
#define AT(table, i)	((table)[(i) % ARRAY_SIZE(table)])

/*
 * How many there are of each choice. A genome's ring is one of 2 * RINGS: the
 * second half are those of a user without capabilities.
 */
static const uint8_t choices[CHOICES] = { ARRAY_SIZE(ops), ARRAY_SIZE(types),
	ARRAY_SIZE(sectors), ARRAY_SIZE(lengths), 12, 6, ARRAY_SIZE(uring_flags), 3,
	ARRAY_SIZE(sqe_flags), ARRAY_SIZE(flags), ARRAY_SIZE(ioprios), 5 };

static uint64_t seed, rnd_state;
static struct ground ground;
static struct ring rings[RINGS];
static bool ring_there[RINGS];
static int rw, ro, wo;
static struct iovec shapes[SLOTS][SHAPES][MOST_IOVECS];
static struct genome corpus[CORPUS];
static unsigned int n_corpus;

static uint64_t rnd(uint64_t below)
{
	return random_next(&rnd_state) % below;
}

/* ---- what a genome stands for ---- */

/* The i-th piece of a vector: never more than 1 KiB */
static struct iovec piece(unsigned int shape, char *slot, unsigned int i)
{
	char *page = slot + i % 256 * 4096;

	switch (shape) {
	case 0:
		return (struct iovec){ slot + i * 512, 512 };
	case 1:
		return (struct iovec){ page, 1024 };
	case 2:
		return (struct iovec){ page + 1, i % 2 ? 511 : 1 };
	case 3:
		return (struct iovec){ page, i % 3 == 1 ? 0 : 512 };
	case 4:
		return (struct iovec){ i == 1 ? (void *)4096 : page, 512 };
	case 5:
		return (struct iovec){ i == 1 ? ground.read_only : page, 512 };
	case 6:
		return (struct iovec){ page, i == 1 ? ~0UL : 512 };
	default:
		return (struct iovec){ page + 4092, 8 };
	}
}

static void make_shapes(void)
{
	unsigned int slot, shape, i;

	for (slot = 0; slot < SLOTS; slot++)
		for (shape = 0; shape < SHAPES; shape++)
			for (i = 0; i < MOST_IOVECS; i++)
				shapes[slot][shape][i] = piece(shape, ground.slot[slot], i);
}

static bool is_range(uint32_t type)
{
	return type == VIRTIO_BLK_T_DISCARD || type == VIRTIO_BLK_T_WRITE_ZEROES ||
	       type == VIRTIO_BLK_T_SECURE_ERASE;
}

static bool writes(uint32_t type)
{
	return type == VIRTIO_BLK_T_OUT || is_range(type) || type == VIRTIO_BLK_T_ZONE_APPEND ||
	       type == VIRTIO_BLK_T_ZONE_OPEN || type == VIRTIO_BLK_T_ZONE_RESET_ALL;
}

/* On the disk only where the area is */
static uint64_t place(uint64_t sector)
{
	return sector < disk.bytes / 512 ? AREA_OF(WRITER) / 512 + sector % 4096 : sector;
}

static uint64_t address(const uint8_t *g)
{
	unsigned int i = g[ADDR] % choices[ADDR];
	char *slot = ground.slot[g[SLOT] % RANGES_SLOT];

	if (i < ARRAY_SIZE(addresses))
		return (uintptr_t)slot + addresses[i];
	i -= ARRAY_SIZE(addresses);
	return i < ARRAY_SIZE(nowhere) ? nowhere[i] : (uintptr_t)ground.read_only;
}

/* Ranges live in a slot of their own, a page for each command, iovecs behind them */
static void put_ranges(struct vcmd *c, const uint8_t *g, unsigned int n, bool vec)
{
	char *page = ground.slot[RANGES_SLOT] + n * 4096;
	struct virtio_blk_discard_write_zeroes *r = (void *)page;
	struct iovec *iov = (void *)(page + 2048);
	unsigned int i, odd = g[ADDR] % 4, size = odd == 1 ? 16 : 8;

	memset(page, 0, 4096);
	for (i = 0; i < 64; i++) {
		r[i].sector = place(AT(sectors, g[SECTOR]) + i);
		r[i].num_sectors = AT(sums, g[SLOT] + i * (odd == 1));
		r[i].flags = odd == 2 ? 1 : odd == 3 ? 2 : 0;
	}
	for (i = 0; i < 128; i++)
		iov[i] = (struct iovec){ page + i * size, size };
	c->sector = g[SLOT] % 3 == 2;
	c->data = (uintptr_t)(vec ? (void *)iov : page);
	if (vec && c->len > 128 && c->len < 1025)
		c->len = 128;
	else if (!vec && c->len > 1024 && c->len < 1U << 31)
		c->len = 1024;
}

static int descriptor(const uint8_t *g)
{
	const int fds[] = { rw, ro, wo, rw, -1 };

	return AT(fds, g[FD]);
}

static void express_one(const uint8_t *g, struct vcmd *c, unsigned int n)
{
	bool vec;

	memset(c, 0, sizeof(*c));
	c->fd = descriptor(g);
	c->op = AT(ops, g[OP]);
	c->type = AT(types, g[TYPE]);
	c->flag = AT(flags, g[FLAG]);
	c->ioprio = AT(ioprios, g[IOPRIO]);
	c->uring_flags = AT(uring_flags, g[URING]);
	c->sqe_flags = AT(sqe_flags, g[SQE]);
	vec = c->op == VIRTBLK_URING_CMD_IO_VEC || c->op == VIRTBLK_URING_CMD_IO64_VEC;
	c->len = vec ? AT(counts, g[LEN]) : AT(lengths, g[LEN]);
	c->sector = AT(sectors, g[SECTOR]);
	c->buf_index = g[BUF] % 3 == 0 ? g[SLOT] % RANGES_SLOT : g[BUF] % 3 == 1 ? 0 : SLOTS + 1;
	if (writes(c->type))
		c->sector = place(c->sector);
	if (is_range(c->type)) {
		put_ranges(c, g, n, vec);
		c->buf_index = RANGES_SLOT;
	} else if (vec && g[ADDR] % choices[ADDR] < SHAPES) {
		c->data = (uintptr_t)shapes[g[SLOT] % RANGES_SLOT][g[ADDR] % choices[ADDR]];
	} else {
		/* a slot's bytes as iovecs could point anywhere */
		c->data = vec ? AT(nowhere, g[ADDR]) : address(g);
	}
}

/* What no descriptor, ring or user may succeed with, as the contract has it */
static bool must_fail(const struct vcmd *c, unsigned int setup, bool nobody)
{
	bool is64 = op_is_64(c->op);
	bool raw = c->type == 100 || c->type == 101;

	/* a worker of io_uring's keeps the capabilities it was born with */
	nobody = nobody && !(c->sqe_flags & IOSQE_ASYNC);
	if (c->op < 1 || c->op > 4 || c->fd < 0 || (!is64 && !(setup & IORING_SETUP_SQE128)))
		return true;
	if (is64 ? (uint16_t)c->flag : c->flag)
		return true;
	if (c->type == 2 || c->type == 3 || c->type == 1U << 31 || (raw && nobody))
		return true;
	if (writes(c->type) || raw)
		return c->fd == ro;
	return c->type != VIRTIO_BLK_T_FLUSH && c->fd == wo;
}

static void express(const struct genome *g, struct batch *b, unsigned int setup)
{
	unsigned int i;

	b->n = g->n;
	for (i = 0; i < g->n; i++) {
		express_one(g->choice[i], &b->cmd[i], i);
		b->must_fail[i] = must_fail(&b->cmd[i], setup, g->ring >= RINGS);
	}
}

/* ---- the corpus ---- */

static void genome_print(const struct genome *g, char *out, size_t size)
{
	size_t n = snprintf(out, size, "%u", g->ring);
	unsigned int i, k;

	for (i = 0; i < g->n; i++)
		for (k = 0; k < CHOICES; k++)
			n += snprintf(out + n, size - n, "%s%u", k ? " " : " / ", g->choice[i][k]);
}

static bool genome_read(struct genome *g, const char *line)
{
	unsigned int n = 0, v;
	char *end;

	memset(g, 0, sizeof(*g));
	g->ring = strtoul(line, &end, 10) % (2 * RINGS);
	for (line = end; n < COMMANDS * CHOICES; n++) {
		line += strspn(line, " /");
		v = strtoul(line, &end, 10);
		if (end == line)
			break;
		g->choice[n / CHOICES][n % CHOICES] = v;
		line = end;
	}
	g->n = n / CHOICES;
	return g->n && n % CHOICES == 0;
}

static void corpus_read(void)
{
	const char *path = getenv("GUIDED_CORPUS");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[LINE];

	n_corpus = 0;
	while (f && n_corpus < CORPUS && fgets(line, sizeof(line), f))
		if (line[0] != '#' && !genome_read(&corpus[n_corpus++], line))
			fail("%s: what is the genome %s?", path, line);
	if (f)
		fclose(f);
}

static void keep(const struct genome *g, bool to_file)
{
	const char *path = getenv("GUIDED_KEEP");
	char line[LINE];
	FILE *f;

	if (n_corpus < CORPUS)
		corpus[n_corpus++] = *g;
	if (!to_file || !path)
		return;
	f = fopen(path, "ae");
	if (!f)
		fail("%s: got %s, wanted it open", path, err_name(-errno));
	genome_print(g, line, sizeof(line));
	fprintf(f, "%s\n", line);
	fclose(f);
}

/* ---- coverage ---- */

#define TRACE		(1U << 16)	/* PCs of one genome */
#define TABLE		(1U << 16)

static struct {
	uint64_t	*trace;		/* their number, then the PCs */
	uint64_t	pc[TABLE];
	bool		edge[16 * TABLE];
	unsigned int	pcs, edges;
} cover;

/* False where the kernel has none */
static bool cover_start(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (ioctl(fd, KCOV_INIT_TRACE, TRACE))
		fail("KCOV_INIT_TRACE: got %s, wanted 0", err_name(-errno));
	cover.trace = mmap(NULL, TRACE * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cover.trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		fail("KCOV_ENABLE: got %s, wanted 0", err_name(-errno));
	return true;
}

static void cover_forget(void)
{
	memset(cover.pc, 0, sizeof(cover.pc));
	memset(cover.edge, 0, sizeof(cover.edge));
	cover.pcs = cover.edges = 0;
}

static void note_pc(uint64_t pc)
{
	uint64_t at = mix64(pc) % TABLE;

	while (cover.pc[at] && cover.pc[at] != pc)
		at = (at + 1) % TABLE;
	cover.pcs += !cover.pc[at];
	cover.pc[at] = pc;
}

/* How many pairs of consecutive PCs are new */
static unsigned int cover_take(void)
{
	uint64_t n = __atomic_load_n(cover.trace, __ATOMIC_RELAXED), i, pc, last = 0;
	unsigned int before = cover.edges;

	for (i = 1; i <= n && i < TRACE; i++) {
		bool *edge;

		pc = cover.trace[i];
		note_pc(pc);
		edge = &cover.edge[mix64(last * 3 ^ pc) % ARRAY_SIZE(cover.edge)];
		cover.edges += !*edge;
		*edge = true;
		last = pc;
	}
	return cover.edges - before;
}

/* ---- one genome ---- */

static struct ring *ring_of(const struct genome *g)
{
	unsigned int i = g->ring % RINGS, wide = i / ARRAY_SIZE(kinds);
	unsigned int setup = (wide & 1 ? IORING_SETUP_SQE128 : 0) | (wide & 2 ? IORING_SETUP_CQE32 : 0);
	int ret;

	if (ring_there[i])
		return &rings[i];
	ret = ring_try(&rings[i], BATCH, setup | AT(kinds, i));
	if (ret == -EINVAL)	/* an older kernel */
		ret = ring_try(&rings[i], BATCH, setup);
	want_res(ret, 0, "a ring with flags %#x", setup | AT(kinds, i));
	ground_register(&ground, &rings[i]);
	ring_there[i] = true;
	return &rings[i];
}

/* With what the driver asks for, or without */
static void privileged(bool yes)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uint32_t bits = 1U << CAP_SYS_RAWIO | 1U << CAP_SYS_NICE | 1U << CAP_SYS_ADMIN;

	if (syscall(SYS_capget, &head, data))
		fail("capget: got %s, wanted 0", err_name(-errno));
	data[0].effective = yes ? data[0].permitted : data[0].effective & ~bits;
	if (syscall(SYS_capset, &head, data))
		fail("capset: got %s, wanted 0", err_name(-errno));
}

/* New edges, 0 without KCOV */
static unsigned int run(const struct genome *g)
{
	static struct batch b;
	struct ring *r = ring_of(g);
	unsigned int fresh = 0;

	express(g, &b, r->setup);
	genome_print(g, b.about, sizeof(b.about));
	if (g->ring >= RINGS)
		privileged(false);
	if (cover.trace)
		__atomic_store_n(cover.trace, 0, __ATOMIC_RELAXED);
	batch_run(&b, r);
	if (cover.trace)
		fresh = cover_take();
	if (g->ring >= RINGS)
		privileged(true);
	return fresh;
}

/* ---- new genomes ---- */

static void random_choices(uint8_t *c)
{
	unsigned int k;

	for (k = 0; k < CHOICES; k++)
		c[k] = rnd(choices[k]);
}

static void random_genome(struct genome *g)
{
	unsigned int i;

	memset(g, 0, sizeof(*g));
	g->ring = rnd(2 * RINGS);
	g->n = 1 + rnd(COMMANDS);
	for (i = 0; i < g->n; i++)
		random_choices(g->choice[i]);
}

static void mutate(struct genome *g)
{
	const struct genome *other = &corpus[rnd(n_corpus)];
	unsigned int i = rnd(g->n), k = rnd(CHOICES), from = rnd(other->n);

	switch (rnd(8)) {
	case 0:
		g->ring = rnd(2 * RINGS);
		break;
	case 1:
		memcpy(g->choice[i], other->choice[from], CHOICES);
		break;
	case 2:
		if (g->n < COMMANDS)
			memcpy(g->choice[g->n++], other->choice[from], CHOICES);
		break;
	case 3:
		if (g->n > 1)
			g->n--;
		break;
	case 4:
		g->choice[i][k] = other->choice[from][k];
		break;
	default:
		g->choice[i][k] = rnd(choices[k]);
	}
}

static void next_genome(struct genome *g, bool guided)
{
	unsigned int n;

	if (!guided || !n_corpus || rnd(10) == 0) {
		random_genome(g);
		return;
	}
	*g = corpus[rnd(n_corpus)];
	for (n = 1 + rnd(4); n; n--)
		mutate(g);
}

/* ---- behaviours ---- */

static void begin(void)
{
	rnd_state = seed;
	ground_make(&ground, SLOT_SIZE);
	make_shapes();
	rw = open_chr(O_RDWR);
	ro = open_chr(O_RDONLY);
	wo = open_chr(O_WRONLY);
	window_fill();
}

static void end(void)
{
	ground_check(&ground);
	window_check(WRITER, 1);
}

static unsigned int how_many(void)
{
	const char *text = getenv("GUIDED_COUNT");

	return text && *text ? strtoul(text, NULL, 0) : t_rounds(800, 200000);
}

static void replay(void)
{
	unsigned int i;

	for (i = 0; i < n_corpus; i++)
		run(&corpus[i]);
}

static void fuzz(unsigned int count, bool guided, bool to_file)
{
	struct genome g;

	while (count--) {
		next_genome(&g, guided);
		if (run(&g) && guided)
			keep(&g, to_file);
		if (count % 1000 == 0)
			ground_check(&ground);
	}
}

static void need_kcov(void)
{
	if (!cover_start())
		skip("this kernel has no KCOV, which guides: make debug-kernel builds one that has");
}

static void test_corpus(const void *arg)
{
	corpus_read();
	if (!n_corpus)
		skip("GUIDED_CORPUS names none");
	begin();
	cover_start();
	replay();
	end();
	printf("# corpus: %u genomes", n_corpus);
	printf(cover.trace ? ", %u PCs, %u edges\n" : "\n", cover.pcs, cover.edges);
}

/*
 * Both from nothing, the same number of genomes, and several times: one genome that
 * opens a door early is worth hundreds of others, and chance finds it as often.
 */
#define TRIALS		5
#define TRIAL_COUNT	800	/* in a long run too: more of them tells nothing more */

static void test_guidance(const void *arg)
{
	unsigned int chance = 0, guidance = 0, i, edges;

	need_kcov();
	begin();
	for (i = 0; i < TRIALS; i++) {
		rnd_state = seed + i;
		fuzz(TRIAL_COUNT, false, false);
		if (cover.pcs < 100)
			fail("%u PCs: is the driver built with KCOV_INSTRUMENT?",
			     cover.pcs);
		edges = cover.edges;
		cover_forget();
		n_corpus = 0;
		rnd_state = seed + i;
		fuzz(TRIAL_COUNT, true, false);
		printf("# seed %llu, %u genomes: %u edges unguided, %u guided, %u genomes kept\n",
		       (unsigned long long)seed + i, TRIAL_COUNT, edges, cover.edges, n_corpus);
		chance += edges;
		guidance += cover.edges;
		cover_forget();
	}
	end();
	if (guidance <= chance)
		fail("edges with guidance: got %u, wanted more than %u", guidance, chance);
}

static void test_guided(const void *arg)
{
	unsigned int old, edges;

	need_kcov();
	begin();
	corpus_read();
	old = n_corpus;
	replay();
	edges = cover.edges;
	fuzz(how_many(), true, true);
	end();
	printf("# seed %llu: %u genomes kept, %u of them new; %u edges, %u of them new\n",
	       (unsigned long long)seed, n_corpus, n_corpus - old, cover.edges, cover.edges - edges);
}

int main(int argc, char **argv)
{
	t_start(argc, argv, "Random commands, guided by KCOV; see the comment in guided.c");
	seed = getenv("FUZZ_SEED") ? strtoull(getenv("FUZZ_SEED"), NULL, 0) : now_ms() % 1000000;
	printf("# seed %llu\n", (unsigned long long)seed);
	t_limit(600 + soak_minutes * 60 + how_many() / 5);
	t_run("corpus", test_corpus, NULL);
	t_run("guidance-beats-chance", test_guidance, NULL);
	t_run("guided", test_guided, NULL);
	return t_end();
}
