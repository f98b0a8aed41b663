// SPDX-License-Identifier: MIT
/*
 * Reads one block of a virtio-blk disk through its passthrough node and writes
 * it to standard output:
 *
 *	read-block /dev/vdac0 2048 | hexdump -C
 *
 * The smallest useful program: open the node, ask for the block size, set up a
 * ring, send one command, look at how it ended. The ring has 128-byte SQEs, which
 * work with every kernel, and 32-byte CQEs, so that a failure comes with the
 * device's own status.
 *
 * Build: cc -o read-block read-block.c -luring
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <virtblk_uring_helpers.h>

static void die(const char *what, int err)
{
	fprintf(stderr, "read-block: %s: %s\n", what, strerror(err));
	exit(1);
}

int main(int argc, char **argv)
{
	struct virtblk_uring_info info;
	struct virtblk_result r;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	uint64_t sector;
	char words[200];
	void *buf;
	int fd, ret;

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fprintf(stderr, "usage: read-block /dev/vdXc0 [SECTOR]   (sectors of 512 bytes)\n");
		return 1;
	}
	sector = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;

	fd = open(argv[1], O_RDONLY);
	if (fd < 0)
		die(argv[1], errno);
	ret = virtblk_query_info(fd, &info);
	if (ret)
		die("not a passthrough node of virtio_blk (/dev/vdXc0)", -ret);

	ret = io_uring_queue_init(1, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (ret)
		die("no ring", -ret);

	/* An aligned buffer is filled by the device itself, another one by copying */
	ret = posix_memalign(&buf, info.dma_alignment + 1, info.logical_block_size);
	if (ret)
		die("no memory", ret);

	sqe = io_uring_get_sqe(&ring);
	virtblk_prep_read(sqe, VIRTBLK_SQE128, fd, sector, buf, info.logical_block_size);
	ret = io_uring_submit(&ring);
	if (ret < 0)
		die("cannot submit", -ret);
	ret = io_uring_wait_cqe(&ring, &cqe);
	if (ret)
		die("cannot wait", -ret);

	/* res is 0 or an error, never a byte count: a command is done whole or not */
	r = virtblk_result(&ring, cqe);
	io_uring_cqe_seen(&ring, cqe);
	if (r.err) {
		fprintf(stderr, "read-block: sector %llu: %s\n", (unsigned long long)sector,
			virtblk_result_words(r, words, sizeof(words)));
		return 1;
	}
	if (write(STDOUT_FILENO, buf, info.logical_block_size) != (ssize_t)info.logical_block_size)
		die("standard output", errno);
	io_uring_queue_exit(&ring);
	return 0;
}
