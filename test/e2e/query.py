#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
"""The example server with its three faults: weft query finds them, and sums over rows are the figures of weft report, exactly."""
import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "bench"))
import demo

PARTS = ("on_cpu_ns", "blocked_ns", "waiting_ns", "preempted_ns", "not_measured_ns")
MS = 1_000_000


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s\n%s" % (what, "\n".join(json.dumps(one, indent=1) for one in about)))


def weft(*args):
    done = subprocess.run([demo.program("weft"), *args], stdout=subprocess.PIPE, text=True)
    check(done.returncode == 0, "weft %s ended with status %d" % (args[0], done.returncode))
    return done.stdout


def query(trace, sql):
    return json.loads(weft("query", "--json", trace, sql))


def same(what, rows, report):
    check(rows == report, what + ": rows and report differ", rows, report)


def check_polls(trace, report):
    parts = ", ".join("sum(coalesce(%s, 0))" % part for part in PARTS)
    for column, key in ("location", "locations"), ("worker", "workers"):
        rows = {row.pop(column): list(row.values()) for row in query(
            trace, "select %s, count(*), sum(duration_ns), max(duration_ns), %s from poll where end_ns is not null group by 1"
            % (column, parts))}
        for row in report[key]:
            if not row["time"] or row["time"]["polls"] == 0:
                continue
            mine = rows.pop(row[column])
            if not row.get("polls_from_counts"):
                same(key, mine[:3], [row["polls"]["count"], row["polls"]["total_ns"], row["polls"]["max_ns"]])
            same(key, [mine[0], *mine[3:]], [row["time"]["polls"], *[row["time"][part] or 0 for part in PARTS]])
        check(not rows, "polls that the report does not have", rows)
    running = query(trace, "select count(*) n from poll where end_ns is null")[0]["n"]
    same("running", running, report["polls_running"])
    slices = query(trace, "select poll_id, part || '_ns' part, sum(duration_ns) ns from slice group by 1, 2")
    polls = {row["id"]: row for row in query(trace, "select id, %s from poll" % ", ".join(PARTS))}
    for row in slices:
        same("slices", row["ns"], polls[row["poll_id"]][row["part"]])
        polls[row["poll_id"]][row["part"]] = 0
    check(not any(poll[part] for poll in polls.values() for part in PARTS), "time of polls that no slice has")


def check_waits(trace, report):
    rows = query(trace, "select kind, name, sum(n) times, sum(ns) total_ns, max(longest) longest_ns from ("
                 "select kind, name, 1 n, duration_ns ns, duration_ns longest from wait union all "
                 "select kind, name, count, total_ns, longest_ns from wait_sum) group by kind, name order by kind, name")
    kept = [{key: row[key] for key in ("kind", "name", "times", "total_ns", "longest_ns")} for row in report["waits"]]
    same("waits", rows, sorted(kept, key=lambda row: (row["kind"], row["name"] or "")))


def check_samples(trace, report):
    rows = {row["state"]: [row["n"], row["ns"]] for row in query(
        trace, "select state, count(*) n, sum(weight_ns) ns from sample group by state")}
    where = {key: [value["samples"], value["cpu_ns"]] for key, value in report["cpu"]["where"].items()}
    same("samples", [sum(row[i] for row in rows.values()) for i in (0, 1)], [report["cpu"]["samples"], report["cpu"]["cpu_ns"]])
    for key in "in_polls", "parked":
        same("samples", rows.get(key, [0, 0]), where[key])
    rows = query(trace, "select function, sum(weight_ns) self_ns from sample group by function")
    mine = {row["function"]: row["self_ns"] for row in rows}
    for function in report["cpu"]["functions"]:
        if function["self_ns"] and [other["function"] for other in report["cpu"]["functions"]].count(function["function"]) == 1:
            same("functions", mine[function["function"]], function["self_ns"])


