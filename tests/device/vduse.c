// SPDX-License-Identifier: GPL-2.0-only
/*
 * VDUSE: the device lives in the kernel it is tested in. The kernel tells us
 * of status changes by messages on /dev/vduse/NAME; kicks come by eventfd;
 * guest memory (rings and bounce pages) is mapped when a descriptor first
 * names it, because the bounce area doesn't exist before the driver has mapped
 * a buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vduse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

#define VENDOR		0x1af4
#define ID_BLOCK	2
#define S_DRIVER_OK	4

static struct region {
	struct region *next;
	uint64_t start, last;
	char *p;
} *regions;

static int fd;
static bool adopt;

void vduse_set_adopt(bool on)
{
	adopt = on;
}

static void *vduse_map(uint64_t addr, uint64_t len)
{
	struct vduse_iotlb_entry e = { .start = addr, .last = addr + len - 1 };
	struct region *g;
	int f;

	if (!len)
		return NULL;
	for (g = regions; g; g = g->next)
		if (addr >= g->start && e.last <= g->last)
			return g->p + (addr - g->start);
	f = ioctl(fd, VDUSE_IOTLB_GET_FD, &e);
	if (f < 0)
		return NULL;
	g = calloc(1, sizeof(*g));
	g->start = e.start;
	g->last = e.last;
	g->p = mmap(NULL, e.last - e.start + 1,
		    (e.perm & VDUSE_ACCESS_RO ? PROT_READ : 0) |
		    (e.perm & VDUSE_ACCESS_WO ? PROT_WRITE : 0),
		    MAP_SHARED, f, e.offset);
	close(f);
	if (g->p == MAP_FAILED) {
		free(g);
		return NULL;
	}
	g->next = regions;
	regions = g;
	if (addr < g->start || addr + len - 1 > g->last)
		return NULL;
	return g->p + (addr - g->start);
}

static void unmap_all(void)
{
	struct region *g;

	while ((g = regions)) {
		regions = g->next;
		munmap(g->p, g->last - g->start + 1);
		free(g);
	}
}

/* resume: continue where a vanished server stopped, repeating what is open */
static void start_queue(struct vq *vq, bool resume)
{
	struct vduse_vq_info info = { .index = vq->index };
	struct vduse_vq_eventfd kick = { .index = vq->index, .fd = vq->kickfd };

	if (ioctl(fd, VDUSE_VQ_GET_INFO, &info) || !info.ready)
		return;
	vq->num = info.num;
	if (!ring_start(vq, info.desc_addr, info.driver_addr, info.device_addr,
			info.split.avail_index))
		die("queue %u: the rings can't be mapped", vq->index);
	if (resume)
		vq->last_avail = vq->used->idx;
	if (ioctl(fd, VDUSE_VQ_SETUP_KICKFD, &kick))
		die("queue %u: no kick eventfd: %s", vq->index, strerror(errno));
	device_kick(vq);
}

static void start_queues(bool resume)
{
	uint64_t features = 0;

	ioctl(fd, VDUSE_DEV_GET_FEATURES, &features);
	dev.driver_features = features;
	log_event("\"driver_ok\",\"features\":\"%#llx\"",
		  (unsigned long long)features);
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		start_queue(&dev.vqs[i], resume);
}

static void message(void)
{
	struct vduse_dev_request m;
	struct vduse_dev_response a = { 0 };
	bool start = false;

	if (read(fd, &m, sizeof(m)) != sizeof(m))
		return;
	a.request_id = m.request_id;
	switch (m.type) {
	case VDUSE_GET_VQ_STATE:
		a.vq_state.split.avail_index =
			dev.vqs[m.vq_state.index % MAX_QUEUES].last_avail;
		break;
	case VDUSE_SET_STATUS:
		start = m.s.status & S_DRIVER_OK &&
			!(dev.status & S_DRIVER_OK);
		dev.status = m.s.status;
		log_event("\"status\",\"value\":%u", dev.status);
		if (!dev.status) {
			device_reset();
			unmap_all();
		}
		break;
	case VDUSE_UPDATE_IOTLB:
		unmap_all();
		break;
	}
	/*
	 * The driver goes on at our answer and the kernel believes in DRIVER_OK
	 * only then, so queues start afterwards; kicks of the meantime are kept
	 * until the eventfd is there.
	 */
	if (write(fd, &a, sizeof(a)) != sizeof(a))
		log_event("\"lost message\",\"type\":%u", m.type);
	if (start)
		start_queues(false);
}

