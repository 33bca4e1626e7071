#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a recording becomes rows: bench/rows.py DIR [--quick]. Takes the segment that bench/trace.py left as DIR/demo.weft and
repeats it until there are 10 M events.

rows_rate: events a second while all poll rows are made with all columns, beside decoding the same events in order of time and doing
nothing with them. query_scan: a full scan with a filter by weft query, from a cold start of the command, beside the same statement
over the same rows in a table of SQLite's own, which had to be imported first. report_time: events a second of weft report. All
are CPU time. rows_memory: the most memory that rows_rate took, beside that for a tenth of the events."""
import csv
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import demo

EVENTS = 10_000_000
COLUMNS = "id, location, worker, begin_ns, end_ns, duration_ns, on_cpu_ns, blocked_ns, waiting_ns, preempted_ns"
SCAN = "select location, count(*), sum(on_cpu_ns) from poll where duration_ns > 20000 group by location order by location"


def inside(*args):
    return list(map(int, subprocess.run([demo.program("bench", "bench_rows_inside"), *map(str, args)], stdout=subprocess.PIPE,
                                        check=True, text=True).stdout.split()))


def weft(*args):
    """Output and CPU seconds."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen([demo.program("weft"), *args], stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit("bench: weft %s ended with status %d" % (args[0], child.returncode))
        out.seek(0)
        return out.read(), used.ru_utime + used.ru_stime


def native(trace, path):
    """The same rows in a table of SQLite's own: how long the statement takes, and how long the import took."""
    begin = time.process_time()
    rows = csv.reader(weft("query", "--csv", trace, "select %s from poll" % COLUMNS)[0].splitlines())
    db = sqlite3.connect(path)
    db.execute("create table poll (%s)" % ", ".join(
        name + (" text" if name in ("location", "worker") else " integer") for name in next(rows)))
    db.executemany("insert into poll values (%s)" % ",".join("?" * len(COLUMNS.split(", "))),
                   ([cell if cell else None for cell in row] for row in rows))
    db.commit()
    imported = time.process_time() - begin
    took = []
    for _ in range(3):
        begin = time.process_time()
        answer = db.execute(SCAN).fetchall()
        took.append(time.process_time() - begin)
    db.close()
    return min(took), imported, answer


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as scratch:
        large, small = os.path.join(scratch, "large"), os.path.join(scratch, "small")
        for directory, events in (large, EVENTS), (small, EVENTS // 10):
            os.mkdir(directory)
            inside("repeat", os.path.join(sys.argv[1], "demo.weft"), directory, events)
        decoded = min(inside("decode", large)[1] for _ in range(2))
        n_rows, n_events, ns, kib = min((inside("rows", large, "poll") for _ in range(2)), key=lambda made: made[2])
        demo.figure("rows_rate", n_events * 1e3 / ns, "M events/s", "%d poll rows with all columns of %d events, %.2f M rows/s; the "
                    "baseline decodes the events in order of time" % (n_rows, n_events, n_rows * 1e3 / ns),
                    baseline=n_events * 1e3 / decoded, ratio=decoded / ns)
        less = inside("rows", small, "poll")
        demo.figure("rows_memory", kib / 1024, "MiB", "for the same; the baseline is %d events" % less[1], baseline=less[3] / 1024,
                    ratio=kib / less[3])
        runs = [weft("query", "--csv", large, SCAN) for _ in range(3)]
        seconds, imported, answer = native(large, os.path.join(scratch, "native.db"))
        mine = [tuple(row) for row in csv.reader(runs[0][0].splitlines()[1:])]
        if mine != [tuple(map(str, row)) for row in answer]:
            raise SystemExit("bench: weft query and SQLite do not agree")
        took = min(run[1] for run in runs)
        demo.figure("query_scan", took, "s", "a full scan with a filter of %d events; the baseline is SQLite over the same %d rows, "
                    "which took %.1f s to import" % (n_events, n_rows, imported), baseline=seconds, ratio=took / seconds)
        seconds = min(weft("report", "--no-symbols", large)[1] for _ in range(3))
        demo.figure("report_time", n_events / seconds / 1e6, "M events/s", "weft report --no-symbols of %d events: %.2f s of CPU" %
                    (n_events, seconds))


if __name__ == "__main__":
    main()
