#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ timeout 900
#
# make deb: three packages with what belongs in each, of the version in VERSION,
# lintian clean.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

version=$(cat "$top/VERSION")
deb() { printf '%s\n' "$top/build/deb/virtio-blk-uring-$1_${version}"_*.deb; }
files() { dpkg-deb -c "$(deb "$1")" | awk '$1 !~ /^d/ { print substr($6, 2) }' | grep -v '^/usr/share/doc/.*/\(changelog\|copyright\)' | sort | paste -sd' '; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
list() { printf '%s\n' "$@" | sort | paste -sd' '; }

sources()
{
	local f src=/usr/src/virtio-blk-uring-$version
	for f in "$top"/drivers/block/*.[ch] "$top"/drivers/block/{Kbuild,probe.sh,kernel-range.sh}; do
		echo "$src/drivers/block/${f##*/}"
	done
	printf '%s\n' "$src"/{VERSION,dkms.conf,include/uapi/linux/virtio_blk_uring.h}
}

# All but the administrator's, which go with what they are about, and vhost_blk's,
# which is no package
man_pages()
{
	local f
	for f in "$top"/man/*.[1-7]; do
		[ "${f##*/}" = vhost_blk.4 ] || echo "/usr/share/man/man${f##*.}/${f##*/}.gz"
	done
}

host()
{
	local p doc=/usr/share/doc
	"$vm/need" +deb >"$work/log" 2>&1 || { skip all "$(tail -n 1 "$work/log")"; exit 77; }
	make -s -C "$top" deb >"$work/log" 2>&1
	check builds-lintian-clean "$? $(grep -cE '^[EW]: ' "$work/log")" "0 0" || tail -n 20 "$work/log" >&2
	for p in dkms utils dev; do check "$p-version" "$(field $p Version)" "$version"; done

	# shellcheck disable=SC2046 # lists of words
	check dkms-files "$(files dkms)" "$(list $(sources) /lib/udev/rules.d/60-virtio-blk-uring.rules /usr/sbin/virtblk-move \
		/usr/share/man/man8/virtblk-move.8.gz /etc/kernel/header_postinst.d/virtio-blk-uring-dkms \
		$doc/virtio-blk-uring-dkms/{README.Debian,examples/61-virtblk-move.rules,examples/dracut-virtio-blk-uring.conf,examples/virtio-blk-uring.conf})"
	# shellcheck disable=SC2046
	check utils-files "$(files utils)" "$(list /usr/bin/io_uring-vblk /usr/lib/virtio-blk-uring/fio-vblk.so \
		$(man_pages))"
	check dev-headers "$(files dev | tr ' ' '\n' | grep -v /examples/ | paste -sd' ')" \
		"/usr/include/linux/virtio_blk_uring.h /usr/include/virtblk_uring_helpers.h"
	works dkms-needs-dkms grep -q '\bdkms\b' <<<"$(field dkms Depends)"
	check dev-needs-nothing "$(field dev Depends)" ""
	check move-version "$(dpkg-deb --fsys-tarfile "$(deb dkms)" | tar -xO ./usr/sbin/virtblk-move | bash -s -- --version)" "virtblk-move $version"
	check changelog "$(dpkg-deb --fsys-tarfile "$(deb dev)" | tar -xO ./usr/share/doc/virtio-blk-uring-dev/changelog.gz | zcat | head -n 1)" \
		"virtio-blk-uring ($version) unstable; urgency=medium"
}

case_main "$@"
