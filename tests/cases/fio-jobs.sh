#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Threads and processes, several files, polling submission threads, and every
# kind of verification by passthrough.
#~ timeout 900
set -u
# shellcheck disable=SC2034 # tests/cases/lib.sh: threads and pollers want their CPUs
all_cpus=1

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 16M "$share/data" "$share/data2"
	fio_guest --disk "raw:$share/data,queues=2" \
		--disk "raw:$share/data2,queues=2" -- inside
}

files_and_jobs() {
	local sq reg th nj before
	before=$(reads)
	together
	for sq in 0 1; do for reg in 0 1; do for th in 0 1; do for nj in 1 4; do
		fio_works F11-sqpoll$sq-files$reg-thread$th-jobs$nj \
			--rw=randread --size=128k --iodepth=4 \
			--filename=/dev/vdac0:/dev/vdbc0 --numjobs=$nj \
			--group_reporting=1 --sqthread_poll=$sq \
			--registerfiles=$reg --thread=$th
	done; done; done; done
	apart
	# each of them: both files, all jobs
	check "F11-io-of-all-$fio" "$(sed -n 's/.*issued rwts: total=\([0-9]*\),.*/\1/p' \
		"$fio_log" | uniq | tr '\n' ' ')" \
		"$(yes '32 128' | head -n 8 | tr '\n' ' ')"
	check "F11-at-both-nodes-$fio" "$(reads)" \
		"$((${before% *} + 640)) $((${before#* } + 640))"
}

# How many reads each of the nodes has had
reads() { cut -d ' ' -f 1 /sys/class/vblk-generic/vd[ab]c0/stat | paste -sd ' '; }

# Mean latencies in us of single reads by the block node and by passthrough:
# field 40 of fio's terse form
latencies() {
	timeout 90 "${fio_cmd[@]}" --minimal \
		--name=block --ioengine=io_uring --filename=/dev/vda --direct=1 \
		--sqthread_poll=1 --rw=randread --number_ios=100 --stonewall \
		--name=pass --ioengine="$engine" --cmd_type=vblk \
		--filename=/dev/vdac0 \
		--sqthread_poll=1 --rw=randread --number_ios=100 --stonewall \
		2>&1 | awk -F ';' '$40 { print $40 }' | tr '\n' ' '
}

# A submission thread must not delay single I/Os to its idle time-out, nor more
# than it does on the block node under the same load.
sqpoll_latency() {
	local block pass try
	for try in 1 2 3; do
		read -r block pass < <(latencies)
		awk "BEGIN { exit !(${pass:-0} > 0 && ${pass:-0} < 500000 &&
			${pass:-0} < 3 * ${block:-0}) }" && break
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
	together
	for v in md5 crc64 crc32c crc32 crc16 crc7 xxhash sha512 sha256 sha1 \
		sha3-224 sha3-256 sha3-384 sha3-512; do
		fio_works "F13-verify-$v" --filename=/dev/vdac0 --rw=randwrite \
			--size=64k --iodepth=8 --verify=$v
	done
	fio_works F13-verify-pattern --filename=/dev/vdac0 --rw=write \
		--size=64k --verify=pattern --verify_pattern=0x5a%o
	fio_works F13-verify_backlog --filename=/dev/vdac0 --rw=write \
		--size=128k --verify=crc32c --verify_backlog=8 --iodepth=8
	fio_works F13-randrw --filename=/dev/vdac0 --rw=randrw --size=128k \
		--verify=crc32c --verify_backlog=4 --iodepth=8
	fio_works F13-verify_async --filename=/dev/vdac0 --rw=randwrite \
		--size=128k --verify=crc32c --verify_async=2
	fio_works F13-state-saved --filename=/dev/vdac0 --rw=write --size=128k \
		--verify=crc32c --verify_state_save=1
	fio_works F13-verify_only --filename=/dev/vdac0 --rw=read --size=128k \
		--verify=crc32c --verify_state_save=0
	apart
}

# An image that was changed behind fio's back must not pass.
verify_detects() {
	printf '\377' | dd of="$VM_SCRATCH/data" bs=1 seek=70001 conv=notrunc \
		status=none
	if run --filename=/dev/vdac0 --rw=read --size=128k --verify=crc32c \
		--verify_state_save=0 || ! grep -q 'verify' "$fio_log"; then
		fail "F13-changed-byte-found-$fio" "$(fio_said)" \
			"a failure to verify"
	else
		pass "F13-changed-byte-found-$fio"
	fi
}

inside() {
	each_fio files_and_jobs sqpoll_latency verify_kinds verify_detects
}

case_main "$@"
