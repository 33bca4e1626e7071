#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What libweft-uv costs an HTTP server on libuv (examples/uv-http) at saturation.

    bench/uv.py DIR [--quick]

Three servers in turn, each for some seconds under the same load (wrk, 32 connections that stay open): one that was
compiled without weft, one whose loop is attached while nothing records, and one that is recorded with default options.
Every callback is wrapped. The server, weft's threads included, has the first CPU for itself, and the load the last: what
weft costs is taken from the requests. Each round is held against its own round without weft."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import demo
import stats

CONNECTIONS = 32
ROUNDS, SECONDS = 9, 4
SCRIPT = """done = function(summary, latency, requests)
    io.write(string.format("%d requests, %d us, p99 %f us, %d failed\\n", summary.requests, summary.duration,
        latency:percentile(99), summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status +
        summary.errors.timeout))
end
"""


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def load(port, script, seconds, cpu):
    done = subprocess.run(["wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % seconds, "-s", script, "http://127.0.0.1:%d/" % port],
                          stdout=subprocess.PIPE, text=True, check=True, preexec_fn=demo.alone(cpu))
    found = re.search(r"(\d+) requests, (\d+) us, p99 ([\d.]+) us, (\d+) failed", done.stdout)
    if not found or int(found[4]):
        raise SystemExit("bench: wrk failed: " + done.stdout[-500:])
    return int(found[1]), int(found[2]), float(found[3])


def measure(scratch, script, kind, seconds):
    cpus = sorted(os.sched_getaffinity(0))
    command = [demo.program("examples", "uv-http-plain" if kind == "none" else "uv-http")]
    trace = tempfile.mkdtemp(dir=scratch)
    if kind == "recorded":
        command += ["--record", trace]
    env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, preexec_fn=demo.alone(cpus[0]))
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        load(port, script, 1, cpus[-1])
        before = cpu_seconds(server.pid)
        requests, us, p99 = load(port, script, seconds, cpus[-1])
        cpu = cpu_seconds(server.pid) - before
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    files = [os.path.join(trace, name) for name in os.listdir(trace)]
    if kind == "recorded" and not files:
        raise SystemExit("bench: uv-http recorded nothing")
    recorded = sum(os.path.getsize(file) for file in files)
    shutil.rmtree(trace)
    return {"rate": requests * 1e6 / us, "p99": p99, "cpu": cpu * 1e6 / requests, "bytes": recorded / requests}


def figure(name, rounds, kind, key, unit, percent, what):
    """Each round against the same round without weft."""
    ratios = [one[kind][key] / one["none"][key] for one in rounds]
    value, low, high = stats.median_interval([percent(ratio) for ratio in ratios])
    middle = [statistics.median(one[of][key] for one in rounds) for of in (kind, "none")]
    demo.figure(name, value, unit, "%s; median of %d rounds, with 95 %% probability from %.3g to %.3g; %.5g, without weft %.5g" %
                (what, len(rounds), low, high, *middle), baseline=middle[1], interval=[low, high])


def main():
    if not shutil.which("wrk") or not os.path.exists(demo.program("examples", "uv-http")):
        raise SystemExit("bench: wrk or build/release/examples/uv-http is not there: run tools/bootstrap bench, make bench")
    quick = "--quick" in sys.argv
    scratch = tempfile.mkdtemp(dir=sys.argv[1])
    script = os.path.join(scratch, "done.lua")
    with open(script, "w") as file:
        file.write(SCRIPT)
    order, rounds = ["none", "attached", "recorded"], []
    for i in range(3 if quick else ROUNDS):
        rounds.append({kind: measure(scratch, script, kind, 1 if quick else SECONDS) for kind in order[i % 3:] + order[:i % 3]})
    loss, more = (lambda ratio: (1 - ratio) * 100), (lambda ratio: (ratio - 1) * 100)
    figure("uv_overhead_throughput", rounds, "recorded", "rate", "%", loss, "fewer requests a second, recorded with default options")
    figure("uv_overhead_p99", rounds, "recorded", "p99", "", lambda ratio: ratio, "p99 of the latency at saturation, us")
    figure("uv_overhead_cpu", rounds, "recorded", "cpu", "%", more, "more CPU time a request, us, weft's threads included")
    figure("uv_overhead_attached", rounds, "attached", "rate", "%", loss, "fewer requests a second, attached while nothing records")
    sizes = [one["recorded"]["bytes"] for one in rounds]
    demo.figure("uv_bytes_per_request", statistics.median(sizes), "By", "on disk, recorded with default options; %.2g to %.2g" %
                (min(sizes), max(sizes)))
    shutil.rmtree(scratch)


main()
