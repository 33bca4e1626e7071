#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""weft polls over JFR files as async-profiler writes them: each caught poll has its true length, and the samples of its
thread that fell into it, whatever chunk they are in. Files that are cut or odd are refused with a reason."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE, BUILD = os.environ["WEFT_SOURCE"], os.environ["WEFT_BUILD"]
sys.path.insert(0, os.path.join(SOURCE, "test/e2e/library"))
import jfr

MS = jfr.TICKS // 1000
SLEEP = [("libc.so.6", "nanosleep"), ("app", "handle"), ("app", "main")]
BURN = [("app", "burn"), ("app", "handle"), ("app", "main")]
PARK = [("libc.so.6", "epoll_wait"), ("app", "park")]


def check(true, what, *about):
    if not true:
        sys.exit("FAIL: %s %s" % (what, " ".join(json.dumps(one, indent=1) for one in about)))


def weft(*args, status=0):
    done = subprocess.run([os.path.join(BUILD, "weft"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    check(done.returncode == status, "weft %s: status %d: %s" % (" ".join(args), done.returncode, done.stderr))
    return done.stdout, done.stderr


def polls(*args, status=0):
    return json.loads(weft("polls", "--json", *args, status=status)[0])


def write(name, *parts):
    path = os.path.join(scratch, name)
    with open(path, "wb") as file:
        file.write(b"".join(parts))
    return path


def at(ms):
    return jfr.START_TICKS + ms * MS


def two_threads():
    """A poll of 10 ms that sleeps and one of 20 ms that burns, beside samples that are in neither."""
    chunk = jfr.Chunk()
    chunk.thread(101, "tokio-1")
    chunk.thread(102, "tokio-2")
    chunk.poll(at(100), at(110), 101)
    chunk.wall(at(103), 101, SLEEP)
    chunk.wall(at(90), 101, PARK)  # before
    chunk.wall(at(105), 102, PARK)  # of another thread
    chunk.wall(at(111), 101, PARK)  # behind
    chunk.poll(at(200), at(220), 102)
    for ms in (201, 211):
        chunk.cpu(at(ms), 102, BURN)
    chunk.wall(at(215), 102, BURN, sleeping=False)
    chunk.poll(at(300), at(301), 102)
    chunk.user(at(305), 102, "other.Event", b"0123456789abcdef")
    return chunk


def check_lengths():
    path = write("two.jfr", two_threads().bytes())
    found = polls(path)
    check(found["count"] == 2, "number of polls", found)
    first, second = found["polls"]
    check([first["duration_ns"], second["duration_ns"]] == [20_000_000, 10_000_000], "lengths", found)
    check([first["begin_ns"], second["begin_ns"]] == [200_000_000, 100_000_000], "beginnings", found)
    check([first["tid"], first["thread"], second["tid"]] == [102, "tokio-2", 101], "threads", found)
    check(second["time"].startswith("2023-11-14T22:13:20.1"), "wall time", second)
    hits = {(hit["state"], tuple(hit["frames"])): hit["samples"] for hit in first["samples"]}
    burn = tuple("%s.%s" % frame for frame in BURN)
    check(hits == {("on cpu", burn): 2, ("wall, running", burn): 1}, "samples of the first", first)
    check([(hit["state"], hit["frames"][0], hit["samples"]) for hit in second["samples"]]
          == [("wall, sleeping", "libc.so.6.nanosleep", 1)], "samples of the second", second)
    check(polls("--min", "1ms", path)["count"] == 3, "short ones")
    check(polls("--from", "150ms", path)["count"] == 1 and polls("--to", "150ms", path)["count"] == 1, "times")
    check(polls("--thread", "tokio-1", path)["count"] == 1 and polls("--thread", "10?", path)["count"] == 0, "threads")
    groups = polls("--group", "function", path)["groups"]
    check([(one["name"], one["polls"]) for one in groups] == [("app.burn", 1), ("libc.so.6.nanosleep", 1)], "groups",
          groups)
    out = weft("polls", path)[0]
    check("poll of 20.0 ms" in out and "2 samples: on cpu" in out and "app.burn" in out, "text", out)


def check_chunks():
    """A poll that began in the chunk before has its samples of both."""
    first, second = jfr.Chunk(), jfr.Chunk()
    for chunk in (first, second):
        chunk.thread(7, "w")
    first.wall(at(990), 7, SLEEP)
    later = jfr.START_TICKS + jfr.TICKS
    second.wall(at(1005), 7, BURN, sleeping=False)
    second.poll(at(980), at(1010), 7, name="tokio.PollCatchV1")
    path = write("chunks.jfr", first.bytes(), second.bytes(jfr.START_NS + 10**9, later))
    found = polls(path)["polls"]
    check(len(found) == 1 and found[0]["duration_ns"] == 30_000_000 and found[0]["begin_ns"] == 980_000_000, "a poll",
          found)
    check(sorted(hit["frames"][0] for hit in found[0]["samples"]) == ["app.burn", "libc.so.6.nanosleep"], "samples",
          found)


def check_batches():
    """One wall sample of many moments: those beyond the poll do not count."""
    chunk = jfr.Chunk()
    chunk.thread(7, "w")
    chunk.wall(at(105), 7, SLEEP, samples=10, span=10 * MS)
    chunk.poll(at(100), at(110), 7)
    found = polls(write("batch.jfr", chunk.bytes()))["polls"]
    check(found[0]["samples"][0]["samples"] == 5, "half of them", found)


def check_places():
    data = two_threads().bytes()
    folder = os.path.join(scratch, "folder")
    os.mkdir(folder)
    with open(os.path.join(folder, "a.jfr"), "wb") as file:
        file.write(data)
    check(polls(folder)["count"] == 2, "a directory")
    archive = os.path.join(scratch, "profile_pg_ec2_i-1__7_2026-01-01T00-00-00Z.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("async_profiler_dump_0.jfr", data)
        file.writestr("metadata.json", '{"start":1,"end":2,"reporting_interval":3}')
    check(polls(archive)["count"] == 2, "an archive of the rust-agent")
    check(polls(archive, folder)["count"] == 4, "both")


def check_refusals():
    data = two_threads().bytes()
    check("not whole" in weft("polls", write("cut.jfr", data[:-50]), status=1)[1], "a cut file")
    both = write("tail.jfr", data, data[:200])
    check("not whole" in weft("polls", both, status=3)[1] and polls(both, status=3)["count"] == 2, "a cut chunk")
    check("clock" in weft("polls", write("clock.jfr", jfr_with_other_clock()), status=1)[1], "another clock")
    empty = jfr.Chunk()
    empty.cpu(at(1), 1, BURN)
    out, err = weft("polls", write("empty.jfr", empty.bytes()))
    check("No poll" in out and "no tokio.PollcatchV1 events" in err and "1 samples" in err, "no polls", err)
    golden = os.path.join(SOURCE, "test/golden/server")
    check("one after the other" in weft("polls", golden, both, status=1)[1], "both kinds")


def jfr_with_other_clock():
    chunk = jfr.Chunk(clock="monotonic")
    chunk.poll(at(1), at(50), 7)
    return chunk.bytes()


def check_jdk():
    """What a JDK wrote: other classes, strings in other ways, pools in a chain."""
    if not shutil.which("java") or not shutil.which("javac"):
        print("no JDK here: files of the JDK are not read")
        return
    with open(os.path.join(scratch, "A.java"), "w") as file:
        file.write("public class A { public static void main(String[] a) { long e = System.nanoTime() + 400000000L; "
                   "double x = 1; while (System.nanoTime() < e) x = Math.sin(x); System.out.println(x); } }\n")
    path = os.path.join(scratch, "jdk.jfr")
    subprocess.run(["javac", "A.java"], cwd=scratch, check=True)
    subprocess.run(["java", "-XX:StartFlightRecording=settings=profile,filename=" + path, "A"], cwd=scratch, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    summary = subprocess.run(["jfr", "summary", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = [line.split()[1] for line in summary.splitlines() if line.split()[:1] == ["jdk.ExecutionSample"]][0]
    err = weft("polls", path)[1]
    check("it has %s samples" % wanted in err, "samples of the JDK", wanted, err)


with tempfile.TemporaryDirectory() as scratch:
    check_lengths()
    check_chunks()
    check_batches()
    check_places()
    check_refusals()
    check_jdk()
print("ok")
