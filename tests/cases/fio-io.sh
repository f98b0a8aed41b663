#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio's options by passthrough, each judged by what it did to the image or by
# QEMU's record of what the disk was told, not by its acceptance.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

# vda: no multiple of any block size but 512; vdb: 4096-byte blocks
odd_size=$((4 * 1024 * 1024 + 5 * 512))
big_size=$((4 * 1024 * 1024))

host() {
	fio_host
	parse_examples
	truncate -s $odd_size "$share/odd"
	truncate -s $big_size "$share/big"
	truncate -s 16M "$share/data" "$share/data2"
	fio_guest --disk "raw:$share/odd" \
		--disk "raw:$share/big,bs=4096" \
		--disk "raw:$share/data,discard,log=$share/log,queues=2" \
		--disk "raw:$share/data2,queues=2" -- inside
}

# The example jobs are jobs, for the fio that is installed.
parse_examples() {
	local job
	for job in "$top"/examples/fio/*.fio "$top"/fio-engine/*.fio; do
		LD_PRELOAD=$top/build/fio/fio-vblk.so fio --parse-only "$job" \
			> "$work/parse" 2>&1
		check "example-$(basename "$job")" \
			"$? $(grep -iE 'bad|error|valid' "$work/parse")" "0 "
	done
}

# bytes IMAGE FROM COUNT: the one value they all have, 00, aa or bb, or "mixed"
bytes() {
	local value
	[ "$3" -gt 0 ] || { echo none; return; }
	for value in 00 aa bb; do
		cmp -s -i "$2":0 -n "$3" "$VM_SCRATCH/$1" "/tmp/$value" &&
			{ echo $value; return; }
	done
	echo mixed
}

same_bytes() {
	[ -e /tmp/bb ] && return
	head -c 5M /dev/zero > /tmp/00
	tr '\0' '\252' < /tmp/00 > /tmp/aa
	tr '\0' '\273' < /tmp/00 > /tmp/bb
}

# covers NAME IMAGE FROM TO SIZE options: that part and no more is written
covers() {
	local name=$1 image=$2 from=$3 to=$4 size=$5 got want
	shift 5
	dd if=/tmp/00 of="$VM_SCRATCH/$image" bs=1M count="$size" \
		iflag=count_bytes conv=notrunc status=none
	run --rw=write --buffer_pattern=0xaa "$@" || {
		fail "$name-$fio" "$(fio_said)" "exit 0"
		return
	}
	got="$(bytes "$image" 0 "$from") $(bytes "$image" "$from" $((to - from)))"
	got="$got $(bytes "$image" "$to" $((size - to)))"
	want="$([ "$from" -gt 0 ] && echo 00 || echo none) aa"
	want="$want $([ "$to" -lt "$size" ] && echo 00 || echo none)"
	check "$name-$fio" "$got" "$want"
}

ranges() {
	local whole4k=$((odd_size / 4096 * 4096)) half
	half=$(((odd_size / 2 + 4095) / 4096 * 4096))
	covers F02-odd-no-size odd 0 $whole4k $odd_size \
		--filename=/dev/vdac0 --bs=4k
	covers F02-odd-512 odd 0 $odd_size $odd_size \
		--filename=/dev/vdac0 --bs=512 --iodepth=32
	covers F02-odd-100% odd 0 $whole4k $odd_size \
		--filename=/dev/vdac0 --bs=4k --size=100%
	covers F02-odd-half odd $half $whole4k $odd_size \
		--filename=/dev/vdac0 --bs=4k --offset=50% --size=50%
	covers F02-4096-no-size big 0 $big_size $big_size \
		--filename=/dev/vdbc0 --bs=4k --iodepth=8
	covers F02-4096-half big $((big_size / 2)) $big_size $big_size \
		--filename=/dev/vdbc0 --bs=8k --offset=50% --size=50%
}

# How often the disk was told to flush during a job by passthrough and by the
# block node
flushes() {
	local name=$1 pass block
	shift
	log_mark "$VM_SCRATCH/log"
	run --filename=/dev/vdcc0 "$@" || {
		fail "$name-$fio" "$(fio_said)" "exit 0"
		return
	}
	pass=$(log_since "$VM_SCRATCH/log" | grep -c flush)
	log_mark "$VM_SCRATCH/log"
	"${fio_cmd[@]}" --name=t --ioengine=io_uring --filename=/dev/vdc \
		--direct=1 "$@" > "$fio_log" 2>&1
	block=$(log_since "$VM_SCRATCH/log" | grep -c flush)
	if [ "$block" = 0 ] && [[ $* == *rw=write* ]]; then
		fail "$name-$fio" "no flush by the block node" "some"
	else
		check "$name-$fio" "$pass flushes" "$block flushes"
	fi
}

sync_options() {
	flushes F07-fsync --rw=write --size=256k --fsync=8
	flushes F07-fdatasync --rw=randwrite --size=128k --fdatasync=4
	flushes F07-end_fsync --rw=write --size=64k --end_fsync=1
	flushes F07-reads --rw=read --size=64k
}

# Every combination that changes how a command is built or submitted
ways() {
	local o name common="--filename=/dev/vdcc0 --rw=randrw --bs=4k
		--size=512k --iodepth=16 --verify=crc32c"
	while read -r o; do
		name=rw-$(tr ' ' '+' <<< "${o//--/}")
		# shellcheck disable=SC2086
		fio_works "${name%+}" $common $o
	done <<-END
	--nonvectored=0
	--nonvectored=1 --fixedbufs=1
	--nonvectored=0 --force_async=3
	--fixedbufs=1 --registerfiles=1
	--registerfiles=1 --force_async=1
	--iodepth_batch=8 --iodepth_batch_complete_min=4
	--iodepth_batch=16 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=16
	--iodepth_batch_complete_min=0
	--sqthread_poll=1 --sqthread_poll_cpu=1
	--sqthread_poll=1 --fixedbufs=1
	--bssplit=512/20:4k/50:64k/30
	--prio=3 --prioclass=2
	--cmdprio_percentage=50 --cmdprio_class=2
	--thread=1 --iodepth=7
	--mem=mmap --iomem_align=512
	--number_ios=50 --loops=2
	END
	fixed_and_vectored
}

# Works or is refused, as the driver says
fixed_and_vectored() {
	local args=(--filename=/dev/vdcc0 --rw=randread --size=256k
		--fixedbufs=1 --nonvectored=0)
	if run "${args[@]}"; then
		pass "P09-fixedbufs-vectored-works-$fio"
	else
		fio_refused P09-fixedbufs-vectored 'nonvectored=1 here' \
			"${args[@]}"
	fi
}

# fio's own job for NVMe with nothing but filename and cmd_type changed
example() {
	local job
	for job in "$top"/build/fio/src/fio-*/examples/uring-cmd-ng.fio; do
		sed -e 's|^filename=.*|filename=/dev/vddc0|' \
			-e "s|^cmd_type=.*|cmd_type=$1|" "$job" > /tmp/job.fio
	done
	if [ "$fio" = stock ]; then
		LD_PRELOAD=$top/build/fio/fio-vblk.so \
			timeout 120 fio /tmp/job.fio > "$fio_log" 2>&1
	else
		timeout 120 "${fio_cmd[@]}" /tmp/job.fio > "$fio_log" 2>&1
	fi
	check "F24-uring-cmd-ng.fio-$1-$fio" \
		"$? $(grep -c 'err= 0' "$fio_log")" "0 3"
}

