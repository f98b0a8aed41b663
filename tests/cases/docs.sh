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

# Without it the man pages' question is a skip.
tests/vm/need mandoc >/dev/null 2>&1
said=$(Documentation/check) || failed=1
echo "$said"
can() { ! grep -q "^SKIP docs-$1:" <<<"$said"; }

# NAME FILE SCRIPT [WHICH]: a change that the check must see, in a copy of the tree's texts.
notices()
{
	local name=$1 file=$2 script=$3 what=${4:+-$4}
	sed -i "$script" "$tree/$file"
	check "notices-$name$what" "$("$tree/Documentation/check" "$name" | grep -oE "^FAIL docs-$name:")" "FAIL docs-$name:"
	cp "$file" "$tree/$file"
}

work_folder
if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	tree=$work/tree
	mkdir "$tree"
	git ls-files -z | xargs -0 cp --parents -t "$tree"
	check notices-nothing-wrong "$("$tree/Documentation/check" | grep '^FAIL')" ""
	notices links README.md 's/contract\.md)/contracts.md)/'
	notices paths Documentation/testing.md 's,tests/vm/run,tests/vm/runs,'
	notices figures-name-their-command README.md '/^.tests.bench.meter/d;s/^row; without.*//'
	notices make-targets Documentation/testing.md 's/`make mutants`/`make mutant`/'
	notices tool-options man/io_uring-vblk.1 '/sqe64/d'
	notices move-options man/virtblk-move.8 's/back/forth/'
	notices module-parameters man/virtio_blk_uring.4 's/poll_queues/polled/'
	notices uapi-constants Documentation/contract.md 's/VIRTBLK_URING_F_IO64/IO64/'
	notices errnos Documentation/contract.md 's/-ENODEV/-EGONE/'
	notices driver-messages Documentation/faq.md '/no passthrough node: error/d'
	notices client-messages Documentation/faq.md '/refusing to write: disk/d' of-the-tool
	notices client-messages Documentation/faq.md '/allow_mounted_write=1 would/d' of-the-engine
	notices client-messages Documentation/faq.md '/applies to fio/d' of-make-fio
	notices client-messages Documentation/faq.md '/has no driver now/d' of-virtblk-move
	notices client-messages Documentation/self-telling '/^the disk is gone/d' self-telling
	notices client-messages t/target.c 's/no room for one I\/O/too small for an I\/O/' new
	notices quoted-messages Documentation/self-telling 's/^deac=1 needs/deac=1 wants/' self-telling
	notices quoted-messages Documentation/faq.md 's/^### `No kernel headers/### `No kernel header files/'
	notices readme-length README.md 's/$/\n/'
	notices version CHANGELOG.md 's/^## .*/## Unreleased/'
	notices kernel-differences drivers/block/main.c 's/COMPAT_ZONED/HAVE_VIRTIO_ZONED/'
	notices pictures Documentation/flow.svg 's,</svg>,,'
	! can man-lint || notices man-lint man/virtblk-move.8 's/^\.SH NAME/.SHNAME/'
	if can kernel-doc; then
		notices kernel-doc drivers/block/queue.c 's/^ \* \(virtblk_[a-z_]*()\) - / * \1 /'
		notices kernel-doc drivers/block/compat.h 's/^ \* \(compat_cmd_ring()\) - / * \1 /' of-compat
		notices kernel-doc drivers/block/compat.h '/^ \* @issue_flags/d' of-an-argument
	fi

	make -s dist O="$work/out" >"$work/log" 2>&1 || tail -n 3 "$work/log"
	mkdir "$work/unpacked"
	tar -C "$work/unpacked" -xzf "$work"/out/virtblk-uring-"$(cat VERSION)".tar.gz
	check dist-is-whole "$(cd "$work/unpacked/virtblk-uring-$(cat VERSION)" && find . -type f | sed 's#^\./##' | sort | sha256sum)" \
		"$(git ls-tree -r --name-only HEAD | sort | sha256sum)"
	works dist-builds-the-tool make -s -C "$work/unpacked/virtblk-uring-$(cat VERSION)" tool
	if compgen -G '/lib/modules/*/build' >/dev/null; then
		works dist-builds-the-module make -s -C "$work/unpacked/virtblk-uring-$(cat VERSION)" module
	else
		skip dist-builds-the-module "there are no kernel headers"
	fi
else
	skip dist "this is no git clone"
fi
exit $failed
