#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Block I/O and passthrough, by interrupt and polled, while the disk is resized,
# suspended, unbound and bound with other queues, unplugged, its queue and cache
# switched, CPUs come and go and memory runs short, all at once. Every block knows
# its place and generation, and what was acknowledged is compared on the host. SEED=N
# repeats the choices.
#~ also 6.1
#~ soak
#~ once
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

inside() { "$top/build/tests/faults/storm" -n crossed- vda || failed=1; }

# The host's part of the storm; see ask_host() in tests/faults/storm.c.
do_it()
{
	case $1 in
	resize) qmp block_resize node-name=img0 "size=$2" ;;
	unplug) qmp --wait DEVICE_DELETED device_del id=disk0 ;;
	plug)	qmp device_add driver=virtio-blk-pci id=disk0 bus=port0 drive=img0 serial=scratch-storm num-queues=3 ;;
	esac
}

beside()
{
	local -a words
	local said
	while [ -S "$VM_QMP" ]; do
		if [ -e "$VM_SCRATCH/ask" ]; then
			read -ra words <"$VM_SCRATCH/ask"
			rm "$VM_SCRATCH/ask"
			if said=$(do_it "${words[@]}" 2>&1); then said=ok; fi
			echo "$said" | tail -n 1 >"$VM_SCRATCH/answer.new"
			mv "$VM_SCRATCH/answer.new" "$VM_SCRATCH/answer"
		fi
		sleep 0.02
	done
}

host()
{
	truncate -s 64M "$work/disk"
	# A CPU for each queue, or fewer queues would be as many as all
	guest_with beside --params poll_queues=1 --smp 3 --timeout "$((${SOAK:-0} * 60 + 360))" \
		--env "SEED=${SEED:-$((EPOCHSECONDS % 1000000))}" --env "STORM=${STORM:-}" --env "SECONDS=${SECONDS_OF:-6}" \
		--env "SUSPEND_MODULE=$(suspend_module)" \
		--disk "raw:$work/disk,serial=scratch-storm,queues=3,discard" -- inside
	works acknowledged-is-there "$top/build/tests/faults/verify" "$work/disk" "$work/share/acks"
}

case_main "$@"
