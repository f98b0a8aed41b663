#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring-vblk without a guest: what it computes, and, built with the address
# and undefined-behaviour checkers, that set-ups which fail leave nothing behind.
set -u
self=$(realpath "$0")
# shellcheck source=t/test-lib.sh
. "$(dirname "$self")/../../t/test-lib.sh"

host_prepare
make -s build/t/tool-selftest && build/t/tool-selftest || failed=1

# The options that a text names: of --help, and of the manual page's OPTIONS
options_of() { grep -oE -- '(^|[^A-Za-z0-9-])--?[A-Za-z][a-z0-9-]*' | grep -oE -- '--?[A-Za-z].*' | sed -E 's/^(-[A-Za-z])[01]$/\1/' | sort -u; }
"$tool" --help | sed '/^Usage/,/^$/d; /^N may/d' | sed -E 's/e\.g\. .*//' | options_of >"$work/help"
sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/{/^\.TP/{n;p}}' man/io_uring-vblk.1 |
	sed -E 's/\\f.//g; s/\\//g' | options_of >"$work/man"
equal tool-man-page-has-help-options "$(diff "$work/help" "$work/man" | grep '^[<>]' | tr '\n' ' ')" ""
between tool-help-options "$(wc -l <"$work/help")" 40 70
if command -v groff >/dev/null; then
	equal tool-man-page "$(groff -t -man -Tutf8 -ww man/io_uring-vblk.1 2>&1 >/dev/null)" ""
fi

if ! make -s sanitized-tool >"$work/log" 2>&1; then
	skip tool-checkers "this compiler has no sanitizers: $(tail -n 1 "$work/log")"
	exit $failed
fi
tool=$top/build/sanitized/t/io_uring-vblk
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1
truncate -s 16M "$work/file"

run "$tool" -p0 -O0 -d8 -s3 -c5 -n2 -t1 -W --verify --mix read=1,write=1,zeroes=1,flush=1 --size 8M --ios 300 "$work/file"
if [ $status -eq 1 ] && [[ $err =~ (EPERM|ENOSYS|not\ permitted|not\ implemented|without\ io_uring|io_uring\ is\ off) ]]; then
	skip tool-checkers "no io_uring on this host"
	exit $failed
fi
equal tool-checkers-load "$status $(grep -c 'all right' "$outdir/out")" "0 1"
works tool-checkers-nop "$tool" -N1 --ios 100
works tool-checkers-rate "$tool" -p0 -O0 --rate 2000 -r 0.3 "$work/file"
works tool-checkers-sync "$tool" -p0 -O0 -S1 --ios 10 "$work/file"
works tool-checkers-aio "$tool" -p0 -O0 -a1 --ios 10 -d4 "$work/file"
run "$tool" -p0 -O0 --json --ios 64 -d4 -t1 "$work/file"
equal tool-json-form "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["ios"], d["latency_ns"]["n"])' <<<"$out")" "64 64"
refused tool-checkers-missing-file 'No such file' "$tool" -p0 "$work/none"
refused tool-checkers-no-disk 'neither a disk nor a file' "$tool" -p0 -O0 "$work"
refused tool-checkers-too-many-buffers 'not registered' "$tool" -p0 -O0 -d32768 -b512 --ios 1 "$work/file"
refused tool-checkers-verify-too-small 'larger --size' "$tool" -p0 -O0 -W --verify --size 64k "$work/file"
refused tool-checkers-pin 'cannot run on CPU' "$tool" -p0 -O0 --pin 1023 "$work/file"
refused tool-checkers-file-twice 'named twice' "$tool" -p0 -O0 -W --size 1M --ios 10 "$work/file" "$work/file"
refused tool-checkers-one-of-two 'No such file' "$tool" -p0 -O0 "$work/file" "$work/none"
for wrong in "-d" "-d 0" "-d x" "-b 100" "--mix foo" "--mix write" "--verify" "--iovecs 2" "--pin 0-" "--size 101%" \
	     "--sqe64" "--rate 0" "-N2" "--nonsense" "--compare -S1" "-V1 -B1" "--repeats 0" "-D1" \
	     "--sqpoll-cpu 1" "--sqpoll-idle 5" "--repeats 3" "--compare --ios 3" "--compare -N1" "--huge -H x" \
	     "-P1 --pin 0" "-W --mix write=0" "-W --mix read,flush" "--compare -W --mix write,trim"; do
	# shellcheck disable=SC2086 # a list of words
	run "$tool" $wrong "$work/file"
	equal "tool-usage${wrong// /}" "$status $(grep -c . "$outdir/err")" "2 1"
done
run "$tool"
equal tool-usage-no-disk "$status $(grep -c /dev/vdXc0 "$outdir/err")" "2 1"
exit $failed
