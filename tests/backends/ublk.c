// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small ublk server: a disk that is a file. One thread and one ring per
 * queue; what a queue's ring carries are the driver's requests and the file's
 * I/O alike, so that one system call takes and gives many.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/falloc.h>
#include <linux/ublk_cmd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH		128U
#define MAX_QUEUES	16U
#define BUF_BYTES	(512U << 10)
#define DISCARD_BYTES	(1U << 30)

/* Newer kernels may be without the plain numbers; older headers have no others */
#define CTRL(nr)	_IOWR('u', nr, struct ublksrv_ctrl_cmd)
#define IO_CMD(nr)	_IOWR('u', nr, struct ublksrv_io_cmd)

/* user_data: the tag, and this bit where the file's I/O has ended */
#define FILE_IO		(1ULL << 32)

struct queue {
	pthread_t thread;
	struct io_uring ring;
	unsigned int id;
	const struct ublksrv_io_desc *desc;
	char *bufs;
	int err;
};

static struct io_uring ctrl_ring;
static struct queue queues[MAX_QUEUES];
static struct ublksrv_ctrl_dev_info info = {
	.nr_hw_queues = 1, .queue_depth = DEPTH, .max_io_buf_bytes = BUF_BYTES,
	.dev_id = 0,
};
static int ctrl_fd, char_fd, file_fd;
static pthread_barrier_t fetched;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "ublk: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- control ---- */

static int control(unsigned int nr, void *addr, unsigned int len, uint64_t data)
{
	struct ublksrv_ctrl_cmd *cmd;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ctrl_ring);
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		return -EBUSY;
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = ctrl_fd;
	sqe->cmd_op = CTRL(nr);
	cmd = (struct ublksrv_ctrl_cmd *)sqe->cmd;
	cmd->dev_id = info.dev_id;
	cmd->queue_id = -1;
	cmd->addr = (uintptr_t)addr;
	cmd->len = len;
	cmd->data[0] = data;
	io_uring_submit(&ctrl_ring);
	do {
		ret = io_uring_wait_cqe(&ctrl_ring, &cqe);
	} while (ret == -EINTR);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(&ctrl_ring, cqe);
	return ret;
}

static void must(int ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, strerror(-ret));
}

static void control_open(void)
{
	ctrl_fd = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
	if (ctrl_fd < 0)
		die("/dev/ublk-control: %s (modprobe ublk_drv)", strerror(errno));
	must(io_uring_queue_init(8, &ctrl_ring, IORING_SETUP_SQE128), "ring");
}

/* DEL_DEV waits until the server has closed the device and its rings: the
 * server leaves it to a process that comes after it. */
static int delete(unsigned int id)
{
	control_open();
	info.dev_id = id;
	must(control(UBLK_CMD_DEL_DEV, NULL, 0, 0), "DEL_DEV");
	return 0;
}

static int stop(unsigned int id)
{
	control_open();
	info.dev_id = id;
	must(control(UBLK_CMD_STOP_DEV, NULL, 0, 0), "STOP_DEV");
	return 0;
}

static void set_params(off_t bytes)
{
	struct ublk_params p = {
		.len = sizeof(p),
		.types = UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD,
		.basic = {
			.attrs = UBLK_ATTR_VOLATILE_CACHE,
			.logical_bs_shift = 9, .physical_bs_shift = 12,
			.io_min_shift = 9, .io_opt_shift = 12,
			.max_sectors = BUF_BYTES >> 9, .dev_sectors = bytes >> 9,
		},
		.discard = {
			.discard_granularity = 4096,
			.max_discard_sectors = DISCARD_BYTES >> 9,
			.max_write_zeroes_sectors = DISCARD_BYTES >> 9,
			.max_discard_segments = 1,
		},
	};

	must(control(UBLK_CMD_SET_PARAMS, &p, sizeof(p), 0), "SET_PARAMS");
}

/* ---- data ---- */

