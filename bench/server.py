#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs the example server at saturation: bench/server.py DIR [--quick].

Each round is three runs of a new server: recording, not recording, and not recording again, in an order that changes
from round to round. Recording against the mean of the other two is what it costs; the other two against each other are
what chance does. Load and server share the machine's CPUs."""
import shutil
import statistics
import sys
import tempfile

import demo

ORDERS = (("on", "off", "again"), ("off", "again", "on"), ("again", "on", "off"))
LOAD = ("--connections", 48, "--pipeline", 4)


def run(directory, record, seconds):
    trace = tempfile.mkdtemp(dir=directory) if record else None
    with demo.Server(record=trace) as server:
        result = demo.load(server.port, "--seconds", seconds, *LOAD)
    if trace:
        shutil.rmtree(trace)
    return {"rate": result["rate"], "p50": result["p50_ns"], "p99": result["p99_ns"],
            "cpu": server.cpu_s / server.requests * 1e6, "lost": server.lost}


def percent(ratios):
    return [(ratio - 1) * 100 for ratio in ratios]


def tell(name, rounds, key, unit, scale, sign, what):
    on, off, again = ([one[which][key] * scale for one in rounds] for which in ("on", "off", "again"))
    ratios = [2 * a / (b + c) for a, b, c in zip(on, off, again)]
    cost = [sign * p for p in percent(ratios)]
    chance = [sign * p for p in percent(a / b for a, b in zip(again, off))]
    value = statistics.median(cost)
    noise = statistics.median(abs(c) for c in chance)
    demo.figure(name, value, "%", "%s; median of %d rounds (%s); off against off, by chance: half of the rounds within "
                "%.2f, all from %+.2f to %+.2f; on %.4g, off %.4g %s" %
                (what, len(cost), " ".join("%+.1f" % c for c in cost), noise, min(chance), max(chance),
                 statistics.median(on), statistics.median(off), unit),
                baseline=statistics.median(off), ratio=statistics.median(ratios), noise=noise)


def main():
    directory = sys.argv[1]
    quick = "--quick" in sys.argv
    rounds = []
    for i in range(3 if quick else 12):
        rounds.append({which: run(directory, which == "on", 1 if quick else 2) for which in ORDERS[i % 3]})
    lost = sum(one["on"]["lost"] for one in rounds)
    tell("server_overhead_throughput", rounds, "rate", "requests/s", 1, -1,
         "requests/s lost to recording, 48 connections with 4 requests under way each; %d events lost" % lost)
    tell("server_overhead_p99", rounds, "p99", "us", 1e-3, 1, "what recording adds to the p99 latency")
    tell("server_overhead_p50", rounds, "p50", "us", 1e-3, 1, "what recording adds to the p50 latency")
    tell("server_overhead_cpu", rounds, "cpu", "us a request", 1, 1,
         "what recording, the collector included, adds to the server's CPU time")


if __name__ == "__main__":
    main()
