#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patched engine still does cmd_type=nvme, the default, on an NVMe disk, and
# takes and refuses options as before. fio as it was is the control.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	options_as_before
	truncate -s 8M "$share/nvme"
	with_stock fio_guest --disk null:1M --qemu "-drive file=$share/nvme,if=none,id=n,format=raw,discard=unmap -device nvme,drive=n,serial=1" -- inside
}

# What fio says to a job with cmd_type=$1, and the engine's options
said_to() {
	local t=$1
	shift
	"$@" --parse-only --name=t --ioengine=io_uring_cmd --filename=/dev/null \
		--rw=read --cmd_type="$t" 2>&1
	echo "status $?"
}

options_as_before() {
	local type so=$top/build/fio/fio-vblk.so
	for type in nvme bsg none; do
		check "parse-$type-as-before" \
			"$(said_to $type env LD_PRELOAD="$so" fio | grep -v '^ *: *vb\|^ *: virtblk')" \
			"$(said_to $type fio)"
	done
	for type in vblk virtblk; do
		check "parse-$type" "$(said_to $type env LD_PRELOAD="$so" fio)" \
			"status 0"
	done
	check options-but-cmd_type-as-before \
		"$(LD_PRELOAD=$so fio --enghelp=io_uring_cmd)" \
		"$(fio --enghelp=io_uring_cmd)"
}

# What came of the same job by fio as it was: its report, and the disk
control() {
	local job=(--filename=/dev/ng0n1 --rw=randrw --size=512k --bsrange=4k-16k
		--iodepth=8 --randseed=7 --buffer_pattern=0x5a --fsync=16)
	local want
	outcome fio --ioengine=io_uring_cmd; want=$got
	outcome env LD_PRELOAD="$top/build/fio/fio-vblk.so" fio \
		--ioengine=io_uring_cmd
	check nvme-as-by-fio-unpatched-preloaded "$got" "$want"
	outcome fio "--ioengine=external:$top/build/fio/fio-vblk.so"
	check nvme-as-by-fio-unpatched-external "$got" "$want"
}

outcome() {
	blkdiscard -f -z /dev/nvme0n1
	"$@" --name=t "${job[@]}" > "$fio_log" 2>&1
	got="$? $(grep -oE 'issued rwts: .*short' "$fio_log") $(grep -o 'err=.[^:]*' \
		"$fio_log") $(dd if=/dev/nvme0n1 bs=1M count=1 iflag=direct status=none |
		sha256sum)"
}

nvme() { collect works "$1" '' --ioengine="$engine" --filename=/dev/ng0n1 --size=512k "${@:2}"; }

all_nvme() {
	together
	nvme default --rw=randrw --iodepth=8 --verify=crc32c
	nvme named --rw=read --cmd_type=nvme --iodepth=8 --fixedbufs=1 \
		--registerfiles=1
	nvme sqpoll --rw=randwrite --sqthread_poll=1
	# fio 3.33 itself cannot
	! newer trim "trim that works" || nvme trim --rw=trim --bs=4k
	apart
}

inside() {
	fio_log=/tmp/fio.log
	cd /tmp || exit 125
	modprobe nvme
	if [ ! -c /dev/ng0n1 ]; then
		skip all "no /dev/ng0n1 in this guest"
		exit 77
	fi
	control
	each_fio all_nvme
	export LD_PRELOAD=$top/build/fio/fio-vblk.so
	fio=preload fio_cmd=(fio) engine=io_uring_cmd
	together
	nvme preloaded --rw=randrw --iodepth=8 --verify=crc32c
	apart
}

case_main "$@"
