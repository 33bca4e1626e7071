#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run: programs that know nothing of weft are recorded, and behave as they do without it.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
weft=$WEFT_BUILD/weft
loop=$WEFT_BUILD/test/run_loop
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
fail() {
	echo "FAILED: $*"
	exit 1
}
run() { # STATUS ARGUMENT...: weft run into $dir/rec, with its output in $dir/out and $dir/err, and the report in $dir/json
	local wanted=$1 got=0
	shift
	rm -rf "$dir/rec"
	"$weft" run -o "$dir/rec" "$@" >"$dir/out" 2>"$dir/err" || got=$?
	[ "$got" = "$wanted" ] || { cat "$dir/err"; tail -5 "$dir/out"; fail "exit status $got instead of $wanted: $*"; }
	"$weft" report --json "$dir/rec" >"$dir/json" 2>/dev/null || echo '{"recordings":[]}' >"$dir/json"
}
is() { # FILTER: whether jq says true
	jq -e "$1" "$dir/json" >/dev/null || { jq -c '.recordings[] | {polls, program_events}' "$dir/json"; fail "not so: $1"; }
}
waited() { # NAME: durations in ns of its waits that were long
	local file
	for file in "$dir"/rec/*.weft; do
		"$weft" inspect --events "$file"
	done | sed -n "s/.* wait  what=[0-9]*  name=\"$1\".* duration=\([0-9]*\) ns.*/\1/p"
}

# The loop: ticks, the function that burnt CPU in them, the sleep.
run 0 --hz 500 -- "$loop"
[ "$(cat "$dir/out")" = "done" ] || fail "another output: $(cat "$dir/out")"
is '.recordings | length == 1'
is '.recordings[0].polls.count + .recordings[0].polls_running | . >= 19 and . <= 20'
is '[.recordings[0].locations[].location] | index("epoll_wait loop") != null'
is '[.recordings[0].cpu.functions[].function] | index("burn_in_the_loop") != null'
is '[.recordings[0].workers[].worker] | index("loop/0") != null'
grep -q 'burn_in_the_loop' "$dir/err" || fail "no report at the end"
naps=$(waited nanosleep)
[ "$naps" -ge 20000000 ] || fail "the sleep of 20 ms was not seen: $naps"

# Waits inside a tick that are not the loop's own, and a lock that somebody holds.
run 0 -- "$loop" block
[ "$(waited poll)" -ge 14000000 ] || fail "poll in an epoll loop was not seen"
[ "$(waited pthread_mutex_lock | sort -n | tail -1)" -ge 24000000 ] || fail "the lock was not seen"
# What the thread did that had the lock, which has no loop; that is told of the thread, and is not among the waits that
# matter.
is '.recordings[0].longest_waits | map(select(.name == "pthread_mutex_lock"))[0].holder.doing | test("nanosleep")'
is '.recordings[0].waits_by_thread | map(select(.name == "nanosleep" and .total_ns >= 25000000)) | length == 1'
is '.recordings[0].longest_waits | map(select(.name == "nanosleep" or .name == "epoll_wait")) == []'

# How it ended.
run 3 -- "$loop" exit 3
run 137 -- "$loop" kill 9
tr -s ' \n' ' ' <"$dir/err" | grep -q 'killed by signal 9 (SIGKILL), and the end of its recording was recovered' ||
	{ cat "$dir/err"; fail "the page does not say how it ended"; }
is '.recordings[0].polls.count >= 15'
run 139 -- "$loop" kill 11
run 0 -- "$loop" cancel
# No wait of one thread ends with EINTR because another one blocks the signals of the samples.
run 0 --start-after 0 -- "$loop" masked

# Threads, each a worker; children by fork and by exec.
run 0 -- "$loop" threads 4
is '[.recordings[0].workers[].worker] | map(select(startswith("loop/"))) | length == 4'
run 0 -- "$loop" fork
is '.recordings | length == 2 and all(.polls.count >= 15)'
is '.recordings | all([.locations[].location] | index("epoll_wait loop") != null)'
run 3 -- sh -c "'$loop'; '$loop' exit 3"
is '[.recordings[] | select(.polls.count >= 15)] | length == 2'
run 3 --no-children -- sh -c "env; '$loop' exit 3"
if grep -E '^(LD_PRELOAD|WEFT_PRELOAD)' "$dir/out"; then fail "children are still recorded"; fi
other=$(ldconfig -p | sed -n 's/.*libm\.so\.6 .*x86-64.* => //p' | head -1)
if [ -n "$other" ]; then
	got=$(LD_PRELOAD=$other "$weft" run --no-children -- sh -c 'echo "$LD_PRELOAD"' 2>/dev/null)
	[ "$got" = "$other" ] || fail "LD_PRELOAD is $got"
fi
is '[.recordings[] | select(.polls.count != null and .polls.count > 0)] | length == 0'

