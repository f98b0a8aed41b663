#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# Bytes arrive where they belong, whatever the ring, queue and block size:
# the image files on the host are the truth, both ways.
set -u
all_cpus=1
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2054
# One disk a line; between them every ring layout, size and block size.
shapes=(
	queues=1,qsize=16,legacy
	queues=2,qsize=16
	queues=2,qsize=32,packed
	queues=1,qsize=64,bs=4096
	queues=2,qsize=128,packed,bs=4096
	queues=2,qsize=256,legacy
	queues=1,qsize=256,prop:indirect_desc=off
	queues=2,qsize=16,prop:indirect_desc=off,prop:event_idx=off
	queues=2,qsize=1024,iothread
	queues=1,qsize=64,prop:seg-max-adjust=off
	queues=2,qsize=256,packed,prop:indirect_desc=off
)
size=4		# MiB

# Sets $shape to a name for the N-th.
name_shape() { shape=${shapes[$1]//prop:/}; shape=${shape//[^a-z0-9]/-}; }

inside()
{
	local i dev bs step sum at pids want
	cp "$VM_SCRATCH/new" /dev/shm/new
	for i in "${!shapes[@]}"; do
		name_shape "$i"
		dev=/dev/vd${letters:i:1}
		read -r want <"$VM_SCRATCH/sum-$i"
		read -r bs <"/sys/block/${dev#/dev/}/queue/logical_block_size"
		# Read all in large direct reads, then again in odd ones through the cache.
		sum=$(dd if="$dev" bs=1M iflag=direct status=none | sha256sum)
		check "read-direct-$shape" "${sum%% *}" "$want"
		sum=$(dd if="$dev" bs=7k status=none | sha256sum)
		check "read-cached-$shape" "${sum%% *}" "$want"
		# Disjoint parts written at the same time, each in blocks of its own size.
		at=0 pids=()
		for step in 1 3 16 128; do
			dd if=/dev/shm/new of="$dev" bs=$((bs * step)) iflag=skip_bytes,count_bytes oflag=direct,seek_bytes \
				skip="$at" seek="$at" count=$((bs * step * 3)) conv=notrunc status=none & pids+=($!)
			at=$((at + bs * step * 3))
		done
		dd if=/dev/shm/new of="$dev" bs=1M oflag=direct \
			skip=2 seek=2 count=2 conv=notrunc status=none & pids+=($!)
		for step in "${pids[@]}"; do wait "$step" || fail "write-$shape" "dd failed" "success"; done
		echo "$at" >"$VM_SCRATCH/upto-$i"
	done
}

host()
{
	local i disks=() upto
	mkdir -p "$work/share"
	head -c $((size << 20)) /dev/urandom >"$work/share/new"
	for i in "${!shapes[@]}"; do
		head -c $((size << 20)) /dev/urandom >"$work/old-$i"
		cp "$work/old-$i" "$work/img-$i"
		sha256sum <"$work/old-$i" | cut -d' ' -f1 >"$work/share/sum-$i"
		disks+=(--disk "raw:$work/img-$i,${shapes[i]}")
	done
	guest "${disks[@]}" -- inside || return
	for i in "${!shapes[@]}"; do
		name_shape "$i"
		# Expected: new bytes in [0, upto) and [2 MiB, 4 MiB), the old ones between.
		upto=$(cat "$work/share/upto-$i")
		dd if="$work/share/new" of="$work/old-$i" bs=64k iflag=count_bytes count="$upto" conv=notrunc status=none
		dd if="$work/share/new" of="$work/old-$i" bs=1M skip=2 seek=2 count=2 conv=notrunc status=none
		works "image-$shape" cmp "$work/old-$i" "$work/img-$i"
	done
}

case_main "$@"
