#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring-vblk -W: what it refuses, what lands where in the image, and that
# --verify finds what is wrong.
#~ also 6.1
set -u
self=$(realpath "$0")
# shellcheck source=t/test-lib.sh
. "$(dirname "$self")/../../t/test-lib.sh"

# Disks in use and how: vda mounted, vdb swap, vdc under device mapper, vdd with
# a mounted partition, vde nothing; they must come out unchanged
used="mounted swap held parts exclusive"

host()
{
	local before after i rc
	host_prepare
	for i in $used; do truncate -s 32M "$work/$i"; done
	mkfs.ext4 -q -F "$work/mounted"
	mkswap -q "$work/swap" 2>&-
	echo 'start=2048' | sfdisk -q "$work/parts"
	mkfs.ext4 -q -F -E offset=1048576 "$work/parts" 16M
	truncate -s 64M "$work/free" "$work/ranges" "$work/slow" "$work/partitioned"
	echo 'start=2048' | sfdisk -q "$work/partitioned"
	"$pattern" write --seed 5 "$work/ranges" >&2 || exit 1
	before=$(cd "$work" && for i in $used; do sum "$i"; done | tr '\n' ' ')
	boot --disk "raw:$work/mounted" --disk "raw:$work/swap" --disk "raw:$work/held" \
		--disk "raw:$work/parts" --disk "raw:$work/exclusive" \
		--disk "raw:$work/free" --disk "raw:$work/ranges,discard" \
		--disk "raw:$work/free,ro,prop:discard=off,prop:write-zeroes=off,prop:share-rw=on" \
		--disk "raw:$work/slow,iops=100" \
		--disk "raw:$work/partitioned"
	rc=$?
	after=$(cd "$work" && for i in $used; do sum "$i"; done | tr '\n' ' ')
	equal tool-F17-nothing-was-written "$after" "$before"
	image_ranges
	[ $rc -eq 0 ] && exit $failed
	exit 1
}

# In blocks of 64 KiB: 0-15 written by passthrough, 32-47 by the block node,
# 64-79 zeroed, 96-111 trimmed; all else is the host's pattern
image_ranges()
{
	local k=$((64 * 1024)) r
	for r in "16 16" "48 16" "80 16" "112 600"; do
		# shellcheck disable=SC2086
		set -- $r
		works "tool-image-untouched-$1" "$pattern" check --seed 5 --offset $(($1 * k)) --size $(($2 * k)) "$work/ranges"
	done
	for r in 64 96; do
		equal "tool-image-zeroes-$r" "$(dd if="$work/ranges" bs=$k skip=$r count=16 status=none | tr -d '\0' | wc -c)" 0
	done
}

in_use()
{
	local mode held
	mount -o ro,noload /dev/vda /mnt || fail tool-F17-mount "no mount" "a mount"
	swapon /dev/vdb
	modprobe dm-mod
	echo "0 32768 linear /dev/vdc 0" | dmsetup create --noudevsync held 2>&-
	for mode in "-u1 /dev/vdac0" "-u0 /dev/vda"; do
		# shellcheck disable=SC2086
		refused "tool-F17-mounted-${mode:0:3}" 'in use: mounted on /mnt' "$tool" -p0 -W --ios 1 $mode
		# shellcheck disable=SC2086
		works "tool-F17-mounted-${mode:0:3}-reads" "$tool" -p0 --ios 10 $mode
	done
	modprobe loop
	held=$(losetup --find --show /dev/vdd1)
	refused tool-F17-loop "in use: used by ${held#/dev/}" "$tool" -u1 -p0 -W --ios 1 /dev/vddc0
	losetup --detach "$held"
	refused tool-F17-trim-refused 'in use: mounted on /mnt' "$tool" -u1 -p0 -W --mix trim --ios 1 /dev/vdac0
	refused tool-F17-swap 'in use: swap space' "$tool" -u1 -p0 -W --ios 1 /dev/vdbc0
	swapoff /dev/vdb
	if [ -e /dev/mapper/held ] || dmsetup info held >&- 2>&-; then
		refused tool-F17-holder 'in use: used by dm-' "$tool" -u1 -p0 -W --ios 1 /dev/vdcc0
		dmsetup remove --noudevsync held
	else
		skip tool-F17-holder "no device mapper here"
	fi
	umount /mnt
	mount -o ro,noload /dev/vdd1 /mnt
	refused tool-F17-partition-mounted 'in use: mounted on /mnt' "$tool" -u1 -p0 -W --ios 1 /dev/vddc0
	umount /mnt
	# O_EXCL is held as long as the program runs
	python3 -c 'import os, sys; os.open("/dev/vde", os.O_RDWR | os.O_EXCL); print(flush=True); sys.stdin.read()' \
		< <(sleep 60) >/tmp/held &
	held=$!
	await 10 test -s /tmp/held
	refused tool-F17-exclusive 'in use: something holds it exclusively' "$tool" -u1 -p0 -W --ios 1 /dev/vdec0
	kill $held
	run "$tool" -u1 -p0 --mix write=1 --ios 1 /dev/vdec0
	equal tool-U12-mix-needs-W "$status" 2
	refused tool-W-read-only 'Permission denied|read-only|Read-only' "$tool" -u1 -p0 -W --ios 1 /dev/vdhc0
	refused tool-no-discard 'lacks the feature DISCARD' "$tool" -u1 -p0 -W --mix trim --ios 1 /dev/vdhc0
}

