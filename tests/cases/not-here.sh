#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Known faults of others that no guest here can show, and tests of others that are not
# here, so that they are counted.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

host()
{
	skip V34-kernel-without-zones "no kernel here has CONFIG_BLK_DEV_ZONED=n; device-zones has the rest"
	skip U05-selinux "Debian's kernels have SELinux, but no policy of it was tried"
	skip fsstress-fsx "no Debian package; stress-ng stands in under SOAK, and block-fs runs \$FSSTRESS and \$FSX"
	skip blktests "no Debian package; stress-ng stands in under SOAK, and block-fs runs \$BLKTESTS"
}

case_main "$@"
