#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the Ruby binding costs a program of four threads on Ruby 3.3 (bench/ruby/work.rb), in the tree that
test/ruby/tree makes.

    bench/ruby.py DIR [--quick]

Each round runs it without a profiler, recorded by weft with default options, and under stackprof (100 samples a second
of CPU time), one after the other. Each is held against that of the same round without. The profiler of ddtrace (gem
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


def measure(kind, build, gem, scratch, seconds):
    trace = tempfile.mkdtemp(dir=scratch)
    out = inside("ruby", "-I", gem + "/lib", SOURCE + "/bench/ruby/work.rb", kind, str(seconds),
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


def main():
    if not os.path.exists(TREE + "/weft-made"):
        raise SystemExit("bench: no tree with Ruby 3.3: test/ruby/tree make build/ruby/trixie, as root")
    quick = "--quick" in sys.argv
    build = os.path.abspath(demo.program())
    scratch = tempfile.mkdtemp(dir=os.path.dirname(TREE))
    gem, rounds = scratch + "/gem", []
    try:
        build_gem(build, gem)
        for i in range(3 if quick else ROUNDS):
            order = KINDS[i % 3:] + KINDS[:i % 3]
            rounds.append({kind: measure(kind, build, gem, scratch, 1 if quick else SECONDS) for kind in order})
    finally:
        shutil.rmtree(scratch)
    loss, more = (lambda ratio: (1 - ratio) * 100), (lambda ratio: (ratio - 1) * 100)
    figure("ruby_overhead_throughput", rounds, "rate", "%", loss,
           "fewer requests a second, recorded with default options")
    figure("ruby_overhead_cpu", rounds, "cpu", "%", more, "more CPU time a request, ns, weft's threads included")
    figure("ruby_overhead_p99", rounds, "p99", "", lambda ratio: ratio, "p99 of a request, ns")
    figure("ruby_overhead_rss", rounds, "rss", "", lambda ratio: ratio, "memory, KiB")
    demo.figure("ruby_bytes_per_request", statistics.median(one["weft"]["bytes"] for one in rounds), "By", "on disk")


main()
