#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Zoned disks: 64 MiB in zones of 4 MiB (8192 sectors), two of them conventional.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

zoned=(--size 64M --zoned hm --conv-zones 2)

geometry()
{
	dev_up geo "${zoned[@]}" --zone-cap 6144 --set max_open_zones=3 --set max_active_zones=5
	is "zoned" "$(sys queue/zoned)" host-managed
	is "zone size" "$(sys queue/chunk_sectors)" 8192
	is "zones" "$(sys queue/nr_zones)" 16
	is "max_open_zones" "$(sys queue/max_open_zones)" 3
	is "max_active_zones" "$(sys queue/max_active_zones)" 5
	is "append limit" "$(sys queue/zone_append_max_bytes)" 524288
	is "zones reported" "$(blkzone report "/dev/$disk" | wc -l)" 16
	like "the first" "$(blkzone report -c 1 "/dev/$disk")" "*zcond: 0(nw)*CONVENTIONAL*"
	like "the third" "$(blkzone report -o 16384 -c 1 "/dev/$disk")" "*cap 0x001800*zcond: 1(em)*SEQ_WRITE_REQUIRED*"
	dev_down
}

host_aware()
{
	dev_up ha --size 64M --zoned ha
	is "zoned" "$(sys queue/zoned)" none
	is "write anywhere" "$(write4k 4096)" ok
	if ours; then
		is "OUT anywhere" "$(cmd -s 8192 -l 4096 -f 0x5a out)" "res=0 result=0"
		is "what is there" "$(bytes 8192 2)" 5a5a
		is "a zone's report" "$(cmd -l 4096 zone_report)" "res=0 result=0"
	fi
	dev_down
}

# Values a driver must refuse, or take the disk as no disk at all
bad_geometry()
{
	local set
	for set in zone_sectors=0 zone_sectors=3000 write_granularity=0 max_append_sectors=0 zone_model=7; do
		said >/dev/null
		dev_up "g${set%%_*}${set##*=}" "${zoned[@]}" --set "$set" && [ "$(sys queue/zoned)" != none ] && is "$set" "a zoned disk" "a refusal"
		like "message for $set" "$(said)" "*virtio_blk*"
		dev_down
	done
}

by_blkzone()
{
	dev_up bz "${zoned[@]}"
	blkzone open -o 16384 -l 8192 "/dev/$disk"
	is "opened" "$(zone 16384)" "eopen 16384"
	dd if=/dev/zero of="/dev/$disk" bs=4k seek=2048 count=2 oflag=direct status=none || is "writing" failed fine
	is "written" "$(zone 16384)" "eopen 16400"
	blkzone close -o 16384 -l 8192 "/dev/$disk"
	is "closed" "$(zone 16384)" "closed 16400"
	blkzone finish -o 16384 -l 8192 "/dev/$disk"
	is "finished" "$(zone 16384)" "full 24576"
	blkzone reset -o 16384 -l 8192 "/dev/$disk"
	is "reset" "$(zone 16384)" "empty 16384"
	dd if=/dev/zero of="/dev/$disk" bs=4k seek=3072 count=1 oflag=direct status=none || is "writing" failed fine
	blkzone reset "/dev/$disk"
	is "all reset" "$(zone 24576)" "empty 24576"
	is "requests" "$(requests zone_open) $(requests zone_close) $(requests zone_finish)" "1 1 1"
	is "descriptors of open" "$(of zone_open desc)" '[[16,"r"],[1,"w"]]'
	is "sector of open" "$(of zone_open sector)" 16384
	dev_down
}

by_node()
{
	dev_up nz "${zoned[@]}"
	is OPEN "$(cmd -s 16384 zone_open)" "res=0 result=0"
	is "opened" "$(zone 16384)" "eopen 16384"
	is OUT "$(cmd -s 16384 -l 8192 out)" "res=0 result=0"
	is CLOSE "$(cmd -s 16384 zone_close)" "res=0 result=0"
	is "closed" "$(zone 16384)" "closed 16400"
	is FINISH "$(cmd -s 16384 zone_finish)" "res=0 result=0"
	is "finished" "$(zone 16384)" "full 24576"
	is RESET "$(cmd -s 16384 zone_reset)" "res=0 result=0"
	is "reset" "$(zone 16384)" "empty 16384"
	is OUT "$(cmd -s 24576 -l 4096 out)" "res=0 result=0"
	is RESET_ALL "$(cmd zone_reset_all)" "res=0 result=0"
	is "all reset" "$(zone 24576)" "empty 24576"
	is "RESET_ALL at a sector" "$(cmd -s 8 zone_reset_all)" "res=-22 status=0"
	is "OPEN with data" "$(cmd -s 16384 -l 512 zone_open)" "res=-22 status=0"
	is "descriptors of open" "$(of zone_open desc)" '[[16,"r"],[1,"w"]]'
	dev_down
}

