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
until_it() { # COMMAND...: tries it for 10 s
	local i
	for ((i = 0; i < 200; i++)); do
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
# Stacks are whole when the tables for them are made, by a thread that is there for that and lets all others go first.
settled() { # PID
	! grep -qsx weft-tables "/proc/$1/task"/*/comm
}
# A free port: the kernel gives one.
port() {
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
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
	"$weft" report "$dir/rec" >"$dir/report" 2>/dev/null
	grep -q "$1" "$dir/report" || { cat "$dir/report"; fail "the report does not name $1"; }
	[ -z "${2:-}" ] || grep -qE "$2.* > $1" "$dir/report" || { cat "$dir/report"; fail "no stack from $2 to $1"; }
	did=$((did + 1))
	rm -rf "$dir/rec"
}

# redis-server: a command that sleeps.
if has redis-server && has redis-cli; then
	at=$(port)
	"$weft" run -o "$dir/rec" -- redis-server --port "$at" --bind 127.0.0.1 --save '' --dir "$dir" \
		--enable-debug-command yes >"$dir/out" 2>"$dir/err" &
	server=$!
	until_it redis-cli -p "$at" ping
	until_it settled "$(redis-cli -p "$at" info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')"
	[ "$(redis-cli -p "$at" debug sleep 0.02)" = OK ] || fail "redis does not sleep"
	redis-cli -p "$at" shutdown nosave
	wait "$server" || fail "redis-server ended with $?"
	server=
	found nanosleep debugCommand
fi

# nginx: its access log is a pipe that is full, until somebody reads it 20 ms after the request.
if has nginx; then
	at=$(port)
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
			server { listen 127.0.0.1:$at; location / { return 200 "hello"; } }
		}
	END
	[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$dir/nginx.conf"
	/usr/bin/python3 - "$at" "$dir" "$weft" <<-'END' >"$dir/out" 2>&1 || { cat "$dir/out"; fail "nginx"; }
		import os, signal, socket, subprocess, sys, time
		at, where, weft = int(sys.argv[1]), sys.argv[2], sys.argv[3]
		log = os.open(where + '/log', os.O_RDWR | os.O_NONBLOCK)
		run = subprocess.Popen([weft, 'run', '-o', where + '/rec', '--', 'nginx', '-c', where + '/nginx.conf'])

		def ask(wait=True):
		    peer = socket.create_connection(('127.0.0.1', at), 5)
		    peer.sendall(b'GET / HTTP/1.0\r\n\r\n')
		    while wait and peer.recv(4096):
		        pass
		    return peer

		try:
		    until = time.monotonic() + 10
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
		    while any(open('/proc/%s/task/%s/comm' % (worker, task)).read() == 'weft-tables\n'
		              for task in os.listdir('/proc/%s/task' % worker)) and time.monotonic() < until:
		        time.sleep(0.05)
		    try:
		        while True:
		            os.write(log, b'x' * 4096)
		    except BlockingIOError:
		        pass
		    peer = ask(wait=False)
		    # The worker writes to the log when the answer is out, and closes the connection after that.
		    peer.recv(4096)
		    time.sleep(0.03)
		    try:
		        while os.read(log, 65536):
		            pass
		    except BlockingIOError:
		        pass
		    ask()
		    os.kill(int(master), signal.SIGQUIT)
		    sys.exit(run.wait(20))
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
