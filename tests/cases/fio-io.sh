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

# Each option that changes how a command is built or submitted, as the driver
# sees the commands: by op (2 is vectored), registered buffer, who submits and
# on which CPU, and whether io_uring's worker does. verify= checks the data.
# shellcheck disable=SC2016 # awk's words
ways() {
	local rw=(--filename=/dev/vdcc0 --rw=randrw --bs=4k --size=256k
		--iodepth=16 --verify=crc32c)
	commands rw-nonvectored=0 '$3 == 2 && $4 == 0' "${rw[@]}" --nonvectored=0
	commands rw-nonvectored=1+fixedbufs '$3 == 1 && $4 == 1' "${rw[@]}" \
		--nonvectored=1 --fixedbufs=1
	commands rw-force_async=1 '$1 == "iou-wrk"' "${rw[@]}" --force_async=1
	commands rw-sqthread_poll_cpu '$1 == "iou-sqp" && $2 == 1' "${rw[@]}" \
		--sqthread_poll=1 --sqthread_poll_cpu=1
	commands rw-sqthread_poll+fixedbufs '$1 == "iou-sqp" && $4 == 1' \
		"${rw[@]}" --sqthread_poll=1 --fixedbufs=1 --nonvectored=1
	registered_files "${rw[@]}" --fixedbufs=1 --nonvectored=1
	batches "${rw[@]}"
	sizes "${rw[@]}"
	fio_works rw-iomem_align "${rw[@]}" --mem=mmap --iomem_align=512
	fixed_and_vectored
}

# The ring's own account of an entry: 1 in its flags is a registered file
registered_files() {
	local reg
	for reg in 0 1; do
		probe_clear
		fio_works rw-registerfiles=$reg "$@" --registerfiles=$reg
		check "rw-registerfiles=$reg-at-the-ring-$fio" "$(probe_entries |
			awk '$1 == "URING_CMD" { print $2 % 10 }' | sort -u)" $reg
	done
}

# How many commands a call hands over, and how many completions it waits for
batches() {
	probe_clear
	fio_works rw-batches "$@" --rw=randread --verify=0 --iodepth_batch=8 \
		--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=8
	check "rw-iodepth_batch-handed-over-$fio" "$(probe_enters |
		awk '{ print $1 }' | sort -n | tail -n 1)" 8
	check "rw-iodepth_batch_complete_min-waited-for-$fio" "$(probe_enters |
		awk '$2 == 4 { print $2; exit }')" 4
	fio_works rw-complete_min=0 "$@" --iodepth_batch_complete_min=0
}

# What the disk was told to write: bssplit's sizes and number_ios's count
sizes() {
	log_mark "$VM_SCRATCH/log"
	fio_works rw-bssplit "$@" --rw=write --verify=0 --iodepth=1 --size=1M \
		--bssplit=512/20:4k/50:64k/30
	check "rw-bssplit-at-the-disk-$fio" "$(log_since "$VM_SCRATCH/log" |
		awk '$1 == "write" { print $3 }' | sort -nu | tr '\n' ' ')" \
		"1 8 128 "
	log_mark "$VM_SCRATCH/log"
	fio_works rw-number_ios "$@" --rw=write --verify=0 --iodepth=1 --size=1M \
		--number_ios=20 --loops=2
	check "rw-number_ios-at-the-disk-$fio" \
		"$(log_since "$VM_SCRATCH/log" | grep -c write)" 40
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

# fio's own jobs for NVMe with nothing but filename and cmd_type changed
example() {
	local job src
	for src in "$top"/build/fio/src/fio-*; do
		job=$src/examples/$2
		[ -e "$job" ] && sed -e 's|^filename=.*|filename=/dev/vddc0|' \
			-e "s|^cmd_type=.*|cmd_type=$1|" "$job" > "/tmp/$2"
	done
	run_job "/tmp/$2"
}

example_works() {
	example "$@"
	check "F24-$2-$1-$fio" "$? $(grep -c 'err= 0' "$fio_log")" "0 3"
}

