#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The server of weft view: who gets what."""
# presets: release
# timeout: 60
import atexit
import gzip
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

weft = os.path.join(os.environ["WEFT_BUILD"], "weft")
golden = os.path.join(os.environ["WEFT_SOURCE"], "test/golden/server/0.weft")
failed = 0


def check(what, is_so):
    global failed
    if not is_so:
        print("FAILED: " + what)
        failed += 1


class View:
    """A running weft view."""

    def __init__(self, *paths, args=("--no-open",), env=None, stderr=None):
        self.child = subprocess.Popen([weft, "view", *args, *paths], stdout=subprocess.PIPE, stderr=stderr, text=True,
                                      env=env)
        atexit.register(self.child.kill) # also when a check fails with an exception
        line = self.child.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/\n", line)
        if not found:
            raise SystemExit("weft view said: " + line)
        self.port, self.token = int(found[1]), found[2]

    def get(self, path, method="GET", body=None, **headers):
        """Status, headers and body, of exactly that path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": "127.0.0.1:%d" % self.port, **headers}.items():
                if value is not None:
                    connection.putheader(name.replace("_", "-"), value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def mine(self, path, **headers):
        return self.get("/%s/%s" % (self.token, path), **headers)

    def query(self, sql, **headers):
        """Status, and the answer when there is one."""
        path = "/%s/api/query" % self.token
        status, _, body = self.get(path, method="POST", body=sql.encode(), **headers)
        return status, json.loads(body) if status == 200 else body

    def end(self):
        self.child.send_signal(signal.SIGINT)
        return self.child.wait(10)


def refused(view):
    other = "0" * 32
    for path in ("/", "/index.html", "/favicon.ico", "/api/files", "/%s/" % other, "/%s/api/file/0" % other,
                 "/" + view.token):
        status, headers, body = view.get(path)
        check("%s without the token is %d" % (path, status), status == 403 and b"token" in body)
        check("%s shows nothing of the trace" % path, b"weft" not in body.replace(b"weft view", b""))
    for host in "evil.example", "evil.example:%d" % view.port, "127.0.0.1", "127.0.0.1:1", None:
        check("Host %s" % host, view.mine("api/files", Host=host)[0] in (400, 403))
    for origin in "http://evil.example", "null", "https://127.0.0.1:%d" % view.port:
        check("Origin %s" % origin, view.mine("api/files", Origin=origin)[0] == 403)
    check("own Origin", view.mine("api/files", Origin="http://127.0.0.1:%d" % view.port)[0] == 200)
    check("localhost", view.mine("api/files", Host="localhost:%d" % view.port)[0] == 200)
    for path in ("../../etc/passwd", "api/file/../../../etc/passwd", "api/file/1", "api/file/-1", "api/file/0x0",
                 "api/file/%2e%2e/", "api/", "api/file/", "..%2f..%2fetc%2fpasswd", "nothing", "app.js/"):
        check(path, view.mine(path)[0] == 404)
    for method in "POST", "PUT", "DELETE", "OPTIONS":
        check(method, view.get("/%s/" % view.token, method=method)[0] == 405)


def served(view):
    status, headers, body = view.mine("")
    check("the page", status == 200 and b"<!doctype html>" in body)
    policy = headers["Content-Security-Policy"]
    check("policy " + policy, "default-src 'none'" in policy and "unsafe-inline" not in policy)
    check("no eval", "'unsafe-eval'" not in policy)
    check("nosniff", headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer")
    check("no-store", headers["Cache-Control"] == "no-store")
    status, headers, packed = view.mine("weft.wasm", Accept_Encoding="gzip, br")
    check("packed", status == 200 and headers["Content-Encoding"] == "gzip")
    check("type", headers["Content-Type"] == "application/wasm")
    status, headers, plain = view.mine("weft.wasm")
    check("not packed", headers["Content-Encoding"] is None and plain == gzip.decompress(packed))
    check("a module", plain[:4] == b"\0asm")
    check("HEAD", view.get("/%s/weft.wasm" % view.token, method="HEAD")[0] == 200)
    check("licences", b"Apache License" in view.mine("licences.txt")[2])


def ranges(view):
    whole = open(golden, "rb").read()
    files = json.loads(view.mine("api/files")[2])
    check("one file", len(files["files"]) == 1 and files["files"][0]["bytes"] == len(whole) and not files["live"])
    check("its events", files["files"][0]["events"] > 1000 and files["files"][0]["name"] == "0.weft")
    status, headers, body = view.mine("api/file/0")
    check("all of it", status == 200 and body == whole and headers["Accept-Ranges"] == "bytes")
    for text, want in (("bytes=0-7", whole[:8]), ("bytes=100-", whole[100:]), ("bytes=-10", whole[-10:])):
        status, headers, body = view.mine("api/file/0", Range=text)
        check(text, status == 206 and body == want and headers["Content-Range"].endswith("/%d" % len(whole)))
    check("behind the end", view.mine("api/file/0", Range="bytes=%d-" % len(whole))[0] == 416)
    check("names", view.mine("api/names")[2].startswith(b"R\t"))


def rows_of(sql):
    """As weft query says it."""
    done = subprocess.run([weft, "query", "--json", golden, sql], capture_output=True, check=True, text=True)
    return [list(row.values()) for row in json.loads(done.stdout)]


def sql(view):
    worst = "select id, location, duration_ns, wake_delay_ns from poll order by duration_ns desc limit 5"
    answer = view.query(worst + "; -- the end")[1]
    check("columns %s" % answer, answer.get("columns") == ["id", "location", "duration_ns", "wake_delay_ns"])
    check("the rows of weft query", answer["rows"] == rows_of(worst) and len(answer["rows"]) == 5)
    check("all of them", answer["truncated"] is False)
    many = view.query("select id from poll")[1]
    check("2000 rows", len(many["rows"]) == 2000 and many["truncated"])
    check("of more", rows_of("select count(*) from poll")[0][0] > 2000)
    check("what JavaScript cannot hold", view.query("select 9007199254740993, 1.5, null")[1]["rows"]
          == [["9007199254740993", 1.5, None]])
    saved = json.loads(view.mine("api/questions")[2])
    listed = subprocess.run([weft, "query", "--list"], capture_output=True, check=True, text=True).stdout
    check("saved questions", len(saved) > 10)
    check("those of --list", all("%s: %s\n" % (one["name"], one["what"]) in listed for one in saved))
    for one in saved:
        check(one["name"], "columns" in view.query(one["sql"])[1])


def sql_refused(view, scratch):
    wrong = view.query("select absent from poll")[1]
    check("SQLite's own words: %s" % wrong, wrong == {"error": "no such column: absent", "offset": 7})
    check("no statement", "error" in view.query("-- nothing")[1])
    file = os.path.join(scratch, "made.db")
    for text in ("attach '%s' as x" % file, "vacuum into '%s'" % file, "pragma user_version", "pragma user_version = 3",
                 "select * from pragma_database_list", "create table t (x)", "create temp table t (x)",
                 "delete from poll",
                 "insert into poll (id) values (1)", "update poll set id = 1", "drop table poll", "begin", "reindex",
                 "select load_extension('x')", "create virtual table t using poll", "detach main", "analyze"):
        status, answer = view.query(text)
        check("%s is refused: %s" % (text, answer), status == 200 and list(answer)[0] == "error")
    check("nothing was written", not os.path.exists(file))
    check("attach: why", "only select" in view.query("attach '%s' as x" % file)[1]["error"])
    for text in "select 1; select 2", "select 1; attach 'x' as y", "select 1; nonsense":
        check("two: " + text, "more than one" in view.query(text)[1]["error"])
    late = view.query("select abs(-9223372036854775807 - (id > 0) * (rowid > 20)) from poll")[1]
    check("an error behind rows: %s" % list(late), late == {"error": "integer overflow"})
    check("too long", view.query("select '%s'" % ("x" * 65536))[0] == 413)
    check("as long as it may be", view.query("select 1 --".ljust(65536, "x"))[0] == 200)
    check("a zero byte", view.query("select 1\0")[0] == 400)
    check("GET", view.mine("api/query")[0] == 405)
    path, body = "/%s/api/query", b"select 1"
    check("no token", view.get(path % ("0" * 32), method="POST", body=body)[0] == 403)
    check("other Host", view.query("select 1", Host="evil.example")[0] == 403)
    check("other Origin", view.query("select 1", Origin="http://evil.example")[0] == 403)
    for text in ("select zeroblob(1000000000)", "select group_concat(p.location) from poll p, poll q"):
        check("too much: " + text, "error" in view.query(text)[1])
    check("and goes on", view.query("select 1")[1]["rows"] == [[1]])


FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def ended_query(view):
    try:
        view.query(FOREVER)
    except OSError: # the server ended first
        pass


def slow_sql():
    """One that takes forever is stopped; others are told meanwhile; the end of the server does not wait for it."""
    view = View(golden)
    answers = []
    one = threading.Thread(target=lambda: answers.append(view.query(FOREVER)))
    begin = time.monotonic()
    one.start()
    time.sleep(0.5)
    check("one at a time", view.query("select 1")[0] == 503)
    check("the page is served meanwhile", view.mine("api/files")[0] == 200)
    one.join()
    took = time.monotonic() - begin
    check("stopped after %.1f s: %s" % (took, answers), 9 < took < 18 and "longer than 10 s" in answers[0][1]["error"])
    two = threading.Thread(target=ended_query, args=(view,))
    two.start()
    time.sleep(0.3)
    begin = time.monotonic()
    check("ends", view.end() == 0)
    check("at once", time.monotonic() - begin < 5)
    two.join()


def only_what_was_named(scratch):
    """A link in a directory leads nowhere, and a file beside the named one is not served."""
    directory = os.path.join(scratch, "several")
    os.mkdir(directory)
    shutil.copy(golden, os.path.join(directory, "a.weft"))
    shutil.copy(golden, os.path.join(directory, "other.txt"))
    os.symlink("/etc/passwd", os.path.join(directory, "link.weft"))
    view = View(directory)
    files = json.loads(view.mine("api/files")[2])["files"]
    check("files of a directory", [one["name"] for one in files] == ["a.weft"])
    os.unlink(os.path.join(directory, "a.weft"))
    os.symlink("/etc/passwd", os.path.join(directory, "a.weft"))
    check("a link that took its place", view.mine("api/file/0")[0] == 404)
    os.unlink(os.path.join(directory, "a.weft"))
    shutil.copy(golden, os.path.join(directory, "c.weft"))
    at = [one["id"] for one in json.loads(view.mine("api/files")[2])["files"]]
    os.rename(os.path.join(directory, "c.weft"), os.path.join(directory, "moved.txt"))
    os.symlink("moved.txt", os.path.join(directory, "c.weft"))
    check("a link to the same file", view.mine("api/file/%d" % at[0])[0] == 404)
    os.unlink(os.path.join(directory, "c.weft"))
    shutil.copy(golden, os.path.join(directory, "b.weft"))
    files = json.loads(view.mine("api/files")[2])["files"]
    check("one that came", [one["name"] for one in files] == ["b.weft"])
    check("ends at once", view.end() == 0)


def wrong_uses(scratch):
    busy = socket.socket()
    busy.bind(("127.0.0.1", 0))
    busy.listen()
    for args, said in ((["--port", str(busy.getsockname()[1]), golden], "--port 0"), ([scratch], "no segments"),
                       (["--html", scratch + "/no/x.html", golden], "cannot write")):
        done = subprocess.run([weft, "view", "--no-open", *args], capture_output=True, text=True, timeout=20)
        check("%s: %s" % (args, done.stderr), done.returncode == 1 and said in done.stderr)
    busy.close()


def opens_the_browser(scratch):
    """xdg-open gets a file that leads to the address, not the address: who runs ps does not learn the token."""
    tools, session = os.path.join(scratch, "tools"), os.path.join(scratch, "session")
    os.mkdir(tools)
    os.mkdir(session, 0o700)
    said = os.path.join(scratch, "opened.txt")
    with open(os.path.join(tools, "xdg-open"), "w") as file:
        file.write('#!/bin/sh\n{ stat -c %%a "$1"; echo "$*"; cat "$1"; } >"%s.new"\nmv "%s.new" "%s"\n'
                   % (said, said, said))
    os.chmod(os.path.join(tools, "xdg-open"), 0o755)
    for runtime in session, os.path.join(scratch, "none"):
        path = tools + ":" + os.environ["PATH"]
        env = {"PATH": path, "DISPLAY": ":99", "XDG_RUNTIME_DIR": runtime, "TMPDIR": scratch}
        view = View(golden, env=env, args=[])
        until = time.monotonic() + 10
        while not os.path.exists(said) and time.monotonic() < until:
            time.sleep(0.02)
        mode, argument, page = open(said).read().split("\n", 2)
        check("the token is not in " + argument, view.token not in argument and argument.startswith(scratch))
        check("only for this user: " + mode, mode == "600")
        check("leads to the address", "http://127.0.0.1:%d/%s/" % (view.port, view.token) in page)
        check("ends", view.end() == 0)
        check("the file is gone", not os.path.exists(argument) and os.listdir(session) == [])
        check("its directory is gone", not [name for name in os.listdir(scratch) if name.startswith("weft-view-")])
        os.unlink(said)


def one_file(scratch):
    path = os.path.join(scratch, "one.html")
    done = subprocess.run([weft, "view", "--html", path, golden], capture_output=True, text=True, timeout=30)
    text = open(path).read()
    check("one file: " + done.stderr, done.returncode == 0 and path in done.stdout)
    check("its policy", "'sha256-" in text and "unsafe-inline" not in text and "connect-src" not in text)
    check("nothing is fetched", not re.search(r'(src|href)="(?!data:)', text.split("<script>")[0]))


def html(path, *traces, **options):
    args = [weft, "view", "--html", path, *traces]
    return subprocess.run(args, capture_output=True, text=True, timeout=30, **options)


def one_file_is_private(scratch):
    """The file can be read by who can read segments. It replaces no link, no segment and nothing of somebody else, and
    when it cannot be written what was there stays."""
    directory = os.path.join(scratch, "private")
    os.mkdir(directory, 0o755)
    path = os.path.join(directory, "trace.html")
    for mode in 0o600, 0o666:
        check("written", html(path, golden).returncode == 0)
        check("mode %o" % os.stat(path).st_mode, os.stat(path).st_mode & 0o777 == 0o600)
        os.chmod(path, mode)
    os.unlink(path)

    def stays(what, name, content):
        done = html(os.path.join(directory, name), golden)
        check("%s: %s" % (what, done.stderr), done.returncode == 1 and "cannot write" in done.stderr)
        check(what + " stays", content())

    def read(name):
        return open(os.path.join(directory, name), "rb").read()

    with open(os.path.join(directory, "other.txt"), "w") as file:
        file.write("precious")
    os.symlink("other.txt", os.path.join(directory, "link.html"))
    stays("a link", "link.html", lambda: read("other.txt") == b"precious")
    os.link(os.path.join(directory, "other.txt"), os.path.join(directory, "hard.html"))
    stays("a second name", "hard.html", lambda: read("other.txt") == b"precious")
    shutil.copy(golden, os.path.join(directory, "a.weft"))
    stays("a segment", "a.weft", lambda: read("a.weft") == open(golden, "rb").read())
    os.mkfifo(os.path.join(directory, "pipe.html"))
    stays("a pipe", "pipe.html", lambda: os.path.exists(os.path.join(directory, "pipe.html")))
    stays("a directory", "../private", lambda: os.path.isdir(directory))
    if os.geteuid() == 0:
        with open(os.path.join(directory, "nobody.html"), "w") as file:
            os.fchown(file.fileno(), 65534, 65534)
        stays("somebody else's", "nobody.html", lambda: read("nobody.html") == b"")
    os.rename(os.path.join(directory, "hard.html"), path)
    os.unlink(os.path.join(directory, "other.txt"))

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = html(path, golden, preexec_fn=small)
    check("no space: " + done.stderr, done.returncode == 1 and read("trace.html") == b"precious")
    check("nothing is left", not [name for name in os.listdir(directory) if name.startswith(".")])


class Silent:
    """A server of debug information that answers nobody: names that are looked up there take forever."""

    def __init__(self, scratch):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen()
        self.socket.settimeout(10)
        url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.env = {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_TIMEOUT": "60",
                    "DEBUGINFOD_CACHE_PATH": os.path.join(scratch, "debuginfod")}
        self.trace = os.path.join(scratch, "nameless")
        if not os.path.exists(self.trace): # a shell has samples, and no debug information
            subprocess.run([weft, "run", "-o", self.trace, "--start-after", "0", "--", "sh", "-c",
                            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"], capture_output=True, check=True)

    def asked(self):
        return self.socket.accept()[0]


def ends_while_names_are_looked_up(scratch):
    silent = Silent(scratch)
    view = View(silent.trace, env=silent.env)
    held = silent.asked()
    begin = time.monotonic()
    check("ends while names are looked up", view.end() == 0)
    check("after %.1f s" % (time.monotonic() - begin), time.monotonic() - begin < 2)
    held.close()


def one_file_that_is_ended(scratch):
    """Ctrl-C while the file is written leaves nothing behind, and the signal is what ends it."""
    silent = Silent(scratch)
    for number in signal.SIGINT, signal.SIGTERM:
        directory = os.path.join(scratch, "ended-%d" % number)
        os.mkdir(directory)
        child = subprocess.Popen([weft, "view", "--html", os.path.join(directory, "x.html"), silent.trace],
                                 env=silent.env)
        held = silent.asked()
        check("it is being written", [name for name in os.listdir(directory) if name.startswith(".weft-view-")])
        child.send_signal(number)
        check("ended by %d" % number, child.wait(10) == -number)
        check("left: %s" % os.listdir(directory), os.listdir(directory) == [])
        held.close()


def several_requests_of_one_connection():
    """The page fetches dozens of files: a connection stays. That of a stranger is closed."""
    view = View(golden)
    connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=20)
    ports = set()
    for path, body in (("api/files", None), ("api/query", b"select count(*) from poll"), ("api/files", None)):
        connection.request("POST" if body else "GET", "/%s/%s" % (view.token, path), body)
        answer = connection.getresponse()
        answer.read()
        ports.add(connection.sock.getsockname()[1] if connection.sock else 0)
        check("%s is answered" % path, answer.status == 200)
    check("by one connection", len(ports) == 1 and 0 not in ports)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    check("and closed without the token", answer.status == 403 and not connection.sock)
    connection.close()
    check("ends", view.end() == 0)


def held_connections():
    """Connections that say nothing are closed soon, so that they keep nobody out."""
    view = View(golden)
    held = [socket.create_connection(("127.0.0.1", view.port)) for _ in range(300)]
    begin = time.monotonic()
    while True:
        try:
            status = view.mine("api/files")[0]
            break
        except OSError:
            if time.monotonic() - begin > 15:
                raise
            time.sleep(0.1)
    took = time.monotonic() - begin
    check("300 held connections: %d after %.1f s" % (status, took), status == 200 and took < 12)
    for one in held:
        one.close()
    check("ends", view.end() == 0)


def temporary_directory_of_others(scratch):
    """Where others could replace the file for the browser there is none."""
    directory = os.path.join(scratch, "unsafe")
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    env = {"PATH": os.environ["PATH"], "DISPLAY": ":99", "TMPDIR": directory}
    with open(os.path.join(scratch, "unsafe.txt"), "w") as said:
        view = View(golden, env=env, args=[], stderr=said)
        view.mine("api/names")
        check("ends", view.end() == 0)
    text = open(os.path.join(scratch, "unsafe.txt")).read()
    check("it says why: " + text, "others may write to it" in text and "not opened" in text)
    check("nothing is there", os.listdir(directory) == [])


def no_segment(scratch):
    """However large a file is that is no segment: the page gets its beginning, and says why it cannot be read."""
    directory = os.path.join(scratch, "large")
    os.mkdir(directory)
    shutil.copy(golden, os.path.join(directory, "a.weft"))
    with open(os.path.join(directory, "b.weft"), "wb") as file:
        file.truncate(1 << 32)
    view = View(directory)
    large = [one for one in json.loads(view.mine("api/files")[2])["files"] if one["name"] == "b.weft"][0]
    check("%d bytes of what is no segment" % large["bytes"], large["bytes"] == 65536)
    length = view.get("/%s/api/file/%d" % (view.token, large["id"]), method="HEAD")[1]["Content-Length"]
    check("the same when it is asked for: " + length, length == "65536")
    view.end()
    path = os.path.join(scratch, "large.html")
    done = html(path, directory)
    check("as one file: " + done.stderr, done.returncode == 0 and os.stat(path).st_size < 4 << 20)


with tempfile.TemporaryDirectory() as scratch:
    view = View(golden)
    refused(view)
    served(view)
    ranges(view)
    sql(view)
    sql_refused(view, scratch)
    check("ends with 0", view.end() == 0)
    slow_sql()
    only_what_was_named(scratch)
    wrong_uses(os.path.join(scratch, "several", ".."))
    one_file(scratch)
    one_file_is_private(scratch)
    no_segment(scratch)
    opens_the_browser(scratch)
    ends_while_names_are_looked_up(scratch)
    one_file_that_is_ended(scratch)
    several_requests_of_one_connection()
    held_connections()
    temporary_directory_of_others(scratch)
sys.exit(1 if failed else 0)
