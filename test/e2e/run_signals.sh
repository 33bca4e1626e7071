#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: a program that wants the signal of the samples for itself, or sets all to death, is as it is without it, and
# is sampled all the same.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_signals
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

"$program" >"$dir/plain"
good='default 1, none come 1, mine 2, apart 1, kept 1, told 1, with info 1 of 1, interrupts 1, ignored 1, once more 1, deadly 1'
[ "$(grep -c "$good$" "$dir/plain")" = 3 ] || { cat "$dir/plain"; fail "not even by itself"; }
for engine in timer perf; do
	WEFT_SAMPLE_ENGINE=$engine WEFT_BUDGET_PPM=off "$weft" run --start-after 0 --no-children -o "$dir/$engine" -- "$program" >"$dir/out" 2>"$dir/err" ||
		{ head -20 "$dir/err"; fail "$engine: it ended with $?"; }
	diff "$dir/plain" "$dir/out" || fail "$engine: it says something else"
	"$weft" report --json "$dir/$engine" 2>/dev/null >"$dir/json"
	# It burns 900 ms.
	cpu=$(jq '[.recordings[].cpu.cpu_ns] | add' "$dir/json")
	[ "$cpu" -ge 800000000 ] || { head -12 "$dir/err"; fail "$engine: samples for $cpu ns"; }
	echo "$engine: samples for $((cpu / 1000000)) ms"
done
