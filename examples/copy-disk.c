// SPDX-License-Identifier: MIT
/*
 * Copies a whole virtio-blk disk to a file, with 64 reads in flight:
 *
 *	copy-disk /dev/vdac0 disk.img
 *
 * What makes it quick: the queue is never let run dry, since each completion starts
 * the next read at once; the buffers are registered, so that the kernel pins them
 * once and not per read; and completion is polled, without an interrupt per read.
 *
 * Polling needs virtio_blk to be loaded with poll_queues=1 or more; without, this
 * program says so and waits for interrupts. The ring has 64-byte SQEs where the
 * driver takes them. The file is written by pwrite() in the order in which the reads
 * complete: a polled ring takes only I/O that can be polled.
 *
 * Build: cc -o copy-disk copy-disk.c -luring
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <virtblk_uring_helpers.h>

#define DEPTH	64
#define PIECE	65536		/* bytes per read, or less if the disk takes less */

static struct virtblk_uring_info info;
static struct io_uring ring;
static int disk, file;
static char *buffers;
static uint32_t piece;
static uint64_t next, end;	/* bytes */
static struct slot { uint64_t offset; uint32_t bytes; } slots[DEPTH];

static void die(const char *what, int err)
{
	fprintf(stderr, "copy-disk: %s: %s\n", what, strerror(err));
	exit(1);
}

/* Opens a ring as this disk wants it, and registers the buffers as number 0 */
static void setup(void)
{
	unsigned int flags = virtblk_setup_flags(&info);
	struct iovec all;
	int ret;

	if (info.poll_queues)
		flags |= IORING_SETUP_IOPOLL;
	else
		fprintf(stderr, "copy-disk: not polling: load virtio_blk with poll_queues=1\n");
	ret = io_uring_queue_init(DEPTH, &ring, flags);
	if (ret)
		die("no ring", -ret);

	piece = info.max_bytes_any < PIECE ? info.max_bytes_any : PIECE;
	piece -= piece % info.logical_block_size;
	all.iov_len = (size_t)DEPTH * piece;
	all.iov_base = mmap(NULL, all.iov_len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all.iov_base == MAP_FAILED)
		die("no memory", errno);
	ret = io_uring_register_buffers(&ring, &all, 1);
	if (ret)
		die("buffers not registered (ulimit -l must allow 4 MiB)", -ret);
	buffers = all.iov_base;
}

static void *buffer(unsigned int i)
{
	return buffers + (size_t)i * piece;
}

/* Starts the next read with slot i; false at the end of the disk */
static bool read_next(unsigned int i)
{
	struct io_uring_sqe *sqe;

	if (next == end)
		return false;
	slots[i].offset = next;
	slots[i].bytes = end - next < piece ? end - next : piece;
	next += slots[i].bytes;
	sqe = io_uring_get_sqe(&ring);		/* never NULL: one per slot */
	virtblk_prep_read_fixed(sqe, virtblk_form(&ring), disk, slots[i].offset / 512,
				buffer(i), slots[i].bytes, 0);
	sqe->user_data = i;
	return true;
}

/* Takes one completion to the file; returns its slot */
static unsigned int take(struct io_uring_cqe *cqe)
{
	struct virtblk_result r = virtblk_result(&ring, cqe);
	unsigned int i = cqe->user_data;
	char words[200];

	io_uring_cqe_seen(&ring, cqe);
	if (r.err) {
		fprintf(stderr, "copy-disk: %u bytes at byte %llu: %s\n", slots[i].bytes,
			(unsigned long long)slots[i].offset,
			virtblk_result_words(r, words, sizeof(words)));
		exit(1);
	}
	if (pwrite(file, buffer(i), slots[i].bytes, slots[i].offset) != (ssize_t)slots[i].bytes)
		die("cannot write the file", errno);
	return i;
}

int main(int argc, char **argv)
{
	unsigned int i, inflight = 0;
	struct io_uring_cqe *cqe;
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: copy-disk /dev/vdXc0 FILE\n");
		return 1;
	}
	disk = open(argv[1], O_RDONLY);
	if (disk < 0)
		die(argv[1], errno);
	ret = virtblk_query_info(disk, &info);
	if (ret)
		die("not a passthrough node of virtio_blk (/dev/vdXc0)", -ret);
	file = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (file < 0)
		die(argv[2], errno);
	end = info.capacity * 512;
	setup();

	for (i = 0; i < DEPTH; i++)
		inflight += read_next(i);
	while (inflight) {
		ret = io_uring_submit_and_wait(&ring, 1);
		if (ret < 0 && ret != -EINTR)
			die("cannot submit", -ret);
		while (!io_uring_peek_cqe(&ring, &cqe))
			inflight -= !read_next(take(cqe));
	}
	if (fsync(file) || close(file))
		die(argv[2], errno);
	fprintf(stderr, "copy-disk: %llu bytes\n", (unsigned long long)end);
	return 0;
}
