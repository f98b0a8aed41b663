#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The newest kernel that Debian offers boots with the driver, and what io_uring
# commands do is right on it. The whole is make check KERNEL=newest.
#~ timeout 1800
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

running() { check "runs-$1" "$(uname -r) $(cat /sys/module/virtio_blk/version)" "$1 $(cat "$top/VERSION")"; }

host()
{
	local name out status
	if [ "${KERNEL:-}" = newest ]; then
		skip all "each of its cases runs by itself on this kernel"
		exit 77
	fi
	out=$("$top/tests/kernels/newest" --image -o "$top/build" 2>"$work/log")
	status=$?
	if [ $status = 77 ]; then
		skip all "$(tail -n 1 "$work/log")"
		exit 77
	fi
	check builds "$status" 0 || cat "$work/log" >&2
	[ $status = 0 ] || return
	export KERNEL=newest
	guest --disk null:64M -- running "$(sed -n 's/^built for Linux \([^:]*\):.*/\1/p' <<<"$out")"
	for name in uring-data uring-refuse uring-gone uring-rings; do
		"$lib/$name.sh" || failed=1
	done
}

case_main "$@"
