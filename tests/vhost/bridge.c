// SPDX-License-Identifier: GPL-2.0-only
/*
 * VDUSE as the hypervisor: a virtio-blk device of this very kernel whose queues
 * vhost-blk serves. The bridge maps the memory VDUSE shows it, gives it to
 * /dev/vhost-blk as the guest's, hands VDUSE's kick eventfds over and turns call
 * eventfds into interrupts; it sees no request.
 *
 * When to start: the bounce pages that requests lie in don't exist at DRIVER_OK,
 * but when the driver has mapped its first buffer. So the first kick starts
 * vhost-blk; the kick isn't taken, it is vhost-blk's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <linux/vduse.h>
#include <linux/vhost_blk.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker.h"

#define MAX_QUEUES	32
#define MAX_REGIONS	64	/* vhost's default */
#define F(bit)		(1ULL << (bit))
#define S_DRIVER_OK	4

static const uint64_t features = F(VIRTIO_F_VERSION_1) | F(VIRTIO_RING_F_INDIRECT_DESC) |
	F(VIRTIO_RING_F_EVENT_IDX) | F(VIRTIO_BLK_F_SEG_MAX) | F(VIRTIO_BLK_F_BLK_SIZE) |
	F(VIRTIO_BLK_F_FLUSH) | F(VIRTIO_BLK_F_MQ) | F(VIRTIO_BLK_F_DISCARD) |
	F(VIRTIO_BLK_F_WRITE_ZEROES);

static struct region {
	uint64_t start, size;
	char *p;
} regions[MAX_REGIONS];

static struct {
	bool ready;
	int kick, call;
	struct vduse_vq_info info;
} vqs[MAX_QUEUES];

static const char *name, *path, *serial = "vhost-blk-bridge";
static unsigned int nr_queues = 1, queue_size = 128, nr_workers = 1, nr_regions, turn;
static unsigned int worker_ids[MAX_QUEUES];
static int vduse, vhost, backend;
static bool running, waiting, readonly;
static unsigned long interrupts;

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("bridge: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void command(int fd, unsigned long cmd, const void *arg, const char *what)
{
	if (ioctl(fd, cmd, arg) < 0)
		die("%s: %s", what, strerror(errno));
}

/* ---- memory ---- */

static void map_region(const struct vduse_iotlb_entry *e, int fd)
{
	struct region *g = &regions[nr_regions++];

	g->start = e->start;
	g->size = e->last - e->start + 1;
	g->p = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, e->offset);
	if (g->p == MAP_FAILED)
		die("a region at %#llx: %s", (unsigned long long)e->start, strerror(errno));
	close(fd);
}

static void map_memory(void)
{
	struct vduse_iotlb_entry e = { .start = 0 };
	int fd;

	for (;;) {
		e.last = UINT64_MAX;
		fd = ioctl(vduse, VDUSE_IOTLB_GET_FD, &e);
		if (fd < 0)
			break;
		if (nr_regions == MAX_REGIONS)
			die("more than %u memory regions", MAX_REGIONS);
		map_region(&e, fd);
		e.start = e.last + 1;
	}
}

static void unmap_memory(void)
{
	while (nr_regions) {
		nr_regions--;
		munmap(regions[nr_regions].p, regions[nr_regions].size);
	}
}

static uint64_t our_address(uint64_t addr)
{
	for (unsigned int i = 0; i < nr_regions; i++)
		if (addr - regions[i].start < regions[i].size)
			return (uintptr_t)regions[i].p + (addr - regions[i].start);
	die("a ring at %#llx, where there is no memory", (unsigned long long)addr);
	return 0;
}

static void give_memory(void)
{
	struct vhost_memory *m = calloc(1, sizeof(*m) + MAX_REGIONS * sizeof(m->regions[0]));

	m->nregions = nr_regions;
	for (unsigned int i = 0; i < nr_regions; i++) {
		m->regions[i].guest_phys_addr = regions[i].start;
		m->regions[i].memory_size = regions[i].size;
		m->regions[i].userspace_addr = (uintptr_t)regions[i].p;
	}
	command(vhost, VHOST_SET_MEM_TABLE, m, "SET_MEM_TABLE");
	free(m);
}

