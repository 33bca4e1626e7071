#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
# serial: it measures CPU time
"""A program in a cgroup of its own with a quota of a quarter of a CPU: the report says in its first lines that the quota stopped it, for as
long as the kernel says, and which of the time that its polls were preempted was that."""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ["WEFT_BUILD"]
QUOTA_US, PERIOD_US, SECONDS = 25000, 100000, 3


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def check(true, what):
    if not true:
        sys.exit("FAIL: " + what)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def mounted():
    """Where the cpu controller is: the directory and whether it is of version 1."""
    two = None
    with open("/proc/self/mountinfo") as file:
        for line in file:
            words = line.split()
            kind = words[words.index("-") + 1]
            if kind == "cgroup" and "cpu" in words[-1].split(","):
                return words[4], True
            if kind == "cgroup2":
                two = words[4]
    if two and "cpu" in open(two + "/cgroup.controllers").read().split():
        return two, False
    skip("no cgroup with a cpu controller is mounted here")


def make(root, old):
    path = "%s/weft-throttle-%d" % (root, os.getpid())
    try:
        if not old and "cpu" not in open(root + "/cgroup.subtree_control").read().split():
            write(root + "/cgroup.subtree_control", "+cpu")
        os.mkdir(path)
    except OSError as error:
        skip("no cgroup can be made: %s" % error)
    try:
        if old:
            write(path + "/cpu.cfs_period_us", str(PERIOD_US))
            write(path + "/cpu.cfs_quota_us", str(QUOTA_US))
        else:
            write(path + "/cpu.max", "%d %d" % (QUOTA_US, PERIOD_US))
    except OSError as error:
        os.rmdir(path)
        skip("no quota can be set: %s" % error)
    return path


def throttled(path, old):
    """How often, and for how long."""
    stat = dict(line.split() for line in open(path + "/cpu.stat"))
    return int(stat["nr_throttled"]), int(stat["throttled_time"]) if old else 1000 * int(stat["throttled_usec"])


def report(directory, *args):
    return subprocess.run([BUILD + "/weft", "report", *args, directory], stdout=subprocess.PIPE, text=True, check=True).stdout


def main():
    root, old = mounted()
    path = make(root, old)
    with tempfile.TemporaryDirectory() as directory:
        try:
            done = subprocess.run([BUILD + "/test/throttle_program", directory, str(SECONDS)], stdout=subprocess.PIPE,
                                  preexec_fn=lambda: write(path + "/cgroup.procs", "0"))
            times, kernel_ns = throttled(path, old)
        finally:
            os.rmdir(path)
        check(done.returncode == 0, "the program ended with %d" % done.returncode)
        truth = json.loads(done.stdout)
        recording = json.loads(report(directory, "--json"))["recordings"][0]
        text = report(directory, "--full")
    off_ns = truth["wall_ns"] - truth["cpu_ns"]
    print("kernel: throttled %d times, for %.0f ms; polls: %.0f ms of %.0f off the CPU" %
          (times, kernel_ns / 1e6, off_ns / 1e6, truth["wall_ns"] / 1e6))
    if times * PERIOD_US < SECONDS * 1e6 / 2:
        skip("others had the CPU: the quota was used up %d times" % times)
    quota = recording["cpu_quota"]
    print(quota, recording["time_in_polls"])
    check(abs(quota["cpus"] - QUOTA_US / PERIOD_US) < 1e-6, "the quota is another")
    # What was before the first reading, 20 ms after the start, and behind the last one, is not known; a time that is
    # not over is in no counter.
    check(kernel_ns * 0.7 <= quota["throttled_ns"] <= kernel_ns, "the counter says something else")
    check(times - 4 <= quota["throttled_times"] <= times, "it says that it was used up %d times" % quota["throttled_times"])
    head = text.split("\n\n")[0]
    check("CPU quota of 0.25 CPUs stopped the process" in head, "the first lines do not say so:\n" + head)
    check(any(one["what"] == "cpu_quota" for one in recording["incomplete"]), "JSON does not say so")
    time = recording["time_in_polls"]
    if not time.get("preempted_ns"):
        skip("context switches cannot be recorded here")
    check(time["throttled_ns"] <= time["preempted_ns"], "more throttled than preempted")
    # On a busy machine the rest of the time off the CPU is others'. The counter adds up over CPUs; but the program has
    # one thread.
    check(time["throttled_ns"] > 0.7 * min(kernel_ns, off_ns), "most of what the quota took is not in the polls")
    check(time["throttled_ns"] < 1.05 * kernel_ns, "more than the quota took is in the polls")


main()
