#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Where dracut makes the initramfs: with the packaged example it has this driver and
# not the in-tree one, the parameters and the udev rule. No guest.
#~ timeout 600
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

# What the initramfs made with the configuration in folder $1 has of the driver. Seen
# from a view of the machine in which the driver is installed.
has()
{
	# shellcheck disable=SC2016 # the inner shell's
	unshare -m sh -c '
		mount --bind "$1/modprobe.d" /etc/modprobe.d && mount --bind "$1/rules.d" /lib/udev/rules.d &&
		exec dracut --force --no-hostonly --modules base --confdir "$2" --conf /dev/null --tmpdir "$1" \
			--kver "$3" --kmoddir "$1/lib/modules/$3" "$1/initramfs"' has "$work" "$1" "$rel" >"$work/log" 2>&1 ||
		{ tail -n 3 "$work/log"; return; }
	lsinitrd "$work/initramfs" | grep -oE '[^ ]*(virtio_blk\.ko.*|virtio-blk-uring\.(conf|rules))$' | sed 's,^usr/,,; s,^.*modules/[^/]*/,,' | sort
}

host()
{
	local dir rel part
	need_tool dracut dracut-core
	unshare -m true 2>/dev/null || { skip all "only root can show dracut a view of the machine of its own"; exit 77; }
	rel=$(kernel_release "$top/build" virtio_blk.ko)
	[ -e "/lib/modules/$rel/modules.order" ] || { skip all "the modules of Linux ${KERNEL:-6.12} are not installed here"; exit 77; }

	# As make install and depmod leave it; of the kernel's own modules only these.
	dir=$work/lib/modules/$rel
	mkdir -p "$dir/updates" "$dir/kernel/drivers" "$work/none" "$work/example"
	for part in block virtio; do ln -s "/lib/modules/$rel/kernel/drivers/$part" "$dir/kernel/drivers/"; done
	cp "/lib/modules/$rel"/modules.{order,builtin,builtin.modinfo} "$dir/"
	cp "$top/build/$rel/virtio_blk.ko" "$dir/updates/"
	depmod -b "$work" "$rel"
	cp -a /etc/modprobe.d "$work/" && cp "$top/packaging/virtio-blk-uring.conf" "$work/modprobe.d/"
	cp -a /lib/udev/rules.d "$work/" && cp "$top/packaging/60-virtio-blk-uring.rules" "$work/rules.d/"
	cp "$top/packaging/dracut-virtio-blk-uring.conf" "$work/example/"

	check nothing-without-it "$(has "$work/none")" ""
	check driver-parameters-rule "$(has "$work/example")" "etc/modprobe.d/virtio-blk-uring.conf
lib/udev/rules.d/60-virtio-blk-uring.rules
updates/virtio_blk.ko"
	# dracut strips it
	lsinitrd "$work/initramfs" -f "usr/lib/modules/$rel/updates/virtio_blk.ko" >"$work/virtio_blk.ko"
	check driver-is-this-one "$(modinfo -F srcversion "$work/virtio_blk.ko") $(modinfo -F version "$work/virtio_blk.ko")" \
		"$(modinfo -F srcversion "$top/build/$rel/virtio_blk.ko") $(cat "$top/VERSION")"
}

case_main "$@"
