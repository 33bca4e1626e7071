#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds real servers for the tests, once, from the Go module proxy into build/servers, and starts them. Versions are
pinned.
usage: test/servers/build.py NAME...; ends with 77 and a reason where one cannot be built."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVERS = os.path.join(SOURCE, "build", "servers")
VERSIONS = {"versitygw": "v1.8.0", "parca": "v0.28.0", "pyroscope": "v1.12.0", "metadata-mock": "v1.12.0",
            "otlp": "v0.164.0"}
API_OF_PYROSCOPE = "v1.2.0"
limit_s = None  # for one run of go


children = []


class Unavailable(Exception):
    """There is no Go, or what is needed cannot be fetched or built."""


def go(*args, cwd=None, **env):
    if not shutil.which("go"):
        raise Unavailable("there is no go: install golang")
    try:
        got = subprocess.run(("go",) + args, cwd=cwd, env=dict(os.environ, GOBIN=SERVERS, **env), timeout=limit_s,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    except subprocess.TimeoutExpired as late:
        raise Unavailable("go %s takes longer than %d s here" % (args[0], limit_s)) from late
    if got.returncode:
        raise Unavailable("go %s: %s" % (" ".join(args), " ".join(got.stderr.strip().splitlines()[-2:])))
    return got.stdout


def module_copy(name, module):
    """Modules with "replace" refuse `go install`: they are built in a copy."""
    copy = "%s/%s-source" % (SERVERS, name)
    where = json.loads(go("mod", "download", "-json", "%s@%s" % (module, VERSIONS[name])))["Dir"]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(where, copy)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    return copy


def build_versitygw(path):
    go("install", "github.com/versity/versitygw/cmd/versitygw@" + VERSIONS["versitygw"])
    assert path == SERVERS + "/versitygw"


def build_parca(path):
    copy = module_copy("parca", "github.com/parca-dev/parca")
    page = copy + "/ui/packages/app/web/build"
    os.makedirs(page, exist_ok=True)
    open(page + "/index.html", "a").close()
    go("build", "-o", path, "./cmd/parca", cwd=copy)


def build_pyroscope(path):
    """Without its page. The module of its API is a folder in its repository, and published under a version."""
    copy = module_copy("pyroscope", "github.com/grafana/pyroscope")
    api = "github.com/grafana/pyroscope/api"
    env = {"GOWORK": "off", "GOFLAGS": "-mod=mod"}
    go("mod", "edit", "-dropreplace", api, "-require", api + "@" + API_OF_PYROSCOPE, cwd=copy, **env)
    go("build", "-ldflags=-checklinkname=0", "-o", path, "./cmd/pyroscope", cwd=copy, **env)


def build_metadata_mock(path):
    copy = module_copy("metadata-mock", "github.com/aws/amazon-ec2-metadata-mock")
    go("build", "-o", path, "./cmd", cwd=copy)


def build_otlp(path):
    """A program of ours around the receiver of the OpenTelemetry Collector."""
    copy = SERVERS + "/otlp-source"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "test", "servers", "otlp"), copy)
    go("build", "-o", path, ".", cwd=copy)


def server(name):
    """The path of the program."""
    path = os.path.join(SERVERS, name)
    if not os.path.exists(path):
        os.makedirs(SERVERS, exist_ok=True)
        globals()["build_" + name.replace("-", "_")](path)
        shutil.rmtree("%s/%s-source" % (SERVERS, name), ignore_errors=True)
    return path


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(port, *args, cwd, env=None):
    """Starts a server in a directory of its own and waits until it listens."""
    with open(cwd + "/log", "w") as log:
        child = subprocess.Popen(args, cwd=cwd, env=dict(os.environ, **(env or {})), stdout=log, stderr=log)
    children.append(child)
    for _ in range(900):
        if child.poll() is not None:
            with open(cwd + "/log") as log:
                raise AssertionError("%s ended: %s" % (args[0], log.read()[-500:]))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return child
        except OSError:
            time.sleep(0.1)
    raise AssertionError("%s does not listen" % args[0])


def stop_all():
    for child in children:
        child.send_signal(signal.SIGTERM)
    for child in children:
        try:
            child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    children.clear()


if __name__ == "__main__":
    try:
        for one in sys.argv[1:] or VERSIONS:
            print(server(one))
    except Unavailable as why:
        print("reason: %s" % why)
        sys.exit(77)
