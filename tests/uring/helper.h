/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of /dev/vdXc0 share
 *
 * A behaviour is a function that returns when all is right and otherwise leaves
 * by fail() or skip(). t_run() runs each in a process of its own, so that a
 * crash, a hang or a ring left open in one doesn't touch the next, and prints
 * the one line that stands for it: PASS, FAIL or SKIP.
 */
#ifndef URING_HELPER_H
#define URING_HELPER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include <liburing.h>

#include <linux/virtio_blk_uring.h>

#ifndef IORING_SETUP_NO_MMAP
#define IORING_SETUP_NO_MMAP		(1U << 14)
#endif
#ifndef IORING_SETUP_REGISTERED_FD_ONLY
#define IORING_SETUP_REGISTERED_FD_ONLY	(1U << 15)
#endif
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY		(1U << 16)
#endif
#ifndef IORING_SETUP_HYBRID_IOPOLL
#define IORING_SETUP_HYBRID_IOPOLL	(1U << 17)
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define KiB		1024ULL
#define MiB		(1024 * KiB)
#define GiB		(1024 * MiB)
#define TiB		(1024 * GiB)
#define WIDE		(IORING_SETUP_SQE128 | IORING_SETUP_CQE32)

/* The disk under test; t_start() fills it in */
struct disk {
	char		name[32];
	char		blk[64];
	char		chr[64];
	char		serial[32];
	uint64_t	bytes;
	unsigned int	lbs;
	bool		readonly;
	struct virtblk_uring_info info;
};

extern struct disk disk;
extern unsigned int kernel_release;	/* 612 for Linux 6.12 */
extern unsigned int soak_minutes;	/* 0: the short form */

void disk_open(const char *name);

/* ---- outcomes ---- */

/* Reads the options, refuses a disk that isn't marked as scratch */
void t_start(int argc, char **argv, const char *about);
void t_start_any(int argc, char **argv, const char *about);
int t_end(void);
void t_limit(unsigned int seconds);
/* How often, or how long: usually, and in a long form of half an hour */
unsigned int t_rounds(unsigned int usually, unsigned int in_half_an_hour);
void t_run(const char *name, void (*fn)(const void *arg), const void *arg);
const char *t_disk(unsigned int n);	/* n-th disk named on the command line */
const char *t_self(void);		/* this program, for exec */

__attribute__((noreturn, format(printf, 1, 2)))
void fail(const char *fmt, ...);
__attribute__((noreturn, format(printf, 1, 2)))
void skip(const char *fmt, ...);
__attribute__((noreturn, format(printf, 1, 2)))
void die(const char *fmt, ...);

/* "READ: got -EIO, wanted 0" */
__attribute__((format(printf, 3, 4)))
void want_res(int got, int want, const char *fmt, ...);
__attribute__((format(printf, 3, 4)))
void want_eq(uint64_t got, uint64_t want, const char *fmt, ...);
const char *err_name(int err);

/* ---- commands and rings ---- */

struct vcmd {
	int		fd;
	uint32_t	op;		/* VIRTBLK_URING_CMD_* */
	uint32_t	type;		/* VIRTIO_BLK_T_* */
	uint32_t	ioprio;
	uint64_t	sector;
	uint64_t	data;
	uint32_t	len;
	uint32_t	flag;
	uint8_t		sqe_flags;
	uint32_t	uring_flags;
	uint16_t	buf_index;
	uint64_t	user_data;
};

struct answer {
	int		res;
	uint64_t	big0;
	uint64_t	user_data;
};

struct ring {
	struct io_uring	u;
	unsigned int	setup;
};

static inline struct vcmd vcmd(int fd, uint32_t op, uint32_t type,
			       uint64_t sector, const void *data, uint32_t len)
{
	return (struct vcmd){ .fd = fd, .op = op, .type = type,
		.sector = sector, .data = (uintptr_t)data, .len = len };
}

static inline bool op_is_64(uint32_t op)
{
	return op == VIRTBLK_URING_CMD_IO64 || op == VIRTBLK_URING_CMD_IO64_VEC;
}

int ring_try(struct ring *r, unsigned int entries, unsigned int setup);
void ring_open(struct ring *r, unsigned int entries, unsigned int setup);
void ring_close(struct ring *r);
void sqe_fill(struct io_uring_sqe *sqe, const struct vcmd *c, bool wide);
struct io_uring_sqe *ring_sqe(struct ring *r);	/* all zero */
struct io_uring_sqe *ring_put(struct ring *r, const struct vcmd *c);
void ring_submit(struct ring *r);
struct answer ring_take(struct ring *r);
bool ring_take_within(struct ring *r, struct answer *a, unsigned int ms);
struct answer ring_do(struct ring *r, const struct vcmd *c);
/* n reads of 4 KiB, stride sectors apart, into buf; user_data 0, 1... */
void ring_put_reads(struct ring *r, int fd, uint64_t off, unsigned int stride,
		    char *buf, unsigned int n);
void ring_enter(struct ring *r);	/* submits without reaping by polling */
__attribute__((format(printf, 3, 4)))
void ring_want_done(struct ring *r, unsigned int n, const char *fmt, ...);

bool has_io64(void);
bool has_fixed_vec(void);
bool with_node(void);	/* not under the in-tree driver: only the block side */
bool has_poll(void);
void need_poll(unsigned int setup);	/* or the behaviour is skipped */
bool has_command(unsigned int type);

/* ---- the node and the block device ---- */

int open_chr(int flags);
int open_blk(int flags);
void blk_read(uint64_t off, void *buf, size_t len);	/* O_DIRECT */
void blk_write(uint64_t off, const void *buf, size_t len);
void chr_read(uint64_t off, void *buf, size_t len);
void chr_write(uint64_t off, const void *buf, size_t len);
uint64_t sys_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool sys_string(char *out, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int sys_write(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int module_load(const char *file, const char *params);
int module_unload(const char *name);
uint64_t node_commands(void);	/* commands the node has sent, of its stat */

/* ---- memory ---- */

void *map_pages(size_t len);		/* with a forbidden page on both sides */
void *map_huge(size_t len);		/* hugetlb; skips where there are none */
void pattern_fill(void *buf, size_t len, uint64_t off, uint64_t seed);
/* the offset in buf of the first wrong byte, or -1 */
long pattern_check(const void *buf, size_t len, uint64_t off, uint64_t seed);
void want_pattern(const void *buf, size_t len, uint64_t off, uint64_t seed,
		  const char *what);
void want_byte(const void *buf, size_t len, int byte, const char *what);
uint64_t mix64(uint64_t x);
uint64_t random_next(uint64_t *state);

/*
 * Leaves a line "offset length seed" for the host, which compares it with the
 * image file when the guest is gone.
 */
void expect_on_image(uint64_t off, uint64_t len, uint64_t seed);

/* ---- time, processes, kernel log ---- */

uint64_t now_ms(void);
void pause_ms(unsigned int ms);		/* between two looks at a state */
long pinned_pages(void);		/* pinned for I/O in the whole system */
long vm_pin_kb(int pid);
long kernel_log_lines(void);
void drop_capabilities(void);		/* this process becomes nobody */

#endif
