#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The one client of all back ends on two of them whose servers are not in QEMU:
# vhost-user-blk on the host, VDUSE in the guest. "make backends" runs all.
#~ timeout 400
#~ soak
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Tables, JSON and drawing, of the cheapest row
matrix()
{
	works matrix "$top/tests/backends/matrix" --kernel "${KERNEL:-6.12}" --only null-blk --no-2022 --times 1 --ios 100 --out "$work/matrix"
	works matrix-json-has-the-counts python3 - "$work/matrix/backends.json" <<-'EOF'
		import json, sys
		row, = json.load(open(sys.argv[1]))["backends"]
		assert row["name"] == "null-blk" and row["figures"], row
		for figure in row["figures"]:
		    counts = figure["per_io"]
		    assert 0 < counts["syscalls_client"] < 10 and counts["us"] > 0, counts
		    assert {"kicks", "irqs", "switches_client", "switches_server", "syscalls_server"} <= set(counts)
	EOF
	works matrix-draws python3 -c 'import sys, xml.dom.minidom as x; assert x.parse(sys.argv[1]).getElementsByTagName("rect")' \
		"$work/matrix/backends.svg"
}

host()
{
	local name phases rc
	make -s -C "$top" backends-tools uring-tests bench-tools || exit
	matrix
	while read -r name phases; do
		[ -n "$name" ] || continue
		# shellcheck disable=SC2086 # a list of words
		"$top/tests/backends/one" --kernel "${KERNEL:-6.12}" --driver "${DRIVER:-ours}" --timeout 180 "$name" $phases </dev/null |
			sed -E "s/^(PASS|FAIL|SKIP) /\1 $case_name-/"
		rc=${PIPESTATUS[0]}
		[ "$rc" = 0 ] || [ "$rc" = 77 ] || failed=1
	done <<-EOT
		vhost-user verify remove
		vduse verify resize remove
		${SOAK:+vduse kill}
	EOT
}

case_main "$@"
