#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast samples are summed and profiles encoded: bench/profile.py DIR [--quick]

stack_recorder: samples a second of one thread into the recorder (export/stacks.h), beside only reading the same frames
and labels. pprof_encode: MB of pprof a second, encoded and compressed, in one thread's CPU time, beside `go tool pprof
-proto`, which reads the very same file and writes it again. That one does more (it decodes first) and has threads of its
own, so its CPU time counts; it is what people run who convert profiles."""
import json
import os
import resource
import shutil
import subprocess
import sys

BUILD = os.environ.get("WEFT_BUILD", "build/release")
PROGRAM = os.path.join(BUILD, "bench", "bench_profile_inside")


def show(name, value, unit, base, note):
    against = {"baseline": base, "ratio": value / base} if base else {}
    print(json.dumps({"name": name, "value": value, "unit": unit, **against, "note": note}), flush=True)


def go_cpu_s(path, scratch):
    """CPU seconds of go tool pprof -proto, without what it takes for an empty profile."""
    tool = subprocess.run(["go", "tool", "-n", "pprof"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()

    def cpu():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([tool, "-proto", "-symbolize=none", "-output=" + os.path.join(scratch, "again.pb.gz"), path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return min(cpu() for _ in range(3))


def main():
    scratch = sys.argv[1]
    path = os.path.join(scratch, "profile.pb.gz")
    samples = "100000" if "--quick" in sys.argv else "400000"
    out = subprocess.run([PROGRAM, path, samples], stdout=subprocess.PIPE, check=True, text=True).stdout
    n, rows, add_ns, floor_ns, encode_ns, gzip_ns, plain, packed = map(int, out.split())
    show("stack_recorder", n / (add_ns / 1e9), "samples/s", n / (floor_ns / 1e9), "%d samples, %d rows; beside reading them" % (n, rows))
    show("pprof_encode_plain", plain / 1e6 / (encode_ns / 1e9), "MB/s", None, "%d rows, %.1f MB" % (rows, plain / 1e6))
    seconds = (encode_ns + gzip_ns) / 1e9
    base = plain / 1e6 / go_cpu_s(path, scratch) if shutil.which("go") else None
    show("pprof_encode", plain / 1e6 / seconds, "MB/s", base, "and gzip, to %.1f MB; beside go tool pprof -proto" % (packed / 1e6)
         if base else "and gzip, to %.1f MB; go is not here" % (packed / 1e6))


if __name__ == "__main__":
    main()
