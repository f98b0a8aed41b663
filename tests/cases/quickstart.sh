#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/quickstart.md, section 1, word by word: the disk as QEMU is given it,
# and as libvirt is.
#~ timeout 600
set -u
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

page=$top/Documentation/quickstart.md

seen()	# PREFIX: what section 3 has the reader look at
{
	check "$1-serial" "$(cat /sys/block/vda/serial)" data
	check "$1-discards" "$(($(cat /sys/block/vda/queue/discard_max_bytes) > 0))" 1
	check "$1-node" "$(ls /dev/vdac0)" /dev/vdac0
	check "$1-queues" "$(dmesg | grep -c '[1-9]/0/1 default/read/poll queues')" 1
	works "$1-compare" "${tool:-$top/build/t/io_uring-vblk}" --compare -r 1 --repeats 1 /dev/vda
}

by_qemu()
{
	local words
	words=$(sed -n '/QEMU, a data disk/,/^libvirt/s/^    //p' "$page" | tr -d '\\\n' | sed "s|file=data.img|file=$work/data.img|")
	[ -n "$words" ] || fail qemu-words "nothing" "options for QEMU in the page"
	guest --params poll_queues=1 --qemu "$words" -- seen qemu
}

# ---- libvirt ----

# A daemon of the user's own, so that nothing of the machine's is touched; root's would
# be the machine's.
user_make()
{
	user=(env "HOME=$lv" "XDG_RUNTIME_DIR=$lv" LIBVIRT_DEFAULT_URI=qemu:///session)
	[ "$(id -u)" != 0 ] || user+=(setpriv --reuid=65534 --regid=65534 --clear-groups)
}

# In a shell of its own, as it is the runner's: kernel, initramfs and driver
# shellcheck disable=SC2034,SC2154 # kernel.sh's variables
runners_parts()
(
	here=$vm build=$top/build modules=''
	die() { echo "$*" >&2; exit 1; }
	# shellcheck source=../vm/kernel.sh
	. "$vm/kernel.sh"
	kernel_pick "${KERNEL:-6.12}"
	cp "$vmlinux" "$lv/vmlinux" && cp "$initramfs" "$work/runners" && cp "$kdir/virtio_blk.ko" "$work/ours.ko"
)

# What the guest runs, and the libraries of it
guest_parts()
{
	local root=$work/root f
	local -a programs=("$top/build/t/io_uring-vblk")
	runners_parts || return
	for f in bash cat ls dmesg dirname realpath basename cut tr sed grep; do programs+=("$(command -v "$f")"); done
	mkdir -p "$root/vm" "$root/cases"
	cp "$work/ours.ko" "${programs[0]}" "$root/vm"
	cp "$case_file" "$lib/lib.sh" "$root/cases"
	{ printf '%s\n' /bin/bash "${programs[@]:1}"; ldd "${programs[@]}" | grep -o '/[^ :]* '; } | sort -u | xargs cp -L --parents -t "$root"
	cat >"$root/init" <<-'END'
		#!/bin/busybox sh
		/bin/busybox mount -t proc proc /proc
		/bin/busybox mount -t sysfs sys /sys
		/bin/busybox mount -t devtmpfs dev /dev
		for m in $(/bin/busybox cat /vm/modules/list); do /bin/busybox insmod /vm/modules/$m.ko; done
		/bin/busybox insmod /vm/ours.ko poll_queues=1
		exec </dev/null >/dev/ttyS0 2>&1
		tool=/vm/io_uring-vblk /bin/bash /cases/quickstart.sh seen libvirt
		echo "quickstart: end"
		/bin/busybox poweroff -f
	END
	chmod +x "$root/init"
	cat "$work/runners" <(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$lv/initrd"
}

domain()
{
	cat <<-END
		<domain type='qemu'><name>vblk</name><memory unit='MiB'>768</memory><vcpu>2</vcpu>
		<os><type arch='x86_64' machine='q35'>hvm</type>
		<kernel>$lv/vmlinux</kernel><initrd>$lv/initrd</initrd><cmdline>console=ttyS0 panic=-1 quiet</cmdline></os>
		<features><acpi/></features><on_crash>destroy</on_crash>
		<devices>
	END
	sed -n '/^<disk /,/^<\/disk>/p' "$page" | sed "s|/var/lib/libvirt/images/data.img|$lv/data.img|"
	echo "<serial type='file'><source path='$lv/serial'/></serial></devices></domain>"
}

by_libvirt()
{
	local daemon
	local -a user
	lv=$work/lv
	mkdir "$lv" && chmod 755 "$work" || return
	user_make
	truncate -s 64M "$lv/data.img"
	guest_parts || { fail libvirt-parts "no guest" "kernel and initramfs"; return; }
	domain >"$lv/domain.xml"
	[ "$(id -u)" != 0 ] || chown -R 65534:65534 "$lv"
	works libvirt-domain-is-valid virt-xml-validate "$lv/domain.xml" domain
	"${user[@]}" timeout 300 libvirtd >"$work/libvirtd.log" 2>&1 & daemon=$!
	await 60 test -S "$lv/libvirt/libvirt-sock"
	works libvirt-starts-it "${user[@]}" timeout 120 virsh create "$lv/domain.xml"
	await 180 grep -q '^quickstart: end' "$lv/serial" || fail libvirt-end "$(tail -n 3 "$lv/serial" 2>&1)" "an end of the guest"
	tr -d '\r' <"$lv/serial" | grep -E '^(PASS|FAIL|SKIP) '
	! grep -q '^FAIL ' "$lv/serial" || failed=1
	"${user[@]}" timeout 60 virsh destroy vblk >/dev/null 2>&1
	kill "$daemon"
	wait "$daemon"
}

host()
{
	truncate -s 64M "$work/data.img"
	by_qemu
	need_tool libvirtd libvirt-daemon
	need_tool virsh libvirt-clients
	"$vm/need" libvirt-daemon-driver-qemu libxml2-utils >/dev/null 2>&1 || { skip libvirt "there is no libvirt-daemon-driver-qemu"; exit 77; }
	by_libvirt
}

case_main "$@"
