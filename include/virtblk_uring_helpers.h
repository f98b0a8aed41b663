/* SPDX-License-Identifier: MIT */
/*
 * Helpers for programs that talk to /dev/vdXc0 with liburing (2.3 or newer)
 *
 * Header-only, for C and C++ (as liburing itself: GNU C or _GNU_SOURCE, C++11);
 * examples/ shows it at work. What the commands do
 * and need is said in <linux/virtio_blk_uring.h>; where a function here says
 * nothing about a limit, that is the place, and virtblk_query_info() has the
 * numbers of the disk.
 *
 *	sqe = io_uring_get_sqe(&ring);
 *	virtblk_prep_read(sqe, virtblk_form(&ring), fd, sector, buf, bytes);
 *	io_uring_sqe_set_data(sqe, something);		after it, not before
 *	io_uring_submit_and_wait(&ring, 1);
 *	io_uring_peek_cqe(&ring, &cqe);
 *	r = virtblk_result(&ring, cqe);
 *	if (r.err)
 *		puts(virtblk_result_words(r, words, sizeof(words)));
 *
 * Sectors are 512 bytes, whatever the disk's block size. An SQE prepared here
 * may be given flags (IOSQE_ASYNC, IOSQE_IO_LINK, IOSQE_FIXED_FILE ...) and user
 * data afterwards; the functions begin by clearing it.
 */
#ifndef VIRTBLK_URING_HELPERS_H
#define VIRTBLK_URING_HELPERS_H

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <liburing.h>
#include <linux/virtio_blk_uring.h>

/* Newer than liburing 2.3: rings with CQEs of both sizes */
#define VIRTBLK_CQE_F_32	(1U << 15)

/* ---- the disk ---- */

/* What the disk can do, and its limits: 0, or a negative errno (-ENOTTY: no such node) */
static inline int virtblk_query_info(int fd, struct virtblk_uring_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ioctl(fd, VIRTBLK_IOCTL_INFO, info) ? -errno : 0;
}

/* Does the disk accept this VIRTIO_BLK_T_* (from a descriptor open for it)? */
static inline int virtblk_accepts(const struct virtblk_uring_info *info, unsigned int type)
{
	return type < 64 && (info->commands >> type & 1);
}

/* ---- the form of the SQE ---- */

/*
 * VIRTBLK_SQE128 works on every kernel and needs a ring with IORING_SETUP_SQE128
 * (a smaller SQE would be overrun; in a mixed ring, get a 128-byte SQE and set
 * sqe->opcode to IORING_OP_URING_CMD128 afterwards). VIRTBLK_SQE64 works in
 * every ring, where virtblk_setup_flags() says so.
 */
enum virtblk_form { VIRTBLK_SQE128, VIRTBLK_SQE64 };

/* The form that goes with a ring */
static inline enum virtblk_form virtblk_form(const struct io_uring *ring)
{
	return ring->flags & IORING_SETUP_SQE128 ? VIRTBLK_SQE128 : VIRTBLK_SQE64;
}

/*
 * The flags a ring needs for this disk: 128-byte SQEs only where the driver takes
 * no shorter ones, and 32-byte CQEs for the device's status and ZONE_APPEND's
 * sector. With IORING_SETUP_IOPOLL added completion is polled, if info->poll_queues
 * isn't 0.
 */
static inline unsigned int virtblk_setup_flags(const struct virtblk_uring_info *info)
{
	if (info->driver_features & VIRTBLK_URING_F_IO64)
		return IORING_SETUP_CQE32;
	return IORING_SETUP_CQE32 | IORING_SETUP_SQE128;
}

/* ---- any command ---- */

