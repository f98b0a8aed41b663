#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What people put on zoned disks: fio's zone mode, zonefs and btrfs.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

zoned=(--size 64M --zoned hm --conv-zones 2)

fio_zbd()
{
	dev_up fz "${zoned[@]}" --set max_open_zones=4
	nice fio --name=z --filename="/dev/$disk" --zonemode=zbd --rw=randwrite --bs=16k --direct=1 --offset=8M --size=16M \
		--number_ios=200 --ioengine=io_uring --iodepth=4 --max_open_zones=3 --verify=crc32c --verify_state_save=0 --output=/tmp/fio.z ||
		is "fio" "$(tail -n 3 /tmp/fio.z)" "no error"
	is "answers with an error" "$(grep '"ans"' "$log" | grep -vc '"status":0')" 0
	[ "$(requests out)" -gt 0 ] || is writes 0 some
	dev_down
}

# zonefs: its super block written by hand, no mkzonefs is packaged
zonefs()
{
	modprobe zonefs || { is "zonefs" "no module" "a module"; return; }
	dev_up zf --size 64M --zoned hm --conv-zones 1
	python3 - >/tmp/zonefs.sb <<-'END'
		import struct, sys, zlib
		def sb(crc):
		    return struct.pack("<II32s16sQIII", 0x5a4f4653, crc, b"test", bytes(range(16)), 0, 0, 0, 0o640).ljust(4096, b"\0")
		sys.stdout.buffer.write(sb(zlib.crc32(sb(0)) ^ 0xffffffff))
	END
	dd if=/tmp/zonefs.sb of="/dev/$disk" bs=4096 oflag=direct status=none
	mkdir -p /tmp/mnt
	if ! mount -t zonefs -o explicit-open "/dev/$disk" /tmp/mnt; then
		is "mounting" failed fine
		dev_down
		return
	fi
	is "files" "$(find /tmp/mnt/seq -type f | wc -l)" 15
	dd if=/dev/urandom of=/tmp/blob bs=64k count=4 status=none
	dd if=/tmp/blob of=/tmp/mnt/seq/3 bs=64k oflag=direct,append conv=notrunc status=none || is "appending" failed fine
	is "size" "$(stat -c %s /tmp/mnt/seq/3)" 262144
	echo 3 >/proc/sys/vm/drop_caches
	cmp -s /tmp/blob <(head -c 262144 /tmp/mnt/seq/3) || is "content" different same
	truncate -s 0 /tmp/mnt/seq/3 || is "truncating" failed fine
	is "the zone" "$(zone 32768)" "empty 32768"
	umount /tmp/mnt
	dev_down
}

btrfs_zoned()	# QUEUES SCHEDULER
{
	modprobe btrfs || { is "btrfs" "no module" "a module"; return; }
	dev_up "bt$1" --size 512M --zoned hm --conv-zones 0 --queues "$1"
	echo "$2" >"/sys/block/$disk/queue/scheduler"
	if ! mkfs.btrfs -q -O zoned -d single -m single "/dev/$disk" >/tmp/mkfs.out 2>&1; then
		is "mkfs.btrfs" "$(tail -n 1 /tmp/mkfs.out)" fine
		dev_down
		return
	fi
	mkdir -p /tmp/mnt
	mount -t btrfs "/dev/$disk" /tmp/mnt || is "mounting" failed fine
	dd if=/dev/urandom of=/tmp/mnt/blob bs=1M count=4 conv=fsync status=none || is "writing" failed fine
	md5sum /tmp/mnt/blob >/tmp/blob.sum
	umount /tmp/mnt
	mount -t btrfs "/dev/$disk" /tmp/mnt || is "mounting again" failed fine
	md5sum --status -c /tmp/blob.sum || is "content" different same
	umount /tmp/mnt
	[ "$(requests zone_append)" -gt 0 ] || is appends 0 some
	is "answers with an error" "$(grep '"ans"' "$log" | grep -vc '"status":0')" 0
	dev_down
}

# One by one, and as batches: only without a scheduler answers are collected.
# Where an append went has to come out either way.
btrfs_scheduled() { btrfs_zoned 1 mq-deadline; }
btrfs_batched() { btrfs_zoned 2 none; }

inside()
{
	vduse_ready
	try fio-zbd fio_zbd
	try zonefs zonefs
	try btrfs btrfs_scheduled
	try btrfs-append-in-batches btrfs_batched
}

host()
{
	need_tool vdpa iproute2
	need_tool mkfs.btrfs btrfs-progs
	need_tool fio fio
	guest --timeout 560 --append no_timer_check -- inside
}

case_main "$@"
