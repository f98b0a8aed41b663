#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Data by passthrough, by block and in the image file is the same, on disks of
# every kind: large, 4096-byte blocks, small rings, legacy, packed with bounce
# buffers (U15), qcow2; the last without indirect descriptors, by the driver's parameter.
#~ also 6.1
#~ timeout 400
#~ soak
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

kinds=(big small4k legacy U15-packed qcow2)

# Nothing of the table is left to see, and no more tags than the ring has room for.
direct()
{
	reload poll_queues=1 direct_descriptors=1
	none_scheduler
	check direct-descriptors-negotiated "$(cut -c 29 /sys/block/vde/device/features)" 0
	check direct-descriptors-tags "$(cat /sys/block/vde/mq/0/nr_tags)" 85
}

inside()
{
	local i=0 k bounced
	huge_pages 24
	none_scheduler
	for k in "${kinds[@]}"; do
		[ "$i" -lt 2 ] || export PAIRS=few
		[ "$k" != qcow2 ] || direct
		# shellcheck disable=SC2059 # the letter of the i-th disk
		program data "data-$k" "vd$(printf "\\$(printf %o $((97 + i)))")"
		i=$((i + 1))
	done
	check U15-translated "$(cut -c 34 /sys/block/vdd/device/features)" 1
	bounced=/sys/kernel/debug/swiotlb/io_tlb_used_hiwater
	if [[ $(uname -r) != [1-6].* ]]; then
		skip U15-bounced "swiotlb=force makes Linux 7.3 bounce nothing"
	elif [ -e "$bounced" ]; then
		works U15-bounced test "$(cat "$bounced")" -gt 0
	fi
}

host()
{
	local k
	scratch_image big 3T scratch-big
	scratch_image small4k 3T scratch-small4k
	scratch_image legacy 3T scratch-legacy
	scratch_image U15-packed 3T scratch-U15-packed
	scratch_image qcow2.raw 3T scratch-qcow2
	qemu-img convert -O qcow2 "$work/qcow2.raw" "$work/qcow2" || exit 1
	# Only a device behind the IOMMU's translation has to do with bounce buffers.
	uring_guest --timeout $((360 + ${SOAK:-0} * 60)) --mem 1536M --params poll_queues=1 --append swiotlb=force \
		--disk "raw:$work/big,serial=scratch-big,queues=3,qsize=256,discard" \
		--disk "raw:$work/small4k,serial=scratch-small4k,bs=4096,queues=1,qsize=16,discard" \
		--disk "raw:$work/legacy,serial=scratch-legacy,legacy,queues=2,qsize=64" \
		--disk "raw:$work/U15-packed,serial=scratch-U15-packed,packed,queues=2,qsize=128,iothread,modern,prop:iommu_platform=on" \
		--disk "qcow2:$work/qcow2,serial=scratch-qcow2,queues=2,qsize=256,discard" \
		-- inside
	qemu-img convert -O raw "$work/qcow2" "$work/qcow2.raw" || exit 1
	mv "$work/qcow2.raw" "$work/qcow2"
	for k in "${kinds[@]}"; do image_holds "$k-image" "$k" "scratch-$k"; done
}

case_main "$@"
