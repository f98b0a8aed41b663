#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The programs of examples/ and their header: what they say and what comes of it.
#~ also 6.1
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

bin=$top/build/examples

# ---- in the guest ----

# Interrupts so far of a disk's request queues
interrupts()
{
	local device
	device=$(basename "$(readlink -f "/sys/block/$1/device")")
	awk -v d="$device-req" 'index($0, d) { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' \
		/proc/interrupts
}

copies()
{
	local before said
	before=$(interrupts vda)
	said=$("$bin/copy-disk" /dev/vdac0 "$VM_SCRATCH/polled.img" 2>&1)
	check copy-polled-says "$said" "copy-disk: $(blockdev --getsize64 /dev/vda) bytes"
	check copy-polled-interrupts "$(($(interrupts vda) - before))" 0
	# A disk with one queue has none left to poll
	before=$(interrupts vdb)
	said=$("$bin/copy-disk" /dev/vdbc0 "$VM_SCRATCH/irq.img" 2>&1 | head -n 1)
	check copy-unpolled-says "$said" "copy-disk: not polling: load virtio_blk with poll_queues=1"
	works copy-unpolled-interrupts [ "$(interrupts vdb)" -gt "$before" ]
}

# says NAME PATTERN COMMAND…: it fails, and says that
says()
{
	local name=$1 pattern=$2 out
	shift 2
	if out=$("$@" 2>&1 </dev/null); then fail "$name" "success: $out" "an error"; return; fi
	# shellcheck disable=SC2053 # it is a pattern
	if [[ $out == $pattern ]]; then pass "$name"; else fail "$name" "$out" "$pattern"; fi
}

refusals()
{
	says read-past-end-says '*the device answered IOERR (1): Input/output error' \
		"$bin/read-block" /dev/vdac0 $((1 << 40))
	says read-block-node-says '*not a passthrough node*' "$bin/read-block" /dev/vda
	says copy-block-node-says '*not a passthrough node*' "$bin/copy-disk" /dev/vda /tmp/x
	says zones-none-says '*this disk has no zones*' "$bin/zone-writer" /dev/vdac0
}

# Each block where zone-writer says it is, with its data, and the device's own account
append()
{
	local block number sector wanted
	dev_up zw --size 64M --zoned hm --conv-zones 2
	block=$(blockdev --getpbsz "/dev/$disk")
	for number in 0 1 2 3 4; do
		head -c "$block" /dev/zero | tr '\0' "\\$((141 + number))"
	done >/tmp/data
	"$bin/zone-writer" "/dev/${disk}c0" </tmp/data >/tmp/said 2>&1 || is zone-writer "$(cat /tmp/said)" success
	while read -r _ number _ _ _ sector; do
		wanted=$((61 + number))
		is "block $number" "$(bytes "$sector" 2)" "$wanted$wanted"
	done < <(grep ^block /tmp/said)
	is blocks "$(grep -c ^block /tmp/said)" 5
	is "appends at the device" "$(requests zone_append)" 5
	is "the device's write pointer" "$(ctl 'show zones' | sed -n 's/^16384 .*wp=\([0-9]*\) .*/\1/p')" \
		$((16384 + 5 * block / 512))
	like "last line" "$(tail -n 1 /tmp/said)" "the zone at sector 16384 is implicitly open, written up to sector *"
	"$bin/zone-writer" "/dev/${disk}c0" </tmp/data >/tmp/said 2>&1
	like "the next time" "$(head -n 1 /tmp/said)" "block 0 is at sector 24576"
	dev_down
}

# sent MARK: what the device was sent since, as NAME@SECTOR
sent()
{
	sed "1,/$1/d" "$log" | sed -nE 's/.*"name":"([a-z_]+)","ioprio":[0-9]+,"sector":([0-9]+).*/\1@\2/p' |
		tr '\n' ' '
}

