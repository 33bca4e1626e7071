#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What sampling costs in CPU time: bench/overhead.py DIR [--quick].

A program that only computes, and the example server under load, each with sampling and without in slices that take
turns in one process, because two runs differ by more than what is looked for.

At 99 Hz they are of a tenth of a second, or of half a second for the server, and there it is recording with samples
against recording without: each against nothing, in two runs. At 999 Hz samples are perf events and timers that ride
the tick, which can be switched in microseconds while recording goes on; slices are of 20 ms then, since what the same
work takes wanders within a second by more than samples cost. That is the CPU time of the threads that are sampled; the collector, which comes
round a few times a second, is looked at in slices that are long enough for it, and its part added.

The budget that holds back rates is off, so these are what the rate costs. What somebody gets who asks for 999 Hz and
changes nothing else is measured, too (`_shipped`): the default budget of 1 % is in force, and samples are fewer than
999 a second; how many there were is beside it. The governor switches events itself then, so that is recording with
samples against without in slices, as at 99 Hz. Beside it, in the same run: perf record, attached and detached in turns, its
own CPU time included, as our collector's is; and what such a rate costs on this machine before anything is done with
it: a perf event at 999 Hz whose handler returns at once, the same with a timer that rides the tick and fewer events,
and for the server an event that has no handler, so that there is nothing but the interrupt. Chance: slices without against their neighbours without."""
import ctypes
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import demo
import stats

CPUS = sorted(os.sched_getaffinity(0))
PERF = {"perf_g": ["-F", "99", "-g"], "perf_dwarf": ["-F", "99", "--call-graph", "dwarf"]}
PERF_SLICE_MS = 100
WHAT = {"99hz": "99 Hz", "999hz": "999 Hz, with no budget in force,",
        "999hz_shipped": "the rate that the default budget allows, of 999 Hz that were asked for,"}
SLICE_MS = 500 # of the server: half a millisecond for start and pause is a thousandth of it
SHORT_MS = 20
LONG_MS = 1500 # several rounds of the collector
LONG_LEAST_S = 12
SERVERS = 6 # one after the other: each has its own mean, for as long as it lives
TURN = 4
SETTLE_S = 8 # after which the governor has found its rates
CALM_RUNS = 3
CALM_S = 3.5 # after which the timer engine believes that it knows all threads
LOAD = ("--connections", 48, "--pipeline", 4)


def cpu_ns(pid):
    """CPU time of a process so far."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[0])
    return total


class Perf:
    """perf record on a process, from when it is attached until the end of the block. `cpu` is not the process's."""

    def __init__(self, pid, options, directory, cpu):
        self.path = os.path.join(directory, "perf.data")
        self.process = subprocess.Popen(["perf", "record", *options, "-p", str(pid), "-o", self.path],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=demo.alone(cpu))
        before = -1
        # Attached, and then quiet: it waits for samples.
        while self.process.poll() is None and (before != cpu_ns(self.process.pid) or not self.attached()):
            before = cpu_ns(self.process.pid)
            time.sleep(0.15)

    def attached(self):
        folder = "/proc/%d/fd" % self.process.pid
        return any("perf_event" in os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder))

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
        if os.path.exists(self.path):
            os.unlink(self.path)


class Burn:
    def __init__(self, directory):
        self.process = subprocess.Popen([demo.program("bench", "bench_burn"), directory], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=demo.alone(CPUS[-1]))

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
        self.cost, self.chance, self.collector, self.runs = [], [], None, []

    def join(self, others):
        """Those of several runs."""
        for one in others:
            self.cost += one.cost
            self.chance += one.chance
            self.runs.append(statistics.median(one.cost))
        return self

    def with_collector(self, slices):
        """Adds its part, which is each slice's as percent."""
        part = {on: statistics.median(one["each"] for one in slices if one["on"] == on) for on in (0, 1)}
        self.collector = part[1] - part[0]
        self.cost = [one + self.collector for one in self.cost]
        self.runs = [one + self.collector for one in self.runs]
        return self

    def add(self, before, slices, after):
        self.cost += [200 * one / (before + after) - 100 for one in slices]
        self.chance.append(100 * after / before - 100)


