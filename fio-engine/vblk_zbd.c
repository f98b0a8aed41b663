/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmd_type=vblk: zones
 *
 * fio manages zones outside its queue, one command at a time, before and
 * between the I/O. The node knows io_uring only, so such a command goes through
 * a small ring of its own. fio's zbd code reads errno after a failure.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "vblk.h"

#include <linux/virtio_blk.h>

/* virtio 1.3, 5.2.6.2; Linux's header lacks these in some versions */
struct vblk_zone {
	uint64_t cap;
	uint64_t start;
	uint64_t wp;
	uint8_t type;		/* 1 conventional, 2 SWR, 3 SWP */
	uint8_t state;		/* as enum zbd_zone_cond, by design of both */
	uint8_t reserved[38];
};

struct vblk_zone_report {
	uint64_t nr_zones;
	uint8_t reserved[56];
	struct vblk_zone zones[];
};

#define VBLK_REPORT_ZONES	1024	/* zones asked for at a time */

struct vblk_one {
	const char *path;
	int fd;			/* the node */
	int ring;
	void *rings;
	size_t rings_len;
	struct io_uring_sqe *sqe;
	struct io_uring_params p;
};

static void vblk_one_close(struct vblk_one *one)
{
	if (one->sqe != MAP_FAILED)
		munmap(one->sqe, 128);
	if (one->rings != MAP_FAILED)
		munmap(one->rings, one->rings_len);
	if (one->ring >= 0)
		close(one->ring);
	if (one->fd >= 0)
		close(one->fd);
}

/* A node and a ring with one 128-byte SQE, in one mapping (Linux >= 5.4) */
static int vblk_one_open(struct vblk_one *one, const char *path, int flags)
{
	memset(one, 0, sizeof(*one));
	one->path = path;
	one->ring = -1;
	one->rings = one->sqe = MAP_FAILED;
	one->fd = open(path, flags | O_CLOEXEC);
	if (one->fd < 0)
		goto err;

	one->p.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	one->ring = syscall(__NR_io_uring_setup, 1, &one->p);
	if (one->ring < 0)
		goto err;
	one->rings_len = max(one->p.sq_off.array +
			     one->p.sq_entries * sizeof(__u32),
			     one->p.cq_off.cqes + one->p.cq_entries * 2 *
			     sizeof(struct io_uring_cqe));
	one->rings = mmap(NULL, one->rings_len, PROT_READ | PROT_WRITE,
			  MAP_SHARED, one->ring, IORING_OFF_SQ_RING);
	if (one->rings == MAP_FAILED)
		goto err;
	one->sqe = mmap(NULL, 128, PROT_READ | PROT_WRITE, MAP_SHARED,
			one->ring, IORING_OFF_SQES);
	if (one->sqe == MAP_FAILED)
		goto err;
	return 0;
err:
	flags = -errno;
	log_err("fio: vblk: %s: no ring for zone commands: %s\n", path,
		strerror(-flags));
	vblk_one_close(one);
	return flags;
}

/* fio itself says no more than the errno. */
static void vblk_one_explain(const struct vblk_one *one, unsigned int type,
			     uint64_t sector, int err, uint64_t status)
{
	const char *what = "finish";

	if (type == VIRTIO_BLK_T_ZONE_REPORT)
		what = "report";
	else if (type == VIRTIO_BLK_T_ZONE_RESET)
		what = "reset";
	log_err("fio: vblk: %s: zone %s at sector %llu: %s %s (status %llu)\n",
		one->path, what, (unsigned long long)sector,
		status ? "the device answered" : "no answer from the device:",
		status ? fio_vblk_status_name(status) : strerror(err),
		(unsigned long long)status);
}

/* Sends a command and waits for its end. Returns its res. */
static int vblk_one_cmd(struct vblk_one *one, unsigned int type,
			uint64_t sector, void *buf, unsigned int len)
{
	unsigned int *sq_tail = one->rings + one->p.sq_off.tail;
	unsigned int *array = one->rings + one->p.sq_off.array;
	unsigned int *cq_head = one->rings + one->p.cq_off.head;
	unsigned int *cq_tail = one->rings + one->p.cq_off.tail;
	unsigned int *cq_mask = one->rings + one->p.cq_off.ring_mask;
	struct io_uring_cqe *cqes = one->rings + one->p.cq_off.cqes;
	struct virtblk_uring_cmd *cmd;
	struct io_uring_cqe *cqe;
	unsigned int submit = 1;
	long ret;

	memset(one->sqe, 0, 128);
	one->sqe->opcode = IORING_OP_URING_CMD;
	one->sqe->fd = one->fd;
	one->sqe->cmd_op = VIRTBLK_URING_CMD_IO;
	cmd = (struct virtblk_uring_cmd *)one->sqe->cmd;
	cmd->type = type;
	cmd->sector = sector;
	cmd->data = (uintptr_t)buf;
	cmd->data_len = len;

	array[0] = 0;
	atomic_store_release(sq_tail, *sq_tail + 1);
	while (atomic_load_acquire(cq_tail) == *cq_head) {
		ret = syscall(__NR_io_uring_enter, one->ring, submit, 1,
			      IORING_ENTER_GETEVENTS, NULL, 0);
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (ret > 0)
			submit = 0;
	}
	/* a 32-byte CQE takes two places */
	cqe = &cqes[(*cq_head & *cq_mask) * 2];
	ret = cqe->res;
	if (ret < 0)
		vblk_one_explain(one, type, sector, -ret, cqe->big_cqe[0]);
	atomic_store_release(cq_head, *cq_head + 1);
	return ret;
}

static int vblk_zbd_err(int err)
{
	errno = -err;
	return err;
}

