// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the device ---- */

int vhost_try(struct vdev *v, unsigned long cmd, void *arg)
{
	return ioctl(v->fd, cmd, arg) < 0 ? -errno : 0;
}

void vhost_do(struct vdev *v, unsigned long cmd, void *arg, const char *what)
{
	want_res(vhost_try(v, cmd, arg), 0, "%s", what);
}

void dev_table(struct vdev *v)
{
	struct {
		struct vhost_memory m;
		struct vhost_memory_region r[2];
	} table = {
		/* Two regions side by side: buffers may lie across the border. */
		.m.nregions = 2,
		.r[0] = { MEM_BASE, MEM_SIZE / 2, (uintptr_t)v->mem, 0 },
		.r[1] = { MEM_BASE + MEM_SIZE / 2, MEM_SIZE / 2, (uintptr_t)v->mem + MEM_SIZE / 2, 0 },
	};

	vhost_do(v, VHOST_SET_MEM_TABLE, &table, "SET_MEM_TABLE");
}

static void ring_init(struct vdev *v, unsigned int i)
{
	struct queue *q = &v->q[i];
	char *ring = v->mem + i * RING_AREA;

	memset(ring, 0, RING_AREA);
	q->desc = (void *)ring;
	q->avail = (void *)(ring + 8 * KiB);
	q->used = (void *)(ring + 12 * KiB);
	q->next_head = q->avail_idx = q->seen = 0;
}

void dev_rings(struct vdev *v)
{
	for (unsigned int i = 0; i < v->nq; i++) {
		struct queue *q = &v->q[i];
		struct vhost_vring_state num = { i, q->num }, base = { i, 0 };
		struct vhost_vring_addr addr = { .index = i };

		ring_init(v, i);
		addr.desc_user_addr = (uintptr_t)q->desc;
		addr.avail_user_addr = (uintptr_t)q->avail;
		addr.used_user_addr = (uintptr_t)q->used;
		vhost_do(v, VHOST_SET_VRING_NUM, &num, "SET_VRING_NUM");
		vhost_do(v, VHOST_SET_VRING_BASE, &base, "SET_VRING_BASE");
		vhost_do(v, VHOST_SET_VRING_ADDR, &addr, "SET_VRING_ADDR");
	}
}

static void queue_eventfds(struct vdev *v, unsigned int i)
{
	struct queue *q = &v->q[i];
	struct vhost_vring_file f = { .index = i };

	q->kick = f.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vhost_do(v, VHOST_SET_VRING_KICK, &f, "SET_VRING_KICK");
	q->call = f.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vhost_do(v, VHOST_SET_VRING_CALL, &f, "SET_VRING_CALL");
	q->err = f.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vhost_do(v, VHOST_SET_VRING_ERR, &f, "SET_VRING_ERR");
}

void dev_settle(struct vdev *v)
{
	for (unsigned int i = 0; i < v->nq; i++) {
		struct vhost_vring_file f = { i, -1 };

		/* vhost flushes its workers when a kick eventfd goes */
		vhost_do(v, VHOST_SET_VRING_KICK, &f, "SET_VRING_KICK -1");
		f.fd = v->q[i].kick;
		vhost_do(v, VHOST_SET_VRING_KICK, &f, "SET_VRING_KICK");
	}
}

static void mem_map(struct vdev *v)
{
	char *all = map_pages(MEM_SIZE + 2 * MEM_MARGIN);

	v->mem = all + MEM_MARGIN;
	memset(all, 0xc5, MEM_MARGIN);
	memset(v->mem + MEM_SIZE, 0xc5, MEM_MARGIN);
}

void mem_intact(struct vdev *v)
{
	want_byte(v->mem - MEM_MARGIN, MEM_MARGIN, 0xc5, "memory before the guest's");
	want_byte(v->mem + MEM_SIZE, MEM_MARGIN, 0xc5, "memory behind the guest's");
}

void dev_open(struct vdev *v, unsigned int nq, uint64_t features)
{
	uint32_t n = nq;
	uint8_t fork_owner = 0;

	v->fd = open("/dev/vhost-blk", O_RDWR | O_CLOEXEC);
	if (v->fd < 0)
		die("/dev/vhost-blk: %s", strerror(errno));
	v->nq = nq;
	v->features = features;
	if (nq > 1)
		vhost_do(v, VHOST_BLK_SET_QUEUES, &n, "SET_QUEUES");
	if (v->kthread && vhost_try(v, VHOST_SET_FORK_FROM_OWNER, &fork_owner))
		skip("this kernel's vhost knows one kind of worker");
	vhost_do(v, VHOST_SET_OWNER, NULL, "SET_OWNER");
	vhost_do(v, VHOST_SET_FEATURES, &features, "SET_FEATURES");
	if (!v->mem)
		mem_map(v);
	dev_table(v);
	for (unsigned int i = 0; i < nq; i++) {
		v->q[i].num = v->q[i].num ?: QUEUE_SIZE;
		queue_eventfds(v, i);
	}
	dev_rings(v);
}

