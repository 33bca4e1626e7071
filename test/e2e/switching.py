#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# serial: it measures CPU time
"""Threads that switch 100,000 times a second: the table of time off the CPU has what their own clocks say, without what the switches themselves
took. And with the default budget, which records few of the switches or none, it says so, and why."""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ["WEFT_BUILD"]


def check(true, what):
    if not true:
        sys.exit("FAIL: " + what)


def run(**env):
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([BUILD + "/weft", "run", "-o", directory, "--", BUILD + "/test/switching_program"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, env={**os.environ, **env})
        report = subprocess.run([BUILD + "/weft", "report", "--json", directory], stdout=subprocess.PIPE, text=True, check=True)
        recording = json.loads(report.stdout)["recordings"][0]
        full = subprocess.run([BUILD + "/weft", "report", "--full", directory], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
    truth = {int(tid): int(wall) - int(cpu) for tid, wall, cpu in (line.split() for line in done.stdout.splitlines())}
    return truth, recording, done.stderr, full


def main():
    truth, recording, _, _ = run(WEFT_BUDGET_PPM="off")
    table = recording["off_cpu"]
    if table is None:
        print("reason: " + recording["off_cpu_why"])
        sys.exit(77)
    share = table["recorded_share"]
    for tid, exact in truth.items():
        row = [row for row in table["threads"] if row["tid"] == tid][0]
        told, raw = row["blocked_ns"] + row["preempted_ns"], row["switching_ns"]
        print("%d times: %.1f ms off the CPU in the table, which had %.1f, in %.1f %% of the time; %.1f in truth" %
              (row["blocked_times"] + row["preempted_times"], told / 1e6, (told + raw) / 1e6, share * 100, exact / 1e6))
        # What was lost is lost where the machine was busy, so the rest is not quite in proportion.
        # What was not recorded may have had none of it: no more than the truth is told.
        check(-(0.03 + 0.5 * (1 - share)) * exact < told - exact * share and told < 1.03 * exact, "thread %d is not right" % tid)
        check(raw > 0, "nothing was taken off")
    truth, recording, text, full = run()
    table = recording["off_cpu"]
    share = table["recorded_share"] if table else 0
    print("with the default budget switches are recorded in %.1f %% of the time" % (share * 100))
    check(share < 0.5, "records of so many switches are within the budget")
    check("switches were recorded in " in text.split("\n\n")[0], "the first lines do not say so")
    if table:
        check("what follows is a part of the time off the CPU" in full, "the table does not say so")
    else:
        check("more than 10,000 a second" in recording["off_cpu_why"], "no reason: " + recording["off_cpu_why"])
        check("not measured: " + recording["off_cpu_why"] in full, "the report has no reason")


main()
