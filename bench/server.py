#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs the example server at saturation.

    bench/server.py DIR [--one-cpu] [--sampled | --all-on] [--chance] [--quick]

One server, one load, the same connections. A thread of the server switches recording on and off every 50 ms
(examples/server/alternate.c) and notes requests and CPU time of each slice; the load notes latencies by time. Each
slice is held against its neighbour of the other kind. Events alone; with --sampled, CPU samples, too; with --all-on
everything that there is, held by the default budget, in slices of 200 ms, since to begin takes it longer. With --chance
nothing is ever recorded, and the figures show what chance does to them.

The server and the load run as in the demo: as many workers as the server takes by itself, all threads on whichever CPU
the kernel gives them, and as many requests as go through.

With --one-cpu the server, collector included, has the first CPU for itself, and one worker that fills it: whatever
recording costs is taken from the requests. The load has the last CPU."""
import array
import json
import os
import random
import shutil
import statistics
import sys
import tempfile

import demo
import stats

SAMPLED = {"WEFT_SAMPLE_HZ": ""}
EVERYTHING = {"WEFT_SAMPLE_HZ": "", "WEFT_SWITCHES": "intervals", "WEFT_WALL_HZ": "10"}
EVENTS_ALONE = {"WEFT_SAMPLE_HZ": "off", "WEFT_SWITCHES": "off", "WEFT_WALL_HZ": "off"}
SLICE_MS = 50
ALL_ON_SLICE_MS = 200
LOAD = ("--connections", 48, "--pipeline", 4)
WARM_NS = 500_000_000  # of the load, before slices count
FULL = 0.9             # share of its one CPU that the server must have had in a slice, for saturation
SETTLE = 10            # one part of these of a slice does not count: examples/server/alternate.c
PAIRS_LEAST = 20
SUB_BITS = 6           # of the load's histograms: examples/load/hist.h
BUCKETS = 59 << SUB_BITS
DRAWS = 400


def measure(directory, seconds, slice_ms, one_cpu, env, chance):
    """The slices, latencies included, the server, and what the load says."""
    cpus = sorted(os.sched_getaffinity(0)) if one_cpu else [None]
    scratch = tempfile.mkdtemp(dir=directory)
    slices, latencies = os.path.join(scratch, "slices"), os.path.join(scratch, "latencies")
    args = ["--slice", slice_ms, "--alternate", slices, *(["--workers", 1] if one_cpu else [])]
    with demo.Server(record=None if chance else os.path.join(scratch, "trace"), args=args, cpu=cpus[0],
                     env={**EVENTS_ALONE, **env}) as server:
        result = demo.load(server.port, "--seconds", seconds, "--log", latencies, *LOAD, cpu=cpus[-1])
    with open(slices) as file:
        slices = [json.loads(line) for line in file]
    with open(latencies) as file:
        windows = [json.loads(line) for line in file]
    shutil.rmtree(scratch)
    add_latencies(slices, windows)
    for one in slices:
        ns = one["end_ns"] - one["begin_ns"]
        one["whole"] = (ns > slice_ms * 500_000 and one["requests"] > 0 and sum(one["latency"]) > 0 and
                        windows[0]["begin_ns"] + WARM_NS < one["begin_ns"] and
                        one["end_ns"] < windows[-1]["begin_ns"])
        if one["whole"]:
            one["rate"] = one["requests"] * 1e9 / ns
            one["cpu"] = one["cpu_ns"] / one["requests"] / 1e3
            one["busy"] = one["cpu_ns"] / ns
            one["p50"] = quantile(one["latency"], 0.5)
            one["packed"] = pack(one["latency"])
    if not chance and not server.events:
        raise SystemExit("bench: the example server recorded nothing")
    return slices, server, result


def add_latencies(slices, windows):
    """A window belongs to a slice when it is inside, or began just before, when the slice was already settling."""
    at = 0
    for one in slices:
        one["latency"] = array.array("Q", bytes(8 * BUCKETS))
        while at < len(windows) and windows[at]["begin_ns"] < one["begin_ns"] - 1_000_000:
            at += 1
        while at < len(windows) and windows[at]["end_ns"] <= one["end_ns"]:
            for bucket, count in windows[at]["latency"]:
                one["latency"][bucket] += count
            at += 1


def pack(histogram):
    """A histogram as one long number: adding such numbers adds histograms, and fast."""
    return int.from_bytes(histogram.tobytes(), sys.byteorder)


def unpack(number):
    return array.array("Q", number.to_bytes(8 * BUCKETS, sys.byteorder))


def bucket_from(bucket):
    """The least value in a bucket, in ns."""
    shift, low = bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1)
    return low if shift == 0 else (low + (1 << SUB_BITS)) << (shift - 1)


def quantile(histogram, share):
    """In us, as if the values of a bucket were evenly spread."""
    rank = share * sum(histogram)
    for bucket, count in enumerate(histogram):
        if count and rank <= count:
            begin, end = bucket_from(bucket), bucket_from(bucket + 1)
            return (begin + (end - begin) * rank / count) / 1e3
        rank -= count
    raise ValueError("an empty histogram")


def p99_of(slices):
    return quantile(unpack(sum(one["packed"] for one in slices)), 0.99)


def pairs_of(slices):
    """(on, off) of each two neighbours that belong together, and the neighbours that were both off."""
    both = [(a, b) if a["on"] else (b, a) for a, b in zip(slices[::2], slices[1::2]) if a["whole"] and b["whole"]]
    off = [(a, b) for a, b in zip(slices, slices[1:]) if a["whole"] and b["whole"] and not a["on"] and not b["on"]]
    return both, off


def full(pairs):
    """Those in which no other program, and no lack of requests, kept the server from its CPU."""
    return [pair for pair in pairs if min(one["busy"] for one in pair) >= FULL]


def percent(ratio, sign=1):
    return sign * (ratio - 1) * 100


def report_nothing(name, pairs):
    demo.figure(name, None, "%", "not measured: only %d pairs of slices in which the server had its CPU and requests "
                "for it; other programs had the rest" % len(pairs))


def report_paired(name, pairs, chance, key, unit, sign, what, slice_ms):
    if len(pairs) < PAIRS_LEAST or not chance:
        return report_nothing(name, pairs)
    ratios = [on[key] / off[key] for on, off in pairs]
    value, *interval = stats.median_interval([percent(ratio, sign) for ratio in ratios])
    by_chance = stats.median_interval([percent(a[key] / b[key], sign) for a, b in chance])
    spread = statistics.quantiles([percent(ratio, sign) for ratio in ratios], n=4)
    on, off = ([pair[i][key] for pair in pairs] for i in (0, 1))
    demo.figure(name, value, "%", "%s; median of %d pairs of slices of %d ms, half of the pairs from %+.1f to %+.1f, "
                "the median with 95 %% probability from %+.2f to %+.2f; means of all slices: %+.2f; off against off in "
                "the same run: %+.2f, from %+.2f to %+.2f; on %.4g, off %.4g %s" %
                (what, len(pairs), slice_ms, spread[0], spread[2], *interval,
                 percent(statistics.mean(on) / statistics.mean(off), sign), *by_chance, statistics.median(on),
                 statistics.median(off), unit),
                baseline=statistics.median(off), ratio=statistics.median(ratios), interval=interval)


def report_p99(name, pairs, seed):
    """All slices of a kind together: one has too few slow requests. The interval: pairs drawn again and again, some
    twice, some not at all. The noise: the slices that were off, cut into halves at random."""
    if len(pairs) < PAIRS_LEAST:
        return report_nothing(name, pairs)
    draw = random.Random(seed)
    on, off = ([pair[i] for pair in pairs] for i in (0, 1))
    ratio = p99_of(on) / p99_of(off)
    drawn, halves = [], []
    for _ in range(DRAWS):
        again = draw.choices(pairs, k=len(pairs))
        drawn.append(percent(p99_of(one[0] for one in again) / p99_of(one[1] for one in again)))
        mixed = draw.sample(off, len(off))
        halves.append(abs(percent(p99_of(mixed[::2]) / p99_of(mixed[1::2]))))
    interval = stats.middle_interval(drawn)
    noise = sorted(halves)[int(stats.SURE * DRAWS)]
    demo.figure(name, percent(ratio), "%", "what recording adds to the p99 latency, all slices of a kind together; "
                "with 95 %% probability from %+.2f to %+.2f; two halves of the slices that were off differ by less "
                "than %.2f in 95 of 100 draws; on %.4g, off %.4g us" % (*interval, noise, p99_of(on), p99_of(off)),
                baseline=p99_of(off), ratio=ratio, interval=interval, noise=noise)


def collector_note(slices, server):
    """Over the whole run: in a slice alone it cannot be seen, for what it says of itself comes a little late."""
    seconds = sum(one["end_ns"] - one["begin_ns"] for one in slices if one["on"]) / 1e9
    spent = slices[-1]["collector_at_ns"] - slices[0]["collector_at_ns"]
    return "the collector had about %.2f %% of a CPU, %.0f ns an event" % (
        spent / 1e7 / seconds * (1 - 1 / SETTLE), spent / max(server.events, 1))


def main():
    one_cpu, quick, sampled, all_on, chance = (
        option in sys.argv for option in ("--one-cpu", "--quick", "--sampled", "--all-on", "--chance"))
    seconds = 8 if quick else 35 if one_cpu else 150
    slice_ms = ALL_ON_SLICE_MS if all_on else SLICE_MS
    slices, server, result = measure(sys.argv[1], seconds, slice_ms, one_cpu,
                                     EVERYTHING if all_on else SAMPLED if sampled else {}, chance)
    pairs, both_off = pairs_of(slices)
    counted, off_counted = (full(pairs), full(both_off)) if one_cpu else (pairs, both_off)
    prefix = ("overhead_all_on_server" if all_on else "server_overhead") + ("_one_cpu" if one_cpu else "") + (
        "_sampled" if sampled else "")
    layout = "one worker on one CPU; %d pairs of slices in which it had less than %.0f %% of it do not count" % (
        len(pairs) - len(counted), 100 * FULL) if one_cpu else "all threads on any of %d CPUs, the load's too" % (
        len(os.sched_getaffinity(0)))
    report_paired(prefix + "_throughput", counted, off_counted, "rate", "requests/s", -1,
                "requests/s lost to recording%s, %d connections with %d requests under way each; %s; about %.1f events "
                "a request, %d events lost" %
                (" with everything on" if all_on else " with samples" if sampled else "", LOAD[1], LOAD[3], layout,
                 2 * server.events / result["requests"], server.lost), slice_ms)
    report_p99(prefix + "_p99", counted, result["requests"])
    report_paired(prefix + "_p50", counted, off_counted, "p50", "us", 1, "what recording adds to the p50 latency",
                slice_ms)
    report_paired(prefix + "_cpu", pairs, both_off, "cpu", "us a request", 1,
                "what recording adds to the server's CPU time, in all slices; " + collector_note(slices, server), slice_ms)


if __name__ == "__main__":
    main()