json() {
	run --filename=/dev/vdcc0 --rw=randrw --size=64k --output-format=json
	python3 - "$fio_log" <<-'END'
	import json, sys
	job = json.load(open(sys.argv[1]))["jobs"][0]
	assert job["error"] == 0 and job["read"]["total_ios"] > 0, job
	assert job["read"]["total_ios"] + job["write"]["total_ios"] == 16, job
	END
	check "json-$fio" "$?" 0
}

# write_mode=zeroes: the image is zero without data having been sent
zeroes() {
	modern || return
	run --filename=/dev/vdcc0 --rw=write --size=256k --buffer_pattern=0xbb
	check zeroes-before "$(bytes data 0 262144)" bb
	run --filename=/dev/vdcc0 --rw=write --size=128k --offset=64k --bs=16k \
		--write_mode=zeroes --iodepth=4
	check write_mode=zeroes "$? $(bytes data 0 65536) $(bytes data \
		65536 131072) $(bytes data 196608 65536)" "0 bb 00 bb"
	fio_works write_mode=zeroes+deac --filename=/dev/vdcc0 --rw=write \
		--size=128k --bs=16k --write_mode=zeroes --deac=1
}

examples() {
	example vblk
	example virtblk
}

# The distribution's fio by external engine, and preloaded by the examples
short() {
	fio_works rw --filename=/dev/vdcc0 --rw=randrw --bs=4k --size=512k \
		--iodepth=16 --verify=crc32c --fixedbufs=1
	example vblk
}

inside() {
	each_fio short -- same_bytes ranges sync_options ways examples json \
		zeroes
}

case_main "$@"
