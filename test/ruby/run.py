#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Ruby binding on the real Ruby 3.3, of Debian 13, in a tree that test/ruby/tree makes once (build/ruby/trixie). `make
check-all` runs it. Programs measure themselves; what the report says is held against that. Without root or debootstrap it
is skipped, with the reason. usage: test/ruby/run.py [--keep] BUILD_DIR [TEST...]"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

ARGS = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
KEEP = "--keep" in sys.argv
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(ARGS[0] if ARGS else os.path.join(SOURCE, "build", "release"))
HERE = os.path.join(SOURCE, "test", "ruby")
TREE = os.path.join(SOURCE, "build", "ruby", "trixie")
GEM = os.path.join(SOURCE, "build", "ruby", "gem-" + os.path.basename(BUILD))
MS = 1_000_000
TESTS = []


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def test(function):
    TESTS.append(function)
    return function


class Wrong(Exception):
    pass


def check(true, what, about=None):
    if not true:
        raise Wrong("%s%s" % (what, "" if about is None else ": " + json.dumps(about)[:3000]))


def near(got, true, percent, what):
    check(abs(got - true) * 100 <= true * percent, "%s: %s is not within %s %% of %s" % (what, got, percent, true))


def inside(*args, env=None, code=0):
    """Runs a command in the tree; what it printed."""
    words = ["%s=%s" % pair for pair in (env or {}).items()]
    done = subprocess.run([os.path.join(HERE, "tree"), "run", TREE, "env", "HOME=/root", "LANG=C.UTF-8", *words, *args],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd=SOURCE)
    if done.returncode != code:
        raise Wrong("%s ended with %d, not %d:\n%s\n%s" % (args, done.returncode, code, done.stdout[-2000:],
                                                          done.stderr[-4000:]))
    return done.stdout


def ruby(script, *args, directory, env=None, code=0):
    """Runs a script of this folder that records into `directory`; the JSON that it printed last."""
    out = inside("ruby", "-I", GEM + "/lib", os.path.join(HERE, script), *args, code=code,
                 env=dict({"LD_LIBRARY_PATH": BUILD, "WEFT_DIR": directory}, **(env or {})))
    return json.loads(out.strip().splitlines()[-1])


def weft(*args):
    return inside(os.path.join(BUILD, "weft"), *args, env={"LD_LIBRARY_PATH": BUILD})


def report(directory):
    """The recordings in it, the biggest first."""
    found = json.loads(weft("report", "--json", directory))["recordings"]
    return found


def query(directory, question):
    return json.loads(weft("query", "--json", directory, question))


def need_tree():
    if os.geteuid() != 0:
        skip("a tree of Debian 13 takes root")
    if not os.path.exists(TREE + "/weft-made") and not shutil.which("debootstrap"):
        skip("no debootstrap here; tools/bootstrap suites installs it")
    made = subprocess.run([os.path.join(HERE, "tree"), "make", TREE], check=False, stderr=subprocess.PIPE, text=True)
    if made.returncode:
        skip("no tree: " + made.stderr.strip())


def build_gem():
    """The extension, in the tree, against the library of the build; beside the Ruby files of the gem."""
    os.makedirs(GEM + "/ext", exist_ok=True)
    extension = os.path.join(SOURCE, "bindings", "ruby", "ext", "weft", "extconf.rb")
    inside("sh", "-c", "cd %s/ext && ruby %s --with-weft-include=%s/include --with-weft-lib=%s >/dev/null && "
           "make -s 'warnflags=-Wall -Wextra -Werror -Wno-unused-parameter'" % (GEM, extension, SOURCE, BUILD))
    shutil.copytree(os.path.join(SOURCE, "bindings", "ruby", "lib"), GEM + "/lib", dirs_exist_ok=True)
    shutil.copy(GEM + "/ext/weft.so", GEM + "/lib/weft/weft.so")


@test
def waits_for_a_contended_gvl_are_within_5_percent_of_what_threads_saw(directory):
    truth = ruby("contended.rb", "3", directory=directory)
    check(truth["status"] == "recording" and truth["not_measured"] == "", "everything is measured", truth)
    rows = query(directory, "select tid, thread, sum(duration_ns) as ns, count(*) as n from wait "
                 "where kind = 'runtime lock' and name = 'GVL' group by tid, thread")
    for thread in truth["threads"]:
        mine = [row for row in rows if row["tid"] == thread["tid"]]
        check(mine, "it waited", rows)
        check(mine[0]["thread"] == thread["name"], "it has its name", mine)
        near(mine[0]["ns"], thread["wait_ns"], 5, thread["name"] + " waited")
    holders = query(directory, "select tid, holder_tid, sum(duration_ns) as ns from wait where name = 'GVL' "
                    "group by tid, holder_tid order by ns desc")
    tids = [thread["tid"] for thread in truth["threads"]]
    total = sum(row["ns"] for row in holders if row["tid"] in tids)
    known = sum(row["ns"] for row in holders if row["tid"] in tids and row["holder_tid"] in tids and
                row["holder_tid"] != row["tid"])
    check(known >= 0.9 * total, "the other held it", holders)


def main():
    need_tree()
    build_gem()
    wanted = ARGS[1:]
    failed = 0
    for one in TESTS:
        if wanted and not any(word in one.__name__ for word in wanted):
            continue
        directory = tempfile.mkdtemp(prefix="rec-", dir=os.path.dirname(TREE))
        try:
            one(directory)
            print("ok   " + one.__name__)
        except Exception as error:
            failed += 1
            print("FAIL %s: %s" % (one.__name__, error))
            if not isinstance(error, Wrong):
                traceback.print_exc(file=sys.stdout)
        finally:
            if not KEEP:
                shutil.rmtree(directory, ignore_errors=True)
            else:
                print("     " + directory)
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


main()
