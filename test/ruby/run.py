#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Ruby binding on the real Ruby 3.3, of Debian 13, in a tree that test/ruby/tree makes once (build/ruby/trixie).
`make check-all` runs it. Programs measure themselves; what the report says is held against that. Without root or
debootstrap it is skipped, with the reason. usage: test/ruby/run.py [--keep] BUILD_DIR [TEST...]"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
import urllib.request

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
        check(0.95 * thread["wait_ns"] - thread["ready_ns"] <= mine[0]["ns"] <= 1.05 * thread["wait_ns"],
              thread["name"] + " waited", [mine, thread])
    holders = query(directory, "select tid, holder_tid, sum(duration_ns) as ns from wait where name = 'GVL' "
                    "group by tid, holder_tid order by ns desc")
    tids = [thread["tid"] for thread in truth["threads"]]
    total = sum(row["ns"] for row in holders if row["tid"] in tids)
    known = sum(row["ns"] for row in holders if row["tid"] in tids and row["holder_tid"] in tids and
                row["holder_tid"] != row["tid"])
    check(known >= 0.9 * total, "the other held it", holders)


def functions(directory, where="1"):
    """CPU time by function and by each function of their stacks."""
    rows = query(directory, "select stack_id, sum(weight_ns) as ns from sample where %s group by stack_id" % where)
    frames = query(directory, "select stack_id, depth, function, file, line from frame")
    by_stack = {}
    for frame in frames:
        by_stack.setdefault(frame["stack_id"], []).append(frame)
    return [(row["ns"], sorted(by_stack.get(row["stack_id"], []), key=lambda frame: frame["depth"])) for row in rows]


@test
def ruby_frames_lie_among_native_ones(directory):
    truth = ruby("frames.rb", directory=directory)
    check(truth["not_measured"] == "", "everything is measured", truth)
    total = {}
    for ns, frames in functions(directory):
        names = [frame["function"] for frame in frames]
        for name in set(names):
            total[name] = total.get(name, 0) + ns
        if "Object#burn_in_block" in names and "Object#burn_in_ruby" in names:
            order = [name for name in names if name in ("Object#burn_in_ruby", "rb_ary_each", "Array#each", "<main>")]
            check(order == ["Object#burn_in_ruby", "rb_ary_each", "Array#each", "<main>"],
                  "from the leaf to the root, native frames between Ruby's", names)
            check("_start" in names, "down to the first function of the process", names)
    near(total.get("Object#burn_in_block", 0), truth["cpu_ns"], 15, "CPU time in a block")
    near(total.get("Object#burn_in_c", 0), truth["cpu_ns"], 15, "CPU time in a C function")
    near(total.get("Object#burn_in_ruby", 0), 2 * truth["cpu_ns"], 15, "CPU time in Ruby code")
    lines = query(directory, "select distinct file, line from frame where function = 'Object#add_up'")
    check(lines and all(row["file"].endswith("frames.rb") and 11 <= row["line"] <= 19 for row in lines),
          "with file and line", lines)


@test
def garbage_collection_is_waits_by_reason_with_its_cpu_time(directory):
    truth = ruby("collect.rb", directory=directory)
    waits = {row["name"]: row for row in report(directory)[0]["waits"] if row["kind"] == "garbage collection"}
    forced = waits.get("GC by method, major (force)")
    check(forced, "GC.start is the reason", list(waits))
    near(forced["longest_ns"], truth["longest_ns"], 5, "the longest collection")
    near(forced["total_ns"], truth["forced_ns"], 10, "all that were asked for")
    others = [row for name, row in waits.items() if "newobj" in name]
    check(sum(row["times"] for row in others) >= truth["collections"], "each collection for lack of room is counted",
          others)
    check(sum(row["total_ns"] for row in others) >= 0.9 * truth["garbage_ms"] * MS,
          "they took the CPU time that Ruby measured, or longer", others)
    check(forced["on_cpu_ns"] and forced["on_cpu_ns"] <= forced["on_cpu_of_ns"], "with its CPU time", forced)
    rows = query(directory, "select distinct frame.function from wait join frame on frame.stack_id = wait.stack_id "
                 "where wait.name like 'GC by method%'")
    check({"GC.start", "<main>"} <= {row["function"] for row in rows}, "from where it was asked for", rows)


