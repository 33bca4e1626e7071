#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Segments and profiles against real servers: versitygw (S3, verifies signatures) and Parca. `make check-all` runs it.
They are built once, from the Go module proxy, into build/servers; without Go or the proxy it is skipped, with the
reason. usage: test/servers/run.py BUILD_DIR"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

VERSITYGW, PARCA = "v1.8.0", "v0.28.0"
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVERS = os.path.join(SOURCE, "build", "servers")
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(SOURCE, "build", "release"))
WEFT = BUILD + "/weft"
KEYS = {"AWS_ACCESS_KEY_ID": "testkey", "AWS_SECRET_ACCESS_KEY": "testsecret", "AWS_EC2_METADATA_DISABLED": "true"}
children = []


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def check(what, *why):
    if not what:
        raise AssertionError(" ".join(str(word) for word in why))


def output(*args, env=None, code=0):
    got = subprocess.run(args, env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    check(got.returncode == code, args, got.returncode, got.stdout)
    check("testsecret" not in got.stdout, "a secret was printed")
    return got.stdout


def go(*args, cwd=None):
    got = subprocess.run(("go",) + args, cwd=cwd, env=dict(os.environ, GOBIN=SERVERS), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    if got.returncode:
        skip("go %s: %s" % (" ".join(args), got.stderr.strip().splitlines()[-1:]))
    return got.stdout


def build_versitygw():
    path = SERVERS + "/versitygw"
    if not os.path.exists(path):
        go("install", "github.com/versity/versitygw/cmd/versitygw@" + VERSITYGW)
    return path


def build_parca():
    """Its own module refuses `go install`: it is built in a copy."""
    path, copy = SERVERS + "/parca", SERVERS + "/parca-source"
    if os.path.exists(path):
        return path
    where = json.loads(go("mod", "download", "-json", "github.com/parca-dev/parca@" + PARCA))["Dir"]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(where, copy)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    page = copy + "/ui/packages/app/web/build"
    os.makedirs(page, exist_ok=True)
    open(page + "/index.html", "a").close()
    go("build", "-o", path, "./cmd/parca", cwd=copy)
    shutil.rmtree(copy)
    return path


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(port, *args, cwd, env=None):
    log = open(cwd + "/log", "w")
    child = subprocess.Popen(args, cwd=cwd, env=dict(os.environ, **(env or {})), stdout=log, stderr=log)
    children.append(child)
    for _ in range(600):
        check(child.poll() is None, args[0], "ended:", open(cwd + "/log").read()[-500:])
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    check(False, args[0], "does not listen")


def s3(top, recording):
    port = free_port()
    os.makedirs(top + "/gateway/data/profiles")
    start(port, build_versitygw(), "--port", "127.0.0.1:%d" % port, "posix", top + "/gateway/data",
          cwd=top + "/gateway", env={"ROOT_ACCESS_KEY": "testkey", "ROOT_SECRET_KEY": "testsecret"})
    url = "s3://profiles/pre fix/a=b?endpoint=http://127.0.0.1:%d" % port
    output(WEFT, "push", "--to", url, recording, env=KEYS)
    listed = json.loads(output(WEFT, "ls", "--json", url, env=KEYS))["objects"]
    names = sorted(name for name in os.listdir(recording) if name.endswith(".weft"))
    check(sorted(one["url"].rsplit("/", 1)[1] for one in listed) == names, listed, names)
    for one in listed:
        with open(top + "/gateway/data/profiles/" + one["url"].split("profiles/", 1)[1], "rb") as file:
            with open(recording + "/" + one["url"].rsplit("/", 1)[1], "rb") as same:
                check(file.read() == same.read(), one)
    out = output(WEFT, "push", "--wait", "0s", "--to", url + "&x=1", recording,
                 env=dict(KEYS, AWS_SECRET_ACCESS_KEY="wrong"), code=1)
    check("SignatureDoesNotMatch" in out, out)
    print("ok   versitygw %s: %d segments" % (VERSITYGW, len(listed)))


def parca(top, recording):
    port = free_port()
    os.mkdir(top + "/parca")
    with open(top + "/parca/parca.yaml", "w") as file:
        file.write("object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: ./data\n")
    start(port, build_parca(), "--config-path=parca.yaml", "--http-address=127.0.0.1:%d" % port, cwd=top + "/parca")
    output(WEFT, "push", "--to", "parca+http://127.0.0.1:%d" % port, recording)
    output(WEFT, "export", recording, "--what", "cpu", "-o", top + "/x.folded")
    with open(top + "/x.folded") as file:
        lines = [line.rsplit(" ", 1) for line in file]
    total = sum(int(count) for _, count in lines)
    burnt = sum(int(count) for stack, count in lines if stack.rsplit(";", 1)[-1] == "burn_cpu")
    query = {"mode": "MODE_MERGE", "reportType": "REPORT_TYPE_TOP",
             "merge.query": 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{service_name="burner"}',
             "merge.start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600)),
             "merge.end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
    with urllib.request.urlopen("http://127.0.0.1:%d/api/profiles/query?%s" %
                                (port, urllib.parse.urlencode(query))) as reply:
        answer = json.load(reply)
    flat = sum(int(row.get("flat", 0)) for row in answer["top"]["list"]
               if row["meta"].get("function", {}).get("name") == "burn_cpu")
    check(int(answer["total"]) == total and flat == burnt and burnt > 0.8 * total, answer["total"], total, flat, burnt)
    print("ok   Parca %s: burn_cpu has %.0f %%, as in weft export" % (PARCA, 100 * flat / total))


def main():
    if not shutil.which("go"):
        skip("there is no go: install golang")
    os.makedirs(SERVERS, exist_ok=True)
    top = tempfile.mkdtemp(prefix="weft-servers-")
    try:
        with open(top + "/burner.c", "w") as file:
            file.write("#include <time.h>\nvolatile long n;\n__attribute__((noinline)) void burn_cpu(void)\n"
                       "{ for (int i = 0; i < 1000000; i++) n++; }\n"
                       "int main(void) { time_t end = time(0) + 2; while (time(0) < end) burn_cpu(); }\n")
        subprocess.run(["cc", "-O1", "-g", "-o", top + "/burner", top + "/burner.c"], check=True)
        output(WEFT, "run", "-o", top + "/recording", "--", top + "/burner")
        s3(top, top + "/recording")
        parca(top, top + "/recording")
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
            child.wait()
        shutil.rmtree(top, ignore_errors=True)
    return 0


sys.exit(main())
