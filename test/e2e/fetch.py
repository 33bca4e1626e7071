#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev release asan
"""Recordings in a bucket and in archives: every command reads them as it reads the files, and what is fetched is gone
when the command ends. The store verifies signatures, lists in pages and fails as it is told."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

SOURCE, BUILD = os.environ["WEFT_SOURCE"], os.environ["WEFT_BUILD"]
sys.path.insert(0, os.path.join(SOURCE, "test/e2e"))
sys.path.insert(0, os.path.join(SOURCE, "test/e2e/library"))
import jfr
from ship_server import KEY, SECRET, signature_holds

WEFT = os.path.join(BUILD, "weft")
GOLDEN = os.path.join(SOURCE, "test/golden/server")
PAGE = 2


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s %s" % (what, " ".join(json.dumps(one, indent=1) for one in about)))


class Bucket:
    """One bucket: PUT, GET and ListObjectsV2, in pages of two."""

    def __init__(self):
        self.objects, self.faults, self.always = {}, [], None
        self.hang = threading.Event()
        self.waiting = threading.Event()
        self.types = {}
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, status, body=b"", cut=0):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) - cut])
                self.close_connection = bool(cut)

            def list(self, query):
                keys = sorted(key for key in bucket.objects if key.startswith(query.get("prefix", "")))
                keys = [key for key in keys if key > query.get("continuation-token", "")]
                rows = "".join(
                    "<Contents><Key>%s</Key><Size>%d</Size><LastModified>2026-11-18T00:00:00Z</LastModified></Contents>"
                    % (escape(key), len(bucket.objects[key])) for key in keys[:PAGE])
                more = len(keys) > PAGE
                token = "<NextContinuationToken>%s</NextContinuationToken>" % escape(keys[PAGE - 1]) if more else ""
                self.answer(200, ("<R><IsTruncated>%s</IsTruncated>%s%s</R>"
                                  % (str(more).lower(), token, rows)).encode())

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path, _, query = self.path.partition("?")
                if not signature_holds(self, body, SECRET):
                    return self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
                key = urllib.parse.unquote(path)[len("/bucket/"):]
                if self.command == "PUT":
                    bucket.objects[key], bucket.types[key] = body, self.headers.get("Content-Type")
                    return self.answer(200)
                if not key:
                    return self.list(dict(urllib.parse.parse_qsl(query)))
                fault = bucket.faults.pop(0) if bucket.faults else bucket.always
                if fault == "cut":
                    return self.answer(200, bucket.objects[key], cut=100)
                if fault == "hang":
                    bucket.waiting.set()
                    bucket.hang.wait(60)
                    self.close_connection = True
                    return None
                if fault:
                    return self.answer(fault, b"<Error><Code>Test%d</Code></Error>" % fault)
                return self.answer(200, bucket.objects[key])

            do_GET = do_PUT = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, prefix, more=""):
        return "s3://bucket/%s?region=eu-west-3&endpoint=%s%s" % (prefix, self.endpoint, more)


def environment(**more):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "WEFT_"))}
    env.update({"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "TMPDIR": temporary})
    env.update(more)
    return env


def weft(*args, status=0, **more):
    done = subprocess.run([WEFT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**more),
                          timeout=100)
    text = done.stderr.decode()
    check(done.returncode == status, "weft %s: status %d: %s" % (" ".join(args), done.returncode, text))
    check(SECRET not in text, "a secret was printed", text)
    check(os.listdir(temporary) == [], "something is left of weft " + args[0], os.listdir(temporary))
    return done.stdout, text


def without_paths(text, *paths):
    for path in paths:
        text = text.replace(path.encode(), b"PATH")
    return b"\n".join(line for line in text.splitlines() if b"/weft-" not in line and b"PATH" not in line)


def check_commands(url, what):
    """Each says the same of the bucket as of the files."""
    sql = "select count(*) n, sum(duration_ns) ns from poll"
    ways = {
        "report": lambda path: weft("report", "--no-symbols", "--full", path)[0],
        "query": lambda path: weft("query", "--no-symbols", "--json", path, sql)[0],
        "polls": lambda path: weft("polls", "--no-symbols", path)[0],
        "inspect": lambda path: without_paths(weft("inspect", path)[0], path),
        "export": lambda path: weft("export", "--no-symbols", "--what", "cpu", "-o", "-", path)[0],
        "view": lambda path: view(path),
    }
    if not has_view:
        del ways["view"]
    for name, way in ways.items():
        mine, theirs = way(url), way(GOLDEN)
        check(mine == theirs and len(theirs) > 20, "weft %s of %s differs" % (name, what), str(mine[:300]),
              str(theirs[:300]))


def view(path):
    out = os.path.join(scratch, "x.html")
    weft("view", "--html", out, path)
    with open(out, "rb") as file:
        page = file.read()
    check(len(page) > 10000, "a page", len(page))
    return b"%d bytes of a page, about" % (len(page) // 2000)


def check_bucket():
    bucket = Bucket()
    with open(os.path.join(GOLDEN, "0.weft"), "rb") as file:
        segment = file.read()
    bucket.objects = {"web/a b/demo-1.weft": segment, "web/note.txt": b"no segment", "web/other": b"", "x/y.weft": b"z"}
    url = bucket.url("web")
    check_commands(url, "a bucket")
    listed = json.loads(weft("ls", "--json", bucket.url(""))[0])["objects"]
    check([one["url"] for one in listed] == ["s3://bucket/" + key for key in sorted(bucket.objects)], "ls", listed)
    check_faults(bucket)
    return bucket


def check_faults(bucket):
    url, sql = bucket.url("web"), "select count(*) n from poll"
    for faults in ([500], ["cut", 503], [429]):
        bucket.faults = list(faults)
        weft("query", "--no-symbols", url, sql)
        check(not bucket.faults, "it was tried again", bucket.faults)
    bucket.always = 404
    err = weft("report", url, status=1)[1]
    check("s3://bucket/web: web/a b/demo-1.weft: status 404: Test404" in err, "what is gone", err)
    bucket.always = None
    err = weft("report", bucket.url("nothing"), status=1)[1]
    check("there are no segments below that name" in err and "weft ls s3://bucket/nothing" in err, "an empty prefix",
          err)
    err = weft("report", url, status=1, AWS_SECRET_ACCESS_KEY="other")[1]
    check("SignatureDoesNotMatch" in err, "wrong keys", err)
    err = weft("report", url, status=1, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME=scratch)[1]
    check("no credentials" in err, "no keys", err)
    err = weft("report", "s3://bucket/web?endpoint=http://127.0.0.1:1", status=1)[1]
    check("127.0.0.1" in err, "a store that is not there", err)
    err = weft("report", bucket.url("x"), status=1)[1]
    check("y.weft" in err, "an object that is no segment", err)
    # One that is missing does not hold the others.
    bucket.objects["web/b.weft"] = b"x"
    bucket.faults = [None, 403]
    err = weft("query", "--no-symbols", url, sql, status=3)[1]
    check("web/b.weft: status 403: Test403" in err, "one of two", err)
    del bucket.objects["web/b.weft"]
    check_killed(bucket, url)


def check_killed(bucket, url):
    """Whoever presses ^C leaves nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM):
        bucket.waiting.clear()
        bucket.always = "hang"
        child = subprocess.Popen([WEFT, "report", url], env=environment(), stdout=subprocess.DEVNULL)
        check(bucket.waiting.wait(60), "it asked")
        check(os.listdir(temporary) != [], "there is a directory")
        child.send_signal(number)
        check(child.wait(60) == -number, "ended by the signal", child.returncode)
        check(os.listdir(temporary) == [], "something is left", os.listdir(temporary))
    bucket.always = None
    bucket.hang.set()


