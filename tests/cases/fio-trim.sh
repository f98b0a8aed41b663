#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio's trims by passthrough: as many at a time as asked for, and the asked
# ranges only. QEMU's record and the image tell.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 4M "$share/data"
	fio_guest --disk "raw:$share/data,discard,log=$share/log" -- inside
}

fill() { head -c 4M /dev/zero | tr '\0' '\252' > "$VM_SCRATCH/data"; }

# Sectors that the record says were discarded, and how many lie outside A-B
discards() {
	log_since "$VM_SCRATCH/log" | awk -v a="$1" -v b="$2" '
		$1 == "discard" { n += $3; if ($2 < a || $2 + $3 > b) out++ }
		END { print n + 0, out + 0 }'
}

trims() {
	local name="$1-$fio"
	shift
	fill
	log_mark "$VM_SCRATCH/log"
	run --filename=/dev/vdac0 --offset=1M --size=1M --bs=4k "$@"
	check "$name" "$? $(discards 2048 4096)" "0 2048 0"
}

trim_image() {
	local zeros
	check "F06-only-that-is-zero-$fio" \
		"$(cmp -n 1048576 "$VM_SCRATCH/data" <(head -c 1M /dev/zero |
			tr '\0' '\252') && cmp -i 1048576:0 -n 1048576 \
			"$VM_SCRATCH/data" /dev/zero && echo same)" same
	zeros=$(grep -Eo 'IO depths.*32=[0-9.]+' "$fio_log" | sed 's/.*32=//')
	if awk "BEGIN { exit !(${zeros:-0} > 50) }"; then
		pass "F06-asynchronous-$fio"
	else
		fail "F06-asynchronous-$fio" "${zeros:-0} % at depth 32" \
			"most"
	fi
	check "F06-counted-$fio" \
		"$(grep -Eo 'issued rwts: total=[0-9,]*' "$fio_log")" \
		"issued rwts: total=0,0,256,0"
}

# Not deeper: fio verifies what it trimmed without waiting for the trim's end,
# which fails by the block node too.
trim_verify() {
	if ! modern; then
		skip "F13-trim+verify-$fio" "this fio aborts, by the block node too"
		return
	fi
	fio_works F13-trim+verify --filename=/dev/vdac0 --rw=randwrite \
		--size=512k --bs=4k --verify=crc32c --iodepth=1 \
		--trim_percentage=20 --trim_backlog=16 --trim_verify_zero=1
}

all_trims() {
	trims F06-trim --rw=trim
	trims F06-trim-batches --rw=trim --iodepth=16 --iodepth_batch=8 \
		--registerfiles=1
	fio_refused F06-fixedbufs 'only trims has no buffers' --fixedbufs=1 \
		--filename=/dev/vdac0 --rw=trim
	trims F06-randtrim --rw=randtrim --iodepth=32
	trim_image
	fio_works F06-trimwrite --filename=/dev/vdac0 --rw=trimwrite \
		--size=512k --bs=4k --iodepth=4
	trim_verify
	fio_works F06-sqthread_poll --filename=/dev/vdac0 --rw=randtrim \
		--size=512k --sqthread_poll=1 --iodepth=8
}

# examples/fio/trim.fio: all of the disk
trim_example() {
	fill
	example_job trim
	check "example-trim-$fio" "$? $(grep -c 'err= 0' "$fio_log") $(tr -d '\0' \
		< "$VM_SCRATCH/data" | wc -c)" "0 1 0"
}

inside() { each_fio -- all_trims trim_example; }

case_main "$@"
