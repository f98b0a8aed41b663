#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What stock QEMU has no disk for: zones, trims of several ranges, rare answers.
# The programmable device tells what it was sent.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"
# shellcheck source=SCRIPTDIR/../device/lib.sh
. "$top/tests/device/lib.sh"

host() {
	need_tool vdpa iproute2
	fio_host
	make -s -C "$top" device > "$work/make" 2>&1 || true
	if [ ! -x "$device_bin/vblk-device" ]; then
		skip all "tests/device is not built (make device)"
		exit 77
	fi
	fio_guest -- inside
}

# state SECTOR: the zone's, as the device has it
state() { ctl 'show zones' | sed -n "s/^$1 .*state=\(.*\)/\1/p"; }

bad_answers() { grep '"ans"' "$log" | grep -vc '"status":0'; }

# 64 MiB in zones of 4 MiB, two of them conventional
zones() {
	local n
	dev_up "z$fio" --size 64M --zoned hm --conv-zones 2 \
		--set max_open_zones=4
	n=/dev/${disk}c0
	fio_works zbd-write --filename="$n" --zonemode=zbd --rw=write --bs=64k \
		--offset=8M --size=8M --verify=crc32c
	check "zbd-write-filled-$fio" "$(state 16384) $(state 24576)" \
		"full full"
	fio_works zbd-randwrite --filename="$n" --zonemode=zbd --rw=randwrite \
		--bs=16k --offset=8M --size=16M --number_ios=60 \
		--max_open_zones=3 --verify=crc32c
	together
	fio_works zbd-read --filename="$n" --zonemode=zbd --rw=randread \
		--bs=4k --offset=8M --size=16M --number_ios=100 --iodepth=8
	fio_works zbd-trim --filename="$n" --zonemode=zbd --rw=trim --bs=4M \
		--offset=8M --size=16M
	apart
	check "zbd-trim-reset-$fio" "$(state 16384) $(state 24576)" \
		"empty empty"
	fio_works zbd-options --filename="$n" --zonemode=zbd --rw=randwrite \
		--bs=64k --offset=8M --size=4M --registerfiles=1 \
		--sqthread_poll=1 --nonvectored=1
	finishes
	check "zbd-no-errors-$fio" "$(bad_answers)" 0
	run --filename="$n" --zonemode=zbd --rw=randwrite --offset=8M --max_open_zones=5
	check "zbd-max_open_zones-is-the-disk's-$fio" \
		"$(grep -o 'larger than max .*' "$fio_log")" "larger than max (4)"
	run --filename="$n" --rw=write --bs=4k --offset=25M --size=4k
	check "zbd-not-at-write-pointer-$fio" \
		"$(grep -o 'answered ZONE_UNALIGNED_WP' "$fio_log")" \
		"answered ZONE_UNALIGNED_WP"
	# status 3: ZONE_INVALID_CMD
	ctl 'rule type=zone_reset status=3' >&2
	fio_refused zbd-reset-fails-in-words \
		'zone reset at sector 16384: the device answered ZONE_INVALID' \
		--filename="$n" --zonemode=zbd --rw=trim --bs=4M --offset=8M --size=4M
	ctl clear 'rule type=zone_report status=1' >&2
	fio_refused zbd-report-fails-in-words \
		'zone report at sector 0: the device answered IOERR' \
		--filename="$n" --zonemode=zbd --rw=read --bs=4k
	dev_down
}

# Linux drives a host-aware disk as one without zones, and so fio makes zones of its
# own: their trims aren't discards, of which more than 1 MiB would be refused.
zones_of_fio() {
	dev_up "a$fio" --size 16M --zoned ha --feature discard \
		--set max_discard_sectors=2048
	together
	fio_works zbd-host-aware --filename="/dev/${disk}c0" --zonemode=zbd \
		--zonesize=4M --rw=write --bs=64k --size=8M
	fio_works zbd-trim-of-more-than-a-discard --filename="/dev/${disk}c0" \
		--zonemode=zbd --zonesize=4M --rw=trim --bs=4M --size=8M
	apart
	check "zbd-trims-were-no-discards-$fio" "$(requests discard)" 0
	dev_down
}

# A zone of which less is left than a block is finished.
finishes() {
	newer zbd-finish "finishing of zones" || return
	fio_works zbd-finish --filename="$n" --zonemode=zbd --rw=write --bs=48k \
		--offset=8M --size=8M
	check "zbd-finish-at-the-device-$fio" \
		"$(requests zone_finish) $(state 16384)" "2 full"
}

# fio's own job for zoned NVMe and ours, on zones that are all empty
zone_jobs() {
	dev_up "j$fio" --size 24M --zoned hm --set max_open_zones=4
	nvme_job uring-cmd-zoned.fio 3
	check "F24-uring-cmd-zoned.fio-wrote-$fio" \
		"$(($(requests out) > 96)) $(bad_answers)" "1 0"
	ctl clear 'mark ours'
	example_job zoned "$disk"
	check "example-zoned-$fio" \
		"$? $(grep -c 'err= 0' "$fio_log") $(ctl 'show zones' |
			grep -c 'state=full')" "0 1 6"
	dev_down
}