def check_bundles(bucket):
    """The layout of the rust-agent: sent to a bucket and a directory, read back by every command."""
    spool, copies = os.path.join(scratch, "spool"), os.path.join(scratch, "copies")
    os.mkdir(spool, 0o700)
    with open(os.path.join(GOLDEN, "0.weft"), "rb") as file:
        segment = file.read()
    with open(os.path.join(spool, "demo-1-0.weft"), "wb") as file:
        file.write(segment)
    weft("push", "--to", bucket.url("agent", "&layout=rust-agent&group=pg"), "--to",
         "file://%s?layout=rust-agent" % copies, spool)
    key = [key for key in bucket.objects if key.startswith("agent/")]
    name = "profile_pg_onprem_golden__26193_2026-11-16T22-03-17Z.zip"
    check(key == ["agent/" + name] and bucket.types[key[0]] == "application/zip", "the key", key)
    copied = os.listdir(copies)
    check(copied == [name.replace("_pg_", "_demo-server_")], "the name", copied)
    with zipfile.ZipFile(os.path.join(copies, copied[0])) as file:
        check(file.testzip() is None and file.namelist() == ["weft_dump_0.weft", "metadata.json"], "entries",
              file.namelist())
        check(file.read("weft_dump_0.weft") == segment, "the segment in it")
        check(file.read("metadata.json") == b'{"start":1794866594755,"end":1794866597254,"reporting_interval":2499}',
              "metadata", str(file.read("metadata.json")))
    with open(os.path.join(copies, copied[0]), "rb") as file:
        check(file.read() == bucket.objects[key[0]], "the same bytes each time")
    check_commands(bucket.url("agent"), "a bucket of archives")
    check_commands(os.path.join(copies, copied[0]), "an archive")
    err = weft("push", "--wait", "0s", "--to", bucket.url("agent", "&layout=tar"), spool, status=1)[1]
    check("layout=tar: give weft or rust-agent" in err, "another layout", err)
    check_archives()


