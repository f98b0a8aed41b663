#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#~ also 6.1
#
# make sign, and what a kernel that wants signatures says to modules without one
# and to those whose key it doesn't know. (Loads only modules; no disk.)
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
	works unsigned-refused grep -q 'Key was rejected by service' /run/unsigned
	works unsigned-log grep -q 'Loading of unsigned module is rejected' /run/unsigned
	works unknown-key-refused grep -q 'Key was rejected by service' /run/signed
	works unknown-key-log grep -q 'Loading of module with unavailable key is rejected' /run/signed
	refused nothing-loaded test -e /sys/module/virtio_blk
}

signer() { modinfo -F signer "$1"; }

host()
{
	local rel built
	built=$(printf '%s\n' "$top/build/${KERNEL:-6.12}"*/virtio_blk.ko | sort -V | tail -n 1)
	rel=$(basename "$(dirname "$built")")
	need_tool openssl openssl
	mkdir -p "$work/build/$rel" "$work/share"
	cp "$built" "$work/build/$rel/virtio_blk.ko"
	cp "$built" "$work/share/unsigned.ko"
	mk() { make -C "$top" -s --no-print-directory O="$work/build" sign "$@" 2>&1; }

	works sign-makes-a-key mk
	check key-is-private "$(stat -c %a "$work/build/sign")" 700
	check signer "$(signer "$work/build/$rel/virtio_blk.ko")" "virtblk-uring module signing key"
	cp "$work/build/$rel/virtio_blk.ko" "$work/share/signed.ko"
	works sign-again-says-what-to-enrol grep -q "mokutil --import $work/build/sign/virtblk-uring.der" <<<"$(mk)"
	check one-signature-only "$(stat -c %s "$work/build/$rel/virtio_blk.ko")" "$(stat -c %s "$work/share/signed.ko")"
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj "/CN=own key/" -outform DER \
		-keyout "$work/own.key" -out "$work/own.der" 2>/dev/null
	works own-key mk KEY="$work/own.key" CERT="$work/own.der"
	check own-signer "$(signer "$work/build/$rel/virtio_blk.ko")" "own key"
	works half-a-key-refused grep -q 'KEY and CERT go together' <<<"$(mk KEY="$work/own.key")"
	rm -r "${work:?}/build/$rel"
	works nothing-built-says-so grep -q 'nothing is built yet' <<<"$(mk)"

	DRIVER=none guest -- inside
}

case_main "$@"
