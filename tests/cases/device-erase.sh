#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# DISCARD, WRITE_ZEROES and SECURE_ERASE: what the device is given.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

erasing=(--feature discard --feature write_zeroes --feature secure_erase
	--set max_secure_erase_seg=4 --set max_discard_seg=4 --set max_write_zeroes_seg=4
	--set write_zeroes_may_unmap=1)

# V36: the ranges of all of them are for the device to read
direction()	# TYPE
{
	is "$1 desc" "$(of "$1" desc)" '[[16,"r"],[16,"r"],[1,"w"]]'
	is "$1 ranges" "$(of "$1" ranges)" "[[8,16,0]]"
	is "$1 sector" "$(of "$1" sector)" 0
	is "chains that make no request" "$(grep -c '"bad"' "$log")" 0
}

# bytes 4096…12287 erased, the blocks around them kept
erased()
{
	is "$1: before the range" "$(bytes 7 2)" abab
	is "$1: its start" "$(bytes 8 2)" 0000
	is "$1: its end" "$(bytes 23 2)" 0000
	is "$1: behind the range" "$(bytes 24 2)" abab
}

pattern() { tr '\0' '\253' </dev/zero | dd of="/dev/$disk" bs=16k count=1 iflag=fullblock oflag=direct status=none; }

by_block()
{
	dev_up blk "${erasing[@]}"
	pattern; blkdiscard -o 4096 -l 8192 "/dev/$disk"; erased discard
	pattern; blkdiscard -z -o 4096 -l 8192 "/dev/$disk"; erased write_zeroes
	sed -i '/write_zeroes/s/,1\]\]/,0]]/' "$log"	# UNMAP is the block layer's choice
	direction discard
	direction write_zeroes
	dev_down
}

# The block layer makes one request of discards that don't touch: a range each.
joined_by_block()
{
	dev_up join "${erasing[@]}"
	pattern
	is "status" "$("$device_bin/discards" "/dev/$disk" 8:8 24:4 1000:16 2>&1)" ""
	is "ranges" "$(of discard ranges)" "[[8,8,0],[24,4,0],[1000,16,0]]"
	is "requests" "$(requests discard)" 1
	is "first" "$(bytes 8 2)" 0000
	is "between" "$(bytes 16 2)" abab
	is "second" "$(bytes 24 2)" 0000
	is "behind" "$(bytes 28 2)" abab
	dev_down
}

secure_erase_by_block()
{
	dev_up sec "${erasing[@]}"
	pattern; blkdiscard -s -o 4096 -l 8192 "/dev/$disk"; erased secure_erase
	direction secure_erase
	dev_down
}

by_node()
{
	local type
	dev_up node "${erasing[@]}"
	for type in discard write_zeroes secure_erase; do
		pattern
		is "$type" "$(cmd -R 8:16 "$type")" "res=0 result=0"
		erased "$type"
	done
	for type in discard write_zeroes secure_erase; do direction "$type"; done
	dev_down
}

several_ranges()
{
	local type
	dev_up many "${erasing[@]}"
	for type in discard write_zeroes secure_erase; do
		is "$type of 3" "$(cmd -R 8:8 -R 24:8 -R 1000:16 "$type")" "res=0 result=0"
		is "ranges" "$(of "$type" ranges)" "[[8,8,0],[24,8,0],[1000,16,0]]"
		is "$type of 5, 4 allowed" "$(cmd -R 8:8 -R 24:8 -R 40:8 -R 56:8 -R 72:8 "$type")" "res=-22 status=0"
		is "$type of 15 bytes" "$(cmd -l 15 "$type")" "res=-22 status=0"
		is "$type of nothing" "$(cmd "$type")" "res=-22 status=0"
		is "requests" "$(requests "$type")" 1
	done
	dev_down
}

limits()
{
	dev_up lim "${erasing[@]}" --set max_secure_erase_sectors=64 --set max_discard_sectors=64 --set max_write_zeroes_sectors=64
	local type
	for type in discard write_zeroes secure_erase; do
		is "$type of the limit" "$(cmd -R 64:64 "$type")" "res=0 result=0"
		is "$type above the limit" "$(cmd -R 64:72 "$type")" "res=-22 status=0"
		is "unknown flag" "$(cmd -R 64:64:2 "$type")" "res=-22 status=0"
		is "requests" "$(requests "$type")" 1
	done
	is "discard off its alignment" "$(cmd -R 12:8 discard)" "res=-22 status=0"
	is "discard of an odd length" "$(cmd -R 8:9 discard)" "res=-22 status=0"
	is "secure erase at a sector" "$(cmd -s 8 -R 64:8 secure_erase)" "res=-22 status=0"
	is "secure erase off its alignment" "$(cmd -R 1:8 secure_erase)" "res=-22 status=0"
	is "UNMAP for write zeroes" "$(cmd -R 64:8:1 write_zeroes)" "res=0 result=0"
	is "UNMAP for discard" "$(cmd -R 64:8:1 discard)" "res=-22 status=0"
	is "UNMAP for secure erase" "$(cmd -R 64:8:1 secure_erase)" "res=-22 status=0"
	is "past the end" "$(cmd -R 131064:16 discard)" "res=-5 status=0x1"
	dev_down
}

