#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The runner itself: every test believes its exit status.
# shellcheck disable=SC2317 # the functions are called by name
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# ends NAME STATUS RUNNER'S WORDS…
ends()
{
	local name=$1 wanted=$2 rc
	shift 2
	"$vm/run" --kernel "${KERNEL:-6.12}" --share "$work/share" "$@" >"$work/said" 2>&1
	rc=$?
	if [ $rc = "$wanted" ]; then pass "$name"; else fail "$name" "status $rc: $(tail -n 3 "$work/said")" "$wanted"; fi
}

says() { if grep -qF "$2" "$work/said"; then pass "$1"; else fail "$1" "$(tail -n 3 "$work/said")" "$2"; fi; }

# As the guest's command: what it may write, and where
inside()
{
	touch /usr/written-by-a-guest 2>/dev/null && exit 1
	touch "$top/written-by-a-guest" 2>/dev/null && exit 2
	echo from-the-guest >"$VM_SCRATCH/left" || exit 3
	echo "the words: $* $(id -u)"
	exit 7
}

warns() { echo 'WARNING: made by a test' >/dev/kmsg; }

host()
{
	local ms
	ends status-is-the-commands 7 --driver none -- /bin/bash "$case_file" inside a 'b  c'
	says words-and-root 'the words: a b  c 0'
	check scratch-comes-back "$(cat "$work/share/left" 2>&1)" from-the-guest
	ends warning-is-120 120 --driver none -- /bin/bash "$case_file" warns
	says warning-is-shown 'WARNING: made by a test'
	ends warning-that-is-awaited 0 --driver none --splats-ok 'made by a test' -- /bin/bash "$case_file" warns
	ends hung-guest-is-124 124 --driver none --timeout 20 -- sleep 999
	ends no-such-driver-is-125 125 --driver "$work/no.ko" -- true
	ends no-such-kernel-is-125 125 --kernel 5.3 -- true
	ends unknown-option-is-125 125 --no-such-option -- true
	"$vm/need" --check no-such-package >"$work/said" 2>&1
	check package-is-missing "$?" 125
	says package-is-named no-such-package
	# 6 s are the goal on a quiet machine, which this needn't be: told, not judged
	ms=$(date +%s%3N)
	ends driver-is-loaded 0 --disk null:64M -- test -e /dev/vdac0
	ms=$(($(date +%s%3N) - ms))
	echo "boot, command and back: $((ms / 1000)).$((ms % 1000 / 100)) s"
}

case_main "$@"
