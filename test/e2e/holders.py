#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: release
"""Who held a lock, and for how long of each wait, as the report has it against what the program knows. By `weft run`, with default options."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["WEFT_BUILD"]
PROGRAM = os.path.join(BUILD, "test", "run_holders")
MS = 1_000_000
TRIES = 5  # a thread may be kept from its CPU between a call and its own clock


class Wrong(Exception):
    pass


def check(true, what, about=None):
    if not true:
        raise Wrong("%s%s" % (what, "" if about is None else ": " + json.dumps(about)[:2000]))


def record(scratch, program, *args, lines=False):
    trace = os.path.join(scratch, "rec")
    shutil.rmtree(trace, ignore_errors=True)
    done = subprocess.run([os.path.join(BUILD, "weft"), "run", "-o", trace, "--", program, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    check(done.returncode == 0, "status %d: %s" % (done.returncode, done.stderr[:200]))
    said = done.stdout.splitlines()
    return said if lines else json.loads(said[0]), report(trace)


def report(trace):
    done = subprocess.run([os.path.join(BUILD, "weft"), "report", "--json", "--top", "1000", trace], stdout=subprocess.PIPE,
                          text=True, check=True)
    return json.loads(done.stdout)["recordings"][0]


def near(told, true):
    return abs(told - true) <= max(true * 0.05, MS)


def by_holder(pairs):
    sums = {}
    for tid, ns in pairs:
        sums[tid] = sums.get(tid, 0) + ns
    return sums


def wait_of(recording, true, object):
    for wait in recording["longest_waits"]:
        if wait["object"] == (object or wait["object"]) and wait["tid"] == true["tid"] and \
           abs(wait["begin_mono_ns"] - true["begin"]) < MS and near(wait["duration_ns"], true["ns"]):
            return wait
    raise Wrong("no such wait in the report: %s" % json.dumps(true))


def check_wait(wait, true, name):
    holder = wait["holder"]
    check((wait["object_name"] or "").split("+")[0] == name, "its name is %s" % name, wait)
    check(wait["kind"] in ("lock", "read-write lock"), "it is a lock", wait)
    check(holder, "no holder", wait)
    told = by_holder([(one["tid"], one["held_ns"] or 0) for one in [holder, *holder.get("also", [])]])
    held = by_holder(true["held"])
    for tid in {*told, *held}:
        check(near(told.get(tid, 0), held.get(tid, 0)), "held by %d: %.3f ms in the report, %.3f ms in truth" % (
            tid, told.get(tid, 0) / 1e6, held.get(tid, 0) / 1e6), {"report": wait, "truth": true})
    longest = max(held, key=held.get)
    check(holder["tid"] == longest or near(held[longest], held.get(holder["tid"], 0)), "the longest holder is not first", wait)
    return len(held)


def rust(scratch):
    """The program in Rust, or None where there is no compiler."""
    program = os.path.join(scratch, "run_holders_rs")
    if not shutil.which("rustc"):
        return None
    subprocess.run(["rustc", "-O", "-g", "--edition", "2021", "--crate-name", "run_holders", "-o", program,
                    os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "run", "run_holders.rs")], check=True)
    return program


def judge(scratch, program, mode, least_holders):
    truth, recording = record(scratch, program, mode)
    check(truth["waits"], "nobody waited")
    most = max(check_wait(wait_of(recording, true, truth["object"]), true, truth["name"]) for true in truth["waits"])
    check(most >= least_holders, "nobody saw %d holders" % least_holders, truth)


def judge_condition(scratch):
    """A wait for a condition is one until it is signalled, and then one for the lock, which the signaller keeps for 30 ms."""
    lines, recording = record(scratch, PROGRAM, "cond", lines=True)
    ends = [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("cond")]
    signals = [int(line.split()[1]) for line in lines if line.startswith("signal")]
    check(len(ends) == len(signals) == 4, "four rounds", lines)
    for (begin, end), signal_at in zip(ends, signals):
        waits = {wait["kind"]: wait for wait in recording["longest_waits"]
                 if begin - MS < wait["begin_mono_ns"] < end and wait["object_name"] in ("cond", "mutex")}
        check(set(waits) == {"condition", "lock"}, "two waits", {"begin": begin, "end": end, "waits": recording["longest_waits"]})
        check(near(waits["condition"]["duration_ns"], signal_at - begin), "for the condition", waits)
        check(near(waits["lock"]["duration_ns"], end - signal_at), "for the lock", waits)
        holder = waits["lock"]["holder"]
        check(holder and holder["where"]["thread"] == "S" and near(holder["held_ns"], end - signal_at), "its holder", waits)


def judge_stream(scratch):
    """Who prints while another blocks in a write to the same stream waits for that thread."""
    _, recording = record(scratch, PROGRAM, "stream", lines=True)
    waits = [wait for wait in recording["longest_waits"] if wait["kind"] == "lock" and wait["thread"] == "W"]
    check(len(waits) == 4, "four waits", recording["longest_waits"])
    for wait in waits:
        check(wait["name"] == "fputs" and wait["duration_ns"] > 25 * MS, "the wait", wait)
        check(wait["holder"] and wait["holder"]["where"]["thread"] == "A", "its holder", wait)


def check_deadlock(recording, tids):
    check(len(recording["deadlocks"]) == 1, "one deadlock", recording["still_waiting"])
    ring = {wait["waiter"]["tid"]: wait for wait in recording["deadlocks"][0]}
    check(set(ring) == set(tids.values()), "its threads", recording["deadlocks"])
    for one, other, lock in (("first", "second", "second_lock"), ("second", "first", "first_lock")):
        wait = ring[tids[one]]
        check(wait["waiter"]["thread"] == one and wait["holder"]["tid"] == tids[other], "who holds it", wait)
        check(wait["object_name"] == lock, "the lock", wait)
        for frames in (wait["frames"], wait["in_holder"]["frames"]):
            check(any(frame["function"] == "deadlock" for frame in frames), "the stack", wait)
        check(wait["age_ns"] >= 1000 * MS, "its age", wait)


def judge_deadlock(scratch, how):
    """It is in the report while the program runs, and after it was killed or stopped."""
    trace = os.path.join(scratch, "rec")
    shutil.rmtree(trace, ignore_errors=True)
    process = subprocess.Popen([os.path.join(BUILD, "weft"), "run", "-o", trace, "--", PROGRAM,
                                "deadlock"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tids = {name: int(tid) for name, tid in (process.stdout.readline().split() for _ in range(2))}
    pid = next(int(line.split()[1]) for line in open("/proc/%d/status" % tids["first"]) if line.startswith("Tgid"))
    deadline = time.monotonic() + 20
    live = None
    try:
        while time.monotonic() < deadline and not (live and live["deadlocks"]):
            time.sleep(0.2)
            live = report(trace) if any(name.endswith((".weft", ".active")) for name in os.listdir(trace)) else None
    finally:
        os.kill(pid, how)
        process.wait(30)
    check(live, "nothing is recorded")
    check_deadlock(live, tids)
    check_deadlock(report(trace), tids)


def main():
    scratch = tempfile.mkdtemp(prefix="weft-holders-")
    failed = 0
    try:
        tests = [(mode, lambda mode=mode, n=n: judge(scratch, PROGRAM, mode, n)) for mode, n in (
            ("handoff", 2), ("recursive", 2), ("c11", 2), ("spin", 2), ("readers", 2), ("writer", 1), ("timed", 1))]
        program = rust(scratch)
        if program:
            tests.append(("rust", lambda: judge(scratch, program, "handoff", 2)))
        else:
            print("skipped: rust: there is no rustc\n1 skipped")
        tests.append(("cond", lambda: judge_condition(scratch)))
        tests.append(("stream", lambda: judge_stream(scratch)))
        tests += [("deadlock, " + how.name, lambda how=how: judge_deadlock(scratch, how))
                  for how in (signal.SIGKILL, signal.SIGTERM)]
        for mode, test in tests:
            for left in range(TRIES - 1, -1, -1):
                try:
                    test()
                    print("ok   %s" % mode)
                    break
                except Wrong as why:
                    print("%s %s: %s" % ("flaky:" if left else "FAIL", mode, why))
                    failed += not left
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
