#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The one client of all back ends on two of them whose servers are not in QEMU:
# vhost-user-blk on the host, VDUSE in the guest. "make backends" runs all.
#~ timeout 400
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local name phases rc
	make -s -C "$top" backends-tools uring-tests bench-tools || exit
	while read -r name phases; do
		# shellcheck disable=SC2086 # a list of words
		"$top/tests/backends/one" --kernel "${KERNEL:-6.12}" --driver "${DRIVER:-ours}" --timeout 180 "$name" $phases </dev/null |
			sed -E "s/^(PASS|FAIL|SKIP) /\1 $case_name-/"
		rc=${PIPESTATUS[0]}
		[ "$rc" = 0 ] || [ "$rc" = 77 ] || failed=1
	done <<-EOT
		vhost-user verify remove
		vduse verify resize remove
	EOT
}

case_main "$@"