def check_others(trace, report):
    rows = query(trace, "select tid, sum(count) n, sum(duration_ns * count) ns from offcpu group by tid")
    threads = (report["off_cpu"] or {"threads": []})["threads"]
    same("off CPU", {row["tid"]: [row["n"], row["ns"]] for row in rows},
         {row["tid"]: [row["blocked_times"] + row["preempted_times"],
                       row["blocked_ns"] + row["preempted_ns"] + row["switching_ns"]] for row in threads})
    rows = query(trace, "select reason, sum(coalesce(count, 0)) n, count(*) records from loss group by reason, thread_id")
    same("losses", sorted(map(str, rows)), sorted(str({"reason": row["reason"], "n": row["events"] or 0, "records": row["records"]})
                                                  for row in report["losses"]))
    delays = query(trace, "select count(delay_ns) n from wake")[0]["n"]
    if report["wake_to_poll"] and report["facts"]["poll.mode"] == "all":
        same("delays", delays, report["wake_to_poll"]["count"])


def check_faults(trace):
    """The server says what it does by the names of its functions."""
    found = query(trace, "select duration_ns ns, on_cpu_ns cpu, endpoint from poll where location = 'handle_upload' "
                  "and duration_ns >= %d" % (50 * MS))
    check(found and all(row["endpoint"] == "COMPUTE" for row in found), "polls that compute", found)
    found = query(trace, "select w.name, w.duration_ns, p.location, w.holder, w.kind from wait w join poll p on p.thread_id = "
                  "w.thread_id and w.end_ns between p.begin_ns and p.end_ns where w.name = 'cache_lock'")
    check(found, "waits for the lock in polls")
    for row in found:
        check(row["kind"] == "lock" and row["location"] == "handle_cache", "who waits", row)
    check(any((row["holder"] or "").startswith("janitor(") for row in found), "who holds it", found)
    calls = query(trace, "select name, sum(duration_ns) ns, max(fd) fd from slice where part = 'blocked' and location = 'handle_report' "
                  "and kind = 'call' group by name")
    check(any(row["name"] == "read" and row["ns"] >= 10 * MS and row["fd"] > 0 for row in calls), "the call that blocks", calls)


def check_forms(trace):
    """Push-down changes no answer, and every form says the same."""
    for where in ("duration_ns >= 1000000", "worker = 'demo/0'", "location = 'handle_cache'", "end_ns < 300000000", "task between 2 and 9",
                  "begin_ns > 100000000 and end_ns <= 400000000.5", "queue_depth = 0", "endpoint = 'SLEEP'"):
        down = query(trace, "select count(*) n, total(duration_ns) ns from poll where " + where)
        # `+` makes an expression of each column, which SQLite has to compute itself.
        above = query(trace, "select count(*) n, total(duration_ns) ns from poll where " +
                      " and ".join("+" + term.strip() for term in where.split(" and ")) if "between" not in where else
                      "select count(*) n, total(duration_ns) ns from poll where +task >= 2 and +task <= 9")
        same("push-down of " + where, down, above)
    sql = "select id, location, end_ns, span from poll order by id limit 20"
    rows = query(trace, sql)
    lines = list(csv.DictReader(io.StringIO(weft("query", "--csv", trace, sql))))
    same("CSV", lines, [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows])
    sqlite3.connect(":memory:").executescript(weft("query", "--schema"))
    for line in weft("query", "--list").split("\n"):
        if line and line[0] != " ":
            weft("query", trace, "--run", line.split(":")[0])


def main():
    for mode in "all", "slow":
        with tempfile.TemporaryDirectory() as scratch:
            trace = os.path.join(scratch, "trace")
            with demo.Server(record=trace, args=["--events", "--spans"], env={"WEFT_BUDGET_PPM": "off", "WEFT_POLLS": mode}) as server:
                demo.load(server.port, "--seconds", 5, "--requests", 450, "--connections", 8, "--faults", 1, "--fault-every", 30)
            text = weft("report", "--json", "--top", "1000", trace)
            check("18446744073709551615" not in text, "a figure that is none")
            report = json.loads(text)["recordings"][0]
            check([poll["wakes_issued"] for poll in report["longest_polls"]].count(None) == (len(report["longest_polls"]) if mode == "slow" else 0),
                  "wakes that a poll issued")
            check_polls(trace, report)
            check_waits(trace, report)
            check_samples(trace, report)
            check_others(trace, report)
            check_faults(trace)
            check_forms(trace)
    print("rows are what the report says, in both modes")


if __name__ == "__main__":
    main()
