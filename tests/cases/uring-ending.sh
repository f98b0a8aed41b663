#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Processes and rings that end with commands in flight on a slow disk.
#~ also 6.1
#~ timeout 400
#~ soak
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

inside()
{
	none_scheduler
	program ending ending vda vdb
	unloads
}

host()
{
	truncate -s 1G "$work/slow" "$work/few"
	uring_guest --timeout $((380 + ${SOAK:-0} * 60)) --params poll_queues=1 --append slub_debug=FZPU \
		--disk "raw:$work/slow,serial=scratch-slow,queues=2,iops=200" \
		--disk "raw:$work/few,serial=scratch-few,queues=1,qsize=16" \
		-- inside
}

case_main "$@"