# A script that does not name its interpreter, with arguments and without.
printf 'echo "$#:$1"; exit 4\n' >"$dir/script"
chmod +x "$dir/script"
run 4 -- "$dir/script" 'a b' c
[ "$(cat "$dir/out")" = '2:a b' ] || fail "the script has other arguments: $(cat "$dir/out")"
run 4 -- "$dir/script"
[ "$(cat "$dir/out")" = '0:' ] || fail "the script has arguments: $(cat "$dir/out")"

# Of several processes the one that did the most comes first, and those that did little are rows.
run 0 --start-after 0 -- sh -c "/bin/true; /bin/true; '$loop'; true"
head -1 "$dir/err" | grep -q '^run_loop ' || fail "the report begins with: $(head -1 "$dir/err")"
[ "$(waited 'wait[a-z0-9]*' | sort -n | tail -1)" -ge 50000000 ] || fail "the shell's wait was not seen"
sed -n '/^Other processes/,$p' "$dir/err" | grep -Eq '^[0-9]+ +sh -c ' || { cat "$dir/err"; fail "the shell is not in the table"; }

# A signal for the command is one for the program.
mkfifo "$dir/pipe"
"$weft" run -- "$loop" wait >"$dir/pipe" 2>"$dir/err" &
pid=$!
read -r line <"$dir/pipe"
[ "$line" = ready ] || fail "no loop: $line"
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
[ "$got" = 9 ] || fail "SIGTERM was not passed on: $got"
grep -Eq 'event loop|epoll_wait loop' "$dir/err" || fail "no report after the signal"

# Who ends it may do so more than once, as timeout does: the report comes, and nothing stays behind.
"$weft" run -- "$loop" wait >"$dir/pipe" 2>"$dir/err" &
pid=$!
read -r line <"$dir/pipe"
kill -TERM "$pid"
while kill -TERM "$pid" 2>/dev/null; do :; done
got=0
wait "$pid" || got=$?
[ "$got" = 9 ] || fail "exit status $got after many signals"
grep -Eq 'event loop|epoll_wait loop' "$dir/err" || fail "no report after many signals"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# Signals that were ignored still are: SIGPIPE is bit 12, SIGINT bit 1.
ignored=$( (trap '' PIPE INT; "$weft" run -- grep SigIgn /proc/self/status 2>/dev/null) | cut -f2)
[ $((0x$ignored & 0x1002)) = $((0x1002)) ] || fail "ignored signals: $ignored"

# Nobody reads the report: the status is still the program's.
got=0
"$weft" run -- "$loop" exit 3 2> >(true) >/dev/null || got=$?
[ "$got" = 3 ] || fail "exit status $got when the report was not read"

# A daemon that gives away its rights and goes to live in another root, as servers do that root starts: it is recorded
# to its end.
if [ "$(id -u)" = 0 ] && command -v python3 >/dev/null; then
	mkdir "$dir/jail"
	WEFT_SEGMENT_SECONDS=1 run 5 -- /usr/bin/python3 -c '
import os, select, sys
poll = select.poll()
poll.register(os.pipe()[0])
os.chroot(sys.argv[1])
os.chdir("/")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for i in range(250):
    poll.poll(10)
os._exit(5)' "$dir/jail"
	is '[.recordings[].polls.count // 0] | add >= 245'
	[ -z "$(ls -A "$dir/jail")" ] || fail "in the jail: $(ls -A "$dir/jail")"
	# A user namespace, which is for processes of one thread: weft has none for that moment, and goes on.
	if unshare -Ur true 2>/dev/null; then
		run 5 -- unshare -Ur /usr/bin/python3 -c 'import os, select
poll = select.poll()
poll.register(os.pipe()[0])
for i in range(20):
    poll.poll(5)
os._exit(5)'
		is '[.recordings[].polls.count // 0] | add >= 15'
	fi
	# One that keeps capabilities, which are a thread's own, when it gives away its user. Its threads all are the
	# other user's soon.
	run 3 -- setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'exit 3'
	run 0 -- /usr/bin/python3 -c '
import glob, os, sys, time
os.setgroups([65533])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ids = lambda: {tuple(line for line in open(path) if line[:3] in ("Uid", "Gid", "Gro")) for path in glob.glob("/proc/self/task/*/status")}
until = time.monotonic() + 20
while len(ids()) > 1 and time.monotonic() < until:
    time.sleep(0.01)
print(sorted("".join(one).split() for one in ids()))'
	[ "$(cat "$dir/out")" = "[['Uid:', '65534', '65534', '65534', '65534', 'Gid:', '65534', '65534', '65534', '65534', 'Groups:', '65533']]" ] ||
		fail "threads of other users: $(cat "$dir/out")"
fi

