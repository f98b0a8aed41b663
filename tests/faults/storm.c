// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once: block I/O and passthrough, by interrupt and polled, while
 * the disk is resized, suspended, unbound, bound with another number of queues,
 * unplugged, its queue and cache switched, CPUs come and go and memory runs short
 *
 * Each worker owns some blocks and knows which generation each must have. What
 * it has flushed it writes down outside the guest, in $VM_SCRATCH/acks, so that
 * the host can look at the image (verify.c) whenever QEMU ended, and however.
 *
 * STORM=words chooses disturbers (default all that can be had here: suspend needs
 * SUSPEND_MODULE, tests/uring/suspend's file), "none" is without. SECONDS=N says
 * how long (default 6), SEED=N repeats the choices. SHORT_OF_MEMORY says that the
 * kernel was told to let allocations fail. Under the in-tree driver all workers do
 * block I/O.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "storm-block.h"

#define DEPTH		8
#define DRIVER		"/sys/bus/virtio/drivers/virtio_blk"
#define QUEUES_PARAM	"/sys/module/virtio_blk/parameters/num_request_queues"
#define FEWER_QUEUES	2
#define STALL_MS	60000

enum kind { BLOCK, BLOCK_URING, BLOCK_POLLED, NODE, NODE_VEC, NODE_POLLED, NOISE };

struct worker {
	pthread_t	pthread;
	unsigned int	id;
	enum kind	kind;
	uint64_t	rnd, progress, errors;
	int		fd;
	bool		open;
	struct ring	ring;
	struct storm_block *buf;
	struct iovec	iov[DEPTH][2];
	uint64_t	low[STORM_BLOCKS];	/* at least this one is there */
	uint64_t	high[STORM_BLOCKS];	/* the newest ever sent */
	unsigned int	block[DEPTH];
	bool		write[DEPTH];
	unsigned int	sequence;
};

static struct worker workers[STORM_WORKERS];
static char serial[32];
static int acks = -1;
static bool stop;
static uint64_t seed;
static bool short_of_memory;	/* allocations fail: passthrough may say so */

/* Odd while the disk may be gone: what fails then may fail */
static unsigned int disruptions;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static unsigned int sequence(void)
{
	return __atomic_load_n(&disruptions, __ATOMIC_SEQ_CST);
}

static uint64_t rnd(struct worker *w, uint64_t below)
{
	return random_next(&w->rnd) % below;
}

/* May what this worker sent have met a disk that was gone? */
static bool excused(const struct worker *w)
{
	return w->sequence & 1 || w->sequence != sequence();
}

/* ---- the disk, whatever it is called now ---- */

static bool find_disk(char *name, size_t size)
{
	struct dirent *e;
	char text[32];
	bool found = false;
	DIR *d = opendir("/sys/block");

	while (d && !found && (e = readdir(d))) {
		if (strncmp(e->d_name, "vd", 2) ||
		    !sys_string(text, sizeof(text), "/sys/block/%.16s/serial", e->d_name))
			continue;
		found = !strcmp(text, serial);
		snprintf(name, size, "%.16s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static bool on_node(const struct worker *w)
{
	return w->kind >= NODE;
}

static bool on_block_ring(const struct worker *w)
{
	return w->kind == BLOCK_URING || w->kind == BLOCK_POLLED;
}

static bool polls(const struct worker *w)
{
	return w->kind == BLOCK_POLLED || w->kind == NODE_POLLED;
}

/* Until the disk is there; false if the storm is over before */
static bool worker_open(struct worker *w)
{
	char disk_name[32], path[64];
	bool found;

	while (!stopped()) {
		w->sequence = sequence();
		found = find_disk(disk_name, sizeof(disk_name));
		snprintf(path, sizeof(path), "/dev/%s%s", found ? disk_name : serial,
			 on_node(w) ? "c0" : "");
		w->fd = found ? open(path, O_RDWR | O_CLOEXEC | (on_node(w) ? 0 : O_DIRECT)) : -1;
		w->open = w->fd >= 0;
		if (w->open)
			return true;
		if (!excused(w))
			fail("worker %u, %s: got %s, wanted it open", w->id, path,
			     err_name(found ? -errno : -ENODEV));
		pause_ms(10);
	}
	return false;
}

static void worker_lost(struct worker *w, int err)
{
	if (short_of_memory && err == -ENOMEM && on_node(w)) {
		w->errors++;
		return;
	}
	if (!excused(w))
		fail("worker %u: got %s, wanted 0", w->id, err_name(err));
	w->errors++;
	if (w->open)
		close(w->fd);
	w->open = false;
}

/* ---- one batch of commands ---- */

static void put_node(struct worker *w, unsigned int i, uint64_t place)
{
	bool vec = w->kind == NODE_VEC;
	struct vcmd c = vcmd(w->fd, vec ? VIRTBLK_URING_CMD_IO_VEC : VIRTBLK_URING_CMD_IO,
			     w->write[i] ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN,
			     place * (STORM_BLOCK / 512),
			     vec ? (void *)w->iov[i] : &w->buf[i], vec ? 2 : STORM_BLOCK);

	c.user_data = i;
	/* a thread of io_uring's needs memory, and says so by other errors */
	if (!short_of_memory && rnd(w, 4) == 0)
		c.sqe_flags = IOSQE_ASYNC;
	ring_put(&w->ring, &c);
}

static void put_block(struct worker *w, unsigned int i, uint64_t place)
{
	struct io_uring_sqe *sqe = ring_sqe(&w->ring);

	if (w->write[i])
		io_uring_prep_write(sqe, w->fd, &w->buf[i], STORM_BLOCK, place * STORM_BLOCK);
	else
		io_uring_prep_read(sqe, w->fd, &w->buf[i], STORM_BLOCK, place * STORM_BLOCK);
	sqe->user_data = i;
}

/* The i-th of a batch: a block that no other of the batch has */
static void put_one(struct worker *w, unsigned int i)
{
	unsigned int n = (w->block[0] + i * 31) % STORM_BLOCKS;
	uint64_t place = w->id * STORM_BLOCKS + n;

	w->block[i] = n;
	w->write[i] = rnd(w, 5) < 3;
	if (w->write[i])
		storm_fill(&w->buf[i], place, ++w->high[n]);
	else
		memset(&w->buf[i], 0xee, STORM_BLOCK);
	w->iov[i][0] = (struct iovec){ &w->buf[i], 1024 };
	w->iov[i][1] = (struct iovec){ (char *)&w->buf[i] + 1024, STORM_BLOCK - 1024 };
	if (on_node(w))
		put_node(w, i, place);
	else if (on_block_ring(w))
		put_block(w, i, place);
}

/* The same by plain system calls */
static int sync_one(struct worker *w, unsigned int i)
{
	off_t at = (off_t)(w->id * STORM_BLOCKS + w->block[i]) * STORM_BLOCK;
	ssize_t n = w->write[i] ? pwrite(w->fd, &w->buf[i], STORM_BLOCK, at) :
				  pread(w->fd, &w->buf[i], STORM_BLOCK, at);

	return n < 0 ? -errno : n == STORM_BLOCK ? 0 : -EIO;
}

static void ended(struct worker *w, unsigned int i)
{
	uint64_t place = w->id * STORM_BLOCKS + w->block[i];
	unsigned int n = w->block[i];
	int64_t got;

	if (w->write[i]) {
		w->low[n] = w->high[n];
		return;
	}
	got = storm_generation(&w->buf[i], place);
	if (got < (int64_t)w->low[n] || got > (int64_t)w->high[n])
		fail("worker %u, block %u: got generation %lld, wanted %llu to %llu",
		     w->id, n, (long long)got, (unsigned long long)w->low[n],
		     (unsigned long long)w->high[n]);
	w->low[n] = got;
}

/* Returns 0, or the first error */
static int batch(struct worker *w)
{
	unsigned int i, n = 1 + rnd(w, DEPTH);
	int err = 0;

	w->block[0] = rnd(w, STORM_BLOCKS);
	for (i = 0; i < n; i++)
		put_one(w, i);
	if (w->kind != BLOCK)
		ring_submit(&w->ring);
	for (i = 0; i < n; i++) {
		struct answer a = { .user_data = i };

		if (w->kind == BLOCK)
			a.res = sync_one(w, i);
		else
			a = ring_take(&w->ring);
		if (on_block_ring(w))
			a.res = a.res < 0 ? a.res : a.res == STORM_BLOCK ? 0 : -EIO;
		if (a.res == 0)
			ended(w, a.user_data);
		else
			err = err ?: a.res;
	}
	return err;
}

/* Nothing of this worker's is on its way when this is called */
static int flush(struct worker *w)
{
	struct vcmd c;
	size_t size = sizeof(w->low);
	int err;

	if (on_node(w)) {
		c = vcmd(w->fd, VIRTBLK_URING_CMD_IO, VIRTIO_BLK_T_FLUSH, 0, NULL, 0);
		err = ring_do(&w->ring, &c).res;
	} else {
		err = fdatasync(w->fd) ? -errno : 0;
	}
	if (err)
		return err;
	if (pwrite(acks, w->low, size, w->id * size) != (ssize_t)size)
		fail("acks: got %s, wanted %zu bytes written", err_name(-errno), size);
	return 0;
}

/* Also on a disk that is gone: -ENODEV then */
static int ask_info(const struct worker *w)
{
	struct virtblk_uring_info info = { .size = sizeof(info) };

	return ioctl(w->fd, VIRTBLK_IOCTL_INFO, &info) ? -errno : 0;
}

/* Commands whose data nobody looks at, behind the others' blocks */
static int noise(struct worker *w)
{
	static const uint32_t types[] = { VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_FLUSH,
		VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES, VIRTIO_BLK_T_IN };
	struct virtio_blk_discard_write_zeroes *r = (void *)w->buf;
	uint32_t type = types[rnd(w, ARRAY_SIZE(types))];
	uint32_t len = type == VIRTIO_BLK_T_GET_ID ? 20 : type == VIRTIO_BLK_T_FLUSH ? 0 :
		type == VIRTIO_BLK_T_IN ? DEPTH * STORM_BLOCK : sizeof(*r);
	struct vcmd c = vcmd(w->fd, VIRTBLK_URING_CMD_IO, type, 0, w->buf, len);

	if (rnd(w, 8) == 0)
		return ask_info(w);
	memset(r, 0, sizeof(*r));
	r->sector = (32 * MiB + rnd(w, 4 * MiB)) / STORM_BLOCK * 8;
	r->num_sectors = 8 * (1 + rnd(w, 64));
	return ring_do(&w->ring, &c).res;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int setup = WIDE | (polls(w) ? IORING_SETUP_IOPOLL : 0);
	int err;

	w->buf = map_pages(DEPTH * STORM_BLOCK);
	ring_open(&w->ring, 32, setup);
	while (!stopped()) {
		if (!w->open && !worker_open(w))
			break;
		w->sequence = sequence();
		err = w->kind == NOISE ? noise(w) : batch(w);
		if (!err && w->kind != NOISE && rnd(w, 8) == 0)
			err = flush(w);
		if (err)
			worker_lost(w, err);
		__atomic_add_fetch(&w->progress, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- disturbers: each returns when all is as before, and whether it had its way ---- */

static char name[32];
static struct worker chance;	/* the disturbers' random numbers */
static unsigned int all_queues;	/* as the disk had them first */

/* The host's side answers; see tests/uring/lib.sh */
static void ask_host(const char *fmt, ...)
{
	const char *dir = getenv("VM_SCRATCH");
	char path[256], made[256], word[64], answer[128] = "";
	uint64_t end = now_ms() + 60000;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(word, sizeof(word), fmt, ap);
	va_end(ap);
	snprintf(made, sizeof(made), "%s/ask.new", dir);
	snprintf(path, sizeof(path), "%s/ask", dir);
	f = fopen(made, "we");
	if (!f || fprintf(f, "%s\n", word) < 0 || fclose(f) || rename(made, path))
		fail("%s: got %s, wanted it written", path, err_name(-errno));
	snprintf(path, sizeof(path), "%s/answer", dir);
	while (!(f = fopen(path, "re"))) {
		if (now_ms() > end)
			fail("%s: got no answer from the host, wanted one", word);
		pause_ms(10);
	}
	if (!fgets(answer, sizeof(answer), f) || strncmp(answer, "ok", 2))
		fail("%s: got %s, wanted ok", word, answer);
	fclose(f);
	unlink(path);
}

static void disrupt(void)
{
	__atomic_add_fetch(&disruptions, 1, __ATOMIC_SEQ_CST);
}

static void await_disk(void)
{
	uint64_t end = now_ms() + 60000;
	char node[64];

	for (;;) {
		if (find_disk(name, sizeof(name))) {
			snprintf(node, sizeof(node), "/dev/%s%s", name, with_node() ? "c0" : "");
			if (!access(node, F_OK))
				break;
		}
		if (now_ms() > end)
			fail("the disk: got none for 60 s, wanted it back");
		pause_ms(10);
	}
	disrupt();
}

/* Not every kernel has each of these */
static bool scheduler(void)
{
	static const char *const which[] = { "mq-deadline", "none", "bfq", "kyber" };

	return !sys_write(which[rnd(&chance, ARRAY_SIZE(which))], "/sys/block/%s/queue/scheduler", name);
}

/* Without a scheduler there can't be more than the disk has */
static bool requests(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", 4 + (unsigned int)rnd(&chance, 200));
	return !sys_write(text, "/sys/block/%s/queue/nr_requests", name);
}

/* Without a cache a block-side flush is no command: that isn't the host's cache */
static bool cache(void)
{
	want_res(sys_write("write through", "/sys/block/%s/cache_type", name), 0, "cache_type");
	pause_ms(20);
	want_res(sys_write("write back", "/sys/block/%s/cache_type", name), 0, "cache_type");
	return true;
}

static bool cpus(void)
{
	if (sys_write("0", "/sys/devices/system/cpu/cpu1/online"))
		return false;
	pause_ms(50);
	want_res(sys_write("1", "/sys/devices/system/cpu/cpu1/online"), 0, "a CPU comes back");
	return true;
}

/* Much of what is free, for a moment: writeback and reclaim run */
static bool memory(void)
{
	struct sysinfo s;
	size_t size;
	char *p;

	if (sys_write("3", "/proc/sys/vm/drop_caches") || sysinfo(&s))
		return false;
	size = s.freeram * s.mem_unit / (soak_minutes ? 2 : 8);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	for (size_t i = 0; i < size && !stopped(); i += 4096)
		p[i] = 1;
	munmap(p, size);
	return true;
}

static bool resize(void)
{
	ask_host("resize %llu", (64 + rnd(&chance, 64)) * MiB);
	return true;
}

/* "virtio3" */
static const char *device_name(void)
{
	static char target[256];
	char path[96];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/block/%s/device", name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		fail("%s: got %s, wanted a link", path, err_name(-errno));
	target[n] = 0;
	return strrchr(target, '/') + 1;
}

/* Commands wait meanwhile: nothing may fail, so that this is no disruption */
static bool suspend(void)
{
	char params[64];

	snprintf(params, sizeof(params), "device=%s back=50", device_name());
	want_res(module_load(getenv("SUSPEND_MODULE"), params), 0, "suspending %s", device_name());
	want_res(module_unload("suspend_one"), 0, "unloading suspend_one");
	return true;
}

/* Interrupt's and polled ones */
static unsigned int queues(void)
{
	char path[96];
	unsigned int n = 0;

	do {
		snprintf(path, sizeof(path), "/sys/block/%s/mq/%u", name, n);
	} while (!access(path, F_OK) && ++n);
	return n;
}

/* It comes back with all its queues, or with fewer */
static bool unbind(void)
{
	const char *device = device_name();
	bool fewer = rnd(&chance, 2);

	disrupt();
	want_res(sys_write(device, DRIVER "/unbind"), 0, "unbind");
	want_res(sys_write(fewer ? "2" : "0", QUEUES_PARAM), 0, "num_request_queues");
	want_res(sys_write(device, DRIVER "/bind"), 0, "bind");
	await_disk();
	want_eq(queues(), fewer && all_queues > FEWER_QUEUES ? FEWER_QUEUES : all_queues,
		"queues after binding");
	return true;
}

static bool unplug(void)
{
	disrupt();
	ask_host("unplug");
	ask_host("plug");
	await_disk();
	return true;
}

static const struct disturber {
	const char	*name;
	bool		(*run)(void);
} disturbers[] = {
	{ "scheduler", scheduler }, { "requests", requests }, { "cache", cache },
	{ "cpus", cpus }, { "memory", memory }, { "resize", resize },
	{ "suspend", suspend }, { "unbind", unbind }, { "unplug", unplug },
};

static bool chosen(const char *which)
{
	const char *words = getenv("STORM"), *module = getenv("SUSPEND_MODULE");

	if (words && *words)
		return strstr(words, which);
	return strcmp(which, "suspend") || (module && *module);
}

/* ---- the storm ---- */

static void start_workers(void)
{
	static const enum kind kinds[STORM_WORKERS] = { BLOCK, BLOCK_URING, BLOCK_POLLED,
		NODE, NODE_VEC, NODE_POLLED, NOISE };
	unsigned int i;

	for (i = 0; i < STORM_WORKERS; i++) {
		struct worker *w = &workers[i];

		w->id = i;
		w->kind = with_node() ? kinds[i] : kinds[i % NODE];
		if (polls(w) && !has_poll())
			w->kind = on_node(w) ? NODE : BLOCK_URING;
		w->rnd = seed + i;
		if (pthread_create(&w->pthread, NULL, work, w))
			fail("pthread_create: got an error, wanted a thread");
	}
}

/* Who hasn't come any further for STALL_MS is stuck */
static void *watch(void *arg)
{
	uint64_t seen[STORM_WORKERS] = { 0 }, since[STORM_WORKERS];
	unsigned int i;

	for (i = 0; i < STORM_WORKERS; i++)
		since[i] = now_ms();
	while (!stopped()) {
		for (i = 0; i < STORM_WORKERS; i++) {
			uint64_t now = __atomic_load_n(&workers[i].progress, __ATOMIC_RELAXED);

			if (now != seen[i] || sequence() & 1) {
				seen[i] = now;
				since[i] = now_ms();
			} else if (now_ms() - since[i] > STALL_MS) {
				sys_write("w", "/proc/sysrq-trigger");
				fail("worker %u: got no further for %u s, wanted progress", i, STALL_MS / 1000);
			}
		}
		pause_ms(200);
	}
	return NULL;
}

/* All blocks once more, by the block node, as each worker knows them */
static void check_all(void)
{
	static struct storm_block b __attribute__((aligned(4096)));
	unsigned int i, n;

	for (i = 0; i < STORM_WORKERS; i++) {
		struct worker *w = &workers[i];

		for (n = 0; w->kind != NOISE && n < STORM_BLOCKS; n++) {
			uint64_t place = i * STORM_BLOCKS + n;
			int64_t got;

			blk_read(place * STORM_BLOCK, &b, sizeof(b));
			got = storm_generation(&b, place);
			if (got < (int64_t)w->low[n] || got > (int64_t)w->high[n])
				fail("at the end, worker %u, block %u: got generation %lld, wanted %llu to %llu",
				     i, n, (long long)got, (unsigned long long)w->low[n],
				     (unsigned long long)w->high[n]);
		}
	}
}

/* What a disturber has done, and how long that took */
struct account {
	unsigned int	tried, done;
	uint64_t	ms;
};

static void report(const struct account *accounts)
{
	const struct account *a = accounts;
	unsigned int i;

	for (i = 0; i < STORM_WORKERS; i++)
		fprintf(stderr, "worker %u: %llu batches, %llu failed as they may\n", i,
			(unsigned long long)workers[i].progress, (unsigned long long)workers[i].errors);
	for (i = 0; i < ARRAY_SIZE(disturbers); i++, a++)
		if (a->tried)
			fprintf(stderr, "%s: %u of %u times, %.1f s\n", disturbers[i].name,
				a->done, a->tried, a->ms / 1000.0);
}

/* One that never had its way disturbed nobody: the storm was less than it says */
static void want_disturbed(const struct account *accounts)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(disturbers); i++)
		if (chosen(disturbers[i].name) && !accounts[i].done)
			fail("%s: got %u attempts without success, wanted one", disturbers[i].name,
			     accounts[i].tried);
}

/* A busy host lets some come to their turn late; who never does is found by watch() */
static bool all_worked(void)
{
	unsigned int i;

	for (i = 0; i < STORM_WORKERS; i++)
		if (__atomic_load_n(&workers[i].progress, __ATOMIC_RELAXED) < 10)
			return false;
	return true;
}

#define ATTEMPTS	50	/* until a disturber has had its way */

static void disturb_once(unsigned int i, struct account *a)
{
	uint64_t begin;

	if (!find_disk(name, sizeof(name)))
		fail("no disk has the serial %s", serial);
	begin = now_ms();
	a->done += disturbers[i].run();
	a->ms += now_ms() - begin;
	a->tried++;
	pause_ms(rnd(&chance, 60));
}

static void disturb(uint64_t end, struct account *accounts)
{
	unsigned int i, n;

	/* Each of them once, whatever the time; then at random. */
	for (i = 0; i < ARRAY_SIZE(disturbers); i++)
		for (n = 0; chosen(disturbers[i].name) && !accounts[i].done && n < ATTEMPTS; n++)
			disturb_once(i, &accounts[i]);
	while (now_ms() < end || !all_worked()) {
		i = rnd(&chance, ARRAY_SIZE(disturbers));
		if (now_ms() < end && chosen(disturbers[i].name))
			disturb_once(i, &accounts[i]);
		else
			pause_ms(1);
	}
}

static void test_storm(const void *arg)
{
	const char *text = getenv("SECONDS");
	unsigned int seconds = soak_minutes ? soak_minutes * 60 : strtoul(text ?: "6", NULL, 0);
	uint64_t end = now_ms() + 1000 * seconds;
	struct account accounts[ARRAY_SIZE(disturbers)] = { 0 };
	unsigned int i;
	char path[256];
	pthread_t watcher;

	snprintf(path, sizeof(path), "%s/acks", getenv("VM_SCRATCH") ?: "/tmp");
	acks = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (acks < 0)
		fail("%s: got %s, wanted a file", path, err_name(-errno));
	snprintf(serial, sizeof(serial), "%s", disk.serial);
	chance.rnd = seed + 99;
	snprintf(name, sizeof(name), "%s", disk.name);
	all_queues = queues();
	start_workers();
	pthread_create(&watcher, NULL, watch, NULL);
	disturb(end, accounts);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < STORM_WORKERS; i++)
		pthread_join(workers[i].pthread, NULL);
	pthread_join(watcher, NULL);
	report(accounts);
	want_disturbed(accounts);
	if (!find_disk(name, sizeof(name)))
		fail("no disk has the serial %s", serial);
	disk_open(name);
	check_all();
}

int main(int argc, char **argv)
{
	const char *text = getenv("SEED");

	t_start(argc, argv, "Everything at once, on one disk; see the comment in storm.c");
	seed = text ? strtoull(text, NULL, 0) : 1;
	short_of_memory = getenv("SHORT_OF_MEMORY");
	fprintf(stderr, "storm: SEED=%llu\n", (unsigned long long)seed);
	t_limit(soak_minutes * 60 + 600);
	t_run("all-at-once", test_storm, NULL);
	return t_end();
}
