#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what the report says of programs against what they measured themselves, with default options.

usage: test/truth/run.py [--repeat N] [--load N] [--known] [--plant] [--json FILE] [--list] [NAME...]

Each program of this folder prints its truth as a line of JSON (truth.h). It is run by `weft run`, or, when its name begins with api_, by
itself with WEFT_DIR; one whose name ends in _499hz with that option. A part of a poll is right within 2 % of its truth or 50 us, whichever is more. What lies between the poll's ends
and the program's own readings belongs to no part: it may be in any. "Not measured" may take from other parts, but is itself wrong above
2 % of the poll or 50 us, unless the program allows it.

--repeat N  each program N times          --load N     beside N processes that spin
--known     run those of KNOWN_WRONG, too --json FILE  append a line for each program
--plant     falsify the truth: succeeds when each program is found wrong

WEFT_BUILD is the directory of the binaries (default: build/dev). Exit status: 0 right, 1 wrong, 77 all skipped."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import compare

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("WEFT_BUILD", os.path.join(HERE, "..", "..", "build", "dev")))
TRIES = 5      # runs in which the machine came between the readings and the ends of a poll are made again
TIMEOUT_S = 60

# What is not right yet: name -> what is seen. These are not run, and named each time.
KNOWN_WRONG = {}


class Skip(Exception):
    """The behaviour cannot be shown here."""


def programs():
    """Name -> (source, arguments)."""
    found = {}
    for file in sorted(os.listdir(HERE)):
        stem, ext = os.path.splitext(file)
        if ext not in (".c", ".cc", ".rs", ".js") and not (ext == ".py" and stem.startswith("py_")):
            continue
        with open(os.path.join(HERE, file)) as text:
            runs = re.findall(r"^(?:/\*|//|#) run: (.*?)(?: \*/)?$", text.read(), re.M)
        for run in runs or [stem]:
            name, *args = run.split()
            found[name] = (file, args)
    return found


def command(file, args):
    stem, ext = os.path.splitext(file)
    interpreter = {".py": "/usr/bin/python3", ".js": shutil.which("node")}.get(ext, "")
    if interpreter is None:
        raise Skip("no node here")
    if interpreter:
        return [interpreter, os.path.join(HERE, file), *args]
    program = os.path.join(BUILD, "test", "truth", stem)
    if not os.path.exists(program):
        if ext == ".c":
            sys.exit("run.py: %s is not built" % program)
        raise Skip("no compiler for %s" % file)
    return [program, *args]


def report(trace):
    done = subprocess.run([os.path.join(BUILD, "weft"), "report", "--json", "--top", "5000", trace],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        raise compare.Wrong("weft report ended with status %d: %s" % (done.returncode, done.stderr.strip()))
    return json.loads(done.stdout)["recordings"]


def run_once(name, file, args, scratch):
    """The program's truth, and the recordings of its report."""
    trace = os.path.join(scratch, "rec")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("WEFT_", "LD_PRELOAD"))}
    line = command(file, args)
    if name.startswith("api_"):
        env["WEFT_DIR"] = trace
        os.mkdir(trace)
    else:
        hz = re.search(r"_(\d+)hz$", name)
        line = [os.path.join(BUILD, "weft"), "run", *(["--hz", hz.group(1)] if hz else []), "-o", trace, "--", *line]
    truth, live = None, None
    with open(os.path.join(scratch, "err"), "w+") as err:
        # A session of its own, so that a program that hangs can be ended with all that it started.
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=err, text=True, env=env, start_new_session=True)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(TIMEOUT_S)
        try:
            for words in process.stdout:
                said = json.loads(words) if words.startswith("{") else {}
                if "skip" in said:
                    process.wait()
                    raise Skip(said["skip"])
                if "truth" in said:
                    truth = said
                    if said.get("live"):
                        live = report(trace)
            status = process.wait()
        finally:
            signal.alarm(0)
        if truth is None or status != truth.get("status", 0):
            err.seek(0)
            raise compare.Wrong("status %d, %s; at the end: %s" % (
                status, "with a truth" if truth else "without a truth", err.read()[-400:]))
    return truth, live or report(trace)


