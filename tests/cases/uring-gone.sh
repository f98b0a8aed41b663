#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Disks unbound, removed, unloaded while their nodes are open and busy.
#~ also 6.1
#~ timeout 400
#~ soak
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../uring/lib.sh
. "$top/tests/uring/lib.sh"

inside()
{
	if grep -q ' kexeced$' /proc/cmdline; then
		pass V30-kexec
		"$programs/gone" -n uring-gone-V30-next- -t unbind-node-held vda || failed=1
		return
	fi
	none_scheduler
	program gone gone vda vdb
	kexec
}

# Ends in another kernel that comes to the same command, or with a reason
kexec()
{
	local krel initrd
	krel=$(uname -r)
	initrd=$top/build/vm/$krel/initramfs.cpio
	if [[ $krel = 6.1.* && -z ${SOAK:-} ]]; then
		skip V30-kexec "the kernel unpacks itself for half a minute; make soak runs it"
	elif [ ! -e "/boot/vmlinuz-$krel" ] || [ ! -e "$initrd" ]; then
		skip V30-kexec "this kernel is no installed one"
	else
		# the runner's archive and what it gave this run
		mkdir -p /tmp/again/vm && cp /run/vm/{conf,command,ours.ko} /tmp/again/vm
		{ cat "$initrd"; cd /tmp/again && find vm | cpio -o -H newc --quiet; } >/tmp/initrd
		export KEXEC_KERNEL=/boot/vmlinuz-$krel KEXEC_INITRD=/tmp/initrd KEXEC_CMDLINE
		KEXEC_CMDLINE="$(cat /proc/cmdline) kexeced"
		GONE=kexec program gone gone vda
	fi
}

# The first status the device is given after the reads in flight: 0 resets it
# and ends them. Else the bus would be taken from it first, and the next kernel's
# memory written to.
status_after_reads()
{
	awk '/handle_read/ && match($0, /sector [0-9]+/) {
			sector = substr($0, RSTART + 7, RLENGTH - 7) + 0
			if (sector >= 393216 && sector < 393216 + 200 * 16 && match($0, /vdev 0x[0-9a-f]+/))
				vdev = substr($0, RSTART, RLENGTH) }
		vdev && /virtio_set_status/ && index($0, vdev " ") { sub(/.* val /, ""); print; exit }' "$work/share/trace"
}

host()
{
	truncate -s 256M "$work/slow" "$work/few"
	uring_guest --timeout $((380 + ${SOAK:-0} * 60)) --params poll_queues=1 --append slub_debug=FZPU \
		--env "SUSPEND_MODULE=$(suspend_module)" \
		--trace virtio_blk_handle_read --trace virtio_set_status \
		--disk "raw:$work/slow,serial=scratch-slow,queues=2,iops=200" \
		--disk "raw:$work/few,serial=scratch-few,queues=1,qsize=16,iops=100" \
		-- inside
	# nothing if there was no other kernel
	[ -z "$(status_after_reads)" ] || check V30-old-kernel-resets-the-device "$(status_after_reads)" 0
}

case_main "$@"
