#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What weft costs with default options, seen from outside: bench/default.py DIR WHAT [--quick].

Processes with and without weft take turns, so that both see the machine in the same states. The figure of a pair is the
CPU time of the process with weft, its start and its end included, less that of the one without, as a share of what the
one without used, or of half a CPU where that is more: that is what the budget of 1 % is of. Where the work is not fixed
by a clock, CPU times are for each request. The value is the median of the pairs.

WHAT: demo_idle, demo_30k, demo_saturated, events_2m, switches_200k, threads_1500, short_processes; p99, latencies of
the demo at 30,000 requests a second, open loop; share, how much of the time of long polls the default demo accounts
for; collector, CPU time and wakeups of weft's own threads in the demo, idle and at 30,000 requests a second."""
import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import demo
import stats

EVENTS_ALONE = {"WEFT_SAMPLE_HZ": "off", "WEFT_SWITCHES": "off", "WEFT_WALL_HZ": "off"}
LEAST_CPU = 0.5 # of one: what the budget is of when the program uses less
LONG_NS = 1_000_000
FLOOR = "floor"
RATE = ("--rate", 30000, "--connections", 32)
SATURATED = ("--connections", 48, "--pipeline", 4)


def clean_env(more=None):
    return {**{key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}, **(more or {})}


def run(command, env=None):
    """CPU seconds of the process and its children, wall seconds, and what it printed."""
    out = tempfile.TemporaryFile("w+")
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.DEVNULL,
                               env=clean_env(env))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("bench: %s ended with status %d" % (command[0], process.returncode))
    out.seek(0)
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, out.read()


class Outcome:
    """Of one run. `work`: requests, or 1 where the pace is fixed. `own_s`: what weft says it used; None: it was not
    there."""

    def __init__(self, cpu_s, wall_s, work=1, own_s=None, result=None):
        self.cpu_s, self.wall_s, self.work, self.own_s, self.result = cpu_s, wall_s, work, own_s, result


