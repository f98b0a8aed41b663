// SPDX-License-Identifier: GPL-2.0-only
/*
 * vhost-user-blk: the same device for QEMU's vhost-user-blk-pci, for what VDUSE
 * has not: kernels before 6.12, CONFIG_WCE, and guest memory without bounce
 * pages, so that a byte we leave alone keeps what the driver put there.
 * After the specification in QEMU's docs/interop/vhost-user.rst.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device.h"

enum {
	GET_FEATURES = 1, SET_FEATURES = 2, SET_OWNER = 3, SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8, SET_VRING_ADDR = 9, SET_VRING_BASE = 10,
	GET_VRING_BASE = 11, SET_VRING_KICK = 12, SET_VRING_CALL = 13,
	SET_VRING_ERR = 14, GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16, GET_QUEUE_NUM = 17, SET_VRING_ENABLE = 18,
	SET_BACKEND_REQ_FD = 21, GET_CONFIG = 24, SET_CONFIG = 25,
};

#define F_PROTOCOL_FEATURES	30
/* MQ, REPLY_ACK, BACKEND_REQ, CONFIG */
#define PROTOCOL	(BIT(0) | BIT(3) | BIT(5) | BIT(9))
#define VERSION_FLAG	1u
#define REPLY_FLAG	4u
#define NEED_REPLY	8u
#define BACKEND_CONFIG_CHANGE	2
#define MAX_REGIONS	16

struct message {
	uint32_t request, flags, size;
	union {
		uint64_t u64;
		struct { uint32_t index, num; } state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t n, pad;
			struct { uint64_t gpa, size, va, offset; } r[MAX_REGIONS];
		} mem;
		struct { uint32_t off, size, flags; uint8_t data[256]; } config;
	};
} __attribute__((packed));

#define HEAD	offsetof(struct message, u64)

static struct { uint64_t gpa, size, va; char *p; uint64_t mapped; }
	regions[MAX_REGIONS];
static unsigned int nr_regions;

static struct {
	uint64_t desc, used, avail;
	uint16_t base;
	bool enabled;
	int call;
} setup[MAX_QUEUES];

static const char *path;
static int listener = -1, conn = -1, backend = -1;

void vhost_user_set_socket(const char *p)
{
	path = p;
}

static void vhost_start(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		die("the socket's path is too long: %s", path);
	strcpy(a.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (void *)&a, sizeof(a)) || listen(listener, 1))
		die("can't listen on %s: %s", path, strerror(errno));
	for (unsigned int i = 0; i < MAX_QUEUES; i++) {
		dev.vqs[i].index = i;
		dev.vqs[i].kickfd = setup[i].call = -1;
	}
}

static void *vhost_map(uint64_t gpa, uint64_t len)
{
	for (unsigned int i = 0; len && i < nr_regions; i++)
		if (gpa >= regions[i].gpa && len <= regions[i].size &&
		    gpa - regions[i].gpa <= regions[i].size - len)
			return regions[i].p + (gpa - regions[i].gpa);
	return NULL;
}

/* Rings are named by QEMU's own addresses */
static uint64_t gpa_of(uint64_t va)
{
	for (unsigned int i = 0; i < nr_regions; i++)
		if (va - regions[i].va < regions[i].size)
			return va - regions[i].va + regions[i].gpa;
	return UINT64_MAX;
}

static void set_memory(struct message *m, const int *fds, unsigned int nr_fds)
{
	for (unsigned int i = 0; i < nr_regions; i++)
		munmap(regions[i].p - (regions[i].mapped - regions[i].size),
		       regions[i].mapped);
	nr_regions = 0;
	for (unsigned int i = 0; i < m->mem.n && i < nr_fds; i++) {
		uint64_t off = m->mem.r[i].offset, len = off + m->mem.r[i].size;
		char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fds[i], 0);

		if (p == MAP_FAILED)
			die("guest memory can't be mapped: %s (QEMU needs "
			    "memory-backend-memfd,share=on)", strerror(errno));
		regions[nr_regions].gpa = m->mem.r[i].gpa;
		regions[nr_regions].size = m->mem.r[i].size;
		regions[nr_regions].va = m->mem.r[i].va;
		regions[nr_regions].mapped = len;
		regions[nr_regions++].p = p + off;
		close(fds[i]);
	}
}