static inline void virtblk_prep_op(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				   int vec, uint32_t type, uint64_t sector,
				   const void *data, uint32_t len)
{
	char *at = (char *)sqe + offsetof(struct io_uring_sqe, cmd);
	struct virtblk_uring_cmd64 cmd64;
	struct virtblk_uring_cmd cmd;

	/* Field by field: a memset() of what may be NULL makes compilers warn */
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = 0;
	sqe->ioprio = 0;
	sqe->fd = fd;
	sqe->off = 0;
	sqe->addr = 0;
	sqe->len = 0;
	sqe->uring_cmd_flags = 0;
	sqe->user_data = 0;
	sqe->buf_index = 0;
	sqe->personality = 0;
	sqe->file_index = 0;
	if (form == VIRTBLK_SQE128) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.type = type;
		cmd.sector = sector;
		cmd.data = (uintptr_t)data;
		cmd.data_len = len;
		memcpy(at, &cmd, sizeof(cmd));
		sqe->cmd_op = vec ? VIRTBLK_URING_CMD_IO_VEC : VIRTBLK_URING_CMD_IO;
	} else {
		memset(&cmd64, 0, sizeof(cmd64));
		cmd64.type = type;
		cmd64.sector = sector;
		memcpy(at, &cmd64, sizeof(cmd64));
		sqe->addr = (uintptr_t)data;
		sqe->len = len;
		sqe->cmd_op = vec ? VIRTBLK_URING_CMD_IO64_VEC : VIRTBLK_URING_CMD_IO64;
	}
}

/* A command of any type with one buffer, or none (NULL, 0) */
static inline void virtblk_prep(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				uint32_t type, uint64_t sector, const void *buf, uint32_t bytes)
{
	virtblk_prep_op(sqe, form, fd, 0, type, sector, buf, bytes);
}

/* The same with several buffers; iov must stay until the command is submitted */
static inline void virtblk_prepv(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				 uint32_t type, uint64_t sector,
				 const struct iovec *iov, unsigned int nr)
{
	virtblk_prep_op(sqe, form, fd, 1, type, sector, iov, nr);
}

/*
 * To a prepared SQE: the buffer (or all the iovecs, where the disk's driver_features
 * have VIRTBLK_URING_F_FIXED_VEC) lies in registered buffer number index
 */
static inline void virtblk_set_fixed(struct io_uring_sqe *sqe, uint16_t index)
{
	sqe->uring_cmd_flags |= IORING_URING_CMD_FIXED;
	sqe->buf_index = index;
}

/* To a prepared SQE: an I/O priority, IOPRIO_PRIO_VALUE(class, level) */
static inline void virtblk_set_ioprio(struct io_uring_sqe *sqe, uint16_t ioprio)
{
	char *at = (char *)sqe + offsetof(struct io_uring_sqe, cmd);
	uint32_t ioprio32 = ioprio;

	if (sqe->cmd_op <= VIRTBLK_URING_CMD_IO_VEC)
		memcpy(at + offsetof(struct virtblk_uring_cmd, ioprio), &ioprio32, 4);
	else
		memcpy(at + offsetof(struct virtblk_uring_cmd64, ioprio), &ioprio, 2);
}

/* ---- reading and writing: bytes in whole logical blocks ---- */

/* Read into buf */
static inline void virtblk_prep_read(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				     uint64_t sector, void *buf, uint32_t bytes)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_IN, sector, buf, bytes);
}

/* Read into several buffers */
static inline void virtblk_prep_readv(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				      uint64_t sector, const struct iovec *iov, unsigned int nr)
{
	virtblk_prepv(sqe, form, fd, VIRTIO_BLK_T_IN, sector, iov, nr);
}

/* Read into a part of a registered buffer */
static inline void virtblk_prep_read_fixed(struct io_uring_sqe *sqe, enum virtblk_form form,
					   int fd, uint64_t sector, void *buf, uint32_t bytes,
					   uint16_t index)
{
	virtblk_prep_read(sqe, form, fd, sector, buf, bytes);
	virtblk_set_fixed(sqe, index);
}

/* Read into several parts of a registered buffer; see virtblk_set_fixed() */
static inline void virtblk_prep_readv_fixed(struct io_uring_sqe *sqe, enum virtblk_form form,
					    int fd, uint64_t sector, const struct iovec *iov,
					    unsigned int nr, uint16_t index)
{
	virtblk_prep_readv(sqe, form, fd, sector, iov, nr);
	virtblk_set_fixed(sqe, index);
}

