# SPDX-License-Identifier: Apache-2.0
"""What tests of examples and bindings share: rows of recordings, and complaints."""
import json
import os
import subprocess
import sys

BUILD = os.environ["WEFT_BUILD"]
WEFT = os.path.join(BUILD, "weft")
MS = 1_000_000
wrong = []


def check(true, what, about=None):
    if not true:
        wrong.append(what)
        print("WRONG: %s%s" % (what, "" if about is None else ": " + json.dumps(about)[:3000]))


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def finish():
    print("%d wrong" % len(wrong) if wrong else "ok")
    sys.exit(1 if wrong else 0)


def rows(trace, sql):
    done = subprocess.run([WEFT, "query", "--json", trace, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode not in (0, 3):
        raise SystemExit("weft query: " + done.stderr)
    return json.loads(done.stdout)


def report(trace):
    done = subprocess.run([WEFT, "report", "--json", "--top", "1000", trace], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit("weft report: " + done.stderr)
    return json.loads(done.stdout)["recordings"][0]


def stack(trace, stack_id):
    """Functions, innermost first."""
    frames = rows(trace, "select function from frame where stack_id = %d order by depth" % stack_id)
    return [row["function"] for row in frames]
