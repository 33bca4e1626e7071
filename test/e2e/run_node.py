#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node under `weft run`: the findings say which kind of callback was slow, where node's file has names of libuv's
functions."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from rows import WEFT, check, finish, report, rows, skip

PROGRAM = os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "loops", "kinds.js")
KINDS = {"socket", "timer", "check", "work"}


def record(node, trace):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}, "WEFT_START_AFTER_MS": "0",
           "WEFT_BUDGET_PPM": "off"}
    done = subprocess.run([WEFT, "run", "--no-children", "-o", trace, "--", node, PROGRAM], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, env=env)
    check(done.returncode == 0, "node ends as it should", done.returncode)


def slow_ticks(trace):
    return [finding for finding in report(trace)["findings"]
            if finding["kind"] == "tick" and finding["longest_ns"] > 50_000_000]


def check_unnamed(node, scratch):
    """Without names the report says that it does not know."""
    stripped, trace = os.path.join(scratch, "node"), os.path.join(scratch, "unnamed")
    subprocess.run(["strip", "-o", stripped, node], check=True)
    record(stripped, trace)
    ticks = slow_ticks(trace)
    check(any("in a callback of libuv (kind not known" in finding["title"] for finding in ticks) and
          not any(finding.get("callback") for finding in ticks), "of a node without names no kind is known", ticks)


def main():
    node = shutil.which("node")
    if not node:
        skip("no node here")
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace")
        record(node, trace)
        if not rows(trace, "select 1 as one from frame where function = 'uv__run_timers' limit 1"):
            skip("this node has no names of libuv's functions")
        ticks = slow_ticks(trace)
        check_unnamed(os.path.realpath(node), scratch)
    kinds = {finding.get("callback") for finding in ticks}
    check(KINDS <= kinds, "each kind of callback is found", [finding["title"] for finding in ticks])
    timer = [finding["title"] for finding in ticks if finding.get("callback") == "timer"]
    check(timer and ", in the callback of a timer: " in timer[0], "and named", timer)
    finish()


main()
