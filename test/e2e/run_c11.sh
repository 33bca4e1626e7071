#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: locks and threads of C11, and waits for children, answer as they do without it, and are told as long as they
# were.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_c11
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

"$program" >"$dir/plain" 2>/dev/null
"$weft" run -o "$dir/rec" -- "$program" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; fail "it failed"; }
diff "$dir/plain" "$dir/out" || fail "it answers otherwise"
for file in "$dir"/rec/*.weft; do
	"$weft" inspect --events "$file"
done >"$dir/events"
n=0
while read -r _ name least most; do
	n=$((n + 1))
	# No shorter than it must have been, and no longer than what was measured around it, but for what the clocks may
	# differ by.
	sed -n "s/.* wait  what=[0-9]*  name=\"$name\".* duration=\([0-9]*\) ns .*/\1/p" "$dir/events" |
		awk -v least="$least" -v most="$most" '{ if ($1 <= 1.001 * most && $1 >= 0.999 * least) found = 1 }
			END { exit !found }' || { grep " wait " "$dir/events"; fail "no wait of $least to $most ns in $name"; }
done < <(grep -E '^wait [a-z0-9_]+ [0-9]+ [0-9]+$' "$dir/err")
[ "$n" = 6 ] || fail "$n waits: $(cat "$dir/err")"
echo "$n waits"
