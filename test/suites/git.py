# SPDX-License-Identifier: Apache-2.0
"""git's own tests, of a git that is built from Debian's source. A unit is a script; a test is a line of its output. The scripts are those with many processes, pipes,
signals, threads, daemons and sockets."""
import os
import re

import source

NAME = "git"
SECONDS = 400
UNITS = """t0000-basic t0001-init t0005-signals t0008-ignores t0021-conversion t0052-simple-ipc t0060-path-utils t0061-run-command t0301-credential-cache t1006-cat-file
    t3600-rm t5300-pack-object t5310-pack-bitmaps t5500-fetch-pack t5510-fetch t5516-fetch-push t5570-git-daemon t5601-clone t6500-gc t7006-pager
    t7502-commit-porcelain t7810-grep t9300-fast-import""".split()
WITHOUT = ["NO_%s=1" % part for part in ("CURL", "EXPAT", "TCLTK", "GETTEXT", "OPENSSL", "PYTHON")]


def prepare(tree):
    source.fetch("git", tree)
    if not os.path.exists(os.path.join(tree, "GIT-BUILD-OPTIONS")) or not os.path.exists(os.path.join(tree, "t/helper/test-tool")):
        source.call(["make", "-j%d" % (os.cpu_count() or 1), "CFLAGS=-O1 -w"] + WITHOUT, tree, tree + ".log")


def run(place, tree, unit, _):
    status = place.run(["sh", "./%s.sh" % unit, "--root=" + os.path.join(place.dir, "trash")], os.path.join(tree, "t"), SECONDS, GIT_TEST_GIT_DAEMON="true")
    results = {}
    for bad, number, name in re.findall(r"^(not )?ok (\d+)(?: (?:- )?(.*))?$", place.printed().replace(place.dir, "DIR"), re.MULTILINE):
        what = "skip" if "# skip" in name else "fail" if bad else "pass"
        results["%s %s" % (number, name.split(" # ")[0])] = what
    results[unit] = "pass" if status == 0 else str(status)
    return results
