#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What fio shows of a device's error: words, a positive errno, a failure.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 4M "$share/bad"
	fio_guest --params "poll_queues=1" \
		--disk "raw:$share/bad,eio=1000,queues=2,discard" -- inside
}

# answers NAME options: IOERR is reported by its name
answers() {
	local name="$1-$fio" rc
	shift
	run --filename=/dev/vdac0 --size=1M "$@"; rc=$?
	if [ $rc = 0 ] || [ $rc -ge 124 ]; then
		fail "$name" "exit $rc" "a failure"
	elif ! grep -q 'vblk: /dev/vdac0: the device answered IOERR' "$fio_log"; then
		fail "$name" "$(fio_said)" "the device answered IOERR"
	elif ! grep -q 'err= 5 ' "$fio_log"; then
		fail "$name" "$(grep 'err=' "$fio_log")" "err= 5"
	else
		pass "$name"
	fi
}

errors() {
	answers F04-read --rw=read
	answers F04-write --rw=write --iodepth=8
	answers F04-vectored --rw=read --nonvectored=0 --iodepth=4
	answers F04-P03-polled --rw=read --hipri=1 --iodepth=4
	fio_works F04-neighbour --filename=/dev/vdac0 --rw=read \
		--offset=504k --size=64k
	run --filename=/dev/vdac0 --rw=read --size=1M --ignore_error=EIO \
		--continue_on_error=io
	check "F04-ignore_error-runs-to-its-end-$fio" \
		"$? $(grep -Eo 'io=[0-9.]*[KM]iB' "$fio_log" | head -n 1)" \
		"0 io=1020KiB"
}

inside() { each_fio -- errors; }

case_main "$@"