# A daemon goes on when its parent has ended, and so does its recording.
"$weft" run -- sh -c "'$loop' wait >'$dir/pipe' 2>/dev/null & read -r line <'$dir/pipe'" 2>"$dir/err" >/dev/null || fail "exit status $?"
daemon=$(sed -n 's/.*still run and are recorded: \([0-9]*\);.*/\1/p' "$dir/err")
kept=$(sed -n 's/.* weft recover \([^ ]*\) and .*/\1/p' "$dir/err")
[ -n "$daemon" ] && [ -d "$kept" ] || { cat "$dir/err"; fail "nothing about the daemon"; }
kill -TERM "$daemon"
for _ in $(seq 400); do
	"$weft" recover "$kept" >/dev/null 2>&1 || true
	ls "$kept"/*.rings >/dev/null 2>&1 || break
	sleep 0.05
done
"$weft" report --full "$kept" >"$dir/report" 2>/dev/null || fail "no report of the daemon"
grep -q 'epoll_wait loop' "$dir/report" || fail "not in the report: the daemon"
rm -rf "$kept"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# Descriptors.
mkdir "$dir/files"
run 0 -- "$WEFT_BUILD/test/run_files" "$dir/files"
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
"$WEFT_BUILD/test/run_private" plain >/dev/null || fail "run_private by itself"
run 0 --start-after 0 -- "$WEFT_BUILD/test/run_private" recorded
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
is '.recordings[0].cpu.samples > 0'
WEFT_SAMPLE_ENGINE=perf run 0 --start-after 0 -- "$WEFT_BUILD/test/run_files" "$dir/files"
[ "$(cat "$dir/out")" = good ] || fail "$(cat "$dir/out")"
# Nothing of weft's is ever listed, whichever engine samples: the starter's files, the collector's, perf events.
for engine in auto timer perf; do
	WEFT_SAMPLE_ENGINE=$engine run 0 -- "$WEFT_BUILD/test/run_listed" 600
	[ "$(cat "$dir/out")" = good ] || fail "$engine: $(cat "$dir/out")"
	is '.recordings[0].cpu.samples > 0'
done
# A thread with a loop has a file in the program's table, which the program does not see.
run 0 --start-after 0 -- "$WEFT_BUILD/test/run_listed" 600 loop
[ "$(cat "$dir/out")" = good ] || fail "loop: $(cat "$dir/out")"
is '[.recordings[0].workers[].worker] | map(select(startswith("loop/"))) | length > 0'
run 0 --hz 1999 --start-after 0 -- "$WEFT_BUILD/test/run_listed" 600
[ "$(cat "$dir/out")" = good ] || fail "above the tick: $(cat "$dir/out")"
is '.recordings[0].cpu.samples > 0'

# Programs as they are. Their output and status are what they are without weft.
stock() { # PROGRAM ARGUMENT...
	local status=0
	command -v "$1" >/dev/null || { echo "no $1 here"; return 0; }
	"$@" >"$dir/plain" 2>"$dir/plain.err" || status=$?
	run "$status" -- "$@"
	cmp "$dir/plain" "$dir/out" || fail "$1 says something else"
	is '.recordings[0].cpu.samples > 0'
}
stock sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c where x<700000) select sum(x) from c'
stock /usr/bin/python3 -c 'import sys, os; print(sum(i * i for i in range(2000000)), os.open("/", 0)); sys.exit(4)'
stock node -e 'setTimeout(() => { const end = Date.now() + 60; while (Date.now() < end); console.log("late"); process.exit(7) }, 5)'

# A loop in Python, with a sleep in a callback.
run 0 -- /usr/bin/python3 -c '
import asyncio, time
async def main():
    for i in range(10):
        await asyncio.sleep(0.002)
        if i == 7:
            time.sleep(0.02)
asyncio.run(main())'
is '.recordings[0].polls.max_ns >= 20000000'
[ "$(waited clock_nanosleep)" -ge 20000000 ] || fail "time.sleep was not seen"

# One that records itself is not recorded twice.
run 0 -- "$WEFT_BUILD/test/symbolize_program" 2
is '.recordings | length == 1'

# What cannot be done is said.
run 127 -- no-such-program
grep -q "no program 'no-such-program' in PATH" "$dir/err" || fail "$(cat "$dir/err")"
run 126 -- /etc/passwd
if echo 'int main(void) { return 0; }' | cc -static -x c -o "$dir/static" - 2>/dev/null; then
	run 126 -- "$dir/static"
	grep -q 'statically linked' "$dir/err" || fail "$(cat "$dir/err")"
fi
mkdir "$dir/bin"
cp "$weft" "$dir/bin/weft"
got=0
"$dir/bin/weft" run -- true 2>"$dir/err" || got=$?
[ "$got" = 125 ] || fail "without the library: $got"
grep -q 'cannot find libweft-preload.so; it was looked for in ' "$dir/err" || fail "$(cat "$dir/err")"

# Nothing is left behind where nothing was to be kept.
"$weft" run -- "$loop" >/dev/null 2>&1
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
(cd "$dir" && "$weft" run --keep -- "$loop" >/dev/null 2>&1 && ls weft-run_loop-*/*.weft >/dev/null) || fail "--keep kept nothing"
