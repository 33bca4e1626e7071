#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of other projects without weft and under `weft run`, and compares the result of each test.

usage: test/suites/run.py [--list] [--repeat N] [--from-start] [--keep] [--xml FILE] [WORD...]

The suites are those of CPython (Debian's libpython3.11-testsuite), bash and git (Debian's source packages). A WORD chooses the units whose names
have it in them: cpython/test_os, bash/run-trap, git/t0005-signals. Each unit runs without weft first, then with it and default options. A line a
suite, or a line a unit when WORDs choose; all results go to build/log/suites.xml.

A test whose result differs is repeated, --repeat times (default 2) each way. One that has several results without weft is flaky by itself, and may
have any of these. One that has such a result under weft only at a second try is FLAKY, and shown as such. What differs each time fails, unless it
is in KNOWN. --from-start records each process from its start, which default options do not.

WEFT_BUILD is the directory of the binaries (default: build/release). Sources are kept in build/suites. Exit status: 0 nothing differs, 1 something
does, 2 a suite could not be made ready."""
import argparse
import collections
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import bash
import cpython
import git

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("WEFT_BUILD", os.path.join(ROOT, "build", "release")))
SOURCES = os.path.join(ROOT, "build", "suites")
LOG = os.path.join(ROOT, "build", "log")
SUITES = (cpython, bash, git)

# Tests that differ, and why. They are run, and shown when they do not differ any more.
KNOWN = {
    "bash/run-read/run-read": "it reads from a full pipe by read -t .0001: the call by which a recorded thread becomes a loop takes longer than these 100 us, once",
}

Difference = collections.namedtuple("Difference", "test without under word")


class Place:
    """Where one run of a unit happens: a directory of its own, an environment without anything of weft's, and a limit of time."""

    def __init__(self, weft):
        self.weft = weft
        self.dir = tempfile.mkdtemp(prefix="weft-suites-", dir="/tmp")
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        self.out = os.path.join(self.dir, "out")

    def environment(self, more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "GIT_", "PYTHON")) and k not in ("LD_PRELOAD", "BASH_ENV", "MAKEFLAGS")}
        env.update(HOME=self.home, TMPDIR=self.dir, TERM="dumb", **more)
        return env

    def run(self, command, cwd, seconds, **more):
        """The exit status, or "hung". What it prints is in self.out; the report of weft is beside it."""
        if self.weft:
            command = self.weft + command
        with open(self.out, "wb") as out, open(self.out + ".err", "wb") as err:
            process = subprocess.Popen(command, cwd=cwd, env=self.environment(more), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            until = time.monotonic() + seconds
            ended = None
            try:
                while not ended and time.monotonic() < until:
                    time.sleep(0.02)
                    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            finally:
                end_session(process.pid) # not reaped: the number is no one else's
                status = process.wait()
            return status if ended else "hung"

    def printed(self):
        with open(self.out, errors="replace") as file:
            return file.read()

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def end_session(leader):
    """Ends what the unit has left in its session, by process id."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == leader:
                os.kill(int(pid), 9)
        except OSError:
            pass


def run_once(suite, unit, weft, only, keep):
    """WEFT is the command that runs another under weft, or nothing."""
    place = Place(weft)
    begun = time.monotonic()
    try:
        results = suite.run(place, os.path.join(SOURCES, suite.NAME), unit, only)
        return results, time.monotonic() - begun
    finally:
        if keep:
            print("     %s %s: %s" % (unit, "weft" if weft else "none", place.dir))
        else:
            place.remove()


def differing(some, others):
    """The tests that have another result, or are in one only."""
    return sorted(test for test in some.keys() | others.keys() if some.get(test) != others.get(test))


def judge(suite, unit, without, under, command, repeat, keep):
    """Repeats what differs, and says which of it is weft's."""
    found = []
    tests = differing(without, under)
    allowed = {test: {without.get(test)} for test in tests}
    seen = {test: [under.get(test)] for test in tests}
    for weft in (None, command):
        for _ in range(repeat if tests else 0):
            again, _ = run_once(suite, unit, weft, tests, keep)
            for test in tests:
                if weft:
                    seen[test].append(again.get(test))
                else:
                    allowed[test].add(again.get(test))
    for test in tests:
        good = [result in allowed[test] for result in seen[test]]
        if len(allowed[test]) > 1:
            word = "flaky without weft"
        elif "%s/%s/%s" % (suite.NAME, unit, test) in KNOWN:
            word = "known"
        else:
            word = "FLAKY" if any(good) else "DIFFERS"
        found.append(Difference(test, "/".join(sorted(map(str, allowed[test]))), "/".join(map(str, seen[test])), word))
    return found


def add_xml(suites, suite, unit, without, found, took):
    bad = {one.test: one for one in found}
    element = ElementTree.SubElement(suites, "testsuite", name="%s/%s" % (suite.NAME, unit), tests=str(len(without.keys() | bad.keys())), time="%.3f" % sum(took),
                                     failures=str(sum(one.word == "DIFFERS" for one in found)))
    properties = ElementTree.SubElement(element, "properties")
    for name, value in zip(("seconds_without_weft", "seconds_under_weft"), took):
        ElementTree.SubElement(properties, "property", name=name, value="%.3f" % value)
    for test in sorted(without.keys() | bad.keys()):
        case = ElementTree.SubElement(element, "testcase", classname="%s.%s" % (suite.NAME, unit), name=test, status="run")
        one = bad.get(test)
        text = one and "without weft: %s; under weft: %s (%s)" % (one.without, one.under, one.word)
        if one and one.word == "DIFFERS":
            case.set("status", "fail")
            ElementTree.SubElement(case, "failure", message=text)
        elif one and one.word == "FLAKY":
            ElementTree.SubElement(case, "flakyFailure", message=text)
        elif without.get(test) == "skip":
            case.set("status", "notrun")
            ElementTree.SubElement(case, "skipped", message="skipped by the suite itself")
        ElementTree.SubElement(case, "system-out").text = text or "the same each way: %s" % without.get(test)


class Line:
    """The sum of a suite, or of a unit: one line of the table."""

    def __init__(self, name):
        self.name, self.results, self.took, self.found = name, collections.Counter(), [0.0, 0.0], []

    def add(self, unit, without, found, took):
        self.results.update("other" if result not in ("pass", "skip") else result for result in without.values())
        self.took = [a + b for a, b in zip(self.took, took)]
        self.found += [(unit, one) for one in found]

    def show(self):
        words = collections.Counter(one.word for _, one in self.found)
        verdict = "FAIL" if words["DIFFERS"] else "FLAKY" if words["FLAKY"] else "ok"
        text = "%5d tests: %d pass, %d fail, %d skipped without weft; " % (sum(self.results.values()), self.results["pass"], self.results["other"], self.results["skip"])
        text += ", ".join("%d %s" % (n, word) for word, n in sorted(words.items())) or "the same under weft"
        print("%-5s %-26s %s; %.0f s, under weft %.0f s" % (verdict, self.name, text, *self.took), flush=True)
        for unit, one in self.found:
            why = KNOWN.get("%s/%s" % (unit, one.test), "")
            print("      %s %s %s: without weft %s; under weft %s%s" % (one.word, unit, one.test, one.without, one.under, why and ": " + why))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--from-start", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--xml", default=os.path.join(LOG, "suites.xml"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)) # ends the unit that runs, too
    command = [os.path.join(BUILD, "weft"), "run"] + (["--start-after", "0"] if options.from_start else []) + ["--"]
    os.makedirs(SOURCES, exist_ok=True)
    os.makedirs(LOG, exist_ok=True)
    root = ElementTree.Element("testsuites")
    failed, matched = False, 0
    for suite in SUITES:
        units = [unit for unit in suite.UNITS if not options.words or any(word in "%s/%s" % (suite.NAME, unit) for word in options.words)]
        if options.list:
            print("\n".join("%s/%s" % (suite.NAME, unit) for unit in units))
            continue
        if not units:
            continue
        matched += len(units)
        try:
            suite.prepare(os.path.join(SOURCES, suite.NAME))
        except (subprocess.CalledProcessError, OSError) as error:
            print("test/suites/run.py: %s cannot be made ready: %s" % (suite.NAME, error), file=sys.stderr)
            return 2
        line = Line(suite.NAME)
        for unit in units:
            if options.words:
                line = Line("%s/%s" % (suite.NAME, unit))
            without, took = run_once(suite, unit, None, None, options.keep)
            under, took_under = run_once(suite, unit, command, None, options.keep)
            found = judge(suite, unit, without, under, command, options.repeat, options.keep)
            line.add("%s/%s" % (suite.NAME, unit), without, found, (took, took_under))
            add_xml(root, suite, unit, without, found, (took, took_under))
            failed = failed or any(one.word == "DIFFERS" for one in found)
            if options.words:
                line.show()
        if not options.words:
            line.show()
    if options.list:
        return 0
    ElementTree.ElementTree(root).write(options.xml, encoding="UTF-8", xml_declaration=True)
    if not matched:
        print("test/suites/run.py: no unit has any of these words in its name; --list shows them", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
