#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio's options by passthrough, each judged by what it did to the image or by
# QEMU's record of what the disk was told, not by its acceptance.
#~ also 6.1
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

# vda to vdd: no multiple of any block size but 512; vde, vdf: 4096-byte blocks
odd_size=$((1024 * 1024 + 5 * 512))
big_size=$((1024 * 1024))

host() {
	local i disks=()
	fio_host
	parse_examples
	for i in 1 2 3 4; do
		truncate -s $odd_size "$share/odd$i"
		disks+=(--disk "raw:$share/odd$i")
	done
	for i in 1 2; do
		truncate -s $big_size "$share/big$i"
		disks+=(--disk "raw:$share/big$i,bs=4096")
	done
	truncate -s 16M "$share/data"
	truncate -s 4M "$share/data2" "$share/slow"
	fio_guest "${disks[@]}" \
		--disk "raw:$share/data,discard,log=$share/log,queues=2" \
		--disk "raw:$share/data2,queues=2" --disk "raw:$share/slow,iops=100" -- inside
	for i in "$share"/json-*; do json "$i"; done
}

# Looked at here, as Python takes long in a guest
json() {
	local name=${1##*/}
	[ -e "$1" ] || return
	check "$name" "$(python3 - "$1" 2>&1 <<-'END'
	import json, sys
	job = json.load(open(sys.argv[1]))["jobs"][0]
	print(job["error"], job["read"]["total_ios"] > 0, job["read"]["total_ios"] + job["write"]["total_ios"])
	END
	)" "0 True 16"
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

# bytes FROM COUNT: the one value that all of these bytes of /tmp/image have, 00, aa
# or bb, or "mixed"
bytes() {
	local value
	[ "$2" -gt 0 ] || { echo none; return; }
	for value in 00 aa bb; do
		cmp -s -i "$1":0 -n "$2" /tmp/image "/tmp/$value" &&
			{ echo $value; return; }
	done
	echo mixed
}

same_bytes() {
	[ -e /tmp/bb ] && return
	head -c 2M /dev/zero > /tmp/00
	tr '\0' '\252' < /tmp/00 > /tmp/aa
	tr '\0' '\273' < /tmp/00 > /tmp/bb
}

# NAME IMAGE NODE FROM TO options: that part of the image and no more is written
whole4k=$((odd_size / 4096 * 4096)) half4k=$(((odd_size / 2 + 4095) / 4096 * 4096))
covered="
	F02-odd-no-size odd1 vdac0 0 $whole4k --bs=4k
	F02-odd-512 odd2 vdbc0 0 $odd_size --bs=512 --iodepth=32
	F02-odd-100% odd3 vdcc0 0 $whole4k --bs=4k --size=100%
	F02-odd-half odd4 vddc0 $half4k $whole4k --bs=4k --offset=50% --size=50%
	F02-4096-no-size big1 vdec0 0 $big_size --bs=4k --iodepth=8
	F02-4096-half big2 vdfc0 $((big_size / 2)) $big_size --bs=8k --offset=50% --size=50%"

ranges() {
	local name image node from to options size got want
	together
	while read -r name image node from to options; do
		size=$(stat -c %s "$VM_SCRATCH/$image")
		dd if=/tmp/00 of="$VM_SCRATCH/$image" bs=$big_size count="$size" \
			iflag=count_bytes conv=notrunc status=none
		# shellcheck disable=SC2086 # a list of words
		fio_works $name --filename=/dev/$node --rw=write \
			--buffer_pattern=0xaa $options
	done <<< "${covered#?}"
	apart
	while read -r name image _ from to _; do
		image "$image"
		size=$(stat -c %s /tmp/image)
		got="$(bytes 0 "$from") $(bytes "$from" $((to - from)))"
		got="$got $(bytes "$to" $((size - to)))"
		want="$([ "$from" -gt 0 ] && echo 00 || echo none) aa"
		want="$want $([ "$to" -lt "$size" ] && echo 00 || echo none)"
		check "$name-in-the-image-$fio" "$got" "$want"
	done <<< "${covered#?}"
}

# How often the disk is told to flush during a job by passthrough, in MiB 1 to 4
# of the disk, and during the same job by the block node, in MiB 5 to 8
flushing="
	F07-reads --rw=read --size=64k
	F07-fsync --rw=write --size=256k --fsync=8
	F07-fdatasync --rw=randwrite --size=128k --fdatasync=4
	F07-end_fsync --rw=write --size=64k --end_fsync=1"

sync_options() {
	local name options mib=0 pass block
	log_mark "$VM_SCRATCH/log"
	together
	while read -r name options; do
		mib=$((mib + 1))
		# shellcheck disable=SC2086 # a list of words
		fio_works $name --filename=/dev/vdgc0 --offset=${mib}M $options
		# shellcheck disable=SC2086
		collect works $name-by-block '' --ioengine=io_uring --direct=1 \
			--filename=/dev/vdg --offset=$((mib + 4))M $options
	done <<< "${flushing#?}"
	apart
	log_take "$VM_SCRATCH/log"
	check "F07-no-flush-by-reads-$fio" "$(sed '/write/,$d' /tmp/log | grep -c flush)" 0
	for mib in 2 3 4; do
		pass=$(log_of $mib | grep -c flush)
		block=$(log_of $((mib + 4)) | grep -c flush)
		name=$(sed -n "$((mib + 1))s/^\t\([^ ]*\).*/\1/p" <<< "$flushing")
		if [ "$block" = 0 ]; then
			fail "$name-flushes-$fio" "no flush by the block node" "some"
		else
			check "$name-flushes-$fio" "$pass" "$block"
		fi
	done
}

# Each option that changes how a command is built or submitted, as the driver
# sees the commands: by op (2 is vectored), registered buffer, who submits and
# on which CPU, and whether io_uring's worker does. verify= checks the data.
# shellcheck disable=SC2016 # awk's words
ways() {
	local rw=(--filename=/dev/vdgc0 --rw=randrw --bs=4k --size=256k
		--iodepth=16 --verify=crc32c)
	local once=(--filename=/dev/vdgc0 --rw=write --iodepth=1 --size=1M) reg
	log_mark "$VM_SCRATCH/log"
	together
	commands rw-nonvectored=0 '$3 == 2 && $4 == 0' "${rw[@]}" --nonvectored=0
	commands rw-nonvectored=1+fixedbufs '$3 == 1 && $4 == 1' "${rw[@]}" \
		--nonvectored=1 --fixedbufs=1
	commands rw-force_async=1 '$1 == "iou-wrk"' "${rw[@]}" --force_async=1
	commands rw-sqthread_poll_cpu '$1 == "iou-sqp" && $2 == 1' "${rw[@]}" \
		--sqthread_poll=1 --sqthread_poll_cpu=1
	commands rw-sqthread_poll+fixedbufs '$1 == "iou-sqp" && $4 == 1' \
		"${rw[@]}" --sqthread_poll=1 --fixedbufs=1 --nonvectored=1
	for reg in 0 1; do
		commands rw-registerfiles=$reg '$4 == 1' "${rw[@]}" --fixedbufs=1 \
			--nonvectored=1 --registerfiles=$reg
	done
	# of a disk so slow that there is something to wait for
	commands rw-batches '$3 <= 2' --filename=/dev/vdic0 --rw=randread --bs=4k \
		--size=256k --iodepth=16 \
		--iodepth_batch=8 --iodepth_batch_complete_min=4 \
		--iodepth_batch_complete_max=8
	fio_works rw-complete_min=0 "${rw[@]}" --iodepth_batch_complete_min=0
	fio_works rw-iomem_align "${rw[@]}" --mem=mmap --iomem_align=512
	fio_works rw-bssplit "${once[@]}" --bssplit=512/20:4k/50:64k/30 --offset=4M
	fio_works rw-number_ios "${once[@]}" --number_ios=20 --loops=2 --offset=6M
	apart
	ways_at_the_ring
	log_take "$VM_SCRATCH/log"
	# what the disk was told to write
	check "rw-bssplit-at-the-disk-$fio" "$(log_of 4 |
		awk '$1 == "write" { print $3 }' | sort -nu | tr '\n' ' ')" \
		"1 8 128 "
	check "rw-number_ios-at-the-disk-$fio" \
		"$(log_of 6 | grep -c write)" 40
}

