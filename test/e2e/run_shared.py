#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev release
"""weft run where another user may write: what that user plants or replaces while it runs is not followed, not written
to, not removed, and not shown raw. Needs root, who runs weft; the other user is nobody."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

WEFT = os.path.join(os.environ["WEFT_BUILD"], "weft")
OTHER = 65534
ENV = {k: v for k, v in os.environ.items() if k not in ("WEFT_DIR", "LD_PRELOAD", "DEBUGINFOD_URLS")}


def check(holds, what):
    if not holds:
        sys.exit("FAILED: " + what)


@contextlib.contextmanager
def other_user():
    """Names are made as the other user."""
    os.setegid(OTHER)
    os.seteuid(OTHER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def make(path, mode, owner=0, text=None):
    if text is None:
        os.mkdir(path)
    else:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def weft(*args, tmp="/tmp"):
    done = subprocess.run([WEFT, *args], env=dict(ENV, TMPDIR=tmp), capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode("utf-8", "surrogateescape")


def refused(base):
    """A temporary directory that others could replace is not made, and it is said what to do."""
    for name, mode, owner, say in (
        ("theirs", 0o755, OTHER, "belongs to user 65534"),
        ("theirs-sticky", 0o1777, OTHER, "belongs to user 65534"),
        ("not-sticky", 0o777, 0, "chmod +t"),
        ("group", 0o775, 0, "chmod +t"),
    ):
        tmp = make(f"{base}/{name}", mode, owner)
        code, err = weft("run", "--", "true", tmp=tmp)
        check(code == 125 and say in err and "TMPDIR" in err, f"{name}: {code}, {err}")
        check(os.listdir(tmp) == [], f"{name}: {os.listdir(tmp)}")
    link = f"{base}/theirs/link"
    with other_user():
        os.symlink("/tmp", link)
    code, err = weft("run", "--", "true", tmp=link)
    check(code == 125 and "link that user 65534 made" in err, f"link: {code}, {err}")
    tmp = make(f"{base}/sticky", 0o1777)
    deep = 'cd "$WEFT_PRELOAD_DIR" && mkdir -p a/b && : >a/b/c && ln -s /etc a/b/link && exit 3'
    code, err = weft("run", "--", "sh", "-c", deep, tmp=tmp)
    check(code == 3 and os.listdir(tmp) == [], f"sticky: {code}, {err}, {os.listdir(tmp)}")


def replaced(base):
    """The way to the temporary directory leads elsewhere when the program has ended: to root's own files."""
    shared = make(f"{base}/shared", 0o1777, OTHER)
    tmp = make(f"{shared}/tmp", 0o755)
    outside = make(f"{base}/outside", 0o755)
    go = f"{base}/go"
    with subprocess.Popen(
        [WEFT, "run", "--", "sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"],
        env=dict(ENV, TMPDIR=tmp),
        stderr=subprocess.PIPE,
    ) as run:
        while not os.listdir(tmp):
            time.sleep(0.01)
        name = os.listdir(tmp)[0]
        victim = make(f"{outside}/{name}", 0o700)
        make(f"{victim}/secret", 0o600, text="secret")
        make(f"{victim}/short-processes.txt", 0o600, text="")
        with other_user():
            os.rename(tmp, f"{shared}/moved")
            os.symlink(outside, tmp)
        make(go, 0o600, text="")
        err = run.communicate(timeout=60)[1].decode()
    check(run.returncode == 0, f"replaced: {run.returncode}, {err}")
    left = sorted(os.listdir(victim)) if os.path.isdir(victim) else []
    check(left == ["secret", "short-processes.txt"], f"removed from the other one, where is now: {left}")
    check("somebody moved or replaced" in err, f"it is not said: {err}")
    check(os.listdir(f"{shared}/moved") == [], "its own directory is left")


def planted(base):
    """Names that the other user took in a sticky directory of root's."""
    secret = make(f"{base}/secret", 0o600, text="secret\n")
    path = make(f"{base}/sticky-kept", 0o1777)
    short = f"{path}/short-processes.txt"
    raw = os.fsencode(path) + b"/x-\x1b[31mRED-1.rings"

    def link():
        with other_user():
            os.symlink(secret, short)

    def fifo():
        with other_user():
            os.mkfifo(short)

    def theirs():
        with other_user(), open(short, "w", encoding="ascii") as file:
            file.truncate(1 << 42)

    def rings():
        with other_user():
            os.symlink(secret, raw)
            os.symlink(secret, f"{path}/q-77-1.rings")

    # Where fs.protected_hardlinks is 0 anybody can do that; here root does.
    for plant in (link, fifo, theirs, lambda: os.link(secret, short), rings):
        plant()
        code, err = weft("run", "-o", path, "--", "sh", "-c", "/bin/true; exit 4")
        check(code == 4 and text_of(secret) == "secret\n", f"{code}, {text_of(secret)}, {err}")
        check("\x1b" not in err and "still run" not in err, f"of another user: {err!r}")
        if plant != rings:
            check("not counted" in err and "remove it" in err, f"it is not said: {err}")
        for left in os.listdir(os.fsencode(path)):
            os.unlink(os.fsencode(path) + b"/" + left)


def main():
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(77)
    base = tempfile.mkdtemp()
    os.chmod(base, 0o755)
    try:
        refused(base)
        replaced(base)
        planted(base)
    finally:
        shutil.rmtree(base)


main()
