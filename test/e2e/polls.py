#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""weft polls over recorded segments: polls, lengths and samples are rows of weft query, in every order and group."""

import json
import os
import subprocess
import sys

SOURCE, BUILD = os.environ["WEFT_SOURCE"], os.environ["WEFT_BUILD"]
SERVER = os.path.join(SOURCE, "test/golden/server")


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s %s" % (what, " ".join(json.dumps(one, indent=1) for one in about)))


def weft(*args, status=0):
    done = subprocess.run(
        [os.path.join(BUILD, "weft"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    check(done.returncode == status, "weft %s: status %d: %s" % (" ".join(args), done.returncode, done.stderr))
    return done.stderr if status else done.stdout


def query(sql):
    return json.loads(weft("query", "--json", "--no-symbols", SERVER, sql))


def polls(*args):
    return json.loads(weft("polls", "--json", "--no-symbols", SERVER, *args))


def check_rows(min_ns, *args):
    mine = polls(*args)
    rows = query(
        "select id, begin_ns, duration_ns, tid, thread, worker, location, endpoint, span, on_cpu_ns, blocked_ns, "
        "waiting_ns, "
        "preempted_ns, not_measured_ns from poll where duration_ns >= %d order by duration_ns desc, begin_ns" % min_ns
    )
    check(len(rows) > 3 and mine["count"] == len(rows), "number of polls", mine["count"], len(rows))
    samples = {
        row["poll_id"]: row
        for row in query(
            "select poll_id, count(*) n, sum(weight_ns) ns from sample where poll_id is not null group by 1"
        )
    }
    for one, row in zip(mine["polls"], rows):
        number = row.pop("id")
        check({key: one[key] for key in row} == row, "a poll", one, row)
        on_cpu = [hit for hit in one["samples"] if hit["state"] == "on cpu"]
        found = samples.get(number, {"n": 0, "ns": 0})
        check(
            [sum(hit["samples"] for hit in on_cpu), sum(hit["ns"] for hit in on_cpu)] == [found["n"], found["ns"]],
            "samples of a poll",
            on_cpu,
            found,
        )
        check(one["samples"] == sorted(one["samples"], key=lambda hit: -hit["ns"]), "order of samples", one["samples"])
        looks = [(hit["state"], hit["wait_for"], tuple(hit["frames"])) for hit in one["samples"]]
        check(len(looks) == len(set(looks)), "a stack twice", looks)
        check(one["time"].startswith("2026-") and one["time"].endswith("Z"), "wall time", one["time"])
    return mine["polls"]


longest = check_rows(5_000_000)
check_rows(1_000_000, "--min", "1ms")
causes = {one["location"]: one["samples"][0] for one in longest}
check(
    causes["handle_upload"]["frames"][0] == "hash_bytes" and causes["handle_upload"]["state"] == "on cpu",
    "upload",
    causes,
)
check(causes["handle_report"]["wait_for"] == "read" and causes["handle_report"]["state"] == "blocked", "report", causes)
check(
    causes["handle_cache"]["wait_for"] == "cache_lock" and causes["handle_cache"]["state"] == "waiting", "cache", causes
)

by_time = polls("--sort", "time")["polls"]
check(by_time == sorted(longest, key=lambda one: one["begin_ns"]), "sorted by time")
by_cpu = [one["on_cpu_ns"] for one in polls("--sort", "cpu")["polls"]]
check(by_cpu == sorted(by_cpu, reverse=True), "sorted by CPU time", by_cpu)
for group, key in ("location", "location"), ("worker", "worker"), ("thread", "thread"), ("endpoint", "endpoint"):
    groups = polls("--group", group)["groups"]
    mine = {row["name"]: [row["polls"], row["total_ns"], row["longest_ns"]] for row in groups}
    theirs = {}
    for one in longest:
        row = theirs.setdefault(one[key] or "(none)", [0, 0, 0])
        row[:] = [row[0] + 1, row[1] + one["duration_ns"], max(row[2], one["duration_ns"])]
    check(mine == theirs, "groups by " + group, mine, theirs)
check(polls("--group", "function")["groups"][0]["name"] == "hash_bytes", "by function")
for args, keep in (
    (["--worker", "demo/0"], lambda one: one["worker"] == "demo/0"),
    (["--thread", "worker-*"], lambda one: True),
    (["--location", "handle_u*"], lambda one: one["location"] == "handle_upload"),
    (["--to", "1s"], lambda one: one["begin_ns"] + one["duration_ns"] < 1e9),
):
    check(polls(*args)["polls"] == [one for one in longest if keep(one)], " ".join(args))
check(len(polls("--top", "2")["polls"]) == 2, "top")

text = weft("polls", "--no-symbols", SERVER, "--top", "1", "--stack-depth", "2")
check(
    "poll of 50.0 ms of handle_upload" in text
    and "   0: hash_bytes" in text
    and "more frame(s)" in text
    and "11 more" in text,
    "as text: " + text,
)
check("No poll was as long as 1.00 s" in weft("polls", SERVER, "--min", "1s"), "none")
check("length, time or cpu" in weft("polls", SERVER, "--sort", "x", status=2), "wrong usage")
print("%d long polls with their samples" % len(longest))
