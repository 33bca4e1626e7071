#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
"""The Ruby binding on the Ruby of this machine. Debian 12 has 3.1, which is too old for waits for the GVL and for Ruby
frames: the extension builds and loads all the same, what can be measured is, and the report says what cannot and why.
test/ruby/run.py is for Ruby 3.3, in `make check-all`."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = os.environ["WEFT_BUILD"], os.environ["WEFT_SOURCE"]
GEM = os.path.join(SOURCE, "bindings", "ruby")
SCRIPTS = os.path.join(SOURCE, "test", "ruby")


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def check(true, what, about=None):
    if not true:
        sys.exit("%s%s" % (what, "" if about is None else ": " + json.dumps(about)[:3000]))


def run(*args, cwd=None, **env):
    done = subprocess.run(args, cwd=cwd, env=dict(os.environ, LD_LIBRARY_PATH=BUILD, **env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("%s ended with %d:\n%s\n%s" % (args, done.returncode, done.stdout[-2000:], done.stderr[-4000:]))
    return done.stdout


def build(place):
    if not shutil.which("ruby"):
        skip("no ruby here; tools/bootstrap check installs it")
    headers = run("ruby", "-rrbconfig", "-e", "puts RbConfig::CONFIG['rubyhdrdir']").strip()
    if not os.path.exists(headers + "/ruby.h"):
        skip("no ruby.h here; tools/bootstrap check installs ruby-dev")
    lib = place + "/lib"
    shutil.copytree(GEM + "/lib", lib)
    os.mkdir(place + "/ext")
    run("ruby", GEM + "/ext/weft/extconf.rb", "--with-weft-include=" + SOURCE + "/include", "--with-weft-lib=" + BUILD,
        cwd=place + "/ext")
    run("make", "-s", "warnflags=-Wall -Wextra -Werror -Wno-unused-parameter", cwd=place + "/ext")
    shutil.copy(place + "/ext/weft.so", lib + "/weft/weft.so")
    return lib


def report(directory):
    return json.loads(run(BUILD + "/weft", "report", "--json", directory))["recordings"][0]


def is_new():
    found = re.match(r"ruby (\d+)\.(\d+)\.(\d+)", run("ruby", "-v"))
    return tuple(map(int, found.groups())) >= (3, 3, 4)


def requests_and_garbage(place, lib, new):
    truth = json.loads(run("ruby", "-I", lib, SCRIPTS + "/requests.rb", WEFT_DIR=place + "/a").splitlines()[-1])
    check(truth["status"] == "recording", "it records", truth)
    check(("waits for the GVL" not in truth["not_measured"]) == new, "what is not measured", truth)
    found = report(place + "/a")
    check(any(row["location"] == "GET /computes" for row in found["longest_polls"]), "requests are polls", found)
    text = " ".join(run(BUILD + "/weft", "report", "--full", place + "/a").split())
    check(("waits for the GVL: this Ruby" not in text) == new, "the report says what is not measured", text)
    run("ruby", "-I", lib, SCRIPTS + "/collect.rb", WEFT_DIR=place + "/b")
    names = {row["name"] for row in report(place + "/b")["waits"]}
    check("GC by method, major (force)" in names, "garbage collection is measured", sorted(names))


def under_weft_run(place, lib):
    out = run(BUILD + "/weft", "run", "-o", place + "/c", "--", "ruby", SCRIPTS + "/plain.rb", RUBYLIB=lib)
    check('"required":true' in out, "weft run has Ruby load the gem", out)
    out = run(BUILD + "/weft", "run", "-o", place + "/d", "--", "ruby", SCRIPTS + "/plain.rb", RUBYOPT="-W0")
    check('"required":false' in out, "and goes on without it", out)
    broken = place + "/broken"
    os.makedirs(broken + "/weft")
    with open(broken + "/weft/auto.rb", "w", encoding="utf-8") as file:
        file.write("raise 'a gem that is broken'\n")
    out = run(BUILD + "/weft", "run", "-o", place + "/e", "--", "ruby", SCRIPTS + "/plain.rb", RUBYLIB=broken)
    check('"required":false' in out, "a gem that is broken harms nothing", out)


def main():
    place = tempfile.mkdtemp(prefix="weft-ruby-")
    try:
        lib = build(place)
        requests_and_garbage(place, lib, is_new())
        under_weft_run(place, lib)
    finally:
        shutil.rmtree(place, ignore_errors=True)


main()
