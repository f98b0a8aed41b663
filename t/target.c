// SPDX-License-Identifier: GPL-2.0-only
/* io_uring-vblk: disks: open them, ask them, and refuse what could do harm */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/fs.h>

#include "tool.h"

/* First line of a file made from fmt's path; false if there is none */
static bool __attribute__((format(printf, 3, 4)))
read_line(char *out, size_t len, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;
	bool ok;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(out, len, f) != NULL;
	fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = 0;
	return ok;
}

/* Name of the first entry of a directory, e.g. of .../vdac0/device/block */
static bool first_entry(char *out, size_t len, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e = NULL;

	if (!dir)
		return false;
	do
		e = readdir(dir);
	while (e && e->d_name[0] == '.');
	if (e)
		snprintf(out, len, "%s", e->d_name);
	closedir(dir);
	return e;
}

/* The disk's name: sysfs knows it, whatever the node was called in /dev */
static bool disk_of(char *out, size_t len, const struct stat *st)
{
	char path[PATH_MAX + 16], real[PATH_MAX];

	if (S_ISBLK(st->st_mode)) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u",
			 major(st->st_rdev), minor(st->st_rdev));
		if (!realpath(path, real))
			return false;
		snprintf(path, sizeof(path), "%s/partition", real);
		if (!access(path, F_OK))
			*strrchr(real, '/') = 0;
		snprintf(out, len, "%s", strrchr(real, '/') + 1);
		return true;
	}
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/block",
		 major(st->st_rdev), minor(st->st_rdev));
	return first_entry(out, len, path);
}

static void ask_sysfs(struct target *t)
{
	char line[64];

	t->numa_node = -1;
	if (!t->disk[0])
		return;
	if (read_line(line, sizeof(line), "/sys/block/%s/queue/io_poll", t->disk))
		t->poll_queues = atoi(line) != 0;
	if (read_line(line, sizeof(line), "/sys/block/%s/device/numa_node", t->disk) ||
	    read_line(line, sizeof(line), "/sys/block/%s/device/../numa_node", t->disk))
		t->numa_node = atoi(line);
}

static int ask_node(struct target *t)
{
	int err = -virtblk_query_info(t->fd, &t->info);

	if (err) {
		if (err == ENOTTY || err == EINVAL)
			complain("%s: not a virtio-blk passthrough node (wanted /dev/vdXc0)", t->path);
		else
			complain("%s: cannot ask the disk: %s", t->path, strerror(err));
		return -1;
	}
	t->bytes = t->info.capacity * SECTOR;
	t->lbs = t->info.logical_block_size;
	t->poll_queues = t->info.poll_queues;
	return 0;
}

static int ask_block(struct target *t, const struct stat *st)
{
	char line[64];

	t->lbs = SECTOR;
	if (S_ISREG(st->st_mode)) {
		t->bytes = st->st_size;
		t->poll_queues = true;	/* its file system's disk may have some */
		return 0;
	}
	if (ioctl(t->fd, BLKGETSIZE64, &t->bytes) || ioctl(t->fd, BLKSSZGET, &t->lbs)) {
		complain("%s: cannot ask the disk: %s", t->path, strerror(errno));
		return -1;
	}
	if (read_line(line, sizeof(line), "/sys/dev/block/%u:%u/start", major(st->st_rdev),
		      minor(st->st_rdev)))
		t->partition_start = strtoull(line, NULL, 10) * SECTOR;
	return 0;
}

/* Each side on its own node: say which one was meant */
static int check_kind(const struct target *t, const struct stat *st)
{
	if (t->passthrough && S_ISBLK(st->st_mode)) {
		complain("%s is a block node; passthrough (-u1) wants the character node /dev/%sc0, "
			 "or use -u0", t->path, t->disk[0] ? t->disk : "vdX");
		return -1;
	}
	if (t->passthrough && !S_ISCHR(st->st_mode)) {
		complain("%s is no device; passthrough (-u1) wants a node /dev/vdXc0", t->path);
		return -1;
	}
	if (!t->passthrough && S_ISCHR(st->st_mode)) {
		complain("%s is a character node; the block side (-u0) wants /dev/%s, or use -u1",
			 t->path, t->disk[0] ? t->disk : "vdX");
		return -1;
	}
	if (!S_ISBLK(st->st_mode) && !S_ISCHR(st->st_mode) && !S_ISREG(st->st_mode)) {
		complain("%s is neither a disk nor a file", t->path);
		return -1;
	}
	return 0;
}

static bool is_part_of(const char *name, const char *disk)
{
	size_t n = strlen(disk);

	if (strncmp(name, disk, n))
		return false;
	return !name[n] || isdigit((unsigned char)name[n]) ||
	       (name[n] == 'p' && isdigit((unsigned char)name[n + 1]));
}

