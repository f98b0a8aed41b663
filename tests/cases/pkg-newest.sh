#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ timeout 1200
#
# The newest kernel that Debian offers: both modules build for it without a
# warning, with its own compiler.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local rel m newest out status
	read -r _ newest < <("$top/drivers/block/kernel-range.sh" --range)
	out=$("$top/tests/kernels/newest" -o "$top/build" 2>"$work/log")
	status=$?
	if [ $status = 77 ]; then
		skip all "$(tail -n 1 "$work/log")"
		exit 77
	fi
	check builds "$status" 0 || cat "$work/log" >&2
	[ $status = 0 ] || return
	rel=$(sed -n 's/^built for Linux \([^:]*\):.*/\1/p' <<<"$out")
	for m in virtio_blk virtblk_uring; do
		check "$m-is-for-it" "$(modinfo -F vermagic "$top/build/newest/$m.ko" | cut -d' ' -f1)" "$rel"
	done
	answers newest "$(echo "$top"/build/newest/root/usr/src/linux-headers-*-common/include)" \
		"ALLOC_DISK_LIMITS BD_MAPPING BLK_MAX_BLOCK_SIZE CMD_DONE32 CMD_TW_TOKEN COMMIT_UPDATE_FROZEN DO_IN_TASK_LAZY END_IO_IOB FREEZE_MEMFLAGS GETGEO_DISK IMPORT_FIXED_FLAGS IMPORT_FIXED_VEC INIT_REQUEST_INT_NODE IO_URING_CMD_H KIOCB_TCTX LIMITS_FEATURES MAX_HW_ZONE_APPEND REPORT_ZONES_ARGS RESET_PREPARE RQF_USE_SCHED RQ_LIST URING_CMD_SQE URING_F_COMPAT VIRTIO_ZONED VIRTQUEUE_INFO"
	check no-warnings "$(grep -c 'warning: ' "$top/build/newest/build.log")" 0
	if [ "$(printf '%s\n' "$rel" "$newest.999" | sort -V | tail -n 1)" = "$newest.999" ]; then
		pass "in-the-range-$rel"
	else
		skip in-the-range "Linux $rel builds, but the range ends with $newest: see Documentation/porting.md"
	fi
}

case_main "$@"