/* Write buf; it is on stable storage when a flush sent after its completion is done */
static inline void virtblk_prep_write(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				      uint64_t sector, const void *buf, uint32_t bytes)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_OUT, sector, buf, bytes);
}

/* Write several buffers */
static inline void virtblk_prep_writev(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				       uint64_t sector, const struct iovec *iov, unsigned int nr)
{
	virtblk_prepv(sqe, form, fd, VIRTIO_BLK_T_OUT, sector, iov, nr);
}

/* Write a part of a registered buffer */
static inline void virtblk_prep_write_fixed(struct io_uring_sqe *sqe, enum virtblk_form form,
					    int fd, uint64_t sector, const void *buf,
					    uint32_t bytes, uint16_t index)
{
	virtblk_prep_write(sqe, form, fd, sector, buf, bytes);
	virtblk_set_fixed(sqe, index);
}

/* Write several parts of a registered buffer; see virtblk_set_fixed() */
static inline void virtblk_prep_writev_fixed(struct io_uring_sqe *sqe, enum virtblk_form form,
					     int fd, uint64_t sector, const struct iovec *iov,
					     unsigned int nr, uint16_t index)
{
	virtblk_prep_writev(sqe, form, fd, sector, iov, nr);
	virtblk_set_fixed(sqe, index);
}

/* Make all completed writes durable; -EOPNOTSUPP if the disk has no cache to flush */
static inline void virtblk_prep_flush(struct io_uring_sqe *sqe, enum virtblk_form form, int fd)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_FLUSH, 0, NULL, 0);
}

/* ---- ranges of sectors, no data ---- */

/* One range; flags 0, or VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP for write-zeroes */
static inline struct virtio_blk_discard_write_zeroes
virtblk_range(uint64_t sector, uint32_t sectors, uint32_t flags)
{
	struct virtio_blk_discard_write_zeroes r;

	r.sector = htole64(sector);
	r.num_sectors = htole32(sectors);
	r.flags = htole32(flags);
	return r;
}

/* The contents of nr ranges may be forgotten */
static inline void virtblk_prep_discard(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
					const struct virtio_blk_discard_write_zeroes *ranges,
					unsigned int nr)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_DISCARD, 0, ranges,
		     (uint32_t)(nr * sizeof(*ranges)));
}

/* nr ranges read as zeroes */
static inline void virtblk_prep_write_zeroes(struct io_uring_sqe *sqe, enum virtblk_form form,
					     int fd,
					     const struct virtio_blk_discard_write_zeroes *ranges,
					     unsigned int nr)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_WRITE_ZEROES, 0, ranges,
		     (uint32_t)(nr * sizeof(*ranges)));
}

/* nr ranges are erased beyond recovery */
static inline void virtblk_prep_secure_erase(struct io_uring_sqe *sqe, enum virtblk_form form,
					     int fd,
					     const struct virtio_blk_discard_write_zeroes *ranges,
					     unsigned int nr)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_SECURE_ERASE, 0, ranges,
		     (uint32_t)(nr * sizeof(*ranges)));
}

/* ---- what the disk says about itself ---- */

/* The disk's ID: up to 20 bytes, with a NUL only if it is shorter */
static inline void virtblk_prep_get_id(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				       char id[VIRTIO_BLK_ID_BYTES])
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_GET_ID, 0, id, VIRTIO_BLK_ID_BYTES);
}

/* As the device writes it: little-endian, to be read with virtblk_le16() */
struct virtblk_lifetime {
	uint16_t pre_eol_info;		/* 1 normal, 2: 80 % of spare blocks used, 3: 90 % */
	uint16_t device_lifetime_est_typ_a; /* in tenths, 11: beyond; A: SLC */
	uint16_t device_lifetime_est_typ_b; /* B: MLC */
};

static inline uint16_t virtblk_le16(uint16_t le)
{
	return le16toh(le);
}

