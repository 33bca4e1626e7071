#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles against real servers that take minutes to build: Parca, Pyroscope, and the decoder of OTLP of the
OpenTelemetry Collector. Each says what share a known function has, which must be what weft export says. `make
check-all` runs it; what cannot be built is skipped, with the reason. usage: test/servers/run.py BUILD_DIR"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import build

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(build.SOURCE, "build", "release"))
WEFT = BUILD + "/weft"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def check(what, *why):
    if not what:
        raise AssertionError(" ".join(str(word) for word in why))


def output(*args, code=0):
    env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    got = subprocess.run(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(got.returncode == code, args, got.returncode, got.stdout)
    return got.stdout


def ask(url, body=None):
    request = urllib.request.Request(url, data=body and json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def expected(top, recording):
    """CPU time in all, and where burn_cpu is the leaf, of weft export."""
    output(WEFT, "export", recording, "--what", "cpu", "-o", top + "/x.folded")
    with open(top + "/x.folded") as file:
        lines = [line.rsplit(" ", 1) for line in file]
    total = sum(int(count) for _, count in lines)
    burnt = sum(int(count) for stack, count in lines if stack.rsplit(";", 1)[-1] == "burn_cpu")
    check(burnt > 0.8 * total > 0, burnt, total)
    return total, burnt


def parca(top, recording):
    port = build.free_port()
    os.mkdir(top + "/parca")
    with open(top + "/parca/parca.yaml", "w") as file:
        file.write("object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: ./data\n")
    build.start(port, build.server("parca"), "--config-path=parca.yaml", "--http-address=127.0.0.1:%d" % port,
                cwd=top + "/parca")
    output(WEFT, "push", "--to", "parca+http://127.0.0.1:%d" % port, recording)
    query = {"mode": "MODE_MERGE", "reportType": "REPORT_TYPE_TOP",
             "merge.query": CPU + ':delta{service_name="burner"}',
             "merge.start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600)),
             "merge.end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
    answer = ask("http://127.0.0.1:%d/api/profiles/query?%s" % (port, urllib.parse.urlencode(query)))
    return int(answer["total"]), sum(int(row.get("flat", 0)) for row in answer["top"]["list"]
                                     if row["meta"].get("function", {}).get("name") == "burn_cpu")


def pyroscope(top, recording):
    port, grpc, gossip = build.free_port(), build.free_port(), build.free_port()
    os.mkdir(top + "/pyroscope")
    url = "http://127.0.0.1:%d" % port
    build.start(port, build.server("pyroscope"), "-target=all", "-server.http-listen-address=127.0.0.1",
                "-server.http-listen-port=%d" % port, "-server.grpc-listen-address=127.0.0.1",
                "-server.grpc-listen-port=%d" % grpc, "-memberlist.bind-addr=127.0.0.1",
                "-memberlist.bind-port=%d" % gossip, "-memberlist.advertise-addr=127.0.0.1",
                "-ingester.lifecycler.addr=127.0.0.1",
                *("-%s.instance-addr=127.0.0.1" % part for part in (
                    "compactor.ring", "distributor.ring", "overrides-exporter.ring", "query-frontend",
                    "query-scheduler.ring", "store-gateway.sharding-ring")),
                "-pyroscopedb.data-path=data", "-storage.backend=filesystem", "-storage.filesystem.dir=shared",
                "-usage-stats.enabled=false", cwd=top + "/pyroscope")
    for _ in range(1200):  # it listens long before it is ready
        try:
            with urllib.request.urlopen(url + "/ready", timeout=5) as reply:
                if reply.status == 200:
                    break
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    output(WEFT, "push", "--wait", "60s", "--to", "pyroscope+" + url, recording)
    now_ms = int(time.time() * 1000)
    answer = ask(url + "/querier.v1.QuerierService/SelectMergeStacktraces",
                 {"profileTypeID": CPU, "labelSelector": '{service_name="burner"}', "start": now_ms - 3600000,
                  "end": now_ms + 3600000})["flamegraph"]
    flat = 0
    for level in answer["levels"]:  # four numbers for each function: offset, in all, itself, name
        values = [int(value) for value in level["values"]]
        flat += sum(values[i + 2] for i in range(0, len(values), 4) if answer["names"][values[i + 3]] == "burn_cpu")
    return int(answer["total"]), flat


def otlp(top, recording):
    port = build.free_port()
    os.mkdir(top + "/otlp")
    build.start(port, build.server("otlp"), "127.0.0.1:%d" % port, cwd=top + "/otlp")
    output(WEFT, "push", "--to", "otlp+http://127.0.0.1:%d" % port, recording)
    with open(top + "/otlp/log") as file:
        got = [json.loads(line) for line in file if line.startswith("{")]
    mine = [one for one in got if one["type"] == "cpu" and one["service"] == "burner"]
    return sum(one["total"] for one in mine), sum(one["leaves"].get("burn_cpu", 0) for one in mine)


def main():
    top = tempfile.mkdtemp(prefix="weft-servers-")
    skipped, recording = [], top + "/recording"
    try:
        with open(top + "/burner.c", "w") as file:
            file.write("#include <time.h>\nvolatile long n;\n__attribute__((noinline)) void burn_cpu(void)\n"
                       "{ for (int i = 0; i < 1000000; i++) n++; }\n"
                       "int main(void) { while (clock() < 3 * CLOCKS_PER_SEC / 2) burn_cpu(); }\n")
        subprocess.run(["cc", "-O1", "-g", "-o", top + "/burner", top + "/burner.c"], check=True)
        output(WEFT, "run", "-o", recording, "--", top + "/burner")
        wanted = expected(top, recording)
        for name, test in (("parca", parca), ("pyroscope", pyroscope), ("otlp", otlp)):
            try:
                got = test(top, recording)
            except build.Unavailable as why:
                print("skip: %s: %s" % (name, why), flush=True)
                skipped.append(name)
                continue
            check(got == wanted, name, "says", got, "and weft export", wanted)
            print("ok   %s %s: burn_cpu has %.1f %% of %d ns, as in weft export" % (
                name, build.VERSIONS[name], 100 * got[1] / got[0], got[0]), flush=True)
    finally:
        build.stop_all()
        shutil.rmtree(top, ignore_errors=True)
    return 77 if len(skipped) == 3 else 0


sys.exit(main())
