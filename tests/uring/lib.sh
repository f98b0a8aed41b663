# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests/cases/uring-*.sh, after tests/cases/lib.sh: runs the C programs.

# shellcheck disable=SC2034 # tests/cases/lib.sh: threads and pollers want their CPUs
all_cpus=1

# shellcheck disable=SC2154 # top: tests/cases/lib.sh
programs=$top/build/tests/uring

# program NAME PREFIX DISK…: its lines pass through to the count.
# URING_OPTIONS: words for all of them, to try out one behaviour (-t PATTERN).
program()
{
	local name=$1 prefix=$2 rc
	local -a options
	shift 2
	read -ra options <<<"${URING_OPTIONS:-}"
	"$programs/$name" -n "uring-$prefix-" "${options[@]}" "$@"
	rc=$?
	# shellcheck disable=SC2034 # failed: tests/cases/lib.sh exits with it
	[ $rc = 0 ] || [ $rc = 77 ] || failed=1
}

# Last: nothing of what the programs did holds the module, and it leaves nothing.
unloads()
{
	works unloads rmmod virtio_blk
	check leaves-nothing "$(grep -E 'virtblk|vblk' /proc/devices; ls -d /sys/class/vblk-generic /dev/vd*c0 2>/dev/null)" ""
}

uring_guest() { guest --env "URING_OPTIONS=${URING_OPTIONS:-}" "$@"; }

# Prints the module that suspends one device, built beside this kernel's driver; nothing
# for one that is not installed here. Cases run side by side.
suspend_module()
{
	local module
	[ "${KERNEL:-}" != newest ] || return
	module=$top/build/$(kernel_release "$top/build" virtio_blk.ko)/suspend_one.ko
	flock "${module%/*}/suspend.lock" make -s -C "$top" "${module#"$top"/}" >&2
	echo "$module"
}

huge_pages() { echo "$1" >/proc/sys/vm/nr_hugepages; }

none_scheduler()
{
	local q
	for q in /sys/block/vd*/queue/scheduler; do echo none >"$q"; done
}

# scratch_image NAME SIZE SERIAL: a sparse image whose serial is SERIAL, with the
# pattern in places that the tests read first.
scratch_image()
{
	# shellcheck disable=SC2154 # work: tests/cases/lib.sh
	mkdir -p "$work/share"
	truncate -s "$2" "$work/$1"
	printf '%s\n' '131072 4096 901' '262144 65536 902' '524288 53248 903' '786432 512000 904' \
		>"$work/share/$3.prefill"
	"$programs/pattern" fill "$work/$1" "$work/share/$3.prefill" >/dev/null || exit 1
}

# image_holds NAME IMAGE SERIAL: what the guest's tests left a note of is there.
image_holds()
{
	local out
	if out=$("$programs/pattern" check "$work/$2" "$work/share/$3.expect" 2>&1); then
		pass "$1"
	else
		fail "$1" "$out" "the data the guest wrote"
	fi
}

# rest_is_empty NAME: behind the fuzzers' window (ground.h) the image is as it was made.
rest_is_empty()
{
	local window=$((32 * 1048576))
	works "$1-rest-of-the-image" cmp -n $(($(stat -c %s "$work/$1") - window)) -i $window:0 "$work/$1" /dev/zero
}

# Host side, beside the guest: does what the guest's programs ask for in the
# shared folder; the case's function do_it WORD does it.
answer()
{
	local what said
	read -r what <"$VM_SCRATCH/ask" || return
	rm "$VM_SCRATCH/ask"
	if said=$(do_it "$what" 2>&1); then said=ok; fi
	echo "$said" | tail -n 1 >"$VM_SCRATCH/answer.new"
	mv "$VM_SCRATCH/answer.new" "$VM_SCRATCH/answer"
}
