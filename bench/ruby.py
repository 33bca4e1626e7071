#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the Ruby binding costs a program of four threads on Ruby 3.3 (bench/ruby/work.rb), in the tree that
test/ruby/tree makes.

    bench/ruby.py DIR [--quick] [paused|busy]

Each round runs it without a profiler, recorded by weft with default options, and under stackprof (100 samples a second
of CPU time), one after the other. Then the same where the threads never wait: the GVL is always asked for, and what
weft costs is taken from the requests. Each is held against that of the same round without. The profiler of ddtrace (gem
datadog) is not among them: Debian does not have it, and tests use no other registry of gems."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import demo
import stats

ROUNDS, SECONDS = 12, 3
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.join(SOURCE, "build", "ruby", "trixie")
KINDS = ["none", "weft", "stackprof"]


def percent_less(ratio):
    return (1 - ratio) * 100


def percent_more(ratio):
    return (ratio - 1) * 100


def itself(ratio):
    return ratio


def inside(*command, env=()):
    done = subprocess.run([os.path.join(SOURCE, "test/ruby/tree"), "run", TREE, "env", *env, *command], cwd=SOURCE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("bench: %s failed: %s" % (command, done.stderr[-1000:]))
    return done.stdout


def build_gem(build, gem):
    os.makedirs(gem + "/ext")
    inside("sh", "-c", "cd %s/ext && ruby %s/bindings/ruby/ext/weft/extconf.rb --with-weft-include=%s/include "
           "--with-weft-lib=%s >/dev/null && make -s" % (gem, SOURCE, SOURCE, build))
    shutil.copytree(SOURCE + "/bindings/ruby/lib", gem + "/lib")
    shutil.copy(gem + "/ext/weft.so", gem + "/lib/weft/weft.so")


def measure(kind, load, build, gem, scratch, seconds):
    trace = tempfile.mkdtemp(dir=scratch)
    out = inside("ruby", "-I", gem + "/lib", SOURCE + "/bench/ruby/work.rb", kind, str(seconds), load,
                 env=["LD_LIBRARY_PATH=" + build, "WEFT_DIR=" + trace])
    found = json.loads(out)
    found["bytes"] = sum(os.path.getsize(os.path.join(trace, name)) for name in os.listdir(trace)) / found["requests"]
    if kind == "weft" and (found["status"] != "recording" or not found["bytes"]):
        raise SystemExit("bench: nothing was recorded: %s" % found)
    return found


def figure(name, rounds, key, unit, percent, what):
    """weft against none; and stackprof against none as the baseline."""
    of = {kind: [percent(one[kind][key] / one["none"][key]) for one in rounds] for kind in KINDS[1:]}
    value, low, high = stats.median_interval(of["weft"])
    beside, beside_low, beside_high = stats.median_interval(of["stackprof"])
    demo.figure(name, value, unit,
                "%s; median of %d rounds, with 95 %% probability from %.3g to %.3g; without weft %.5g; stackprof: %.3g "
                "(%.3g to %.3g)" % (what, len(rounds), low, high, statistics.median(one["none"][key] for one in rounds),
                                    beside, beside_low, beside_high), baseline=beside, interval=[low, high])


def measure_rounds(load, build, gem, scratch, quick):
    rounds = []
    for i in range(3 if quick else ROUNDS):
        order = KINDS[i % 3:] + KINDS[:i % 3]
        rounds.append({kind: measure(kind, load, build, gem, scratch, 1 if quick else SECONDS) for kind in order})
    return rounds


def show_paused(rounds):
    figure("ruby_overhead_throughput", rounds, "rate", "%", percent_less,
           "fewer requests a second, recorded with default options")
    figure("ruby_overhead_cpu", rounds, "cpu", "%", percent_more,
           "more CPU time a request, ns, weft's threads included")
    figure("ruby_overhead_p99", rounds, "p99", "", itself, "p99 of a request, ns")
    figure("ruby_overhead_rss", rounds, "rss", "", itself, "memory, KiB")
    demo.figure("ruby_bytes_per_request", statistics.median(one["weft"]["bytes"] for one in rounds), "By", "on disk")


def show_busy(rounds):
    figure("ruby_overhead_busy_throughput", rounds, "rate", "%", percent_less,
           "fewer requests a second, where threads never wait, recorded with default options")
    figure("ruby_overhead_busy_cpu", rounds, "cpu", "%", percent_more, "more CPU time a request there, ns")


SHOW = {"paused": show_paused, "busy": show_busy}


def main():
    if not os.path.exists(TREE + "/weft-made"):
        raise SystemExit("bench: no tree with Ruby 3.3: test/ruby/tree make build/ruby/trixie, as root")
    build = os.path.abspath(demo.program())
    scratch = tempfile.mkdtemp(dir=os.path.dirname(TREE))
    gem = scratch + "/gem"
    try:
        build_gem(build, gem)
        for load in [word for word in sys.argv[2:] if word in SHOW] or list(SHOW):
            SHOW[load](measure_rounds(load, build, gem, scratch, "--quick" in sys.argv))
    finally:
        shutil.rmtree(scratch)


main()