def one(name, file, args, plant):
    """Runs a program until it can be judged."""
    for left in range(TRIES - 1, -1, -1):
        scratch = tempfile.mkdtemp(prefix="weft-truth-")
        try:
            truth, recordings = run_once(name, file, args, scratch)
            result = compare.judge(truth, recordings)
            if plant and not result.wrong and not result.unusable:
                result = compare.judge(compare.falsify(truth), recordings)
            elif plant:
                result = compare.Result([], None, "", 1, "it must be right before it is falsified: %s" % (result.wrong or result.unusable))
        except compare.Wrong as why:
            result = compare.Result([str(why)], None, "", 1, None)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if result.unusable is None:
            return result
        if left:
            print("flaky: %s: %s" % (name, result.unusable))
    return result._replace(wrong=["in none of %d runs the polls were where the program was: %s" % (TRIES, result.unusable)])


class Load:
    """Processes that only spin; they end with this one, too."""

    def __init__(self, n):
        self.n, self.pids = n, []

    def __enter__(self):
        parent = os.getpid()
        for _ in range(self.n):
            pid = os.fork()
            if pid == 0:
                while os.getppid() == parent:
                    for _ in range(100000):
                        pass
                os._exit(0)
            self.pids.append(pid)

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def tell(options, name, **what):
    if options.json:
        with open(options.json, "a") as file:
            file.write(json.dumps({"program": name, **what}) + "\n")


def judge_program(options, name, file, args):
    """pass, wrong, skipped or known."""
    if name in KNOWN_WRONG and not options.known:
        print("known wrong: %s: %s" % (name, KNOWN_WRONG[name]))
        tell(options, name, result="known wrong", seen=KNOWN_WRONG[name])
        return "known"
    wrong, worst, of, runs, polls = [], None, "", 0, True
    for runs in range(1, options.repeat + 1):
        try:
            result = one(name, file, args, options.plant)
        except Skip as why:
            print("skipped: %s: %s" % (name, why))
            tell(options, name, result="skipped", why=str(why))
            return "skipped"
        wrong += result.wrong
        polls = result.polls
        if result.error is not None and (worst is None or result.error > worst):
            worst, of = result.error, result.of
        if wrong and not options.known:
            break
    if options.plant:
        print("%-24s planted, and %s" % (name, "found: " + wrong[0] if wrong else "NOT FOUND"))
        return "pass" if wrong else "wrong"
    print("%-24s %-5s %s, %d run%s" % (name, "WRONG" if wrong else "ok",
                                       "nothing compared" if worst is None else "worst error %.2f %% (%s)" % (worst, of),
                                       runs, "" if runs == 1 else "s"))
    for words in wrong[:12]:
        print("    " + words)
    tell(options, name, result="wrong" if wrong else "pass", error_percent=worst, of=of, runs=runs, wrong=wrong[:12],
         other=not polls)
    return "wrong" if wrong else "pass"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    all_programs = programs()
    for name in [*options.names, *KNOWN_WRONG]:
        if name not in all_programs:
            sys.exit("run.py: no program %s; there are: %s" % (name, " ".join(all_programs)))
    if options.list:
        print("\n".join(all_programs))
        return 0
    count = dict.fromkeys(("pass", "wrong", "known", "skipped"), 0)
    with Load(options.load):
        for name in options.names or all_programs:
            count[judge_program(options, name, *all_programs[name])] += 1
            sys.stdout.flush()
    if len(options.names) != 1:
        print("%d right, %d wrong, %d known wrong, %d skipped" % tuple(count.values()))
    return 1 if count["wrong"] else 0 if count["pass"] else 77


if __name__ == "__main__":
    sys.exit(main())
