#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio ends when it is told to, whatever it is doing by passthrough, and gives a
# report.
#~ soak: 25 jobs of 30 s, SIGINT half way in some
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 16M "$share/data"
	fio_guest --timeout $((${SOAK:+2} + 1))000 \
		--params "poll_queues=1" \
		--disk "raw:$share/data,queues=2" --disk null:64M,iops=50 -- inside
}

# Waits until job $1 has done I/O on the node $2.
wait_for_io() {
	local stat=/sys/class/vblk-generic/$2/stat first
	first=$(cat "$stat")
	while kill -0 "$1" 2>&-; do
		[ "$(cat "$stat")" = "$first" ] || return 0
		sleep 0.1
	done
}

# interrupted NAME NODE options: SIGINT, then the end within 5 s, and a report
interrupted() {
	local name="$1-$fio" node=$2 pid t0 rc
	shift 2
	"${fio_cmd[@]}" --name=t --ioengine="$engine" --cmd_type=vblk \
		--filename="/dev/$node" --time_based=1 --runtime=60 "$@" \
		> "$fio_log" 2>&1 &
	pid=$!
	wait_for_io $pid "$node"
	[ -z "${SOAK:-}" ] || sleep 15
	t0=$EPOCHREALTIME
	kill -INT $pid
	timeout 30 tail --pid=$pid -f /dev/null
	rc=$(awk "BEGIN { print $EPOCHREALTIME - $t0 < 5 }")
	kill -0 $pid 2>&- && kill -KILL $pid
	wait $pid
	check "$name" "$rc $(grep -c 'issued rwts' "$fio_log")" "1 1"
}

stops() {
	interrupted F16-sigint vdac0 --rw=randwrite --iodepth=32
	interrupted F16-sigint-sqpoll vdac0 --rw=randwrite --iodepth=32 \
		--sqthread_poll=1 --thread=1
	interrupted F16-sigint-polled vdac0 --rw=randwrite --iodepth=8 \
		--hipri=1
	interrupted F16-sigint-slow-disk vdbc0 --rw=randread --iodepth=32
	fio_works F16-runtime --filename=/dev/vdac0 --rw=randwrite \
		--time_based=1 --runtime=2 --iodepth=16
}

soak() {
	local i
	[ -n "${SOAK:-}" ] || return
	for i in $(seq 25); do
		fio_works "F16-$i" --filename=/dev/vdac0 --rw=randwrite \
			--iodepth=32 --time_based=1 --runtime=30
		[ $((i % 5)) != 0 ] || interrupted "F16-$i-sigint" vdac0 \
			--rw=randwrite --iodepth=32
	done
}

inside() { each_fio -- stops soak; }

case_main "$@"
