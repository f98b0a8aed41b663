#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Where the debug kernel has been built (make debug-kernel): refusals and the
# endings of a disk on it, with a look for leaks. The whole is make check-debug.
#~ timeout 900
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	local name
	if [ ! -e "$top/build/debug/vmlinux" ]; then
		skip all "no debug kernel is built; make debug-kernel takes a quarter of an hour"
		return
	fi
	works builds-module make -s -C "$top" module KVER=debug GCOV_PROFILE=y
	export KERNEL=debug VM_RUN=$top/tests/kernels/run
	for name in uring-refuse uring-gone; do
		"$lib/$name.sh" || failed=1
	done
}

case_main "$@"