static void create(void)
{
	struct vduse_dev_config *c = calloc(1, sizeof(*c) + CONFIG_SIZE);
	int ctl = open("/dev/vduse/control", O_RDWR);
	uint64_t api = VDUSE_API_VERSION;

	if (ctl < 0)
		die("/dev/vduse/control: %s (modprobe vduse; Linux 6.12 or "
		    "newer, as root)", strerror(errno));
	strncpy(c->name, dev.name, VDUSE_NAME_MAX - 1);
	c->vendor_id = VENDOR;
	c->device_id = ID_BLOCK;
	c->features = dev.features;
	c->vq_num = dev.nr_queues;
	c->vq_align = 4096;
	c->config_size = CONFIG_SIZE;
	memcpy(c->config, dev.config, CONFIG_SIZE);
	ioctl(ctl, VDUSE_SET_API_VERSION, &api);
	if (ioctl(ctl, VDUSE_CREATE_DEV, c))
		die("VDUSE refuses the device %s with features %#llx: %s",
		    dev.name, (unsigned long long)dev.features,
		    strerror(errno));
	close(ctl);
	free(c);
}

static void vduse_start(void)
{
	char path[300];

	if (!adopt)
		create();
	snprintf(path, sizeof(path), "/dev/vduse/%s", dev.name);
	fd = open(path, O_RDWR | O_NONBLOCK);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	for (unsigned int i = 0; i < dev.nr_queues; i++) {
		struct vduse_vq_config c = {
			.index = i, .max_size = dev.queue_size
		};

		dev.vqs[i].index = i;
		dev.vqs[i].kickfd = eventfd(0, EFD_NONBLOCK);
		if (!adopt && ioctl(fd, VDUSE_VQ_SETUP, &c))
			die("queue %u: %s", i, strerror(errno));
	}
	if (adopt)
		start_queues(true);
}

static void vduse_irq(struct vq *vq)
{
	uint32_t index = vq->index;

	ioctl(fd, VDUSE_VQ_INJECT_IRQ, &index);
}

static void vduse_config_changed(void)
{
	ioctl(fd, VDUSE_DEV_INJECT_CONFIG_IRQ);
}

static void vduse_config_write(unsigned int off, unsigned int len)
{
	char buf[sizeof(struct vduse_config_data) + 8];
	struct vduse_config_data *c = (void *)buf;

	if (fd <= 0)	/* still being put together */
		return;
	c->offset = off;
	c->length = len;
	memcpy(c->buffer, dev.config + off, len);
	ioctl(fd, VDUSE_DEV_SET_CONFIG, c);
}

static int vduse_fds(struct pollfd *p)
{
	int n = 0;

	p[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		p[n++] = (struct pollfd){ .fd = dev.vqs[i].kickfd,
					  .events = POLLIN };
	return n;
}

static void vduse_event(int f)
{
	uint64_t kicks;

	if (f == fd) {
		message();
		return;
	}
	for (unsigned int i = 0; i < dev.nr_queues; i++)
		if (dev.vqs[i].kickfd == f) {
			if (read(f, &kicks, sizeof(kicks)) < 0)
				return;
			device_kick(&dev.vqs[i]);
		}
}

/* Works when the vdpa device is deleted already; else the kernel keeps it */
static void vduse_stop(void)
{
	char name[VDUSE_NAME_MAX] = "";
	int ctl = open("/dev/vduse/control", O_RDWR);

	unmap_all();
	close(fd);
	strncpy(name, dev.name, sizeof(name) - 1);
	if (ctl >= 0) {
		ioctl(ctl, VDUSE_DESTROY_DEV, name);
		close(ctl);
	}
}

const struct transport vduse_transport = {
	.name = "vduse",
	.start = vduse_start,
	.map = vduse_map,
	.irq = vduse_irq,
	.config_changed = vduse_config_changed,
	.config_write = vduse_config_write,
	.fds = vduse_fds,
	.event = vduse_event,
	.stop = vduse_stop,
};