guards()
{
	local pid
	"$tool" -u1 -p0 -W -d4 --size 1M /dev/vdfc0 >/tmp/bg 2>&1 &
	pid=$!
	await 10 grep -q IOPS= /tmp/bg
	run "$tool" -u1 -p0 -W --ios 1 /dev/vdfc0
	equal tool-W-holds-the-disk-exclusively "$status $(grep -c 'holds it exclusively' /tmp/err)" "1 1"
	kill -INT $pid
	wait $pid
	equal tool-W-SIGINT-status $? 0
}

verify()
{
	local how
	while read -r how; do
		# shellcheck disable=SC2086
		works "tool-verify-${how// /}" "$tool" -p0 -W --verify -d16 -s4 -c4 --size 4M --ios 600 $how
		equal "tool-verify-${how// /}-read-back" "$(grep -c '[1-9][0-9]* of [1-9][0-9]* blocks read back: all right' /tmp/out)" 1
	done <<-EOF
		-u1 --mix read=50,write=40,zeroes=5,flush=5 /dev/vdfc0
		-u0 --mix read=50,write=40,zeroes=5,flush=5 /dev/vdf
		-u1 -n2 -b16k --mix read=1,write=1 /dev/vdfc0
		-u1 -V1 --iovecs 8 -b32k --mix read=1,write=1 /dev/vdfc0
		-u0 -V1 -b32k --mix read=1,write=1 /dev/vdf
		-u1 --mix read=2,write=2,trim=1 /dev/vdgc0 --offset 48M
		-S1 --mix read=1,write=1 /dev/vdf
		-a1 --mix read=1,write=1 /dev/vdf
		-u1 --rate 1000 --mix read=1,write=1 /dev/vdfc0
		-u0 --mix read=1,write=1 /dev/vdj1
		-u0 -O0 --mix read=1,write=1 /dev/vdj1
	EOF
	# Somebody else writes meanwhile: that must not pass as right
	while :; do dd if=/dev/zero of=/dev/vdf bs=64k count=4 oflag=direct conv=notrunc status=none; done &
	run "$tool" -u1 -p0 -W --verify --mix read=1,write=1 -d4 -s1 -c1 --size 256k -r 5 /dev/vdfc0
	kill $!
	wait $! 2>&-
	equal tool-verify-finds-foreign-data "$status $(grep -q 'never written here' /tmp/err && echo found)" "1 found"
}

# A signal ends the I/O, not the check of what it left; one that comes in the
# middle of that check leaves it unfinished, which is no success
verify_interrupted()
{
	"$tool" -u1 -p0 -W --verify --size 4M /dev/vdfc0 >/tmp/bg 2>/tmp/err &
	await 10 grep -q IOPS= /tmp/bg
	kill -INT $!
	wait $!
	equal tool-verify-after-SIGINT-reads-back "$? $(grep -cE '[1-9][0-9]* of [1-9][0-9]* blocks read back: all right' /tmp/bg)" "0 1"
	"$tool" -u1 -p0 -W --verify -R0 -b512 --ios 200 --size 256k /dev/vdic0 >/tmp/bg 2>/tmp/err &
	await 10 grep -q 'Reading everything' /tmp/bg
	kill -TERM $!
	wait $!
	equal tool-verify-SIGTERM-ends-reading-back "$? $(grep -cE 'of 200 blocks read back: FAILED' /tmp/bg) $(err_line)" \
		"1 1 io_uring-vblk: interrupted: not all was read back "
}

# For the host to look at in the image
ranges()
{
	mark
	works tool-write-by-passthrough "$tool" -u1 -p0 -W -R0 -b64k --size 1M --ios 16 -d4 -s4 -c4 /dev/vdgc0
	equal tool-write-at-the-device "$(seen_sectors write)" 2048
	mark
	works tool-write-by-block "$tool" -u0 -p0 -W -R0 -b64k --offset 2M --size 1M --ios 16 -d4 -s4 -c4 /dev/vdg
	equal tool-write-by-block-at-the-device "$(seen_sectors write)" 2048
	mark
	works tool-zeroes "$tool" -u1 -p0 -W --mix zeroes -R0 -b64k --offset 4M --size 1M --ios 16 /dev/vdgc0
	works tool-trim "$tool" -u1 -p0 -W --mix trim -R0 -b64k --offset 6M --size 1M --ios 16 /dev/vdgc0
	equal tool-zeroes-and-trim-write-no-data "$(seen_sectors write)" 0
}

guest()
{
	in_use
	guards
	ranges
	verify
	verify_interrupted
	exit $failed
}

if [ "${1:-}" = guest ]; then guest; else host; fi
