#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The engine for the fio that is installed and the patches for Debian 13's and the
# newest: they apply without fuzz and build, and the manuals they patch are sound.
# No guest; the archive's sources, so it is skipped where there is none.
#~ timeout 900
set -u

# shellcheck source=SCRIPTDIR/../../fio-engine/test-lib.sh
. "$(dirname "$0")/../../fio-engine/test-lib.sh"

# groff's complaints about fio's manual page in folder $1
complaints() { groff -man -Tutf8 -ww "$1/fio.1" 2>&1 > "$work/page" | grep -c warning; }

# patched NAME SOURCE TREE: what the patch made of the source
patched() {
	check "$1-applies-exactly" "$(patch -d "$2" -p1 -F0 --dry-run \
		-i "$3/applied.patch" 2>&1 | grep -vE '^(checking|patching) file')" ""
	check "$1-other-files-untouched" "$(diff -rq "$2" "$3" |
		grep '^Files' | sed 's/.* and .*\/\([^ ]*\) differ/\1/' |
		sort | tr '\n' ' ')" "HOWTO.rst Makefile fio.1 io_uring.c "
	check "$1-HOWTO-names-it" "$(grep -c '\*\*vblk\*\* (or \*\*virtblk\*\*)' \
		"$3/HOWTO.rst")" 1
	if command -v groff > /dev/null; then
		check "$1-man-page" "$(complaints "$3")" "$(complaints "$2")"
		complaints "$3" > "$work/count"
		check "$1-man-page-names-it" \
			"$(tr -s ' \n' ' ' < "$work/page" | grep -c 'values are nvme and vblk')" 1
	else
		skip "$1-man-page" "there is no groff"
	fi
}

# another VERSION SUITE: builds the object for it; sets $object, or it can't be fetched
another() {
	local rc
	object=$("$top/fio-engine/build" --suite "$2" "$1" "$top/build/fio" \
		2> "$work/another")
	rc=$?
	case $rc in
	0) pass "$1-builds" ;;
	125) skip "$1" "$(tail -n 1 "$work/another")" ;;
	*) fail "$1-builds" "status $rc, $(tail -n 2 "$work/another")" "an object" ;;
	esac
	[ $rc = 0 ] || return
	tree=$(dirname "$object")
	version=${tree##*/fio-}
	version=${version%-vblk}
	patched "$version" "$top/build/fio/src/fio-$version" "$tree"
}

host() {
	local version tree object
	fio_host
	version=$(fio --version)
	version=${version#fio-}
	patched "$version" "$top/build/fio/src/fio-$version" \
		"$top/build/fio/fio-$version-vblk"
	works preloaded-elsewhere env LD_PRELOAD="$top/build/fio/fio-vblk.so" \
		python3 -c 'print(1)'

	# Debian 13's
	if another 3.39 trixie; then
		check 3.39-has-a-patch-of-its-own "$(cmp "$tree/applied.patch" \
			"$top/fio-engine/patches/3.39/vblk.patch" 2>&1)" ""
	fi
	another newest sid || return
	check another-fio-refuses-it "$(fio --parse-only --name=t --rw=read \
		"--ioengine=external:$object" --filename=/dev/null 2>&1 |
		grep -c 'bad ioops version')" 1
}

case_main "$@"
