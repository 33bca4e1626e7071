#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft run on servers as their packages have them, each with one block of 20 ms in its loop: the report has the poll,
# the call and its stack.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
weft=$WEFT_BUILD/weft
unset DEBUGINFOD_URLS WEFT_DIR LD_PRELOAD
did=0
fail() {
	echo "FAILED: $*"
	exit 1
}
until_it() { # COMMAND...: tries it for 60 s
	local until=$((SECONDS + 60))
	while [ $SECONDS -lt $until ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	fail "it did not come to this: $*"
}
has() { # PROGRAM
	command -v "$1" >/dev/null && return 0
	echo "no $1 here: install it, or run tools/bootstrap check"
	return 1
}
# Stacks are whole when the tables for them are made, by a thread that is there for that and lets all others go first. A
# thread that has hardly begun has the name of the program yet.
settled() { # PID
	! grep -qsx weft-tables "/proc/$1/task"/*/comm && [ "$(grep -lsxF "$(cat "/proc/$1/comm")" "/proc/$1/task"/*/comm | wc -l)" = 1 ]
}
# The wait, by its call, in some thread's ring; the poll it was in; the call at the end of a stack with a function of
# the program's.
found() { # CALL FUNCTION
	local file polls
	for file in "$dir"/rec/*.weft; do
		"$weft" inspect --events "$file"
	done >"$dir/events"
	sed -n "s/.* wait  what=[0-9]*  name=\"$1\".* duration=\([0-9]*\) ns.*/\1/p" "$dir/events" |
		awk '$1 >= 20000000 && $1 < 2000000000 { found = 1 } END { exit !found }' ||
		{ grep ' wait' "$dir/events"; fail "no wait of 20 ms in $1"; }
	"$weft" report --json "$dir/rec" >"$dir/json" 2>/dev/null
	polls=$(jq '[.recordings[].polls.max_ns // 0] | max' "$dir/json")
	[ "$polls" -ge 20000000 ] || fail "the longest poll is $polls ns"
	"$weft" report --full "$dir/rec" >"$dir/report" 2>/dev/null
	grep -q "$1" "$dir/report" || { cat "$dir/report"; fail "the report does not name $1"; }
	[ -z "${2:-}" ] || grep -qE "$2.* > $1" "$dir/report" || { cat "$dir/report"; fail "no stack from $2 to $1"; }
	did=$((did + 1))
	rm -rf "$dir/rec"
}

# redis-server: a command that sleeps.
if has redis-server && has redis-cli; then
	redis() { # COMMAND...
		redis-cli -s "$dir/redis" "$@"
	}
	"$weft" run -o "$dir/rec" -- redis-server --port 0 --unixsocket "$dir/redis" --save '' --dir "$dir" \
		--enable-debug-command yes >"$dir/out" 2>"$dir/err" &
	server=$!
	until_it redis ping
	until_it settled "$(redis info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')"
	[ "$(redis debug sleep 0.02)" = OK ] || fail "redis does not sleep"
	redis shutdown nosave
	wait "$server" || fail "redis-server ended with $?"
	server=
	found nanosleep debugCommand
fi

# nginx: its access log is a pipe that is full, until somebody reads it when the worker has been in its write for 30 ms.
if has nginx; then
	mkfifo "$dir/log"
	cat >"$dir/nginx.conf" <<-END
		daemon off;
		worker_processes 1;
		pid $dir/nginx.pid;
		error_log $dir/nginx.err;
		events { worker_connections 64; }
		http {
			access_log $dir/log;
			client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
			uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
			server { listen unix:$dir/nginx; location / { return 200 "hello"; } }
		}
	END
	[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$dir/nginx.conf"
	/usr/bin/python3 - "$dir" "$weft" <<-'END' >"$dir/out" 2>&1 || { cat "$dir/out"; fail "nginx"; }
		import os, signal, socket, subprocess, sys, time
		where, weft = sys.argv[1:]
		log = os.open(where + '/log', os.O_RDWR | os.O_NONBLOCK)
		run = subprocess.Popen([weft, 'run', '-o', where + '/rec', '--', 'nginx', '-c', where + '/nginx.conf'])

		def ask(wait=True):
		    peer = socket.socket(socket.AF_UNIX)
		    peer.settimeout(60)
		    peer.connect(where + '/nginx')
		    peer.sendall(b'GET / HTTP/1.0\r\n\r\n')
		    while wait and peer.recv(4096):
		        pass
		    return peer

		def wait_until(true, what):
		    until = time.monotonic() + 60
		    while not true():
		        if time.monotonic() > until:
		            sys.exit(what)
		        time.sleep(0.005)

		# As above: one that has hardly begun has the name of the program yet.
		def settled():
		    names = []
		    for task in os.listdir('/proc/%s/task' % worker):
		        try:
		            with open('/proc/%s/task/%s/comm' % (worker, task)) as file:
		                names.append(file.read())
		        except OSError:
		            pass  # it has ended
		    return 'weft-tables\n' not in names and names.count('nginx\n') == 1

		def writing():
		    with open('/proc/%s/syscall' % worker) as file:
		        call = file.read().split()
		    return len(call) > 1 and os.path.realpath('/proc/%s/fd/%d' % (worker, int(call[1], 16))) == log_path

		log_path = os.path.realpath(where + '/log')
		try:
		    until = time.monotonic() + 60
		    while True:
		        try:
		            for i in range(5):
		                ask()
		            break
		        except OSError:
		            if time.monotonic() > until:
		                raise
		            time.sleep(0.05)
		    with open(where + '/nginx.pid') as file:
		        master = file.read().strip()
		    with open('/proc/%s/task/%s/children' % (master, master)) as file:
		        worker = file.read().split()[0]
		    wait_until(settled, 'the tables for stacks are not made')
		    try:
		        while True:
		            os.write(log, b'x' * 4096)
		    except BlockingIOError:
		        pass
		    peer = ask(wait=False)
		    # The worker writes to the log when the answer is out, and closes the connection after that.
		    peer.recv(4096)
		    wait_until(writing, 'the worker does not write to its log')
		    time.sleep(0.03)
		    try:
		        while os.read(log, 65536):
		            pass
		    except BlockingIOError:
		        pass
		    ask()
		    os.kill(int(master), signal.SIGQUIT)
		    sys.exit(run.wait(60))
		finally:
		    if run.poll() is None:
		        run.kill()
	END
	found write _start
fi

# node: a callback that waits for memory to change, which it does not.
if has node; then
	got=0
	"$weft" run -o "$dir/rec" -- node -e '
		const cell = new Int32Array(new SharedArrayBuffer(4));
		let n = 0;
		const timer = setInterval(() => {
			if (++n === 5) Atomics.wait(cell, 0, 0, 20);
			if (n === 8) { clearInterval(timer); process.exitCode = 6; }
		}, 5)' >"$dir/out" 2>"$dir/err" || got=$?
	[ "$got" = 6 ] || { cat "$dir/err"; fail "node ended with $got"; }
	found pthread_cond_timedwait
fi
[ "$did" != 0 ] || exit 77
