// SPDX-License-Identifier: GPL-2.0-only
/*
 * vblk-pattern: write a pattern in which every sector names itself, or check it
 *
 * The same pattern through a block node, a passthrough node or an image file:
 * written by one and checked by another, it shows lost, misplaced, stale and
 * damaged sectors. Deliberately simple, one I/O at a time: it is the measure
 * for what is fast.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "tool.h"

#ifndef VERSION
#define VERSION "unknown"
#endif

static const char help_text[] =
"Usage: vblk-pattern write|check [options] /dev/vdX | /dev/vdXc0 | FILE\n"
"\n"
"  --offset N  first byte [0]          --size N  bytes [to the end]\n"
"  --bs N      bytes per I/O [64k]     --seed N  of the pattern [1]\n"
"  --gen N     number of this writing of it [1]\n"
"  --help  --version                   N may carry k, M, G, T\n"
"\n"
"A block node is opened O_DIRECT and exclusively to write, a character node is\n"
"used by io_uring passthrough, and what was written is flushed at the end.\n"
"Exit status: 0 all right, 1 wrong data or an error, 2 usage.\n";

struct job {
	const char	*path;
	bool		write;
	bool		passthrough;
	int		fd;
	struct io_uring	ring;
	uint64_t	offset, size;
	uint64_t	seed;
	uint32_t	gen;
	uint32_t	bs;
	char		*buf;
};

static int fail(const char *path, const char *what, int err)
{
	fprintf(stderr, "vblk-pattern: %s: %s: %s\n", path, what, strerror(err));
	return -1;
}

static int passthrough_io(struct job *j, uint32_t type, uint64_t at, uint32_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&j->ring);
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		return -EBUSY;
	virtblk_prep(sqe, virtblk_form(&j->ring), j->fd, type, at / SECTOR,
		     len ? j->buf : NULL, len);
	ret = io_uring_submit_and_wait(&j->ring, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(&j->ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(&j->ring, cqe);
	return ret > 0 ? -EPROTO : ret;
}

static int plain_io(struct job *j, uint64_t at, uint32_t len)
{
	ssize_t n = j->write ? pwrite(j->fd, j->buf, len, at) : pread(j->fd, j->buf, len, at);

	return n < 0 ? -errno : n != (ssize_t)len ? -EIO : 0;
}

static int one_io(struct job *j, uint64_t at, uint32_t len)
{
	struct pattern_result res;
	char words[128];
	int ret;

	if (j->write)
		pattern_fill(j->buf, len, at / SECTOR, j->seed, j->gen);
	else
		memset(j->buf, 0xa5, len);
	if (j->passthrough)
		ret = passthrough_io(j, j->write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN, at, len);
	else
		ret = plain_io(j, at, len);
	if (ret)
		return fail(j->path, j->write ? "writing" : "reading", -ret);
	if (j->write || pattern_check(j->buf, len, at / SECTOR, j->seed, j->gen, &res))
		return 0;
	fprintf(stderr, "vblk-pattern: %s: %s\n", j->path,
		pattern_words(&res, words, sizeof(words)));
	return -1;
}

static int flush(struct job *j)
{
	int ret = j->passthrough ? passthrough_io(j, VIRTIO_BLK_T_FLUSH, 0, 0) :
		  fsync(j->fd) ? -errno : 0;

	/* Without the feature FLUSH there is no cache to flush */
	return ret && ret != -EOPNOTSUPP ? fail(j->path, "flushing", -ret) : 0;
}

static int open_it(struct job *j)
{
	uint64_t bytes = 0;
	struct stat st;
	int flags = j->write ? O_RDWR : O_RDONLY, ret;

	if (stat(j->path, &st))
		return fail(j->path, "opening", errno);
	j->passthrough = S_ISCHR(st.st_mode);
	if (S_ISBLK(st.st_mode))
		flags |= O_DIRECT | (j->write ? O_EXCL : 0);
	j->fd = open(j->path, flags);
	if (j->fd < 0)
		return fail(j->path, "opening", errno);
	if (S_ISREG(st.st_mode))
		bytes = st.st_size;
	else if (ioctl(j->fd, BLKGETSIZE64, &bytes))
		return fail(j->path, "asking for its size", errno);
	if (!j->size)
		j->size = bytes > j->offset ? bytes - j->offset : 0;
	if (!j->passthrough)
		return 0;
	ret = io_uring_queue_init(4, &j->ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	return ret ? fail(j->path, "making a ring", -ret) : 0;
}

static uint64_t number(const char *arg)
{
	static const char units[] = "kmgt";
	char *end;
	uint64_t v = strtoull(arg, &end, 0);
	const char *unit = *end ? strchr(units, *end | 0x20) : NULL;

	if (unit)
		v <<= 10 * (unit - units + 1), end++;
	if (end == arg || *end) {
		fprintf(stderr, "vblk-pattern: '%s' is no number\n", arg);
		exit(2);
	}
	return v;
}

static void parse(struct job *j, int argc, char **argv)
{
	static const struct option opts[] = {
		{ "offset", 1, NULL, 'o' }, { "size", 1, NULL, 's' }, { "bs", 1, NULL, 'b' },
		{ "seed", 1, NULL, 'S' }, { "gen", 1, NULL, 'g' }, { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' }, { NULL, 0, NULL, 0 }
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", opts, NULL)) != -1) {
		switch (opt) {
		case 'o': j->offset = number(optarg); break;
		case 's': j->size = number(optarg); break;
		case 'b': j->bs = number(optarg); break;
		case 'S': j->seed = number(optarg); break;
		case 'g': j->gen = number(optarg); break;
		case 'h': fputs(help_text, stdout); exit(0);
		case 'V': puts("vblk-pattern " VERSION); exit(0);
		default: exit(2);
		}
	}
	if (argc - optind != 2 || (strcmp(argv[optind], "write") && strcmp(argv[optind], "check")) ||
	    !j->bs || j->bs % SECTOR || j->offset % SECTOR || j->size % SECTOR) {
		fputs(help_text, stderr);
		exit(2);
	}
	j->write = !strcmp(argv[optind], "write");
	j->path = argv[optind + 1];
}

int main(int argc, char **argv)
{
	static struct job j = { .bs = 65536, .seed = 1, .gen = 1 };
	uint64_t at, left;
	int ret;

	parse(&j, argc, argv);
	if (posix_memalign((void **)&j.buf, 4096, j.bs))
		return fail(j.path, "buffer", ENOMEM) ? 1 : 0;
	ret = open_it(&j);
	for (at = j.offset, left = j.size; !ret && left; ) {
		uint32_t len = left < j.bs ? left : j.bs;

		ret = one_io(&j, at, len);
		at += len;
		left -= len;
	}
	if (!ret && j.write)
		ret = flush(&j);
	if (!ret)
		printf("%s: %llu bytes from byte %llu %s\n", j.path, (unsigned long long)j.size,
		       (unsigned long long)j.offset, j.write ? "written" : "right");
	return ret ? 1 : 0;
}
