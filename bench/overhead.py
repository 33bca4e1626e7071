#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What sampling costs in CPU time: bench/overhead.py DIR [--quick].

A program that only computes, and the example server under load, each with sampling and without in slices of a tenth or a fifth of a
second that take turns in one process, because two runs differ by more than what is looked for. For the server it is recording
with samples against recording without: both against nothing, in two runs. Beside it, in the same run: perf record, attached
and detached in turns, its own CPU time included, as our collector's is. Chance: slices without against their neighbours
without."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import demo

PERF = {"perf_g": ["-F", "99", "-g"], "perf_dwarf": ["-F", "99", "--call-graph", "dwarf"]}
LOAD = ("--connections", 32, "--pipeline", 4)


def cpu_ns(pid):
    """CPU time of a process so far."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[0])
    return total


class Perf:
    """perf record on a process, from when it is attached until the end of the block."""

    def __init__(self, pid, options, directory):
        self.path = os.path.join(directory, "perf.data")
        self.process = subprocess.Popen(["perf", "record", *options, "-p", str(pid), "-o", self.path],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = -1
        while self.process.poll() is None and before != cpu_ns(self.process.pid): # quiet: it waits for samples
            before = cpu_ns(self.process.pid)
            time.sleep(0.15)

    def __enter__(self):
        self.begin_ns = cpu_ns(self.process.pid)
        return self

    def spent_ns(self):
        """CPU time of perf itself since the block began."""
        return cpu_ns(self.process.pid) - self.begin_ns

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        if self.process.wait() not in (0, -signal.SIGINT, 130):
            raise SystemExit("bench: perf record ended with status %d" % self.process.returncode)
        os.unlink(self.path)


def first_of_all():
    """For a new process: before all other programs, where that is allowed. The kernel weighs sessions, too (autogroup)."""
    os.setsid()
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        with open("/proc/self/autogroup", "w") as file:
            file.write("-20")
    except OSError:
        pass


class Burn:
    def __init__(self, directory):
        self.process = subprocess.Popen([demo.program("bench", "bench_burn"), directory], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=first_of_all)

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("bench: bench_burn ended")
        return int(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ratios:
    """A slice with against the mean of its neighbours without, as percent; and neighbours against each other."""

    def __init__(self):
        self.cost, self.chance, self.samples = [], [], 0

    def add(self, before, slices, after):
        self.cost += [200 * one / (before + after) - 100 for one in slices]
        self.chance.append(100 * after / before - 100)


def burn_weft(burn, hz, rounds):
    ratios = Ratios()
    burn.do("open %d" % hz)
    burn.do("start")
    burn.do("run")
    burn.do("pause")
    before = burn.do("run")
    for _ in range(rounds):
        burn.do("start")
        on = burn.do("run")
        ratios.samples = burn.do("pause")
        after = burn.do("run")
        ratios.add(before, [on], after)
        before = after
    burn.do("close")
    return ratios


def burn_perf(burn, options, rounds, directory):
    ratios = Ratios()
    before = burn.do("run")
    for _ in range(rounds):
        slices = []
        with Perf(burn.process.pid, options, directory) as perf:
            for _ in range(3):
                own = perf.spent_ns()
                slices.append(burn.do("run") + perf.spent_ns() - own)
        after = burn.do("run")
        ratios.add(before, slices, after)
        before = after
    return ratios


def tell(name, ratios, what, against=None):
    value, noise = statistics.median(ratios.cost), statistics.median(abs(c) for c in ratios.chance)
    low, _, high = statistics.quantiles(ratios.cost)
    share = 2 * 0.93 * (high - low) / len(ratios.cost) ** 0.5 # two standard errors of a median
    more = {"baseline": against, "ratio": value / against if against else 0} if against is not None else {}
    demo.figure(name, value, "%", "%s; %d slices, half of them from %+.2f to %+.2f; the median give or take %.2f; without "
                "against without, by chance: half within %.2f%s" %
                (what, len(ratios.cost), low, high, share, noise,
                 "; baseline: perf record -F 99 --call-graph dwarf" if more else ""), noise=share, **more)
    return value


def cpu_bound(directory, quick):
    rounds = 20 if quick else 200
    burn = Burn(directory)
    ours = {hz: burn_weft(burn, hz, rounds) for hz in (99, 999)}
    theirs = {name: burn_perf(burn, options, max(2, rounds // 10), directory) for name, options in PERF.items()}
    burn.close()
    return ours, theirs


def read_slices(path):
    with open(path) as file:
        slices = [json.loads(line) for line in file]
    return [dict(one, each=one["cpu_ns"] / one["requests"]) for one in slices if one["requests"] > 100]


def neighbours(slices):
    """Ratios from slices in blocks of four, on off off on or off on on off: pairs that differ, and pairs that do not."""
    ratios = Ratios()
    for a, b in zip(slices, slices[1:]):
        if a["on"] == b["on"]:
            ratios.chance += [100 * b["each"] / a["each"] - 100] * (not a["on"])
            continue
        on, off = (a, b) if a["on"] else (b, a)
        ratios.cost.append(100 * on["each"] / off["each"] - 100)
    return ratios


def serve(directory, seconds, record, hz, during=None):
    """The slices of a server under load for so long; `during` is called meanwhile."""
    log, trace = os.path.join(directory, "slices"), tempfile.mkdtemp(dir=directory)
    with demo.Server(record=trace if record else None, args=("--alternate", log, "--slice", "200"),
                     env={"WEFT_SAMPLE_HZ": str(hz)}) as server:
        command = [demo.program("examples", "load"), "--port", server.port, "--json", "--seconds", seconds, *LOAD]
        load = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        if during:
            during(server.process.pid)
        if load.wait():
            raise SystemExit("bench: the load ended with status %d" % load.returncode)
    shutil.rmtree(trace)
    return read_slices(log)


def serve_perf(directory, options, rounds):
    """perf comes and goes while the server logs slices; which is which, the clock tells."""
    spans, spent = [], []

    def during(pid):
        for _ in range(rounds):
            begin = time.monotonic_ns()
            time.sleep(1.3)
            spans.append((0, begin, time.monotonic_ns()))
            with Perf(pid, options, directory) as perf:
                begin = time.monotonic_ns()
                time.sleep(1.3)
                spans.append((1, begin, time.monotonic_ns()))
                spent.append(perf.spent_ns() / (time.monotonic_ns() - begin))

    slices = serve(directory, 4 * rounds, False, "off", during)
    each = []
    for on, begin, end in spans:
        inside = [one for one in slices if one["begin_ns"] >= begin and one["end_ns"] <= end]
        rate = statistics.mean(one["requests"] / (one["end_ns"] - one["begin_ns"]) for one in inside)
        own = spent[len(each) // 2] / rate if on else 0 # of perf, for each request
        each.append({"on": on, "each": statistics.median(one["each"] for one in inside) + own})
    ratios = Ratios()
    for off, on, after in zip(each[0::2], each[1::2], each[2::2]):
        ratios.add(off["each"], [on["each"]], after["each"])
    return ratios


def server(directory, quick):
    seconds, rounds = (4, 3) if quick else (24, 8)
    plain = neighbours(serve(directory, seconds, True, "off"))
    ours = {}
    for hz in (99, 999):
        ours[hz] = neighbours(serve(directory, seconds, True, hz))
        without = statistics.median(plain.cost)
        ours[hz].cost = [100 * (100 + cost) / (100 + without) - 100 for cost in ours[hz].cost]
    return ours, {name: serve_perf(directory, options, rounds) for name, options in PERF.items()}


def main():
    directory = tempfile.mkdtemp(dir=sys.argv[1])
    quick = "--quick" in sys.argv
    for where, suffix, measure in (("of a program that only computes", "", cpu_bound),
                                   ("of the example server, over recording without samples", "_server", server)):
        ours, theirs = measure(directory, quick)
        for name, options in PERF.items():
            dwarf = tell("cpu_overhead_" + name + suffix, theirs[name],
                         "CPU time that perf record %s adds, its own included, %s" % (" ".join(options), where))
        for hz, ratios in ours.items():
            tell("cpu_overhead_%dhz%s" % (hz, suffix), ratios,
                 "CPU time that samples at %d Hz add, the collector's included, %s" % (hz, where), dwarf)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
