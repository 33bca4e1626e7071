#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: a program that lists its descriptors, or its children's environment, sees nothing of it.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}

# Of the shell itself, of a child that it forks, and of one that it executes. It burns CPU, so that there are samples.
cat >"$dir/list" <<'EOF'
i=0
while [ $i -lt 100000 ]; do i=$((i + 1)); done
ls /proc/$$/fd
(i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; ls "/proc/$BASHPID/fd")
ls /proc/self/fd
EOF
bash "$dir/list" >"$dir/plain" 2>/dev/null
"$weft" run -o "$dir/recorded" -- bash "$dir/list" >"$dir/out" 2>"$dir/err" || fail "it ended with $?"
diff "$dir/plain" "$dir/out" || fail "descriptors are seen"
samples=$("$weft" report --json "$dir/recorded" 2>/dev/null | jq '[.recordings[].cpu.samples] | add')
[ "$samples" -gt 0 ] || fail "there are no samples"

# bash has functions for the environment of its own.
for shell in sh bash; do
	got=$("$weft" run --no-children -- $shell -c 'env | grep -cE "^(LD_PRELOAD|WEFT_PRELOAD)"' 2>"$dir/err") || true
	[ "$got" = 0 ] || fail "$shell: $got variables of weft"
	got=$(LD_PRELOAD="$dir/none.so libm.so.6" "$weft" run --no-children -- $shell -c 'env | grep ^LD_PRELOAD' 2>"$dir/err") || true
	[ "$got" = "LD_PRELOAD=$dir/none.so:libm.so.6" ] || fail "$shell: $got"
done
