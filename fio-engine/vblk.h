/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmd_type=vblk of the io_uring_cmd engine: virtio-blk commands through
 * /dev/vdXc0
 *
 * vblk.c builds commands and reads completions, vblk_check.c refuses what
 * would not work before anything is sent, vblk_zbd.c does zones.
 */
#ifndef FIO_VBLK_H
#define FIO_VBLK_H

#include "../fio.h"
#include "../zbd_types.h"
#include "../os/linux/io_uring.h"
#include "virtio_blk_uring.h"

/* What the engine's private options ask for, as far as it matters here */
struct vblk_job {
	bool polled;		/* hipri */
	bool fixedbufs;
	bool vectored;		/* nonvectored=0, not merely the default */
	bool write_zeroes;	/* write_mode=zeroes */
	bool unmap;		/* deac */
	unsigned int nr_ranges;	/* num_range, where fio has it, else 1 */
};

/* Per file: what the node says about its disk */
struct vblk_data {
	struct virtblk_uring_info info;
};

/* Per thread: what outlives the prep of one io_u */
struct vblk_thread;

/* vblk.c */
struct vblk_thread *fio_vblk_init(struct thread_data *td,
				  const struct vblk_job *job);
void fio_vblk_cleanup(struct vblk_thread *vt);
int fio_vblk_prep(struct vblk_thread *vt, struct io_uring_sqe *sqe,
		  struct thread_data *td, struct io_u *io_u,
		  struct iovec *iov);
void fio_vblk_set_ioprio(struct io_uring_sqe *sqe, unsigned int ioprio);
bool fio_vblk_queue_sync(struct vblk_thread *vt, struct thread_data *td,
			 struct io_u *io_u);
void fio_vblk_event(struct vblk_thread *vt, struct io_u *io_u,
		    const struct io_uring_cqe *cqe);
const char *fio_vblk_status_name(uint64_t status);
char *fio_vblk_errdetails(struct vblk_thread *vt, struct io_u *io_u);
void fio_vblk_log_error(struct vblk_thread *vt, struct thread_data *td,
			struct io_u *io_u);

/* vblk_check.c */
int fio_vblk_get_info(struct fio_file *f, struct virtblk_uring_info *info);
int fio_vblk_get_file_size(struct thread_data *td, struct fio_file *f,
			   const struct vblk_job *job);
int fio_vblk_open_file(struct thread_data *td, struct fio_file *f);
int fio_vblk_generic_open(struct thread_data *td, struct fio_file *f);
void fio_vblk_close_file(struct fio_file *f);
void fio_vblk_explain_register(struct thread_data *td, int err);

/* vblk_zbd.c */
int fio_vblk_get_zoned_model(struct fio_file *f, enum zbd_zoned_model *model);
int fio_vblk_report_zones(struct fio_file *f, uint64_t offset,
			  struct zbd_zone *zones, unsigned int nr_zones);
int fio_vblk_reset_wp(struct fio_file *f, uint64_t offset, uint64_t length);
int fio_vblk_finish_zone(struct fio_file *f, uint64_t offset, uint64_t length);
int fio_vblk_get_max_open_zones(struct fio_file *f, unsigned int *max);
int fio_vblk_get_max_active_zones(struct fio_file *f, unsigned int *max);

static inline bool vblk_accepts(const struct virtblk_uring_info *info,
				unsigned int type)
{
	return type < 64 && info->commands & (1ULL << type);
}

#endif
