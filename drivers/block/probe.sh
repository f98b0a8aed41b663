#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Prints -DHAVE_x for what the kernel headers in $1 have. compat.h says what
# follows from each. Headers are asked, not version numbers: stable kernels
# take interfaces back. A pattern (Perl's) may span lines.
#
# usage: probe.sh INCLUDE_FOLDER

set -u
include=${1:?usage: probe.sh INCLUDE_FOLDER}
[ -f "$include/linux/blk-mq.h" ] || exit 1
cd "$include" || exit 1

have() { # NAME FILES PATTERN
	# shellcheck disable=SC2086 # FILES may be several, or a glob
	if grep -qzsP -e "$3" $2; then
		echo "-D$1"
	fi
}

have HAVE_RQ_LIST 'linux/blk*.h' \
	'struct rq_list \{'
have HAVE_INIT_REQUEST_INT_NODE linux/blk-mq.h \
	'\(\*init_request\)\([^)]*,\s*int\s*\w*\)'
have HAVE_SHOULD_MERGE linux/blk-mq.h \
	'BLK_MQ_F_SHOULD_MERGE'
have HAVE_MAP_SG_QUEUE linux/blk-mq.h \
	'blk_rq_map_sg\(struct request_queue'
have HAVE_BLK_MQ_VIRTIO_H linux/blk-mq-virtio.h \
	'blk_mq_virtio_map_queues'
have HAVE_RQF_USE_SCHED linux/blk-mq.h \
	'RQF_USE_SCHED'
have HAVE_FREEZE_MEMFLAGS linux/blk-mq.h \
	'blk_mq_unfreeze_queue_nomemrestore'
have HAVE_BD_MAPPING linux/blk_types.h \
	'bd_mapping'
have HAVE_BLK_MAX_BLOCK_SIZE linux/blkdev.h \
	'define\s+BLK_MAX_BLOCK_SIZE'
have HAVE_LIMITS_FEATURES linux/blkdev.h \
	'BLK_FEAT_WRITE_CACHE'
have HAVE_ALLOC_DISK_LIMITS linux/blk-mq.h \
	'define\s+blk_mq_alloc_disk\(set, lim,'
have HAVE_COMMIT_UPDATE_FROZEN linux/blkdev.h \
	'queue_limits_commit_update_frozen'
have HAVE_MAX_HW_ZONE_APPEND linux/blkdev.h \
	'max_hw_zone_append_sectors'
have HAVE_GETGEO_DISK linux/blkdev.h \
	'\(\*getgeo\)\(struct gendisk'
have HAVE_REPORT_ZONES_ARGS linux/blkdev.h \
	'struct blk_report_zones_args'
have HAVE_END_IO_IOB linux/blk-mq.h \
	'rq_end_io_ret \(rq_end_io_fn\)\([^)]*io_comp_batch'
have HAVE_VIRTQUEUE_INFO linux/virtio_config.h \
	'struct virtqueue_info \{'
have HAVE_RESET_PREPARE linux/virtio.h \
	'\(\*reset_prepare\)'
have HAVE_IO_URING_CMD_H linux/io_uring/cmd.h \
	'struct io_uring_cmd'
have HAVE_URING_CMD_SQE 'linux/io_uring.h linux/io_uring/cmd.h' \
	'struct io_uring_sqe\s*\*sqe;'
have HAVE_URING_F_COMPAT linux/io_uring_types.h \
	'IO_URING_F_COMPAT'
have HAVE_DO_IN_TASK_LAZY linux/io_uring/cmd.h \
	'io_uring_cmd_do_in_task_lazy'
have HAVE_CMD_TW_TOKEN linux/io_uring/cmd.h \
	'io_uring_cmd_from_tw'
have HAVE_CMD_DONE_NO_FLAGS 'linux/io_uring.h linux/io_uring/cmd.h' \
	'io_uring_cmd_done\(struct io_uring_cmd \*\w+,\s*ssize_t \w+,\s*ssize_t \w+\)'
have HAVE_CMD_DONE32 linux/io_uring/cmd.h \
	'io_uring_cmd_done32'
have HAVE_IMPORT_FIXED_FLAGS linux/io_uring/cmd.h \
	'io_uring_cmd_import_fixed\([^)]*issue_flags'
have HAVE_IMPORT_FIXED_VEC linux/io_uring/cmd.h \
	'io_uring_cmd_import_fixed_vec'
have HAVE_VIRTIO_ZONED uapi/linux/virtio_blk.h \
	'VIRTIO_BLK_F_ZONED'
have HAVE_KIOCB_TCTX linux/io_uring_types.h \
	'(?s)struct io_kiocb \{.*struct io_uring_task\s*\*tctx'
