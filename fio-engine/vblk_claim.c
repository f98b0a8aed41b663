/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who uses the disk of a /dev/vdXc0? The node itself asks no holder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vblk_claim.h"

/* What nobody can tell is taken for in use. errno says why. */
static bool vblk_cannot_tell(const char *path, char *by, size_t size)
{
	snprintf(by, size, "cannot tell whether it is in use (%.100s: %s)",
		 path, strerror(errno));
	return true;
}

/* Is @source, a path of /proc/mounts or /proc/swaps, the block device @dev? */
static bool vblk_same_dev(const char *source, dev_t dev)
{
	struct stat st;

	return !stat(source, &st) && S_ISBLK(st.st_mode) && st.st_rdev == dev;
}

static bool vblk_mounted(const char *name, dev_t dev, char *by, size_t size)
{
	char *line = NULL;
	size_t len = 0;
	bool found = false;
	FILE *file = fopen("/proc/self/mountinfo", "r");

	if (!file)
		return false;
	while (!found && getline(&line, &len, file) > 0) {
		char where[PATH_MAX], source[PATH_MAX], *dash;
		unsigned int maj, min;

		/* ID parent maj:min root where options [tags] - type source */
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &maj, &min,
			   where) != 3)
			continue;
		dash = strstr(line, " - ");
		if (!dash || sscanf(dash, " - %*s %4095s", source) != 1)
			source[0] = '\0';
		/* btrfs has a device number of its own: look at its source */
		found = makedev(maj, min) == dev || vblk_same_dev(source, dev);
		if (found)
			snprintf(by, size, "/dev/%s is mounted on %.150s", name,
				 where);
	}
	free(line);
	fclose(file);
	return found;
}

static bool vblk_swap(const char *name, dev_t dev, char *by, size_t size)
{
	char *line = NULL, path[PATH_MAX];
	size_t len = 0;
	bool found = false;
	FILE *file = fopen("/proc/swaps", "r");

	if (!file)
		return false;
	while (!found && getline(&line, &len, file) > 0)
		found = sscanf(line, "%4095s", path) == 1 &&
			vblk_same_dev(path, dev);
	if (found)
		snprintf(by, size, "/dev/%s is used as swap", name);
	free(line);
	fclose(file);
	return found;
}

static bool vblk_held(const char *name, const char *sysdir, char *by,
		      size_t size)
{
	char path[PATH_MAX + 16];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/holders", sysdir);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(by, size, "/dev/%s is held by %.60s (md, LVM, "
				 "dm)", name, entry->d_name);
	}
	closedir(dir);
	return found;
}

/* A loop device holds nothing of what it lies on, and stands in no holders/ */
static bool vblk_looped(const char *name, dev_t dev, char *by, size_t size)
{
	char path[PATH_MAX + 16], backing[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir("/sys/block");

	while (dir && !found && (entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file",
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		found = fscanf(file, "%4095s", backing) == 1 &&
			vblk_same_dev(backing, dev);
		if (found)
			snprintf(by, size, "/dev/%s is held by %.60s", name,
				 entry->d_name);
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* One block device, disk or partition, whose sysfs folder is @sysdir */
static bool vblk_dev_claimed(const char *name, const char *sysdir, char *by,
			     size_t size)
{
	char path[PATH_MAX + 16];
	unsigned int maj, min;
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/dev", sysdir);
	file = fopen(path, "r");
	if (!file)
		return false;
	ok = fscanf(file, "%u:%u", &maj, &min) == 2;
	fclose(file);
	if (!ok)
		return false;
	return vblk_mounted(name, makedev(maj, min), by, size) ||
		vblk_swap(name, makedev(maj, min), by, size) ||
		vblk_held(name, sysdir, by, size) ||
		vblk_looped(name, makedev(maj, min), by, size);
}

/*
 * The kernel's own answer, which knows other mount namespaces too. Another fio
 * may be asking just now, so one EBUSY is not enough.
 */
static bool vblk_exclusive(const char *name, char *by, size_t size)
{
	char path[PATH_MAX + 16];
	int fd, tries;

	snprintf(path, sizeof(path), "/dev/%s", name);
	for (tries = 0; tries < 20; tries++) {
		fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return false;
		}
		if (errno != EBUSY)
			return vblk_cannot_tell(path, by, size);
		usleep(10000);
	}
	snprintf(by, size, "another program has exclusive use of %s or of a "
		 "partition", path);
	return true;
}

static bool vblk_disk_claimed(const char *disk, const char *sysdir, char *by,
			      size_t size)
{
	char path[PATH_MAX + 300];
	struct dirent *entry;
	bool found = vblk_dev_claimed(disk, sysdir, by, size);
	DIR *dir = opendir(sysdir);

	while (dir && !found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, disk, strlen(disk)))
			continue;	/* partitions are called after it */
		snprintf(path, sizeof(path), "%s/%s", sysdir, entry->d_name);
		found = vblk_dev_claimed(entry->d_name, path, by, size);
	}
	if (dir)
		closedir(dir);
	return found || vblk_exclusive(disk, by, size);
}

bool vblk_claimed(const char *path, char *by, size_t size)
{
	char dir[64], sysdir[PATH_MAX];
	struct dirent *entry;
	bool found = false, any = false;
	struct stat st;
	DIR *disks;

	if (stat(path, &st))
		return vblk_cannot_tell(path, by, size);
	/* node -> virtio device -> its one disk */
	snprintf(dir, sizeof(dir), "/sys/dev/char/%u:%u/device/block",
		 major(st.st_rdev), minor(st.st_rdev));
	disks = opendir(dir);
	if (!disks)
		return vblk_cannot_tell(dir, by, size);
	while (!found && (entry = readdir(disks))) {
		if (entry->d_name[0] == '.')
			continue;
		any = true;
		snprintf(sysdir, sizeof(sysdir), "%s/%s", dir, entry->d_name);
		found = vblk_disk_claimed(entry->d_name, sysdir, by, size);
	}
	closedir(disks);
	errno = ENODEV;
	return found || (!any && vblk_cannot_tell(dir, by, size));
}