/* A queue runs when it has its rings, a kick and is enabled */
static void start_queue(struct vq *vq)
{
	if (vq->ready || vq->kickfd < 0 || !setup[vq->index].enabled ||
	    !setup[vq->index].desc)
		return;
	if (!ring_start(vq, gpa_of(setup[vq->index].desc),
			gpa_of(setup[vq->index].avail),
			gpa_of(setup[vq->index].used), setup[vq->index].base))
		die("queue %u: the rings aren't in guest memory", vq->index);
	dev.status = 4;
	log_event("\"driver_ok\",\"features\":\"%#llx\"",
		  (unsigned long long)dev.driver_features);
	device_kick(vq);
}

/* QEMU stops queues one by one when the guest resets the device */
static void stop_queue(struct vq *vq)
{
	uint64_t features = dev.driver_features;

	vq->ready = false;
	if (vq->kickfd >= 0)
		close(vq->kickfd);
	vq->kickfd = -1;
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		if (dev.vqs[i].ready)
			return;
	if (dev.status) {
		dev.status = 0;
		device_reset();
		dev.driver_features = features;	/* told again only if new */
	}
}

static void reply(struct message *m, uint32_t size)
{
	m->flags = VERSION_FLAG | REPLY_FLAG;
	m->size = size;
	if (write(conn, m, HEAD + size) != (ssize_t)(HEAD + size))
		dev.quit = true;
}

static void config_message(struct message *m)
{
	uint32_t off = m->config.off, n = m->config.size;

	if (n > sizeof(m->config.data))
		n = 0;
	if (m->request == GET_CONFIG) {
		memset(m->config.data, 0, n);
		if (off < CONFIG_SIZE)
			memcpy(m->config.data, dev.config + off,
			       n < CONFIG_SIZE - off ? n : CONFIG_SIZE - off);
		reply(m, 12 + n);
	} else if (off + n <= CONFIG_SIZE) {
		memcpy(dev.config + off, m->config.data, n);
		log_event("\"config written\",\"offset\":%u,\"value\":%u", off,
			  m->config.data[0]);
	}
}

static void vring_message(struct message *m, int fd)
{
	uint32_t i = m->request >= SET_VRING_KICK && m->request <= SET_VRING_ERR ?
		     m->u64 & 0xff : m->state.index;
	struct vq *vq = &dev.vqs[i];

	if (i >= dev.nr_queues)
		die("QEMU speaks of queue %u: give it num-queues=%u", i,
		    dev.nr_queues);
	switch (m->request) {
	case SET_VRING_NUM:
		vq->num = m->state.num;
		break;
	case SET_VRING_BASE:
		setup[i].base = m->state.num;
		break;
	case SET_VRING_ADDR:
		setup[i].desc = m->addr.desc;
		setup[i].used = m->addr.used;
		setup[i].avail = m->addr.avail;
		break;
	case SET_VRING_KICK:
		vq->kickfd = fd;
		break;
	case SET_VRING_CALL:
		if (setup[i].call >= 0)
			close(setup[i].call);
		setup[i].call = fd;
		break;
	case SET_VRING_ERR:
		if (fd >= 0)
			close(fd);
		break;
	case SET_VRING_ENABLE:
		setup[i].enabled = m->state.num;
		break;
	case GET_VRING_BASE:
		stop_queue(vq);
		m->state.num = vq->last_avail;
		reply(m, 8);
		return;
	}
	start_queue(vq);
}