def cost_of(trace):
    """What weft says of its own CPU time in what it recorded, in seconds."""
    done = subprocess.run([demo.program("weft"), "report", "--json", trace], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("bench: weft report ended with status %d" % done.returncode)
    recordings = json.loads(done.stdout)["recordings"]
    return sum(source["cpu_ns"] for recording in recordings for source in (recording["cost_of_weft"] or {}).values()
               if isinstance(source, dict)) / 1e9


def serve(directory, recorded, seconds, load, env=None):
    """The example server, with a load or idle; its CPU time is that of the whole process."""
    trace = os.path.join(directory, "trace")
    begin = time.monotonic()
    with demo.Server(record=trace if recorded else None, args=("--events", "--spans"), env=env) as server:
        result = demo.load(server.port, "--seconds", seconds, *load) if load else None
        if not load:
            time.sleep(seconds)
    own = cost_of(trace) if recorded else None
    shutil.rmtree(trace, ignore_errors=True)
    return Outcome(server.cpu_s, time.monotonic() - begin, result["requests"] if result else 1, own, result)


def paced(directory, recorded, seconds, what):
    trace = os.path.join(directory, "trace")
    cpu_s, wall_s, text = run([demo.program("bench", "bench_default"), what, seconds, *([trace] if recorded else [])])
    shutil.rmtree(trace, ignore_errors=True)
    return Outcome(cpu_s, wall_s, 1, json.loads(text)["cost_ns"] / 1e9 if recorded else None)


def short_page():
    """The page in which `weft run` has processes counted (src/base/short.h): its descriptor, and the variable."""
    fd = os.memfd_create("weft-short-processes", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    os.pwrite(fd, b"wftshort", 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd, "/proc/%d/fd/%d %d" % (os.getpid(), fd, os.fstat(fd).st_ino)


def short_processes(directory, recorded, _seconds):
    """300 of them, each of a few ms, below one shell, with what `weft run` puts into their environment, but without its
    report. FLOOR instead of recorded: an empty library is preloaded."""
    script = "i=0; while [ $i -lt 300 ]; do /usr/bin/sort /etc/services >/dev/null; i=$((i+1)); done"
    trace = os.path.join(directory, "trace")
    os.makedirs(trace)
    open(os.path.join(trace, "short-processes.txt"), "w").close()
    page, counts = short_page()
    env = {"LD_PRELOAD": os.path.abspath(demo.program("libweft-preload.so")), "WEFT_PRELOAD_DIR": trace,
           "WEFT_PRELOAD_CHILDREN": "1", "WEFT_PRELOAD_COUNTS": counts}
    if recorded == FLOOR:
        env = {"LD_PRELOAD": os.path.abspath(demo.program("bench", "bench_empty_library.so"))}
    cpu_s, wall_s, _ = run(["/bin/sh", "-c", script], env if recorded else None)
    os.close(page)
    shutil.rmtree(trace)
    return Outcome(cpu_s, wall_s)


COSTS = {
    "demo_idle": lambda directory, recorded, seconds: serve(directory, recorded, seconds, None),
    "demo_30k": lambda directory, recorded, seconds: serve(directory, recorded, seconds, RATE),
    "demo_saturated": lambda directory, recorded, seconds: serve(directory, recorded, seconds, SATURATED),
    "events_2m": lambda directory, recorded, seconds: paced(directory, recorded, seconds, "events"),
    "switches_200k": lambda directory, recorded, seconds: paced(directory, recorded, seconds, "switches"),
    "threads_1500": lambda directory, recorded, seconds: paced(directory, recorded, seconds, "threads"),
    "short_processes": short_processes,
}


def added(on, off):
    """In % of what the budget is of."""
    base = max(off.cpu_s, LEAST_CPU * off.wall_s) / off.work
    return 100 * (on.cpu_s / on.work - off.cpu_s / off.work) / base


def report_cost(directory, what, quick):
    pairs, seconds = (2, 3) if quick else (8, 12)
    measure = COSTS[what]
    values, own, offs = [], [], []
    for i in range(pairs):
        order = (True, False) if i % 2 else (False, True)
        outcome = {recorded: measure(directory, recorded, seconds) for recorded in order}
        on, off = outcome[True], outcome[False]
        values.append(added(on, off))
        offs.append(off)
        if on.own_s is not None:
            own.append(100 * on.own_s / on.work / (max(off.cpu_s, LEAST_CPU * off.wall_s) / off.work))
    median, low, high = stats.median_interval(values)
    note = ("what weft with default options adds to the CPU time of the process, in %% of what the budget of 1 %% is "
            "of; %d pairs, processes with and without weft in turn; with 95 %% probability from %+.2f to %+.2f; without "
            "weft %.1f %% of a CPU" % (
                pairs, low, high, 100 * statistics.median(off.cpu_s / off.wall_s for off in offs)))
    if what == "short_processes":
        floor = [added(measure(directory, FLOOR, seconds), measure(directory, False, seconds)) for _ in range(pairs)]
        note += "; an empty library in LD_PRELOAD adds %+.2f" % statistics.median(floor)
        demo.figure("default_cost_short_processes_floor", statistics.median(floor), "%",
                    "what an empty library in LD_PRELOAD adds to the CPU time of these processes; %d pairs" % pairs)
    if own:
        note += "; weft says %.2f of itself" % statistics.median(own)
    demo.figure("default_cost_" + what, median, "%", note, interval=[low, high],
                **({"own": statistics.median(own)} if own else {}))


def report_p99(directory, quick):
    pairs, seconds = (2, 3) if quick else (20, 4)
    kinds = {"without": None, "events": EVENTS_ALONE, "default": {}}
    found = {kind: [] for kind in kinds}
    for i in range(pairs):
        order = list(kinds)[i % 3:] + list(kinds)[:i % 3]
        for kind in order:
            found[kind].append(serve(directory, kinds[kind] is not None, seconds, RATE, kinds[kind]).result)
    for name, key in (("p99", "p99_ns"), ("p999", "p999_ns")):
        medians = {kind: statistics.median(one[key] for one in found[kind]) for kind in kinds}
        for kind, suffix in (("default", ""), ("events", "_events")):
            demo.figure("default_%s%s" % (name, suffix), medians[kind] / medians["without"], "x",
                        "%s latency of the demo at 30,000 requests/s, open loop, %s, over that without weft: ratio of "
                        "the medians of "
                        "%d runs each of %d s, in turn; %.0f us with and %.0f without" % (
                            name, "events alone" if suffix else "default options", pairs, seconds, medians[kind] / 1e3,
                            medians["without"] / 1e3), baseline=1)


def report_share(directory, quick):
    """As tools/demo does it, with faults."""
    shares = []
    for _ in range(1 if quick else 5):
        trace = os.path.join(directory, "trace")
        with demo.Server(record=trace, args=("--events", "--spans")) as server:
            demo.load(server.port, "--seconds", 4, *RATE, "--faults", 1)
        done = subprocess.run([demo.program("weft"), "report", "--json", "--top", "100000", trace],
                              stdout=subprocess.PIPE,
                              text=True, check=True)
        shutil.rmtree(trace)
        polls = [poll for recording in json.loads(done.stdout)["recordings"] for poll in recording["longest_polls"]
                 if poll["duration_ns"] >= LONG_NS]
        total = sum(poll["duration_ns"] for poll in polls)
        unknown = sum((poll["breakdown"] or {}).get("not_measured_ns", poll["duration_ns"]) for poll in polls)
        shares.append(100 * (1 - unknown / total))
    demo.figure("measured_share", statistics.median(shares), "%",
                "of the time of polls of 1 ms and longer, in the demo with default options, that is accounted for; "
                "%d runs, %.1f to %.1f" % (
                    len(shares), min(shares), max(shares)))


def own_threads(pid):
    """CPU time in ns of weft's threads, and how often they were given a CPU."""
    cpu_ns = runs = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as file:
                if not file.read().startswith("weft-"):
                    continue
            with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as file:
                fields = file.read().split()
        except OSError:
            continue # it ended
        cpu_ns, runs = cpu_ns + int(fields[0]), runs + int(fields[2])
    return cpu_ns, runs


def report_collector(directory, quick):
    runs, warm_s, seconds = (1, 2, 3) if quick else (5, 3, 10)
    for name, load in (("idle", None), ("30k", RATE)):
        found = []
        for _ in range(runs):
            trace = os.path.join(directory, "trace")
            with demo.Server(record=trace, args=("--events", "--spans")) as server:
                args = (server.port, "--seconds", warm_s + seconds + 1, *(load or ()))
                thread = threading.Thread(target=demo.load, args=args)
                if load:
                    thread.start()
                time.sleep(warm_s)
                begin, before = time.monotonic(), own_threads(server.process.pid)
                time.sleep(seconds)
                passed, after = time.monotonic() - begin, own_threads(server.process.pid)
                if load:
                    thread.join()
            shutil.rmtree(trace)
            found.append(((after[0] - before[0]) / 1e6 / passed, (after[1] - before[1]) / passed))
        times = [one[0] for one in found]
        demo.figure("collector_" + name, statistics.median(times), "ms/s",
                    "CPU time of weft's own threads in the demo, %s, from %d s after the start on; %d runs of %d s, %.2f "
                    "to %.2f; %.1f wakeups a second" % (
                        "at 30,000 requests/s" if load else "idle", warm_s, runs, seconds, min(times), max(times),
                        statistics.median(one[1] for one in found)))


def main():
    directory, what, quick = tempfile.mkdtemp(dir=sys.argv[1]), sys.argv[2], "--quick" in sys.argv
    try:
        if what == "p99":
            report_p99(directory, quick)
        elif what == "share":
            report_share(directory, quick)
        elif what == "collector":
            report_collector(directory, quick)
        else:
            report_cost(directory, what, quick)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