# The ring's own account of an entry: 1 in its flags is a registered file; how
# many commands a call hands over, and how many completions it waits for
ways_at_the_ring() {
	local reg
	for reg in 0 1; do
		probe_of "${pid[rw-registerfiles=$reg]}"
		check "rw-registerfiles=$reg-at-the-ring-$fio" "$(probe_entries |
			awk '$1 == "URING_CMD" { print $2 % 10 }' | sort -u)" $reg
	done
	probe_of "${pid[rw-batches]}"
	probe_enters > /tmp/enters
	check "rw-iodepth_batch-handed-over-$fio" \
		"$(cut -d ' ' -f 1 /tmp/enters | sort -n | tail -n 1)" 8
	check "rw-iodepth_batch_complete_min-waited-for-$fio" \
		"$(awk '$2 == 4 { print $2; exit }' /tmp/enters)" 4
}

# Works or is refused, as the driver says
fixed_and_vectored() {
	local name="P09-fixedbufs-vectored"
	if run --filename=/dev/vdgc0 --rw=randread --size=256k --fixedbufs=1 \
		--nonvectored=0; then
		pass "$name-works-$fio"
	else
		check "$name-$fio" "$(grep -c 'fio: vblk: .*nonvectored=1 here' \
			"$fio_log")" 1
	fi
}

json_form() {
	run --filename=/dev/vdgc0 --rw=randrw --size=64k --output-format=json
	cp "$fio_log" "$VM_SCRATCH/json-$fio"
}

