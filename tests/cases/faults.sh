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

injectors=(/sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc)
most=1000000

# Every N-th allocation that the driver asks for fails, in every context: interrupts and
# workers of the kernel included. 0: none. Not by chance, so that a run can be repeated.
every()
{
	local start end f knob percent=100
	[ "$1" != 0 ] || percent=0
	read -r start end < <(awk '$4 == "[virtio_blk]" && tolower($2) == "t" { print $1 }' /proc/kallsyms | sort |
		sed -n '1p;$p' | paste -sd' ')
	for f in "${injectors[@]}"; do
		for knob in "verbose 0" "interval $1" "space 0" "task-filter N" "ignore-gfp-wait N" "min-order 0" \
			"stacktrace-depth 32" "require-start 0x$start" "require-end 0x$end" "times $most" "probability $percent"; do
			[ ! -e "$f/${knob% *}" ] || echo "${knob#* }" >"$f/${knob% *}" || fail every "no $knob in $f" "it is set"
		done
	done
}

# How many have failed since
injected() { echo $((most * 2 - $(cat "${injectors[0]}/times") - $(cat "${injectors[1]}/times"))); }
some_injected() { [ "$(injected)" -gt 0 ]; }

under_load()
{
	every $((3 + ${SEED:-0} % 5))
	STORM="scheduler requests cpus" SHORT_OF_MEMORY=1 SECONDS=5 program "$bin/storm" -n faults-some-fail- vdb
	works some-fail-injected some_injected
	# Generation 0 again.
	dd if=/dev/zero of=/dev/vdb bs=1M count=6 oflag=direct status=none
	rm "$VM_SCRATCH/acks"
	every 1
	STORM=none SHORT_OF_MEMORY=1 SECONDS=3 program "$bin/storm" -t all-at-once -n faults-all-fail- vdb
	works all-fail-injected some_injected
	discards
}

# Sent by a worker of the kernel: without memory for their ranges they wait, and nobody
# is told an error
discards()
{
	local what p
	for what in "" -z; do
		every 1
		# shellcheck disable=SC2086 # no word or one
		blkdiscard -f $what -o 41943040 -l 1048576 /dev/vdb & p=$!
		works "discard$what-meets-it" await 20 some_injected
		works "discard$what-waits" kill -0 "$p"
		every 0
		wait "$p"
		check "discard$what-goes-on" $? 0
	done
}

# The work that follows a resize has nobody to tell an error either
resized()
{
	local sectors
	dev_up rs --serial scratch-rs
	every 1
	for sectors in 200000 1000 131072; do
		ctl "set capacity=$sectors"
		works "resize-to-$sectors" await 20 size_is "$sectors"
	done
	works resize-meets-it some_injected
	every 0
	dev_down
}
size_is() { [ "$(sys size)" = "$1" ]; }

# What only the programmable device has. In a guest of its own for vduse_beside()'s reason.
programmable()
{
	if ! modprobe -a vduse virtio_vdpa 2>/dev/null; then
		skip programmable "this kernel has no VDUSE"
		return
	fi
	dev_up zones --zoned hm --serial scratch-zones --set max_open_zones=4 --queues 2
	one_by_one zones- "$disk" -t 'zone*'
	one_by_one zones- "$disk" -t bind
	bind_again
	dev_down
	dev_up erasable --feature secure_erase --lifetime 1,2,3 --serial scratch-erasable
	one_by_one erasable- "$disk" -t erase-secure
	one_by_one erasable- "$disk" -t get-lifetime
	dev_down
	resized
}

# The disk that the bind tests left alone.
bind_again()
{
	local device
	for device in /sys/bus/virtio/devices/*; do
		[ -e "$device/driver" ] || echo "${device##*/}" >/sys/bus/virtio/drivers/virtio_blk/bind
	done
	await 10 test -e /dev/vda || fail bound-again "no disk" "vda"
}

inside()
{
	one_by_one "" vda -t '[!eglz]*'
	bind_again
	under_load
	# Last, as the module is gone then.
	one_by_one "" vda -t load
}

host()
{
	if [ "${KERNEL:-6.12}" != debug ]; then
		skip all "this kernel injects no faults: make debug-kernel, and make check-debug ONLY=faults"
		exit 77
	fi
	local seed=${SEED:-$((EPOCHSECONDS % 100000))}
	echo "SEED=$seed" >&2
	truncate -s 64M "$work/a" "$work/b"
	# A failed percpu or vmalloc allocation prints a trace of its own; the interrupt core
	# forgets that it could not make a file in /proc, until it removes it; and the DMA
	# checker that has no memory says that it is off.
	local -a common=(--params poll_queues=1 --append no_timer_check --env "SEED=$seed"
		--splats-ok 'Call Trace:|remove_proc_entry|cacheline tracking ENOMEM')
	guest "${common[@]}" --timeout "$((240 + ${SOAK:-0} * 240))" \
		--disk "raw:$work/a,serial=scratch-a,queues=2,discard" \
		--disk "raw:$work/b,serial=scratch-b,queues=3,discard" -- inside
	guest "${common[@]}" -- programmable
	works acknowledged-is-there "$top/build/tests/faults/verify" "$work/b" "$work/share/acks"
}

case_main "$@"
