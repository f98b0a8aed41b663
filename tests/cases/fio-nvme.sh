#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patched engine still does cmd_type=nvme, the default, on an NVMe disk.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 8M "$share/nvme"
	with_stock fio_guest --disk null:1M --qemu "-drive file=$share/nvme,if=none,id=n,format=raw,discard=unmap -device nvme,drive=n,serial=1" -- inside
}

nvme() {
	local name="$1-$fio"
	shift
	"${fio_cmd[@]}" --name=t --ioengine="$engine" --filename=/dev/ng0n1 \
		--size=512k "$@" > "$fio_log" 2>&1
	check "$name" "$? $(grep -c 'err= 0' "$fio_log")" "0 1"
}

all_nvme() {
	nvme default --rw=randrw --iodepth=8 --verify=crc32c
	nvme named --rw=read --cmd_type=nvme --iodepth=8 --fixedbufs=1 \
		--registerfiles=1
	nvme sqpoll --rw=randwrite --sqthread_poll=1
	# fio 3.33 itself cannot
	! modern || nvme trim --rw=trim --bs=4k
}

inside() {
	modprobe nvme
	if [ ! -c /dev/ng0n1 ]; then
		skip all "no /dev/ng0n1 in this guest"
		exit 77
	fi
	each_fio all_nvme
	export LD_PRELOAD=$top/build/fio/fio-vblk.so
	fio=preload fio_cmd=(fio) engine=io_uring_cmd
	nvme preloaded --rw=randrw --iodepth=8 --verify=crc32c
}

case_main "$@"