/* ---- vhost-blk ---- */

/* Queue i gets worker (i + turn) modulo their number; each call turns by one */
static void spread_workers(void)
{
	for (unsigned int i = 0; i < nr_queues; i++) {
		struct vhost_vring_worker w = { i, worker_ids[(i + turn) % nr_workers] };

		command(vhost, VHOST_ATTACH_VRING_WORKER, &w, "ATTACH_VRING_WORKER");
	}
	turn++;
}

static void open_vhost(void)
{
	struct vhost_vring_worker first = { 0, 0 };
	struct vhost_worker_state w;

	vhost = open("/dev/vhost-blk", O_RDWR | O_CLOEXEC);
	if (vhost < 0)
		die("/dev/vhost-blk: %s (insmod vhost_blk.ko)", strerror(errno));
	command(vhost, VHOST_BLK_SET_QUEUES, &nr_queues, "SET_QUEUES");
	command(vhost, VHOST_SET_OWNER, NULL, "SET_OWNER");
	command(vhost, VHOST_GET_VRING_WORKER, &first, "GET_VRING_WORKER");
	worker_ids[0] = first.worker_id;
	for (unsigned int i = 1; i < nr_workers; i++) {
		command(vhost, VHOST_NEW_WORKER, &w, "NEW_WORKER");
		worker_ids[i] = w.worker_id;
	}
	spread_workers();
}

static void set_backend(int fd)
{
	struct vhost_blk_backend b = { .fd = fd };

	memcpy(b.serial, serial, strnlen(serial, sizeof(b.serial)));
	command(vhost, VHOST_BLK_SET_BACKEND, &b, "SET_BACKEND");
}

static void set_vring(unsigned int i)
{
	const struct vduse_vq_info *info = &vqs[i].info;
	struct vhost_vring_state num = { i, info->num }, base = { i, info->split.avail_index };
	struct vhost_vring_file kick = { i, vqs[i].kick }, call = { i, vqs[i].call };
	struct vhost_vring_addr addr = {
		.index = i,
		.desc_user_addr = our_address(info->desc_addr),
		.avail_user_addr = our_address(info->driver_addr),
		.used_user_addr = our_address(info->device_addr),
	};

	command(vhost, VHOST_SET_VRING_NUM, &num, "SET_VRING_NUM");
	command(vhost, VHOST_SET_VRING_BASE, &base, "SET_VRING_BASE");
	command(vhost, VHOST_SET_VRING_ADDR, &addr, "SET_VRING_ADDR");
	command(vhost, VHOST_SET_VRING_CALL, &call, "SET_VRING_CALL");
	command(vhost, VHOST_SET_VRING_KICK, &kick, "SET_VRING_KICK");
}

static void start(void)
{
	uint64_t driver;

	command(vduse, VDUSE_DEV_GET_FEATURES, &driver, "GET_FEATURES");
	driver &= ~F(VIRTIO_F_ACCESS_PLATFORM);	/* VDUSE's business */
	command(vhost, VHOST_SET_FEATURES, &driver, "SET_FEATURES");
	map_memory();
	give_memory();
	for (unsigned int i = 0; i < nr_queues; i++)
		if (vqs[i].ready)
			set_vring(i);
	set_backend(backend);
	running = true;
	waiting = false;
}

/* Drained: no answer comes afterwards. Positions of the rings stay readable. */
static void stop(void)
{
	waiting = false;
	if (!running)
		return;
	set_backend(-1);
	for (unsigned int i = 0; i < nr_queues; i++) {
		struct vhost_vring_file none = { i, -1 };

		command(vhost, VHOST_SET_VRING_KICK, &none, "SET_VRING_KICK -1");
	}
	unmap_memory();
	running = false;
}

/* ---- VDUSE ---- */

