#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""Faults of a store, of the disk, of the clock and of names: nothing sealed is lost, nothing is sent under two names,
and the program is not held up. What a store may answer to `weft push` is in ship.py; ten minutes of outage, by a clock
of the test, in unit/ship/spool."""
import os
import random
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "library"))
from shipping import (PROGRAM, TOP, WEFT, Skipped, arrived, check, end, environment, main, new_dir,  # noqa: E402
                      record, run, sealed, start, until, wait_for)
from ship_server import KEY, SECRET, Store  # noqa: E402

ASAN = os.environ.get("WEFT_PRESET") == "asan"
STOP_S = 8 if ASAN else 3  # for a stop that waits 0.3 s at most, beside other work
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* CLOCK_REALTIME is what it is, and as many seconds as the file says. */
static long shift(void)
{
	char text[32] = "";
	FILE *file = fopen(getenv("CLOCK_FILE"), "re");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = 0;
		fclose(file);
	}
	return atol(text);
}
int clock_gettime(clockid_t id, struct timespec *to)
{
	static int (*real)(clockid_t, struct timespec *);
	int r;
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	r = real(id, to);
	if (id == CLOCK_REALTIME)
		to->tv_sec += shift();
	return r;
}
time_t time(time_t *to)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
"""


def background(*args, **env):
    return subprocess.Popen([PROGRAM, *map(str, args)], env=environment(**env), stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)


def the_recorder_survives_whatever_a_store_answers():
    """The recorder's own thread, and not weft push: all that was sealed arrives when the store is well again."""
    for fault in (500, 403, "cut", "close", (429, "1")):
        store, directory = Store(), new_dir()
        store.faults = [fault]
        record(directory, 2, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000", WEFT_SHIP_TIMEOUT_MS="1000")
        arrived(store, directory)
        check(len(store.requests) == 4, fault, store.requests)
        store.close()


def a_time_to_come_back_is_obeyed():
    """Retry-After in seconds and as a date, which RFC 9110 has too; the recorder does not ask before."""
    for after, least in (("3", 2.9), (None, 1.0)):
        store, directory = Store(), new_dir()
        text = after or time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 4))
        store.faults = [(429, text)]
        record(directory, 0, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000")
        arrived(store, directory)
        between = store.requests[1][0] - store.requests[0][0]
        check(least < between < 20, text, "asked again after", between)
        store.close()


def a_store_that_hangs_holds_up_neither_stop_nor_segments():
    store, directory = Store(), new_dir()
    store.always = "hang"
    begun = time.monotonic()
    out = record(directory, 3, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="300")
    check(float(out.split("stop took ")[1].split()[0]) < STOP_S, out)
    check(time.monotonic() - begun < 3 * STOP_S and len(sealed(directory)) == 4, out)
    store.always = None
    store.released.set()
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory)
    store.close()


def a_store_that_refuses_connections_gets_everything_later():
    directory = new_dir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = "http://127.0.0.1:%d" % taken.getsockname()[1]
        out = record(directory, 2, WEFT_SHIP_TO=url, WEFT_SHIP_WAIT_MS="300")
    check("failing=1" in out and "failed=4" in out and "refused" in out.lower(), out)
    store = Store()
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory)
    store.close()


def names_that_are_not_found_delay_nothing():
    directory = new_dir()
    out = record(directory, 2, WEFT_SHIP_TO="http://store.invalid/", WEFT_SHIP_WAIT_MS="300")
    check("failing=1" in out and "store.invalid" in out, out)
    check(float(out.split("stop took ")[1].split()[0]) < STOP_S and len(sealed(directory)) == 3, out)


def inside(name, *args):
    """Runs a part of this file in a mount namespace of its own. What it prints."""
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    if not shutil.which("unshare") or subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("mount namespaces are not allowed here")
    got = subprocess.run(["unshare", *flags, sys.executable, os.path.abspath(__file__), "inside", name, *args],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    check(got.returncode == 0, got.stdout)
    return got.stdout


def a_server_of_names_that_does_not_answer_delays_nothing():
    out = inside("names", new_dir())
    check(float(out.split("stop took ")[1].split()[0]) < STOP_S, out)
    check(float(out.split("exit took ")[1].split()[0]) < STOP_S, out)


def names_inside(directory):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 53))
        with open(TOP + "/resolv.conf", "w") as file:
            file.write("nameserver 127.0.0.1\noptions timeout:20 attempts:3\n")
        subprocess.run(["mount", "--bind", TOP + "/resolv.conf", "/etc/resolv.conf"], check=True)
        env = {"WEFT_SHIP_TO": "http://store.example/", "WEFT_SHIP_WAIT_MS": "300"}
        print(record(directory, 2, **env))
        begun = time.monotonic()
        record(directory, 2, "exit", **env)
        print("exit took %.2f" % (time.monotonic() - begun))
        check(len(sealed(directory)) == 6, os.listdir(directory))


def a_full_disk_pauses_recording_and_loses_no_sealed_segment():
    inside("disk", new_dir())


