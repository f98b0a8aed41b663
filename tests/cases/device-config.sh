#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Feature bits and config values a device may come with, sane and not.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

# V10: MQ with 0, 1 or 65535 queues
no_queues()
{
	dev_up q0 --feature mq --set num_queues=0 && is "num_queues 0" "a disk" "no disk"
	like "kernel log" "$(said)" "*queues*"
	dev_down
}

one_queue()
{
	dev_up q1 --feature mq --set num_queues=1
	is "read" "$(read4k 0)" ok
	is "hardware queues" "$(find "/sys/block/$disk/mq" -mindepth 1 -maxdepth 1 | wc -l)" 1
	dev_down
}

many_queues()
{
	dev_up q65535 --queues 8 --set num_queues=65535
	is "read" "$(read4k 0)" ok
	is "hardware queues" "$(find "/sys/block/$disk/mq" -mindepth 1 -maxdepth 1 | wc -l)" "$(nproc --all)"
	dev_down
}

# V16: SEG_MAX absent, 0 or more than the ring holds
segments()	# WANTED OPTIONS...
{
	local want=$1 len
	shift
	dev_up seg "$@"
	is "max_segments" "$(sys queue/max_segments)" "$want"
	dd if="/dev/$disk" of=/dev/null bs=64k count=4 iflag=direct status=none || is "reading" failed fine
	# a page a segment: the node's own buffers can't be split over requests
	if ours; then
		is "IN of a page" "$(cmd -l 4096 in)" "res=0 result=0"
		for len in 8192 16384 1048576; do
			like "IN of $len" "$(cmd -l "$len" in)" "res=@(0 result=0|-22 status=0)"
			like "OUT of $len" "$(cmd -l "$len" out)" "res=@(0 result=0|-22 status=0)"
		done
	fi
	# none of the requests may have had more
	is "requests with more segments" "$(awk -v max="$want" '/"req"/ {
		n = gsub(/\],\[/, "&") - 1; if (n > max) bad++ } END { print bad + 0 }' "$log")" 0
	dev_down
}
seg_max_absent() { segments 1 --no-feature seg_max; }
seg_max_zero() { segments 1 --set seg_max=0; }
seg_max_small() { segments 3 --set seg_max=3; }

size_max_small()
{
	dev_up size --feature size_max --set size_max=4096
	is "max_segment_size" "$(sys queue/max_segment_size)" 4096
	dd if="/dev/$disk" of=/dev/null bs=64k count=4 iflag=direct status=none || is "reading" failed fine
	is "descriptors above 4096 bytes" "$(grep -cE '\[(409[7-9]|4[1-9][0-9]{2}|[5-9][0-9]{3}|[0-9]{5,}),"w"\]' "$log")" 0
	dev_down
}

# What QEMU's storage daemon offers by vhost-user: no limit
size_max_zero()
{
	dev_up zero --feature size_max --set size_max=0
	is "max_segment_size" "$(sys queue/max_segment_size)" 65536
	is "reading" "$(read4k 0)" ok
	dev_down
}

# A segment below a page cannot be kept by the block layer: no disk, or a disk
# that never sends more than asked for
size_max_tiny()
{
	if dev_up tiny --feature size_max --set size_max=512; then
		read4k 0 >/dev/null
		is "descriptors above 512 bytes" "$(grep -cE '\[(51[3-9]|5[2-9][0-9]|[6-9][0-9]{2}|[0-9]{4,}),"w"\]' "$log")" 0
	else
		like "kernel log" "$(said)" "*[sS]ize*"
	fi
	dev_down
}

# V18: block sizes that are none
block_size_bad()
{
	local size
	# shellcheck disable=SC2046
	for size in $(ours && echo 0) 3 256 1048576; do
		said >/dev/null
		dev_up "b$size" --set blk_size="$size" && is "blk_size $size" "a disk" "no disk"
		like "message for $size" "$(said)" "*[bB]lock size*"
		dev_down
	done
}

