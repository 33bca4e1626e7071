#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
# timeout: 900
"""The Rust crates on the real Tokio: what is wrong in bindings/rust/weft-tokio/examples/faults.rs is in the report,
with the right location, stack and waker. With --cfg tokio_unstable, and without. Builds by cargo, which fetches crates
as Cargo.lock has them."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from crates import BUILD, UNSTABLE, cargo, example, need_cargo

MS = 1_000_000


class Wrong(Exception):
    pass


def check(true, what, about=None):
    if not true:
        raise Wrong("%s%s" % (what, "" if about is None else ": " + json.dumps(about)[:3000]))


def weft(*args):
    return json.loads(subprocess.run([os.path.join(BUILD, "weft"), *args], stdout=subprocess.PIPE, text=True,
                                     check=True).stdout)


def one(rows, location, **more):
    for row in rows:
        if row["location"] == "faults::" + location and all(row[key] == value for key, value in more.items()):
            return row
    raise Wrong("%s is not there: %s" % (location, [row["location"] for row in rows]))


def stacks(value):
    """Names of functions in all stacks of a row."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "function" and isinstance(inner, str):
                yield inner
            yield from stacks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from stacks(inner)


def has_function(row, name):
    return any(name in function for function in stacks(row))


def blocking_poll(report):
    poll = one(report["longest_polls"], "blocking_poll")
    check(poll["duration_ns"] >= 400 * MS, "it blocks for 400 ms", poll)
    check(poll["file"].endswith("faults.rs") and poll["line"] > 0, "its location is a line", poll)
    check(has_function(poll, "sleep_in_the_poll"), "its stack has the call that blocks", poll)


def slow_cpu_poll(report):
    poll = one(report["longest_polls"], "slow_cpu_poll")
    check(poll["duration_ns"] >= 150 * MS, "it runs for 150 ms", poll)
    check(has_function(poll, "burn_cpu"), "its stack has what burns", poll)


def starved_worker(report):
    delay = one(report["longest_delays"], "starved")
    check(delay["delay_ns"] >= 150 * MS, "it waits for a worker", delay)
    check(delay["wake"]["location"] == "faults::hog", "a hog woke it", delay)
    check(delay.get("behind") and delay["behind"]["location"] == "faults::hog", "it waited behind a hog", delay)


def late_wake(report):
    delay = one(report["longest_delays"], "woken_late")
    check(delay["delay_ns"] >= 100 * MS, "its poll comes late", delay)
    check(delay["wake"]["location"] == "faults::wakes_then_burns", "its waker is known", delay)


def lost_waker(report):
    task = one(report["waiting_tasks"], "loses_its_waker")
    check(task["polled"] and not task["woken"], "it was polled, and is not woken", task)
    check(task["silent_ns"] >= 500 * MS, "for long", task)
    check(has_function(task, "DropsItsWaker"), "its stack is where it waits", task)
    check(len(report["waiting_tasks"]) == 1, "no other task waits", report["waiting_tasks"])


def blocking_work(report):
    delays = [row for row in report["longest_delays"] if row["worker"] == "faulty-blocking/0"]
    check(delays and delays[0]["delay_ns"] >= 80 * MS, "the second waits for the first", delays)
    check(delays[0]["location"].startswith("faults::waits_for_a_blocking_thread") and
          delays[0]["file"].endswith("faults.rs"), "it has a location", delays[0])


def first_polls(trace):
    rows = weft("query", "--json", trace, "select location, waker_location, waker_worker from poll where location in "
                "('faults::blocking_poll', 'faults::slow_cpu_poll') order by begin_ns")
    check([row["location"] for row in rows] == ["faults::blocking_poll", "faults::slow_cpu_poll"] and
          all(row["waker_worker"] for row in rows), "who spawns a task is its first waker", rows)


def self_wakes(trace):
    rows = weft("query", "--json", trace, "select count(*) as n from poll where location = 'faults::self_waking' "
                "and waker_task = task")
    check(rows[0]["n"] == 500, "a task that wakes itself is seen", rows)
    saved = weft("query", "--json", "--run", "self-wakes", trace)
    check(saved and saved[0]["location"] == "faults::self_waking" and saved[0]["self_woken"] == 500,
          "the saved question has it", saved)


def unstable(report, trace):
    plain = [row for row in report["locations"] if re.match(r".*faults\.rs:\d+$", row["location"])]
    check([row["polls"]["count"] for row in plain if row["polls"]] == [101], "plain tokio::spawn has polls and a line",
          report["locations"])
    blocking = [row for row in plain if not row["polls"]]
    check(len(blocking) == 1 and blocking[0]["ended"] == 1, "plain spawn_blocking has a line, and its end", plain)
    check(not any(row["location"] == "(spawned before recording)" for row in report["locations"]),
          "no end without a beginning", report["locations"])
    check(all(row["alive"] == (row["location"] == "faults::loses_its_waker") for row in report["locations"]),
          "all tasks ended but one", report["locations"])
    check(one(report["longest_polls"], "slow_cpu_poll")["queue_depth"] is not None, "local queues are measured")
    check(not any(key.startswith("degraded.runtime") for key in report["facts"]), "nothing is missing",
          report["facts"])


def stable(report, trace):
    said = [value for key, value in report["facts"].items() if key.startswith("degraded.runtime")]
    check(len(said) == 2 and all("tokio_unstable" in text for text in said), "it says what is not measured", said)
    check(any("tokio_unstable" in json.dumps(row) for row in report["incomplete"]), "so does the report",
          report["incomplete"])


def common(report, trace):
    for fault in (blocking_poll, slow_cpu_poll, starved_worker, late_wake, lost_waker, blocking_work):
        fault(report)
    self_wakes(trace)
    first_polls(trace)
    workers = {row["worker"]: row for row in report["workers"]}
    check({"faulty/0", "faulty/1", "other/0", "faulty-blocking/0"} <= set(workers), "all workers are known",
          sorted(workers))
    for name in ("faulty/0", "faulty/1", "other/0"):
        check(workers[name]["parked_ns"], name + " parks", workers[name])
    queues = {row["runtime"]: row["depth"]["samples"] for row in report["global_queues"]}
    check(queues.get("faulty", 0) > 10 and queues.get("other", 0) >= 1, "global queues are measured", queues)
    check(report["lost_events"] == 0, "nothing is lost")


def run(scratch, flags, extra):
    cargo(flags, "build", "-p", "weft-tokio", "--example", "faults")
    for attempt in range(3):
        trace = os.path.join(scratch, "rec")
        shutil.rmtree(trace, ignore_errors=True)
        done = subprocess.run([example("faults"), trace], timeout=120,
                              stdout=subprocess.PIPE, text=True, check=True)
        try:
            check(int(done.stdout) > 0, "the program's own hook is called")
            report = weft("report", "--json", "--top", "1000", trace)["recordings"][0]
            common(report, trace)
            extra(report, trace)
            return
        except Wrong as why:  # a thread may be kept from its CPU at the wrong moment
            print("flaky: try %d: %s" % (attempt, why))
    sys.exit("faults are not found (%s)" % (flags or "stable"))


def main():
    need_cargo()
    scratch = tempfile.mkdtemp(prefix="weft-tokio-")
    try:
        run(scratch, UNSTABLE, unstable)
        run(scratch, "", stable)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