def check_archives():
    mine = os.path.join(scratch, "mine.zip")
    weft("export", GOLDEN, "-o", mine)
    check_commands(mine, "an archive of weft export")
    with zipfile.ZipFile(mine) as file:
        check(json.loads(file.read("metadata.json"))["reporting_interval"] == 2499, "metadata")
    err = weft("export", GOLDEN, "-o", mine, "--from", "1s", status=2)[1]
    check("no filter works on it" in err, "a filter", err)
    with open(mine, "rb") as file:
        data = file.read()
    deflated = os.path.join(scratch, "deflated.zip")
    with zipfile.ZipFile(mine) as old, zipfile.ZipFile(deflated, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("../../etc/x.weft", old.read("weft_dump_0.weft"))
    check_commands(deflated, "a deflated archive with odd names")
    for name, broken, why in (("cut", data[:-30], "not a zip archive"), ("turned", data[:5000] + b"?" + data[5001:],
                                                                         "checksum"), ("none", b"PK", "not a zip")):
        path = os.path.join(scratch, name + ".zip")
        with open(path, "wb") as file:
            file.write(broken)
        err = weft("report", path, status=1)[1]
        check(why in err, name, err)
    chunk = jfr.Chunk()
    chunk.poll(jfr.START_TICKS, jfr.START_TICKS + jfr.TICKS // 50, 7)
    bucket.objects["jfr/async.jfr"] = chunk.bytes()
    found = json.loads(weft("polls", "--json", bucket.url("jfr"))[0])
    check([one["duration_ns"] for one in found["polls"]] == [20_000_000], "JFR in a bucket", found)
    check("no segments" in weft("report", bucket.url("jfr"), status=1)[1], "JFR is for polls")


with tempfile.TemporaryDirectory() as scratch:
    temporary = os.path.join(scratch, "tmp")
    os.mkdir(temporary, 0o700)
    has_view = b"without the page" not in subprocess.run([WEFT, "view", scratch], stderr=subprocess.PIPE).stderr
    if not has_view:
        print("this weft was built without weft view: it is not tried")
    bucket = check_bucket()
    check_bundles(bucket)
print("ok")
