#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
"""Text and JSON of weft report say the same, cell by cell, reasons of what was not measured included; and so does weft query."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "bench"))
import demo


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s\n%s" % (what, "\n".join(map(repr, about))))


def weft(*args):
    done = subprocess.run([demo.program("weft"), *args], stdout=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"})
    check(done.returncode == 0, "weft %s ended with status %d" % (args[0], done.returncode))
    return done.stdout


def three_digits(value, unit):
    return "%.*f %s" % (2 if value < 9.995 else 1 if value < 99.95 else 0, value, unit)


def ns(value):
    if value < 1000:
        return "%d ns" % value
    if value < 999500:
        return three_digits(value / 1e3, "us")
    return three_digits(value / 1e6, "ms") if value < 999500000 else three_digits(value / 1e9, "s")


def count(value):
    return format(value, ",d")


def share(value):
    return "%.1f %%" % (value * 100)


def moment(value):
    return "+%.6f s" % (value / 1e9)


def mean(value):
    return "%.2f" % value


def text(value):
    return str(value)


# Those that have more than one member of the row in them.
def place(row):
    file = "  %s:%d" % (os.path.basename(row["file"]), row["line"]) if row["file"] else ""
    return row["location"] + file


def thread(row):
    return "%s(%d)" % (row["thread"], row["tid"])


def worker(row):
    return row["worker"] if row["is_worker"] else "-"


def variable(row):
    return row["object_name"] or "0x%x" % row["object"]


def holder(row):
    return "thread %d" % row["holder"]["tid"] if row["holder"] else "not known"


def function(row):
    return row["function"] + (" [k]" if row["kernel"] else "")


def module(row):
    return os.path.basename(row["module"]) if row["module"] else "-"


def yes(value):
    return "yes" if value else "no"


def stack(row):
    """The innermost function that is neither weft's nor the kernel's, which begins what the text says of a stack."""
    frames = [frame for frame in row["frames"] or [] if not re.match(r"weft_", frame["function"])]
    outside = [frame for frame in frames if not frame["kernel"]] or frames
    return outside[0]["function"] if outside else None


def waker(row):
    return place(row["waker"]) if row["waker"] and row["waker"]["location"] else None


REASONS = set()   # that were met
COMPARED = set()  # tables of the text, with rows
LISTED = set()    # lists of the text, with entries
QUERIED = set()   # tables of SQL, with rows
HIST = [("p50", "p50_ns", ns), ("p99", "p99_ns", ns), ("p99.9", "p999_ns", ns), ("max", "max_ns", ns)]
POLLS = [("polls", "polls.count", count), *[(title, "polls." + key, form) for title, key, form in HIST], ("total", "polls.total_ns", ns)]
DELAYS = [("polls woken", "wake_to_poll.count", count), *[(title, "wake_to_poll." + key, form) for title, key, form in HIST]]
PARTS = [("polls", "time.polls", count), ("total", "time.total_ns", ns), ("on CPU", "time.on_cpu_ns", ns), ("blocked", "time.blocked_ns", ns),
         ("waiting", "time.waiting_ns", ns), ("preempted", "time.preempted_ns", ns), ("not measured", "time.not_measured_ns", ns),
         ("throttled", "time.throttled_ns", ns)]
DEPTH = [("samples", "samples", count), ("min", "min", count), ("mean", "mean", mean), ("p99", "p99", count), ("max", "max", count)]
TIMES = [("times", "times", count), ("total", "total_ns", ns), ("longest", "longest_ns", ns)]
FUNCTIONS = [("self", "self_ns", ns), ("share", "self_share", share), ("samples", "self_samples", count), ("total", "total_ns", ns),
             ("share", "total_share", share), ("samples", "total_samples", count), ("function", function, None),
             ("module", module, None)]

# Columns that are left out where nothing polls.
NEEDS_LOOP = {"worker", "in polls", "outside"}
# What the text calls polls where all of them are ticks of an event loop.
TICKS = [("Ticks by event loop", "Polls by worker"), ("Where the time of ticks went", "Where the time of polls went"),
         (r"(?<=  )(in )?ticks(?=  )", r"\1polls")]

# Heading in the text, which table below it, member of the JSON, columns, member that rows of the table have, column
# that is left out at 0.
TABLES = [
    ("All polls", 0, "", [*POLLS], None),
    ("All polls", 1, "", [(title, key.replace("time.", "time_in_polls."), form) for title, key, form in PARTS], "time_in_polls"),
    ("All polls", 2, "", DELAYS, "wake_to_poll"),
    ("Polls by worker", 0, "workers", [("worker", "worker", text), *POLLS, ("in polls", "busy_share", share),
                                       ("parked", "parked_share", share), ("on CPU", "cpu_share", share),
                                       ("waited for CPU", "runqueue_wait_ns", ns)], None),
    ("Polls and tasks by spawn location", 0, "locations", [("spawn location", place, None), *POLLS, ("spawned", "spawned", count),
                                                           ("ended", "ended", count), ("alive", "alive", count),
                                                           ("on CPU", "cpu.cpu_ns", ns)], None),
    ("Where the time of polls went", 0, "workers", [("worker", "worker", text), *PARTS], "time.polls"),
    ("Where the time of polls went", 1, "locations", [("spawn location", place, None), *PARTS], "time.polls"),
    ("Wake to poll", 0, "workers", [("worker", "worker", text), *DELAYS], "wake_to_poll.count"),
    ("Wake to poll", 1, "locations", [("spawn location", place, None), *DELAYS], "wake_to_poll.count"),
    ("Polls shorter than", 0, "locations", [("spawn location", place, None), ("short polls", "short_polls.count", count),
                                            ("together", "short_polls.total_ns", ns), ("CPU sampled", "short_polls.cpu_ns", ns),
                                            ("share", "short_polls.share", share), ("samples", "short_polls.samples", count)],
     "short_polls.count"),
    ("Functions by their own CPU time", 0, "cpu.functions", FUNCTIONS, "self_samples"),
    ("CPU time by thread", 0, "cpu.threads", [("worker", worker, None), ("thread", thread, None), ("CPU", "cpu_ns", ns),
                                              ("share", "share", share), ("samples", "samples", count),
                                              ("in polls", "where.in_polls.cpu_ns", ns), ("outside", "outside_ns", ns),
                                              ("CPU clock", "measured.cpu_ns", ns), ("sampled of it", "measured.share", share)], None),
    ("Waits", 0, "waits", [("waited for", "waited_for", text), ("kind", "kind", text), TIMES[0], TIMES[1], ("mean", "mean_ns", ns), TIMES[2],
                           ("one by one", "one_by_one", count), ("on workers", "on_workers_ns", ns)], None),
    ("Waits", 1, "wait_objects", [("object", variable, None), ("waited for", "name", text), ("kind", "kind", text), *TIMES,
                                  ("held by, in the longest", holder, None)], None),
    ("Waits", 2, "waits_by_thread", [("thread", thread, None), ("waited for", "name", text), ("kind", "kind", text), *TIMES], None),
    ("Off the CPU", 0, "off_cpu.threads", [("thread", thread, None), ("blocked", "blocked_ns", ns), ("times", "blocked_times", count),
                                           ("preempted", "preempted_ns", ns), ("times", "preempted_times", count),
                                           ("longest", "longest_ns", ns), ("off-CPU samples", "samples", count)], None),
    ("Off the CPU", 1, "off_cpu.stacks",
     [("time", "total_ns", ns), ("times", "times", count), ("samples", "samples", count), ("reason", "reason", text),
      ("thread", thread, None), ("in", stack, None)], None),
    ("Threads that waited", 0, "wall",
     [("time", "total_ns", ns), ("share", "share", share), ("wall samples", "samples", count), ("call", "call", text),
      ("thread", thread, None), ("in", stack, None)], None),
    ("Stuck polls", 0, "stuck_polls",
     [("age", "age_ns", ns), ("seen at", "seen_ns", moment), ("times", "times", count), ("thread", thread, None),
      ("task", "task", text), ("spawn location", place, None), ("ended after", "duration_ns", ns),
      ("in", stack, None)], None),
    ("Tasks not polled", 0, "waiting_tasks",
     [("silent for", "silent_ns", ns), ("woken", "woken", yes), ("last woken", "waker.since_ns", ns),
      ("by", waker, None), ("task", "task", text), ("spawn location", place, None),
      ("waits in", stack, None)], "silent_ns"),
    ("CPU time: ", 0, "cpu.where", [("CPU", "cpu_ns", ns), ("share", "share", share), ("samples", "samples", count),
                                    ("where", "meaning", text)], "samples"),
    ("Functions by CPU time", 0, "cpu.functions", FUNCTIONS, None),
    ("Queue depth", 0, "global_queues", [("global queue of", "runtime", text), *[(title, "depth." + key, form) for title, key, form in DEPTH]],
     None),
    ("Queue depth", 1, "workers", [("worker", "worker", text), *[(title, "local_queue." + key, form) for title, key, form in DEPTH]],
     "local_queue.samples"),
    ("Loss", 0, "losses", [("reason", "reason", text), ("count", "events", count), ("times", "records", count), ("from", "from_ns", moment),
                           ("to", "to_ns", moment), ("time missing", "together_ns", ns)], None),
]


def find(row, path):
    """The value, or None and the reason. Of "" it is a row of its own."""
    if not path:
        return [row], None
    for key in path.split("."):
        if row[key] is None:
            return None, row.get(key + "_why")
        row = row[key]
    return row, None


def section(report, heading):
    """The tables below a heading, as [titles, rows] each, and what is printed below them."""
    found = re.search(r"^%s[^\n]*\n(.*?)(?=\n\n[A-Z]|\Z)" % re.escape(heading), report, re.M | re.S)
    return found.group(1) if found else None


def tables_of(body, first_titles):
    """Each table begins with its heading line."""
    lines, found = body.split("\n"), []
    for line in lines:
        titles = re.split(r"  +", line.strip())
        if titles[0] in first_titles and len(titles) > 2:
            found.append((titles, []))
        elif found and line:
            found[-1][1].append(line)
    return found


def split(line):
    """Cells have two spaces between them; those of locations have two inside, too, before file and line."""
    cells = []
    for cell in re.split(r"  +", line.strip()):
        if cells and re.match(r"[\w.+-]+\.\w+:\d+$", cell):
            cells[-1] += "  " + cell
        else:
            cells.append(cell)
    return cells


def said(row, column):
    title, key, form = column
    if form is None:
        return key(row), row.get("frames_why") if key is stack else None
    value, why = find(row, key)
    return (form(value) if value is not None else None), why


def check_cell(where, cell, row, column, marks):
    wanted, why = said(row, column)
    if wanted is not None:
        # Names are shortened in the text, and holders say more there.
        short = cell.startswith(wanted) or ".." in cell and wanted.startswith(cell.split("..")[0])
        same = cell == wanted or column[1] in (function, holder, stack, module) and short
        if column[2] in (share, mean):  # the JSON has nine digits, so that a half may be rounded to either side
            exact = find(row, column[1])[0] * (100 if column[2] is share else 1)
            same = abs(float(cell.split()[0]) - exact) <= (0.05 if column[2] is share else 0.005) * (1 + 1e-6)
        check(same, "%s differ" % where, cell, wanted, row)
    elif why in (None, "none here"):
        check(cell == "-", "%s: nothing there" % where, cell, why, row)
    elif why == "not known" or column[1] is stack and cell == "not known":
        check(cell == "not known" and not row.get("frames"), "%s: not known" % where, cell, row)
    else:
        found = re.match(r"not measured \[(\d+)\]$", cell)
        check(found and marks.get(found.group(1)) == why, "%s: the reason differs" % where, cell, why, marks)
        REASONS.add(why)
    return 1


def check_table(report, body, table):
    heading, number, path, columns, need = table
    if report["polls"] is None:
        columns = [column for column in columns if column[0] not in NEEDS_LOOP]
    rows, why = find(report, path)
    if not rows or path == "cpu.where" and report["polls"] is None:  # nothing polls: all is outside of polls
        return 0
    rows = list(rows.values()) if isinstance(rows, dict) else rows
    if heading == "Functions by CPU time":
        rows = sorted(rows, key=lambda row: -row["total_ns"])
    rows = [row for row in rows if not need or find(row, need)[0]]
    if not rows:
        return 0
    tables = [one for one in tables_of(body, {table[3][0][0] for table in TABLES} | {columns[0][0]})]
    tables = [one for one in tables if one[0][0] == columns[0][0]] if heading != "Queue depth" or number else tables[:1]
    check(tables, "%s: no table" % heading, body)
    titles, lines = tables[-1 if number and (heading == "Waits" or path == "") else 0]
    marks = dict(re.findall(r"^\[(\d+)\] not measured: (.*)$", "\n".join(lines), re.M))
    notes = [(found.group(1).split(", "), found.group(2)) for found in
             (re.match(r"([^:\[]+): not measured: (.*)$", line) for line in lines) if found]
    shown, left = [], list(titles)
    for column in columns:
        if left and column[0] == left[0]:
            shown.append(column)
            left.pop(0)
            continue
        while left and left[0] not in [other[0] for other in columns]:
            left.pop(0)  # one that this test does not compare
            shown.append(None)
        if left and column[0] == left[0]:
            shown.append(column)
            left.pop(0)
            continue
        for row in rows:  # it is left out: the reason is below, or it is 0 in all rows, or all that waited are workers
            value, why = said(row, column) if column[2] is None else find(row, column[1])
            if column[0] == "on workers" and value == row["total_ns"]:
                continue
            REASONS.update([why] if why else [])
            check(not value and (value == 0 or any(column[0] in names and why == reason for names, reason in notes)),
                  "%s, %s: left out" % (heading, column[0]), value, why, notes)
    shown += [None] * len(left)
    n = 0
    for row, line in zip(rows, lines):
        cells = split(line)
        check(len(cells) == len(titles), "%s: cells" % heading, cells, titles)
        for cell, column in zip(cells, shown):
            n += check_cell("%s, %s" % (heading, column[0]), cell, row, column, marks) if column else 0
    check(len(lines) >= len(rows), "%s: rows are missing" % heading, lines, rows)
    COMPARED.add((heading, number))
    return n


PART = re.compile(r"(?:=|,) (<?)([\d.]+) (on CPU|blocked|waiting|preempted|not measured)")


def check_parts(where, entry, breakdown):
    """A part may be there several times, once for each cause: least and most of all of them, in its unit."""
    line, said_parts = " ".join(entry.split()), {}
    unit = re.search(r" (ns|us|ms|s) = ", line)
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit.group(1)] if unit else 1e6
    while "(" in line:
        shorter = re.sub(r"\([^()]*\)", "", line)
        if shorter == line:
            break
        line = shorter
    for less, figure, part in PART.findall(line):
        least, most = said_parts.get(part, (0, 0))
        said_parts[part] = least + (0 if less else float(figure) - 0.051), most + float(figure) + 0.051
    for part in ("on CPU", "blocked", "waiting", "preempted", "not measured"):
        value = breakdown[part.lower().replace(" ", "_") + "_ns"]
        if value is None or part not in said_parts and value < unit / 10:
            continue
        least, most = said_parts.get(part, (0, 0))
        check(least * 0.999 <= value / unit <= most * 1.001, "%s: %s differs" % (where, part), entry, breakdown)
    return len(said_parts)


def spot(row):
    """The task and its place, as lists have them."""
    if row["task"] is None and row.get("task_why", "").startswith("a tick"):
        return "tick of the %s" % row["location"]
    file = " (%s:%d)" % (os.path.basename(row["file"]), row["line"]) if row["file"] else ""
    return "task %d `%s`%s" % (row["task"], row["location"], file)


def check_lists(report, text_report):
    """Lists of worst polls, delays and waits: an entry each, in words."""
    n = 0
    for heading, key, rank in (("Longest polls", "longest_polls", "duration_ns"),
                               ("Longest ticks", "longest_polls", "duration_ns"),
                               ("Still running at the end", "still_running", "age_ns"),
                               ("Longest waits from wake to poll", "longest_delays", "delay_ns"),
                               ("Longest waits", "longest_waits", "duration_ns")):
        body = section(text_report, heading)
        if body is None or heading == "Longest waits" and "\nLongest waits\n" not in text_report:
            continue
        entries = re.split(r"^ *\d+  +(?=[\d.]+ [num]?s  )", body, flags=re.M)[1:]
        rows = report[key]
        check(len(entries) == len(rows), "%s: not the same entries" % key, len(entries), len(rows))
        for entry, row in zip(entries, rows):
            n += 3
            words = " ".join(entry.split())
            check(entry.startswith(ns(row[rank]) + "  "), "%s: %s differs" % (key, rank), entry, row)
            check(moment(row["begin_ns"]) in words, "%s: the moment differs" % key, entry, row)
            check(row["worker"] in words, "%s: the worker differs" % key, entry, row)
            if key != "longest_waits":
                check(spot(row) in words, "%s: the task differs" % key, entry, row)
            elif row["holder"]:
                check("held by thread %d " % row["holder"]["tid"] in words, "%s: the holder differs" % key, entry, row)
            elif row["object_name"]:
                check(row["object_name"] in words or row["name"] in words, "%s: the object differs" % key, entry, row)
            wake = row.get("wake")
            if wake and wake["delay_ns"] is not None and row["task"] is not None:
                check("woken %s before by" % ns(wake["delay_ns"]) in words, "%s: the delay differs" % key, entry, row)
                by = "by %s on %s" % (spot(wake), wake["worker"]) if wake["in_poll"] else ""
                check(by in words, "%s: the waker differs" % key, entry, row)
            if row.get("breakdown"):
                n += check_parts(key, entry, row["breakdown"])
            LISTED.add(key)
    return n


# Where the report has the rows of a summary.
SUMMARIES = {"worker_summary": "workers", "location_summary": "locations", "function_summary": "cpu.functions",
             "cpu_summary": "cpu.where",
             "thread_cpu_summary": "cpu.threads", "wait_summary": "waits", "lock_summary": "wait_objects",
             "thread_wait_summary": "waits_by_thread", "thread_offcpu_summary": "off_cpu.threads",
             "offcpu_summary": "off_cpu.stacks",
             "wall_summary": "wall", "stuck_summary": "stuck_polls", "waiting_summary": "waiting_tasks",
             "queue_summary": "global_queues", "loss_summary": "losses", "cost_summary": "cost_of_weft",
             "total_summary": "", "time_summary": "time_samples", "stack_summary": "cpu.stacks"}


def declared():
    """The columns of each summary, with their keys in the JSON: docs/TABLES.md, which is made of the declarations."""
    with open(os.path.join(os.environ["WEFT_SOURCE"], "docs/TABLES.md")) as file:
        sections = re.findall(r"^## (\w+_summary)\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    tables = {}
    for name, body in sections:
        rows = [[cell.strip(" `") for cell in line.split("|")] for line in body.split("\n") if line.startswith("| `")]
        tables[name] = [(row[1], row[6]) for row in rows]
    check(set(tables) == set(SUMMARIES), "docs/TABLES.md has other summaries than this test", set(tables) ^ set(SUMMARIES))
    return tables


def in_json(row, path):
    for key in path.split("."):
        row = row and row[key]
    return row


def same_cell(key, sql, mine):
    if sql is None or mine is None:
        return sql == mine or key == "frames" and sql is None and mine == []
    if key == "frames":  # SQL has its innermost function that is not weft's
        return sql in [frame["function"] for frame in mine]
    if key == "holder":
        return sql == mine["where"]["worker"] if mine["where"] else sql == "(%d)" % mine["tid"]
    if key == "object":
        return sql == "%016x" % mine
    if key == "call":  # its number
        return isinstance(sql, int) and bool(mine)
    return sql == mine


def check_query(trace, report, *options):
    """The same figures in SQL, of all columns of all summaries."""
    for name, columns in declared().items():
        sql = json.loads(weft("query", "--json", *options, trace, "select * from %s" % name))
        rows = find(report, SUMMARIES[name])[0] or []
        if isinstance(rows, dict):  # by what is in the first column
            first = columns[1][0]
            rows = [{first: key, **row} for key, row in rows.items() if isinstance(row, dict)]
            columns = [(column, key or (column if column == first else "")) for column, key in columns]
        check(len(sql) == len(rows), "%s: SQL and JSON have not the same rows" % name, sql, rows)
        for mine, row in zip(sql, rows):
            QUERIED.add(name)
            for column, key in columns:
                check(not key or same_cell(key, mine[column], in_json(row, key)),
                      "%s.%s: SQL and JSON differ" % (name, column), mine, row)


def compare(trace, *options):
    full = ["--full"] if "--full" in weft("report", "--help") else []
    options = ["--top", "1000", *options]
    text_report = weft("report", *full, *options, trace)
    report = json.loads(weft("report", "--json", *options, trace))["recordings"][0]
    n, ticks = check_lists(report, text_report), "\nTicks by event loop\n" in text_report
    for pattern, other in TICKS if ticks else []:
        text_report = re.sub(pattern, other, text_report)
    for table in TABLES:
        if ticks and table[2] == "locations":  # a loop is a worker and a location: once is enough
            continue
        body = section(text_report, table[0])
        if body is not None:
            n += check_table(report, body, table)
        elif find(report, table[2])[0] and not table[4] and table[2]:
            check(False, "no section %s" % table[0], text_report)
    return n, report


def main():
    cells = 0
    check(len({(table[0], table[1]) for table in TABLES}) == len(TABLES), "a table is there twice")
    for env in ({"WEFT_BUDGET_PPM": "off", "WEFT_POLLS": "all", "WEFT_SWITCHES": "stacks", "WEFT_WALL_HZ": "50",
                 "WEFT_STUCK_MS": "20"},
                {"WEFT_POLLS": "slow", "WEFT_SAMPLE_HZ": "off", "WEFT_WAIT_MS": "off"}):
        with tempfile.TemporaryDirectory() as scratch:
            trace = os.path.join(scratch, "trace")
            with demo.Server(record=trace, args=["--events"], env=env) as server:
                demo.load(server.port, "--seconds", 5, "--requests", 200, "--connections", 8, "--faults", 1, "--fault-every", 40)
            n, report = compare(trace)
            cells += n
            check_query(trace, report)
            cells += compare(trace, "--location", "handle_*")[0]
    for name in ("server", "locks", "loop"):
        trace = os.path.join(os.environ["WEFT_SOURCE"], "test/golden", name, "0.weft")
        n, report = compare(trace, "--no-symbols")
        check(n > 20, "too little of %s was compared" % name, n)
        check_query(trace, report, "--no-symbols")
        tasks = {poll["task"] for poll in report["longest_polls"]}
        rows = json.loads(weft("query", "--json", trace, "select distinct task is null as no_task from poll"))
        check(name != "loop" or (tasks == {None} and rows == [{"no_task": 1}]), "a tick has a task", tasks, rows)
        check(name != "server" or (None not in tasks and rows == [{"no_task": 0}]), "a poll has no task", tasks, rows)
        cells += n
    # Stacks of switches need a privilege that not everybody has; nothing is lost in a calm recording.
    rare = {("Off the CPU", 1)} if os.geteuid() else set()
    left = {(table[0], table[1]) for table in TABLES} - COMPARED - rare
    check(not left, "no rows of these tables of the text were compared", left)
    check(LISTED >= {"longest_polls", "longest_delays", "longest_waits"}, "not all lists were compared", LISTED)
    left = set(SUMMARIES) - QUERIED - ({"offcpu_summary"} if os.geteuid() else set())
    check(not left, "no rows of these tables of SQL were compared", left)
    check(cells > 300 and len(REASONS) >= 2, "too little was compared", cells, REASONS)
    print("%d cells are the same, and %d reasons" % (cells, len(REASONS)))


main()
