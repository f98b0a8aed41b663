#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Can the driver be built for the kernel whose build tree is KDIR? Says why not
# in one sentence, instead of the errors a compiler would find. This is the one
# place that declares the range; what differs within it only probe.sh and
# compat.h know.
set -u

oldest=6.1
newest=7.3	# the newest it was built for
# Within the range, but no headers of these were at hand
untried_from=6.3
untried_to=6.10
wanted="BLOCK VIRTIO IO_URING SG_POOL"

usage="usage: kernel-range.sh [--note] KDIR | --range
--note says, of a kernel that has virtio_blk built in, which module is for it.
UNTRIED=1 in the environment lets kernels newer than $newest pass, and those from
$untried_from to $untried_to."

# 6.12.117+deb12-amd64 as 6012, which compares
number()
{
	echo "$1" | sed -n 's/^\([0-9]\{1,\}\)\.\([0-9]\{1,\}\).*/\1 \2/p' | awk '{ print $1 * 1000 + $2 }'
}

no()
{
	echo "virtblk-uring can't be built for $*." >&2
	exit 1
}

# The headers of the kernel's source: where it isn't in the folder of the build,
# that one's Makefile includes its.
headers()
{
	[ -e "$kdir/include/linux/blk-mq.h" ] && echo "$kdir/include" && return
	sed -n 's,^include \(/.*\)/Makefile$,\1/include,p' "$kdir/Makefile" 2>/dev/null | head -n 1
}

note=
[ "${1:-}" != --note ] || { note=1; shift; }
case ${1:-} in
--range) echo "$oldest $newest"; exit ;;
-h|--help) echo "$usage"; exit ;;
''|-*) echo "$usage" >&2; exit 2 ;;
esac
kdir=$1
conf=$kdir/include/config/auto.conf

release=$(cat "$kdir/include/config/kernel.release" 2>/dev/null)
version=$(number "$release")
if [ ! -e "$conf" ] || [ -z "$version" ]; then
	no "the kernel of $kdir: no prepared headers are there; install the package linux-headers-RELEASE, or run make modules_prepare in a kernel tree"
fi
[ "$version" -ge "$(number $oldest)" ] ||
	no "Linux $release: it needs Linux $oldest to $newest"
if [ "$version" -gt "$(number $newest)" ] && [ -z "${UNTRIED:-}" ]; then
	no "Linux $release: it knows Linux $oldest to $newest; UNTRIED=1 tries all the same"
fi
if [ "$version" -ge "$(number $untried_from)" ] && [ "$version" -le "$(number $untried_to)" ] && [ -z "${UNTRIED:-}" ]; then
	no "Linux $release: Linux $untried_from to $untried_to were not tried; UNTRIED=1 tries all the same"
fi
if sh "$(dirname "$0")/probe.sh" "$(headers)" 2>/dev/null | grep -q HAVE_CMD_DONE_NO_FLAGS; then
	no "Linux $release: its io_uring completes commands without the caller's flags; a later kernel of its series has that mended"
fi
for option in $wanted; do
	grep -q "^CONFIG_$option=[ym]" "$conf" ||
		no "Linux $release: that kernel is configured without CONFIG_$option"
done
# Not from Kbuild, which takes any word for a refusal
if [ -n "$note" ] && grep -q '^CONFIG_VIRTIO_BLK=y' "$conf"; then
	echo "Linux $release has virtio_blk built in: virtio_blk.ko can't be loaded there, virtblk_uring.ko is for it, see virtblk-move(8)." >&2
fi
