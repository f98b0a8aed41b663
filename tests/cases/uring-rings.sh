#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every kind of ring and of submitting; the page cache against passthrough.
#~ also 6.1
#~ timeout 400
#~ soak
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

# A device-mapper device over a disk
stacked()	# NAME DISK
{
	modprobe -q dm_mod && dmsetup create "$1" --noudevsync --readonly --table "0 $(cat "/sys/block/$2/size") linear /dev/$2 0"
}

inside()
{
	none_scheduler
	stacked poll vda && stacked irq vdb
	# shellcheck disable=SC2046 # words
	program rings rings vda vdb vdc $(find /sys/block -name 'dm-*' -printf '%f\n' | sort)
	dmsetup remove --noudevsync poll irq	# so that the driver can be unloaded
	program coherence coherence vda vdd vde
	unloads
}

host()
{
	truncate -s 1G "$work/poll" "$work/nopoll" "$work/few"
	truncate -s 128M "$work/slow" "$work/eio"
	"$vm/need" dmsetup
	uring_guest --timeout $((380 + ${SOAK:-0} * 60)) --params poll_queues=1 --smp "$([ -n "${SOAK:-}" ] && echo 4 || echo 2)" \
		--disk "raw:$work/poll,serial=scratch-poll,queues=5,discard" \
		--disk "raw:$work/nopoll,serial=scratch-nopoll,queues=1" \
		--disk "raw:$work/few,serial=scratch-few,queues=1,qsize=16" \
		--disk "raw:$work/slow,serial=scratch-slow,queues=2,iops=200" \
		--disk "raw:$work/eio,serial=scratch-eio,queues=2,eio=4096" \
		-- inside
}

case_main "$@"
