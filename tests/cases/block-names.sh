#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Names past vdz, minors, by-id links; the same on virtio-mmio. Cases V04, V26, V37.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

count=29

# vda … vdz, vdaa, vdab, vdac
name() { local n=$1; if [ "$n" -lt 26 ]; then echo "vd${letters:n:1}"; else echo "vda${letters:n-26:1}"; fi; }

many()
{
	local n wrong='' got
	for ((n = 0; n < count; n++)); do
		read -r got <"/sys/block/$(name "$n")/serial"
		[ "$got" = "disk-$n" ] || wrong+="$(name "$n"):$got "
	done
	check V04-names-in-order "$wrong" ""
	check V04-minors "$(cat /sys/block/{vda,vdb,vdz,vdaa,vdac}/dev | sed 's/.*://' | tr '\n' ' ')" "0 16 400 416 448 "
	check V04-one-major "$(cat /sys/block/vd*/dev | cut -d: -f1 | sort -u | wc -l)" 1
	works V04-last-disk-reads dd if=/dev/vdac of=/dev/null bs=4k count=1 iflag=direct status=none
	works V04-reload reload ''
	check V04-names-again "$(cat /sys/block/vdac/serial)" disk-$((count - 1))
	await 60 test -L /dev/disk/by-id/virtio-disk-27
	check V26-by-id-link "$(basename "$(readlink /dev/disk/by-id/virtio-disk-27)")" vdab
}

mmio()
{
	local dev
	for dev in vda vdb; do
		check "V37-$dev-read" "$(dd if="/dev/$dev" bs=64k iflag=direct status=none | sha256sum)" "$(sha256sum <"$VM_SCRATCH/data")"
		works "V37-$dev-write" dd if="$VM_SCRATCH/new" of="/dev/$dev" bs=12k oflag=direct conv=notrunc status=none
		check "V37-$dev-passthrough" "$("$top/build/tests/device/node-cmd" -l 65536 -o /tmp/node "/dev/${dev}c0" in &&
			cmp -n 65536 /tmp/node "$VM_SCRATCH/new" 2>&1)" "res=0 result=0"
		dev=$(basename "$(realpath "/sys/block/$dev/device")")
		works "V37-$dev-unbind" sh -c "echo $dev >/sys/bus/virtio/drivers/virtio_blk/unbind"
		works "V37-$dev-bind" sh -c "echo $dev >/sys/bus/virtio/drivers/virtio_blk/bind"
	done
	check V37-serial "$(cat /sys/block/vdb/serial)" mmio-serial
	works V37-reload reload ''
	works V37-reload-reads dd if=/dev/vda of=/dev/null bs=64k iflag=direct status=none
}

# More disks than any guest can have, by the function itself
far_names()
{
	{
		printf '#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#define DISK_NAME_LEN 32\n'
		sed -n '/^static int virtblk_disk_name/,/^}/p' "$top/drivers/block/main.c"
		cat <<-'EOT'
			int main(int argc, char **argv)
			{
				char name[DISK_NAME_LEN];

				for (int i = 1; i < argc; i++)
					puts(virtblk_disk_name("vd", atoi(argv[i]), name) ? "?" : name);
			}
		EOT
	} >"$work/names.c"
	works names-compile cc -Wall -Werror -o "$work/names" "$work/names.c"
	check names-far-beyond "$("$work/names" 0 25 26 27 51 52 701 702 18277 18278 | paste -sd ' ')" \
		"vda vdz vdaa vdab vdaz vdba vdzz vdaaa vdzzz vdaaaa"
}

host()
{
	local n disks=()
	far_names
	for ((n = 0; n < count; n++)); do disks+=(--disk "null:$((n + 1))M,queues=1,qsize=16,serial=disk-$n"); done
	guest --udev "${disks[@]}" -- many
	head -c 2M /dev/urandom >"$work/share/data"
	head -c 1200K /dev/urandom >"$work/share/new"
	for n in a b; do cp "$work/share/data" "$work/$n"; done
	guest --disk "raw:$work/a,mmio,bs=4096" --disk "raw:$work/b,mmio,serial=mmio-serial,queues=2" -- mmio
	dd if="$work/share/new" of="$work/share/data" bs=12k conv=notrunc status=none
	works V37-image-a cmp "$work/a" "$work/share/data"
	works V37-image-b cmp "$work/b" "$work/share/data"
}

case_main "$@"
