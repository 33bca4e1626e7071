#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""The thread pool in C and the coroutines in C++: who woke which task, where it was spawned, and who held the lock that
it waited for."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from rows import BUILD, MS, check, finish, rows

TRIES = 5


def record_waits(scratch, name, said, lock, pairs):
    """Beside other programs a thread may have no CPU while the other holds the lock: it does not wait for it then."""
    for i in range(TRIES):
        trace = record(os.path.join(scratch, str(i)), name, said)
        if any((wait["location"], wait["holder_location"]) in pairs for wait in waits(trace, lock)):
            break
    return trace


def record(scratch, name, said):
    os.makedirs(scratch)
    trace = os.path.join(scratch, name)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}, "WEFT_BUDGET_PPM": "off"}
    done = subprocess.run([os.path.join(BUILD, "examples", name), trace], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          timeout=120, env=env)
    check(done.returncode == 0 and done.stdout == said, "%s does its work" % name, [done.stdout, done.stderr])
    return trace


def counts(trace):
    return {row["location"]: row["n"] for row in rows(trace, "select location, count(*) as n from poll group by 1")}


def wakers(trace, location):
    found = rows(trace, "select distinct waker_location as by from poll where location = '%s'" % location)
    return {row["by"] for row in found}


def check_places(trace, names, file):
    found = {row["name"]: row for row in rows(trace, "select name, file, line from location")}
    check(all(name in found and found[name]["file"].endswith(file) and found[name]["line"] > 0 for name in names),
          "where tasks are spawned", found)


def waits(trace, lock):
    return rows(trace, "select * from wait where name = '%s' and duration_ns > 10000000" % lock)


def check_wait(trace, lock, waiter, holder, stack):
    found = [wait for wait in waits(trace, lock) if wait["location"] == waiter and wait["holder_location"] == holder]
    check(found and found[0]["kind"] == "lock", "%s waited for %s, which %s held" % (waiter, lock, holder),
          waits(trace, lock))
    check(found and found[0]["function"] == stack, "and waited in %s" % stack, found[:1])


def pool(scratch):
    trace = record_waits(os.path.join(scratch, "pool"), "pool", "33 lines\n", "log_lock", [("store_row", "rotate_log")])
    check(counts(trace) == {"parse_file": 4, "store_row": 32, "rotate_log": 1}, "each job is one poll", counts(trace))
    check_places(trace, ("parse_file", "store_row", "rotate_log"), "pool/pool.c")
    check(wakers(trace, "store_row") == {"parse_file"} and wakers(trace, "rotate_log") == {"parse_file"},
          "parse_file submits the others",
          [wakers(trace, "store_row"), wakers(trace, "rotate_log")])
    check(wakers(trace, "parse_file") == {None}, "the main thread submits parse_file",
          list(wakers(trace, "parse_file")))
    check_wait(trace, "log_lock", "store_row", "rotate_log", "add_line")
    ended = rows(trace, "select count(*) as n from worker where runtime = 'pool'")[0]["n"]
    check(ended == 2, "two workers", ended)


def coroutine(scratch):
    pairs = [("store_rows", "count_rows"), ("count_rows", "store_rows")]
    trace = record_waits(os.path.join(scratch, "coroutine"), "coroutine", "780\n", "table_lock", pairs)
    found = counts(trace)
    check(found.get("send_rows") == 41 and found.get("count_rows") == 41 and 1 <= found.get("store_rows", 0) <= 42,
          "a poll for each resume", found)
    check_places(trace, ("send_rows", "count_rows", "store_rows"), "coroutine/coroutine.cc")
    check(wakers(trace, "store_rows") <= {None, "send_rows"} and "send_rows" in wakers(trace, "store_rows"),
          "send_rows wakes store_rows",
          list(wakers(trace, "store_rows")))
    check(wakers(trace, "count_rows") == {None, "count_rows"}, "count_rows wakes itself",
          list(wakers(trace, "count_rows")))
    longest = rows(trace,
                   "select max(waiting_ns) as ns from poll where location in ('store_rows', 'count_rows')")[0]["ns"]
    check(longest and longest >= 5 * MS, "one waited for table_lock", longest)
    check(any((wait["location"], wait["holder_location"]) in pairs for wait in waits(trace, "table_lock")),
          "and the other held it", waits(trace, "table_lock"))
    functions = {wait["function"] for wait in waits(trace, "table_lock")}
    check(all("lock" in str(function) or "add" in str(function) for function in functions), "in the guard's caller",
          sorted(map(str, functions)))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        pool(scratch)
        if os.path.exists(os.path.join(BUILD, "examples", "coroutine")):
            coroutine(scratch)
        else:
            print("skipped: no C++ compiler here")
    finish()


main()
