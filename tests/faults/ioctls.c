// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random ioctls on the node
 *
 * Whatever number and pointer: an errno that the contract names, an answer only
 * where there is one, and not a byte outside it. SEED=N repeats a run, COUNT=N
 * says how many.
 */
#define _GNU_SOURCE
#include "helper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CANARY	0xa7

static const unsigned long known[] = { BLKGETSIZE64, BLKSSZGET, BLKPBSZGET,
	BLKROGET, VIRTBLK_IOCTL_INFO, _IOR(0x12, 114, int) };
static uint64_t state;

static uint64_t rnd(uint64_t below)
{
	return random_next(&state) % below;
}

/*
 * Not the VFS's own, some of which freeze a file system: they never reach the
 * driver.
 */
static unsigned long random_number(void)
{
	static const unsigned int types[] = { 0x12, 0x12, _IOC_TYPE(VIRTBLK_IOCTL_INFO),
		_IOC_TYPE(VIRTBLK_IOCTL_INFO), 'V', 0x03, 0x22, 'N', 0xae };

	if (rnd(3) == 0)
		return known[rnd(ARRAY_SIZE(known))];
	/* a known one with a size, a direction or a number that it hasn't */
	if (rnd(2) == 0)
		return known[rnd(ARRAY_SIZE(known))] ^ 1UL << rnd(8) ^ (rnd(2) ? 1UL << (16 + rnd(16)) : 0);
	return _IOC(rnd(4), types[rnd(ARRAY_SIZE(types))], rnd(256), rnd(1 << 14));
}

static unsigned int answer_size(unsigned long number, const char *asked)
{
	uint32_t size;

	switch (number) {
	case BLKGETSIZE64:
	case _IOR(0x12, 114, int):
		return 8;
	case BLKSSZGET:
	case BLKPBSZGET:
	case BLKROGET:
		return 4;
	case VIRTBLK_IOCTL_INFO:
		memcpy(&size, asked, 4);
		return size;
	default:
		return 0;
	}
}

static bool allowed(int err)
{
	return err == ENOTTY || err == EFAULT || err == EINVAL;
}

/* One call on memory that is all there: what it may write is known */
static void good_memory(int fd, char *page, unsigned long number)
{
	char *at = page + 8 * rnd(256);
	unsigned int size, i;
	char asked[4];

	memset(page, CANARY, 8192);
	if (rnd(2)) {
		uint32_t info = rnd(3) ? sizeof(struct virtblk_uring_info) : rnd(5000);

		memcpy(at, &info, 4);
	}
	memcpy(asked, at, 4);
	if (ioctl(fd, number, at)) {
		if (!allowed(errno))
			fail("ioctl %#lx: got %s, wanted -ENOTTY, -EFAULT or -EINVAL",
			     number, err_name(-errno));
		size = 4;	/* what was asked for stays */
		if (memcmp(at, asked, 4))
			fail("ioctl %#lx refused: the size was changed", number);
	} else {
		size = answer_size(number, asked);
		if (!size)
			fail("ioctl %#lx: got 0, wanted -ENOTTY", number);
	}
	for (i = 0; i < 8192; i++)
		if ((unsigned char)page[i] != CANARY && (page + i < at || page + i >= at + size))
			fail("ioctl %#lx at byte %ld wrote byte %u, wanted %u bytes at most",
			     number, (long)(at - page), i, size);
}

static void bad_memory(int fd, const char *guarded, char *read_only, unsigned long number)
{
	const void *where[] = { NULL, (void *)4096, guarded + 8192 - 1 - rnd(300),
		(void *)0xffff888000001000UL, (void *)-4096UL, read_only, (void *)0x7ffffffff000UL };
	const void *at = where[rnd(ARRAY_SIZE(where))];
	unsigned int i;

	if (ioctl(fd, number, at) && !allowed(errno))
		fail("ioctl %#lx at %p: got %s, wanted -ENOTTY, -EFAULT or -EINVAL",
		     number, at, err_name(-errno));
	for (i = 0; i < 4096; i++)
		if (read_only[i])
			fail("ioctl %#lx wrote to read-only memory", number);
}

static void test_random(const void *arg)
{
	const char *text = getenv("COUNT");
	uint64_t i, count = text ? strtoull(text, NULL, 0) : 20000;
	char *page = map_pages(8192), *read_only = map_pages(4096);
	int fd = open_chr(O_RDONLY);
	uint64_t bytes = 0;

	mprotect(read_only, 4096, PROT_READ);
	if (soak_minutes)
		count *= 100;
	for (i = 0; i < count; i++) {
		if (rnd(4))
			good_memory(fd, page, random_number());
		else
			bad_memory(fd, page, read_only, random_number());
	}
	want_res(ioctl(fd, BLKGETSIZE64, &bytes) ? -errno : 0, 0, "BLKGETSIZE64 at the end");
	want_eq(bytes, disk.bytes, "the disk's size at the end");
}

int main(int argc, char **argv)
{
	const char *text = getenv("SEED");

	t_start(argc, argv, "Random ioctls on the node");
	state = text ? strtoull(text, NULL, 0) : 1;
	fprintf(stderr, "ioctls: SEED=%llu\n", (unsigned long long)state);
	t_limit(600);
	t_run("random-ioctls", test_random, NULL);
	return t_end();
}
