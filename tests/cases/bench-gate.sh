#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every goal of make bench-gate: what an I/O costs in instructions and kicks, as
# a part of what it costs on the in-tree driver's block path. Figures in
# build/bench/gate.txt.
#~ timeout 1200
#~ alone
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local out=$top/build/bench/gate.json
	case ${KERNEL:-6.12} in
	6.*) ;;
	*) skip all "the goals are for the distribution's kernel, not for $KERNEL"; return ;;
	esac
	rm -f "$out"
	make -s -C "$top" bench-tools >"$work/log" 2>&1 &&
		"$top/tests/bench/bench" --gate --kernel "${KERNEL:-6.12}" >>"$work/log" 2>&1
	if [ ! -e "$out" ]; then
		fail runs "$(tail -n 3 "$work/log")" "figures"
		return
	fi
	python3 - "$out" <<-'PYTHON' || failed=1
		import json, re, sys
		found = json.load(open(sys.argv[1]))
		bad = 0
		for c in found['checks']:
		    name = re.sub('[^A-Za-z0-9]+', '-', f"{c['row']} {c['what']}").strip('-')
		    bad += not c['ok']
		    print(f"PASS bench-gate-{name} ({c['value']:.3f} of {c['must']:.2f})" if c['ok'] else
		          f"FAIL bench-gate-{name}: got {c['value']:.3f}, wanted at most {c['must']:.2f}")
		for row in found['rows']:
		    if 'error' in row:
		        bad += 1
		        print(f"FAIL bench-gate-{row['name']}: got {row['error']}, wanted a count")
		sys.exit(bad > 0)
	PYTHON
}

case_main "$@"