static struct io_uring_sqe *get_sqe(struct queue *q)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);

	if (!sqe) {
		io_uring_submit(&q->ring);
		sqe = io_uring_get_sqe(&q->ring);
	}
	if (!sqe)
		die("the ring is full");
	return sqe;
}

static char *buffer(struct queue *q, unsigned int tag)
{
	return q->bufs + (size_t)tag * BUF_BYTES;
}

/* Gives the driver a result (or none, the first time) and asks for a request */
static void fetch(struct queue *q, unsigned int tag, unsigned int nr, int result)
{
	struct io_uring_sqe *sqe = get_sqe(q);
	struct ublksrv_io_cmd *cmd = (struct ublksrv_io_cmd *)sqe->cmd;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = char_fd;
	sqe->cmd_op = IO_CMD(nr);
	sqe->user_data = tag;
	cmd->q_id = q->id;
	cmd->tag = tag;
	cmd->result = result;
	cmd->addr = (uintptr_t)buffer(q, tag);
}

static void start_io(struct queue *q, unsigned int tag)
{
	const struct ublksrv_io_desc *d = &q->desc[tag];
	uint64_t off = d->start_sector << 9, len = (uint64_t)d->nr_sectors << 9;
	struct io_uring_sqe *sqe = get_sqe(q);

	switch (ublksrv_get_op(d)) {
	case UBLK_IO_OP_READ:
		io_uring_prep_read(sqe, file_fd, buffer(q, tag), len, off);
		break;
	case UBLK_IO_OP_WRITE:
		io_uring_prep_write(sqe, file_fd, buffer(q, tag), len, off);
		break;
	case UBLK_IO_OP_FLUSH:
		io_uring_prep_fsync(sqe, file_fd, IORING_FSYNC_DATASYNC);
		break;
	case UBLK_IO_OP_DISCARD:
		io_uring_prep_fallocate(sqe, file_fd, FALLOC_FL_KEEP_SIZE |
					FALLOC_FL_PUNCH_HOLE, off, len);
		break;
	case UBLK_IO_OP_WRITE_ZEROES:
		/* a hole reads as zeroes on any file system that has them */
		io_uring_prep_fallocate(sqe, file_fd, FALLOC_FL_KEEP_SIZE |
					FALLOC_FL_PUNCH_HOLE, off, len);
		break;
	default:
		io_uring_prep_nop(sqe);
		break;
	}
	sqe->user_data = tag | FILE_IO;
}

static int result_of(struct queue *q, unsigned int tag, int res)
{
	switch (ublksrv_get_op(&q->desc[tag])) {
	case UBLK_IO_OP_READ:
	case UBLK_IO_OP_WRITE:
		return res;
	case UBLK_IO_OP_FLUSH:
	case UBLK_IO_OP_DISCARD:
	case UBLK_IO_OP_WRITE_ZEROES:
		return res < 0 ? res : (int)(q->desc[tag].nr_sectors << 9);
	default:
		return -EOPNOTSUPP;
	}
}

/* true while the driver has requests for this tag */
static bool handle(struct queue *q, const struct io_uring_cqe *cqe)
{
	unsigned int tag = (uint32_t)cqe->user_data;

	if (cqe->user_data & FILE_IO)
		fetch(q, tag, UBLK_IO_COMMIT_AND_FETCH_REQ, result_of(q, tag, cqe->res));
	else if (cqe->res == UBLK_IO_RES_OK)
		start_io(q, tag);
	else
		return false;
	return true;
}

