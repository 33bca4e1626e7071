# SPDX-License-Identifier: Apache-2.0
"""What the tests of shipping have in common: directories, clean environments, the test program, and what a store must
have in the end."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ship_server import SECRET  # noqa: E402

BUILD = os.environ["WEFT_BUILD"]
WEFT, PROGRAM = BUILD + "/weft", BUILD + "/test/ship_program"
TOP = tempfile.mkdtemp(prefix="weft-ship-")
n_dirs = 0


class Skipped(Exception):
    """With the reason."""


def check(what, *why):
    if not what:
        raise AssertionError(" ".join(str(word) for word in why))


def new_dir():
    global n_dirs
    n_dirs += 1
    path = "%s/%d" % (TOP, n_dirs)
    os.mkdir(path, 0o700)
    return path


def environment(**more):
    dropped = ("AWS_", "WEFT_", "OTEL_", "DD_", "ECS_", "CURL_", "SSL_")
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(dropped) and not k.lower().endswith("_proxy") or k in ("WEFT_BUILD",)}
    env.update({"AWS_EC2_METADATA_DISABLED": "true", "HOME": TOP, "WEFT_SAMPLE_HZ": "off"})
    env.update({k: v for k, v in more.items() if v is not None})
    return env


def run(*args, env=None, code=0, timeout=100):
    got = subprocess.run([str(arg) for arg in args], env=env or environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=timeout)
    check(code is None or got.returncode == code, args, "ended with", got.returncode, got.stdout)
    check(SECRET not in got.stdout, "a secret was printed:", got.stdout)
    return got.stdout


def record(directory, n=3, end="stop", **env):
    if end == "exit":  # which waits for nobody: a thread that sends goes with what it has
        env = {"ASAN_OPTIONS": "detect_leaks=0", **env}
    return run(PROGRAM, n, end, env=environment(WEFT_DIR=directory, **env))


def start(directory, n=3, end="wait", **env):
    """The program, in the background; its output is not read."""
    return subprocess.Popen([PROGRAM, str(n), end], env=environment(WEFT_DIR=directory, **env),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def end(child):
    child.kill()
    child.wait()
    if child.stdout:
        child.stdout.close()


def until(child, *words):
    """Reads the program's lines up to one that has all the words; answers it."""
    seen = []
    for line in child.stdout:
        seen = seen[-3:] + [line]
        if all(word in line for word in words):
            return line
    raise AssertionError("it never said %s: %s" % (words, seen))


def sealed(directory):
    return sorted(name for name in os.listdir(directory) if name.endswith(".weft"))


def arrived(store, directory, only_once=True):
    """All segments of the directory are there, whole, under one name each."""
    names = [path.rsplit("/", 1)[1] for path in store.objects]
    check(sorted(names) == sealed(directory), "not the same:", sorted(names), sealed(directory))
    for path, body in store.objects.items():
        with open(os.path.join(directory, path.rsplit("/", 1)[1]), "rb") as file:
            check(file.read() == body, "other bytes:", path)
    if only_once:
        check(len(store.puts) == len(set(store.puts)), "sent twice:", store.puts)


def wait_for(what, seconds=60):
    end_s = time.monotonic() + seconds
    while not what():
        check(time.monotonic() < end_s, "waited too long")
        time.sleep(0.02)


def main(tests):
    """Runs the tests that the arguments name by a part of their names, or all. A skip is counted by its line."""
    wanted, bad, skipped = sys.argv[1:], 0, 0
    for test in tests:
        if wanted and not any(word in test.__name__ for word in wanted):
            continue
        begun = time.monotonic()
        try:
            test()
            print("ok   %s (%.1f s)" % (test.__name__, time.monotonic() - begun), flush=True)
        except Skipped as why:
            print("skip: %s: %s" % (test.__name__, why), flush=True)
            skipped += 1
        except (AssertionError, subprocess.TimeoutExpired, KeyError, IndexError, OSError) as error:
            print("FAIL %s: %s: %s" % (test.__name__, type(error).__name__, error), flush=True)
            bad += 1
    subprocess.run(["rm", "-rf", TOP], check=False)
    if skipped:
        print("%d skipped" % skipped)
    return 1 if bad else 0
