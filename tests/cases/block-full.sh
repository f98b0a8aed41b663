#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ soak
#
# Rings that are full all the time, with and without indirect tables, event
# index, scheduler and poll queues: progress never stops, data stays right, no
# request has more segments than the device takes. Cases V09, V14, V15, V16.
set -u
all_cpus=1
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=$((${SOAK:-0} > 0 ? SOAK * 10 : 4))

# fio's own verification, and a second's stall at most (a guest's second: the
# machine below may be busy, so what is looked at is progress, not speed).
hammer()	# NAME DEVICE FIO-OPTIONS…
{
	local name=$1 dev=$2 out stalls=0 last=-1 io pid
	shift 2
	fio --name="$name" --filename="$dev" --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 \
		--time_based --runtime="$seconds" --size=8M --do_verify=1 --output-format=terse --thread "$@" \
		>/run/fio-out 2>&1 & pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		read -r -a io <"/sys/block/${dev#/dev/}/stat"
		if [ "$((io[0] + io[4]))" = "$last" ] && [ "${io[8]}" != 0 ]; then stalls=$((stalls + 1)); else stalls=0; fi
		last=$((io[0] + io[4]))
		[ "$stalls" -lt 200 ] || { kill -9 "$pid"; break; }
		sleep 0.1
	done
	if [ "$stalls" -ge 200 ]; then fail "$name" "no progress for 20 s" "progress"; return; fi
	if wait "$pid"; then pass "$name"; else out=$(tail -n 3 /run/fio-out); fail "$name" "$out" "success"; fi
}

vectors() { hammer "$1" "$2" --rw=randrw --bs=4k-64k --iodepth=64 --numjobs=4 --offset_increment=8M "${@:3}"; }

# One batch after the other and nobody else: what stays behind when a batch has
# ended is sent by nobody. With one CPU the answers come while the request that
# found the ring full is on its way back to the block layer.
bursts()
{
	local -a depth=(--iodepth=32 --iodepth_low=1 --iodepth_batch=32 --iodepth_batch_complete_min=32
		--iodepth_batch_complete_max=32)
	echo none >/sys/block/vda/queue/scheduler
	hammer V14-the-rest-of-a-batch /dev/vda --rw=randrw --bs=32k --ioengine=io_uring "${depth[@]}"
	{ "$top/build/t/io_uring-vblk" -u1 -p0 -B0 -b32k -d32 -s32 -c32 -r "$seconds" /dev/vdac0; echo "$?" >/run/ended; } >/run/tool-out 2>&1 &
	await $((seconds + 30)) test -s /run/ended || echo "no end" >/run/ended
	check V14-the-rest-of-a-passthrough-batch "$(cat /run/ended)" 0
}

inside()
{
	vectors V14-ring-16-direct /dev/vda
	vectors V15-no-event-idx /dev/vdb
	echo mq-deadline >/sys/block/vdb/queue/scheduler
	vectors V15-merging /dev/vdb --rw=write --bs=4k
	vectors V09-two-queues /dev/vdc --iodepth=128
	vectors V14-packed /dev/vdd
	check V16-seg-max-small "$(cat /sys/block/vda/queue/max_segments)" 14
	check V16-seg-max-256 "$(cat /sys/block/vdc/queue/max_segments)" 254
	# The device says 126, but a request must fit into a ring of 64 that has no
	# indirect tables, with its header and status.
	check V16-seg-max-fits-the-ring "$(cat /sys/block/vdd/queue/max_segments)" 62
	reload poll_queues=1
	vectors V09-poll-queue /dev/vdc --ioengine=io_uring --hipri --iodepth=32 --numjobs=2
}

host()
{
	local d
	need_tool fio fio
	for d in a b c d; do tmpimg $d 64M >/dev/null; done
	guest --disk "raw:$work/a,queues=1,qsize=16,prop:indirect_desc=off" \
		--disk "raw:$work/b,queues=1,qsize=16,prop:event_idx=off" \
		--disk "raw:$work/c,queues=2,qsize=256" \
		--disk "raw:$work/d,queues=2,qsize=64,packed,prop:indirect_desc=off,prop:seg-max-adjust=off" -- inside
	guest --smp 1 --disk "raw:$work/a,queues=1,qsize=64,prop:indirect_desc=off" -- bursts
}

case_main "$@"