static void queue_prepare(struct queue *q)
{
	size_t page = getpagesize(), bytes;
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG };

	bytes = (DEPTH * sizeof(*q->desc) + page - 1) / page * page;
	q->desc = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, char_fd,
		       UBLKSRV_CMD_BUF_OFFSET + q->id * UBLK_MAX_QUEUE_DEPTH *
		       sizeof(*q->desc));
	q->bufs = mmap(NULL, (size_t)DEPTH * BUF_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (q->desc == MAP_FAILED || q->bufs == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	must(io_uring_queue_init_params(2 * DEPTH, &q->ring, &p), "ring");
}

static void *serve(void *arg)
{
	struct queue *q = arg;
	unsigned int live = DEPTH, tag, head, n;
	struct io_uring_cqe *cqe;

	queue_prepare(q);
	for (tag = 0; tag < DEPTH; tag++)
		fetch(q, tag, UBLK_IO_FETCH_REQ, 0);
	q->err = io_uring_submit(&q->ring);
	pthread_barrier_wait(&fetched);
	while (live && q->err >= 0) {
		q->err = io_uring_submit_and_wait(&q->ring, 1);
		if (q->err == -EINTR)
			q->err = 0;
		n = 0;
		io_uring_for_each_cqe(&q->ring, head, cqe) {
			live -= !handle(q, cqe);
			n++;
		}
		io_uring_cq_advance(&q->ring, n);
	}
	io_uring_queue_exit(&q->ring);
	return NULL;
}

static void open_char(void)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/ublkc%u", info.dev_id);
	/* devtmpfs makes it, a moment after ADD_DEV */
	for (int i = 0; i < 500; i++) {
		char_fd = open(path, O_RDWR | O_CLOEXEC);
		if (char_fd >= 0)
			return;
		usleep(10000);
	}
	die("%s: %s", path, strerror(errno));
}

static int add(const char *file, int flags)
{
	struct stat st;

	file_fd = open(file, O_RDWR | O_CLOEXEC | flags);
	if (file_fd < 0 || fstat(file_fd, &st))
		die("%s: %s", file, strerror(errno));
	control_open();
	must(control(UBLK_CMD_ADD_DEV, &info, sizeof(info), 0), "ADD_DEV");
	set_params(st.st_size);
	open_char();
	pthread_barrier_init(&fetched, NULL, info.nr_hw_queues + 1);
	for (unsigned int i = 0; i < info.nr_hw_queues; i++) {
		queues[i].id = i;
		if (pthread_create(&queues[i].thread, NULL, serve, &queues[i]))
			die("no thread");
	}
	/* START_DEV reads the partition table, which the queues serve */
	pthread_barrier_wait(&fetched);
	must(control(UBLK_CMD_START_DEV, NULL, 0, getpid()), "START_DEV");
	printf("/dev/ublkb%u\n", info.dev_id);
	fflush(stdout);
	for (unsigned int i = 0; i < info.nr_hw_queues; i++)
		pthread_join(queues[i].thread, NULL);
	return 0;
}

static void usage(void)
{
	puts("usage: ublk add [-i ID] [-q QUEUES] [-d] FILE | stop ID | del ID\n"
	     "Serves FILE as /dev/ublkbID until it is stopped (in the foreground; it prints\n"
	     "the disk's name when it is there). -d: FILE is opened O_DIRECT.\n"
	     "del comes after the server has ended: it waits for that.");
	exit(0);
}

int main(int argc, char **argv)
{
	int c, flags = 0;

	if (argc > 1 && !strcmp(argv[1], "--version")) {
		puts(VERSION);
		return 0;
	}
	if (argc < 3 || !strcmp(argv[1], "--help"))
		usage();
	if (!strcmp(argv[1], "stop"))
		return stop(atoi(argv[2]));
	if (!strcmp(argv[1], "del"))
		return delete(atoi(argv[2]));
	if (strcmp(argv[1], "add"))
		die("unknown command %s; see --help", argv[1]);
	optind = 2;
	while ((c = getopt(argc, argv, "i:q:d")) != -1) {
		switch (c) {
		case 'i': info.dev_id = atoi(optarg); break;
		case 'q': info.nr_hw_queues = atoi(optarg); break;
		case 'd': flags = O_DIRECT; break;
		default: return 2;
		}
	}
	if (optind >= argc || !info.nr_hw_queues || info.nr_hw_queues > MAX_QUEUES)
		die("say FILE, and 1 to %u queues", MAX_QUEUES);
	return add(argv[optind], flags);
}
