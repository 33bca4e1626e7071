#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan tsan
"""The example server switches recording, or samples, off and on under load, and what it and the load write about that
adds up."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "bench"))
import demo
import server as bench
import stats


def check(true, what):
    if not true:
        sys.exit("FAIL: " + what)


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def alternate(scratch, record, *more, env=None):
    slices, latencies = os.path.join(scratch, "slices"), os.path.join(scratch, "latencies")
    with demo.Server(record=record, args=["--alternate", slices, "--slice", 20, *more], env=env) as server:
        result = demo.load(server.port, "--seconds", 2, "--connections", 8, "--log", latencies)
    return lines(slices), lines(latencies), server, result


def check_slices(slices, server):
    check(len(slices) >= 8, "only %d slices in 2 s" % len(slices))
    for i in range(0, len(slices) - 3, 4):
        kinds = [one["on"] for one in slices[i:i + 4]]
        check(kinds in ([1, 0, 0, 1], [0, 1, 1, 0]), "slices %s" % kinds)
    for before, after in zip(slices, slices[1:]):
        check(before["begin_ns"] < before["end_ns"] <= after["begin_ns"], "slices overlap")
    check(0 < sum(one["requests"] for one in slices) <= server.requests, "the slices' requests are not the server's")
    check(sum(one["cpu_ns"] for one in slices) <= server.cpu_s * 1e9 + 1e7, "the slices' CPU time is not the server's")
    workers_ns = sum(one["workers_ns"] for one in slices)
    check(0 < workers_ns <= server.cpu_s * 1e9 + 1e7, "the workers' CPU time is not, either")


def check_latencies(windows, result):
    histograms = [dict(one["latency"]) for one in windows]
    check(sum(sum(one.values()) for one in histograms) == result["requests"], "latencies are missing from the log")
    check(all(one["end_ns"] - one["begin_ns"] == 10_000_000 == one["begin_ns"] % 10_000_000 + 10_000_000
              for one in windows), "windows are not 10 ms of the clock")
    whole = bench.array.array("Q", bytes(8 * bench.BUCKETS))
    for one in histograms:
        for bucket, count in one.items():
            whole[bucket] += count
    both = bench.unpack(bench.pack(whole) + bench.pack(whole))
    # Where a quantile is just between two requests, one takes the faster and the other the slower of them.
    for share, key in ((0.5, "p50_ns"), (0.99, "p99_ns")):
        least, most = (bench.quantile(both, min(of, 1)) * 1e3 for of in (share, share + 1 / result["requests"]))
        check(least / result[key] - 1 < 1 / 32 and most / result[key] - 1 > -1 / 32,
              "the quantiles of log and load differ")


def check_interval():
    check(stats.median_interval(range(21)) == (10, 5, 15), "the interval of a median of 21")
    check(stats.median_interval([3, 1, 2]) == (2, 1, 3), "the interval of a median of 3")


def main():
    check_interval()
    with tempfile.TemporaryDirectory() as scratch:
        slices, windows, server, result = alternate(scratch, os.path.join(scratch, "trace"))
        check_slices(slices, server)
        check_latencies(windows, result)
        check(server.events > 0, "nothing was recorded")
        slices, _, server, _ = alternate(scratch, None)
        check_slices(slices, server)
        check(server.events == 0, "something was recorded")
        if os.environ.get("WEFT_PRESET") == "tsan": # which has ways of its own with signals
            return
        slices, _, server, _ = alternate(scratch, os.path.join(scratch, "samples"), "--samples",
                                         env={"WEFT_SAMPLE_HZ": "999", "WEFT_BUDGET_PPM": "off"})
        check_slices(slices, server)
        check(server.events > 0, "nothing was recorded while samples were switched")


main()