# Every function of the header, as the device sees it; once per form of the SQE.
helpers()
{
	local forms=2 vec='' rvec='' once
	dev_up hp --size 16M --feature flush --feature discard --feature write_zeroes --feature secure_erase \
		--set write_zeroes_may_unmap=1 --set max_discard_seg=4 --serial helpers --lifetime 1,2,3
	ctl 'mark helpers'
	is "the program's verdict" "$("$bin/check-node" "/dev/${disk}c0" plain)" "$forms forms right"
	grep -q "out@32" <<<"$(sent helpers)" && vec="out@32 " rvec="in@32 "
	once="out@8 out@16 out@24 ${vec}in@8 in@16 in@24 ${rvec}flush@0 discard@0 write_zeroes@0 secure_erase@0 get_id@0 "
	once+="get_lifetime@0 in@56 in@32768 "
	is "what the device was sent" "$(sent helpers)" "$once$once"
	is "discard's ranges" "$(of discard ranges)" "[[40,8,0],[64,8,0]]"
	is "write-zeroes' range" "$(of write_zeroes ranges)" "[[48,8,1]]"
	is "secure erase's range" "$(of secure_erase ranges)" "[[40,8,0]]"
	is "ioprio" "$(sed '1,/helpers/d' "$log" | grep -c "\"ioprio\":$((2 << 13 | 5)),\"sector\":56")" "$forms"
	dev_down
}

zone_helpers()
{
	local once="zone_reset_all@0 zone_open@8192 zone_append@8192 zone_append@8192 zone_close@8192 "
	dev_up hz --size 24M --zoned hm
	ctl 'mark helpers'
	is "the program's verdict" "$("$bin/check-node" "/dev/${disk}c0" zones)" "2 forms right"
	once+="zone_report@8192 zone_report@8192 zone_finish@8192 zone_report@8192 out@8192 zone_reset@8192 "
	once+="zone_report@8192 zone_report@8192 "
	is "what the device was sent" "$(sent helpers)" "$once$once"
	dev_down
}

inside()
{
	"$bin/readme" >"$VM_SCRATCH/readme"
	"$bin/read-block" /dev/vdac0 4097 >"$VM_SCRATCH/block" 2>&1
	copies
	refusals
	if vduse_beside zone-writer-header; then
		try zone-writer append
		try header-at-the-device helpers
		try header-zones-at-the-device zone_helpers
	fi
}

# ---- on the host ----

header()
{
	local program out
	for program in check-header check-header-c++; do
		out=$("$bin/$program")
		case $? in
		0) pass "$program" ;;
		77) skip "$program" "$out" ;;
		*) fail "$program" "$out" "every field in its place" ;;
		esac
	done
	out=$(cat "$bin/m32")
	if [ "$out" = compiles ]; then pass U13-header-m32; else skip U13-header-m32 "$out"; fi
}

host()
{
	need_tool vdpa iproute2
	make -s -C "$top" examples device || { fail build "an error" "the examples"; return; }
	header
	# Sizes that are no multiple of the piece a program reads
	head -c $(((24 << 20) + 1536)) /dev/urandom >"$work/a.img"
	head -c $(((1 << 20) + 512)) /dev/urandom >"$work/b.img"
	guest --params poll_queues=1 --append no_timer_check --disk "raw:$work/a.img,queues=3" \
		--disk "raw:$work/b.img,queues=1" -- inside
	dd if="$work/a.img" of="$work/block" bs=512 skip=4097 count=1 status=none
	works U13-readme-liburing cmp -n 4096 "$work/a.img" "$work/share/readme"
	check readme-liburing-bytes "$(stat -c %s "$work/share/readme")" 4096
	works U13-read-block cmp "$work/block" "$work/share/block"
	works copy-polled cmp "$work/a.img" "$work/share/polled.img"
	works copy-unpolled cmp "$work/b.img" "$work/share/irq.img"
	if command -v groff >/dev/null; then
		check man-page "$(groff -t -man -Tutf8 -ww "$top/man/virtio_blk_uring.4" 2>&1 >/dev/null)" ""
	else
		skip man-page "there is no groff"
	fi
}

case_main "$@"
