#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The host unplugs, plugs and resizes disks in use; more disks than letters.
#~ also 6.1
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
	export GONE=plug HOT_NAME=vdc
	program gone plug vda
	local size
	for size in 536870912 134217728 1073741824; do
		# the host may take it away before this is through with making it
		signal "resize-$size" 2>/dev/null
		RESIZED_TO=$size program ioctl "resize-$((size >> 20))M" vdb
	done
}

do_it()
{
	case $1 in
	unplug)	qmp --wait DEVICE_DELETED device_del id=disk0 ;;
	plug)	qmp device_add driver=virtio-blk-pci id=disk0 bus=port0 drive=thr0 serial=scratch-slow num-queues=2 ;;
	add)	qmp blockdev-add driver=null-co node-name=hot size=67108864 &&
		qmp device_add driver=virtio-blk-pci id=hot bus=spare0 drive=hot serial=scratch-hot ;;
	del)	qmp --wait DEVICE_DELETED device_del id=hot && qmp blockdev-del node-name=hot ;;
	esac
}

beside()
{
	local size
	while [ -S "$VM_QMP" ]; do
		[ ! -e "$VM_SCRATCH/ask" ] || answer
		for size in 536870912 134217728 1073741824; do
			[ -e "$VM_SCRATCH/signal-resize-$size" ] || continue
			rm "$VM_SCRATCH/signal-resize-$size"
			qmp block_resize node-name=img1 "size=$size"
		done
		sleep 0.05
	done >/dev/null
}

names()
{
	export GONE=names
	program gone names vda
}

host()
{
	local i
	local -a many=()
	truncate -s 256M "$work/slow" "$work/size"
	guest_with beside --env "URING_OPTIONS=${URING_OPTIONS:-}" --timeout $((200 + ${SOAK:-0} * 60)) --params poll_queues=1 --append slub_debug=FZPU \
		--disk "raw:$work/slow,serial=scratch-slow,queues=2,iops=200" \
		--disk "raw:$work/size,serial=scratch-size" \
		-- inside
	for ((i = 0; i < 28; i++)); do many+=(--disk "null:64M,serial=scratch$i"); done
	uring_guest "${many[@]}" -- names
}

case_main "$@"