static void dispatch(struct message *m, int *fds, unsigned int nr_fds)
{
	switch (m->request) {
	case GET_FEATURES:
		m->u64 = (dev.features & ~BIT(F_ACCESS_PLATFORM)) |
			 BIT(F_PROTOCOL_FEATURES);
		reply(m, 8);
		return;
	case SET_FEATURES:
		dev.driver_features = m->u64;
		break;
	case GET_PROTOCOL_FEATURES:
		m->u64 = PROTOCOL;
		reply(m, 8);
		return;
	case GET_QUEUE_NUM:
		m->u64 = dev.nr_queues;
		reply(m, 8);
		return;
	case SET_MEM_TABLE:
		set_memory(m, fds, nr_fds);
		break;
	case GET_CONFIG:
	case SET_CONFIG:
		config_message(m);
		break;
	case SET_BACKEND_REQ_FD:
		backend = nr_fds ? fds[0] : -1;
		break;
	case SET_VRING_NUM: case SET_VRING_ADDR: case SET_VRING_BASE:
	case GET_VRING_BASE: case SET_VRING_KICK: case SET_VRING_CALL:
	case SET_VRING_ERR: case SET_VRING_ENABLE:
		vring_message(m, nr_fds ? fds[0] : -1);
		break;
	}
	if (m->flags & NEED_REPLY) {
		m->u64 = 0;
		reply(m, 8);
	}
}

static void message(void)
{
	struct message m;
	int fds[MAX_REGIONS];
	unsigned int nr_fds = 0;
	union { struct cmsghdr c; char buf[CMSG_SPACE(sizeof(fds))]; } control;
	struct iovec iov = { &m, HEAD };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	memset(&m, 0, sizeof(m));
	if (recvmsg(conn, &h, 0) != HEAD || m.size > sizeof(m) - HEAD ||
	    (m.size && recv(conn, &m.u64, m.size, MSG_WAITALL) != m.size)) {
		dev.quit = true;	/* QEMU has ended */
		return;
	}
	for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if (c->cmsg_type == SCM_RIGHTS) {
			nr_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(fds, CMSG_DATA(c), nr_fds * sizeof(int));
		}
	dispatch(&m, fds, nr_fds);
}

static void vhost_irq(struct vq *vq)
{
	uint64_t one = 1;

	if (setup[vq->index].call >= 0 &&
	    write(setup[vq->index].call, &one, 8) < 0)
		log_event("\"lost interrupt\"");
}

static void vhost_config_changed(void)
{
	struct message m = { .request = BACKEND_CONFIG_CHANGE,
			     .flags = VERSION_FLAG };

	if (backend >= 0 && write(backend, &m, HEAD) < 0)
		log_event("\"lost config interrupt\"");
}

static int vhost_fds(struct pollfd *p)
{
	int n = 0;

	p[n++] = (struct pollfd){ .fd = conn >= 0 ? conn : listener,
				  .events = POLLIN };
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		if (dev.vqs[i].kickfd >= 0)
			p[n++] = (struct pollfd){ .fd = dev.vqs[i].kickfd,
						  .events = POLLIN };
	return n;
}

static void vhost_event(int fd)
{
	uint64_t kicks;

	if (fd == listener) {
		conn = accept(listener, NULL, NULL);
		return;
	}
	if (fd == conn) {
		message();
		return;
	}
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		if (dev.vqs[i].kickfd == fd) {
			if (read(fd, &kicks, sizeof(kicks)) < 0)
				return;
			device_kick(&dev.vqs[i]);
		}
}

static void vhost_stop(void)
{
	unlink(path);
}

const struct transport vhost_user_transport = {
	.name = "vhost-user",
	.start = vhost_start,
	.map = vhost_map,
	.irq = vhost_irq,
	.config_changed = vhost_config_changed,
	.fds = vhost_fds,
	.event = vhost_event,
	.stop = vhost_stop,
};
