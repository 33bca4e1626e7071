#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run with kernel frames: a program that becomes another by exec lives on.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_exec
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

export WEFT_SAMPLE_KERNEL=1 WEFT_SAMPLE_ENGINE=perf WEFT_BUDGET_PPM=off WEFT_START_AFTER_MS=0
for n in 100 101; do
	status=0
	"$weft" run --hz 999 -o "$dir/$n" -- "$program" $n >"$dir/out" 2>"$dir/err" || status=$?
	[ $status = 5 ] || { head -5 "$dir/err"; fail "it ended with $status"; }
	[ "$(cat "$dir/out")" = good ] || fail "it says $(cat "$dir/out")"
done
"$weft" report --json "$dir/100" 2>/dev/null | jq -e '[.recordings[].facts["sample.kernel"]] | any(. == "1")' >/dev/null ||
	{ echo "reason: no kernel frames here"; exit 77; }
