#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# weft run on programs with loops of all kinds, which know how many ticks they had and where these blocked: the report
# says the same.
# presets: release
# timeout: 300
import json
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ["WEFT_BUILD"]
WEFT = os.path.join(BUILD, "weft")
HERE = os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "loops")
SLACK_NS = 1_000_000
OVER_NS = 25_000_000  # what a program does after its loop takes 60 ms and more


def report(trace):
    done = subprocess.run([WEFT, "report", "--json", "--top", "2000", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        return "weft report: %s" % done.stderr
    return json.loads(done.stdout)["recordings"]


def of_loops(recording):
    return [poll for poll in recording["longest_polls"] + recording["still_running"] if poll["runtime"] == "loop"]


def check_block(block, polls, loop):
    """The tick that has it, with the call as the cause of most of it."""
    call, begin, end = block
    took = end - begin
    inside = [poll for poll in polls if poll["begin_mono_ns"] <= begin + SLACK_NS and
              poll["begin_mono_ns"] + poll["duration_ns"] >= end - SLACK_NS]
    if not inside:
        yield "no tick has the %.1f ms in %s at %.3f s" % (took / 1e6, call, begin / 1e9)
        return
    poll = min(inside, key=lambda p: p["duration_ns"])
    if poll["location"] != loop:
        yield "a tick of `%s`, not `%s`" % (poll["location"], loop)
    causes = [(cause["name"], cause["total_ns"]) for cause in poll["breakdown"]["causes"]]
    # On a busy machine the program waits for a CPU before the call, after it, and when it was woken in it: the tick
    # says how long.
    least = 0.8 * (took - (poll["breakdown"]["preempted_ns"] or 0)) - SLACK_NS
    if not least <= sum(ns for name, ns in causes if (name or "").startswith(call)) <= took + SLACK_NS:
        yield "%.1f ms in %s are %s in the report, of a tick of %.1f ms" % (took / 1e6, call, causes, poll["duration_ns"] / 1e6)


def facts(recordings):
    """What the report says that it had to do without."""
    return [value for recording in recordings for key, value in recording["facts"].items() if key.startswith("degraded.")]


def check_descriptors(wanted, recordings):
    """Each call waited for something that the report names."""
    waits = [(wait["name"], wait.get("descriptor")) for recording in recordings for wait in recording["longest_waits"]]
    for call, text in wanted:
        if (call, text) not in waits:
            yield "no wait for %s in %s: %s" % (text, call, [w for w in waits if w[0] == call])


def check(truth, recordings):
    yield from check_descriptors(truth.get("descriptors", []), recordings)
    if "note" in truth and not any(truth["note"] in fact for fact in facts(recordings)):
        yield "the report does not say: %s" % truth["note"]
    if "workers" in truth:
        counts = [(worker["polls"] or {}).get("count") for recording in recordings for worker in recording["workers"]]
        if len([n for n in counts if n == truth["each"]]) < truth["workers"]:
            yield "of %d loops %d have all ticks" % (truth["workers"], len([n for n in counts if n == truth["each"]]))
        return
    polls = [poll for recording in recordings for poll in of_loops(recording)]
    if not truth["loop"]:
        if polls:
            yield "there is no loop, and %d polls, the longest of %.1f ms" % (len(polls), max(p["duration_ns"] for p in polls) / 1e6)
        return
    first = truth.get("unseen", 1) # ticks before it is known that there is a loop
    if not truth["ticks"] - first <= len(polls) <= truth["ticks"] + truth.get("more", 0):
        yield "%d polls for %d ticks" % (len(polls), truth["ticks"])
    for block in truth["blocks"]:
        yield from check_block(block, polls, truth["loop"])
    # Nothing but the blocks blocks: the loop's own waits are no part of its ticks.
    longest = max((end - begin for _, begin, end in truth["blocks"]), default=0)
    for poll in polls:
        blocked = poll["breakdown"]["blocked_ns"] or 0
        if not truth.get("slow") and blocked > longest + 5 * SLACK_NS:
            yield "a tick of %.1f ms was blocked for %.1f" % (poll["duration_ns"] / 1e6, blocked / 1e6)
        if truth["over"] and poll["begin_mono_ns"] + poll["duration_ns"] > truth["over"] + OVER_NS:
            yield "a tick of %.1f ms goes on when the loop is over" % (poll["duration_ns"] / 1e6)


def run(name, command, env):
    scratch = tempfile.mkdtemp(prefix="weft-loops-")
    try:
        trace = os.path.join(scratch, "rec")
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("WEFT_", "LD_PRELOAD"))}
        done = subprocess.run([WEFT, "run", "--no-children", "-o", trace, "--", *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**environ, "WEFT_START_AFTER_MS": "0", **env}, timeout=100)
        line = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
        if done.returncode or not line:
            return ["status %d: %s%s" % (done.returncode, done.stdout[-300:], done.stderr[-1000:])]
        truth = json.loads(line)
        if "skip" in truth:
            return truth["skip"]
        recordings = report(trace)
        return [recordings] if isinstance(recordings, str) else list(check(truth, recordings))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def programs():
    """(name, command or why there is none, environment)"""
    for mode in ("epoll", "poll", "select", "asked_first_epoll", "asked_first_poll", "alternate", "anew", "once", "exit", "many"):
        yield "plain " + mode, [os.path.join(BUILD, "test", "loops", "plain"), mode], {}
    for library, runs in (("uv", [("", {})]),
                          ("event", [("", {}), ("", {"EVENT_NOEPOLL": "1"}), ("", {"EVENT_NOEPOLL": "1", "EVENT_NOPOLL": "1"})]),
                          ("uring_inside", [("wait_cqe", {})]),
                          ("uring", [("wait_cqe", {}), ("submit_and_wait", {}), ("timeout", {}), ("raw", {})])):
        program = os.path.join(BUILD, "test", "loops", library)
        for mode, env in runs:
            name = " ".join([library, mode, *env]).strip()
            yield name, [program, *mode.split()] if os.path.exists(program) else "no headers of lib%s here" % library, env
    yield "descriptors", [os.path.join(BUILD, "test", "loops", "descriptors")], {}
    for mode in ("asyncio", "select", "poll"):
        yield "python " + mode, ["/usr/bin/python3", os.path.join(HERE, "loops.py"), mode], {}
    node, java = shutil.which("node"), shutil.which("java")
    yield "node", [node, os.path.join(HERE, "loop.js")] if node else "no node here", {}
    yield "java", [java, os.path.join(HERE, "Loop.java")] if java else "no java here", {}


failed = 0
for name, command, env in programs():
    if len(sys.argv) > 1 and sys.argv[1] not in name:
        continue
    wrong = command if isinstance(command, str) else run(name, command, env)
    if isinstance(wrong, str):
        print("skipped: %s: %s" % (name, wrong))
        continue
    print("%-40s %s" % (name, "WRONG" if wrong else "ok"))
    for words in wrong:
        print("    " + words)
    failed += bool(wrong)
sys.exit(1 if failed else 0)