block_size_good()
{
	local size
	for size in 512 4096; do
		dev_up "b$size" --set blk_size="$size"
		is "logical_block_size" "$(sys queue/logical_block_size)" "$size"
		is "read" "$(read4k 0)" ok
		dev_down
	done
}

# V20: discard and write zeroes offered with their limits left zero
zero_limits()
{
	dev_up zero --feature discard --feature write_zeroes \
		--set max_discard_sectors=0 --set max_discard_seg=0 --set discard_sector_alignment=0 \
		--set max_write_zeroes_sectors=0 --set max_write_zeroes_seg=0
	[ -n "$disk" ] || return
	blkdiscard -o 4096 -l 8192 "/dev/$disk" || is "blkdiscard" failed fine
	is "the range" "$(of discard ranges)" "[[8,16,0]]"
	blkdiscard -z -o 4096 -l 8192 "/dev/$disk" || is "blkdiscard -z" failed fine
	if ours; then
		is "DISCARD by the node" "$(cmd -R 8:16 discard)" "res=0 result=0"
		is "WRITE_ZEROES by the node" "$(cmd -R 8:16 write_zeroes)" "res=0 result=0"
	fi
	[ "$(sys queue/discard_granularity)" -ge 512 ] || is "discard_granularity" "$(sys queue/discard_granularity)" "at least 512"
	dev_down
}

# Secure erase has no default to fall back to
zero_erase_limits()
{
	local field
	for field in max_secure_erase_sectors max_secure_erase_seg secure_erase_sector_alignment; do
		dev_up "z${field:0:12}" --feature secure_erase --set "$field"=0 &&
			is "$field 0" "a disk" "no disk, or no secure erase"
		like "message for $field" "$(said)" "*erase*"
		dev_down
	done
}

capacity_odd()
{
	local sectors
	for sectors in 0 7; do
		dev_up "c$sectors" --set capacity="$sectors"
		is "size" "$(sys size)" "$sectors"
		dev_down
	done
}

capacity_huge()
{
	local sectors=$((1 << 53))
	dev_up huge --set capacity="$sectors"
	is "size" "$(sys size)" "$sectors"
	is "read of the end" "$(read4k $((sectors - 8)))" ok
	is "sector sent" "$(of in sector)" $((sectors - 8))
	dev_down
}

# More than fits an off_t of bytes: whatever comes of it, nothing breaks
capacity_absurd()
{
	local sectors
	for sectors in 0x7fffffffffffffff 0xffffffffffffffff; do
		dev_up "absurd" --set capacity="$sectors" && read4k 0 >/dev/null
		dev_down
	done
}

flush_offered()
{
	dev_up flush
	is "write_cache" "$(sys queue/write_cache)" "write back"
	sync -d "/dev/$disk"; blockdev --flushbufs "/dev/$disk"
	dd if=/dev/zero of="/dev/$disk" bs=4096 count=1 conv=fsync status=none
	[ "$(requests flush)" -ge 1 ] || is "flushes" "$(requests flush)" "at least 1"
	dev_down
}

flush_absent()
{
	dev_up noflush --no-feature flush
	is "write_cache" "$(sys queue/write_cache)" "write through"
	dd if=/dev/zero of="/dev/$disk" bs=4096 count=1 conv=fsync status=none || is "fsync" failed fine
	is "flushes" "$(requests flush)" 0
	if ours; then
		is "FLUSH by the node" "$(cmd flush)" "res=-95 status=0"
		is "flushes" "$(requests flush)" 0
	fi
	dev_down
}

read_only()
{
	dev_up ro --feature ro
	is "ro" "$(sys ro)" 1
	if ours; then is "OUT by the node" "$(cmd -l 4096 out)" "res=-30 status=0"; fi
	is "writes" "$(requests out)" 0
	dev_down
}

wait_for()	# VALUE COMMAND...
{
	local i want=$1
	shift
	for ((i = 0; i < 100; i++)); do
		[ "$("$@")" = "$want" ] && return
		sleep 0.05
	done
}

