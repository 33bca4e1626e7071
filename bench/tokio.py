#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What weft-tokio costs an echo server on Tokio, beside none and beside dial9.

    bench/tokio.py DIR [--quick]

The load is that of dial9's own overhead benchmark (bench/tokio/src/main.rs). A round is one process of each kind, in
an order that changes; figures are medians of what the rounds say of each kind against none of the same round. All three
are one program, built with what dial9 asks for, and each records with its defaults. Not measured without cargo."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import demo
import stats

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokio")
KINDS = ("none", "weft", "dial9")
ROUNDS, SECONDS = 9, 3


def build():
    """The program, or None and why not."""
    if not shutil.which("cargo"):
        return None, "there is no cargo"
    target = os.path.abspath(os.environ.get("WEFT_BENCH_TOKIO_TARGET", demo.program("bench", "tokio")))
    done = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target], cwd=HERE)
    if done.returncode:
        return None, "cargo could not build bench/tokio"
    return os.path.join(target, "release", "weft-bench-tokio"), ""


def measure(program, scratch, rounds, seconds):
    """What each kind did, round by round."""
    made = {kind: [] for kind in KINDS}
    for i in range(rounds):
        for kind in KINDS[i % 3:] + KINDS[:i % 3]:
            directory = os.path.join(scratch, kind)
            done = subprocess.run([program, kind, str(seconds), directory], stdout=subprocess.PIPE, check=True,
                                  stderr=subprocess.DEVNULL, preexec_fn=demo.alone(*os.sched_getaffinity(0)))
            made[kind].append(json.loads(done.stdout))
            shutil.rmtree(directory, ignore_errors=True)
    return made


def show(name, ours, theirs, unit, note):
    """Ours, against none; the baseline is what dial9 has."""
    value, low, high = stats.median_interval(ours)
    baseline = statistics.median(theirs)
    demo.figure(name, value, unit, note, baseline=baseline, ratio=value / baseline if baseline else None,
                interval=[low, high])


def main():
    quick = "--quick" in sys.argv
    rounds, seconds = (3, 1) if quick else (ROUNDS, SECONDS)
    program, why = build()
    if not program:
        for name in ("throughput", "p99", "rss", "bytes"):
            demo.figure("tokio_overhead_" + name, None, "", "not measured: " + why)
        demo.figure("tokio_poll_cost", None, "", "not measured: " + why)
        demo.figure("tokio_poll_cost_off", None, "", "not measured: " + why)
        return
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as scratch:
        made = measure(program, scratch, rounds, seconds)
    pair = json.loads(subprocess.run([program, "pair"], stdout=subprocess.PIPE, check=True).stdout)

    def against(kind, key):
        return [one[key] / none[key] for one, none in zip(made[kind], made["none"])]
    none = {key: statistics.median(one[key] for one in made["none"]) for key in made["none"][0]}
    load = "%d rounds of %g s; none: %.0f requests/s, p99 %.2f ms, %.1f MiB" % (
        rounds, seconds, none["rate"], none["p99_ns"] / 1e6, none["rss_kib"] / 1024)
    show("tokio_overhead_throughput", against("weft", "rate"), against("dial9", "rate"), "x none",
         "requests a second with weft-tokio, of those without; baseline: dial9; " + load)
    show("tokio_overhead_p99", against("weft", "p99_ns"), against("dial9", "p99_ns"), "x none",
         "p99 of latencies, the same; baseline: dial9; " + load)
    show("tokio_overhead_rss", [one["rss_kib"] / 1024 for one in made["weft"]],
         [one["rss_kib"] / 1024 for one in made["dial9"]], "MiB",
         "resident memory at the end; baseline: dial9; " + load)
    show("tokio_overhead_bytes", [one["bytes"] for one in made["weft"]], [one["bytes"] for one in made["dial9"]],
         "B/request", "on disk after the end; baseline: dial9; " + load)
    plain = "of %.1f ns that a poll of a task that yields takes without weft; least of 5" % pair["plain_ns"]
    demo.figure("tokio_poll_cost", pair["recording_ns"], "ns", "both hooks while all polls are recorded, " + plain,
                baseline=pair["plain_ns"])
    demo.figure("tokio_poll_cost_off", pair["idle_ns"], "ns", "both hooks while nothing records, " + plain,
                baseline=pair["plain_ns"])


if __name__ == "__main__":
    main()
