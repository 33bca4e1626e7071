#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev release asan
"""Profiles of recorded segments, read by decoders that know only the .proto files: their sums are the figures of weft
report and weft query with the same filter, in every format, and go tool pprof opens them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["WEFT_SOURCE"], os.environ["WEFT_BUILD"]
sys.path.insert(0, os.path.join(SOURCE, "test/e2e/library"))
import profiles

GOLDEN = os.path.join(SOURCE, "test/golden")
TYPES = ["cpu_samples", "cpu", "wall", "offcpu_intervals", "offcpu", "waits", "wait", "polls", "poll"]
SPAN = "select span, trace, endpoint from sample where span is not null limit 1"


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s %s" % (what, " ".join(json.dumps(one, indent=1) for one in about)))


def same(what, mine, theirs):
    check(mine == theirs, what + " differ:", mine, theirs)


def weft(*args, status=0):
    done = subprocess.run([os.path.join(BUILD, "weft"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(done.returncode == status, "weft %s: status %d: %s" % (" ".join(args), done.returncode, done.stderr.decode()))
    return done.stderr.decode() if status else done.stdout


def query(trace, sql):
    return json.loads(weft("query", "--json", "--no-symbols", trace, sql))


def export(trace, name, *args):
    path = os.path.join(scratch, name)
    weft("export", trace, "--no-symbols", "-o", path, *args)
    with open(path, "rb") as file:
        return file.read()


def sums(profile):
    return {
        kind: sum(sample["values"][i] for sample in profile["samples"]) for i, (kind, _) in enumerate(profile["types"])
    }


def report(trace, *args):
    return json.loads(weft("report", "--json", "--no-symbols", *args, trace))["recordings"][0]


def of_report(found):
    """What the report says in the same units, without what depends on how polls were counted."""
    off = found["off_cpu"]["threads"]
    return {
        "cpu_samples": found["cpu"]["samples"],
        "cpu": found["cpu"]["cpu_ns"],
        "waits": sum(row["times"] for row in found["waits"]),
        "wait": sum(row["total_ns"] for row in found["waits"]),
        "offcpu_intervals": sum(row["blocked_times"] + row["preempted_times"] for row in off),
        "offcpu": sum(row["blocked_ns"] + row["preempted_ns"] for row in off),
    }


def check_sums(trace, *args):
    mine = sums(profiles.pprof(export(trace, "x.pb.gz", "--what", "cpu,wall,offcpu,wait,poll", *args)))
    theirs = of_report(report(trace, *args))
    same("sums of %s %s" % (os.path.basename(trace), " ".join(args)), {key: mine[key] for key in theirs}, theirs)
    return mine


def check_whole(trace):
    mine = check_sums(trace)
    polls = query(trace, "select count(*) n, coalesce(sum(duration_ns), 0) ns from poll")[0]
    same("polls", [mine["polls"], mine["poll"]], [polls["n"], polls["ns"]])
    wall = report(trace)["time_samples"]
    same("wall", mine["wall"], sum(row["wall_ns"] for row in wall.values()))


def check_filters(trace):
    whole = sums(profiles.pprof(export(trace, "x.pb.gz")))
    some = 0
    for args in (
        ["--worker", "demo/0"],
        ["--thread", "worker-1"],
        ["--location", "handle_upload"],
        ["--from", "0.5s", "--to", "2s"],
        ["--location", "handle_*", "--worker", "demo/1"],
    ):
        some += check_sums(trace, *args)["cpu"] < whole["cpu"]
    check(some == 5, "filters leave something out")
    found = query(trace, SPAN)[0]
    part = check_sums(trace, "--span", found["span"])
    check(0 < part["cpu"] < whole["cpu"], "a span", part, whole)
    check_sums(trace, "--endpoint", found["endpoint"])
    # Samples of long polls are those that the rows have.
    mine = sums(profiles.pprof(export(trace, "x.pb.gz", "--min", "5ms", "--what", "cpu,wait,poll")))
    rows = query(
        trace,
        "select (select count(*) from poll where duration_ns >= 5000000) polls, (select sum(duration_ns) from poll "
        "where duration_ns >= 5000000) poll, (select sum(weight_ns) from sample where poll_id in (select id from poll "
        "where duration_ns >= 5000000)) cpu",
    )[0]
    same("long polls", {key: mine[key] for key in rows}, rows)


def check_labels(trace, profile):
    """Rows of the profile against rows of the tables."""
    index = [kind for kind, _ in profile["types"]].index("cpu")
    mine = {}
    for sample in profile["samples"]:
        label = sample["labels"]
        if sample["values"][index]:
            key = (
                label["thread id"],
                label["thread name"],
                label.get("worker"),
                label["where"],
                label.get("location"),
                label.get("span_id"),
                label.get("trace id"),
                label.get("trace endpoint"),
            )
            mine[key] = mine.get(key, 0) + sample["values"][index]
            check(label["state"] == "on cpu", "state", label)
            check(label.get("span id", 0) == int(label.get("span_id", "0"), 16), "both spans", label)
    theirs = {}
    for row in query(
        trace,
        "select tid, thread, worker, state, location, span, trace, endpoint, sum(weight_ns) ns from sample "
        "group by 1, 2, 3, 4, 5, 6, 7, 8",
    ):
        theirs[tuple(row.values())[:8]] = row["ns"]
    same("labels", sorted(map(repr, mine.items())), sorted(map(repr, theirs.items())))


def check_stacks(trace, profile):
    index = [kind for kind, _ in profile["types"]].index("cpu")
    mine = {}
    for sample in profile["samples"]:
        if sample["values"][index]:
            leaf = sample["stack"][0][0]
            mine[leaf] = mine.get(leaf, 0) + sample["values"][index]
    theirs = {
        row["function"] or "[no stack]": row["ns"]
        for row in query(trace, "select function, sum(weight_ns) ns from sample group by 1")
    }
    same("functions", mine, theirs)
    check(
        profile["mappings"][0]["path"].endswith("/server"), "the first mapping is the program", profile["mappings"][:1]
    )
    check(
        all(m["build_id"] for m in profile["mappings"] if m["path"].startswith("/")), "build-ids", profile["mappings"]
    )
    for mapping, address in profile["addresses"].values():
        if mapping:
            found = profile["mappings"][mapping - 1]
            check(found["start"] <= address < found["limit"], "address outside of its mapping", mapping, address, found)
    recorded = query(trace, "select start_unix_ns, span_ns from recording")[0]
    same("time", [profile["time_ns"], profile["duration_ns"]], [recorded["start_unix_ns"], recorded["span_ns"]])


def check_otlp(trace, profile):
    """The same figures, stacks and labels in the other format."""
    other = profiles.otlp(export(trace, "x.otlp", "--tag", "service=shop", "--tag", "team=a b"))
    same("resource", [other["resource"][key] for key in ("service.name", "team")], ["shop", "a b"])
    for i, (kind, unit) in enumerate(profile["types"]):
        found = other["profiles"].pop(kind)
        same("unit", found["unit"], unit)
        mine = sorted(
            (
                repr(s["stack"]),
                s["value"],
                s["labels"]["weft.state"] if "weft.state" in s["labels"] else "",
                s["link"][1].hex() if any(s["link"][1]) else "",
            )
            for s in found["samples"]
        )
        theirs = sorted(
            (repr(s["stack"]), s["values"][i], s["labels"].get("state", ""), s["labels"].get("span_id", ""))
            for s in profile["samples"]
            if s["values"][i]
        )
        same(kind, mine, theirs)
        same("time", [found["time_ns"], found["duration_ns"]], [profile["time_ns"], profile["duration_ns"]])
    check(not other["profiles"], "a type that pprof does not have", list(other["profiles"]))
    same("build-ids", set(other["build_ids"]), {m["build_id"] for m in profile["mappings"] if m["build_id"]})
    same(
        "gzip",
        profiles.otlp(export(trace, "x.otlp.gz"))["profiles"].keys(),
        profiles.otlp(export(trace, "x.bin", "--otlp"))["profiles"].keys(),
    )


def check_folded(trace, profile):
    index = [kind for kind, _ in profile["types"]].index("wait")
    mine, theirs = {}, {}
    for line in export(trace, "x.folded", "--what", "wait").decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        check(stack not in mine, "a stack twice", stack)
        mine[stack] = int(value)
    for sample in profile["samples"]:
        if sample["values"][index]:
            stack = ";".join(line[0] for line in reversed(sample["stack"]))
            theirs[stack] = theirs.get(stack, 0) + sample["values"][index]
    same("collapsed", mine, theirs)


def check_comments(trace):
    profile = profiles.pprof(export(trace, "x.pb.gz", "--tag", "env=test"))
    check(
        "tag env: test" in profile["comments"] and "tag service: demo-server" in profile["comments"],
        "tags",
        profile["comments"],
    )
    check(
        any(line.startswith("offcpu: context switches were recorded in ") for line in profile["comments"]),
        "what is not measured",
        profile["comments"],
    )
    check(
        all(
            line.startswith("poll: not measured") or not line.startswith("poll:")
            for line in profiles.pprof(export(os.path.join(GOLDEN, "locks"), "x.pb.gz"))["comments"]
        ),
        "a recording without polls",
    )


def check_errors(trace):
    check(
        "does not say which format" in weft("export", trace, "-o", os.path.join(scratch, "x.txt"), status=2),
        "unknown format",
    )
    check("no -o FILE" in weft("export", trace, status=2), "no output")
    check(
        "cannot write" in weft("export", trace, "-o", os.path.join(scratch, "none", "x.pb.gz"), status=1),
        "no directory",
    )
    check(
        "nothing to export"
        in weft("export", trace, "--thread", "nobody", "-o", os.path.join(scratch, "n.pb.gz"), status=1),
        "nothing",
    )
    check(not os.path.exists(os.path.join(scratch, "n.pb.gz")), "a file without anything in it")
    check(
        "one value only"
        in weft("export", trace, "--what", "cpu,wait", "-o", os.path.join(scratch, "x.folded"), status=2),
        "two",
    )


def check_together():
    """Two recordings are one profile: the same code is there once."""
    both = [os.path.join(GOLDEN, name) for name in ("server", "locks")]
    path = os.path.join(scratch, "both.pb.gz")
    weft("export", *both, "--no-symbols", "-o", path)
    with open(path, "rb") as file:
        profile = profiles.pprof(file.read())
    mine = sums(profile)
    for kind in "cpu", "wait", "offcpu":
        same(kind, mine[kind], sum(sums(profiles.pprof(export(one, "x.pb.gz")))[kind] for one in both))
    paths = [(m["path"], m["build_id"]) for m in profile["mappings"]]
    same("mappings", len(paths), len(set(paths)))
    same("processes", len({s["labels"]["process_id"] for s in profile["samples"]}), 2)


def check_go(trace):
    if not shutil.which("go"):
        print("reason: no go here; the profile was read by the decoder above only")
        return
    export(trace, "x.pb.gz")

    def pprof(*args):
        done = subprocess.run(
            ["go", "tool", "pprof", *args, os.path.join(scratch, "x.pb.gz")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PPROF_TMPDIR=scratch),
        )
        check(done.returncode == 0, "go tool pprof %s: %s" % (" ".join(args), done.stderr))
        return done.stdout

    for kind in "cpu", "offcpu", "wait", "poll", "wall":
        out = pprof("-top", "-sample_index=" + kind)
        if kind == "cpu":
            row = next(line for line in out.splitlines() if line.endswith(" hash_bytes"))
            check(float(row.split()[1].rstrip("%")) > 80, "the share of hash_bytes", row)
    peek = pprof("-peek", "hash_bytes", "-sample_index=cpu")
    check(any(line.endswith("| hash_bytes") for line in peek.splitlines()), "who calls hash_bytes", peek)
    found = query(trace, SPAN)[0]
    tags = pprof("-tags", "-sample_index=wall")
    for tag in "span id:", "local root span id:", "trace endpoint:", "state:", "thread name:", "worker:":
        check(tag in tags, "a tag", tag, tags)
    check(found["endpoint"] in tags and "blocked" in tags, "values of tags", found, tags)
    focused = pprof("-top", "-sample_index=cpu", "-tagfocus=trace endpoint=" + found["endpoint"])
    check("hash_bytes" in focused, "one endpoint", focused)


with tempfile.TemporaryDirectory() as scratch:
    server = os.path.join(GOLDEN, "server")
    for name in "server", "locks", "loop":
        check_whole(os.path.join(GOLDEN, name))
    check_filters(server)
    whole = profiles.pprof(export(server, "x.pb.gz"))
    same("types", [kind for kind, _ in whole["types"]], TYPES)
    same("default", whole["default"], "cpu")
    same("gzip", whole, profiles.pprof(export(server, "x.pb")))
    same("an order that depends on chance", export(server, "x.pb.gz"), export(server, "x.pb.gz"))
    check_labels(server, whole)
    check_stacks(server, whole)
    check_otlp(server, whole)
    check_folded(server, whole)
    check_comments(server)
    check_errors(server)
    check_together()
    check_go(server)
print("sums, labels and stacks are those of the report, in three formats")
