#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The documents say what the code says, and the archive of a release holds all
# of it. No guest.
# shellcheck disable=SC2016 # backquotes are text
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$top" || exit 1

Documentation/check || failed=1

# A change that the check must see: a broken copy of the tree's texts.
notices()
{
	local name=$1 file=$2 script=$3 tree=$work/tree
	rm -rf "$tree"
	mkdir "$tree"
	git archive HEAD | tar -x -C "$tree"
	cp -r Documentation README.md man CHANGELOG.md "$tree"
	sed -i "$script" "$tree/$file"
	check "notices-$name" "$("$tree/Documentation/check" "$name" | grep -oE "^FAIL docs-$name:")" "FAIL docs-$name:"
}

work_folder
if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	notices links README.md 's/contract\.md)/contracts.md)/'
	notices figures-name-their-command README.md '/^.tests.bench.meter/d;s/^row; without.*//'
	notices tool-options man/io_uring-vblk.1 '/sqe64/d'
	notices quoted-messages Documentation/faq.md 's/^### `No kernel headers/### `No kernel header files/'

	make -s dist O="$work/out" >"$work/log" 2>&1 || tail -n 3 "$work/log"
	mkdir "$work/unpacked"
	tar -C "$work/unpacked" -xzf "$work"/out/virtblk-uring-"$(cat VERSION)".tar.gz
	check dist-is-whole "$(cd "$work/unpacked/virtblk-uring-$(cat VERSION)" && find . -type f | sed 's#^\./##' | sort | sha256sum)" \
		"$(git ls-tree -r --name-only HEAD | sort | sha256sum)"
	works dist-builds-the-tool make -s -C "$work/unpacked/virtblk-uring-$(cat VERSION)" tool
else
	skip dist "this is no git clone"
fi
exit $failed
