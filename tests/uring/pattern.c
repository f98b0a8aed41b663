// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's half of the data tests: puts the tests' pattern into an image
 * file before the guest starts, and compares the file with it afterwards.
 * The lists hold lines "offset length seed" whose ranges don't overlap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern-core.h"

#define CHUNK	(1 << 20)

static char buf[CHUNK];

static int one_range(int fd, int check, unsigned long long off,
		     unsigned long long len, unsigned long long seed)
{
	ssize_t n;
	long at;

	while (len) {
		size_t part = len < CHUNK ? len : CHUNK;

		if (!check)
			pattern_put(buf, part, off, seed);
		n = check ? pread(fd, buf, part, off)
			  : pwrite(fd, buf, part, off);
		if (n != (ssize_t)part) {
			fprintf(stderr, "%zd of %zu bytes at %llu: %s\n", n,
				part, off, strerror(errno));
			return 1;
		}
		at = check ? pattern_find_wrong(buf, part, off, seed) : -1;
		if (at >= 0) {
			printf("byte %llu of the image: got other data, wanted the pattern of seed %llu\n",
			       off + at, seed);
			return 1;
		}
		off += part;
		len -= part;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long long off, len, seed, ranges = 0, bytes = 0;
	int check, fd, bad = 0;
	FILE *list;

	if (argc != 4 || (strcmp(argv[1], "fill") && strcmp(argv[1], "check"))) {
		printf("usage: %s fill|check IMAGE LIST\n", argv[0]);
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 1;
	}
	check = !strcmp(argv[1], "check");
	fd = open(argv[2], check ? O_RDONLY : O_RDWR);
	list = fopen(argv[3], "r");
	if (fd < 0 || !list) {
		fprintf(stderr, "%s: %s\n", fd < 0 ? argv[2] : argv[3],
			strerror(errno));
		return 1;
	}
	while (fscanf(list, "%llu %llu %llu", &off, &len, &seed) == 3) {
		bad |= one_range(fd, check, off, len, seed);
		ranges++;
		bytes += len;
	}
	if (!ranges) {
		fprintf(stderr, "%s: no ranges in it\n", argv[3]);
		return 1;
	}
	printf("%llu ranges, %llu bytes\n", ranges, bytes);
	return bad;
}
