#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: a program ends when and as it would without it, whichever of its threads is the last, and however that ends.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_ends
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

ways='return main-at-once main-pthread-exit main-before-thread main-bare-exit main-bare-exit-then-thread
	thread-bare-exit two-at-once child-of-thread signal-without-main'
for how in $ways; do
	status=0
	"$program" "$how" >"$dir/plain" || status=$?
	seen=0
	timeout -k 5 60 "$weft" run -o "$dir/$how" -- "$program" "$how" >"$dir/out" 2>"$dir/err" || seen=$?
	[ $seen = $status ] || { head -20 "$dir/err"; fail "$how: ended with $seen, without weft with $status"; }
	diff <(sort "$dir/plain") <(sort "$dir/out") || fail "$how: it says something else"
	rings=$(find "$dir/$how" -name '*.rings' | wc -l)
	[ "$rings" = 0 ] || fail "$how: $rings rings are left"
	echo "$how: $status"
done
