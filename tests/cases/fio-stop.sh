#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# How fio ends: of a device's error it says words, gives a positive errno and
# fails; and it ends when it is told to, whatever it is doing by passthrough, with
# a report.
#~ soak: 25 jobs of 30 s, SIGINT half way in some
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 16M "$share/data"
	truncate -s 4M "$share/bad"
	fio_guest --timeout $((${SOAK:+2} + 1))000 \
		--params "poll_queues=1" \
		--disk "raw:$share/data,queues=2" --disk null:64M,iops=50 \
		--disk "raw:$share/bad,eio=1000,queues=2" -- inside
}

# answers NAME options: IOERR is reported by its name
answers() {
	collect answers "$1" '' --ioengine="$engine" --cmd_type=vblk \
		--filename=/dev/vdcc0 --size=1M "${@:2}"
}

judge_answers() { check "$1" "${errno[$2]:-none}" 5; }

errors() {
	together
	answers F04-read --rw=read
	answers F04-write --rw=write --iodepth=8
	answers F04-vectored --rw=read --nonvectored=0 --iodepth=4
	answers F04-P03-polled --rw=read --hipri=1 --iodepth=4
	fio_works F04-neighbour --filename=/dev/vdcc0 --rw=read \
		--offset=504k --size=64k
	apart
	check "F04-said-$fio" "$(($(grep -c 'vblk: /dev/vdcc0: the device answered IOERR' \
		"$fio_log") >= 4))" 1
	run --filename=/dev/vdcc0 --rw=read --size=1M --ignore_error=EIO \
		--continue_on_error=io
	check "F04-ignore_error-runs-to-its-end-$fio" \
		"$? $(grep -Eo 'io=[0-9.]*[KM]iB' "$fio_log" | head -n 1)" \
		"0 io=1020KiB"
	# one that is refused after one that the device answered, in the same slot
	printf '%s\n' 'fio version 2 iolog' '/dev/vdcc0 add' '/dev/vdcc0 open' \
		'/dev/vdcc0 read 512000 512' '/dev/vdcc0 read 700 512' \
		'/dev/vdcc0 close' > /tmp/iolog
	run --read_iolog=/tmp/iolog --ignore_error=EIO \
		--continue_on_error=io
	check "F04-no-answer-of-another-I/O-$fio" "$(grep -o 'vblk: .*: \(no\|the\) [^:]*' \
		"$fio_log")" "vblk: /dev/vdcc0: no answer from the device"
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

inside() { each_fio errors stops soak; }

case_main "$@"