def disk_inside(directory):
    """A file system of 2 MiB, which something else fills; the store is away at first."""
    store = Store()
    store.always = 503
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", directory], check=True)
    child = background(3, "wait", WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SEGMENT_SECONDS="1",
                       WEFT_RING="memory", WEFT_SHIP_TIMEOUT_MS="1000")
    until(child, "passed=1")
    before = sealed(directory)
    check(len(before) >= 3, before)
    with open(directory + "/filler", "wb", 0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    line = until(child, "the disk is full")
    check("ok=0" in line, line)
    store.always = None
    wait_for(lambda: len(store.objects) >= len(before))  # that cannot be noted now: it may be sent again
    os.unlink(directory + "/filler")
    until(child, "ok=1")
    until(child, "ok=1", "sent=")
    end(child)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory, only_once=False)
    check(set(before) <= {path.rsplit("/", 1)[1] for path in store.objects}, before, store.puts)


def clock_shim():
    if ASAN:
        raise Skipped("the sanitizer has to come first in LD_PRELOAD")
    with open(TOP + "/clock.c", "w") as file:
        file.write(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", TOP + "/clock.so", TOP + "/clock.c", "-ldl"], check=True)
    with open(TOP + "/clock", "w") as file:
        file.write("0\n")
    return {"LD_PRELOAD": TOP + "/clock.so", "CLOCK_FILE": TOP + "/clock"}


def set_clock(seconds):
    with open(TOP + "/clock.new", "w") as file:
        file.write("%d\n" % seconds)
    os.rename(TOP + "/clock.new", TOP + "/clock")


def a_clock_that_is_set_delays_and_loses_nothing():
    """A year forward and two back while the store is away. All of it arrives; a switch that is looked at once a second
    still is; and the end is not delayed."""
    env = clock_shim()
    for shift in (365 * 86400, -2 * 365 * 86400):
        store, directory, switch = Store(), new_dir(), TOP + "/clock-off"
        store.always = 503
        child = background(3, "wait", WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_OFF_FILE=switch,
                           WEFT_SHIP_TIMEOUT_MS="1000", **env)
        until(child, "failing=1")
        before = sealed(directory)
        check(len(before) == 3, before)
        set_clock(shift)
        store.always = None
        until(child, "failing=0", "sent=3")
        open(switch, "w").close()
        until(child, "ok=0")
        os.unlink(switch)
        until(child, "ok=1")
        child.terminate()
        check(child.wait(timeout=20) == -15)
        child.stdout.close()
        check(sorted(path.rsplit("/", 1)[1] for path in store.objects) == before, store.puts, before)
        check(len(store.puts) == 3, store.puts)
        set_clock(0)
        store.close()


def a_wrong_clock_is_corrected_by_what_s3_says():
    env = clock_shim()
    set_clock(-86400)
    store, directory = Store(), new_dir()
    store.verify = store.check_time = True
    record(directory, 1)
    run(WEFT, "push", "-q", "--to", "s3://bucket/x?endpoint=" + store.url, directory,
        env=environment(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, **env))
    arrived(store, directory)
    check(store.skewed == 1, store.skewed)
    set_clock(0)
    store.close()


def killed_again_and_again():
    """Processes that are killed at any moment of recording and sending, and one that is left to end."""
    store, directory, chance = Store(), new_dir(), random.Random(7)
    for _ in range(4 if ASAN else 10):
        child = background(5, "wait", WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SEGMENT_SECONDS="1")
        until(child, "ready")
        time.sleep(chance.uniform(0, 0.15))
        end(child)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory, only_once=False)  # what was not noted is sent again
    keys = {}
    for path in store.puts:
        keys.setdefault(path.rsplit("/", 1)[1], set()).add(path)
    check(all(len(names) == 1 for names in keys.values()), "one segment, two names:", keys)
    check("nothing to send" in run(WEFT, "push", "--to", store.url, directory))
    store.close()


def what_a_dead_sibling_left_is_sent_once_by_one_process():
    """Five processes start beside each other where a killed one left segments and one that was not sealed."""
    store, directory = Store(), new_dir()
    child = background(4, "wait", WEFT_DIR=directory)
    until(child, "ready")
    end(child)
    check(len(sealed(directory)) == 4, sealed(directory))
    others = [start(directory, 1, "stop", WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="2000") for _ in range(5)]
    for one in others:
        check(one.wait() == 0)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory)
    check(len(store.objects) == 4 + 1 + 5 * 2, len(store.objects))
    store.close()


if sys.argv[1:2] == ["inside"]:
    {"disk": disk_inside, "names": names_inside}[sys.argv[2]](*sys.argv[3:])
    shutil.rmtree(TOP, ignore_errors=True)
    sys.exit(0)
sys.exit(main([the_recorder_survives_whatever_a_store_answers, a_time_to_come_back_is_obeyed,
               a_store_that_hangs_holds_up_neither_stop_nor_segments,
               a_store_that_refuses_connections_gets_everything_later, names_that_are_not_found_delay_nothing,
               a_server_of_names_that_does_not_answer_delays_nothing,
               a_full_disk_pauses_recording_and_loses_no_sealed_segment, a_clock_that_is_set_delays_and_loses_nothing,
               a_wrong_clock_is_corrected_by_what_s3_says, killed_again_and_again,
               what_a_dead_sibling_left_is_sent_once_by_one_process]))