int dev_try_backend(struct vdev *v, int fd)
{
	struct vhost_blk_backend b = { .fd = fd, .serial = "vhost-blk-serial-20b" };

	return vhost_try(v, VHOST_BLK_SET_BACKEND, &b);
}

void dev_start(struct vdev *v, int fd)
{
	want_res(dev_try_backend(v, fd), 0, "SET_BACKEND");
}

void dev_stop(struct vdev *v)
{
	want_res(dev_try_backend(v, -1), 0, "SET_BACKEND -1");
}

void dev_again(struct vdev *v, int fd)
{
	uint64_t n;

	dev_stop(v);
	dev_rings(v);
	for (unsigned int i = 0; i < v->nq; i++)
		while (read(v->q[i].err, &n, sizeof(n)) > 0 || read(v->q[i].call, &n, sizeof(n)) > 0)
			;
	dev_start(v, fd);
}

int open_backend(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

/* ---- requests ---- */

void chain_add(struct chain *c, uint64_t addr, uint32_t len, uint16_t flags)
{
	if (c->n == MAX_DESC)
		die("a chain of more than %u", MAX_DESC);
	if (c->n)
		c->d[c->n - 1].flags |= VRING_DESC_F_NEXT;
	c->d[c->n] = (struct vring_desc){ .addr = addr, .len = len, .flags = flags, .next = c->n + 1 };
	c->n++;
}

static bool from_device(uint32_t type)
{
	return type == VIRTIO_BLK_T_IN || type == VIRTIO_BLK_T_GET_ID;
}

void chain_cmd(struct vdev *v, struct chain *c, uint64_t hdr, uint32_t type, uint64_t sector,
	       uint64_t data, uint32_t len, uint32_t piece)
{
	struct virtio_blk_outhdr h = { .type = type, .sector = sector };

	memcpy(mem_at(v, hdr), &h, sizeof(h));
	*mem_at(v, hdr + sizeof(h)) = (char)UNANSWERED;
	c->n = 0;
	chain_add(c, hdr, sizeof(h), 0);
	for (uint32_t at = 0; at < len; at += piece)
		chain_add(c, data + at, len - at < piece ? len - at : piece, from_device(type) ? W : 0);
	chain_add(c, hdr + sizeof(h), 1, W);
}

void queue_offer(struct queue *q, uint16_t head)
{
	q->avail->ring[q->avail_idx % q->num] = head;
	__atomic_store_n(&q->avail->idx, ++q->avail_idx, __ATOMIC_RELEASE);
}

/* Into the table from the next free entry on; entries are taken in turn */
uint16_t queue_put(struct vdev *v, unsigned int nq, const struct chain *c)
{
	struct queue *q = &v->q[nq];
	uint16_t head = q->next_head;

	for (unsigned int i = 0; i < c->n; i++) {
		struct vring_desc *d = &q->desc[(head + i) % q->num];

		*d = c->d[i];
		d->next = (head + i + 1) % q->num;
	}
	q->next_head = (head + c->n) % q->num;
	queue_offer(q, head);
	return head;
}

void queue_indirect(struct vdev *v, unsigned int nq, const struct chain *c, uint64_t table)
{
	struct chain one = { 0 };

	memcpy(mem_at(v, table), c->d, c->n * sizeof(c->d[0]));
	chain_add(&one, table, c->n * sizeof(c->d[0]), VRING_DESC_F_INDIRECT);
	queue_put(v, nq, &one);
}

void queue_kick(struct queue *q)
{
	uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (write(q->kick, &one, sizeof(one)) != sizeof(one))
		die("kick: %s", strerror(errno));
}

bool event_within(int fd, unsigned int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	return poll(&p, 1, ms) == 1 && read(fd, &n, sizeof(n)) == sizeof(n);
}

unsigned int queue_wait(struct queue *q, unsigned int n, unsigned int ms)
{
	uint64_t until = now_ms() + ms, now;
	uint16_t got;

	/* With event_idx: interrupt at the last of them. Else nobody reads it. */
	q->avail->ring[q->num] = q->seen + n - 1;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (;;) {
		now = now_ms();
		got = __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) - q->seen;
		if (got >= n || now >= until)
			break;
		event_within(q->call, until - now);
	}
	q->seen += got;
	return got;
}

uint8_t send_chain(struct vdev *v, const struct chain *c, uint64_t status)
{
	queue_put(v, 0, c);
	queue_kick(&v->q[0]);
	if (!queue_wait(&v->q[0], 1, 5000))
		return UNANSWERED;
	return *mem_at(v, status);
}

uint8_t command(struct vdev *v, uint32_t type, uint64_t sector, uint64_t data, uint32_t len)
{
	uint64_t hdr = buf_at(0);
	struct chain c;

	chain_cmd(v, &c, hdr, type, sector, data, len, UINT32_MAX);
	return send_chain(v, &c, hdr + sizeof(struct virtio_blk_outhdr));
}
