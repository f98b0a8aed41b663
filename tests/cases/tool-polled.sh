#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring-vblk on a disk with poll queues: every mix of depth and batches
# begins and ends, and each I/O reaches the device once (F19). One more disk is
# on the second NUMA node, the second CPU's.
#~ also 6.1
set -u
self=$(realpath "$0")
# shellcheck source=t/test-lib.sh
. "$(dirname "$self")/../../t/test-lib.sh"
# shellcheck source=t/probe.sh
. "$(dirname "$self")/../../t/probe.sh"

# Two nodes of 512 MiB, one CPU each
numa="-smp 2,sockets=2 -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M
	-numa node,nodeid=0,cpus=0,memdev=m0 -numa node,nodeid=1,cpus=1,memdev=m1
	-device pxb-pcie,id=px,bus_nr=128,bus=pcie.0,numa_node=1 -device pcie-root-port,id=far,bus=px,chassis=77
	-blockdev null-co,read-zeroes=on,size=67108864,node-name=far -device virtio-blk-pci,drive=far,bus=far,num-queues=2"

host()
{
	host_prepare
	truncate -s 64M "$work/a.img" "$work/c.img"
	boot --params "poll_queues=1" --mem 1G --qemu "${numa//[$'\n\t']/ }" --disk "raw:$work/a.img,queues=3" \
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

# The disk's interrupts so far
interrupts() { awk '/virtio[0-9]+-req\./ { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts; }

# shellcheck disable=SC2016 # awk's words
at_the_driver()
{
	local before
	probe_on || fail tool-probe "no kprobe at the driver" "one"
	before=$(interrupts)
	probe_clear
	run "$tool" -u1 -p1 --ios 64 /dev/vdac0
	equal tool-p1-polled-at-the-driver "$status $(probe_commands | probe_all "$probe_polled")" "0 64 0"
	equal tool-p1-no-interrupts "$(($(interrupts) - before))" 0
	run "$tool" -u1 -p0 --ios 64 /dev/vdac0
	between tool-p0-interrupts "$(($(interrupts) - before))" 1 64
}

# shellcheck disable=SC2016 # awk's words
numa_node()
{
	local d far=
	for d in /sys/block/vd*; do [ "$(cat "$d/device/../numa_node")" != 1 ] || far=${d##*/}; done
	if [ -z "$far" ]; then
		skip tool-P1-P0 "this kernel knows no NUMA nodes"
		return
	fi
	probe_clear
	run "$tool" -u1 -p0 -P1 --ios 64 "/dev/${far}c0"
	equal tool-P1-runs-on-the-disks-node "$status $(probe_commands | probe_all '$2 == 1')" "0 64 0"
	probe_clear
	run taskset -c 0 "$tool" -u1 -p0 -P0 --ios 64 "/dev/${far}c0"
	equal tool-P0-does-not "$status $(probe_commands | probe_all '$2 == 0')" "0 64 0"
}

guest()
{
	mixes
	at_the_driver
	numa_node
	errors
	run "$tool" --matrix --repeats 1 -r 0.1 --json /dev/vda
	equal tool-matrix-polled-rows "$status $(grep -c 'registered, polled", "n": 1' /tmp/out)" "0 3"
	exit $failed
}

if [ "${1:-}" = guest ]; then guest; else host; fi
