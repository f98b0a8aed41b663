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
	truncate -s 8M "$share/data"
	truncate -s 4M "$share/whole"
	fio_guest --disk "raw:$share/data,discard,log=$share/log" \
		--disk "raw:$share/whole,discard" -- inside
}

# fill IMAGE MIB
fill() {
	head -c "$2M" /dev/zero | tr '\0' '\252' > /tmp/fill
	dd if=/tmp/fill of="$VM_SCRATCH/$1" bs=256k conv=notrunc status=none
}

# Sectors of MiB $1 that the record says were discarded in it
discards() {
	log_of "$1" | awk -v end="$((($1 + 1) * 2048))" '
		$1 == "discard" { n += $3; if ($2 + $3 > end) out++ }
		END { print n + 0, out + 0 }'
}

# Each has a MiB of its own between others that must stay as they are
trims() {
	local i
	fill data 8
	log_mark "$VM_SCRATCH/log"
	together
	fio_refused F06-fixedbufs 'only trims has no buffers' --fixedbufs=1 \
		--filename=/dev/vdac0 --rw=trim
	trim F06-trim 1 --rw=trim
	trim F06-trim-batches 3 --rw=trim --iodepth=16 --iodepth_batch=8 \
		--registerfiles=1
	trim F06-sqthread_poll 5 --rw=randtrim --sqthread_poll=1 --iodepth=8
	trim F06-randtrim 7 --rw=randtrim --iodepth=32
	apart
	log_take "$VM_SCRATCH/log"
	for i in 1 3 5 7; do
		check "F06-MiB-$i-discarded-$fio" "$(discards $i)" "2048 0"
	done
	trim_image
}

trim() { fio_works "$1" --filename=/dev/vdac0 --offset="$2M" --size=1M --bs=4k "${@:3}"; }

trim_image() {
	local i got='' deep
	image data
	head -c 1M /dev/zero > /tmp/zero
	for i in 0 1 2 3 4 5 6 7; do
		if cmp -s -i $((i << 20)):0 -n 1048576 /tmp/image /tmp/zero; then
			got+="zero "
		elif cmp -s -i $((i << 20)):0 -n 1048576 /tmp/image /tmp/fill; then
			got+="kept "
		else
			got+="mixed "
		fi
	done
	check "F06-only-those-are-zero-$fio" "$got" \
		"kept zero kept zero kept zero kept zero "
	deep=$(sed -n '/^F06-randtrim: (groupid/,$s/.*IO depths.* 32=\([0-9.]*\).*/\1/p' "$fio_log")
	if awk "BEGIN { exit !(${deep:-0} > 50) }"; then
		pass "F06-asynchronous-$fio"
	else
		fail "F06-asynchronous-$fio" "${deep:-0} % at depth 32" "most"
	fi
	check "F06-counted-$fio" \
		"$(grep -Eo 'issued rwts: total=[0-9,]*' "$fio_log" | uniq -c | tr -s ' ')" \
		" 4 issued rwts: total=0,0,256,0"
}

# Not deeper: fio verifies what it trimmed without waiting for the trim's end,
# which fails by the block node too.
more_trims() {
	together
	fio_works F06-trimwrite --filename=/dev/vdac0 --rw=trimwrite \
		--size=512k --bs=4k --iodepth=4
	if modern; then
		fio_works F13-trim+verify --filename=/dev/vdac0 --rw=randwrite \
			--size=512k --bs=4k --verify=crc32c --iodepth=1 \
			--trim_percentage=20 --trim_backlog=16 --trim_verify_zero=1
	else
		skip "F13-trim+verify-$fio" "this fio aborts, by the block node too"
	fi
	apart
}

# examples/fio/trim.fio: all of the disk
trim_example() {
	local rc
	fill whole 4
	example_job trim vdb
	rc=$?
	image whole
	check "example-trim-$fio" "$rc $(grep -c 'err= 0' "$fio_log") $(cmp -n 4194304 \
		/tmp/image /dev/zero && echo zero)" "0 1 zero"
}

inside() { each_fio trims more_trims trim_example; }

case_main "$@"
