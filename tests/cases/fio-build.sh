#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The engine for the fio that is installed and the patches for Debian's newest:
# they apply without fuzz and build, and the manuals they patch are sound.
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

host() {
	local version newest tree
	fio_host
	version=$(fio --version)
	version=${version#fio-}
	patched "$version" "$top/build/fio/src/fio-$version" \
		"$top/build/fio/fio-$version-vblk"
	works preloaded-elsewhere env LD_PRELOAD="$top/build/fio/fio-vblk.so" \
		python3 -c 'print(1)'

	if ! newest=$("$top/fio-engine/build" --suite sid newest \
		"$top/build/fio" 2> "$work/newest"); then
		if grep -q 'fetch\|no source' "$work/newest"; then
			skip newest "$(tail -n 1 "$work/newest")"
		else
			fail newest "$(tail -n 2 "$work/newest")" "an object"
		fi
		return
	fi
	tree=$(dirname "$newest")
	version=${tree##*/fio-}
	version=${version%-vblk}
	pass "newest-builds-$version"
	patched "$version" "$top/build/fio/src/fio-$version" "$tree"
	check another-fio-refuses-it "$(fio --parse-only --name=t --rw=read \
		"--ioengine=external:$newest" --filename=/dev/null 2>&1 |
		grep -c 'bad ioops version')" 1
}

case_main "$@"
