#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: any alternate stack that the kernel takes is large enough, in handlers too, and the program is told what it
# set.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_altstack
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

"$program" >"$dir/plain" || fail "not even by itself: $?"
for engine in timer perf; do
	WEFT_SAMPLE_ENGINE=$engine WEFT_BUDGET_PPM=off "$weft" run --hz 499 -o "$dir/$engine" -- "$program" >"$dir/out" 2>"$dir/err" ||
		{ head -20 "$dir/err"; fail "$engine: it ended with $?"; }
	diff "$dir/plain" "$dir/out" || fail "$engine: it says something else"
	"$weft" report --json "$dir/$engine" 2>/dev/null >"$dir/json"
	# It burns 1,100 ms.
	cpu=$(jq '[.recordings[].cpu.cpu_ns] | add' "$dir/json")
	[ "$cpu" -ge 700000000 ] || { head -12 "$dir/err"; fail "$engine: samples for $cpu ns"; }
	echo "$engine: samples for $((cpu / 1000000)) ms"
done
