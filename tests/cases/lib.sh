# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
#
# For tests/cases/*.sh. A case is one script for both sides: run without words
# it is the host's side, `host`, which starts guests; these run the same script
# with the name of one of its functions:
#
#	. "$(dirname "$0")/lib.sh"
#	inside() { check sees-a-disk "$(ls /dev/vda)" /dev/vda; }
#	host() { guest --disk null:1G -- inside; }
#	case_main "$@"
#
# One boot for many behaviours: boots are dear. Every behaviour says one line,
# PASS, FAIL or SKIP, which tests/check counts. KERNEL says which kernel.

case_file=$(realpath "$0")
case_name=$(basename "$0" .sh)
lib=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
vm=$(realpath -m "$lib/../vm")
top=$(realpath -m "$lib/../..")
failed=0
since=${EPOCHREALTIME/[.,]/}

# Sets $took to the time since the last result.
took()
{
	local now=${EPOCHREALTIME/[.,]/} d
	d=$((now - since)) since=$now
	took=$((d / 1000000)).$((d / 100000 % 10))
}

one_line() { tr '\n\r' '  ' <<<"$*" | cut -c -300 | sed 's/ *$//'; }

pass() { took; echo "PASS $case_name-$1 ($took s)"; }
fail() { took; echo "FAIL $case_name-$1: got $(one_line "$2"), wanted $(one_line "$3")"; failed=1; }
skip() { took; echo "SKIP $case_name-$1: $(one_line "$2")"; }

# check NAME GOT WANTED
check() { if [ "$2" == "$3" ]; then pass "$1"; else fail "$1" "'$2'" "'$3'"; fi; }

# works NAME COMMAND…: it ends with 0.   refused NAME COMMAND…: it does not.
works()
{
	local name=$1 out rc
	shift
	out=$("$@" 2>&1); rc=$?
	if [ $rc = 0 ]; then pass "$name"; else fail "$name" "status $rc: $out" "success of $*"; fi
}

refused()
{
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then fail "$name" "success: $out" "an error from $*"; else pass "$name"; fi
}

