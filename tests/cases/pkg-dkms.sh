#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ soak
#~ timeout 3000
#
# The packages in a whole Debian system: installed, our module is built, in the
# initramfs, and drives the root disk after a reboot; a newer version of them takes
# the place of the old one; a kernel that comes later gets the module too, and boots
# with it, one that can't take it is passed over with the reason; removed, the in-tree
# driver is back. Minutes long, so only with SOAK set.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

ours=updates/dkms/virtio_blk.ko
stock=kernel/drivers/block/virtio_blk.ko
version=$(cat "$top/VERSION")

old_kernel=6.1.0	# how the releases of the two metapackages begin
new_kernel=6.12

# A Debian with a kernel, made once.
# shellcheck disable=SC2016 # for mmdebstrap's shell
base_system()
{
	local sources=/etc/apt/sources.list.d/debian.sources
	[ -e "$sources" ] || sources=/etc/apt/sources.list
	base=$top/build/pkg/bookworm-6.1.tar
	[ -e "$base" ] && return
	mkdir -p "$top/build/pkg"
	# mmdebstrap goes by the ending of the name. A short list of modules makes
	# initramfs in seconds; which virtio_blk is in there is decided as ever.
	mmdebstrap --quiet --variant=apt \
		--essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"; echo MODULES=list >"$1/etc/initramfs-tools/conf.d/list"; printf "%s\n" virtio_pci virtio_blk ext4 >"$1/etc/initramfs-tools/modules"' \
		--include=systemd-sysv,udev,initramfs-tools,linux-image-amd64,linux-headers-amd64,dkms,kmod \
		bookworm "$top/build/pkg/new.tar" "$sources" >"$work/log" 2>&1 || return
	mv "$top/build/pkg/new.tar" "$base"
}

# in_root COMMAND…: in the system on the disk image, with network
# shellcheck disable=SC2016 # for the inner shell
in_root()
{
	unshare -m bash -c '
		mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && mount --bind /sys "$1/sys" || exit
		cp /etc/resolv.conf "$1/etc/"
		root=$1
		shift
		DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 exec chroot "$root" "$@"' in_root "$root" "$@"
}

apt() { in_root apt-get -q -y -o APT::Sandbox::User=root "$@"; }

# Newest release of a series in there
release() { basename "$(printf '%s\n' "$root/lib/modules/$1"* | sort -V | tail -n 1)"; }

# Which virtio_blk the initramfs of kernel $1 has
initramfs_driver()
{
	in_root lsinitramfs "/boot/initrd.img-$1" | sed -n 's,.*/modules/[^/]*/\(.*/virtio_blk\.ko\).*,\1,p' | paste -sd' '
}

installed()
{
	local rel=$1
	check "$2-dkms-says-installed" "$(in_root dkms status -m virtio-blk-uring -k "$rel" | sed 's/.*: //')" installed
	# Compressed where the kernel's own are.
	check "$2-modules-there" "$(cd "$root/lib/modules/$rel/updates/dkms" && printf '%s\n' * | sed 's/\.ko.*/.ko/' | paste -sd' ')" \
		"virtblk_uring.ko virtio_blk.ko"
	check "$2-modprobe-takes-ours" "$(in_root modinfo -k "$rel" -F version virtio_blk)" "$version"
	check "$2-initramfs-has-ours-alone" "$(initramfs_driver "$rel")" "$ours"
}

# The same without packages, and back
by_make()
{
	local rel tree=$root/root/tree
	rel=$(release $old_kernel)
	mkdir -p "$tree"
	tar -c -C "$top" --exclude=./build --exclude=./.git . | tar -x -C "$tree"
	works make-dkms in_root make -s -C /root/tree dkms
	check make-dkms-installed "$(in_root dkms status -m virtio-blk-uring -k "$rel" | sed 's/.*: //')" installed
	check make-dkms-modprobe-takes-ours "$(in_root modinfo -k "$rel" -F version virtio_blk)" "$version"
	works make-dkms-remove in_root make -s -C /root/tree dkms-remove uninstall
	check make-dkms-in-tree-again "$(in_root modinfo -k "$rel" -F filename virtio_blk | sed 's/\.ko.*/.ko/')" "/lib/modules/$rel/$stock"
	rm -rf "$tree"
	check make-dkms-nothing-left "$(left_over)" ""
}