/* How worn the disk is */
static inline void virtblk_prep_get_lifetime(struct io_uring_sqe *sqe, enum virtblk_form form,
					     int fd, struct virtblk_lifetime *lifetime)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_GET_LIFETIME, 0, lifetime, sizeof(*lifetime));
}

/* ---- zones ---- */

/* Write buf at the write pointer of the zone at zone_sector; .result says where */
static inline void virtblk_prep_zone_append(struct io_uring_sqe *sqe, enum virtblk_form form,
					    int fd, uint64_t zone_sector, const void *buf,
					    uint32_t bytes)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_ZONE_APPEND, zone_sector, buf, bytes);
}

/* The same with several buffers; both may be followed by virtblk_set_fixed() */
static inline void virtblk_prep_zone_appendv(struct io_uring_sqe *sqe, enum virtblk_form form,
					     int fd, uint64_t zone_sector,
					     const struct iovec *iov, unsigned int nr)
{
	virtblk_prepv(sqe, form, fd, VIRTIO_BLK_T_ZONE_APPEND, zone_sector, iov, nr);
}

/* Open, close, finish or reset the zone at zone_sector: VIRTIO_BLK_T_ZONE_OPEN ... _RESET */
static inline void virtblk_prep_zone(struct io_uring_sqe *sqe, enum virtblk_form form, int fd,
				     uint32_t type, uint64_t zone_sector)
{
	virtblk_prep(sqe, form, fd, type, zone_sector, NULL, 0);
}

/* Reset every zone that isn't empty */
static inline void virtblk_prep_zone_reset_all(struct io_uring_sqe *sqe, enum virtblk_form form,
					       int fd)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_ZONE_RESET_ALL, 0, NULL, 0);
}

/* A buffer of this size takes a report of so many zones */
#define VIRTBLK_REPORT_BYTES(zones)	(64 + 64 * (zones))

/* Report the zones from the one with this sector on, as many as fit */
static inline void virtblk_prep_zone_report(struct io_uring_sqe *sqe, enum virtblk_form form,
					    int fd, uint64_t sector, void *report,
					    uint32_t bytes)
{
	virtblk_prep(sqe, form, fd, VIRTIO_BLK_T_ZONE_REPORT, sector, report, bytes);
}

/* Zone types and states of virtio 1.3 (some <linux/virtio_blk.h> lack them) */
enum virtblk_zone_type {
	VIRTBLK_ZONE_CONV = 1, VIRTBLK_ZONE_SEQ_REQUIRED = 2, VIRTBLK_ZONE_SEQ_PREFERRED = 3
};

enum virtblk_zone_state {
	VIRTBLK_ZONE_NOT_WP = 0, VIRTBLK_ZONE_EMPTY = 1, VIRTBLK_ZONE_IMPLICIT_OPEN = 2,
	VIRTBLK_ZONE_EXPLICIT_OPEN = 3, VIRTBLK_ZONE_CLOSED = 4, VIRTBLK_ZONE_READ_ONLY = 13,
	VIRTBLK_ZONE_FULL = 14, VIRTBLK_ZONE_OFFLINE = 15
};

/* One zone of a report, in sectors and in the CPU's byte order */
struct virtblk_zone {
	uint64_t capacity;	/* that can be written; at most the zone's size */
	uint64_t start;
	uint64_t wp;		/* the write pointer */
	uint8_t  type;		/* enum virtblk_zone_type */
	uint8_t  state;		/* enum virtblk_zone_state */
};

static inline uint64_t virtblk_report_word(const void *report, size_t offset)
{
	uint64_t le;

	memcpy(&le, (const char *)report + offset, sizeof(le));
	return le64toh(le);
}

/* How many zones a report of that many bytes holds; 0: sector was the disk's end */
static inline unsigned int virtblk_report_zones(const void *report, uint32_t bytes)
{
	uint64_t nr = virtblk_report_word(report, 0), room = bytes < 64 ? 0 : bytes / 64 - 1;

	return (unsigned int)(nr < room ? nr : room);
}