# write_mode=zeroes: the image is zero without data having been sent
zeroes() {
	local zero=(--filename=/dev/vdgc0 --rw=randwrite --size=128k --bs=16k
		--write_mode=zeroes --iodepth=4)
	newer write_mode=zeroes write_mode= || return
	together
	fio_works write_mode=zeroes-before --filename=/dev/vdgc0 --rw=write \
		--offset=1M --size=1M --buffer_pattern=0xbb
	fio_works write_mode=zeroes "${zero[@]}" --offset=1088k
	fio_works write_mode=zeroes+deac "${zero[@]}" --offset=1216k --deac=1
	fio_works write_mode=zeroes+fixedbufs "${zero[@]}" --offset=1344k \
		--fixedbufs=1 --registerfiles=1 --fsync=2
	fio_works write_mode=zeroes+sqthread_poll "${zero[@]}" --offset=1472k \
		--sqthread_poll=1 --nonvectored=0
	apart
	image data
	check "write_mode=zeroes-in-the-image-$fio" "$(bytes 1048576 65536) $(bytes \
		1114112 131072) $(bytes 1245184 131072) $(bytes 1376256 131072) $(bytes \
		1507328 131072) $(bytes 1638400 458752)" "bb 00 00 00 00 bb"
}

# fio's own jobs for NVMe with nothing but filename and cmd_type changed
nvme_example() {
	local src
	for src in "$top"/build/fio/src/fio-*; do
		[ -e "$src/examples/$2" ] &&
			sed -e 's|^filename=.*|filename=/dev/vdhc0|' \
			-e "s|^cmd_type=.*|cmd_type=$1|" \
			"$src/examples/$2" > "/tmp/$1-$2"
	done
	echo "/tmp/$1-$2"
}

# ... and those that need what only NVMe has, by the name of it: each by a fio of its
# own, which has the names in [global] of the last file only
nvme_only() {
	local name said=''
	newer F24-nvme-only "fdp= and its like" || return
	for name in fdp pi-ext pi-sb; do
		run_job "$(nvme_example vblk uring-cmd-$name.fio)"
		said+="$? $(grep -oE 'fio: vblk: .*' "$fio_log" |
			grep -oE '[^ ]*: is for cmd_type=nvme only' |
			cut -d : -f 1 | sort -u | paste -sd ' ') "
	done
	# the number of its jobs, all of them refused
	check "F24-nvme-only-$fio" "$said" "3 fdp=1 2 pi_act=0 2 md_per_io_size=64 "
}

# The jobs in examples/fio, but those that need a disk of their own kind, and
# fio's for NVMe, all by one fio: names of jobs tell whose they are
examples() {
	local name syncs flushes jobs stat=/sys/class/vblk-generic/vdac0/stat before
	our_job read; our_job compare; our_job verify vdg
	echo 0 > "$tracing/tracing_on"	# it would be a great many
	log_mark "$VM_SCRATCH/log"
	read -r before _ < $stat
	run_job "$(nvme_example vblk uring-cmd-ng.fio)" \
		"$(nvme_example virtblk uring-cmd-ng.fio)" \
		/tmp/read.fio /tmp/compare.fio /tmp/verify.fio
	check "examples-exit-$fio" $? 0
	echo 1 > "$tracing/tracing_on"
	check "examples-read-by-the-node-$fio" \
		"$(($(cut -d ' ' -f 1 $stat) - before > 100))" 1
	for name in uring-cmd-ng:6 read:3 compare:2 verify:1; do
		jobs=$(sed -n 's/^\[\(.*\)\]/\1/p' /tmp/*"${name%:*}.fio" | grep -v global |
			sort -u | paste -sd '|')
		check "example-${name%:*}-$fio" \
			"$(grep -Ec "^($jobs): \(g.*err= 0" "$fio_log")" ${name#*:}
	done
	syncs=$(sed -n '/^verify: (groupid/,/rwts:/s/.*rwts: total=[0-9]*,[0-9]*,0,\([0-9]*\) .*/\1/p' \
		"$fio_log")
	log_take "$VM_SCRATCH/log"
	flushes=$(grep -c flush /tmp/log)
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
	check readme-external "$? $(grep -c 'err= 0' "$fio_log") $(probe_commands |
		probe_all '$3 <= 2')" "0 1 $((odd_size / 4096)) 0"
	line=$(grep -o 'LD_PRELOAD=build/[^ ]* fio job.fio' "$top/README.md")
	job="[r]\nioengine=io_uring_cmd\ncmd_type=vblk\nfilename=/dev/vdac0\nrw=read\nbs=64k"
	echo -e "$job" > job.fio
	probe_clear
	eval "$line" > "$fio_log" 2>&1
	check readme-preload "$? $(grep -c 'err= 0' "$fio_log") $(probe_commands |
		probe_all '$3 <= 2')" "0 1 16 0"
}

inside() {
	probe_on || fail probe "no kprobe at the driver" "one"
	same_bytes
	each_fio readme ranges sync_options ways fixed_and_vectored \
		examples nvme_only json_form zeroes
}

case_main "$@"
