#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""The example server on libuv with its seeded faults: report and rows have the callback, the stack, who woke it and the
time in the queue."""
import http.client
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from rows import BUILD, MS, check, finish, report, rows, skip, stack

SERVER = os.path.join(BUILD, "examples", "uv-http")
IMAGES = 12
POOL = 4  # threads, libuv's default
HOGS = 3  # a ticker that gets no CPU for the 100 ms of one sends nothing meanwhile


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


def record(trace):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}, "WEFT_SWITCHES": "stacks",
           "WEFT_BUDGET_PPM": "off", "UV_THREADPOOL_SIZE": str(POOL)}
    server = subprocess.Popen([SERVER, "--record", trace, "--ticker"], stdout=subprocess.PIPE, text=True, env=env)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        check(get(port, "/") == b"hello\n", "it answers")
        get(port, "/compute")
        get(port, "/block")
        images = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(IMAGES)]
        for image in images:
            image.connect()
        for image in images:
            image.request("GET", "/image")
        check([image.getresponse().read() for image in images] == [b"resized\n"] * IMAGES, "all images are answered")
        for _ in range(HOGS):
            get(port, "/hog")
            for _ in range(25):  # each takes a turn or more, of which 20 are hogged
                get(port, "/")
    finally:
        server.send_signal(signal.SIGTERM)
        check(server.wait(60) == 0, "the server ends as it should")


def finding(found, location, cause):
    return next((f for f in found["findings"] if f["location"] == location and f["cause"] == cause), None)


def blocked_stacks(trace, location):
    ids = rows(trace, "select distinct stack_id from slice where location = '%s' and part = 'blocked' and "
               "duration_ns > 10000000 and stack_id is not null" % location)
    return [stack(trace, row["stack_id"]) for row in ids]


def blocked_ns(trace, location, function):
    """How long stacks with that function in them blocked it, in all."""
    sums = rows(trace, "select stack_id, sum(duration_ns) as ns from slice where location = '%s' and part = 'blocked' "
                "and stack_id is not null group by 1" % location)
    return sum(row["ns"] for row in sums if function in stack(trace, row["stack_id"]))


def check_slow(trace, found):
    """A callback that computes 50 ms, and one that blocks for 30."""
    polls = rows(trace, "select * from poll where location = 'on_data' order by on_cpu_ns desc")
    check(polls and polls[0]["worker"] == "uv/0" and 45 * MS < polls[0]["on_cpu_ns"] < 80 * MS,
          "50 ms on the CPU in on_data", polls[:1])
    functions = rows(trace, "select function, sum(weight_ns) as ns from sample where poll_id = %d group by 1 "
                     "order by 2 desc" % polls[0]["id"])
    check(functions and functions[0]["function"] in ("hash_bytes", "clock_gettime", "__vdso_clock_gettime"),
          "its samples are in hash_bytes", functions)
    where = rows(trace, "select file, line from location where name = 'on_data'")
    check(len(where) == 1 and where[0]["file"].endswith("uv-http/http.c") and where[0]["line"] > 0,
          "where on_data was given to libuv", where)
    check(any("read_slowly" in names for names in blocked_stacks(trace, "on_data")),
          "the stack of what blocked on_data")
    poll = rows(trace, "select * from poll where location = 'on_data' order by blocked_ns desc")[0]
    check(29 * MS < poll["blocked_ns"] < 200 * MS, "30 ms blocked in on_data", poll)
    titles = [f["title"] for f in found["findings"] if f["location"] == "on_data" and f["cause"] == "blocked"]
    # A finding names what blocked longest in all: beside a load that may be the lock of the pool's queue.
    named = [title.rsplit(" ", 1)[1] for title in titles if ", called from " in title]
    longest = blocked_ns(trace, "on_data", "read_slowly")
    others = [name for name in named if name != "read_slowly"]
    if poll["blocked_ns"] > poll["preempted_ns"]:
        check(named and all(blocked_ns(trace, "on_data", name) >= longest for name in others),
              "the report says in what on_data blocked", [titles, longest])
        check(others or any("nanosleep" in title for title in titles), "and that it slept", titles)


def check_pool(trace):
    """12 pieces of work of 50 ms for 4 threads: the last ones wait for 100 ms."""
    work = rows(trace, "select * from poll where location = 'resize_image' order by begin_ns")
    check(len(work) == IMAGES, "all work is there", len(work))
    strange = [poll for poll in work if poll["worker"] not in ["uv-pool/%d" % i for i in range(POOL)]]
    check(not strange, "threads of the pool are workers", strange)
    check(all(poll["waker_location"] == "on_data" and poll["waker_worker"] == "uv/0" for poll in work),
          "on_data queued it", work[:1])
    late = [poll for poll in work if (poll["wake_delay_ns"] or 0) > 20 * MS]
    check(len(late) >= POOL, "work waited in the queue", [poll["wake_delay_ns"] for poll in work])
    depth = rows(trace, "select max(depth) as most from queue where runtime = 'uv-pool'")[0]["most"]
    check(depth and 1 <= depth <= IMAGES, "how much waited", depth)
    done = rows(trace, "select * from poll where location = 'on_resized'")
    strange = [poll for poll in done if poll["worker"] != "uv/0" or poll["waker_location"] != "resize_image"]
    check(len(done) == IMAGES and not strange, "the work woke the callback after it", strange)


def check_starved(trace, found):
    """20 turns of 5 ms in an idle handle, some times: what was to run meanwhile is late."""
    hog = rows(trace, "select count(*) as n, sum(on_cpu_ns) as ns from poll where location = 'hog_loop'")[0]
    check(hog["n"] == 20 * HOGS and hog["ns"] > 80 * HOGS * MS, "20 turns of hog_loop each time", hog)
    late = rows(trace,
                "select p.wake_delay_ns as ns, p.waker_worker as by from poll p join poll q on q.id = p.behind_poll_id "
                "where p.location = 'flush_log' and q.location = 'hog_loop' and p.wake_delay_ns > 2000000")
    check(late and all(row["by"].startswith("ticker(") for row in late),
          "messages of the ticker waited behind hog_loop", late)
    timers = rows(trace, "select fields from event where kind = 'uv_timer_late'")
    check(timers, "timers were late")
    check(finding(found, "hog_loop", "on_cpu") or finding(found, "hog_loop", "preempted"), "the report has hog_loop",
          found["findings"])


def check_loop(trace):
    loop = rows(trace, "select fields from event where kind = 'uv_loop'")
    check(loop and '"parks": "the waits of epoll"' in loop[0]["fields"], "how parks are measured", loop)
    total = rows(trace, "select (select sum(duration_ns) from park where worker = 'uv/0') as parked, "
                 "(select sum(duration_ns) from poll where worker = 'uv/0') as busy, "
                 "(select max(end_ns) - min(begin_ns) from poll where worker = 'uv/0') as all_ns")[0]
    missing = total["all_ns"] - total["parked"] - total["busy"]
    check(abs(missing) < 0.02 * total["all_ns"], "polls and parks are all the time of the loop", total)


def main():
    if not os.path.exists(SERVER):
        skip("no libuv here")
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace")
        record(trace)
        found = report(trace)
        if any("switch" in key for key in found["facts"] if key.startswith("degraded.")):
            skip("context switches cannot be recorded with stacks here")
        check_slow(trace, found)
        check_pool(trace)
        check_starved(trace, found)
        check_loop(trace)
    finish()


main()
