#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A guest's own disk served by vhost-blk: VDUSE is the hypervisor. What is
# written to it is compared with what stands on the disk behind it.
#~ timeout 400
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"
# shellcheck source=../vhost/lib.sh
. "$top/tests/vhost/lib.sh"

# Written in pieces of three sizes through the disk, read back by both ways
verified()
{
	local bs
	head -c 2M /dev/urandom >/run/data
	for bs in 4096 65536 1048576; do
		dd if=/run/data of="/dev/$disk" bs="$bs" oflag=direct status=none 2>/run/err || is "writing" "$(cat /run/err)" "success"
		dd if=/dev/vda bs=1M count=2 iflag=direct status=none | cmp -s - /run/data || is "on the disk behind, by $bs" other "what was written"
		dd if="/dev/$disk" bs="$bs" count=$((2097152 / bs)) iflag=direct status=none 2>/run/err | cmp -s - /run/data ||
			is "read back" "other data $(cat /run/err)" "what was written"
	done
}

direct_sum() { dd if="$1" bs=1M count=16 iflag=direct status=none | md5sum; }
same_content() { is "content" "$(direct_sum "/dev/$disk")" "$(direct_sum /dev/vda)"; }

block_io()
{
	verified
	same_content
	is "size" "$(sys size)" "$(cat /sys/block/vda/size)"
	is "serial" "$(sys serial)" disk-behind
	is "cache" "$(sys queue/write_cache)" "write back"
}

node_io()
{
	is "IN" "$(cmd -s 8 -l 65536 in)" "res=0 result=0"
	is "OUT" "$(cmd -s 8 -l 65536 out)" "res=0 result=0"
	is "FLUSH" "$(cmd flush)" "res=0 result=0"
	like "GET_ID" "$(cmd -l 20 get_id)" "res=0 *"
	is "DISCARD" "$(cmd -R 4096:64 discard)" "res=0 result=0"
	is "WRITE_ZEROES" "$(cmd -R 8192:64 write_zeroes)" "res=0 result=0"
	is "zeroes behind" "$(dd if=/dev/vda bs=512 skip=8192 count=64 iflag=direct status=none | tr -d '\0' | wc -c)" 0
	is "IN past the end" "$(cmd -s 131072 -l 4096 in)" "res=-5 status=0x1"
	is "SECURE_ERASE" "$(cmd -R 0:8 secure_erase)" "res=-95 status=0"
	is "polled IN" "$(cmd -p -s 8 -l 4096 in)" "res=0 result=0"
	same_content
}

# 32 reads in flight until killed or the disk has gone; sets loader
load()
{
	/run/bin/client --path block --file "/dev/$disk" --depth 32 --batch 8 --size 4096 --ios 100000000 --warmup 1 --fixed >/run/load.out 2>&1 &
	loader=$!
	reads=$(ios)
	await 20 more_ios
}

ios() { awk '{ print $1 }' "/sys/block/$disk/stat"; }
more_ios() { [ "$(ios)" -gt $((reads + 300)) ]; }

# Queues go from worker to worker under load
workers_move()
{
	local n workers
	load
	for n in 1 2 3 4 5 6; do
		kill -USR1 "${pids[$name]}"
		reads=$(ios)
		await 20 more_ios || is "reads after move $n" none some
		[ "$n" != 3 ] || verified
	done
	kill "$loader"
	wait "$loader"
	workers=$(cat /proc/"${pids[$name]}"/task/*/comm | grep -c "^vhost-")
	is "workers" "$workers" 3
	same_content
}

# The driver goes and comes back: reset, and a start at another first kick
driver_again()
{
	local v
	v=$(basename /sys/bus/vdpa/devices/"$name"/virtio*)
	echo "$v" >/sys/bus/virtio/drivers/virtio_blk/unbind
	echo "$v" >/sys/bus/virtio/drivers/virtio_blk/bind
	disk_find || is "after binding again" "no disk" "a disk"
	same_content
	verified
}

unplug_under_load()
{
	load
	SECONDS=0
	bridge_down
	wait "$loader" && is "the load" "a good end" "an error: the disk went"
	[ "$SECONDS" -le 20 ] || is "removal" "$SECONDS s" "less"
	bridge_up again /dev/vda && verified
	bridge_down
}

readonly_file()
{
	bridge_up ro /mnt/file --read-only || is "disk" none "one"
	is "ro" "$(sys ro)" 1
	is "data" "$(direct_sum "/dev/$disk")" "$(direct_sum /mnt/file)"
	bridge_down
}

inside()
{
	vduse_ready
	vhost_ready
	bridge_up disk /dev/vda --queues 3 --workers 3 --serial disk-behind || { fail disk "$(cat /tmp/disk.out)" "a disk"; return; }
	try block-io block_io
	node node-commands node_io
	try workers-move workers_move
	try driver-again driver_again
	try unplug-under-load unplug_under_load
	mount -t tmpfs tmpfs /mnt && head -c 16M /dev/urandom >/mnt/file
	try read-only-file readonly_file
	works unload rmmod vhost_blk
}

host()
{
	need_tool vdpa iproute2
	need_vhost_blk
	mkdir -p "$work/share"
	guest "${splats[@]}" --env "VHOST_BLK=$VHOST_BLK" --append no_timer_check --params poll_queues=1 \
		--disk "raw:$(tmpimg disk 64M),discard" -- inside
}

case_main "$@"
