#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_lttng in a session of LTTng's own. Where LTTng cannot run, the figure is null and the note says why."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SESSION = "weft-bench-%d" % os.getpid()


class Cannot(Exception):
    pass


def lttng(env, *args, check=True):
    done = subprocess.run(["lttng", "--no-sessiond", *args], env=env, capture_output=True, text=True, timeout=20)
    if check and done.returncode:
        raise Cannot("lttng %s: %s" % (args[0], (done.stderr or done.stdout).strip().replace("\n", " ")))
    return done


def start_daemon(env):
    """The daemon's process, or None when the machine has one already, which is used and left alone."""
    if lttng(env, "list", check=False).returncode == 0:
        return None
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        if daemon.poll() is not None:
            raise Cannot("lttng-sessiond ended with status %d" % daemon.returncode)
        if lttng(env, "list", check=False).returncode == 0:
            return daemon
        time.sleep(0.05)
    stop_daemon(daemon)
    raise Cannot("lttng-sessiond did not answer within 5 s")


def stop_daemon(daemon):
    if daemon is None:
        return
    daemon.terminate()
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def discarded(env):
    for line in lttng(env, "list", SESSION, check=False).stdout.splitlines():
        if "Discarded events:" in line:
            return line.split(":")[1].strip()
    return "unknown"


def measure(env, home, program, args):
    lttng(env, "create", SESSION, "--output", os.path.join(home, "trace"))
    try:
        lttng(env, "enable-channel", "--userspace", "--subbuf-size=4M", "--num-subbuf=8", "channel")
        lttng(env, "enable-event", "--userspace", "--channel=channel", "weft_bench:poll")
        lttng(env, "start", SESSION)
        done = subprocess.run([program, *args], env=env, capture_output=True, text=True, timeout=60)
        if done.returncode == 3:
            raise Cannot(done.stderr.strip())
        if done.returncode:
            sys.exit("%s: status %d: %s" % (program, done.returncode, done.stderr.strip()))
        figure = json.loads(done.stdout)
        figure["note"] += ", LTTng discarded " + discarded(env)
        return figure
    finally:
        lttng(env, "destroy", SESSION, check=False)


def main():
    program = os.path.join(os.environ.get("WEFT_BUILD", "build/release"), "bench", "bench_lttng")
    home = tempfile.mkdtemp(prefix="weft-lttng-")
    env = dict(os.environ, LTTNG_HOME=home, LTTNG_UST_REGISTER_TIMEOUT="3000")
    daemon = None
    try:
        for what in ("lttng", "lttng-sessiond"):
            if not shutil.which(what):
                raise Cannot(what + " is not installed: run tools/bootstrap bench")
        if not os.path.exists(program):
            raise Cannot("built without LTTng-ust: run tools/bootstrap bench and build again")
        daemon = start_daemon(env)
        figure = measure(env, home, program, sys.argv[1:])
    except (Cannot, OSError, subprocess.TimeoutExpired) as why:
        figure = {"name": "lttng_event", "value": None, "unit": "ns", "note": "not measured: %s" % why}
    finally:
        stop_daemon(daemon)
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
