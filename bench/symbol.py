#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast addresses become names with inlined frames: bench/symbol.py DIR [--quick]

symbolize_rate: the addresses that perf sampled in a program of many functions, each with inlined ones, beside perf
script, which prints the same frames. symbolize_rate_distinct: addresses of the same program that are all different, so
that no answer can be used twice, beside eu-addr2line -i. Both in frames a second, with the time to open files and to
build tables."""
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


def make_program(path, n):
    """A program whose time goes evenly into n functions."""
    with open(path + ".c", "w", encoding="ascii") as out:
        out.write("#include <stdlib.h>\n#include <time.h>\n"
                  "#define INLINE static inline __attribute__((always_inline))\n"
                  "#define OUTLINE static __attribute__((noinline))\n")
        for i in range(n):
            out.write("INLINE long leaf%d(long x)\n{\n\tif (x & %d)\n\t\tx ^= x >> 3;\n"
                      "\treturn x * %d + 1;\n}\n"
                      "INLINE long middle%d(long x)\n{\n\tx += %d;\n\treturn leaf%d(x) ^ leaf%d(x + 1);\n}\n"
                      "OUTLINE long outer%d(long x)\n{\n\tfor (int i = 0; i < 50; i++)\n"
                      "\t\tx = middle%d(x) / (i + 1);\n\treturn x;\n}\n" % (i, i % 64 + 1, i * 2 + 3, i, i % 7, i, i, i, i))
        names = ", ".join("outer%d" % i for i in range(n))
        out.write("static long (*const all[])(long) = {%s};\n" % names)
        out.write("int main(int argc, char **argv)\n{\n\tlong x = argc;\n\tclock_t end = clock() + "
                  "(clock_t)(atof(argv[1]) * CLOCKS_PER_SEC);\n\twhile (clock() < end)\n"
                  "\t\tfor (int i = 0; i < %d; i++)\n\t\t\tx = all[i](x);\n\treturn (int)(x & 1);\n}\n" % n)
    subprocess.run(["cc", "-O2", "-g", "-o", path, path + ".c"], check=True)


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


def distinct(program, directory, quick):
    n = 1000 if quick else 10000
    job = os.path.join(directory, "symbol.job")
    places = distinct_job(program, job, n)
    frames, seconds = ours(job)
    some = list(places)[:100 if quick else 300]  # it would take minutes for all
    asked = "".join("0x%x\n" % place for place in some)
    begin = time.monotonic()
    text = subprocess.run(["eu-addr2line", "-i", "-f", "-e", program], input=asked, stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    theirs = time.monotonic() - begin
    their_frames = text.count("\n") // 2
    show("symbolize_rate_distinct", frames / seconds, their_frames / theirs,
         "%d addresses, all different, of a program of %d KB: %d frames in %.1f ms; eu-addr2line -i, for %d of them, "
         "%d in %.1f ms" % (n, os.path.getsize(program) // 1024, frames, seconds * 1e3, len(some), their_frames,
                            theirs * 1e3))


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


def timed(*command):
    begin = time.monotonic()
    text = output(*command)
    return text, time.monotonic() - begin


def sampled(program, directory, quick):
    job, data = os.path.join(directory, "symbol.job"), os.path.join(directory, "symbol.perf")
    recorded = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "3999", "--call-graph", "dwarf,1024",
                               "-o", data, program, "0.5" if quick else "5"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if recorded.returncode not in (0, 1):  # the program's own status
        print("bench: no symbolize_rate: perf record: " + recorded.stderr.strip(), file=sys.stderr)
        return
    places = perf_job(data, job)
    frames, seconds = ours(job)
    # Reading the file and unwinding is not what is measured, so perf's time without names is taken off.
    _, unwinding = timed("perf", "script", "-i", data, "--no-inline", "-F", "ip")
    text, theirs = timed("perf", "script", "-i", data, "-F", "ip,sym,dso,srcline")
    theirs -= unwinding
    their_frames = len(re.findall(r"^\t *[0-9a-f]+ ", text, re.M))
    show("symbolize_rate", frames / seconds, their_frames / theirs,
         "%d sampled addresses, %d different: %d frames in %.1f ms; perf script %d in %.0f ms beside its reading and "
         "unwinding" % (len(places), len(set(places)), frames, seconds * 1e3, their_frames, theirs * 1e3))


def main():
    quick = "--quick" in sys.argv
    directory = sys.argv[1]
    os.environ.pop("DEBUGINFOD_URLS", None)  # nobody asks the network
    program = os.path.abspath(os.path.join(directory, "symbol_program"))
    make_program(program, 200 if quick else 5000)
    if shutil.which("eu-addr2line"):
        distinct(program, directory, quick)
    if shutil.which("perf"):
        sampled(program, directory, quick)
    else:
        print("bench: no symbolize_rate: perf is not installed", file=sys.stderr)


main()