static void driver_ok(void)
{
	uint64_t kicks;

	for (unsigned int i = 0; i < nr_queues; i++) {
		struct vduse_vq_eventfd kick = { .index = i, .fd = vqs[i].kick };

		/* vhost-blk leaves kicks in the eventfd: those of before would start us too early */
		if (read(vqs[i].kick, &kicks, sizeof(kicks)) < 0 && errno != EAGAIN)
			die("a kick eventfd: %s", strerror(errno));
		vqs[i].info = (struct vduse_vq_info){ .index = i };
		command(vduse, VDUSE_VQ_GET_INFO, &vqs[i].info, "VQ_GET_INFO");
		vqs[i].ready = vqs[i].info.ready;
		if (vqs[i].ready)
			command(vduse, VDUSE_VQ_SETUP_KICKFD, &kick, "VQ_SETUP_KICKFD");
	}
	waiting = true;
}

static uint16_t ring_position(unsigned int i)
{
	struct vhost_vring_state base = { i, 0 };

	if (i < nr_queues && !ioctl(vhost, VHOST_GET_VRING_BASE, &base))
		return base.num;
	return 0;
}

static void message(void)
{
	struct vduse_dev_response a = { 0 };
	struct vduse_dev_request m;
	bool ok = false;

	if (read(vduse, &m, sizeof(m)) != sizeof(m))
		return;
	a.request_id = m.request_id;
	switch (m.type) {
	case VDUSE_GET_VQ_STATE:
		a.vq_state.split.avail_index = ring_position(m.vq_state.index);
		break;
	case VDUSE_SET_STATUS:
		ok = m.s.status & S_DRIVER_OK && !running && !waiting;
		if (!m.s.status)
			stop();
		break;
	}
	if (write(vduse, &a, sizeof(a)) != sizeof(a))
		die("an answer to VDUSE: %s", strerror(errno));
	/* The kernel believes in DRIVER_OK when it has our answer. */
	if (ok)
		driver_ok();
}

static void fill_config(struct virtio_blk_config *c)
{
	struct stat st;
	uint64_t bytes;
	int lbs = 512;

	if (fstat(backend, &st))
		die("%s: %s", path, strerror(errno));
	bytes = st.st_size;
	if (S_ISBLK(st.st_mode)) {
		command(backend, BLKGETSIZE64, &bytes, path);
		command(backend, BLKSSZGET, &lbs, path);
	}
	c->capacity = bytes / 512;
	c->seg_max = 254;
	c->blk_size = lbs;
	c->num_queues = nr_queues;
	c->max_discard_sectors = c->max_write_zeroes_sectors = 1 << 20;
	c->max_discard_seg = c->max_write_zeroes_seg = 16;
	c->discard_sector_alignment = lbs / 512;
	c->write_zeroes_may_unmap = 1;
}

