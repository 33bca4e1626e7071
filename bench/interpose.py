#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What libweft-preload.so adds to a call that might block: bench_interpose_plain with it and without, in turn.

usage: bench/interpose.py DIR [--quick]"""
import json
import os
import statistics
import subprocess
import sys

BUILD = os.environ.get("WEFT_BUILD", "build/release")
PROGRAM = os.path.join(BUILD, "bench", "bench_interpose_plain")
LIBRARY = os.path.abspath(os.path.join(BUILD, "libweft-preload.so"))
QUICK = sys.argv[-1] == "--quick"
# A wait is long from a tenth of a microsecond on, which every call takes; the ring holds what comes of it.
LONG = {"WEFT_BLOCK_MS": "0.0001", "WEFT_BUDGET_PPM": "off", "WEFT_RING_BYTES": "16M"}


def once(args, scratch, settings):
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("WEFT_")}
    if settings is not None:
        env.update(settings, LD_PRELOAD=LIBRARY, WEFT_PRELOAD_DIR=scratch)
    done = subprocess.run([PROGRAM, *args], env=env, stdout=subprocess.PIPE, text=True, check=True)
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))
    return float(done.stdout)


def figure(name, args, scratch, settings, note):
    bare, ours = [], []
    for _ in range(3 if QUICK else 11):
        bare.append(once(args, scratch, None))
        ours.append(once(args, scratch, settings))
    added = statistics.median(one - other for one, other in zip(ours, bare))
    base = statistics.median(bare)
    print(json.dumps({"name": name, "value": float("%.4g" % added), "unit": "ns", "baseline": float("%.4g" % base),
                      "ratio": float("%.4g" % ((base + added) / base)), "note": note}))


def main():
    scratch = os.path.join(sys.argv[1], "interpose")
    os.makedirs(scratch, exist_ok=True)
    short, long = ["read", "200", "2000"], ["read", "30", "2000"]
    figure("interpose_cost", [*short, "threaded"], scratch, {},
           "added to a read of one byte from /dev/zero, inside the tick of a loop, in a program that has another "
           "thread")
    figure("interpose_cost_alone", short, scratch, {},
           "the same in a program that has none: weft's threads have tables of files of their own, or the kernel would "
           "count who uses a file, in each call")
    figure("interpose_cost_long", [*long, "threaded"], scratch,
           dict(LONG, WEFT_SAMPLE_HZ="off", WEFT_SAMPLE_DEPTH="1"),
           "the same when every call counts as long and is an event of its own, without its stack")
    figure("interpose_cost_long_stack", [*long, "threaded"], scratch, LONG, "the same with the stack, of 5 frames")
    figure("interpose_lock", ["lock", "200", "20000", "threaded"], scratch, {},
           "added to taking a mutex that is free and giving it back")


main()
