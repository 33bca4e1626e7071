# SPDX-License-Identifier: Apache-2.0
"""bash's own tests, of the machine's bash. A unit is a test: a script whose output is held against a file. Some do not match without weft either, as there is
no terminal; then the difference has to be the same."""
import hashlib
import os
import re
import shutil

import source

NAME = "bash"
SECONDS = 200
UNITS = """run-alias run-appendop run-arith run-arith-for run-array run-array2 run-assoc run-attr run-braces run-builtins run-case run-casemod run-complete
    run-comsub run-comsub-eof run-comsub-posix run-cond run-coproc run-cprint run-dbg-support run-dbg-support2 run-dirstack run-dollars run-dynvar run-errors
    run-execscript run-exp-tests run-exportfunc run-extglob run-extglob2 run-extglob3 run-func run-getopts run-glob-test run-globstar run-heredoc run-herestr
    run-histexpand run-history run-ifs run-ifs-posix run-input-test run-intl run-invert run-invocation run-iquote run-jobs run-lastpipe run-mapfile run-more-exp
    run-nameref run-new-exp run-nquote run-nquote1 run-nquote2 run-nquote3 run-nquote4 run-nquote5 run-parser run-posix2 run-posixexp run-posixexp2 run-posixpat
    run-posixpipe run-precedence run-printf run-procsub run-quote run-quotearray run-read run-redir run-rhs-exp run-rsh run-set-e run-set-x run-shopt run-strip
    run-test run-tilde run-tilde2 run-trap run-type run-varenv run-vredir""".split()
HELPERS = ("recho", "zecho", "printenv", "xcase")


def prepare(tree):
    source.fetch("bash", tree)
    for name, text in (("config.h", "#define HAVE_UNISTD_H 1\n#define HAVE_STDLIB_H 1\n#define HAVE_STRING_H 1\n"), ("version.h", "#define DISTVERSION \"5.2\"\n")):
        with open(os.path.join(tree, name), "w") as file:
            file.write(text)
    for helper in HELPERS:
        if not os.path.exists(os.path.join(tree, "tests", helper)):
            source.call(["cc", "-w", "-DHAVE_CONFIG_H", "-I.", "-o", "tests/" + helper, "support/%s.c" % helper], tree, tree + ".log")


def run(place, tree, unit, _):
    tests = os.path.join(place.dir, "tests")
    shutil.copytree(os.path.join(tree, "tests"), tests, symlinks=True)
    for name in ("config.h", "version.h"):
        shutil.copy(os.path.join(tree, name), place.dir)
    status = place.run(["sh", unit], tests, SECONDS, THIS_SH="/bin/bash", BUILD_DIR=place.dir, BASH_TSTOUT=os.path.join(place.dir, "tstout"),
                       PATH=".:" + os.environ["PATH"], LC_ALL="C.UTF-8")
    out = re.sub(r"\d{3,}", "N", place.printed().replace(place.dir, "DIR")) # process ids
    if status == 0 and not out:
        return {unit: "pass"}
    return {unit: status if status == "hung" else "fail %s, %d lines, %s" % (status, out.count("\n"), hashlib.sha256(out.encode()).hexdigest()[:8])}
