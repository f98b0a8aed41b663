/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io_uring-vblk: what its parts share
 *
 *	options.c	the command line
 *	target.c	disks: open, ask, refuse
 *	load.c		which I/O comes next, and what must come back
 *	ring.c		a ring and the SQEs put on it
 *	worker.c	the thread that keeps a ring busy
 *	legacy.c	the same without a ring
 *	run.c		start workers, one line a second, stop them
 *	compare.c	block and passthrough by turns
 *	report.c	results as text and JSON
 *	hist.c		ticks and the latency histogram
 *	pattern.c	data that tells where it belongs
 *	words.c		errors in words
 */
#ifndef VBLK_TOOL_H
#define VBLK_TOOL_H

#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <virtblk_uring_helpers.h>

#define TOOL		"io_uring-vblk"
#define SECTOR		512
#define MAX_TARGETS	16
#define MAX_PINS	1024
#define MAX_IOVECS	1024

enum op { OP_READ, OP_WRITE, OP_TRIM, OP_ZEROES, OP_FLUSH, OP_NR };

enum engine { ENGINE_URING, ENGINE_SYNC, ENGINE_AIO };

struct options {
	/* as t/io_uring has them */
	unsigned int	depth;
	unsigned int	batch_submit;
	unsigned int	batch_complete;
	unsigned int	bs;
	unsigned int	threads;
	bool		polled;
	bool		fixedbufs;
	bool		fixedbufs_asked;
	bool		regfiles;
	bool		direct;
	bool		nop;
	bool		latency;
	bool		random;
	bool		ringfd;
	bool		vectored;
	bool		numa;
	bool		passthrough;
	enum engine	engine;
	const char	*hugefile;
	double		runtime;	/* seconds; 0: until a signal */

	/* ours */
	unsigned int	iovecs;
	bool		huge;
	bool		write;
	unsigned int	mix[OP_NR];	/* weights */
	bool		verify;
	uint64_t	seed;
	uint64_t	offset;
	uint64_t	size;		/* 0: to the end */
	uint64_t	ios;		/* per thread; 0: no limit */
	double		rate;		/* I/Os a second of all threads; 0: closed loop */
	int		pin[MAX_PINS];
	int		npins;
	bool		sqe64;
	bool		sqe128;
	int		defer;		/* -1: where the kernel has it */
	bool		sqpoll;
	int		sqpoll_cpu;	/* -1: any */
	unsigned int	sqpoll_idle;	/* ms; 0: the kernel's default */
	bool		keep_going;
	bool		json;
	bool		compare;
	bool		matrix;
	unsigned int	repeats;

	char		**paths;
	int		npaths;
};

void options_parse(struct options *o, int argc, char **argv);

/* One disk through one of its nodes */
struct target {
	char		path[256];
	char		disk[64];	/* vda; empty for a file */
	bool		passthrough;
	bool		poll_queues;	/* the disk has some */
	int		fd;
	int		guard;		/* the disk's block node, held O_EXCL while we write */
	uint64_t	partition_start;	/* bytes; 0 for a whole disk */
	uint64_t	bytes;
	unsigned int	lbs;
	int		numa_node;
	struct virtblk_uring_info info;	/* zero for a block node */
	uint64_t	first;		/* first block of the range worked on */
	uint64_t	blocks;		/* of options.bs bytes */
};

int target_open(struct target *t, const char *path, const struct options *o);
void target_close(struct target *t);
int target_partner(const char *path, char *block, char *node, size_t len);
int target_check(struct target *t, const struct options *o);

/* Log-linear: 2^HIST_BITS buckets per power of two, so below 1 % off */
#define HIST_BITS	7
#define HIST_BUCKETS	((64 - HIST_BITS + 1) << HIST_BITS)

struct hist {
	uint64_t	n;
	uint64_t	min;
	uint64_t	max;
	double		sum;
	uint64_t	count[HIST_BUCKETS];
};

uint64_t clock_ns(void);
uint64_t ticks_now(void);
double ticks_per_second(void);
void ticks_init(uint64_t hz);
double ticks_to_ns(double ticks);
void hist_reset(struct hist *h);
void hist_add(struct hist *h, uint64_t ticks, uint64_t n);
void hist_merge(struct hist *into, const struct hist *from);
double hist_percentile_ns(const struct hist *h, double percent);

/* pattern.c: every sector names itself */
enum pattern_fault { PATTERN_OK, PATTERN_ALIEN, PATTERN_MISPLACED, PATTERN_STALE,
		     PATTERN_DAMAGED };

struct pattern_result {
	enum pattern_fault fault;
	uint64_t	sector;		/* the first wrong one */
	uint64_t	found_sector;
	uint32_t	found_gen;
};

void pattern_fill(void *buf, size_t len, uint64_t sector, uint64_t seed, uint32_t gen);
bool pattern_check(const void *buf, size_t len, uint64_t sector, uint64_t seed,
		   uint32_t gen, struct pattern_result *res);
