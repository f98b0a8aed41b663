#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fio --server in one guest, with the disk, driven by fio --client in another.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

# net server=on|off: a wire between the guests
net() {
	echo "-netdev stream,id=n,$1,addr.type=unix,addr.path=$work/wire -device virtio-net-pci,netdev=n"
}

host() {
	local server
	fio_host
	truncate -s 16M "$share/data"
	# Two guests at a time, and neither needs more than one of the machine's CPUs.
	fio_guest --smp 1 --disk "raw:$share/data" --qemu "$(net server=on)" \
		-- inside_server &
	server=$!
	VM_SCRATCH=$share
	if await_signal listening 300; then
		with_stock fio_guest --smp 1 --disk null:1M \
			--qemu "$(net server=off)" -- inside_client
	else
		fail server "no server" "one that listens"
	fi
	signal finished
	wait $server || fail server "its guest ended with $?" 0
}

network() {
	local card
	modprobe virtio_net
	card=$(basename /sys/class/net/e*)
	ip link set lo up
	ip address add "192.0.2.$1/24" dev "$card"
	ip link set "$card" up
}

inside_server() {
	cd /tmp || exit 125
	network 1
	LD_PRELOAD=$top/build/fio/fio-vblk.so fio --server=192.0.2.1 \
		> "$VM_SCRATCH/server" 2>&1 &
	# 8765 is fio's port, 223D in hex
	await 60 grep -q ':223D .* 0A ' /proc/net/tcp && signal listening
	await_signal finished 600
	kill %1
}

inside_client() {
	cd /tmp || exit 125
	network 2
	cat > job.fio <<-END
	[served]
	ioengine=io_uring_cmd
	cmd_type=vblk
	filename=/dev/vdac0
	rw=randrw
	size=512k
	iodepth=8
	verify=crc32c
	END
	timeout 120 fio --client=192.0.2.1 job.fio > log 2>&1
	check job-of-another-guest \
		"$? $(grep -c 'err= 0' log) $(grep -c 'issued rwts' log)" \
		"0 1 1"
	sed -i 's/vdac0/vda/' job.fio
	timeout 120 fio --client=192.0.2.1 job.fio > log 2>&1
	check refusal-reaches-the-client \
		"$(grep -c 'needs the character device /dev/vdac0' log)" 1
}

case_main "$@"
