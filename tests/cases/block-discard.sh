#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# Discards and write-zeroes reach exactly the ranges that were asked for, in
# 512-byte sectors whatever the block size: QEMU's own record of what arrived,
# and the image. Cases V19, V22.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

MiB=1048576

# Ranges as "OFFSET LENGTH" in bytes, all multiples of 4096: alone, adjacent, scattered.
ranges()
{
	local i
	echo "$((1 * MiB)) 4096"
	for i in 0 1 2 3 4 5 6 7; do echo "$((2 * MiB + i * 8192)) 8192"; done
	for i in 0 1 2 3 4 5 6 7 8 9; do echo "$((3 * MiB + i * 65536)) 12288"; done
	echo "$((5 * MiB)) $MiB"
}

each_range()	# DEVICE OPTIONS…: all at once
{
	local dev=$1 offset length pids=() bad=0
	shift
	while read -r offset length; do
		blkdiscard -f "$@" -o "$offset" -l "$length" "$dev" & pids+=($!)
	done < <(ranges)
	for offset in "${pids[@]}"; do wait "$offset" || bad=1; done
	return "$bad"
}

inside()
{
	works V22-discard each_range /dev/vda
	works V19-discard-4k each_range /dev/vdb
	works V22-zero each_range /dev/vdc --zeroout
	works V19-zero-4k each_range /dev/vdd --zeroout
	refused V19-less-than-a-block blkdiscard -f -o 0 -l 512 /dev/vdb
	# Held in the scheduler until it is full of neighbours, then merged.
	echo mq-deadline >/sys/block/vde/queue/scheduler
	works V22-discard-merged each_range /dev/vde
	check V22-one-range-limit "$(cat /sys/block/vdf/queue/max_discard_segments)" 1
	works V22-discard-one-range each_range /dev/vdf
	refused V22-none-offered blkdiscard -f -o 0 -l 4096 /dev/vdg
	check V22-none-offered-limits "$(cat /sys/block/vdg/queue/discard_max_bytes /sys/block/vdg/queue/write_zeroes_max_bytes | tr '\n' ' ')" "0 0 "
	works V22-zero-by-writing blkdiscard -f --zeroout -o 8192 -l 8192 /dev/vdg
	sync
}

# Neighbouring ranges may come as one; what counts is which sectors.
union() { sort -n | awk '{ if (n && $1 <= end) { if ($1 + $2 > end) end = $1 + $2 } else { if (n++) print s, end - s; s = $1; end = $1 + $2 } } END { if (n) print s, end - s }'; }

wanted() { ranges | awk '{ print $1 / 512, $2 / 512 }' | union; }
arrived() { "$top/fio-engine/logwrites" "$1" | awk -v what="$2" '$1 == what { print $2, $3 }'; }
total() { awk '{ n += $2 } END { print n + 0 }'; }

# The image as it must be: the pattern with the ranges zeroed.
with_holes()	# FILE
{
	local offset length
	while read -r offset length; do
		dd if=/dev/zero of="$1" bs=4096 seek=$((offset / 4096)) count=$((length / 4096)) conv=notrunc status=none
	done < <(ranges)
}

judge()		# NAME DISK KIND
{
	check "$1-ranges" "$(arrived "$work/log-$2" "$3" | union)" "$(wanted)"
	check "$1-nothing-twice" "$(arrived "$work/log-$2" "$3" | total)" "$(ranges | awk '{ n += $2 / 512 } END { print n }')"
	works "$1-image" cmp "$work/wanted" "$work/$2"
}

host()
{
	local d
	head -c $((8 * MiB)) /dev/urandom >"$work/pattern"
	for d in a b c d e f g; do cp "$work/pattern" "$work/$d"; done
	guest --disk "raw:$work/a,discard,log=$work/log-a" \
		--disk "raw:$work/b,discard,bs=4096,log=$work/log-b" \
		--disk "raw:$work/c,discard,log=$work/log-c" \
		--disk "raw:$work/d,discard,bs=4096,log=$work/log-d" \
		--disk "raw:$work/e,discard,queues=1,log=$work/log-e" \
		--disk "raw:$work/f,discard,prop:report-discard-granularity=off,log=$work/log-f" \
		--disk "raw:$work/g,prop:discard=off,prop:write-zeroes=off" -- inside || return
	cp "$work/pattern" "$work/wanted"
	with_holes "$work/wanted"
	judge V22-discard-seen a discard
	judge V19-discard-4k-seen b discard
	judge V22-zero-seen c write
	judge V19-zero-4k-seen d write
	judge V22-merged-seen e discard
	judge V22-one-range-seen f discard
	cp "$work/pattern" "$work/wanted"
	dd if=/dev/zero of="$work/wanted" bs=4096 seek=2 count=2 conv=notrunc status=none
	works V22-none-offered-image cmp "$work/wanted" "$work/g"
}

case_main "$@"
