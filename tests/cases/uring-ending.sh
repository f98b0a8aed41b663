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
	# A file of its own for the mappings, in the first 32 MiB of the small disk
	mkfs.ext4 -q /dev/vdb 32M && mkdir -p /run/cold && mount /dev/vdb /run/cold &&
		dd if=/dev/urandom of=/run/cold/file bs=1M count=4 conv=fsync status=none && export COLD_FILE=/run/cold/file
	program ending ending vda vdb
	umount /run/cold
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
