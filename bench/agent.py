#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an agent with reporters costs a program: bench/agent.py DIR outage|cost|soak [--quick] [--pairs N].

outage: p99 of the example server at a fixed rate, open loop, with targets that hang, refuse or answer 500, over that
with weft and no target; the kinds of runs take turns. cost: as default.py, CPU time of the whole process seen from
outside, with weft and two targets that work (a store over HTTP and a profile server), against none. Segments are begun
every 2 s there, and not every 30: it is the worst case. soak: ten minutes of segments ten times a second with threads
that come and go; what grew between the first third and the end."""
import http.server
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import default
import demo
import stats

RATE = default.RATE
KINDS = ("alone", "hang", "refuse", "fail", "well")


class Store:
    """Takes what is sent, in a thread of this process: beside the server, as the load is. `kind`: how."""

    def __init__(self, kind):
        self.requests, self.bytes = 0, 0
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def take(self):
                store.requests += 1
                if kind == "hang":
                    time.sleep(60)
                store.bytes += len(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                self.send_response(500 if kind == "fail" else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_PUT = do_POST = take

        http.server.ThreadingHTTPServer.handle_error = lambda *args: None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def wanted_pairs(usual):
    """--pairs N: fewer, where the machine is quiet for minutes only."""
    return int(sys.argv[sys.argv.index("--pairs") + 1]) if "--pairs" in sys.argv else usual


def refused_port():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))  # nobody listens
    return one, "127.0.0.1:%d" % one.getsockname()[1]


def agent_env(*targets):
    return {"WEFT_SHIP_TO": " ".join(targets), "WEFT_SEGMENT_SECONDS": "2", "WEFT_SHIP_TIMEOUT_MS": "1000",
            "AWS_EC2_METADATA_DISABLED": "true"}


def report_outage(directory, quick):
    pairs, seconds = (1, 3) if quick else (wanted_pairs(12), 4)
    taken, refused = refused_port()
    stores = {kind: Store(kind) for kind in ("hang", "fail", "well")}
    targets = {"alone": None, "refuse": refused, **{kind: store.url for kind, store in stores.items()}}
    found = {kind: [] for kind in KINDS}
    for i in range(pairs):
        for kind in KINDS[i % len(KINDS):] + KINDS[:i % len(KINDS)]:
            env = agent_env("http://" + targets[kind]) if targets[kind] else {"WEFT_SEGMENT_SECONDS": "2"}
            found[kind].append(default.serve(directory, True, seconds, RATE, env).result["p99_ns"])
    taken.close()
    if not stores["hang"].requests or not stores["well"].bytes:
        raise SystemExit("bench: no segment was sent")
    base = statistics.median(found["alone"])
    ratios = {kind: statistics.median(found[kind]) / base for kind in KINDS[1:]}
    worst = max(("hang", "refuse", "fail"), key=ratios.get)
    paired = [one / alone for one, alone in zip(found[worst], found["alone"])]
    _, low, high = stats.median_interval(paired)
    demo.figure("reporter_outage_p99", ratios[worst], "x",
                "p99 of the demo at 30,000 requests/s, open loop, with weft and a store that is away, over weft "
                "without a target: ratio of the medians of %d runs each of %d s, in turn, segments of 2 s; the worst "
                "of hangs %.3f, refuses %.3f, answers 500 %.3f; a store that works %.3f; %.0f us without a target" % (
                    pairs, seconds, ratios["hang"], ratios["refuse"], ratios["fail"], ratios["well"], base / 1e3),
                baseline=1, interval=[low, high])


def report_cost(directory, quick):
    pairs, seconds = (2, 4) if quick else (wanted_pairs(8), 12)
    store, profiles = Store("well"), Store("well")
    env = agent_env("http://" + store.url, "pyroscope+http://" + profiles.url)
    values, own = [], []
    for i in range(pairs):
        order = (True, False) if i % 2 else (False, True)
        got = {on: default.serve(directory, on, seconds, RATE, env if on else None) for on in order}
        values.append(default.added(got[True], got[False]))
        own.append(100 * got[True].own_s / max(got[False].cpu_s, default.LEAST_CPU * got[False].wall_s))
    if not store.bytes or not profiles.bytes:
        raise SystemExit("bench: nothing was sent")
    median, low, high = stats.median_interval(values)
    demo.figure("default_cost_agent", median, "%",
                "what weft with default options and two targets, a store over HTTP and Pyroscope's push, adds to the "
                "CPU time of the demo at 30,000 requests/s, in %% of what the budget of 1 %% is of; segments of 2 s, "
                "each of which a profile is made of; %d pairs in turn, with 95 %% probability from %+.2f to %+.2f; "
                "weft says %.2f of itself" % (pairs, low, high, statistics.median(own)), interval=[low, high])


def use_of(text):
    return [{key: float(value) for key, value in (word.split("=") for word in line.split()[1:])}
            for line in text.splitlines() if line.startswith("use ")]


def report_soak(directory, quick):
    seconds, cycles = (20, 200) if quick else (600, 1000)
    store, program = Store("well"), demo.program("test", "ship_program")
    if not os.path.exists(program):
        return demo.figure("agent_soak_growth", None, "KiB", "not measured: build the tests first: " + program)
    env = default.clean_env({**agent_env("http://" + store.url), "WEFT_DIR": directory + "/soak",
                             "WEFT_SHIP_DELETE": "1", "WEFT_SEGMENT_SECONDS": "60", "WEFT_KEEP_BYTES": "64M"})
    grown = {}
    for what, n in (("soak", seconds), ("cycles", cycles)):
        done = subprocess.run([program, str(n), what], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
        use = use_of(done.stdout)
        if done.returncode or len(use) < 4:
            raise SystemExit("bench: %s ended with status %d" % (what, done.returncode))
        settled = use[len(use) // 3:]
        grown[what] = {key: settled[-1][key] - settled[0][key] for key in ("rss_kb", "fds", "threads")}
        grown[what]["rss"] = settled[-1]["rss_kb"]
    for name, what, words in (("agent_soak_growth", "soak", "%d s of a segment ten times a second and threads that "
                               "come and go, with a store over HTTP" % seconds),
                              ("agent_cycles_growth", "cycles", "%d times start and stop in one process, with a store "
                               "over HTTP" % cycles)):
        one = grown[what]
        demo.figure(name, one["rss_kb"], "KiB", "%s: resident memory at the end less that after a third, %.0f KiB in "
                    "all; descriptors %+d, threads %+d" % (words, one["rss"], one["fds"], one["threads"]))


def main():
    directory, what, quick = tempfile.mkdtemp(dir=sys.argv[1]), sys.argv[2], "--quick" in sys.argv
    try:
        {"outage": report_outage, "cost": report_cost, "soak": report_soak}[what](directory, quick)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