# ... and those that need what only NVMe has, by the name of it
example_refused() {
	example "$@"
	check "F24-$2-$1-$fio" "$? $(grep -Ec \
		"fio: vblk: .*$3.*cmd_type=nvme only" "$fio_log")" "1 1"
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
	check "zeroes-before-$fio" "$(bytes data 0 262144)" bb
	run --filename=/dev/vdcc0 --rw=write --size=128k --offset=64k --bs=16k \
		--write_mode=zeroes --iodepth=4
	check "write_mode=zeroes-$fio" "$? $(bytes data 0 65536) $(bytes data \
		65536 131072) $(bytes data 196608 65536)" "0 bb 00 bb"
	fio_works write_mode=zeroes+deac --filename=/dev/vdcc0 --rw=write \
		--size=128k --bs=16k --write_mode=zeroes --deac=1
}

examples() {
	example_works vblk uring-cmd-ng.fio
	example_works virtblk uring-cmd-ng.fio
	modern || return
	example_refused vblk uring-cmd-fdp.fio fdp=1
	example_refused vblk uring-cmd-pi-ext.fio pi_act=0
	example_refused vblk uring-cmd-pi-sb.fio md_per_io_size=64
}

# The jobs in examples/fio, but those that need a disk of their own kind
our_examples() {
	local name syncs flushes
	for name in read compare; do
		probe_clear
		example_job $name
		check "example-$name-$fio" "$? $(grep -c 'err= 0' "$fio_log")" \
			"0 $(grep -c '^\[[^g]' "/tmp/$name.fio")"
		check "example-$name-reaches-the-driver-$fio" \
			"$(($(probe_commands | wc -l) > 100))" 1
	done
	log_mark "$VM_SCRATCH/log"
	example_job verify vdc
	check "example-verify-$fio" "$? $(grep -c 'err= 0' "$fio_log")" "0 1"
	syncs=$(sed -n 's/.*issued rwts: total=[0-9]*,[0-9]*,0,\([0-9]*\) .*/\1/p' \
		"$fio_log")
	flushes=$(log_since "$VM_SCRATCH/log" | grep -c flush)
	# QEMU makes one of several that are in flight together
	if [ "$flushes" -ge 2 ] && [ "$flushes" -le "${syncs:-0}" ]; then
		pass "example-verify-flushes-$fio"
	else
		fail "example-verify-flushes-$fio" "$flushes" "2 to $syncs"
	fi
}

# README's lines, letter by letter. They name build/ and a job.fio.
# shellcheck disable=SC2016 # awk's words
readme() {
	local line job
	[ "$fio" = stock ] || return
	ln -sfn "$top/build" /tmp/build
	line=$(sed -n '/^## Use it from fio/,/^## /{s/^    //p}' "$top/README.md" |
		sed -n '/^fio --name/,/[^\\]$/p')
	probe_clear
	eval "$line" > "$fio_log" 2>&1
	check readme-external "$? $(grep -c 'err= 0' "$fio_log") $((
		$(probe_commands | wc -l) > 500))" "0 1 1"
	line=$(grep -o 'LD_PRELOAD=build/[^ ]* fio job.fio' "$top/README.md")
	job="[r]\nioengine=io_uring_cmd\ncmd_type=vblk\nfilename=/dev/vdac0\nrw=read\nbs=64k"
	echo -e "$job" > job.fio
	probe_clear
	eval "$line" > "$fio_log" 2>&1
	check readme-preload "$? $(grep -c 'err= 0' "$fio_log") $(probe_commands |
		probe_all '$3 <= 2')" "0 1 64 0"
}

# The distribution's fio by external engine, and preloaded by the examples
# shellcheck disable=SC2016 # awk's words
short() {
	commands rw '$4 == 1' --filename=/dev/vdcc0 --rw=randrw --bs=4k \
		--size=512k --iodepth=16 --verify=crc32c --fixedbufs=1 \
		--nonvectored=1
	example_works vblk uring-cmd-ng.fio
}

inside() {
	probe_on || fail probe "no kprobe at the driver" "one"
	same_bytes
	each_fio short readme -- ranges sync_options ways examples our_examples \
		json zeroes
}

case_main "$@"
