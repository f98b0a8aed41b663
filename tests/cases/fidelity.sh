#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a user sees of a matrix of devices: as with the in-tree driver, or better
# with a reason. The short form of make fidelity.
#~ also 6.1
#~ timeout 600
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local out rc
	if [ "${KERNEL:-6.12}" = debug ] || [ "${KERNEL:-}" = kcsan ]; then
		skip all "the debug kernels have no in-tree driver to compare with"
		return
	fi
	out=$("$top/tests/fidelity/run" --short --kernel "${KERNEL:-6.12}" --out "$work/out")
	rc=$?
	echo "$out"
	if [ $rc = 0 ]; then
		pass "$(grep -c . "$work/out/ours-matrix")-values"
	else
		fail values "$(grep -A2 '^no reason:' <<<"$out" | head -n 3; tail -n 1 <<<"$out")" "equal, or different with a reason"
	fi
}

case_main "$@"
