// SPDX-License-Identifier: GPL-2.0-only
/*
 * "discards /dev/vdX SECTOR:COUNT…" discards ranges by the block path (Linux 6.12),
 * all in one submission: io_uring plugs it, and the block layer makes one request
 * of what the device takes in one. BLKDISCARD never does; it waits for each.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BLOCK_URING_CMD_DISCARD
#define BLOCK_URING_CMD_DISCARD	_IO(0x12, 0)	/* linux/blkdev.h of 6.12 */
#endif

#define MOST	64

static void put(struct io_uring *ring, int fd, const char *range)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	unsigned long long sector, count;

	if (sscanf(range, "%llu:%llu", &sector, &count) != 2) {
		fprintf(stderr, "discards: not SECTOR:COUNT: %s\n", range);
		exit(2);
	}
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd,
			 (void *)(uintptr_t)(sector * 512), 0, 0);
	sqe->cmd_op = BLOCK_URING_CMD_DISCARD;
	sqe->addr3 = count * 512;
}

int main(int argc, char **argv)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int fd, i, failed = 0;

	if (argc < 3 || argc - 2 > MOST) {
		fprintf(stderr, "usage: discards /dev/vdX SECTOR:COUNT… (at most %d)\n", MOST);
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_DIRECT);
	if (fd < 0 || io_uring_queue_init(MOST, &ring, 0)) {
		fprintf(stderr, "discards: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (i = 2; i < argc; i++)
		put(&ring, fd, argv[i]);
	io_uring_submit_and_wait(&ring, argc - 2);
	for (i = 2; i < argc && !io_uring_wait_cqe(&ring, &cqe); i++) {
		if (cqe->res) {
			fprintf(stderr, "discards: %s\n", strerror(-cqe->res));
			failed = 1;
		}
		io_uring_cqe_seen(&ring, cqe);
	}
	return failed;
}
