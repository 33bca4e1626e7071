#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""The example server has three faults: it computes, it blocks in a call, it waits for a lock. The report explains each poll that they
make, and what it says adds up."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "bench"))
import demo

PARTS = ("on_cpu_ns", "blocked_ns", "waiting_ns", "preempted_ns", "not_measured_ns")
MS = 1_000_000
TOP = "100"  # polls, of which there are more long ones than faults on a busy machine


def check(true, what, about=None):
    if not true:
        sys.exit("FAIL: %s%s" % (what, "" if about is None else "\n" + json.dumps(about, indent=1)))


def settled(pid):
    """Stacks are whole when the tables for them are made, by a thread that is there for that. One that has hardly begun has the name of
    the program yet."""
    names = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, task)) as file:
                names.append(file.read().strip())
        except OSError:
            pass  # it has ended
    return "weft-tables" not in names and names.count("server") == 1


def report(trace, *args):
    done = subprocess.run([demo.program("weft"), "report", "--json", *args, trace], stdout=subprocess.PIPE, text=True)
    check(done.returncode == 0, "weft report ended with status %d" % done.returncode)
    return json.loads(done.stdout)["recordings"][0]


def text(trace):
    return subprocess.run([demo.program("weft"), "report", "--full", "--top", TOP, trace], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def parts(breakdown):
    return [breakdown[part] or 0 for part in PARTS]


def check_sums(recording):
    check(recording["longest_polls"], "no polls")
    for poll in recording["longest_polls"]:
        check(abs(sum(parts(poll["breakdown"])) / poll["duration_ns"] - 1) < 0.01, "the parts are not the poll", poll)
    for row in recording["workers"] + recording["locations"]:
        if row["time"] and row["polls"]:
            check(abs(sum(parts(row["time"])) / row["polls"]["total_ns"] - 1) < 0.01, "the parts are not the polls", row)


def faults(recording, location, least_ns):
    found = [poll for poll in recording["longest_polls"]
             if poll["location"] == location and poll["duration_ns"] >= least_ns]
    check(found, "no fault of " + location)
    return found


def cause_of(poll, name):
    return next((cause for cause in poll["breakdown"]["causes"] if cause["name"] == name), None)


def functions(cause):
    return [frame["function"] for frame in cause["frames"] or []]


def check_computing(recording, switches):
    for poll in faults(recording, "handle_upload", 50 * MS):
        breakdown = poll["breakdown"]
        waited = sum(cause["total_ns"] for cause in breakdown["causes"])
        check(waited < poll["duration_ns"] / 10, "it does not wait", poll)
        if switches:
            check((breakdown["on_cpu_ns"] + breakdown["preempted_ns"]) / poll["duration_ns"] > 0.9, "it computes", poll)
        check(poll["context"]["endpoint"] == "COMPUTE", "its endpoint", poll)


# A thread that does not run when it should may find that there is nothing left to wait for, or not much; not all of
# them will.
def check_blocking(recording, switches):
    found = faults(recording, "handle_report", 30 * MS)
    blocked = [(poll, cause_of(poll, "read")) for poll in found if cause_of(poll, "read")]
    check(any(cause["total_ns"] >= 10 * MS for _, cause in blocked), "no poll blocks in read", found)
    for poll, cause in blocked:
        late = switches and poll["breakdown"]["on_cpu_ns"] + poll["breakdown"]["preempted_ns"] >= 20 * MS
        check(cause["part"] == "blocked" and cause["kind"] == "call", "in what call", poll)
        check(cause["total_ns"] >= 10 * MS or late, "for how long", poll)
        check("handle_report" in functions(cause), "from where", poll)
    return max(blocked, key=lambda pair: pair[1]["total_ns"])[0]


def check_lock(recording):
    found = faults(recording, "handle_cache", 20 * MS)
    waiting = [(poll, cause_of(poll, "cache_lock")) for poll in found if cause_of(poll, "cache_lock")]
    check(waiting, "no poll waits for cache_lock", found)
    for poll, cause in waiting:
        check(cause["part"] == "waiting" and cause["kind"] == "lock", "for what lock", poll)
        check("cache_get" in functions(cause), "from where", poll)
    held = [cause["holder"] for _, cause in waiting if cause["holder"]]
    check(held, "no holder is known", found)
    for holder in held:
        check(holder["where"]["thread"] == "janitor", "who holds it", holder)
    check(any(holder["doing"] == "blocked in clock_nanosleep" for holder in held), "what the holder does", held)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace")
        with demo.Server(record=trace, args=["--events", "--spans"], env={"WEFT_BUDGET_PPM": "off"}) as server:
            until = time.monotonic() + 60
            while not settled(server.process.pid):
                check(time.monotonic() < until, "the tables for stacks are not made")
                time.sleep(0.01)
            demo.load(server.port, "--seconds", 10, "--requests", 600, "--connections", 8, "--faults", 1, "--fault-every", 40)
        recording = report(trace, "--top", TOP)
        check_sums(recording)
        switches = recording["off_cpu"] is not None
        check_computing(recording, switches)
        blocked = check_blocking(recording, switches)
        check_lock(recording)
        if switches:
            check(recording["time_in_polls"]["not_measured_ns"] == 0 or recording["losses"], "something is not measured",
                  recording["time_in_polls"])
        words = text(trace)
        check(re.search(r'waiting for cache_lock held by thread \d+ "janitor" for [0-9.]+ ms \(blocked in clock_nanosleep\)', words),
              "the lock in words: " + words)
        check("blocked (read fd " in words, "the call in words: " + words)
        one = report(trace, "--endpoint", "SLEEP")
        check({poll["location"] for poll in one["longest_polls"]} == {"handle_report"}, "one endpoint only", one)
        span = blocked["context"]["span"]
        check(len(report(trace, "--span", span)["longest_polls"]) == 1, "one request only")
        check([wait["name"] for wait in report(trace, "--span", span)["waits"]] == ["read"], "its wait")


main()
