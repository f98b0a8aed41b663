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
		--bs=16k --offset=8M --size=16M --number_ios=100 \
		--max_open_zones=3 --verify=crc32c
	fio_works zbd-read --filename="$n" --zonemode=zbd --rw=randread \
		--bs=4k --offset=8M --size=16M --number_ios=100 --iodepth=8
	fio_works zbd-trim --filename="$n" --zonemode=zbd --rw=trim --bs=4M \
		--offset=8M --size=16M
	check "zbd-trim-reset-$fio" "$(state 16384) $(state 24576)" \
		"empty empty"
	fio_works zbd-options --filename="$n" --zonemode=zbd --rw=randwrite \
		--bs=64k --offset=8M --size=8M --registerfiles=1 \
		--sqthread_poll=1 --nonvectored=1
	check "zbd-no-errors-$fio" "$(bad_answers)" 0
	run --filename="$n" --rw=write --bs=4k --offset=25M --size=4k
	check "zbd-not-at-write-pointer-$fio" \
		"$(grep -o 'answered ZONE_UNALIGNED_WP' "$fio_log")" \
		"answered ZONE_UNALIGNED_WP"
	dev_down
}

# fio's own job for zoned NVMe, with nothing but filename and cmd_type changed,
# and ours, on zones that are all empty
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

# nvme_job NAME JOBS: fio's example for NVMe, on this disk
nvme_job() {
	local src
	for src in "$top"/build/fio/src/fio-*; do
		[ -e "$src/examples/$1" ] &&
			sed -e "s|^filename=.*|filename=/dev/${disk}c0|" \
			-e 's|^cmd_type=.*|cmd_type=vblk|' \
			"$src/examples/$1" > "/tmp/$1"
	done
	run_job "/tmp/$1"
	check "F24-$1-$fio" "$? $(grep -c 'err= 0' "$fio_log")" "0 $2"
}

ranges() {
	modern || return
	dev_up "r$fio" --size 16M --feature discard --set max_discard_seg=8
	fio_works F06-ranges --filename="/dev/${disk}c0" --rw=randtrim \
		--num_range=8 --bs=4k --size=1M --iodepth=4
	check "F06-ranges-requests-$fio" "$(requests discard)" 32
	check "F06-ranges-of-one-$fio" \
		"$(grep '"name":"discard"' "$log" | tail -n 1 |
			grep -o '"ranges":.*' | grep -o '\[[0-9][0-9]*,8' |
			wc -l)" 8
	nvme_job uring-cmd-trim-multi-range.fio 2
	fio_refused F06-ranges-too-many 'num_range=9 .*max_discard_seg, 8' \
		--filename="/dev/${disk}c0" --rw=randtrim --num_range=9
	dev_down
}

# With several commands in flight QEMU makes one flush of several, so that its
# record doesn't count them.
flushes() {
	dev_up "f$fio" --size 16M --feature flush
	fio_works F07-fsync-deep --filename="/dev/${disk}c0" --rw=write \
		--bs=4k --size=256k --fsync=16 --iodepth=8 --iodepth_batch=4
	check "F07-fsync-deep-flushes-$fio" "$(requests flush)" \
		"$(sed -n 's/.*issued rwts: total=0,64,0,\([0-9]*\) .*/\1/p' \
			"$fio_log")"
	dev_down
}

# The priority that the device is told: prioclass= and prio= in every command,
# cmdprio_percentage= in about that share
priorities() {
	local n
	dev_up "p$fio" --size 16M
	n=/dev/${disk}c0
	ctl 'mark prio'
	fio_works prio --filename="$n" --rw=randread --size=256k --prioclass=2 \
		--prio=3
	check "prio-at-the-device-$fio" "$(sed '1,/mark.*prio/d' "$log" |
		grep '"name":"in"' | grep -o '"ioprio":[0-9]*' | sort | uniq -c | tr -s ' ')" \
		" 64 \"ioprio\":$((2 << 13 | 3))"
	ctl 'mark share'
	fio_works cmdprio_percentage --filename="$n" --rw=randread --size=1M \
		--cmdprio_percentage=50 --cmdprio_class=2 --cmdprio=1
	check "cmdprio_percentage-at-the-device-$fio" \
		"$(sed '1,/share/d' "$log" | grep '"name":"in"' |
		awk '/"ioprio":16385/ { n++ } END { print (n > 80 && n < 176) }')" 1
	dev_down
}

# says STATUS WORDS
says() {
	local rc
	ctl clear "rule type=in status=$1"
	run --filename="/dev/${disk}c0" --rw=read --size=4k; rc=$?
	if grep -q "the device answered $2" "$fio_log"; then
		pass "F04-status-$1-$fio"
	else
		fail "F04-status-$1-$fio" "exit $rc $(fio_said)" "answered $2"
	fi
}

words() {
	dev_up "w$fio" --size 16M
	says 1 IOERR
	says 2 UNSUPP
	says 77 'a status without meaning'
	dev_down
}

inside() {
	vduse_ready
	each_fio -- zones zone_jobs ranges flushes priorities words
}

case_main "$@"
