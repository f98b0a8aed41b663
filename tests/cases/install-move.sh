#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# virtblk-move's refusals: a disk that somebody uses, whoever it is, and what is no
# disk to move. Each in words, with status 1, and no disk has gone for a moment.
#~ also 6.1
#~ timeout 600
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"

drivers=/sys/bus/virtio/drivers
move() { bash "$top/packaging/virtblk-move" "$@"; }

# A disk that was taken from its driver and given back has another diskseq.
disks_now() { grep . /sys/block/v*/diskseq; }

# NAME WORDS [OPTION…] DISK: it says these words and nothing is done.
stays()
{
	local name=$1 words=$2 before now out
	shift 2
	before=$(disks_now)
	out=$(move "$@" 2>&1)
	out="$? ${out#modprobe: *$'\n'}"
	now=$(disks_now)
	[ "$now" = "$before" ] || out+=", and changed: $now"
	check "$name" "$out" "1 virtblk-move: $words"
}

# beside WORD COMMAND…: runs, and has come so far that it says the word
beside()
{
	local word=$1
	shift
	"$@" >/run/beside 2>&1 &
	other=$!
	await 30 grep -q "$word" /run/beside || fail "$word" "$(cat /run/beside)" "it to come so far"
}
beside_ends() { kill "$other"; wait "$other" 2>/dev/null; }

# A process for which the disk is the root.
as_root()
{
	mkdir -p /run/root
	# shellcheck disable=SC2016 # the inner shell's
	beside rooted unshare -m sh -c '
		mount /dev/vda /run/root && cd /run/root && mkdir -p old && ln -sfn old/lib64 old/lib old/usr . &&
		pivot_root . old && cd / && exec /usr/bin/sh -c "echo rooted; exec /usr/bin/sleep 1000"'
	stays root-disk "/dev/vda stays with virtio_blk: /dev/vda is mounted on /" vda
	beside_ends
}

mounted()
{
	as_root
	mkdir -p /run/a
	mount /dev/vda /run/a
	stays mounted "/dev/vda stays with virtio_blk: /dev/vda is mounted on /run/a" /dev/vda
	stays mounted-for-udev "/dev/vda stays with virtio_blk: /dev/vda is mounted on /run/a" --udev vda
	umount /run/a
	mount /dev/vdb1 /run/a
	stays partition-mounted "/dev/vdb stays with virtio_blk: /dev/vdb1 is mounted on /run/a" vdb
	# Gone from every list of mounts, but the file system lives as long as a file.
	exec 8</run/a/lost+found
	umount -l /run/a
	stays mount-without-a-place "/dev/vdb stays with virtio_blk: somebody has exclusive use of /dev/vdb or of a partition" vdb
	exec 8<&-
	# shellcheck disable=SC2016 # the inner shell's
	beside mounted unshare -m sh -c 'mount /dev/vda /run/a && echo mounted && exec sleep 1000'
	stays mounted-elsewhere "/dev/vda stays with virtio_blk: /dev/vda is mounted on /run/a" vda
	beside_ends
}

swapped()
{
	mkswap -q /dev/vdc
	swapon /dev/vdc
	stays swap "/dev/vdc stays with virtio_blk: /dev/vdc is swapped to" vdc
	swapoff /dev/vdc
	# The kernel tells the name that swapon was given.
	# shellcheck disable=SC2046 # two words
	mknod /run/other-name b $(tr : ' ' </sys/block/vdc/dev)
	chmod 600 /run/other-name
	swapon /run/other-name
	stays swap-by-another-name "/dev/vdc stays with virtio_blk: /dev/vdc is swapped to" --udev vdc
	swapoff /run/other-name
}

held()
{
	local name holder
	modprobe -a dm_mod md_mod raid0 loop
	for name in vdc vdb2; do
		dmsetup create --noudevsync held --table "0 8192 linear /dev/$name 0"
		holder=$(ls "/sys/class/block/$name/holders")
		stays "dm-on-$name" "/dev/${name:0:3} stays with virtio_blk: /dev/$name is held by $holder" "${name:0:3}"
		dmsetup remove --noudevsync held
	done
	# shellcheck disable=SC2016 # the inner shell's
	beside held "$top/fio-engine/md-hold" /dev/vdc sh -c 'echo held; while [ ! -e /run/let-go ]; do sleep 0.05; done'
	stays md "/dev/vdc stays with virtio_blk: /dev/vdc is held by $(ls /sys/block/vdc/holders)" vdc
	touch /run/let-go
	wait "$other"
	losetup /dev/loop0 /dev/vdc
	stays loop "/dev/vdc stays with virtio_blk: /dev/vdc is behind /dev/loop0" vdc
	losetup -d /dev/loop0
	await 20 test ! -e /sys/block/loop0/loop/backing_file
}