/* mountinfo and swaps name devices by number or path: both end in a sysfs name */
static bool mounted(const char *disk, char *where, size_t len)
{
	char line[4096], sys[PATH_MAX], real[PATH_MAX], at[1024];
	unsigned int maj, min;
	bool found = false;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d %*d %u:%u %*s %1023s", &maj, &min, at) != 3)
			continue;
		snprintf(sys, sizeof(sys), "/sys/dev/block/%u:%u", maj, min);
		if (!realpath(sys, real) || !is_part_of(strrchr(real, '/') + 1, disk))
			continue;
		snprintf(where, len, "mounted on %s", at);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

static bool swapped(const char *disk, char *where, size_t len)
{
	char line[1024], path[512];
	bool found = false;
	FILE *f = fopen("/proc/swaps", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "/dev/%511s", path) != 1 || !is_part_of(path, disk))
			continue;
		snprintf(where, len, "swap space (/dev/%s)", path);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* device mapper, md, bcache: they stand in holders/ of the disk or a partition */
static bool held(const char *disk, char *where, size_t len)
{
	char path[PATH_MAX], holder[256];
	struct dirent *e;
	bool found;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/block/%s/holders", disk);
	found = first_entry(holder, sizeof(holder), path);
	snprintf(path, sizeof(path), "/sys/block/%s", disk);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		if (!is_part_of(e->d_name, disk))
			continue;
		snprintf(path, sizeof(path), "/sys/block/%s/%s/holders", disk, e->d_name);
		found = first_entry(holder, sizeof(holder), path);
	}
	if (dir)
		closedir(dir);
	if (found)
		snprintf(where, len, "used by %s", holder);
	return found;
}