@test
def slow_requests_are_found_with_their_cause(directory):
    truth = ruby("requests.rb", directory=directory)
    polls = {row["location"]: row for row in query(
        directory, "select location, duration_ns, on_cpu_ns, waiting_ns, blocked_ns from poll order by duration_ns")}
    for path in ("/computes", "/sleeps", "/waits"):
        near(polls["GET " + path]["duration_ns"], truth["took"][path], 5, path)
    near(polls["GET /computes"]["on_cpu_ns"], 150 * MS, 10, "CPU time of the one that computes")
    near(polls["GET /sleeps"]["blocked_ns"], 120 * MS, 10, "time blocked of the one that sleeps")
    check(polls["GET /waits"]["waiting_ns"] >= 0.8 * truth["took"]["/waits"], "it waited", polls)
    found = [json.dumps(finding) for finding in report(directory)[0]["findings"]]
    check(any("GET /waits" in text and "GVL" in text and "hog" in text for text in found),
          "for the GVL, and who had it", found)
    check(any("GET /computes" in text for text in found), "the one that computes", found)


@test
def parent_and_child_of_a_fork_are_recorded(directory):
    truth = ruby("forks.rb", directory=directory)
    check(truth["ended"] == 0, "the child ended well", truth)
    rows = query(directory, "select recording, thread, holder, sum(duration_ns) as ns from wait where name = 'GVL' "
                 "group by recording, thread, holder")
    for who in ("parent", "child"):
        mine = [row for row in rows if row["thread"].startswith(who + "-")]
        check(sum(row["ns"] for row in mine) >= 300 * MS, who + " waited for its GVL", rows)
        check(all((row["holder"] or "").startswith((who, "ruby", "forks")) for row in mine), "its own thread had it",
              mine)
        check(len({row["recording"] for row in mine}) == 1, "in a recording of its own", mine)


@test
def one_of_many_allocations_stands_for_the_others(directory):
    truth = ruby("allocate.rb", directory=directory, env={"WEFT_RUBY_ALLOC": "100"})
    rows = query(directory, "select name, sum(count) as n, count(*) as recorded from alloc group by name")
    by_class = {row["name"]: row for row in rows}
    near(by_class["Small"]["n"], truth["small"] + truth["kept"], 5, "objects of Small")
    near(by_class["Large"]["n"], truth["large"], 5, "objects of Large")
    check(sum(row["n"] for row in rows) >= 0.95 * truth["all"], "all objects", [rows, truth])
    check(by_class["Small"]["recorded"] < truth["small"] / 50, "few are recorded", rows)
    places = query(directory, "select sum(count) as n from alloc where name = 'Small' and stack_id in "
                   "(select stack_id from frame where function = 'Object#make_small')")
    near(places[0]["n"], truth["small"], 10, "where they were made")
    heap = query(directory, "select fields ->> '$.objects' as n from event where kind = 'ruby_heap' and "
                 "fields ->> '$.class' = 'Small'")
    check(len(heap) == 1 and int(heap[0]["n"]) == truth["live"][0] >= truth["kept"], "what lives, by class",
          [heap, truth])


