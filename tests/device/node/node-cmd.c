// SPDX-License-Identifier: GPL-2.0-only
/*
 * node-cmd: sends one command through /dev/vdXc0 and prints how it completed:
 *
 *	res=-5 status=0x1		failed; status = big_cqe[0]
 *	res=0 result=8192		done
 *
 * or, as TYPE info, what VIRTBLK_IOCTL_INFO says, a field a line.
 *
 * The direction follows the uapi header's table, so that the tool has no
 * opinion of its own to hide the driver's.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <linux/virtio_blk_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct { const char *name; unsigned int type; } types[] = {
	{ "in", 0 }, { "out", 1 }, { "flush", 4 }, { "get_id", 8 },
	{ "get_lifetime", 10 }, { "discard", 11 }, { "write_zeroes", 13 },
	{ "secure_erase", 14 }, { "zone_append", 15 }, { "zone_report", 16 },
	{ "zone_open", 18 }, { "zone_close", 20 }, { "zone_finish", 22 },
	{ "zone_reset", 24 }, { "zone_reset_all", 26 },
};

static struct virtblk_uring_cmd cmd;
static const char *save;
static unsigned int ring_flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
static int fill = -1, mode = O_RDWR;

static void die(const char *what)
{
	fprintf(stderr, "node-cmd: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned int type_number(const char *s)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].name, s))
			return types[i].type;
	return strtoul(s, NULL, 0);
}

/* SECTOR:NUM[:FLAGS] becomes the next range of the payload */
static void add_range(char **buf, const char *arg)
{
	struct virtio_blk_discard_write_zeroes *r;
	unsigned long long sector;
	unsigned int num, flags = 0;

	if (sscanf(arg, "%llu:%u:%u", &sector, &num, &flags) < 2) {
		errno = EINVAL;
		die(arg);
	}
	*buf = realloc(*buf, cmd.data_len + sizeof(*r));
	r = (void *)(*buf + cmd.data_len);
	r->sector = htole64(sector);
	r->num_sectors = htole32(num);
	r->flags = htole32(flags);
	cmd.data_len += sizeof(*r);
}

static int mode_number(const char *s)
{
	if (!strcmp(s, "ro"))
		return O_RDONLY;
	if (!strcmp(s, "wo"))
		return O_WRONLY;
	if (!strcmp(s, "rw"))
		return O_RDWR;
	fprintf(stderr, "node-cmd: -m takes ro, wo or rw, not %s\n", s);
	exit(2);
}

static void help(void)
{
	printf("Usage: node-cmd [OPTIONS] NODE TYPE\n"
	       "  -s SECTOR  -l BYTES  -i IOPRIO  -p (polled ring)\n"
	       "  -m MODE    opened ro, wo or rw (default rw)\n"
	       "  -f BYTE    fill the buffer with it before\n"
	       "  -o FILE    keep the buffer in FILE afterwards\n"
	       "  -R SECTOR:NUM[:FLAGS]  one range of the payload (may repeat)\n"
	       "  --help --version\n"
	       "TYPE is a number, \"info\" for the ioctl's answer, or: ");
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		printf("%s ", types[i].name);
	printf("\n");
	exit(0);
}

static char *parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { 0 }
	};
	char *ranges = NULL, *buf;
	int o;

	while ((o = getopt_long(argc, argv, "s:l:i:pm:f:o:R:", longs, NULL)) != -1)
		switch (o) {
		case 's': cmd.sector = strtoull(optarg, NULL, 0); break;
		case 'l': cmd.data_len = strtoul(optarg, NULL, 0); break;
		case 'i': cmd.ioprio = strtoul(optarg, NULL, 0); break;
		case 'p': ring_flags |= IORING_SETUP_IOPOLL; break;
		case 'm': mode = mode_number(optarg); break;
		case 'f': fill = strtoul(optarg, NULL, 0); break;
		case 'o': save = optarg; break;
		case 'R': add_range(&ranges, optarg); break;
		case 'h': help(); break;
		case 'V': printf("node-cmd %s\n", VERSION); exit(0);
		default: exit(2);
		}
	if (argc - optind != 2) {
		fprintf(stderr, "node-cmd: wants NODE and TYPE (see --help)\n");
		exit(2);
	}
	cmd.type = type_number(argv[optind + 1]);
	if (posix_memalign((void **)&buf, 4096, cmd.data_len + 4096))
		die("no memory");
	memset(buf, fill >= 0 ? fill : 0, cmd.data_len);
	if (ranges)
		memcpy(buf, ranges, cmd.data_len);
	free(ranges);
	return buf;
}

static void run(int fd, char *buf)
{
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int ret = io_uring_queue_init(4, &ring, ring_flags);

	errno = -ret;
	if (ret)
		die("io_uring");
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		die("no SQE");
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = VIRTBLK_URING_CMD_IO;
	cmd.data = (uintptr_t)buf;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	ret = io_uring_submit_and_wait(&ring, 1);
	if (ret >= 0)
		ret = io_uring_wait_cqe(&ring, &cqe);
	errno = -ret;
	if (ret < 0)
		die("waiting");
	if (cqe->res)
		printf("res=%d status=%#llx\n", cqe->res,
		       (unsigned long long)cqe->big_cqe[0]);
	else
		printf("res=0 result=%llu\n",
		       (unsigned long long)cqe->big_cqe[0]);
	io_uring_queue_exit(&ring);
}

#define SHOW(field) printf(#field "=%#llx\n", (unsigned long long)i.field)

static void show_info(int fd)
{
	struct virtblk_uring_info i = { .size = sizeof(i) };

	if (ioctl(fd, VIRTBLK_IOCTL_INFO, &i))
		die("VIRTBLK_IOCTL_INFO");
	SHOW(flags); SHOW(capacity); SHOW(commands); SHOW(poll_queues);
	SHOW(max_discard_sectors); SHOW(max_discard_seg);
	SHOW(discard_alignment);
	SHOW(max_write_zeroes_sectors); SHOW(max_write_zeroes_seg);
	SHOW(write_zeroes_may_unmap);
	SHOW(max_secure_erase_sectors); SHOW(max_secure_erase_seg);
	SHOW(secure_erase_alignment);
	SHOW(zone_model); SHOW(zone_sectors); SHOW(max_open_zones);
	SHOW(max_active_zones); SHOW(max_append_sectors);
	SHOW(write_granularity);
}

int main(int argc, char **argv)
{
	char *buf = parse(argc, argv);
	int fd = open(argv[optind], mode);
	FILE *f;

	if (fd < 0 && mode == O_RDWR)
		fd = open(argv[optind], O_RDONLY);
	if (fd < 0)
		die(argv[optind]);
	if (!strcmp(argv[optind + 1], "info")) {
		show_info(fd);
		return 0;
	}
	run(fd, buf);
	if (save) {
		f = fopen(save, "w");
		if (!f || fwrite(buf, 1, cmd.data_len, f) != cmd.data_len ||
		    fclose(f))
			die(save);
	}
	return 0;
}
