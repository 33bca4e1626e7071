#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How far the report is from the truth, with default options: bench/truth.py DIR [--quick].

Runs the programs of test/truth, those known to be wrong included, and takes the worst error of each: the share of a poll's time that
is in the wrong part. A program whose polls are not in the report, or whose other truths (samples, holders, tables) are not met, counts as
wrong in the note; when none of its polls can be compared, its error is 100 %. With --quick once, else three times."""
import json
import os
import statistics
import subprocess
import sys

import demo

HARNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "truth", "run.py")


def main():
    log = os.path.join(sys.argv[1], "truth.jsonl")
    done = subprocess.run([sys.executable, HARNESS, "--known", "--repeat", "1" if "--quick" in sys.argv else "3", "--json", log],
                          stdout=sys.stderr, env=dict(os.environ, WEFT_BUILD=os.path.abspath(demo.BUILD)))
    if done.returncode not in (0, 1):
        sys.exit("bench/truth.py: the harness ended with status %d" % done.returncode)
    with open(log) as file:
        rows = [json.loads(line) for line in file]
    os.unlink(log)
    judged = [row for row in rows if row["result"] in ("pass", "wrong")]
    errors = {row["program"]: 100 if row["error_percent"] is None else row["error_percent"] for row in judged
              if row["error_percent"] is not None or (row["result"] == "wrong" and not row["other"])}
    wrong = [row["program"] for row in judged if row["result"] == "wrong"]
    note = "%d programs of test/truth, %d right%s; %d skipped" % (
        len(judged), len(judged) - len(wrong), ", wrong: " + " ".join(wrong) if wrong else "", len(rows) - len(judged))
    worst = max(errors, key=errors.get)
    demo.figure("truth_error", errors[worst], "%", "largest share of a poll's time that is in the wrong part of its breakdown, by %s; %s" %
                (worst, note))
    demo.figure("truth_error_median", statistics.median(errors.values()), "%", "the same, median over the programs; " + note)
    demo.figure("truth_wrong", len(wrong), "programs", note)


if __name__ == "__main__":
    main()
