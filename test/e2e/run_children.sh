#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: a child of fork that ends at once takes hardly more page faults than without weft, is counted however it
# ends, and works.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
children=$WEFT_BUILD/test/run_children
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD WEFT_START_AFTER_MS
fail() {
	echo "FAILED: $*"
	exit 1
}
run() { # ARGUMENT...: weft run into $dir/rec, with the program's output in $dir/out and the number of processes that were only counted in $n
	rm -rf "$dir/rec"
	"$weft" run -o "$dir/rec" --start-after 60000 -- "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/out" "$dir/err"; fail "it failed: $*"; }
	n=$("$weft" report --json "$dir/rec" | jq .short_processes.count)
}

# In the child of a program that does not record nothing is touched but a page of code and the one that all are counted
# in. Where weft has threads the C library has more to do in each child: 10 to 12 pages. It was 14 and 75 more.
plain=$("$children" faults)
run "$children" faults
[ "$(cat "$dir/out")" -le $((plain + 3)) ] || fail "a child takes $(cat "$dir/out") page faults, and $plain without weft"
[ "$n" = 102 ] || fail "$n of 102 are counted"
grep -q '^\*102 [0-9]* [0-9]* run_children$' "$dir/rec/short-processes.txt" || { cat "$dir/rec/short-processes.txt"; fail "they are not counted together"; }
run "$children" faults started
[ "$(cat "$dir/out")" -le $((plain + 20)) ] || fail "a child of a recorded program takes $(cat "$dir/out") page faults, and $plain without weft"
[ "$n" = 101 ] || fail "$n of 101 are counted"

# The parent, eight children, of which one makes a thread and is recorded, and a grandchild.
run "$children" ends
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
[ "$n" = 9 ] || { cat "$dir/rec/short-processes.txt"; fail "$n of 9 are counted"; }
run "$children" ends started
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
[ "$n" = 8 ] || { cat "$dir/rec/short-processes.txt"; fail "$n of 8 are counted"; }

# Where there is no page to count them in, each is a line.
mkdir "$dir/lines"
: >"$dir/lines/short-processes.txt"
LD_PRELOAD=$WEFT_BUILD/libweft-preload.so WEFT_PRELOAD_DIR=$dir/lines WEFT_START_AFTER_MS=60000 WEFT_PRELOAD_COUNTS='/dev/null 1' "$children" ends >"$dir/out"
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
[ "$(grep -c '^[0-9]* [0-9]* [0-9]* run_children$' "$dir/lines/short-processes.txt")" = 9 ] || { cat "$dir/lines/short-processes.txt"; fail "not 9 lines"; }