/* A loop device holds nothing of what it lies on, and stands in no holders/ */
static bool looped(const char *disk, char *where, size_t len)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool found = false;
	DIR *dir = opendir("/sys/block");

	while (dir && !found && (e = readdir(dir))) {
		found = !strncmp(e->d_name, "loop", 4) &&
			read_line(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name) &&
			!strncmp(path, "/dev/", 5) && is_part_of(path + 5, disk);
		if (found)
			snprintf(where, len, "used by %s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* What is written to already: disks by name, files by number */
static bool guarded(const char *name)
{
	static char names[MAX_TARGETS][64];
	static int n;
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	if (n < MAX_TARGETS)
		snprintf(names[n++], sizeof(names[0]), "%s", name);
	return false;
}

static int named_twice(const struct target *t)
{
	complain("%s is named twice: with -W each disk or file only once", t->path);
	return -1;
}

static int guard_file(const struct target *t, const struct stat *st)
{
	char name[64];

	snprintf(name, sizeof(name), "file %llx:%llx", (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino);
	return guarded(name) ? named_twice(t) : 0;
}

/*
 * Writing under a file system ruins it, and the node itself doesn't check. The
 * block node is held exclusively while we write, so nobody mounts it meanwhile.
 */
static int guard(struct target *t, const struct stat *st, const struct options *o)
{
	char where[1200], path[128];

	if (S_ISREG(st->st_mode))
		return guard_file(t, st);
	if (!t->disk[0]) {
		complain("%s: cannot tell which disk this is, so no -W", t->path);
		return -1;
	}
	if (mounted(t->disk, where, sizeof(where)) || swapped(t->disk, where, sizeof(where)) ||
	    held(t->disk, where, sizeof(where)) || looped(t->disk, where, sizeof(where))) {
		complain("%s: refusing to write: disk %s is in use: %s", t->path, t->disk, where);
		return -1;
	}
	/* Comparing has two targets on one disk, and one guard is enough */
	if (guarded(t->disk))
		return o->compare ? 0 : named_twice(t);
	snprintf(path, sizeof(path), "/dev/%s", t->disk);
	t->guard = open(path, O_RDWR | O_EXCL | O_DIRECT | O_CLOEXEC);
	if (t->guard >= 0)
		return 0;
	if (errno == EBUSY)
		complain("%s: refusing to write: disk %s is in use: something holds it exclusively",
			 t->path, t->disk);
	else
		explain_open(path, errno);
	return -1;
}

/* ~N is N percent (see options.c) */
static uint64_t place(uint64_t v, uint64_t whole)
{
	return ~v <= 100 ? whole / 100 * ~v + whole % 100 * ~v / 100 : v;
}

static int take_range(struct target *t, const struct options *o)
{
	uint64_t from = place(o->offset, t->bytes);
	uint64_t size = o->size ? place(o->size, t->bytes) : t->bytes - from;

	/* A percentage seldom falls on a block: it means "about there" */
	if (~o->offset <= 100)
		from -= from % o->bs;
	if (from % t->lbs) {
		complain("%s: --offset must be a multiple of the block size %u", t->path, t->lbs);
		return -1;
	}
	if (from > t->bytes || size > t->bytes - from) {
		complain("%s: the range ends behind the disk's %llu bytes", t->path,
			 (unsigned long long)t->bytes);
		return -1;
	}
	t->first = from;
	t->blocks = size / o->bs;
	if (!t->blocks) {
		complain("%s: no room for one I/O of %u bytes in %llu", t->path, o->bs,
			 (unsigned long long)size);
		return -1;
	}
	return 0;
}

static int check_passthrough(const struct target *t, const struct options *o)
{
	const struct virtblk_uring_info *info = &t->info;

	if (o->bs > info->max_bytes) {
		complain("%s: -b %u is more than this disk takes in one command: %u",
			 t->path, o->bs, info->max_bytes);
		return -1;
	}
	if (o->sqe64 && !(info->driver_features & VIRTBLK_URING_F_IO64)) {
		complain("%s: no passthrough by 64-byte SQEs here: it needs Linux 6.12 or newer",
			 t->path);
		return -1;
	}
	if (o->vectored && o->fixedbufs && !(info->driver_features & VIRTBLK_URING_F_FIXED_VEC)) {
		complain("%s: this kernel has no vectored registered buffers: use -B0", t->path);
		return -1;
	}
	if (o->mix[OP_TRIM] && !virtblk_accepts(info, VIRTIO_BLK_T_DISCARD)) {
		complain("%s: the disk lacks the feature DISCARD, so no trim", t->path);
		return -1;
	}
	if (o->mix[OP_ZEROES] && !virtblk_accepts(info, VIRTIO_BLK_T_WRITE_ZEROES)) {
		complain("%s: the disk lacks the feature WRITE_ZEROES, so no zeroes", t->path);
		return -1;
	}
	if (o->mix[OP_FLUSH] && !virtblk_accepts(info, VIRTIO_BLK_T_FLUSH)) {
		complain("%s: the disk lacks the feature FLUSH: it has no write cache to flush",
			 t->path);
		return -1;
	}
	return 0;
}

/* What the disk cannot do is said before anything is sent */
int target_check(struct target *t, const struct options *o)
{
	if (o->bs % t->lbs) {
		complain("%s: -b %u is no multiple of the disk's block size %u",
			 t->path, o->bs, t->lbs);
		return -1;
	}
	if (o->polled && !t->poll_queues) {
		complain("%s: polled I/O (-p1, the default) needs poll queues: load virtio_blk "
			 "with poll_queues=1 or more, or use -p0", t->path);
		return -1;
	}
	if (o->polled && !t->passthrough && !o->direct) {
		complain("%s: polled I/O needs O_DIRECT: use -p0 with -O0", t->path);
		return -1;
	}
	if ((t->passthrough && check_passthrough(t, o)) || take_range(t, o))
		return -1;
	if (t->passthrough && o->bs > t->info.max_bytes_any)
		remark("above %u bytes an I/O succeeds only where its buffer lies in few pieces "
		       "(--huge helps)", t->info.max_bytes_any);
	return 0;
}

int target_open(struct target *t, const char *path, const struct options *o)
{
	int flags = O_CLOEXEC | (o->write ? O_RDWR : O_RDONLY);
	struct stat st;

	memset(t, 0, sizeof(*t));
	t->fd = t->guard = -1;
	t->passthrough = o->passthrough;
	snprintf(t->path, sizeof(t->path), "%s", path);
	if (stat(path, &st)) {
		explain_open(path, errno);
		return -1;
	}
	if (!S_ISREG(st.st_mode))
		disk_of(t->disk, sizeof(t->disk), &st);
	if (check_kind(t, &st) || (o->write && guard(t, &st, o)))
		return -1;
	if (!t->passthrough && o->direct)
		flags |= O_DIRECT;
	t->fd = open(path, flags);
	if (t->fd < 0) {
		explain_open(path, errno);
		return -1;
	}
	ask_sysfs(t);
	return t->passthrough ? ask_node(t) : ask_block(t, &st);
}

void target_close(struct target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->guard >= 0)
		close(t->guard);
	t->fd = t->guard = -1;
}

/* Both nodes of the disk that path is one of */
int target_partner(const char *path, char *block, char *node, size_t len)
{
	char disk[64];
	struct stat st;

	if (stat(path, &st)) {
		explain_open(path, errno);
		return -1;
	}
	if (!disk_of(disk, sizeof(disk), &st)) {
		complain("%s: no node of a virtio-blk disk", path);
		return -1;
	}
	if (S_ISBLK(st.st_mode)) {
		char part[96];

		snprintf(part, sizeof(part), "/sys/block/%s", disk);
		if (access(part, F_OK) || !strrchr(path, '/') || strcmp(strrchr(path, '/') + 1, disk)) {
			complain("%s: comparing needs a whole disk, not a partition or a link", path);
			return -1;
		}
	}
	snprintf(block, len, "/dev/%s", disk);
	snprintf(node, len, "/dev/%sc0", disk);
	return 0;
}