/* Zone number i of a report, from 0 */
static inline struct virtblk_zone virtblk_report_zone(const void *report, unsigned int i)
{
	size_t at = 64 + (size_t)i * 64;
	struct virtblk_zone z;

	z.capacity = virtblk_report_word(report, at);
	z.start = virtblk_report_word(report, at + 8);
	z.wp = virtblk_report_word(report, at + 16);
	z.type = ((const uint8_t *)report)[at + 24];
	z.state = ((const uint8_t *)report)[at + 25];
	return z;
}

static inline const char *virtblk_zone_state_name(unsigned int state)
{
	switch (state) {
	case VIRTBLK_ZONE_NOT_WP:		return "without write pointer";
	case VIRTBLK_ZONE_EMPTY:		return "empty";
	case VIRTBLK_ZONE_IMPLICIT_OPEN:	return "implicitly open";
	case VIRTBLK_ZONE_EXPLICIT_OPEN:	return "explicitly open";
	case VIRTBLK_ZONE_CLOSED:		return "closed";
	case VIRTBLK_ZONE_READ_ONLY:		return "read-only";
	case VIRTBLK_ZONE_FULL:			return "full";
	case VIRTBLK_ZONE_OFFLINE:		return "offline";
	default:				return "in an unknown state";
	}
}

/* ---- completion ---- */

struct virtblk_result {
	int	 err;		/* 0: done; else an errno (EIO, not -EIO) */
	int	 answered;	/* the device answered. If not: refused before it, or sent and
				 * lost with the disk; with 16-byte CQEs nobody knows */
	uint32_t status;	/* VIRTIO_BLK_S_*, or VIRTBLK_URING_S_UNWRITTEN; if answered */
	uint64_t result;	/* ZONE_APPEND: the sector written; else 0 */
};

/* What a CQE says. The CQE isn't marked as seen */
static inline struct virtblk_result virtblk_result(const struct io_uring *ring,
						   const struct io_uring_cqe *cqe)
{
	struct virtblk_result r;
	uint64_t big = 0;

	memset(&r, 0, sizeof(r));
	if (ring->flags & IORING_SETUP_CQE32 || cqe->flags & VIRTBLK_CQE_F_32)
		memcpy(&big, (const char *)cqe + sizeof(*cqe), sizeof(big));
	if (cqe->res >= 0) {
		r.answered = 1;
		r.result = big;
	} else {
		r.err = -cqe->res;
		r.answered = big != 0;
		r.status = (uint32_t)big;
	}
	return r;
}

static inline const char *virtblk_status_name(uint32_t status)
{
	switch (status) {
	case VIRTIO_BLK_S_OK:			return "OK";
	case VIRTIO_BLK_S_IOERR:		return "IOERR";
	case VIRTIO_BLK_S_UNSUPP:		return "UNSUPP";
	case VIRTIO_BLK_S_ZONE_INVALID_CMD:	return "ZONE_INVALID_CMD";
	case VIRTIO_BLK_S_ZONE_UNALIGNED_WP:	return "ZONE_UNALIGNED_WP";
	case VIRTIO_BLK_S_ZONE_OPEN_RESOURCE:	return "ZONE_OPEN_RESOURCE";
	case VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE:	return "ZONE_ACTIVE_RESOURCE";
	case VIRTBLK_URING_S_UNWRITTEN:		return "without a status";
	default:				return "with an unknown status";
	}
}

/* The result as a sentence for people, in words; returns words */
static inline char *virtblk_result_words(struct virtblk_result r, char *words, size_t size)
{
	if (!r.err)
		snprintf(words, size, "done");
	else if (r.answered)
		snprintf(words, size, "the device answered %s (%u): %s",
			 virtblk_status_name(r.status), r.status, strerror(r.err));
	else
		snprintf(words, size, "no answer of the device: %s", strerror(r.err));
	return words;
}

#endif /* VIRTBLK_URING_HELPERS_H */