# nvme_job NAME JOBS: fio's example for NVMe, with filename and cmd_type changed and
# nothing else but its size: random writes to zones know no end before that, 1 GiB,
# whatever the disk's size.
nvme_job() {
	local src
	for src in "$top"/build/fio/src/fio-*; do
		[ -e "$src/examples/$1" ] &&
			sed -e "s|^filename=.*|filename=/dev/${disk}c0|" \
			-e 's|^cmd_type=.*|cmd_type=vblk|' -e 's|^size=.*|size=12M|' \
			"$src/examples/$1" > "/tmp/$1"
	done
	run_job "/tmp/$1"
	check "F24-$1-$fio" "$? $(grep -c 'err= 0' "$fio_log")" "0 $2"
}

# which is one range: with glibc's checks of what a program frees
num_range_0() {
	local fio_cmd=(env LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3
		"${fio_cmd[@]}")
	fio_works num_range=0-has-room-for-one --filename="/dev/${disk}c0" --rw=trim \
		--num_range=0 --bs=4k --size=4k
}

ranges() {
	newer F06-ranges num_range= || return
	dev_up "r$fio" --size 16M --feature discard --set max_discard_seg=8
	together
	fio_refused F06-ranges-too-many 'num_range=9 .*max_discard_seg, 8' \
		--filename="/dev/${disk}c0" --rw=randtrim --num_range=9
	fio_works F06-ranges --filename="/dev/${disk}c0" --rw=randtrim \
		--num_range=8 --bs=4k --size=1M --iodepth=4
	apart
	check "F06-ranges-requests-$fio" "$(requests discard)" 32
	check "F06-ranges-of-one-$fio" \
		"$(grep '"name":"discard"' "$log" | tail -n 1 |
			grep -o '"ranges":.*' | grep -o '\[[0-9][0-9]*,8' |
			wc -l)" 8
	num_range_0
	nvme_job uring-cmd-trim-multi-range.fio 2
	dev_down
}

# What can be told apart by what the device was sent. Of a flush QEMU's own record
# doesn't count each: with several commands in flight it makes one of several.
# Priorities: prioclass= and prio= are in every command, cmdprio_percentage= in
# about that share.
at_the_device() {
	local n
	dev_up "d$fio" --size 16M --feature flush --feature discard \
		--set discard_sector_alignment=8
	n=/dev/${disk}c0
	ctl 'rule sector=20480 status=1' 'rule sector=22528 status=2' \
		'rule sector=24576 status=77' >&2
	together
	fio_works F07-fsync-deep --filename="$n" --rw=write --bs=4k --size=256k \
		--fsync=16 --iodepth=8 --iodepth_batch=4
	fio_works prio --filename="$n" --rw=randread --size=256k --prioclass=2 \
		--prio=3
	fio_works cmdprio_percentage --filename="$n" --rw=randread --size=1M \
		--cmdprio_percentage=50 --cmdprio_class=2 --cmdprio=1
	collect words IOERR IOERR --ioengine="$engine" --cmd_type=vblk \
		--filename="$n" --rw=read --offset=10M --size=4k
	collect words UNSUPP UNSUPP --ioengine="$engine" --cmd_type=vblk \
		--filename="$n" --rw=read --offset=11M --size=4k
	collect words status-77 'a status without meaning' --ioengine="$engine" \
		--cmd_type=vblk --filename="$n" --rw=read --offset=12M --size=4k
	apart
	check "F07-fsync-deep-flushes-$fio" "$(requests flush)" \
		"$(sed -n 's/.*issued rwts: total=0,64,0,\([0-9]*\) .*/\1/p' \
			"$fio_log")"
	grep '"name":"in"' "$log" | grep -o '"ioprio":[0-9]*' | sort | uniq -c > /tmp/prio
	check "prio-at-the-device-$fio" \
		"$(awk -v p="\"ioprio\":$((2 << 13 | 3))" '$2 == p { print $1 }' /tmp/prio)" 64
	check "cmdprio_percentage-at-the-device-$fio" \
		"$(awk '$2 == "\"ioprio\":16385" { print ($1 > 80 && $1 < 176) }' /tmp/prio)" 1
	fio_refused F06-trim-of-half-a-granule 'not at its discard_sector_alignment' \
		--filename="$n" --rw=trim --bs=512 --size=64k
	dev_down
}

# A status is told in words, and the job fails
judge_words() {
	check "F04-$1" "${errno[$2]:-none} $(grep -c "the device answered $3" "$fio_log")" \
		"$([ "$2" = UNSUPP ] && echo 95 || echo 5) 1"
}

inside() {
	vduse_ready
	each_fio zones zones_of_fio zone_jobs ranges at_the_device
}

case_main "$@"
