#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Allocations that fail: each one of every operation, then some of all of them
# while the disk is used from everywhere. Needs the debug kernel.
#~ timeout 900
#~ soak
set -u
all_cpus=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../device/lib.sh
. "$top/tests/device/lib.sh"

bin=$top/build/tests/faults

program()
{
	local rc
	"$@"
	rc=$?
	# shellcheck disable=SC2034 # cases/lib.sh exits with it
	[ "$rc" = 0 ] || [ "$rc" = 77 ] || failed=1
}

# one_by_one PREFIX DISK OPTIONS…
one_by_one()
{
	local prefix=$1 disk=$2
	shift 2
	program "$bin/failnth" -n "faults-$prefix" "$@" "$disk"
}

# PERCENT of what the driver asks for fails, in every context: interrupts and
# workers of the kernel included.
some_fail()
{
	local start end f knob
	read -r start end < <(awk '$4 == "[virtio_blk]" && tolower($2) == "t" { print $1 }' /proc/kallsyms | sort |
		sed -n '1p;$p' | paste -sd' ')
	for f in /sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc; do
		for knob in "verbose 0" "interval 1" "times -1" "space 0" "task-filter N" "ignore-gfp-wait N" "min-order 0" \
			"stacktrace-depth 32" "require-start 0x$start" "require-end 0x$end" "probability $1"; do
			[ ! -e "$f/${knob% *}" ] || echo "${knob#* }" >"$f/${knob% *}" || fail some "no $knob in $f" "it is set"
		done
	done
}

under_load()
{
	some_fail 20
	STORM="scheduler requests cpus" SHORT_OF_MEMORY=1 SECONDS=5 program "$bin/storm" -n faults-some-fail- vdb
	# Generation 0 again.
	dd if=/dev/zero of=/dev/vdb bs=1M count=6 oflag=direct status=none
	rm "$VM_SCRATCH/acks"
	some_fail 100
	STORM=none SHORT_OF_MEMORY=1 SECONDS=3 program "$bin/storm" -t all-at-once -n faults-all-fail- vdb
	some_fail 0
}

# What only the programmable device has. In a guest of its own: beside a disk
# with interrupts VDUSE makes lockdep complain about a lock of VDUSE's.
programmable()
{
	if ! modprobe -a vduse virtio_vdpa 2>/dev/null; then
		skip programmable "this kernel has no VDUSE"
		return
	fi
	dev_up zones --zoned hm --serial scratch-zones --set max_open_zones=4
	one_by_one zones- "$disk" -t 'zone*'
	dev_down
	dev_up erasable --feature secure_erase --lifetime 1,2,3 --serial scratch-erasable
	one_by_one erasable- "$disk" -t erase-secure
	one_by_one erasable- "$disk" -t get-lifetime
	dev_down
}

# The disk that the bind tests left alone.
bind_again()
{
	local device
	for device in /sys/bus/virtio/devices/*; do
		[ -e "$device/driver" ] || echo "${device##*/}" >/sys/bus/virtio/drivers/virtio_blk/bind
	done
	await 10 test -e /dev/vda
}

inside()
{
	one_by_one "" vda -t '[!eglz]*'
	bind_again || fail bound-again "no disk" "vda"
	under_load
	# Last, as the module is gone then.
	one_by_one "" vda -t load
}

host()
{
	if [ "${KERNEL:-6.12}" != debug ]; then
		skip all "this kernel injects no faults: make debug-kernel, and KERNEL=debug"
		exit 77
	fi
	truncate -s 64M "$work/a" "$work/b"
	# A failed percpu or vmalloc allocation prints a trace of its own; and the interrupt
	# core forgets that it could not make a file in /proc, until it removes it.
	guest --timeout "$((${SOAK:-4} * 60))" --params poll_queues=1 --append no_timer_check --splats-ok 'Call Trace:|remove_proc_entry' \
		--disk "raw:$work/a,serial=scratch-a,queues=2,discard" \
		--disk "raw:$work/b,serial=scratch-b,queues=3,discard" -- inside
	guest --append no_timer_check --splats-ok 'Call Trace:' -- programmable
	works acknowledged-is-there "$top/build/tests/faults/verify" "$work/b" "$work/share/acks"
}

case_main "$@"