bool pattern_zero(const void *buf, size_t len);
const char *pattern_words(const struct pattern_result *res, char *out, size_t len);
uint64_t mix64(uint64_t x);

/* What is known of a block's content */
#define GEN_UNKNOWN	0U
#define GEN_ZERO	0x7fffffffU
#define GEN_BUSY	0x80000000U	/* in flight: choose another */

/* The part of a target that belongs to one worker */
struct region {
	struct target	*t;
	unsigned int	index;		/* registered file */
	uint64_t	first;
	uint64_t	blocks;
	uint64_t	cursor;
	uint32_t	*gen;		/* per block, with --verify */
	uint32_t	next_gen;
};

struct slot {
	enum op		op;
	struct region	*r;
	uint64_t	block;
	uint64_t	start;		/* ticks */
	uint32_t	gen;		/* verify: what a read must find, a write leaves */
	unsigned int	index;
	uint8_t		*buf;
	struct iovec	*iov;
	struct virtio_blk_discard_write_zeroes range;
};

struct run;

struct load {
	const struct options *o;
	struct region	regions[MAX_TARGETS];
	unsigned int	nregions;
	unsigned int	next_region;
	uint64_t	rng;
	uint64_t	left;		/* I/Os still to start */
	unsigned int	weights;
};

int load_init(struct load *l, const struct options *o, unsigned int thread);
int load_add_target(struct load *l, struct target *t, unsigned int share, unsigned int shares);
bool load_next(struct load *l, struct slot *s);
bool load_done(struct load *l, struct slot *s, bool ok, struct pattern_result *res);
int load_final(struct load *l, struct run *run);
void load_free(struct load *l);
uint64_t slot_byte(const struct slot *s, const struct options *o);
extern const char *const op_names[OP_NR];

/* Counters that the second's line reads while the worker runs */
struct counters {
	uint64_t	submitted;
	uint64_t	done;
	uint64_t	calls;
	uint64_t	ops[OP_NR];
	uint64_t	errors;
	uint64_t	mismatches;
};

struct worker {
	const struct options *o;
	unsigned int	index;
	pthread_t	thread;
	int		tid;
	int		cpu;		/* -1: not pinned */
	struct io_uring	ring;
	bool		ring_up;
	bool		cqe32;
	unsigned int	setup_flags;
	struct load	load;
	struct slot	*slots;
	struct slot	**idle;		/* stack of free slots */
	unsigned int	nidle;
	uint8_t		*area;		/* all buffers */
	size_t		area_len;
	struct iovec	*iovs;
	unsigned int	inflight;
	struct counters	c;
	struct hist	hist;
	double		due;		/* open loop: ticks of the next I/O */
	uint64_t	late_max;	/* ticks */
	volatile bool	stop;
	volatile bool	measuring;
	volatile bool	ready;
	volatile bool	ended;
	volatile bool	failed;		/* set-up failed, or an I/O did */
	struct run	*run;
};

int ring_up(struct worker *w);
void ring_down(struct worker *w);
void ring_prep(struct worker *w, struct slot *s);
int ring_submit(struct worker *w, unsigned int wait);
int ring_submit_look(struct worker *w);
int ring_submit_until(struct worker *w, unsigned int wait, uint64_t ns);

void *worker_main(void *arg);
void worker_clean(struct worker *w);
void worker_complete(struct worker *w, struct slot *s, int res, uint64_t status);
void worker_trouble(struct worker *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void sync_loop(struct worker *w);
void aio_loop(struct worker *w);

struct run {
	struct options	*o;
	struct target	*targets;
	unsigned int	ntargets;
	struct worker	*workers;
	double		ramp;		/* seconds not counted */
	bool		quiet;		/* no line a second */
	pthread_t	main;		/* gets SIGUSR1 when a worker has news */
	pthread_mutex_t	lock;
	unsigned int	reported;	/* error lines so far */
	volatile bool	go;
	volatile bool	cancel;		/* before go */
	const char	*reason;

	/* results, of the time after the ramp */
	double		seconds;
	double		max_iops;
	struct counters	counted;
	struct counters	total;		/* with ramp and drain */
	struct hist	hist;
	double		late_max_ns;
	uint64_t	to_verify;	/* blocks of known content, and of them */
	uint64_t	verified;	/* read back */
	bool		stopped_by_signal;
	bool		failed;
};

int run_once(struct run *r);
bool run_verify_ends(const struct run *r);
void run_signals(void);
extern volatile bool run_interrupted;

int compare_run(struct options *o);

void report_second(FILE *f, const struct options *o, const struct counters *d, double seconds);
void report_text(FILE *f, const struct run *r);
void report_json(FILE *f, const struct run *r);
double syscalls_per_io(const struct counters *c);

/* words.c */
void explain_open(const char *path, int err);
void explain_ring(const struct worker *w, int err);
void explain_buffers(const struct worker *w, int err);
void explain_io(const struct worker *w, const struct slot *s, int res, uint64_t status,
		char *out, size_t len);
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void remark(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline unsigned int min_u(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

#endif /* VBLK_TOOL_H */