opened()
{
	exec 9</dev/vdc
	works open grep -q '^virtblk-move: /dev/vdc stays with virtio_blk: process [0-9]* (.*) has it open$' <<<"$(move vdc 2>&1)"
	exec 9<&-
	perl -MFcntl -e 'sysopen(F, "/dev/vdc", O_RDONLY | O_EXCL) or die; print "has it\n"; $| = 1; sleep 1000' >/run/beside 2>&1 &
	other=$!
	await 30 test -e "/proc/$other/fd/3"
	await 30 grep -q vdc <(readlink "/proc/$other/fd/3")
	stays exclusive-for-udev "/dev/vdc stays with virtio_blk: somebody has exclusive use of /dev/vdc or of a partition" --udev vdc
	beside_ends
}

no_disk_to_move()
{
	stays partition "/dev/vdb1 is a partition: name the whole disk" /dev/vdb1
	stays no-such-disk "there is no disk vdz" vdz
	stays file "there is no disk $case_file" "$case_file"
	stays other-disk "/dev/loop0 is no virtio-blk disk" /dev/loop0
	stays disk-on-pci "nvme0n1 is no virtio-blk disk" nvme0n1
	stays char-node "/dev/null is a character device: name the disk beside it" /dev/null
	check several-go-on "$(move vdz vdy 2>&1 | wc -l)" 2
	check with-the-driver-already "$(move --back vdc 2>&1; echo $?)" $'virtblk-move: /dev/vdc is with virtio_blk already\n0'
	check needs-root "$(
		setpriv --reuid 65534 --regid 65534 --clear-groups bash -s -- vdc <"$top/packaging/virtblk-move" 2>&1; echo $?)" \
		$'virtblk-move: only root may move disks\n1'
	check no-disk-named "$(move 2>&1 | head -n 1; move >/dev/null 2>&1; echo $?)" $'usage: virtblk-move [--back] DISK…\n2'
	check unknown-option "$(move --forth vdc 2>&1; echo $?)" $'virtblk-move: unknown option --forth; see virtblk-move --help\n2'
}

# Where a file of that name stands, the disk is meant all the same.
file_of_that_name()
{
	mkdir -p /run/here && touch /run/here/vda /run/here/vdz
	mount /dev/vda /run/a
	cd /run/here || return
	stays file-of-that-name "/dev/vda stays with virtio_blk: /dev/vda is mounted on /run/a" vda
	stays file-without-a-disk "there is no disk vdz" vdz
	cd /
	umount /run/a
}

# The drivers' own doors say no: sysfs shut by a file that takes nothing.
shut() { mount --bind /dev/full "$drivers/$1"; }
opens() { umount "$drivers/$1"; }

driver_refuses()
{
	local id out
	id=$(basename "$(readlink -f /sys/block/vdc/device)")
	shut virtblk_uring/bind
	out=$(move vdc 2>&1)
	check refused-goes-back "$? $out" "1 virtblk-move: $drivers/virtblk_uring/bind: No space left on device
virtblk-move: /dev/vdc stays with virtio_blk; the kernel log says more"
	works and-is-there dd if=/dev/vdc of=/dev/null bs=4k count=1 status=none
	shut virtio_blk/bind
	out=$(move vdc 2>&1)
	check neither-takes-it "$? $(tail -n 1 <<<"$out")" \
		"1 virtblk-move: /dev/vdc has no driver now; the kernel log says more: mend that, then echo $id >$drivers/virtio_blk/bind"
	opens virtio_blk/bind
	opens virtblk_uring/bind
	works as-it-says eval "${out##*then }"
	shut virtio_blk/unbind
	stays unbind-refused "$drivers/virtio_blk/unbind: No space left on device" vdc
	opens virtio_blk/unbind
}

no_driver()
{
	rmmod virtblk_uring
	stays no-module "the module virtblk_uring can't be loaded (is it installed for $(uname -r)?)" vdc
	mkdir -p /run/bin
	printf '#!/bin/sh\n' >/run/bin/modprobe
	chmod +x /run/bin/modprobe
	PATH=/run/bin:$PATH stays module-without-driver "there is no driver virtblk_uring, though its module is loaded" vdc
}

inside()
{
	insmod "$BESIDE" || { fail loads "an error" "success"; return 1; }
	printf 'size=16M\nsize=16M\n' | sfdisk -q /dev/vdb
	mkfs.ext4 -q /dev/vda && mkfs.ext4 -q /dev/vdb1
	modprobe nvme
	await 30 test -b /dev/nvme0n1
	mounted
	swapped
	held
	opened
	no_disk_to_move
	file_of_that_name
	driver_refuses
	works when-all-let-go move vda vdb vdc
	works and-back move --back vua vub vuc
	no_driver
}

host()
{
	local rel
	need_tool dmsetup dmsetup
	rel=$(kernel_release "$top/build" virtblk_uring.ko)
	DRIVER=stock guest --env "BESIDE=$top/build/$rel/virtblk_uring.ko" \
		--disk "raw:$(tmpimg root 32M)" --disk "raw:$(tmpimg parts 64M)" --disk "raw:$(tmpimg data 32M)" \
		--qemu "-drive file=$(tmpimg nvme 8M),if=none,id=n,format=raw -device nvme,drive=n,serial=1" -- inside
}

case_main "$@"
