#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""Loops of libuv that are attached in all ways (test/e2e/uv/loops.c): several, detached, without a wrapped callback,
one inside another."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from rows import BUILD, MS, check, finish, rows, skip

PROGRAM = os.path.join(BUILD, "test", "uv_loops")
OTHER = "callbacks not wrapped"


def record(scratch, mode):
    trace = os.path.join(scratch, mode)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}, "UV_THREADPOOL_SIZE": "1"}
    done = subprocess.run([PROGRAM, mode, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, env=env)
    check(done.returncode == 0 and done.stdout.endswith("ok\n"), "%s ends as it should" % mode, done.stderr)
    return trace, done.stdout


def polls(trace):
    return rows(trace, "select worker, location, duration_ns, wake_delay_ns, waker_location, waker_worker, "
                "behind_poll_id from poll order by begin_ns")


def of(all_polls, location):
    return [poll for poll in all_polls if poll["location"] == location]


def parked(trace):
    return [row["duration_ns"] for row in rows(trace, "select duration_ns from park where duration_ns is not null")]


def several(trace, _):
    found = polls(trace)
    left, right = of(found, "on_left"), of(found, "on_right")
    check(len(left) == 1 and len(right) == 1 and {left[0]["worker"], right[0]["worker"]} == {"io/0", "io/1"},
          "each loop is a worker", found)
    check(all(10 * MS <= poll["duration_ns"] for poll in left + right), "each blocked for 10 ms", found)
    # After uv_run the thread sleeps for 30 ms: that is no poll, and no park.
    check(all(poll["duration_ns"] < 25 * MS for poll in of(found, OTHER)),
          "what comes after the loop is no part of it", of(found, OTHER))


def detached(trace, said):
    found = of(polls(trace), "block_20ms")
    check(len(found) == int(said.split()[0]), "polls only while the loop is attached", [said, found])
    check(all(poll["worker"] == "uv/0" for poll in found), "the index is used again", found)


def unwrapped(trace, _):
    found = polls(trace)
    longest = max(poll["duration_ns"] for poll in of(found, OTHER))
    check({poll["location"] for poll in found} == {OTHER} and longest >= 200 * MS,
          "a callback that is not wrapped is seen", found)
    # The writer sleeps for 100 ms from about when the loop begins to wait, which may be late beside other work.
    check(sum(parked(trace)) >= 35 * MS, "the wait is a park", parked(trace))
    kinds = rows(trace, "select fields from event where kind = 'uv_loop'")
    check(kinds and json.loads(kinds[0]["fields"])["parks"] == "the waits of epoll", "how it is measured", kinds)


def bracket(trace, _):
    found = polls(trace)
    check(sum(parked(trace)) >= 200 * MS, "the callback is in the park", parked(trace))
    check(all(poll["location"] == OTHER for poll in found), "and in no poll of its own", found)
    kinds = rows(trace, "select fields from event where kind = 'uv_loop'")
    check(kinds and "not wrapped are in them" in kinds[0]["fields"], "the segment says so", kinds)


def nested(trace, _):
    found = polls(trace)
    inner = of(found, "run_inner")
    check(len(inner) == 1 and inner[0]["duration_ns"] >= 10 * MS, "the inner loop is part of the callback", found)
    check({poll["worker"] for poll in found} == {"outer/0"} and not of(found, "on_left"), "and no worker", found)


def cancelled(trace, _):
    found = polls(trace)
    work, done = of(found, "nap_20ms"), of(found, "on_done")
    check(len(work) == 2 and all(poll["worker"] == "uv-pool/0" for poll in work), "two of three pieces of work ran",
          found)
    check(work and work[-1]["wake_delay_ns"] >= 19 * MS, "the second waited for the first", work)
    check(len(done) == 3 and sorted(str(poll["waker_location"]) for poll in done) == ["None", "nap_20ms", "nap_20ms"],
          "the callback of the third was woken by no work", done)
    check(not of(found, OTHER), "only what is wrapped", found)
    queue = rows(trace, "select depth from queue where runtime = 'uv-pool' order by time_ns")
    check(not queue or queue[-1]["depth"] <= 1, "nothing is left in the queue", queue)


def queued_again(trace, _):
    found = polls(trace)
    work, done = of(found, "nap_20ms"), of(found, "on_done")
    check(len(work) == 3 and len(done) == 3, "each time is a poll of the work and one of the callback", found)
    check([poll["waker_location"] for poll in work] == [None, "on_done", "on_done"],
          "the callback queued it again", work)


def written(trace, _):
    found = of(polls(trace), "on_written")
    check(len(found) == 1 and found[0]["duration_ns"] >= 19 * MS, "the callback of a write is a poll while attached",
          found)


def unattached(trace, _):
    check(polls(trace) == [], "a loop that is not attached has no polls")


def starved(trace, _):
    found = polls(trace)
    message = of(found, "on_message")
    check(len(message) == 1 and message[0]["wake_delay_ns"] >= 5 * MS and
          message[0]["waker_worker"].startswith("sender("),
          "a message waited for the loop", found)
    behind = rows(trace, "select location from poll where id = %d" % (message[0]["behind_poll_id"] if message else -1))
    check(behind and behind[0]["location"] == "hold_loop", "behind hold_loop", behind)
    events = rows(trace, "select fields from event where kind = 'uv_timer_late'")
    late = [json.loads(row["fields"])["late"] for row in events]
    check(late and max(late) >= 45 * MS, "the timer was 50 ms late", late)


def main():
    if not os.path.exists(PROGRAM):
        skip("no libuv here")
    with tempfile.TemporaryDirectory() as scratch:
        for test in (several, detached, unwrapped, bracket, nested, cancelled, queued_again, written, unattached,
                     starved):
            test(*record(scratch, test.__name__))
    finish()


main()
