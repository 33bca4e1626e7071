#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: locks, conditions and semaphores of a program that knows nothing of weft answer as they do without it, and
# what it waited for them, and in other calls on any thread, is told as long as it was.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
locks=$WEFT_BUILD/test/run_locks
waits=$WEFT_BUILD/test/run_waits
blocks=$WEFT_BUILD/test/run_blocks
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}
run() { # ARGUMENT...: weft run into $dir/rec, with the program's output in $dir/out and its events in $dir/events
	local file
	rm -rf "$dir/rec"
	"$weft" run -o "$dir/rec" -- "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; fail "it failed: $*"; }
	for file in "$dir"/rec/*.weft; do
		"$weft" inspect --events "$file"
	done >"$dir/events"
}

# The rules, in a program that is alone until its threads come, and in one that has made a thread before main.
for early in "" 1; do
	RUN_LOCKS_EARLY=$early "$locks" >"$dir/plain"
	RUN_LOCKS_EARLY=$early run "$locks"
	diff "$dir/plain" "$dir/out" || fail "it answers otherwise"
done

# Waits of known length, with who had it: each is there, no shorter and no longer than the program measured itself, but
# for 1 % that the clocks may differ by. The program tries again until it can measure to 5 % or 200 us.
as_measured() { # KINDS: that many are in $dir/out, and the last of each is in $dir/events
	local name least most holder
	[ "$(cut -d' ' -f1 "$dir/out" | sort -u | wc -l)" = "$1" ] || fail "not $1 kinds of waits: $(cat "$dir/out")"
	while read -r name least most holder; do
		sed -n "s/.* wait  what=[0-9]*  name=\"$name\".* duration=\([0-9]*\) ns  holder=\([0-9]*\) .*/\1 \2/p" "$dir/events" |
			awk -v least="$least" -v most="$most" -v holder="$holder" '
				$1 >= least - 0.01 * least && $1 <= most + 0.01 * most && $2 == holder { found = 1 } END { exit !found }' ||
			{ cat "$dir/events"; fail "no wait of $least to $most ns in $name for $holder"; }
	done <"$dir/out"
}
run "$waits" truth
as_measured 6
mkdir "$dir/blocks"
run "$blocks" "$dir/blocks"
as_measured 12

# Eight threads under one lock. What they waited is the same in many events and sums as in one number, within 5 %;
# together with the work, which is one core's, it is their time, but for what the machine did meanwhile.
run "$waits" crowd
read -r work waited lives <"$dir/out"
told=$(sed -n -e 's/.* wait  .*name="pthread_mutex_lock".* duration=\([0-9]*\) ns.*/\1/p' \
	-e 's/.* wait_sum  .*name="pthread_mutex_lock".* total=\([0-9]*\) ns.*/\1/p' "$dir/events" |
	awk '{ n += $1 } END { printf "%.0f", n }')
echo "work $work, waits $waited, told $told, lives $lives"

# The lock is named by its variable in tables and saved questions, as in the report.
ask() { # ARGUMENT...: the rows of weft query
	"$weft" query --csv "$dir/rec" "$@" | tr -d '\r' | tail -n +2
}
[ "$(ask "select distinct object_name from wait where kind = 'lock'")" = lock ] || fail "table wait does not name it"
for question in locks lock-holders; do
	ask --run $question | grep -q '^lock,lock,' || fail "$question does not name the variable"
done
[ "$(ask --no-symbols "select count(object_name) from wait")" = 0 ] ||
	fail "--no-symbols names the variable"
off=$((told > waited ? told - waited : waited - told))
[ $((off * 20)) -le "$waited" ] || fail "waits of $waited ns, told $told"
[ $((work * 6)) -le "$lives" ] || fail "$work ns of work in $lives: more than one at a time"
