#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast addresses become names with inlined frames: bench/symbol.py DIR [--quick]

symbolize_rate: the addresses that perf sampled in a program of many functions, each with inlined ones, and in the libraries
below it, beside perf script, which prints the same frames. symbolize_rate_distinct: addresses of the same program that
are all different, beside eu-addr2line -i for the very same ones. Both in frames a second.

What is the same for all: addresses, inlined frames, lines; files are in the page cache, because each command runs once
before it is timed; each run begins with nothing else, so it opens files, unpacks debug information and builds its tables, and
may keep the answers it gave. Runs alternate and the best of each counts: perf asks addr2line over a pipe, address by
address, and on a busy machine the median is mostly the time that the two wait for each other."""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

BUILD = os.environ.get("WEFT_BUILD", "build/release")
PROGRAM = os.path.abspath(os.path.join(BUILD, "bench", "bench_symbol_inside"))
FRAME = re.compile(r"^\s+([0-9a-f]+) .*\((/[^()]+)\)$", re.M)


def show(name, value, base, note):
    print(json.dumps({"name": name, "value": value, "unit": "frames/s", "baseline": base, "ratio": value / base,
                      "note": note}), flush=True)


def ours(job):
    frames, ns = subprocess.run([PROGRAM, job], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return int(frames), int(ns) / 1e9


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout


def segment(path):
    """The executable segment of a file as a line of a job, at the addresses that the file has."""
    for line in output("readelf", "-lW", path).splitlines():
        f = line.split()
        if f[:1] == ["LOAD"] and "E" in f[6:-1]:
            address = int(f[2], 16)
            return "m %x %x %x %s\n" % (address, address + int(f[4], 16), int(f[1], 16), path)
    return None


def functions(path):
    """Addresses and sizes of the functions."""
    lines = map(str.split, output("nm", "-S", "--defined-only", path).splitlines())
    return [(int(f[0], 16), int(f[1], 16)) for f in lines if len(f) == 4 and f[2] in "tT"]


HEAD = """#include <stdlib.h>
#include <time.h>
#define INLINE static inline __attribute__((always_inline))
#define OUTLINE __attribute__((noinline))
"""
FUNCTION = """INLINE long leaf{i}(long x)
{{
	if (x & {a})
		x ^= x >> 3;
	return x * {b} + 1;
}}
INLINE long middle{i}(long x)
{{
	x += {c};
	return leaf{i}(x) ^ leaf{i}(x + 1);
}}
OUTLINE long outer{i}(long x)
{{
	for (int i = 0; i < 50; i++)
		x = middle{i}(x) / (i + 1);
	return x;
}}
"""
MAIN = """static long (*const all[])(long) = {{{names}}};
int main(int argc, char **argv)
{{
	long x = argc;
	clock_t end = clock() + (clock_t)(atof(argv[1]) * CLOCKS_PER_SEC);
	while (clock() < end)
		for (int i = 0; i < {n}; i++)
			x = all[i](x);
	return (int)(x & 1);
}}
"""


def compile_all(sources):
    """Objects of the sources, as many at a time as there are processors."""
    running = []
    for source in sources:
        if len(running) == (os.cpu_count() or 1) and running.pop(0).wait() != 0:
            sys.exit("bench: the compiler failed")
        running.append(subprocess.Popen(["cc", "-O2", "-g", "-c", source, "-o", source[:-2] + ".o"]))
    if any(process.wait() for process in running):
        sys.exit("bench: the compiler failed")


def make_program(path, n_files, n_functions):
    """A program whose time goes evenly into its functions, in files of a usual size: tools that search a unit from its
    beginning for each address are not to suffer from one that is larger than people write."""
    sources = []
    for f in range(n_files):
        sources.append("%s_%d.c" % (path, f))
        with open(sources[-1], "w", encoding="ascii") as out:
            out.write(HEAD)
            for i in range(f * n_functions, (f + 1) * n_functions):
                out.write("long outer%d(long x);\n" % i)
                out.write(FUNCTION.format(i=i, a=i % 64 + 1, b=i * 2 + 3, c=i % 7))
    n = n_files * n_functions
    sources.append(path + "_main.c")
    with open(sources[-1], "w", encoding="ascii") as out:
        out.write(HEAD + "".join("long outer%d(long x);\n" % i for i in range(n)))
        out.write(MAIN.format(names=", ".join("outer%d" % i for i in range(n)), n=n))
    compile_all(sources)
    subprocess.run(["cc", "-o", path] + [source[:-2] + ".o" for source in sources], check=True)


def distinct_job(program, job, n):
    """Addresses all over the functions of the program; answers them."""
    found = functions(program)
    sizes = [f[1] for f in found]
    pick = random.Random(1)
    places = set()
    while len(places) < n:
        start, size = pick.choices(found, sizes)[0]
        places.add(start + pick.randrange(size))
    with open(job, "w", encoding="ascii") as out:
        out.write(segment(program))
        for place in places:
            out.write("a 0 %x\n" % place)
    return places


def timed(*command, asked=None):
    begin = time.monotonic()
    text = subprocess.run(command, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout
    return text, time.monotonic() - begin


def best(rounds, *runs):
    """The shortest time of each of the runs, which alternate after a first round that does not count."""
    times = [[run() for run in runs] for _ in range(rounds + 1)]
    return [min(round_[i] for round_ in times[1:]) for i in range(len(runs))]


def same_frames(name, ours_n, theirs_n):
    if abs(ours_n - theirs_n) > 0.03 * theirs_n:
        print("bench: %s: %d frames beside %d: not the same work" % (name, ours_n, theirs_n), file=sys.stderr)


def distinct(program, directory, quick):
    n = 500 if quick else 5000
    job = os.path.join(directory, "symbol.job")
    asked = "".join("0x%x\n" % place for place in distinct_job(program, job, n))
    frames, _ = ours(job)
    command = ("eu-addr2line", "-i", "-f", "-e", program)
    their_frames = timed(*command, asked=asked)[0].count("\n") // 2
    same_frames("symbolize_rate_distinct", frames, their_frames)
    own, theirs = best(1 if quick else 3, lambda: ours(job)[1], lambda: timed(*command, asked=asked)[1])
    show("symbolize_rate_distinct", frames / own, their_frames / theirs,
         "%d addresses, all different, of a program of %d KB: %d frames in %.1f ms; eu-addr2line -i %d in %.1f ms" %
         (n, os.path.getsize(program) // 1024, frames, own * 1e3, their_frames, theirs * 1e3))


def perf_job(data, job):
    """The sampled addresses, which perf prints as the files have them, as a job; answers them."""
    found = FRAME.findall(output("perf", "script", "-i", data, "--no-inline", "-F", "ip,sym,dso"))
    modules = {}
    with open(job, "w", encoding="ascii") as out:
        for _, path in found:
            line = path not in modules and os.path.exists(path) and segment(path)
            if line:
                modules[path] = len(modules)
                out.write(line)
        places = [(modules[path], place) for place, path in found if path in modules]
        for place in places:
            out.write("a %d %s\n" % place)
    return places


def sampled(program, directory, quick):
    job, data = os.path.join(directory, "symbol.job"), os.path.join(directory, "symbol.perf")
    recorded = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "3999", "--call-graph", "dwarf,1024",
                               "-o", data, program, "0.5" if quick else "3"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if recorded.returncode not in (0, 1):  # the program's own status
        print("bench: no symbolize_rate: perf record: " + recorded.stderr.strip(), file=sys.stderr)
        return
    places = perf_job(data, job)
    frames, _ = ours(job)
    # Reading the file and unwinding is not what is measured, so perf's time without names is taken off.
    without = ("perf", "script", "-i", data, "--no-inline", "-F", "ip")
    names = ("perf", "script", "-i", data, "-F", "ip,sym,dso,srcline")
    their_frames = len(re.findall(r"^\t *[0-9a-f]+ ", timed(*names)[0], re.M))
    same_frames("symbolize_rate", frames, their_frames)
    own, unwinding, theirs = best(1 if quick else 3, lambda: ours(job)[1], lambda: timed(*without)[1],
                                  lambda: timed(*names)[1])
    theirs -= unwinding
    show("symbolize_rate", frames / own, their_frames / theirs,
         "%d sampled addresses, %d different: %d frames in %.1f ms; perf script %d in %.0f ms beside %.0f ms of reading "
         "and unwinding" % (len(places), len(set(places)), frames, own * 1e3, their_frames, theirs * 1e3,
                            unwinding * 1e3))


def main():
    quick = "--quick" in sys.argv
    directory = sys.argv[1]
    os.environ.pop("DEBUGINFOD_URLS", None)  # nobody asks the network
    program = os.path.abspath(os.path.join(directory, "symbol_program"))
    make_program(program, 10 if quick else 50, 20 if quick else 60)
    if shutil.which("eu-addr2line"):
        distinct(program, directory, quick)
    if shutil.which("perf"):
        sampled(program, directory, quick)
    else:
        print("bench: no symbolize_rate: perf is not installed", file=sys.stderr)


main()
