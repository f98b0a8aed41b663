#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Threads and processes, several files, polling submission threads, and every
# kind of verification by passthrough.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 16M "$share/data" "$share/data2"
	fio_guest --disk "raw:$share/data,queues=2" \
		--disk "raw:$share/data2,queues=2" -- inside
}

files_and_jobs() {
	local sq reg th nj
	for sq in 0 1; do for reg in 0 1; do for th in 0 1; do for nj in 1 4; do
		local opts=(--rw=randread --size=256k --iodepth=4
			--filename=/dev/vdac0:/dev/vdbc0 --numjobs="$nj"
			--group_reporting=1)
		[ $sq = 0 ] || opts+=(--sqthread_poll=1)
		[ $reg = 0 ] || opts+=(--registerfiles=1)
		[ $th = 0 ] || opts+=(--thread=1)
		fio_works F11-sqpoll$sq-files$reg-thread$th-jobs$nj "${opts[@]}"
	done; done; done; done
}

# Mean latency in us of a job's single reads: field 40 of fio's terse form
latency() {
	timeout 90 "${fio_cmd[@]}" --name=t --rw=randread --number_ios=200 \
		--minimal "$@" 2>&1 | cut -d ';' -f 40 | grep -m 1 -E '^[0-9.]+$'
}

# A submission thread must not delay single I/Os to its idle time-out, nor more
# than it does on the block node under the same load.
sqpoll_latency() {
	local block pass try
	for try in 1 2 3; do
		block=$(latency --ioengine=io_uring --filename=/dev/vda \
			--direct=1 --sqthread_poll=1)
		pass=$(latency --ioengine="$engine" --cmd_type=vblk \
			--filename=/dev/vdac0 --sqthread_poll=1)
		awk "BEGIN { exit !($pass > 0 && $pass < 500000 &&
			$pass < 3 * $block) }" && break
		try=
	done
	if [ -n "$try" ]; then
		pass "F10-sqthread_poll-latency-$fio"
	else
		fail "F10-sqthread_poll-latency-$fio" "$pass us" \
			"less than 3 x $block us"
	fi
}

verify_kinds() {
	local v
	for v in md5 crc64 crc32c crc32 crc16 crc7 xxhash sha512 sha256 sha1 \
		sha3-256; do
		fio_works "F13-verify-$v" --filename=/dev/vdac0 --rw=randwrite \
			--size=128k --iodepth=8 --verify=$v
	done
	fio_works F13-verify-pattern --filename=/dev/vdac0 --rw=write \
		--size=128k --verify=pattern --verify_pattern=0x5a%o
	fio_works F13-verify_backlog --filename=/dev/vdac0 --rw=write \
		--size=256k --verify=crc32c --verify_backlog=8 --iodepth=8
	fio_works F13-randrw --filename=/dev/vdac0 --rw=randrw --size=256k \
		--verify=crc32c --verify_backlog=4 --iodepth=8
	fio_works F13-verify_async --filename=/dev/vdac0 --rw=randwrite \
		--size=256k --verify=crc32c --verify_async=2
}

# An image that was changed behind fio's back must not pass.
verify_detects() {
	local args=(--filename=/dev/vdac0 --size=128k --verify=crc32c)
	fio_works F13-state-saved "${args[@]}" --rw=write --verify_state_save=1
	fio_works F13-verify_only "${args[@]}" --rw=read --do_verify=1 \
		--verify_state_save=0
	printf '\377' | dd of="$VM_SCRATCH/data" bs=1 seek=70001 conv=notrunc \
		status=none
	if run "${args[@]}" --rw=read --verify_state_save=0 ||
		! grep -q 'verify' "$fio_log"; then
		fail "F13-changed-byte-found-$fio" "$(fio_said)" \
			"a failure to verify"
	else
		pass "F13-changed-byte-found-$fio"
	fi
}

inside() {
	each_fio -- files_and_jobs sqpoll_latency verify_kinds verify_detects
}

case_main "$@"