@test
def samples_have_the_span_of_their_thread(directory):
    truth = ruby("spans.rb", directory=directory)
    check(truth["hooked"] == ["opentelemetry", "datadog"], "both are hooked into", truth)
    rows = {row["span"]: row for row in query(
        directory, "select span, root_span, trace, sum(weight_ns) as ns from sample group by span, root_span, trace")}
    near(rows[truth["outer"]]["ns"], 100 * MS, 25, "CPU time of the outer span")
    near(rows[truth["inner"]]["ns"], 200 * MS, 25, "CPU time of the inner span")
    check(rows[truth["inner"]]["root_span"] == truth["outer"], "its root is the outer one", rows)
    check(rows[truth["inner"]]["trace"] == truth["trace"], "and its trace", rows)
    check(rows.get("%016x" % 77, {"trace": ""})["trace"] == "1234" + "0" * 24 + "5678", "and a span of datadog", rows)


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@test
def a_rack_application_on_puma_is_recorded(directory):
    port = free_port()
    example = os.path.join(SOURCE, "bindings", "ruby", "examples", "config.ru")
    server = subprocess.Popen([os.path.join(HERE, "tree"), "run", TREE, "env", "HOME=/root", "RUBYLIB=" + GEM + "/lib",
                               "LD_LIBRARY_PATH=" + BUILD, "WEFT_DIR=" + directory, "puma", "-t", "4:4", "-b",
                               "tcp://127.0.0.1:%d" % port, example], cwd=SOURCE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            if "Ctrl-C" in line:
                break
        for path in ("cpu", "io", "garbage") * 3:
            check(get("http://127.0.0.1:%d/%s" % (port, path)) == b"ok\n", "it answers")
    finally:
        server.terminate()
        server.communicate(timeout=60)
    polls = query(directory, "select location, count(*) as n, max(duration_ns) as ns, sum(blocked_ns) as blocked_ns "
                  "from poll group by location")
    by_name = {row["location"]: row for row in polls}
    check(all(by_name["GET /" + path]["n"] == 3 for path in ("cpu", "io", "garbage")), "each request is a poll", polls)
    check(by_name["GET /io"]["ns"] >= 50 * MS, "the one that sleeps is long", polls)


@test
def jobs_are_recorded_by_the_middleware_of_sidekiq(directory):
    example = os.path.join(SOURCE, "bindings", "ruby", "examples", "jobs.rb")
    out = inside("ruby", "-I", GEM + "/lib", example, env={"LD_LIBRARY_PATH": BUILD, "WEFT_DIR": directory})
    check("weft: recording" in out, "it records", out)
    polls = {row["location"]: row for row in query(
        directory, "select location, count(*) as n from poll group by location")}
    counted = query(directory, "select sum(count) as n from poll_count")[0]["n"] or 0
    total = sum(row["n"] for row in polls.values())
    check(max(total, counted) == 150 and {"Thumbnail#perform", "SendMail#perform"} <= set(polls), "each job is a poll",
          [polls, counted])


@test
def nothing_breaks_under_stress(directory):
    truth = ruby("stress.rb", "5", directory=directory,
                 env={"WEFT_SAMPLE_HZ": "999", "WEFT_BUDGET_PPM": "off", "WEFT_RUBY_ALLOC": "200"})
    check(truth["loops"] > 100 and truth["short"] > 100 and truth["forks"] > 0, "it went on", truth)
    rows = query(directory, "select count(*) as n from sample join frame on frame.stack_id = sample.stack_id where "
                 "frame.function = 'Object#raise_deeply'")
    check(rows[0]["n"] > 0, "and was sampled", rows)


@test
def weft_run_needs_no_change_of_the_program(directory):
    out = inside(BUILD + "/weft", "run", "-o", directory, "--", "ruby", os.path.join(HERE, "plain.rb"),
                 env={"RUBYLIB": GEM + "/lib", "LD_LIBRARY_PATH": BUILD})
    check('"required":true' in out, "the gem was loaded", out)
    rows = query(directory, "select thread, sum(duration_ns) as ns from wait where name = 'GVL' group by thread")
    check(sum(row["ns"] for row in rows if row["thread"].startswith("burner")) >= 300 * MS, "waits for the GVL", rows)
    others = query(directory, "select thread, count(*) as n from wait where kind = 'condition' and "
                   "thread like 'burner%' and duration_ns > 10000000 group by thread")
    check(all(row["n"] == 1 for row in others), "not for its condition variable, too, but for a thread's first", others)
    reads = query(directory, "select distinct frame.function from wait join frame on frame.stack_id = wait.stack_id "
                  "where wait.kind = 'call' and wait.thread like 'plain.rb%'")
    check("Object#read_a_pipe" in {row["function"] for row in reads}, "a call that blocks has Ruby frames", reads)


@test
def without_the_gem_weft_run_leaves_ruby_alone(directory):
    out = inside(BUILD + "/weft", "run", "-o", directory, "--", "ruby", os.path.join(HERE, "plain.rb"))
    check('"required":false' in out, "there is no gem", out)
    check(report(directory)[0]["cpu"], "it is recorded all the same")


@test
def with_mn_threads_the_report_says_what_is_not_measured(directory):
    truth = ruby("contended.rb", "0.5", directory=directory, env={"RUBY_MN_THREADS": "1"})
    check(truth["status"] == "recording", "it records", truth)
    check("RUBY_MN_THREADS" in truth["not_measured"], "and knows what is not measured", truth)
    text = weft("report", "--full", directory)
    check("waits for the GVL" in text and "RUBY_MN_THREADS" in " ".join(text.split()), "and the report shows it", text)


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
