#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make sign, and what a kernel that wants signatures says to modules without one
# and to those whose key it doesn't know. (Loads only modules; no disk.)
#~ also 6.1
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

says() { insmod "$1" 2>&1; dmesg | tail -n 3; }

inside()
{
	works unsigned-loads-without-enforcement insmod "$VM_SCRATCH/unsigned.ko"
	rmmod virtio_blk
	works signed-loads-without-enforcement insmod "$VM_SCRATCH/signed.ko"
	rmmod virtio_blk
	echo 1 >/sys/module/module/parameters/sig_enforce
	says "$VM_SCRATCH/unsigned.ko" >/run/unsigned
	says "$VM_SCRATCH/signed.ko" >/run/signed
	works U11-unsigned-refused grep -q 'Key was rejected by service' /run/unsigned
	works U11-unsigned-log grep -q 'Loading of unsigned module is rejected' /run/unsigned
	works unknown-key-refused grep -q 'Key was rejected by service' /run/signed
	works unknown-key-log grep -q 'Loading of module with unavailable key is rejected' /run/signed
	refused nothing-loaded test -e /sys/module/virtio_blk
}

# The one certificate in a kernel's image, as "OFFSET LENGTH"
built_in_certificate()
{
	python3 - "$1" <<-'END'
		import re, sys
		found = [(m.start(), int.from_bytes(m.group(1), "big") + 4) for m in
			 re.finditer(rb"\x30\x82(..)\x30\x82..\xa0\x03\x02\x01\x02", open(sys.argv[1], "rb").read(), re.S)]
		if len(found) == 1: print(*found[0])
	END
}

# A key whose certificate is $1 bytes long. A signature's length varies: try again.
key_of_length()
{
	local pad=1 try got
	for ((try = 0; try < 40; try++)); do
		openssl req -new -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -outform DER \
			-subj "/CN=enrolled/" -addext "keyUsage=digitalSignature" -addext "nsComment=$(printf 'x%.0s' $(seq $pad))" \
			-keyout "$work/enrolled.key" -out "$work/enrolled.der" 2>/dev/null
		got=$(stat -c %s "$work/enrolled.der")
		[ "$got" != "$1" ] || return 0
		pad=$((pad + $1 - got))
		[ $pad -gt 0 ] || pad=1
	done
	return 1
}

# Firmware that enrols a key can't be had here: a copy of the kernel's image gets
# our certificate in the place of its own. It runs from an initramfs alone, as the
# runner's guests load unsigned modules and leave out the loading of certificates.
enrolled()
{
	local image=$top/build/vm/$1/vmlinux at length d=$work/initramfs said
	read -r at length < <(built_in_certificate "$image")
	if [ -z "${length:-}" ] || ! key_of_length "$length"; then
		skip enrolled "the image of $1 has no single certificate to put ours in the place of"
		return
	fi
	cp "$image" "$work/vmlinux"
	dd if="$work/enrolled.der" of="$work/vmlinux" bs=1 seek="$at" conv=notrunc status=none
	mkdir -p "$work/build/$1" "$d"
	cp "$work/share/unsigned.ko" "$work/build/$1/virtio_blk.ko"
	works enrolled-sign mk KEY="$work/enrolled.key" CERT="$work/enrolled.der"
	cp "$work/build/$1/virtio_blk.ko" "$d/enrolled.ko"
	cp "$work/share/unsigned.ko" "$work/share/signed.ko" /bin/busybox "$d"
	cat >"$d/init" <<-'END'
		#!/busybox sh
		PATH=/nowhere
		mkdir /proc && mount -t proc proc /proc && mount -t devtmpfs dev /dev
		for m in unsigned signed enrolled; do
			insmod /$m.ko && echo "said: $m loads" || echo "said: $m is refused"
		done
		echo o >/proc/sysrq-trigger
		sleep 60
	END
	chmod +x "$d/init"
	mkdir "$d/dev"
	(cd "$d" && find . | cpio -o -H newc --quiet -R 0:0) >"$work/initramfs.cpio"
	timeout -k 5 120 qemu-system-x86_64 -accel tcg -cpu max,la57=off -machine q35 -m 512M -nodefaults -display none -no-reboot \
		-kernel "$work/vmlinux" -initrd "$work/initramfs.cpio" -serial "file:$work/console" \
		-append "console=ttyS0 loglevel=7 panic=-1 no_timer_check module.sig_enforce=1"
	said=$(sed -n 's/\r$//; s/.*said: //p' "$work/console" | paste -sd,)
	check U11-enrolled-loads-alone "$said" "unsigned is refused,signed is refused,enrolled loads"
	works enrolled-log grep -q 'Loading of unsigned module is rejected' "$work/console"
}

signer() { modinfo -F signer "$1"; }

host()
{
	local rel built
	rel=$(kernel_release "$top/build" virtio_blk.ko)
	built=$top/build/$rel/virtio_blk.ko
	need_tool openssl openssl
	mkdir -p "$work/build/$rel" "$work/share"
	cp "$built" "$work/build/$rel/virtio_blk.ko"
	cp "$built" "$work/share/unsigned.ko"
	mk() { make -C "$top" -s --no-print-directory O="$work/build" sign "$@" 2>&1; }

	works sign-makes-a-key mk
	check key-is-private "$(stat -c %a "$work/build/sign")" 700
	check signer "$(signer "$work/build/$rel/virtio_blk.ko")" "virtblk-uring module signing key"
	cp "$work/build/$rel/virtio_blk.ko" "$work/share/signed.ko"
	works U11-sign-again-says-what-to-enrol grep -q "mokutil --import $work/build/sign/virtblk-uring.der" <<<"$(mk)"
	check one-signature-only "$(stat -c %s "$work/build/$rel/virtio_blk.ko")" "$(stat -c %s "$work/share/signed.ko")"
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj "/CN=own key/" -outform DER \
		-keyout "$work/own.key" -out "$work/own.der" 2>/dev/null
	works own-key mk KEY="$work/own.key" CERT="$work/own.der"
	check own-signer "$(signer "$work/build/$rel/virtio_blk.ko")" "own key"
	works half-a-key-refused grep -q 'KEY and CERT go together' <<<"$(mk KEY="$work/own.key")"
	rm -r "${work:?}/build/$rel"
	works nothing-built-says-so grep -q 'nothing is built yet' <<<"$(mk)"

	DRIVER=none guest -- inside
	# 6.1's virtio is a module, which only Debian's key signs.
	[[ ${KERNEL:-6.12} == 6.1 ]] || enrolled "$rel"
}

case_main "$@"