append()
{
	dev_up ap "${zoned[@]}" --set seg_max=254
	is "first" "$(cmd -s 16384 -f 0x11 -l 4096 zone_append)" "res=0 result=16384"
	is "second" "$(cmd -s 16384 -f 0x22 -l 8192 zone_append)" "res=0 result=16392"
	is "third" "$(cmd -s 16384 -f 0x33 -l 4096 zone_append)" "res=0 result=16408"
	is "the device's write pointer" "$(zone 16384)" "iopen 16416"
	is "data" "$(bytes 16384 1)$(bytes 16392 1)$(bytes 16407 1)$(bytes 16408 1)" 11222233
	is "descriptors" "$(of zone_append desc)" '[[16,"r"],[4096,"r"],[9,"w"]]'
	is "the limit" "$(cmd -s 16384 -l 524288 zone_append)" "res=0 result=16416"
	is "above the limit" "$(cmd -s 16384 -l 528384 zone_append)" "res=-22 status=0"
	# an ordinary command afterwards has the short tail again
	is "IN" "$(cmd -s 16384 -l 4096 in)" "res=0 result=0"
	is "descriptors of IN" "$(of in desc)" '[[16,"r"],[4096,"w"],[1,"w"]]'
	dev_down
}

# The sector that the device chose comes with a polled command, too
append_polled()
{
	dev_up pa "${zoned[@]}" --queues 2
	is "first" "$(cmd -p -s 16384 -f 0x11 -l 4096 zone_append)" "res=0 result=16384"
	is "second" "$(cmd -p -s 16384 -f 0x22 -l 8192 zone_append)" "res=0 result=16392"
	is "off the start" "$(cmd -p -s 16392 -l 4096 zone_append)" "res=-22 status=0x3"
	is "data" "$(bytes 16384 1)$(bytes 16392 1)" 1122
	is "IN" "$(cmd -p -s 16384 -l 4096 in)" "res=0 result=0"
	dev_down
}

access()
{
	local type
	dev_up za "${zoned[@]}"
	for type in open close finish reset; do needs_write -s 16384 "zone_$type"; done
	needs_write zone_reset_all
	needs_write -s 16384 -l 4096 zone_append
	needs_read -l 4096 zone_report
	is "APPEND, opened for writing" "$(cmd -m wo -s 16384 -l 4096 zone_append)" "res=0 result=16384"
	is "REPORT, opened for reading" "$(cmd -m ro -l 4096 zone_report)" "res=0 result=0"
	dev_down
}

# What a buffered read has cached is dropped by whatever changes it
drops_cache()
{
	dev_up dc "${zoned[@]}"
	exec 5<"/dev/$disk"
	is "before" "$(cached 16384 1)" 00
	is APPEND "$(cmd -s 16384 -f 0x11 -l 4096 zone_append)" "res=0 result=16384"
	is "after APPEND" "$(cached 16384 1)" 11
	is RESET "$(cmd -s 16384 zone_reset)" "res=0 result=0"
	is "after RESET" "$(cached 16384 1)" 00
	is APPEND "$(cmd -s 24576 -f 0x22 -l 4096 zone_append)" "res=0 result=24576"
	is "after APPEND" "$(cached 24576 1)" 22
	is RESET_ALL "$(cmd zone_reset_all)" "res=0 result=0"
	is "after RESET_ALL" "$(cached 24576 1)" 00
	exec 5<&-
	dev_down
}

info_zones()
{
	dev_up iz "${zoned[@]}" --set max_open_zones=3 --set max_active_zones=5
	is zone_model "$(info zone_model)" 0x1
	is zone_sectors "$(info zone_sectors)" 0x2000
	is max_open_zones "$(info max_open_zones)" 0x3
	is max_active_zones "$(info max_active_zones)" 0x5
	is max_append_sectors "$(info max_append_sectors)" 0x400
	like write_granularity "$(info write_granularity)" "0x*"
	is "the zone commands" $(($(info commands) >> 15 & 0xaab)) $((0xaab))
	dev_down
}

# le64 of the file at an offset
word() { od -An -td8 -j "$2" -N 8 "$1" | tr -d ' '; }

