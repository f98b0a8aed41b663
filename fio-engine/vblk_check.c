/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmd_type=vblk: what would not work, or would destroy somebody's data, is
 * refused by name before anything is sent
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vblk.h"
#include "vblk_claim.h"

#include <linux/virtio_blk.h>

static int vblk_refuse(const char *who, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int vblk_refuse(const char *who, const char *fmt, ...)
{
	char msg[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(msg, sizeof(msg), fmt, args);
	va_end(args);
	log_err("fio: vblk: %s: %s\n", who, msg);
	return EINVAL;
}

/*
 * Options
 */

struct vblk_no_option {
	const char *name;
	const char *off;	/* a value that asks for nothing */
	const char *why;
};

#define NVME_ONLY "is for cmd_type=nvme only"

static const struct vblk_no_option vblk_no_options[] = {
	{ "fdp",		"0",	NVME_ONLY },
	{ "fdp_pli",		NULL,	NVME_ONLY },
	{ "fdp_pli_select",	NULL,	NVME_ONLY },
	{ "plids",		NULL,	NVME_ONLY },
	{ "plid_select",	NULL,	NVME_ONLY },
	{ "dataplacement",	"none",	NVME_ONLY },
	{ "dp_scheme",		NULL,	NVME_ONLY },
	{ "md_per_io_size",	"0",	NVME_ONLY },
	{ "pi_act",		NULL,	NVME_ONLY },
	{ "pi_chk",		NULL,	NVME_ONLY },
	{ "apptag",		NULL,	NVME_ONLY },
	{ "apptag_mask",	NULL,	NVME_ONLY },
	{ "readfua",		"0",	"virtio-blk has no FUA" },
	{ "writefua",		"0",	"virtio-blk has no FUA; use fsync=1" },
	{ "verify_mode",	"read",	"virtio-blk has no compare command" },
	{ "sync",		"none",	"virtio-blk has no FUA; use fsync=1" },
	{ "sync_file_range",	NULL,	"has no virtio-blk command; use fsync=" },
	{ "uncached",		"0",	"passthrough has no page cache" },
	{ "nowait",		"0",	"passthrough has no RWF_NOWAIT" },
	{ "write_hint",		"none",	"virtio-blk has no write hints" },
	{ "atomic",		"0",	"virtio-blk has no atomic writes" },
	{ "recover_zbd_write_error", "0", "works on block nodes only" },
};

/* The value given for an option, the job's own before the global section's */
static const char *vblk_option_in(struct flist_head *opts, const char *name)
{
	const char *value = NULL;
	struct print_option *p;
	struct flist_head *entry;

	flist_for_each(entry, opts) {
		p = flist_entry(entry, struct print_option, list);
		if (!strcmp(p->name, name))
			value = p->value ? p->value : "";
	}
	return value;
}

static const char *vblk_option(struct thread_data *td, const char *name)
{
	const char *value = vblk_option_in(&td->opt_list, name);

	if (value)
		return value;
	return vblk_option_in(&get_global_options()->opt_list, name);
}

static int vblk_check_options(struct thread_data *td,
			      const struct vblk_job *job)
{
	const char *who = td->o.name, *value;
	int i;

	for (i = 0; i < FIO_ARRAY_SIZE(vblk_no_options); i++) {
		const struct vblk_no_option *no = &vblk_no_options[i];

		value = vblk_option(td, no->name);
		if (!value || (no->off && !strcmp(value, no->off)) ||
		    (!strcmp(no->name, "sync") && !strcmp(value, "0")))
			continue;
		return vblk_refuse(who, "%s=%s: %s", no->name, value, no->why);
	}

	value = vblk_option(td, "write_mode");
	if (value && strcmp(value, "write") && strcmp(value, "zeroes"))
		return vblk_refuse(who, "write_mode=%s: virtio-blk has write "
				   "and zeroes only", value);
	if (job->write_zeroes && !td_write(td))
		return vblk_refuse(who, "write_mode=zeroes, but readwrite= has "
				   "no write");
	if (job->unmap && !job->write_zeroes)
		return vblk_refuse(who, "deac=1 needs write_mode=zeroes");
	return 0;
}

/*
 * The node
 */

/* "vda" of the disk that block device @dev is or is a partition of */
static bool vblk_disk_of(dev_t dev, char *disk, size_t size)
{
	char link[64], path[PATH_MAX], part[PATH_MAX + 16];
	const char *name;
	struct stat st;

	sprintf(link, "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!realpath(link, path))
		return false;
	snprintf(part, sizeof(part), "%s/partition", path);
	if (!stat(part, &st))
		*strrchr(path, '/') = '\0';
	name = strrchr(path, '/') + 1;
	return snprintf(disk, size, "%s", name) < size;
}

static int vblk_wrong_node(struct fio_file *f, const struct stat *st)
{
	char disk[32];

	if (S_ISBLK(st->st_mode) &&
	    vblk_disk_of(st->st_rdev, disk, sizeof(disk)))
		return vblk_refuse(f->file_name, "cmd_type=vblk needs the "
				   "character device /dev/%sc0, not the block "
				   "device", disk);
	return vblk_refuse(f->file_name, "not the character device /dev/vdXc0 "
			   "of a virtio-blk disk, which cmd_type=vblk needs");
}

static int vblk_open_error(struct fio_file *f, int err)
{
	if (err == ENOENT)
		return vblk_refuse(f->file_name, "no such node; cmd_type=vblk "
				   "needs /dev/vdXc0, which the virtio_blk "
				   "driver with passthrough creates beside "
				   "/dev/vdX");
	return vblk_refuse(f->file_name, "cannot open: %s", strerror(err));
}

/* Returns 0 or a positive errno, having said why. */
int fio_vblk_get_info(struct fio_file *f, struct virtblk_uring_info *info)
{
	struct stat st;
	int fd, ret = 0;

	if (stat(f->file_name, &st))
		return vblk_open_error(f, errno);
	if (!S_ISCHR(st.st_mode))
		return vblk_wrong_node(f, &st);

	fd = open(f->file_name, O_RDONLY);
	if (fd < 0)
		return vblk_open_error(f, errno);
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (ioctl(fd, VIRTBLK_IOCTL_INFO, info) < 0) {
		if (errno == ENODEV)
			ret = vblk_refuse(f->file_name, "the disk is gone");
		else
			ret = vblk_wrong_node(f, &st);
	}
	close(fd);
	return ret;
}

/*
 * The disk
 */

static int vblk_check_features(struct thread_data *td, struct fio_file *f,
			       const struct vblk_job *job,
			       const struct virtblk_uring_info *info)
{
	const struct thread_options *o = &td->o;
	bool trims = td_trim(td) || o->trim_percentage;
	const char *name = f->file_name;

	if ((td_write(td) || trims) && info->flags & VIRTBLK_URING_INFO_RO)
		return vblk_refuse(name, "the disk is read-only");
	if (job->polled && !info->poll_queues)
		return vblk_refuse(name, "hipri needs poll queues, and this "
				   "disk has none: load the driver with "
				   "poll_queues=N (virtio_blk.poll_queues=N "
				   "on the kernel's command line)");
	if (job->fixedbufs && !td_read(td) && !td_write(td))
		return vblk_refuse(name, "fixedbufs: a job that only trims has "
				   "no buffers to register");
	if (job->fixedbufs && job->vectored &&
	    !(info->driver_features & VIRTBLK_URING_F_FIXED_VEC))
		return vblk_refuse(name, "this kernel has no vectored "
				   "registered buffers: fixedbufs needs "
				   "nonvectored=1 here");
	if (trims && !vblk_accepts(info, VIRTIO_BLK_T_DISCARD) &&
	    (o->zone_mode != ZONE_MODE_ZBD || !info->zone_sectors))
		return vblk_refuse(name, "trim needs VIRTIO_BLK_F_DISCARD, "
				   "which this disk does not offer");
	if (job->write_zeroes && !vblk_accepts(info, VIRTIO_BLK_T_WRITE_ZEROES))
		return vblk_refuse(name, "write_mode=zeroes needs "
				   "VIRTIO_BLK_F_WRITE_ZEROES, which this disk "
				   "does not offer");
	if (job->unmap && !info->write_zeroes_may_unmap)
		return vblk_refuse(name, "deac=1: this disk's write-zeroes "
				   "cannot unmap (write_zeroes_may_unmap is 0)");
	if ((o->fsync_blocks || o->fdatasync_blocks || o->end_fsync ||
	     o->fsync_on_close) && !vblk_accepts(info, VIRTIO_BLK_T_FLUSH))
		return vblk_refuse(name, "fsync=, fdatasync=, end_fsync= and "
				   "fsync_on_close= need VIRTIO_BLK_F_FLUSH, "
				   "which this disk does not offer: it has no "
				   "write cache");
	return 0;
}

/* All of @ddir's sizes and places must be whole logical blocks. */
static int vblk_check_blocks(struct thread_data *td, struct fio_file *f,
			     enum fio_ddir ddir,
			     const struct virtblk_uring_info *info)
{
	const struct thread_options *o = &td->o;
	unsigned int lbs = info->logical_block_size, i;
	const struct {
		const char *name;
		long long value;
	} all[] = {
		{ "bs", o->min_bs[ddir] },
		{ "bs", o->max_bs[ddir] },
		{ "blockalign", o->ba[ddir] },
		{ "offset", o->start_offset },
		{ "offset_align", o->start_offset_align },
		{ "offset_increment", o->offset_increment },
		{ "rw=..:N", o->ddir_seq_add },
		{ "zonesize", o->zone_size },
		{ "zonerange", o->zone_range },
		{ "zoneskip", o->zone_skip },
	};

	if (o->bs_unaligned)
		return vblk_refuse(f->file_name, "bs_unaligned: the disk takes "
				   "multiples of %u bytes only", lbs);
	for (i = 0; i < FIO_ARRAY_SIZE(all); i++)
		if (all[i].value % lbs)
			return vblk_refuse(f->file_name, "%s=%lld is not a "
					   "multiple of the disk's logical "
					   "block of %u bytes", all[i].name,
					   all[i].value, lbs);
	for (i = 0; i < o->bssplit_nr[ddir]; i++)
		if (o->bssplit[ddir][i].bs % lbs)
			return vblk_refuse(f->file_name, "bssplit has %llu, not "
					   "a multiple of the disk's logical "
					   "block of %u bytes",
					   (unsigned long long)
					   o->bssplit[ddir][i].bs, lbs);
	return 0;
}

static int vblk_check_limit(struct fio_file *f, const char *what,
			    unsigned long long bytes, const char *limit,
			    unsigned long long max)
{
	if (bytes <= max)
		return 0;
	return vblk_refuse(f->file_name, "%s=%llu is more than the disk takes "
			   "in one command (%s, %llu)", what, bytes, limit, max);
}

static int vblk_check_sizes(struct thread_data *td, struct fio_file *f,
			    const struct vblk_job *job,
			    const struct virtblk_uring_info *info)
{
	const struct thread_options *o = &td->o;
	bool data_writes = td_write(td) && !job->write_zeroes;
	/* a trim of a zone, the disk's or fio's, is its reset */
	bool discards = td_trim(td) && o->zone_mode != ZONE_MODE_ZBD &&
		vblk_accepts(info, VIRTIO_BLK_T_DISCARD);
	int ret = 0;

	if (td_read(td))
		ret = vblk_check_blocks(td, f, DDIR_READ, info);
	if (!ret && td_write(td))
		ret = vblk_check_blocks(td, f, DDIR_WRITE, info);
	if (!ret && td_trim(td))
		ret = vblk_check_blocks(td, f, DDIR_TRIM, info);

	if (!ret && td_read(td))
		ret = vblk_check_limit(f, "bs", o->max_bs[DDIR_READ],
				       "max_bytes", info->max_bytes);
	if (!ret && data_writes)
		ret = vblk_check_limit(f, "bs", o->max_bs[DDIR_WRITE],
				       "max_bytes", info->max_bytes);
	if (!ret && job->write_zeroes)
		ret = vblk_check_limit(f, "bs", o->max_bs[DDIR_WRITE],
				       "max_write_zeroes_sectors",
				       info->max_write_zeroes_sectors * 512ULL);
	if (!ret && discards) {
		ret = vblk_check_limit(f, "bs", o->max_bs[DDIR_TRIM],
				       "max_discard_sectors",
				       info->max_discard_sectors * 512ULL);
		if (!ret)
			ret = vblk_check_limit(f, "num_range", job->nr_ranges,
					       "max_discard_seg",
					       info->max_discard_seg);
	}
	return ret;
}

static int vblk_check_claim(struct thread_data *td, struct fio_file *f)
{
	char by[256];

	if (!td_write(td) && !td_trim(td))
		return 0;
	if (td->o.allow_mounted_write)
		return 0;
	if (!vblk_claimed(f->file_name, by, sizeof(by)))
		return 0;
	vblk_refuse(f->file_name, "%s; allow_mounted_write=1 would write all "
		    "the same", by);
	return EBUSY;
}

/*
 * The first that fio asks, in the parent, before any job runs: the place to
 * refuse
 */
int fio_vblk_get_file_size(struct thread_data *td, struct fio_file *f,
			   const struct vblk_job *job)
{
	struct virtblk_uring_info info;
	int ret;

	ret = vblk_check_options(td, job);
	if (!ret)
		ret = fio_vblk_get_info(f, &info);
	if (!ret)
		ret = vblk_check_features(td, f, job, &info);
	if (!ret)
		ret = vblk_check_sizes(td, f, job, &info);
	if (!ret)
		ret = vblk_check_claim(td, f);
	if (ret) {
		td_verror(td, ret, "cmd_type=vblk");
		return 1;
	}
	f->real_file_size = info.capacity * 512;
	fio_file_set_size_known(f);
	return 0;
}

/*
 * Who uses the disk is asked again, as somebody may have begun to since: before
 * this job's turn, in exec_prerun=, between loops. And an iolog's job is known
 * to write only now.
 */
int fio_vblk_open_file(struct thread_data *td, struct fio_file *f)
{
	struct vblk_data *data = FILE_ENG_DATA(f);
	int ret;

	if (data)
		return 0;
	data = calloc(1, sizeof(*data));
	if (!data)
		return 1;
	ret = fio_vblk_get_info(f, &data->info);
	if (!ret)
		ret = vblk_check_claim(td, f);
	if (ret) {
		free(data);
		td_verror(td, ret, "cmd_type=vblk");
		return 1;
	}
	FILE_SET_ENG_DATA(f, data);
	return 0;
}

/*
 * fio opens a character device for writing even if the job only reads. A disk
 * needs no more than its jobs do, as a block device.
 */
int fio_vblk_generic_open(struct thread_data *td, struct fio_file *f)
{
	int ret;

	f->filetype = FIO_TYPE_BLOCK;
	ret = generic_open_file(td, f);
	f->filetype = FIO_TYPE_CHAR;
	return ret;
}

void fio_vblk_close_file(struct fio_file *f)
{
	struct vblk_data *data = FILE_ENG_DATA(f);

	FILE_SET_ENG_DATA(f, NULL);
	free(data);
}

void fio_vblk_explain_register(struct thread_data *td, int err)
{
	unsigned long long need = (unsigned long long)td->o.iodepth *
				  td_max_bs(td);
	struct rlimit lim;

	if (err != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &lim) ||
	    lim.rlim_cur == RLIM_INFINITY)
		return;
	log_err("fio: vblk: %s: fixedbufs locks %llu KiB of memory (iodepth x "
		"bs), the limit of locked memory (RLIMIT_MEMLOCK, ulimit -l) "
		"is %llu KiB: raise it, or leave out fixedbufs\n", td->o.name,
		need >> 10, (unsigned long long)lim.rlim_cur >> 10);
}