left_over()
{
	(cd "$root" && find lib/udev usr/src usr/local var/lib/dkms etc/kernel usr/sbin lib/modules \
		\( -name '*virtblk*' -o -name 'virtio-blk*' -o -path '*updates/*.ko*' \) | paste -sd' ')
}

# give_packages TREE: its build's, into the system
give_packages() { cp "$1"/build/deb/virtio-blk-uring-{dkms,utils,dev}_"$version"_*.deb "$root/root/"; }

apt_packages()
{
	apt install --no-install-recommends /root/virtio-blk-uring-dkms_"$version"_all.deb \
		/root/virtio-blk-uring-utils_"$version"_amd64.deb /root/virtio-blk-uring-dev_"$version"_all.deb
}

install_packages()
{
	give_packages "$top" || return
	works lists apt update
	works install apt_packages
	installed "$(release $old_kernel)" installed
	check tool-runs "$(in_root io_uring-vblk --version | grep -o "$version")" "$version"
	works engine-loads fio "--enghelp=$root/usr/lib/virtio-blk-uring/fio-vblk.so"
	works rule-there test -e "$root/lib/udev/rules.d/60-virtio-blk-uring.rules"
	works header-there test -e "$root/usr/include/linux/virtio_blk_uring.h"
	works compiler apt install --no-install-recommends liburing-dev gcc libc6-dev
	works example-builds in_root cc -o /tmp/read-block /usr/share/doc/virtio-blk-uring-dev/examples/read-block.c -luring
}

# The administrator's option reaches the driver that has the root disk
options()
{
	local example=/usr/share/doc/virtio-blk-uring-dkms/examples/virtio-blk-uring.conf
	sed 's/^# *\(options virtio_blk \)/\1/' "$root$example" >"$root/etc/modprobe.d/virtio-blk-uring.conf"
	works options-example grep -q '^options virtio_blk .*poll_queues=' "$root/etc/modprobe.d/virtio-blk-uring.conf"
	works options-initramfs in_root update-initramfs -u -k all
}

upgrade_packages()
{
	local tree=$work/newer old=$version
	mkdir "$tree" && tar -c -C "$top" --exclude=./build --exclude=./.git . | tar -x -C "$tree" || return
	version=$old.1
	echo "$version" >"$tree/VERSION"
	sed -i "0,/$old/s//$version/" "$tree/CHANGELOG.md"
	make -s -C "$tree" deb >"$work/log" 2>&1 || { fail newer-deb "$(tail -n 3 "$work/log")" "packages"; return; }
	give_packages "$tree" || return
	works upgrade apt_packages
	installed "$(release $old_kernel)" upgraded
	check upgraded-versions-of-dkms "$(in_root dkms status -m virtio-blk-uring | sed 's/[^/]*\/\([^,]*\),.*/\1/' | sort -u)" "$version"
	check upgraded-sources "$(cd "$root/usr/src" && echo virtio-blk-uring-*)" "virtio-blk-uring-$version"
	works upgraded-options-stay test -e "$root/etc/modprobe.d/virtio-blk-uring.conf"
}

# What the booted system says of itself, on the second serial port
boot_service()
{
	cat >"$root/etc/systemd/system/said.service" <<-'END'
		[Unit]
		DefaultDependencies=no
		After=sysinit.target systemd-udev-settle.service
		Wants=systemd-udev-settle.service
		[Service]
		Type=oneshot
		ExecStart=/root/said
		ExecStopPost=/bin/systemctl poweroff --force --force
		[Install]
		WantedBy=basic.target
	END
	cat >"$root/root/said" <<-'END'
		#!/bin/bash
		exec >/dev/ttyS1 2>&1
		stty -F /dev/ttyS1 raw
		echo "root $(findmnt -no SOURCE /)"
		echo "version $(cat /sys/module/virtio_blk/version)"
		echo "polls $(cat /sys/module/virtio_blk/parameters/poll_queues)"
		echo "node $(stat -c '%U:%G %a' /dev/vdac0)"
		echo "link $(readlink -f /dev/disk/by-id/virtio-the-root-c0)"
		io_uring-vblk -b4096 -d1 -s1 -c1 -p0 -u1 --ios 8 /dev/vdac0 >/dev/null && echo "passthrough works"
		touch /root/written && sync && echo "writes work"
	END
	chmod +x "$root/root/said"
	in_root systemctl -q enable said.service
	in_root systemctl -q set-default basic.target
}