report()
{
	dev_up rp "${zoned[@]}"
	cmd -s 16384 -l 4096 out >/dev/null
	is REPORT "$(cmd -s 8192 -l 4096 -o /tmp/report zone_report)" "res=0 result=0"
	is "number of zones" "$(word /tmp/report 0)" 15
	is "first start" "$(word /tmp/report 72)" 8192
	is "second start, write pointer" "$(word /tmp/report 136) $(word /tmp/report 144)" "16384 16392"
	is "second type, state" "$(od -An -tu1 -j 152 -N 2 /tmp/report | tr -s ' ')" " 2 2"
	is "short: 64 + 2 × 64 bytes" "$(cmd -l 192 -o /tmp/report zone_report)" "res=0 result=0"
	is "zones in it" "$(word /tmp/report 0)" 2
	is "63 bytes" "$(cmd -l 63 zone_report)" "res=-22 status=0"
	is "behind the end" "$(cmd -s 131072 -l 4096 zone_report)" "res=-22 status=0x3"
	dev_down
}

# The zone statuses as they arise
zone_errors()
{
	dev_up ze "${zoned[@]}" --set max_open_zones=2 --set max_active_zones=3
	is "not at the write pointer" "$(cmd -s 16392 -l 4096 out)" "res=-22 status=0x4"
	is "append off the start" "$(cmd -s 16392 -l 4096 zone_append)" "res=-22 status=0x3"
	is "append to a conventional zone" "$(cmd -s 0 -l 4096 zone_append)" "res=-22 status=0x3"
	is "open off the start" "$(cmd -s 16392 zone_open)" "res=-22 status=0x3"
	is "open 1" "$(cmd -s 16384 zone_open)" "res=0 result=0"
	is "open 2" "$(cmd -s 24576 zone_open)" "res=0 result=0"
	is "open 3 of 2" "$(cmd -s 32768 zone_open)" "res=-109 status=0x5"
	is "write 3 of 2" "$(cmd -s 32768 -l 4096 out)" "res=-109 status=0x5"
	cmd -s 16384 -l 4096 out >/dev/null; cmd -s 16384 zone_close >/dev/null
	cmd -s 24576 -l 4096 out >/dev/null; cmd -s 24576 zone_close >/dev/null
	is "active 3" "$(cmd -s 32768 zone_open)" "res=0 result=0"
	is "active 4 of 3" "$(cmd -s 40960 zone_open)" "res=-75 status=0x6"
	ctl "zone 49152 readonly" "zone 57344 offline" "zone 16384 full 24576"
	is "write to a read-only zone" "$(cmd -s 49152 -l 4096 out)" "res=-5 status=0x1"
	is "reset of an offline zone" "$(cmd -s 57344 zone_reset)" "res=-22 status=0x3"
	is "write to a full zone" "$(cmd -s 16384 -l 4096 zone_append)" "res=-22 status=0x3"
	dev_down
}

not_zoned()
{
	local type
	dev_up nn
	for type in zone_open zone_close zone_finish zone_reset zone_reset_all; do
		is "$type" "$(cmd "$type")" "res=-95 status=0"
	done
	is zone_report "$(cmd -l 4096 zone_report)" "res=-95 status=0"
	is zone_append "$(cmd -l 4096 zone_append)" "res=-95 status=0"
	is "requests" "$(requests zone_.*)" 0
	dev_down
}

# Reports with counts that cannot be
absurd_reports()
{
	local n
	for n in 0 17 0x7fffffffffffffff; do
		dev_up "ar${n:0:4}" "${zoned[@]}" --rule "type=zone_report nr_zones=$n"
		if [ -n "$disk" ]; then
			blkzone report "/dev/$disk" >/tmp/report.out 2>&1
			[ "$(wc -l </tmp/report.out)" -le 16 ] || is "zones of 16" "$(wc -l </tmp/report.out)" "16 at most"
			if ours; then is "REPORT with $n" "$(cmd -l 4096 zone_report)" "res=0 result=0"; fi
		fi
		dev_down
	done
}

inside()
{
	vduse_ready
	try geometry geometry
	try host-aware host_aware
	try geometry-bad bad_geometry
	try blkzone by_blkzone
	node commands by_node
	node append append
	node append-polled append_polled
	node P29-access access
	node drops-cache drops_cache
	node info info_zones
	node report report
	node errors zone_errors
	node not-zoned not_zoned
	try reports-absurd absurd_reports
}

host()
{
	need_tool vdpa iproute2
	guest --timeout 560 --params poll_queues=1 --append no_timer_check -- inside
}

case_main "$@"