# V24: up, down and back, a config interrupt for each
resize()
{
	local sectors
	dev_up resize
	for sectors in 200000 1000 131072; do
		ctl "set capacity=$sectors"
		wait_for "$sectors" sys size
		is "size" "$(sys size)" "$sectors"
	done
	ctl irq irq irq
	is "read" "$(read4k 0)" ok
	dev_down
}

# The interrupt comes late or never: the device decides what lies on the disk
resize_unseen()
{
	dev_up unseen
	ctl "set capacity=200000 quiet"
	is "IN past the old end" "$(cmd -s 150000 -l 4096 in)" "res=0 result=0"
	ctl "set capacity=1000 quiet"
	is "IN past the new end" "$(cmd -s 1000 -l 4096 in)" "res=-5 status=0x1"
	dev_down
}

serial()
{
	dev_up ser --serial "exactly-twenty-bytes"
	is "serial" "$(sys serial)" "exactly-twenty-bytes"
	dev_down
	# Bytes that are no text pass as they are: the serial is nobody's to judge
	dev_up bytes --serial $'\xff\x01\xc3(\n%s'
	is "bytes in sysfs" "$(sys serial | od -An -tx1 -w32)" " ff 01 c3 28 0a 25 73"
	if ours; then
		is "GET_ID" "$(cmd -l 20 -o /tmp/id get_id)" "res=0 result=0"
		is "its bytes" "$(od -An -tx1 -w32 -N8 /tmp/id)" " ff 01 c3 28 0a 25 73 00"
	fi
	dev_down
	dev_up none --rule "type=get_id status=2"
	if ours; then is "serial of a device without" "$(sys serial 2>&1)" ""; fi
	dev_down
}

lifetime()
{
	dev_up life --lifetime 1,2,11
	is "GET_LIFETIME" "$(cmd -l 6 -o /tmp/life get_lifetime)" "res=0 result=0"
	is "the answer" "$(od -An -tx1 /tmp/life | tr -d ' ')" "010002000b00"
	is "its descriptors" "$(of get_lifetime desc)" '[[16,"r"],[6,"w"],[1,"w"]]'
	needs_read -l 6 get_lifetime
	is "at a sector" "$(cmd -s 8 -l 6 get_lifetime)" "res=-22 status=0"
	is "of 5 bytes" "$(cmd -l 5 get_lifetime)" "res=-22 status=0"
	is "of 8 bytes" "$(cmd -l 8 get_lifetime)" "res=-22 status=0"
	dev_down
	dev_up nolife
	is "without the feature" "$(cmd -l 6 get_lifetime)" "res=-95 status=0"
	is "requests" "$(requests get_lifetime)" 0
	dev_down
}

# Each column of the node's counters counts what it is for, and nothing else counts there
counters()
{
	local stat
	dev_up stat --feature discard
	stat=/sys/class/vblk-generic/${disk}c0/stat
	is "fresh" "$(cat "$stat")" "0 0 0 0 0 0"
	cmd -l 8192 in >/dev/null; cmd -s 8 -l 512 in >/dev/null
	is "after reads" "$(cat "$stat")" "2 8704 0 0 0 0"
	cmd -l 4096 out >/dev/null
	is "after a write" "$(cat "$stat")" "2 8704 1 4096 0 0"
	cmd flush >/dev/null; cmd -l 20 get_id >/dev/null; cmd -R 8:16 discard >/dev/null
	is "after others" "$(cat "$stat")" "2 8704 1 4096 3 0"
	cmd -s $((1 << 40)) -l 512 in >/dev/null
	is "after a failure" "$(cut -d " " -f 3- "$stat")" "1 4096 3 1"
	cmd -l 511 in >/dev/null; cmd -m ro -l 512 out >/dev/null
	is "after refusals" "$(cut -d " " -f 3- "$stat")" "1 4096 3 1"
	read4k 0 >/dev/null
	is "after a block read" "$(cut -d " " -f 3- "$stat")" "1 4096 3 1"
	dev_down
}

