#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: a process that does not live for long is counted and costs no thread; one that does is recorded, whatever it
# does; a child that is forked in any state of the others works.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
small=$WEFT_BUILD/test/run_small
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD WEFT_START_AFTER_MS
fail() {
	echo "FAILED: $*"
	exit 1
}
run() { # ARGUMENT...: weft run into $dir/rec, with the report in $dir/json
	rm -rf "$dir/rec"
	"$weft" run -o "$dir/rec" "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/out" "$dir/err"; fail "it failed: $*"; }
	"$weft" report --json "$dir/rec" >"$dir/json" || fail "no report: $*"
}
is() { # FILTER: whether jq says true
	jq -e "$1" "$dir/json" >/dev/null || { jq -c '{short_processes, recordings: [.recordings[] | {pid, incomplete, cpu: .cpu.samples}]}' "$dir/json"; fail "not so: $1"; }
}
good() {
	[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
}

# One that ends at once is a line, and nothing else is there.
run -- true
is '.recordings == [] and .short_processes.count == 1 and .short_processes.programs[0].name == "true"'
[ "$(ls "$dir/rec")" = short-processes.txt ] || fail "files: $(ls "$dir/rec")"
grep -q '^1 process ended before weft started in it, with .* of CPU (true 1)$' "$dir/err" || { cat "$dir/err"; fail "it is not in the text"; }
grep -q '^weft run --start-after 0 records such' "$dir/err" || fail "the text does not say how it would be recorded"
grep -q '^weft: no recording is in .*; the reason is above$' "$dir/err" ||
	fail "the text names a recording that is not there"
# Whatever becomes of the report, the exit status is the program's.
code=0
"$weft" run -- sh -c 'exit 3' 2> >(:) || code=$?
[ "$code" = 3 ] || fail "with a closed pipe for its report the status is $code"
# Those that are killed before, by exec and by fork, are counted, without their CPU time; what ends or becomes another
# program is not among them.
run --start-after 60000 -- \
	sh -c '/bin/true; sh -c "kill -9 \$\$"; sh -c "exec sh -c \"kill -9 \\\$\\\$\""; exec sh -c "exit 0"'
is '.short_processes.count == 2 and .short_processes.no_end_seen == 2'
grep -q '^2 processes began without weft starting in them or an exit: a signal ended them, or they still' "$dir/err" ||
	{ cat "$dir/err"; fail "the text does not say how many were killed"; }
run --start-after 60000 -- "$small" killed 3
good
is '.short_processes.count == 2 and .short_processes.no_end_seen == 3'
run --start-after 0 -- true
is '(.recordings | length) == 1 and .short_processes == null'

# Children by exec and by fork, which end by exit and by _exit; all of them are counted, whoever else is recorded.
run -- sh -c 'i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i + 1)); done'
is '(.short_processes.programs | map(select(.name == "true"))[0].count) == 40'
run -- "$small" forks 60
good
is '.short_processes.count + (.recordings | length) == 61 and .short_processes.cpu_ns > 0'

# CPU time in fork is not the program's own: one that does nothing else is recorded when it has lived for ten times as
# long. A run that other work kept from ending before that says nothing.
for try in 1 2 3 4 5; do
	begin=$(date +%s%N)
	run --start-after 200 -- "$small" forks 2500
	good
	[ $(($(date +%s%N) - begin)) -ge 2000000000 ] || break
	[ "$try" -lt 5 ] || fail "2500 forks took two seconds, five times"
done
is '.recordings == [] and .short_processes.count == 2501'
run -- "$small" forks 8000
good
is '(.recordings | length) >= 1 and .short_processes.count + (.recordings | length) == 8001'

# A program that makes no call is recorded when it has used 50 ms of CPU time, and the report says what is not in it.
run -- "$small" spin 400
good
is '(.recordings | length) == 1 and .recordings[0].cpu.samples > 0 and ([.recordings[0].cpu.functions[].function] | index("burn_without_calls") != null)'
is '[.recordings[0].incomplete[] | select(.what == "late_start" and (.meaning | test("^the recording began .* after the process")))] | length == 1'
# A child is a process of its own.
run -- "$small" child 400
good
is '(.recordings | length) == 2 and (.recordings | all(.cpu.samples > 0))'
run --no-children -- "$small" child 400
is '(.recordings | length) == 1'

# Whatever the program is in the middle of.
for _ in 1 2 3; do
	run -- "$small" dlopen "$WEFT_BUILD/test/librun_slow.so"
	good
done
run -- "$small" import "$WEFT_BUILD/test/librun_slow.so"
good
# A start takes milliseconds: who waits by poll or select for less is not made to wait for it. These two start by
# nothing else.
run --start-after 60000 -- "$small" hurry
good
is '.recordings == [] and .short_processes.count == 1'
run --start-after 60000 -- "$small" polls
good
is '(.recordings | length) == 1'
"$small" handler >"$dir/out"
good
run -- "$small" handler
good
run -- "$small" defaults
good
# Threads that end without a sample are counted once each: with the main thread there are 81.
run -- "$small" threads 80
good
is '.recordings[0].cpu_clock | .threads_without_a_sample > 0 and .threads_without_a_sample <= 81'
"$small" light >"$dir/out"
good
run -- "$small" light
good
