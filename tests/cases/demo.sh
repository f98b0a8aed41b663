#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make demo as a newcomer sees it: all of it ran. How long it took is in its last line.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local rc
	"$top/tests/demo/run" --kernel "${KERNEL:-6.12}" >"$work/demo" 2>&1
	rc=$?
	check status "$rc" 0
	[ $rc = 0 ] || tail -n 20 "$work/demo"
	check last-line "$(tail -n 1 "$work/demo" | sed 's/ in .*//')" "DEMO OK"
	check rows-of-the-table "$(grep -cE '^QD(1|8|32), batches of' "$work/demo")" 9
	check what-did-not-run "$(grep -ci 'not run' "$work/demo")" 0
	tail -n 1 "$work/demo"
}

case_main "$@"