# await SECONDS COMMAND…: until it succeeds.
await()
{
	local until=$((EPOCHSECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$EPOCHSECONDS" -le "$until" ] || return 1
		sleep 0.05
	done
}

# Between the sides: signal NAME on one, await_signal NAME [SECONDS] on the other.
signal() { : >"$VM_SCRATCH/signal-$1"; }
await_signal() { await "${2:-60}" test -e "$VM_SCRATCH/signal-$1"; }

# qmp COMMAND [KEY=VALUE…], with --wait EVENT before it; host side of guest_with.
qmp()
{
	local -a options=()
	while [[ $1 == --* ]]; do options+=("$1" "$2"); shift 2; done
	"$vm/qmp" "${options[@]}" "$VM_QMP" "$@"
}

# ---- guest side ----

# The letter of the N-th disk, from 0: /dev/vd${letters:N:1}.
letters=abcdefghijklmnopqrstuvwxyz

# Loads the driver anew, with other parameters.
reload() { rmmod virtio_blk && insmod "$VM_MODULE" ${1:+"$@"}; }

# The build, for a user who may not look into the folder that holds the tree.
open_build() { mountpoint -q /run/build || { mkdir -p /run/build && mount --bind "$top/build" /run/build; }; }

# in_memory FUNCTION TOOL…: the function in a small root of its own in memory,
# for when the share with the host's files is about to go.
in_memory()
{
	local ram=/run/ram fn=$1 tool tools=()
	shift
	# tests/kernels/in-guest, which waits for this, does without programs then.
	: >/run/in-memory
	mkdir -p $ram/{dev,proc,sys,run,tmp,cases} && mount -t tmpfs tmpfs $ram/run
	for tool in bin sbin lib lib64; do
		[ -L /$tool ] && mkdir -p "$ram/usr/$tool" && ln -s "usr/$tool" $ram/$tool
	done
	# Each at its own path, and the libraries at theirs.
	for tool in bash dirname realpath basename sleep cut tr sed "$@"; do tools+=("$(command -v "$tool")"); done
	{ printf '%s\n' "${tools[@]}"; ldd "${tools[@]}" | grep -o '/[^ :]* '; } | sort -u | xargs cp -L --parents -t $ram
	cp "$case_file" "$lib/lib.sh" $ram/cases
	cp "$VM_MODULE" $ram/module.ko
	mount --bind /dev $ram/dev; mount --bind /proc $ram/proc; mount --bind /sys $ram/sys
	VM_MODULE=/module.ko exec chroot $ram /bin/bash "/cases/${case_file##*/}" "$fn"
}

# ---- host side ----

# The case's folder on the host, gone afterwards.
work_folder()
{
	[ -z "${work:-}" ] || return
	work=$(mktemp -d /tmp/case.XXXXXX) || exit 1
	trap 'rm -rf "$work"' EXIT
}

# kernel_release FOLDER FILE: the newest release of $KERNEL (6.1 is not 6.12) whose
# folder in there has FILE
kernel_release()
{
	local d
	for d in "$1/${KERNEL:-6.12}" "$1/${KERNEL:-6.12}"[-.+]*; do
		[ -e "$d/$2" ] && basename "$d"
	done | sort -V | tail -n 1
}

# answers NAME HEADERS "WORDS": probe.sh says HAVE_ of all these words, so that a
# pattern that no longer finds what is there shows. More is no fault: stable kernels
# take interfaces back, and then the compiler judges.
answers()
{
	check "probe-$1" "$(comm -13 <(sh "$top/drivers/block/probe.sh" "$2" | sed 's/^-DHAVE_//' | sort) \
		<(tr ' ' '\n' <<<"$3" | sort) | paste -sd' ')" ""
}

# tmpimg NAME SIZE: an empty sparse image, prints its name.
tmpimg() { truncate -s "$2" "$work/$1" && echo "$work/$1"; }

# need_tool TOOL PACKAGE: or the whole case is skipped with the reason.
need_tool()
{
	command -v "$1" >/dev/null && return
	"$vm/need" "$2" >/dev/null 2>&1 && return
	skip all "there is no $1 (Debian package $2)"
	exit 77
}

# guest [runner's options] -- FUNCTION [ARG…]: boots, runs the function there.
# The runner's own failures are the case's; RUNNER_OK names statuses to let pass.
guest()
{
	local -a options=()
	local rc
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	"${VM_RUN:-$vm/run}" --kernel "${KERNEL:-6.12}" --driver "${DRIVER:-ours}" --share "$work/share" --timeout 360 \
		--env "DRIVER=${DRIVER:-ours}" --env "SOAK=${SOAK:-}" --env "SHOW=${SHOW:-}" "${options[@]}" -- /bin/bash "$case_file" "$@"
	rc=$?
	case $rc in
	120) fail "$1-log" "a report in the guest's kernel log" "none" ;;
	124) fail "$1-time" "a time-out" "an end" ;;
	125) fail "$1-boot" "no guest" "a guest" ;;
	esac
	[ $rc = 0 ] || failed=1
	took	# the guest's time is told in the guest's lines
	return $rc
}

# guest_with HOST-FUNCTION [options] -- FUNCTION…: the host's function runs beside
# it, with VM_QMP and VM_SCRATCH set.
guest_with()
{
	local script=$work/beside-$1
	printf '#!/bin/bash\nexec /bin/bash %q %q\n' "$case_file" "$1" >"$script"
	chmod +x "$script"
	shift
	guest --host-script "$script" "$@"
}

# Where a case compares with the in-tree driver: the same boot under both.
with_stock() { DRIVER=stock "$@"; }

# An emulated CPU that waits for another one burns the host's time, and a shell's many
# processes make them wait for each other: on one CPU a guest's script costs half.
# A case that is after what happens on several CPUs at a time says all_cpus=1.
case_main()
{
	if [ $# -gt 0 ]; then
		[ -n "${all_cpus:-}" ] || taskset -pc 0 $$ >/dev/null
		"$@"
	else
		work_folder
		host
	fi
	exit $failed
}
