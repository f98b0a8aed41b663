#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the headers package lacks: OUT/vhost.h, vhost's private header, and
# OUT/layout.h, which refuses to compile unless that header's structs are those
# of the vhost.ko that will be loaded. Symbol versions can't tell: they are
# read from Module.symvers, whatever header our code was compiled with.
set -u

usage()
{
	cat <<'USAGE'
usage: drivers/vhost/prepare.sh KVER KDIR OUT
  KVER  kernel release, or the name of a kernel built here
  KDIR  its build folder
  OUT   where vhost.h and layout.h go
Takes vhost.h from KDIR's source if that is whole, else from the package
linux-source-X.Y, and the layout from the installed vhost.ko (by pahole).
Exit status 125: something has to be installed.
USAGE
}

here=$(dirname "$(realpath "$0")")
vm=$here/../../tests/vm
guarded="vhost_work vhost_poll vhost_vring_call vhost_virtqueue vhost_dev"

die()
{
	local status=$1
	shift
	echo "vhost_blk: $*" >&2
	exit "$status"
}

# The package has the name of the kernel's series: linux-source-6.12
find_header()
{
	local series archive whole
	for whole in "$kdir/source" "/lib/modules/$kver/source"; do
		[ -e "$whole/drivers/vhost/vhost.h" ] && { cp "$whole/drivers/vhost/vhost.h" "$out/vhost.h"; return; }
	done
	series=$(grep -oE '^[0-9]+\.[0-9]+' <<<"$kver") || die 1 "$kver is no kernel release"
	archive=/usr/src/linux-source-$series.tar.xz
	[ -e "$archive" ] || "$vm/need" "linux-source-$series"
	[ -e "$archive" ] || die 125 "vhost's private header is in the package linux-source-$series, which is missing"
	[ "$out/vhost.h" -nt "$archive" ] && return
	tar -xJf "$archive" --occurrence=1 -O "linux-source-$series/drivers/vhost/vhost.h" >"$out/vhost.h.new" ||
		die 1 "$archive has no drivers/vhost/vhost.h"
	mv "$out/vhost.h.new" "$out/vhost.h"
}

# The installed module, unpacked
find_module()
{
	local dir file
	for dir in "$kdir/../modules/lib/modules"/* "/lib/modules/$kver"; do
		for file in "$dir"/kernel/drivers/vhost/vhost.ko*; do
			[ -e "$file" ] || continue
			case $file in
			*.xz) xz -dc "$file" ;;
			*.zst) zstd -dcq "$file" ;;
			*) cat "$file" ;;
			esac >"$out/vhost.ko" && return
		done
	done
	die 125 "there is no vhost.ko to compare with: install linux-image-$kver"
}

# A distribution's modules have no DWARF, but BTF on top of the kernel's own.
btf_base()
{
	local image=/boot/vmlinuz-$kver
	readelf -SW "$out/vhost.ko" | grep -q '\.debug_info' && return
	[ -e "$image" ] || die 125 "there is no $image: install linux-image-$kver"
	if [ ! "$out/vmlinux" -nt "$image" ]; then
		# shellcheck disable=SC2016 # a shell of its own: kernel.sh has variables of these names
		bash -c 'die() { echo "vhost_blk: $*" >&2; exit 1; }
			here=$1; . "$here/kernel.sh"; kernel_extract "$2" "$3"' - "$vm" "$image" "$out/vmlinux" || exit
	fi
	echo "--btf_base=$out/vmlinux"
}

# One assertion a member, from pahole's "TYPE name; /* offset size */". Size 0 is
# one that reduced debug information (a debug kernel's) doesn't tell.
assertions()
{
	awk '
	/^struct / { s = $2 }
	/;  *\/\* *[0-9]+ +[0-9]+ *\*\// {
		n = split($0, a, /[ *\/]+/); size = a[n - 1]; off = a[n - 2]
		name = $0; sub(/; *\/\*.*/, "", name)
		if (match(name, /\(\*[a-z_]+\)/))
			name = substr(name, RSTART + 2, RLENGTH - 3)
		sub(/\[.*/, "", name); sub(/.*[ *]/, "", name)
		printf "static_assert(offsetof(struct %s, %s) == %d, VHOST_LAYOUT);\n", s, name, off
		if (size)
			printf "static_assert(sizeof_field(struct %s, %s) == %d, VHOST_LAYOUT);\n", s, name, size
	}
	/\/\* size: / { size = $3 + 0; printf "static_assert(sizeof(struct %s) == %d, VHOST_LAYOUT);\n", s, size }'
}

layout()
{
	local base
	command -v pahole >/dev/null || "$vm/need" pahole || exit 125
	find_module
	base=$(btf_base) || exit
	echo '/* SPDX-License-Identifier: GPL-2.0-only */'
	echo '/* Made by prepare.sh from the installed vhost.ko */'
	echo '#define VHOST_LAYOUT "vhost.h is not that of the installed vhost.ko: upgrade the kernel and its source package to one version"'
	# shellcheck disable=SC2086 # no base, no word
	pahole $base -C "${guarded// /,}" "$out/vhost.ko" | assertions
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--version) cat "$here/../../VERSION"; exit 0 ;;
esac
[ $# = 3 ] || { usage >&2; exit 2; }
kver=$1 kdir=$2 out=$3
mkdir -p "$out" || exit 1
find_header
layout >"$out/layout.h.new" || exit
for s in $guarded; do
	grep -q "sizeof(struct $s) ==" "$out/layout.h.new" || die 1 "pahole says nothing of struct $s in vhost.ko"
done
mv "$out/layout.h.new" "$out/layout.h"