int fio_vblk_get_zoned_model(struct fio_file *f, enum zbd_zoned_model *model)
{
	struct virtblk_uring_info info;

	if (fio_vblk_get_info(f, &info))
		return vblk_zbd_err(-EINVAL);
	/* Linux drives a host-aware disk as one without zones. */
	*model = info.zone_sectors ? ZBD_HOST_MANAGED : ZBD_NONE;
	return 0;
}

static bool vblk_zone_convert(const struct vblk_zone *from,
			      const struct virtblk_uring_info *info,
			      struct zbd_zone *z)
{
	uint64_t start = le64_to_cpu(from->start);
	uint64_t left = info->capacity - start, len = info->zone_sectors;

	z->start = start << 9;
	z->len = min(left, len) << 9;
	z->capacity = le64_to_cpu(from->cap) << 9;
	z->wp = le64_to_cpu(from->wp) << 9;
	z->cond = from->state;
	switch (from->type) {
	case 1:
		z->type = ZBD_ZONE_TYPE_CNV;
		break;
	case 2:
		z->type = ZBD_ZONE_TYPE_SWR;
		break;
	case 3:
		z->type = ZBD_ZONE_TYPE_SWP;
		break;
	default:
		return false;
	}
	if (z->cond == ZBD_ZONE_COND_READONLY ||
	    z->cond == ZBD_ZONE_COND_OFFLINE) {
		z->cond = ZBD_ZONE_COND_OFFLINE;	/* nothing to write */
		z->wp = z->start;
	} else if (z->cond == ZBD_ZONE_COND_FULL) {
		z->wp = z->start + z->capacity;
	}
	return start < info->capacity;
}

/* One report's worth; returns the number of zones, 0 at the disk's end. */
static int vblk_report_some(struct vblk_one *one,
			    const struct virtblk_uring_info *info,
			    struct vblk_zone_report *report, uint64_t sector,
			    struct zbd_zone *zones, unsigned int nr)
{
	unsigned int i;
	uint64_t got, asked = nr;
	int ret;

	if (sector >= info->capacity)
		return 0;
	ret = vblk_one_cmd(one, VIRTIO_BLK_T_ZONE_REPORT, sector, report,
			   sizeof(*report) + nr * sizeof(report->zones[0]));
	if (ret < 0)
		return ret;
	got = le64_to_cpu(report->nr_zones);
	got = min(got, asked);
	for (i = 0; i < got; i++)
		if (!vblk_zone_convert(&report->zones[i], info, &zones[i]))
			return -EIO;
	return got;
}

int fio_vblk_report_zones(struct fio_file *f, uint64_t offset,
			  struct zbd_zone *zones, unsigned int nr_zones)
{
	struct virtblk_uring_info info;
	struct vblk_zone_report *report;
	unsigned int done = 0, max_nr;
	struct vblk_one one;
	int ret;

	if (fio_vblk_get_info(f, &info))
		return vblk_zbd_err(-EINVAL);
	max_nr = min((unsigned int)VBLK_REPORT_ZONES,
		     (unsigned int)((info.max_bytes_any - sizeof(*report)) /
				    sizeof(report->zones[0])));
	ret = posix_memalign((void **)&report, 4096, sizeof(*report) +
			     max_nr * sizeof(report->zones[0]));
	if (ret)
		return vblk_zbd_err(-ret);
	ret = vblk_one_open(&one, f->file_name, O_RDONLY);
	if (ret)
		goto out;
	while (done < nr_zones) {
		ret = vblk_report_some(&one, &info, report,
				       (offset >> 9) + (uint64_t)done *
				       info.zone_sectors, zones + done,
				       min(nr_zones - done, max_nr));
		if (ret <= 0)
			break;
		done += ret;
	}
	vblk_one_close(&one);
out:
	free(report);
	return ret < 0 ? vblk_zbd_err(ret) : done;
}

/* @type for every zone that begins in @offset ... @offset + @length */
static int vblk_zones(struct fio_file *f, unsigned int type, uint64_t offset,
		      uint64_t length)
{
	struct virtblk_uring_info info;
	uint64_t sector = offset >> 9;
	struct vblk_one one;
	int ret;

	if (fio_vblk_get_info(f, &info) || !info.zone_sectors)
		return vblk_zbd_err(-EINVAL);
	ret = vblk_one_open(&one, f->file_name, O_RDWR);
	if (ret)
		return vblk_zbd_err(ret);
	for (; !ret && sector < (offset + length) >> 9;
	     sector += info.zone_sectors)
		ret = vblk_one_cmd(&one, type, sector, NULL, 0);
	vblk_one_close(&one);
	return ret ? vblk_zbd_err(ret) : 0;
}

int fio_vblk_reset_wp(struct fio_file *f, uint64_t offset, uint64_t length)
{
	return vblk_zones(f, VIRTIO_BLK_T_ZONE_RESET, offset, length);
}

int fio_vblk_finish_zone(struct fio_file *f, uint64_t offset, uint64_t length)
{
	return vblk_zones(f, VIRTIO_BLK_T_ZONE_FINISH, offset, length);
}

int fio_vblk_get_max_open_zones(struct fio_file *f, unsigned int *max)
{
	struct virtblk_uring_info info;

	if (fio_vblk_get_info(f, &info))
		return vblk_zbd_err(-EINVAL);
	*max = info.max_open_zones;
	return 0;
}

int fio_vblk_get_max_active_zones(struct fio_file *f, unsigned int *max)
{
	struct virtblk_uring_info info;

	if (fio_vblk_get_info(f, &info))
		return vblk_zbd_err(-EINVAL);
	*max = info.max_active_zones;
	return 0;
}