static void create(void)
{
	size_t size = sizeof(struct virtio_blk_config);
	struct vduse_dev_config *c = calloc(1, sizeof(*c) + size);
	int ctl = open("/dev/vduse/control", O_RDWR);
	uint64_t api = VDUSE_API_VERSION;
	char dev[300];

	if (ctl < 0)
		die("/dev/vduse/control: %s (modprobe vduse, as root)", strerror(errno));
	strncpy(c->name, name, VDUSE_NAME_MAX - 1);
	c->vendor_id = 0x1af4;
	c->device_id = VIRTIO_ID_BLOCK;
	c->features = features | F(VIRTIO_F_ACCESS_PLATFORM) | (readonly ? F(VIRTIO_BLK_F_RO) : 0);
	c->vq_num = nr_queues;
	c->vq_align = 4096;
	c->config_size = size;
	fill_config((void *)c->config);
	command(ctl, VDUSE_SET_API_VERSION, &api, "SET_API_VERSION");
	command(ctl, VDUSE_CREATE_DEV, c, "CREATE_DEV");
	close(ctl);
	free(c);
	snprintf(dev, sizeof(dev), "/dev/vduse/%s", name);
	vduse = open(dev, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (vduse < 0)
		die("%s: %s", dev, strerror(errno));
	for (unsigned int i = 0; i < nr_queues; i++) {
		struct vduse_vq_config vq = { .index = i, .max_size = queue_size };

		vqs[i].kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		vqs[i].call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		command(vduse, VDUSE_VQ_SETUP, &vq, "VQ_SETUP");
	}
}

static void destroy(void)
{
	char dev[VDUSE_NAME_MAX] = "";
	int ctl = open("/dev/vduse/control", O_RDWR);

	stop();
	close(vduse);
	strncpy(dev, name, VDUSE_NAME_MAX - 1);
	ioctl(ctl, VDUSE_DESTROY_DEV, dev);
	printf("interrupts %lu\n", interrupts);
}

/* ---- the loop ---- */

static void interrupt(uint32_t i)
{
	uint64_t n;

	if (read(vqs[i].call, &n, sizeof(n)) != sizeof(n))
		return;
	interrupts++;
	/* fails harmlessly while the driver resets the device */
	ioctl(vduse, VDUSE_VQ_INJECT_IRQ, &i);
}

static bool handle_signal(int fd)
{
	struct signalfd_siginfo s;

	if (read(fd, &s, sizeof(s)) != sizeof(s))
		return true;
	if (s.ssi_signo != SIGUSR1)
		return false;
	spread_workers();
	return true;
}

static int signal_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void serve(int signals)
{
	struct pollfd p[2 + 2 * MAX_QUEUES];
	bool go_on = true, kicked;

	while (go_on) {
		p[0] = (struct pollfd){ signals, POLLIN, 0 };
		p[1] = (struct pollfd){ vduse, POLLIN, 0 };
		for (unsigned int i = 0; i < nr_queues; i++) {
			p[2 + i] = (struct pollfd){ vqs[i].call, POLLIN, 0 };
			p[2 + nr_queues + i] = (struct pollfd){ waiting ? vqs[i].kick : -1, POLLIN, 0 };
		}
		if (poll(p, 2 + 2 * nr_queues, -1) < 0)
			continue;
		kicked = false;
		for (unsigned int i = 0; i < nr_queues; i++) {
			if (p[2 + i].revents)
				interrupt(i);
			kicked |= p[2 + nr_queues + i].revents;
		}
		if (kicked)
			start();
		if (p[1].revents)
			message();
		if (p[0].revents)
			go_on = handle_signal(signals);
	}
}

static void usage(FILE *f)
{
	fputs("usage: bridge [options] NAME FILE\n"
	      "Makes the VDUSE device NAME, served by vhost-blk from FILE (opened O_DIRECT);\n"
	      "vdpa dev add name NAME mgmtdev vduse plugs it in. Prints \"ready\".\n"
	      "SIGUSR1 moves each queue to the next worker, SIGTERM ends it.\n"
	      "  --queues N (1)  --queue-size N (128)  --workers N (1)  --serial S  --read-only\n"
	      "  --help  --version\n", f);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "queues", 1, NULL, 'q' }, { "queue-size", 1, NULL, 's' },
		{ "workers", 1, NULL, 'w' }, { "serial", 1, NULL, 'i' },
		{ "read-only", 0, NULL, 'r' }, { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'v' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'q': nr_queues = atoi(optarg); break;
		case 's': queue_size = atoi(optarg); break;
		case 'w': nr_workers = atoi(optarg); break;
		case 'i': serial = optarg; break;
		case 'r': readonly = true; break;
		case 'h': usage(stdout); exit(0);
		case 'v': puts(VERSION); exit(0);
		default: usage(stderr); exit(2);
		}
	}
	if (optind + 2 != argc || !nr_queues || nr_queues > MAX_QUEUES || !nr_workers || nr_workers > MAX_QUEUES) {
		usage(stderr);
		exit(2);
	}
	name = argv[optind];
	path = argv[optind + 1];
}

int main(int argc, char **argv)
{
	int signals;

	options(argc, argv);
	signals = signal_fd();
	backend = open(path, (readonly ? O_RDONLY : O_RDWR) | O_DIRECT | O_CLOEXEC);
	if (backend < 0)
		die("%s: %s", path, strerror(errno));
	open_vhost();
	create();
	puts("ready");
	fflush(stdout);
	serve(signals);
	destroy();
	return 0;
}