# boot NAME KERNEL DRIVER-VERSION: the image, with the system's own kernel and initramfs
boot()
{
	local name=$1 rel wanted=$3
	rel=$(release "$2")
	boot_service
	: >"$work/disk" && rm -f "$work/said"
	mke2fs -q -t ext4 -d "$root" "$work/disk" 4G || { fail "$name-image" "no image" "an image"; return; }
	timeout -k 5 900 qemu-system-x86_64 -accel tcg,thread=multi -cpu max,la57=off -machine q35 -m 1G -smp 1 -no-reboot \
		-nodefaults -display none -kernel "$root/boot/vmlinuz-$rel" -initrd "$root/boot/initrd.img-$rel" \
		-append "root=/dev/vda rw console=ttyS0 no_timer_check tsc=reliable systemd.show_status=0 panic=-1" \
		-serial "file:$work/console" -serial "file:$work/said" \
		-drive "file=$work/disk,format=raw,if=none,id=root" -device virtio-blk-pci,drive=root,serial=the-root
	tail -n 5 "$work/console" >&2
	check "U08-$name-root-on-virtio-blk" "$(sed -n 's/^root //p' "$work/said")" /dev/vda
	check "U08-$name-driver" "$(sed -n 's/^version //p' "$work/said")" "$wanted"
	works "$name-disk-writes" grep -q '^writes work' "$work/said"
	[ -n "$wanted" ] || return
	check "$name-options" "$(sed -n 's/^polls //p' "$work/said")" 1
	check "$name-node-mode" "$(sed -n 's/^node //p' "$work/said")" "root:disk 660"
	check "$name-node-link" "$(sed -n 's/^link //p' "$work/said")" /dev/vdac0
	works "$name-passthrough" grep -q '^passthrough works' "$work/said"
}

later_kernel()
{
	works later-kernel apt install --no-install-recommends linux-image-6.12-amd64 linux-headers-6.12-amd64
	installed "$(release $new_kernel)" later
}

# Headers of a kernel without io_uring: the installed ones with another line.
refused_kernel()
{
	local real rel=6.12.0-without out
	real=$(in_root readlink -f "/lib/modules/$(release $new_kernel)/build")
	mkdir -p "$root/lib/modules/$rel"
	cp -r "$root$real" "$root/usr/src/without"
	ln -s /usr/src/without "$root/lib/modules/$rel/build"
	sed -i '/^CONFIG_IO_URING=/d' "$root/usr/src/without/include/config/auto.conf"
	echo $rel >"$root/usr/src/without/include/config/kernel.release"
	out=$(in_root dkms build -m virtio-blk-uring -v "$version" -k $rel 2>&1)
	check without-uring-passed-over $? 77
	works without-uring-in-words grep -q "Linux $rel: that kernel is configured without CONFIG_IO_URING" <<<"$out"
	works without-uring-installs-all-the-same in_root dpkg-reconfigure virtio-blk-uring-dkms
	rm -rf "${root:?}/usr/src/without" "$root/lib/modules/$rel"
}

removed()
{
	local rel
	works remove apt purge virtio-blk-uring-dkms
	for rel in "$(release $new_kernel)" "$(release $old_kernel)"; do
		check "removed-initramfs-${rel%%-*}" "$(initramfs_driver "$rel")" "$stock"
		check "removed-modprobe-${rel%%-*}" "$(in_root modinfo -k "$rel" -F filename virtio_blk | sed 's/\.ko.*/.ko/')" "/lib/modules/$rel/$stock"
	done
	check removed-nothing-left "$(left_over)" ""
	works removed-tool-stays in_root io_uring-vblk --version
}

host()
{
	if [ -z "${SOAK:-}" ]; then
		skip all "takes minutes: make soak ONLY=pkg-dkms"
		exit 77
	fi
	[ "$(id -u)" = 0 ] || { skip all "only root may install packages in a folder"; exit 77; }
	need_tool mmdebstrap mmdebstrap
	base_system || { skip all "no Debian could be fetched: $(tail -n 2 "$work/log")"; exit 77; }
	make -s -C "$top" deb >"$work/log" 2>&1 || { fail deb "$(tail -n 3 "$work/log")" "packages, lintian clean"; exit 1; }
	pass deb
	root=$work/root
	mkdir "$root" && tar -xf "$base" -C "$root" || exit 1
	by_make
	install_packages
	[ "$failed" = 0 ] || return
	options
	boot reboot $old_kernel "$version"
	upgrade_packages
	later_kernel
	boot later $new_kernel "$version"
	refused_kernel
	removed
	boot removed $new_kernel ""
}

case_main "$@"
