#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hipri: polled completions, with the data checked, and no interrupt used
#~ timeout 900
set -u
# shellcheck disable=SC2034 # tests/cases/lib.sh: threads and pollers want their CPUs
all_cpus=1

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

host() {
	fio_host
	truncate -s 8M "$share/data"
	fio_guest --params "poll_queues=1" --disk "raw:$share/data,queues=2,discard" -- inside
}

# Interrupts of the disk's request queues so far
interrupts() {
	awk '/virtio[0-9]+-req\./ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++)
		n += $i } END { print n + 0 }' /proc/interrupts
}

polled() {
	local before o
	before=$(interrupts)
	together
	fio_works hipri-read --filename=/dev/vdac0 --rw=randread --size=512k \
		--iodepth=8 --hipri=1
	for o in --fixedbufs=1 --nonvectored=0 --registerfiles=1 \
		--sqthread_poll=1 --force_async=2 --thread=1 --iodepth=1 \
		--numjobs=3; do
		fio_works "hipri-rw-${o//--/}" --filename=/dev/vdac0 \
			--rw=randrw --size=256k --iodepth=8 --hipri=1 \
			--verify=crc32c --offset_increment=512k \
			--group_reporting=1 "$o"
	done
	fio_works hipri-trim+fsync --filename=/dev/vdac0 --rw=trimwrite \
		--size=256k --hipri=1 --fsync=8
	apart
	check "hipri-no-interrupt-$fio" $(($(interrupts) - before < 10)) 1
	before=$(interrupts)
	example_job polled
	check "example-polled-$fio" "$? $(grep -c 'err= 0' "$fio_log") $((
		$(interrupts) - before < 10))" "0 1 1"
}

inside() { each_fio polled; }

case_main "$@"
