#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ timeout 1200
#
# The newest kernel that Debian offers: both modules build for it without a
# warning, with its own compiler. One that was fetched is fetched anew when the
# archive has a newer one, and only then.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# asked RELEASE-FETCHED [APT]: what the script says and asks the archive for, where
# that was fetched before. Fetching itself is played by a program that only says so.
asked()
{
	local out=$work/out-$1
	mkdir -p "$out/newest/root/usr/src/linux-headers-$1-$(dpkg --print-architecture)" "$work/bin"
	# the lists that were got a moment ago; none if the kernel was only now fetched
	mkdir -p "$top/build/newest/apt"
	ln -sfn "$top/build/newest/apt" "$out/newest/apt"
	printf '#!/bin/sh\necho "E: it fetches" >&2\nexit 1\n' >"$work/bin/mmdebstrap"
	[ -z "${2:-}" ] || printf '#!/bin/sh\necho "E: no way there"\nexit 100\n' >"$work/bin/apt-get"
	chmod +x "$work/bin"/*
	PATH=$work/bin:$PATH "$top/tests/kernels/newest" -o "$out" 2>&1 | grep -oE 'the archive has Linux|can.t be asked|no way there|it fetches|doesn.t build' | paste -sd,
	rm -f "$work/bin/apt-get"
}

freshness()
{
	check older-is-fetched-anew "$(asked 6.1.0)" "the archive has Linux,it fetches"
	check newest-is-kept "$(asked 99.1.0)" "doesn't build"
	check out-of-reach-is-kept "$(asked 6.2.0 unreachable)" "can't be asked,no way there,doesn't build"
}

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
	if grep -q "can't be asked" "$work/log"; then
		skip fresh "$(grep "can't be asked" "$work/log")"
	else
		freshness
	fi
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
