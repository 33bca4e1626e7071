#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run takes at most 64 MiB of address space at first: of what a program is allowed to have, and of what it locks.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
program=$WEFT_BUILD/test/run_space
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
most=$((64 * 1024))
fail() {
	echo "FAILED: $*"
	exit 1
}
# recorded AFTER WHAT: what the program says when it is recorded.
recorded() {
	"$weft" run -o "$dir/$1-$2" --start-after "$1" -- "$program" "$2" recorded 2>"$dir/err" || { head -20 "$dir/err"; fail "$2: it ended with $?"; }
}

near() { # KIB EXPECTED: a page of a heap that is touched earlier may be more or less
	[ "$1" -ge $(($2 * 9 / 10)) ] && [ "$1" -le $(($2 + 1024)) ]
}

plain=$("$program" size)
for after in 0 50; do
	size=$(recorded $after size)
	echo "started after $after ms: $((size - plain)) KiB of address space"
	[ $((size - plain)) -le $most ] || fail "$((size - plain)) KiB"
done

[ "$("$program" limit)" = allocated ] || fail "not even by itself"
for after in 0 50; do
	[ "$(recorded $after limit)" = allocated ] || fail "with RLIMIT_AS: malloc failed"
	[ -n "$(find "$dir/$after-limit" -name '*.weft')" ] || fail "with RLIMIT_AS: not recorded"
done

# Without privilege, and with a limit that the program is below and weft is not.
chmod 755 "$dir"
read -r plain plain_more < <("$program" little)
[ "$plain" != refused ] || fail "not even by itself"
for after in 0 50; do
	read -r locked more < <(recorded $after little)
	echo "started after $after ms: mlockall below 8 MiB locks $locked KiB ($plain alone), then $more ($plain_more)"
	[ "$locked" != refused ] || fail "mlockall was refused below RLIMIT_MEMLOCK"
	near "$locked" "$plain" || fail "$locked KiB are locked, not $plain"
	near "$more" "$plain_more" || fail "$more KiB are locked later, not $plain_more"
	[ -n "$(find "$dir/$after-little" -name '*.weft*')" ] || fail "with mlockall: not recorded"
done

read -r plain ms < <("$program" lock) || true
if [ "$plain" = refused ]; then
	echo "mlockall is not allowed here, by the limit of locked memory: not tried"
	exit 0
fi
for after in 0 50; do
	read -r locked ms < <(recorded $after lock)
	echo "started after $after ms: mlockall locks $((locked - plain)) KiB more, in $ms ms"
	[ $((locked - plain)) -le $most ] || fail "$((locked - plain)) KiB"
	[ "$ms" -le 1000 ] || fail "mlockall took $ms ms"
done
