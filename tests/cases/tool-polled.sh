#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring-vblk on a disk with poll queues: every mix of depth and batches
# begins and ends, and each I/O reaches the device once (F19).
set -u
self=$(realpath "$0")
# shellcheck source=t/test-lib.sh
. "$(dirname "$self")/../../t/test-lib.sh"

host()
{
	host_prepare
	truncate -s 64M "$work/a.img" "$work/c.img"
	boot --params "poll_queues=1" --disk "raw:$work/a.img,queues=3" \
		--disk "raw:$work/c.img,queues=3,eio=4096"
}

# d s c n: also batches larger than the depth, and those that don't divide it
mixes()
{
	local u disk d s c n extra
	while read -r d s c n extra; do
		for u in 1 0; do
			disk=/dev/vda
			[ $u = 1 ] && disk=/dev/vdac0
			mark
			# shellcheck disable=SC2086 # a list of words
			works "tool-F19-u$u-d$d-s$s-c$c-n$n${extra// /}" timeout 30 "$tool" -u$u -p1 -b512 \
				-d$d -s$s -c$c -n$n --ios 200 $extra $disk
			# One command each by passthrough; the block layer may merge, not lose
			equal "tool-F19-u$u-d$d-s$s-c$c-n$n${extra// /}-at-the-device" \
				"$(seen_sectors read)" $((200 * n))
		done
	done <<-EOF
		1 1 1 1
		4096 32 32 1 -B0
		4096 4096 4096 1
		7 3 5 4
		8 16 64 1 -F0
		33 8 1 2 --defer 0
		16 4 4 1 --sqpoll
		16 4 4 1 --rate 2000
	EOF
}

errors()
{
	refused tool-polled-IOERR-in-words 'the device answered IOERR' \
		timeout 30 "$tool" -u1 -p1 -R0 -d1 --ios 4 --offset 2M /dev/vdbc0
	refused tool-polled-EIO-on-block 'Input/output error' \
		timeout 30 "$tool" -p1 -R0 -d1 --ios 4 --offset 2M /dev/vdb
}

guest()
{
	mixes
	errors
	run "$tool" --matrix --repeats 1 -r 0.1 --json /dev/vda
	equal tool-matrix-polled-rows "$status $(grep -c 'registered, polled", "n": 1' /tmp/out)" "0 3"
	exit $failed
}

if [ "${1:-}" = guest ]; then guest; else host; fi
