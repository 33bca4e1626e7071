#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What everything together costs in CPU time, held by the budget of 1 %: bench/all_on.py DIR [--quick].

Samples at 99 Hz, records of context switches, looks at threads that wait, polls and all other events, with the
default budget, for two threads that hand a futex to and fro. Recording is on and off in slices of half a second that
take turns in one process; the figure is the CPU time of the process, weft's own threads included, for each turn. For
the example server: bench/server.py --all-on."""
import os
import shutil
import subprocess
import sys
import tempfile

import demo
import overhead


def pingpong(directory, seconds):
    log, trace = os.path.join(directory, "slices"), tempfile.mkdtemp(dir=directory)
    with open(log, "w") as out:
        subprocess.run([demo.program("bench", "bench_pingpong"), trace, str(seconds)], stdout=out, check=True,
                       preexec_fn=demo.alone(*overhead.CPUS))
    shutil.rmtree(trace)
    return overhead.neighbours(overhead.read_slices(log))


def main():
    directory = tempfile.mkdtemp(dir=sys.argv[1])
    seconds = 8 if "--quick" in sys.argv else 60
    overhead.tell("overhead_all_on", pingpong(directory, seconds),
                  "CPU time that recording with everything on adds to two threads that hand a futex to and fro")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