# The disk's last range need not be as long as the alignment is
short_end()
{
	dev_up end "${erasing[@]}" --size $((131068 * 512))
	is "discard of the last 4 sectors" "$(cmd -R 131064:4 discard)" "res=0 result=0"
	is "4 sectors before them" "$(cmd -R 131056:4 discard)" "res=-22 status=0"
	dev_down
}

access()
{
	local type
	dev_up acc "${erasing[@]}"
	for type in discard write_zeroes secure_erase; do needs_write -R 8:16 "$type"; done
	is secure_erase "$(cmd -m wo -R 8:16 secure_erase)" "res=0 result=0"
	dev_down
}

# Dirty and clean pages of the range: neither is seen, or written back, afterwards
drops_cache()
{
	local type
	dev_up dc "${erasing[@]}"
	exec 5<"/dev/$disk"
	for type in discard write_zeroes secure_erase; do
		pattern
		is "cached before $type" "$(cached 8 1)" ab
		tr '\0' '\315' </dev/zero | dd of="/dev/$disk" bs=4k seek=2 count=1 iflag=fullblock conv=notrunc status=none
		is "$type" "$(cmd -R 8:16 "$type")" "res=0 result=0"
		is "clean page after $type" "$(cached 8 1)" 00
		is "dirty page after $type" "$(cached 16 1)" 00
		sync "/dev/$disk"
		is "on disk after $type" "$(bytes 16 1)" 00
	done
	exec 5<&-
	dev_down
}

# A polled command of each, by the descriptors as without polling
polled()
{
	local type
	dev_up pol "${erasing[@]}" --queues 2
	for type in discard write_zeroes secure_erase; do
		pattern
		is "$type" "$(cmd -p -R 8:16 "$type")" "res=0 result=0"
		erased "$type"
		direction "$type"
	done
	dev_down
}

# What INFO says is what the config space said
info_erase()
{
	dev_up inf "${erasing[@]}" --set max_discard_sectors=64 --set max_secure_erase_sectors=128 \
		--set max_write_zeroes_sectors=256 --set discard_sector_alignment=16
	is max_discard_sectors "$(info max_discard_sectors)" 0x40
	is max_discard_seg "$(info max_discard_seg)" 0x4
	is discard_alignment "$(info discard_alignment)" 0x10
	is max_write_zeroes_sectors "$(info max_write_zeroes_sectors)" 0x100
	is max_write_zeroes_seg "$(info max_write_zeroes_seg)" 0x4
	is write_zeroes_may_unmap "$(info write_zeroes_may_unmap)" 0x1
	is max_secure_erase_sectors "$(info max_secure_erase_sectors)" 0x80
	is max_secure_erase_seg "$(info max_secure_erase_seg)" 0x4
	is secure_erase_alignment "$(info secure_erase_alignment)" 0x8
	is "DISCARD, WRITE_ZEROES, SECURE_ERASE" $(($(info commands) >> 11 & 0xd)) $((0xd))
	is "write cache" $(($(info flags) & 2)) 2
	dev_down
	dev_up ino --feature secure_erase
	is "max_discard_seg without discard" "$(info max_discard_seg)" 0
	is "max_write_zeroes_seg without it" "$(info max_write_zeroes_seg)" 0
	is "of the three" $(($(info commands) >> 11 & 0xd)) 8
	dev_down
}

not_offered()
{
	local type
	dev_up no
	for type in discard write_zeroes secure_erase; do
		is "$type" "$(cmd -R 8:16 "$type")" "res=-95 status=0"
		is "requests" "$(requests "$type")" 0
	done
	dev_down
}

inside()
{
	vduse_ready
	try V36-directions-block by_block
	try ranges-of-a-joined-discard joined_by_block
	unless_stock V36-secure-erase-block secure_erase_by_block "lets the device write over the ranges"
	node V36-directions-node by_node
	node several-ranges several_ranges
	node limits limits
	node short-end short_end
	node P29-access access
	node drops-cache drops_cache
	node polled polled
	node info info_erase
	node not-offered not_offered
}

host()
{
	need_tool vdpa iproute2
	guest --timeout 560 --params poll_queues=1 --append no_timer_check -- inside
}

case_main "$@"