# The config space changes while probe and the config work read it
flickering()
{
	local field a b turn=0
	while read -r field a b; do
		turn=$((turn + 1))
		dev_start "f$turn" --feature discard --feature topology
		ctl "flicker $field $a $b"
		vdpa dev add name "$name" mgmtdev vduse 2>/tmp/vdpa.err
		disk_find && read4k 0 >/dev/null
		ctl "flicker off" "set capacity=131072"
		dev_down
	done <<-END
		capacity 1000 0xffffffff00000000
		blk_size 512 3
		seg_max 126 0
	END
}

# A driver must not depend on these
odd_features()
{
	dev_up noind --no-feature indirect_desc
	is "read" "$(read4k 0)" ok
	is "indirect tables" "$(grep -c '"indirect":true' "$log")" 0
	dev_down
	dev_up noev --no-feature event_idx
	is "read" "$(read4k 0)" ok
	dev_down
}

# Without indirect tables a request needs one entry per segment: seg_max alone
# promises more than this ring holds
small_ring()
{
	dev_up small --queue-size 4 --no-feature indirect_desc
	is "read" "$(read4k 0)" ok
	dd if="/dev/$disk" of=/dev/null bs=64k count=2 iflag=direct status=none || is "reading" failed fine
	tiny_node
	dev_down
}

# The same by the node: what INFO says passes at any alignment, more is refused
tiny_node()
{
	ours || return
	is "IN" "$(cmd -s 8 -l 4096 in)" "res=0 result=0"
	is "OUT" "$(cmd -s 8 -l 4096 -f 0x5a out)" "res=0 result=0"
	is "what was written" "$(bytes 8 2)" 5a5a
	is "FLUSH" "$(cmd flush)" "res=0 result=0"
	is "IN of 4 MiB" "$(cmd -l $((4 << 20)) in)" "res=-22 status=0"
}

# Header, data and status need three entries of their own ...
ring_of_two()
{
	said >/dev/null
	dev_up two --queue-size 2 --no-feature indirect_desc && is "a ring of 2" "a disk" "no disk"
	like "message" "$(said)" "*ring of 2 entries*"
	dev_down
}

# ... or one, for a table
ring_of_two_indirect()
{
	dev_up ind2 --queue-size 2 --set seg_max=2
	is "read" "$(read4k 0)" ok
	tiny_node
	dev_down
}

inside()
{
	vduse_ready
	try V10-num-queues-0 no_queues
	try V10-num-queues-1 one_queue
	try V10-num-queues-65535 many_queues
	try V16-seg-max-absent seg_max_absent
	try V16-seg-max-0 seg_max_zero
	try V16-seg-max-3 seg_max_small
	try size-max-4096 size_max_small
	try size-max-0 size_max_zero
	unless_stock size-max-512 size_max_tiny "warns about a segment below a page"
	try V18-block-size-bad block_size_bad
	try V18-block-size-good block_size_good
	try V20-discard-limits-0 zero_limits
	try V20-secure-erase-limits-0 zero_erase_limits
	try capacity-odd capacity_odd
	try capacity-huge capacity_huge
	try capacity-absurd capacity_absurd
	try V25-flush-offered flush_offered
	try V25-flush-absent flush_absent
	try read-only read_only
	try V24-resize resize
	node V24-resize-unseen resize_unseen
	try serial serial
	node lifetime lifetime
	node counters counters
	try config-flickers flickering
	try odd-features odd_features
	unless_stock ring-below-seg-max small_ring "warns when a request is larger than the ring, and hangs"
	unless_stock ring-of-2-direct ring_of_two "hangs on it"
	try ring-of-2-indirect ring_of_two_indirect
}

host()
{
	need_tool vdpa iproute2
	guest --timeout 560 --append no_timer_check -- inside
}

case_main "$@"
