#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What libweft-uv costs an HTTP server on libuv (examples/uv-http) at saturation.

    bench/uv.py DIR [--quick]

Three servers run beside each other, and the load (wrk, 32 connections) goes to one after the other, for two seconds
each: one was compiled without weft, in one the loop is attached while nothing records, and one is recorded with default
options. Every callback is wrapped. The servers, weft's threads included, have the first CPU, and the load the last:
what weft costs is taken from the requests. Each slice is held against that of the same round without weft."""
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
ROUNDS, SECONDS = 16, 2
SCRIPT = """done = function(summary, latency, requests)
    io.write(string.format("%d requests, %d us, p99 %f us, %d failed\\n", summary.requests, summary.duration,
        latency:percentile(99), summary.errors.connect + summary.errors.read + summary.errors.write +
        summary.errors.status + summary.errors.timeout))
end
"""


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def load(port, script, seconds, cpu):
    done = subprocess.run(["wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % seconds, "-s", script,
                           "http://127.0.0.1:%d/" % port],
                          stdout=subprocess.PIPE, text=True, check=True, preexec_fn=demo.alone(cpu))
    found = re.search(r"(\d+) requests, (\d+) us, p99 ([\d.]+) us, (\d+) failed", done.stdout)
    if not found or int(found[4]):
        raise SystemExit("bench: wrk failed: " + done.stdout[-500:])
    return int(found[1]), int(found[2]), float(found[3])


class Server:
    """Runs until it is stopped; `kind` is none, attached or recorded."""

    def __init__(self, scratch, kind, cpu):
        self.trace = os.path.join(scratch, kind)
        command = [demo.program("examples", "uv-http-plain" if kind == "none" else "uv-http")]
        if kind == "recorded":
            command += ["--record", self.trace]
        env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env,
                                        preexec_fn=demo.alone(cpu))
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.requests = 0

    def measure(self, script, seconds, cpu):
        before = cpu_seconds(self.process.pid)
        requests, us, p99 = load(self.port, script, seconds, cpu)
        self.requests += requests
        cpu_us = (cpu_seconds(self.process.pid) - before) * 1e6
        return {"rate": requests * 1e6 / us, "p99": p99, "cpu": cpu_us / requests}

    def stop(self):
        """Bytes on disk for each request."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        files = os.listdir(self.trace) if os.path.exists(self.trace) else []
        return sum(os.path.getsize(os.path.join(self.trace, name)) for name in files) / max(self.requests, 1)


def figure(name, rounds, kind, key, unit, percent, what):
    """Each round against the same round without weft."""
    ratios = [one[kind][key] / one["none"][key] for one in rounds]
    value, low, high = stats.median_interval([percent(ratio) for ratio in ratios])
    middle = [statistics.median(one[of][key] for one in rounds) for of in (kind, "none")]
    demo.figure(name, value, unit,
                "%s; median of %d rounds, with 95 %% probability from %.3g to %.3g; %.5g, without weft %.5g" %
                (what, len(rounds), low, high, *middle), baseline=middle[1], interval=[low, high])


def main():
    if not shutil.which("wrk") or not os.path.exists(demo.program("examples", "uv-http")):
        raise SystemExit("bench: wrk or build/release/examples/uv-http is not there: run tools/bootstrap bench, "
                         "make bench")
    quick = "--quick" in sys.argv
    scratch = tempfile.mkdtemp(dir=sys.argv[1])
    script = os.path.join(scratch, "done.lua")
    with open(script, "w") as file:
        file.write(SCRIPT)
    cpus, kinds, rounds = sorted(os.sched_getaffinity(0)), ["none", "attached", "recorded"], []
    servers = {kind: Server(scratch, kind, cpus[0]) for kind in kinds}
    try:
        for kind in kinds:
            servers[kind].measure(script, 1, cpus[-1])
        for i in range(3 if quick else ROUNDS):
            order = kinds[i % 3:] + kinds[:i % 3]
            rounds.append({kind: servers[kind].measure(script, 1 if quick else SECONDS, cpus[-1]) for kind in order})
    finally:
        sizes = {kind: servers[kind].stop() for kind in kinds}
    if not sizes["recorded"]:
        raise SystemExit("bench: uv-http recorded nothing")
    loss, more = (lambda ratio: (1 - ratio) * 100), (lambda ratio: (ratio - 1) * 100)
    figure("uv_overhead_throughput", rounds, "recorded", "rate", "%", loss,
           "fewer requests a second, recorded with default options")
    figure("uv_overhead_p99", rounds, "recorded", "p99", "", lambda ratio: ratio,
           "p99 of the latency at saturation, us")
    figure("uv_overhead_cpu", rounds, "recorded", "cpu", "%", more,
           "more CPU time a request, us, weft's threads included")
    figure("uv_overhead_attached", rounds, "attached", "rate", "%", loss,
           "fewer requests a second, attached while nothing records")
    demo.figure("uv_bytes_per_request", sizes["recorded"], "By",
                "on disk, of %d requests, recorded with default options" % servers["recorded"].requests)
    shutil.rmtree(scratch)


main()
