// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's half of storm: is all that was acknowledged on the image?
 *
 *	verify IMAGE ACKS		the image as QEMU left it
 *	verify --log LOG IMAGE ACKS	the image as a disk would have it that lost
 *					all it held when the power went: LOG (QEMU's
 *					blklogwrites) is replayed into IMAGE, which
 *					is empty before, up to the last flush
 *
 * ACKS holds the generation of each block, little endian, as the guest knew it
 * to be durable. On the image a block may be newer, never older or broken.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storm-block.h"

#define LOG_MAGIC	0x6a736677736872ULL
#define LOG_FLUSH	1
#define LOG_DISCARD	4

struct log_super {
	uint64_t	magic, version, entries;
	uint32_t	sector;
} __attribute__((packed));

struct log_entry {
	uint64_t	sector, sectors, flags, bytes;
};

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "verify: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

/* Applies the writes from one place of the log to another */
static void apply(int log, int image, uint32_t sector, off_t from, off_t to)
{
	static char data[1 << 20];
	struct log_entry e;

	while (from < to) {
		uint64_t left, at;
		off_t pos = from + sector;

		if (pread(log, &e, sizeof(e), from) != sizeof(e))
			die("log entry");
		left = e.flags & LOG_DISCARD ? 0 : e.sectors * sector;
		at = e.sector * sector;
		from = pos + left;
		while (left) {
			size_t n = left < sizeof(data) ? left : sizeof(data);

			if (pread(log, data, n, pos) != (ssize_t)n ||
			    pwrite(image, data, n, at) != (ssize_t)n)
				die("log data");
			pos += n;
			at += n;
			left -= n;
		}
	}
}

/*
 * An entry takes its place before it is written: one that was on its way when
 * QEMU was killed left a hole, and was never acknowledged. Returns how many
 * flushes there were.
 */
static unsigned int replay(const char *path, const char *image)
{
	int log = open_file(path, O_RDONLY), out = open_file(image, O_WRONLY);
	off_t at, done, size = lseek(log, 0, SEEK_END);
	unsigned int flushes = 0;
	struct log_super super;
	struct log_entry e;

	if (pread(log, &super, sizeof(super), 0) != sizeof(super) ||
	    super.magic != LOG_MAGIC || super.sector < 512) {
		errno = EINVAL;
		die(path);
	}
	at = done = super.sector;
	while (at < size && pread(log, &e, sizeof(e), at) == sizeof(e)) {
		at += super.sector;
		if (!(e.flags & LOG_DISCARD))
			at += e.sectors * super.sector;
		if (!(e.flags & LOG_FLUSH) || at > size)
			continue;
		apply(log, out, super.sector, done, at);
		done = at;
		flushes++;
	}
	close(log);
	close(out);
	return flushes;
}

int main(int argc, char **argv)
{
	unsigned int bad = 0, acked = 0, newer = 0, flushes = 0, i;
	const char *log = NULL;
	struct storm_block b;
	int image, acks;

	if (argc > 2 && !strcmp(argv[1], "--log")) {
		log = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc != 3) {
		printf("usage: verify [--log LOG] IMAGE ACKS\n");
		return argc < 2 || strcmp(argv[1], "--help") ? 2 : 0;
	}
	if (log)
		flushes = replay(log, argv[1]);
	image = open_file(argv[1], O_RDONLY);
	acks = open_file(argv[2], O_RDONLY);
	for (i = 0; i < STORM_WORKERS * STORM_BLOCKS; i++) {
		uint64_t ack = 0;
		int64_t got;

		/* a file that is short knows of no more */
		if (pread(acks, &ack, 8, i * 8) < 0)
			die(argv[2]);
		if (pread(image, &b, sizeof(b), (off_t)i * STORM_BLOCK) != sizeof(b))
			die(argv[1]);
		got = storm_generation(&b, i);
		acked += ack > 0;
		newer += got > (int64_t)ack;
		if (got >= (int64_t)ack)
			continue;
		if (bad++ < 5)
			printf("block %u of worker %u: got generation %lld, wanted at least %llu\n",
			       i % STORM_BLOCKS, i / STORM_BLOCKS, (long long)got,
			       (unsigned long long)ack);
	}
	printf("%u blocks acknowledged, %u newer than that, %u lost or broken, %u flushes\n",
	       acked, newer, bad, flushes);
	/* nothing acknowledged would be nothing checked */
	return bad > 0 || !acked;
}
