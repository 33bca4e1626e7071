#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `weft run` costs small processes: bench/run_cost.py DIR true|fork|make|space [--quick].

true: a command that ends at once. fork: fork, exec and wait, from a program that runs already, and 500 forks without
exec. make: make -j4 of 40 small C files, without ccache. Each takes turns with the same without weft, under `perf
record` and under `strace -c -f` where those are installed, and with an empty library in LD_PRELOAD, which is the
floor of each process. Values are medians; wall time. space: of what address space a program has, what is weft's."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import demo
import stats

SOURCES = 40


def tools(directory):
    """Name -> what comes before the command."""
    empty = "LD_PRELOAD=" + os.path.abspath(demo.program("bench", "bench_empty_library.so"))
    found = {"none": [], "empty library": [empty], "weft": [os.path.abspath(demo.program("weft")), "run", "--"]}
    if shutil.which("perf"):
        found["perf record"] = ["perf", "record", "-q", "-o", os.path.join(directory, "perf.data"), "--"]
    if shutil.which("strace"):
        found["strace -c"] = ["strace", "-c", "-f", "-o", os.path.join(directory, "strace.out")]
    return found


def wall_of(command, cwd=None):
    begin = time.monotonic()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("WEFT_", "CCACHE_", "MAKE"))}
    if command[0].startswith("LD_PRELOAD="):
        env["LD_PRELOAD"], command = command[0].split("=", 1)[1], command[1:]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd, env=env, text=True)
    if done.returncode:
        raise SystemExit("bench: %s ended with status %d" % (command[0], done.returncode))
    return time.monotonic() - begin, done.stdout


def in_turn(kinds, repeats, measure):
    found = {kind: [] for kind in kinds}
    for i in range(repeats):
        order = list(kinds)
        for kind in order[i % len(order):] + order[:i % len(order)]:
            found[kind].append(measure(kind))
    return found


def beside(found, unit, scale):
    return ", ".join("%s %.*f %s" % (kind, 4 if scale == 1 else 3, statistics.median(values) * scale, unit) for kind, values in found.items())


def tell(name, found, unit, scale, what, relative):
    """The difference to none: of pairs, in `unit`, or in percent."""
    pairs = [100 * (on / off - 1) if relative else (on - off) * scale for on, off in zip(found["weft"], found["none"])]
    median, low, high = stats.median_interval(pairs)
    demo.figure(name, median, "%" if relative else unit, "%s; %s" % (what, beside(found, unit, scale)), interval=[low, high])


def report_true(directory, quick):
    kinds = tools(directory)
    found = in_turn(kinds, 10 if quick else 60, lambda kind: wall_of([*kinds[kind], "/bin/true"])[0])
    tell("run_true_cost", found, "ms", 1e3, "what `weft run -- true` takes longer than `true`, with its report", False)


def report_fork(directory, quick):
    kinds = tools(directory)
    program = os.path.abspath(demo.program("bench", "bench_forks_plain"))
    for what, name, relative, text in (
            ("exec", "run_fork_cost", False, "what fork, exec of true and wait take longer in a program that `weft run` runs"),
            ("fork", "run_fork_cost_500", True, "what 500 times fork and wait take longer")):
        found = in_turn(kinds, 2 if quick else 9, lambda kind: float(wall_of([*kinds[kind], program, what, "500"])[1]))
        tell(name, found, "ms" if what == "exec" else "s", 1e3 / 500 if what == "exec" else 1, text, relative)


def report_make(directory, quick):
    kinds = tools(directory)
    with open(os.path.join(directory, "Makefile"), "w") as file:
        file.write("all: %s\n%%.o: %%.c\n\tcc -O1 -c -o $@ $<\n" % " ".join("f%d.o" % i for i in range(SOURCES)))
    for i in range(SOURCES):
        with open(os.path.join(directory, "f%d.c" % i), "w") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\nint f%d(int n) { printf(\"%%d\\n\", n); return abs(n) + %d; }\n" % (i, i))

    def measure(kind):
        for i in range(SOURCES):
            path = os.path.join(directory, "f%d.o" % i)
            if os.path.exists(path):
                os.remove(path)
        return wall_of([*kinds[kind], "make", "-j4"], cwd=directory)[0]

    tell("run_make_cost", in_turn(kinds, 2 if quick else 9, measure), "s", 1,
         "what `make -j4` of %d small C files takes longer under `weft run`" % SOURCES, True)


def report_space(directory, quick):
    del quick
    weft = tools(directory)["weft"]
    program = os.path.abspath(demo.program("bench", "bench_space_plain"))
    more = {}
    for threads in ("0", "50"):
        plain, recorded = (int(wall_of([*before, program, threads])[1]) for before in ([], weft))
        more[threads] = (recorded - plain) / 1024
    demo.figure("address_space", more["0"], "MiB", "address space of a program of one thread under `weft run`, less what it has without; with 51 threads "
                "%.1f MiB" % more["50"])


def main():
    directory = tempfile.mkdtemp(dir=sys.argv[1])
    try:
        {"true": report_true, "fork": report_fork, "make": report_make, "space": report_space}[sys.argv[2]](directory, "--quick" in sys.argv)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
