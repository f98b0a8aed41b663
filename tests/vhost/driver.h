/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver's side of virtqueues in user space, against /dev/vhost-blk: this
 * program is the hypervisor and its guest at once. Guest memory is one area
 * with its own addresses; rings and buffers lie in it.
 *
 *	MEM_BASE	8 KiB of rings for each queue, then buffers to MEM_SIZE
 *
 * Before and behind it lies memory that is this program's but not the guest's:
 * what vhost-blk changes there it has no right to (mem_intact()).
 */
#ifndef VHOST_DRIVER_H
#define VHOST_DRIVER_H

#include "../uring/helper.h"

#include <linux/vhost_blk.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ring.h>

#include "worker.h"

#define MEM_BASE	0x40000000ULL	/* the guest's address of its memory */
#define MEM_SIZE	(8 * MiB)
#define MEM_MARGIN	(64 * KiB)
#define RING_AREA	(16 * KiB)
#define MAX_QUEUES	64
#define MAX_DESC	300
#define QUEUE_SIZE	64

#define F(bit)		(1ULL << (bit))
#define FEATURES	(F(VIRTIO_F_VERSION_1) | F(VIRTIO_RING_F_INDIRECT_DESC) | \
			 F(VIRTIO_BLK_F_FLUSH) | F(VIRTIO_BLK_F_DISCARD) | \
			 F(VIRTIO_BLK_F_WRITE_ZEROES) | F(VIRTIO_BLK_F_MQ))

#define W		VRING_DESC_F_WRITE
#define UNANSWERED	0xfe		/* what status bytes are preset to */

struct queue {
	unsigned int	num;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t	next_head;	/* heads are taken in turn */
	uint16_t	avail_idx, seen;
	int		kick, call, err;
};

struct vdev {
	int		fd;
	uint64_t	features;
	bool		kthread;	/* the worker is a kernel thread, as before 6.4 */
	char		*mem;
	unsigned int	nq;
	struct queue	q[MAX_QUEUES];
};

/* A descriptor chain in the making; n entries of the table */
struct chain {
	unsigned int	n;
	struct vring_desc d[MAX_DESC];
};

/* ---- the device ---- */

int vhost_try(struct vdev *v, unsigned long cmd, void *arg);	/* -errno */
void vhost_do(struct vdev *v, unsigned long cmd, void *arg, const char *what);
/* Owner, features, memory table and rings; everything but the backend */
void dev_open(struct vdev *v, unsigned int nq, uint64_t features);
void dev_rings(struct vdev *v);		/* empty rings, to be set anew */
void dev_table(struct vdev *v);
int dev_try_backend(struct vdev *v, int fd);
void dev_start(struct vdev *v, int fd);
void dev_stop(struct vdev *v);
void dev_settle(struct vdev *v);	/* the workers have looked at what the start gave them */
void dev_again(struct vdev *v, int fd);	/* stop, empty rings, start */
int open_backend(const char *path, int flags);
void mem_intact(struct vdev *v);

static inline char *mem_at(struct vdev *v, uint64_t addr)
{
	return v->mem + (addr - MEM_BASE);
}

/* The n-th buffer of 256 KiB */
static inline uint64_t buf_at(unsigned int n)
{
	return MEM_BASE + MAX_QUEUES * RING_AREA + n * 256 * KiB;
}

/* ---- requests ---- */

void chain_add(struct chain *c, uint64_t addr, uint32_t len, uint16_t flags);
/* Header at hdr, data in pieces of at most piece bytes, status byte at hdr + 16 */
void chain_cmd(struct vdev *v, struct chain *c, uint64_t hdr, uint32_t type, uint64_t sector,
	       uint64_t data, uint32_t len, uint32_t piece);
uint16_t queue_put(struct vdev *v, unsigned int nq, const struct chain *c);
void queue_indirect(struct vdev *v, unsigned int nq, const struct chain *c, uint64_t table);
void queue_offer(struct queue *q, uint16_t head);	/* into the avail ring */
void queue_kick(struct queue *q);
/* Awaits n answers; returns how many came within ms */
unsigned int queue_wait(struct queue *q, unsigned int n, unsigned int ms);
bool event_within(int fd, unsigned int ms);	/* and takes it */
/* One command and its status byte, UNANSWERED after 5 s */
uint8_t command(struct vdev *v, uint32_t type, uint64_t sector, uint64_t data, uint32_t len);
uint8_t send_chain(struct vdev *v, const struct chain *c, uint64_t status);

#endif