class Got:
    """How many samples there were for a second of CPU time, and how many there were to be."""

    def __init__(self):
        self.each, self.rates = [], []

    def add(self, samples, cpu, rate):
        self.each.append(samples * 1e9 / cpu)
        self.rates.append(rate)

    def tell(self, name, where):
        value, *interval = stats.median_interval(self.each)
        demo.figure(name, value, "samples/s", "samples for a second of CPU time %s, of 999 that were asked for, under "
                    "the default budget of 1 %%; the rate in force was %.0f Hz (median; %.0f to %.0f)" %
                    (where, statistics.median(self.rates), min(self.rates), max(self.rates)), interval=interval,
                    baseline=999, ratio=value / 999)


def burn_turns(burn, turns, start, stop, calm_s):
    """Some slices without, some with, some without, and so on."""
    ratios = Ratios()
    before = [burn.do("run") for _ in range(TURN)]
    for _ in range(turns):
        burn.do(start)
        time.sleep(calm_s)
        burn.do("run")
        on = [burn.do("run") for _ in range(2 * TURN)]
        burn.do(stop)
        after = [burn.do("run") for _ in range(TURN)]
        ratios.add(statistics.median(before), on, statistics.median(after))
        before = after
    return ratios


def kinds(n):
    """Which of n slices are with: in blocks of four, so that a drift favours neither."""
    return [on for _ in range(n // 4) for on in random.choice(((1, 0, 0, 1), (0, 1, 1, 0)))]


def burn_short(burn, seconds):
    """Slices of 20 ms with samples and without."""
    slices = []
    for on in kinds(seconds * 1000 // SHORT_MS):
        burn.do("events %d" % on)
        slices.append({"on": on, "each": burn.do("short")})
    burn.do("events 1")
    return neighbours(slices)


def burn_bare(burn, what, seconds):
    burn.do(what + " 999")
    ratios = burn_short(burn, seconds)
    burn.do("bare 0")
    return ratios


def burn_often(burn, hz, seconds):
    """The same with samples, and the collector's part, of the program's CPU time."""
    burn.do("open %d" % hz)
    burn.do("start")
    time.sleep(1) # until tables are made
    ratios = burn_short(burn, seconds)
    slices = []
    for on in kinds(max(seconds // 2, LONG_LEAST_S) * 1000 // LONG_MS):
        burn.do("events %d" % on)
        before, work = burn.do("cpu"), 0
        while work < LONG_MS * 1e6:
            work += burn.do("short")
        slices.append({"on": on, "each": 100 * (burn.do("cpu") - before) / work})
    burn.do("events 1")
    burn.do("stop")
    burn.do("close")
    return ratios.with_collector(slices)


def burn_weft(burn, hz, turns):
    burn.do("open %d" % hz)
    ratios = burn_turns(burn, turns, "start", "stop", CALM_S)
    burn.do("close")
    return ratios


def burn_shipped(burn, hz, turns):
    """The same under the default budget; and samples for a second of CPU time, and how many there are to be."""
    burn.do("budget 1")
    burn.do("open %d" % hz)
    burn.do("start")
    for _ in range(SETTLE_S * 10): # until the governor has found a rate
        burn.do("run")
    burn.do("stop")
    ratios, got = Ratios(), Got()
    before = [burn.do("run") for _ in range(TURN)]
    for _ in range(turns):
        burn.do("start")
        for _ in range(CALM_RUNS):
            burn.do("run")
        samples = burn.do("samples")
        on = [burn.do("run") for _ in range(2 * TURN)]
        got.add(burn.do("samples") - samples, sum(on), burn.do("rate"))
        burn.do("stop")
        after = [burn.do("run") for _ in range(TURN)]
        ratios.add(statistics.median(before), on, statistics.median(after))
        before = after
    burn.do("close")
    burn.do("budget 0")
    return ratios, got


def burn_perf(burn, options, rounds, directory):
    ratios = Ratios()
    before = burn.do("run")
    for _ in range(rounds):
        slices = []
        with Perf(burn.process.pid, options, directory, CPUS[0]) as perf:
            for _ in range(3):
                own = perf.spent_ns()
                slices.append(burn.do("run") + perf.spent_ns() - own)
        after = burn.do("run")
        ratios.add(before, slices, after)
        before = after
    return ratios


def tell(name, ratios, what, against=None):
    value, low, high = stats.median_interval(ratios.cost)
    chance = stats.median_interval(ratios.chance)
    more = {"baseline": against, "ratio": value / against if against else 0} if against is not None else {}
    own = "" if ratios.collector is None else "; the collector's part is %+.2f" % ratios.collector
    if ratios.runs:
        own += "; medians of the runs: " + ", ".join("%+.2f" % one for one in sorted(ratios.runs))
    demo.figure(name, value, "%", "%s%s; median of %d slices, with 95 %% probability from %+.2f to %+.2f; without "
                "against without, by chance: %+.2f, from %+.2f to %+.2f%s" %
                (what, own, len(ratios.cost), low, high, *chance,
                 "; baseline: perf record -F 99 --call-graph dwarf" if more else ""), interval=[low, high],
                noise=(high - low) / 2, **more)
    return value


def cpu_bound(directory, quick):
    turns = 2 if quick else 18
    burn = Burn(directory)
    seconds = 4 if quick else 40
    tell("cpu_overhead_999hz_bare", burn_bare(burn, "bare", seconds),
         "CPU time that a perf event at 999 Hz adds whose handler does nothing, to a program that only computes")
    tell("cpu_overhead_999hz_bare_ride", burn_bare(burn, "ride", seconds),
         "the same with a timer at each tick, and an event for the rest")
    ours = {"99hz": burn_weft(burn, 99, turns), "999hz": burn_often(burn, 999, seconds)}
    ours["999hz_shipped"], got = burn_shipped(burn, 999, turns)
    got.tell("sample_rate_999hz_shipped", "of a program that only computes")
    theirs = {name: burn_perf(burn, options, turns, directory) for name, options in PERF.items()}
    burn.close()
    return ours, theirs


def read_slices(path, time_of="cpu_ns"):
    with open(path) as file:
        slices = [json.loads(line) for line in file]
    return [dict(one, each=one[time_of] / one["requests"]) for one in slices if one["requests"] > 100]


def neighbours(slices):
    """Ratios of slices that are next to each other: of those that differ, and of those that do not."""
    ratios = Ratios()
    for a, b in zip(slices, slices[1:]):
        if a["on"] == b["on"]:
            ratios.chance += [100 * b["each"] / a["each"] - 100] * (not a["on"])
            continue
        on, off = (a, b) if a["on"] else (b, a)
        ratios.cost.append(100 * on["each"] / off["each"] - 100)
    return ratios


def look(trace, got):
    """What the segments say about samples and their rate."""
    for path in sorted(glob.glob(os.path.join(trace, "*.weft"))):
        samples = demo.inspect(path)["samples"]
        done = subprocess.run([demo.program("weft"), "report", "--json", path], stdout=subprocess.PIPE, text=True)
        cost = json.loads(done.stdout)["recordings"][0]["cost_of_weft"]
        if samples["count"]:
            got.add(samples["count"], samples["weight_ns"], cost["samples"]["last_hz"])


def serve(directory, seconds, record, hz, slice_ms, during=None, samples=False, shipped=None):
    """The slices of a server under load for so long, or for as long as `during` takes. `samples`: only samples are
    switched, and the CPU time of a slice is that of the worker. `shipped`: a Got; the budget is the default one."""
    log, trace = os.path.join(directory, "slices"), tempfile.mkdtemp(dir=directory)
    with demo.Server(record=trace if record else None, cpu=CPUS[0],
                     env={"WEFT_SAMPLE_HZ": str(hz), **({} if shipped else {"WEFT_BUDGET_PPM": "off"})},
                     args=("--workers", 1, "--alternate", log, "--slice", slice_ms,
                           *(["--samples"] if samples else []))) as server:
        command = [demo.program("examples", "load"), "--port", server.port, "--json", "--seconds", seconds, *LOAD]
        load = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                preexec_fn=demo.alone(CPUS[-1]))
        if during:
            during(server.process.pid)
            load.terminate()
        if load.wait() and not during:
            raise SystemExit("bench: the load ended with status %d" % load.returncode)
    if shipped:
        look(trace, shipped)
    shutil.rmtree(trace)
    return read_slices(log, "workers_ns" if samples else "cpu_ns")


def serve_often(directory, hz, seconds):
    """Samples against none while all else is recorded."""
    ratios = Ratios().join(neighbours(serve(directory, max(seconds // SERVERS, 2), True, hz, SHORT_MS, samples=True))
                           for _ in range(SERVERS))
    slices = serve(directory, max(seconds // 2, LONG_LEAST_S), True, hz, LONG_MS, samples=True)
    part = [{"on": b["on"], "each": 100 * (b["collector_at_ns"] - a["collector_at_ns"]) / b["workers_ns"]}
            for a, b in zip(slices, slices[1:])]
    return ratios.with_collector(part)


class Interrupts:
    """A timer of a perf event in each thread of a process, which interrupts it and does nothing else."""

    SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine, -1)
    ENABLE, DISABLE = 0x2400, 0x2401
    NEITHER_USER_NOR_KERNEL = 1 << 4 | 1 << 5 | 1 << 6 # nor hypervisor

    def __init__(self, pid, hz):
        # type, size, config (cpu-clock), sample_period, sample_type, read_format, flags
        attr = struct.pack("IIQQQQQ", 1, 128, 0, 1000000000 // hz, 0, 0, 1 | self.NEITHER_USER_NOR_KERNEL)
        self.fds = [ctypes.CDLL(None, use_errno=True).syscall(self.SYS_PERF_EVENT_OPEN, attr.ljust(128, b"\0"),
                                                              int(task), -1, -1, 8)
                    for task in os.listdir("/proc/%d/task" % pid)]
        if min(self.fds) < 0:
            raise SystemExit("bench: perf_event_open: %s" % os.strerror(ctypes.get_errno()))

    def switch(self, on):
        for fd in self.fds:
            fcntl.ioctl(fd, self.ENABLE if on else self.DISABLE, 0)

    def close(self):
        for fd in self.fds:
            os.close(fd)


def serve_interrupted(directory, hz, seconds):
    """A server that records nothing, with interrupts in some slices, which begin at multiples of their length."""
    slice_ns, ons = SHORT_MS * 1000000, {}

    def during(pid):
        timer, at = Interrupts(pid, hz), time.monotonic_ns() // slice_ns + 1
        for on in kinds(seconds * 1000 // SHORT_MS):
            time.sleep(max(at * slice_ns - time.monotonic_ns(), 0) / 1e9)
            timer.switch(on)
            if time.monotonic_ns() < at * slice_ns + slice_ns // 20: # before the server looks at the clocks
                ons[at] = on
            at += 1
        timer.close()

    slices = serve(directory, 600, False, "off", SHORT_MS, during, samples=True)
    at = [one["begin_ns"] // slice_ns for one in slices]
    return neighbours([dict(one, on=ons[i]) for i, one in zip(at, slices) if i in ons])


def serve_perf(directory, options, rounds):
    """perf comes and goes while the server logs slices; which is which, the clock tells."""
    spans, spent = [], []

    def during(pid):
        for _ in range(rounds):
            begin = time.monotonic_ns()
            time.sleep(1.3)
            spans.append((0, begin, time.monotonic_ns()))
            with Perf(pid, options, directory, CPUS[-1]) as perf:
                begin = time.monotonic_ns()
                time.sleep(1.3)
                spans.append((1, begin, time.monotonic_ns()))
                spent.append(perf.spent_ns() / (time.monotonic_ns() - begin))

    slices = serve(directory, 600, False, "off", PERF_SLICE_MS, during)
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
    seconds, rounds = (6, 3) if quick else (72, 8)
    tell("cpu_overhead_999hz_bare_server",
         Ratios().join(serve_interrupted(directory, 999, max(seconds // SERVERS, 2)) for _ in range(SERVERS)),
         "CPU time that the interrupts of a timer at 999 Hz add, with no handler, to the example server")
    plain = neighbours(serve(directory, seconds, True, "off", SLICE_MS))
    without, got = statistics.median(plain.cost), Got()
    ours = {"99hz": neighbours(serve(directory, seconds, True, 99, SLICE_MS)),
            "999hz": serve_often(directory, 999, seconds),
            "999hz_shipped": neighbours(serve(directory, seconds, True, 999, SLICE_MS, shipped=got))}
    for name in ("99hz", "999hz_shipped"):
        ours[name].cost = [100 * (100 + cost) / (100 + without) - 100 for cost in ours[name].cost]
    got.tell("sample_rate_999hz_shipped_server", "of the example server")
    return ours, {name: serve_perf(directory, options, rounds) for name, options in PERF.items()}


def main():
    directory = tempfile.mkdtemp(dir=sys.argv[1])
    quick = "--quick" in sys.argv
    for suffix, measure, where in (("", cpu_bound, "to a program that only computes"),
                                   ("_server", server, "to the example server")):
        ours, theirs = measure(directory, quick)
        for name, options in PERF.items():
            dwarf = tell("cpu_overhead_" + name + suffix, theirs[name],
                         "CPU time that perf record %s adds, its own included, %s" % (" ".join(options), where))
        for name, ratios in ours.items():
            tell("cpu_overhead_%s%s" % (name, suffix), ratios,
                 "CPU time that samples at %s add, the collector's included, %s%s" %
                 (WHAT[name], where, ", over recording without samples" * (suffix != "")), dwarf)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
