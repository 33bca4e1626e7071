#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How large the demo's trace is: bench/trace.py DIR [--quick]. Leaves its segment as DIR/demo.weft."""
import os
import shutil
import sys
import tempfile

import demo

RAW_SLOT = 16


EVENTS = {"WEFT_SWITCHES": "off", "WEFT_BUDGET_PPM": "off"}


def record(directory, args, env=EVENTS, more=()):
    """Records the server under a load; the segments and the number of requests."""
    trace = tempfile.mkdtemp(dir=directory)
    with demo.Server(record=trace, args=["--events", *more], env=env) as server:
        demo.load(server.port, *args)
    return [os.path.join(trace, name) for name in sorted(os.listdir(trace)) if name.endswith(".weft")], server


def size(paths):
    segments = [demo.inspect(path) for path in paths]
    return sum(s["bytes"] for s in segments), sum(s["events"] for s in segments)


def tell(name, paths, server, what):
    n_bytes, n_events = size(paths)
    note = "%s: %d events, sealed in %d bytes; the baseline is a raw slot; %d lost" % (
        what, n_events, n_bytes, server.lost)
    demo.figure(name, n_bytes / n_events, "B", note, baseline=RAW_SLOT, ratio=n_bytes / n_events / RAW_SLOT)
    return n_bytes, n_events


def main():
    directory = sys.argv[1]
    seconds = 2 if "--quick" in sys.argv else 4
    paths, server = record(directory, ["--seconds", seconds, "--rate", 30000, "--connections", 32, "--faults", 1])
    n_bytes, n_events = tell("bytes_per_event", paths, server, "the demo, 30000 requests/s")
    demo.figure("bytes_per_request", n_bytes / server.requests, "B", "the same trace, %.1f events a request" %
                (n_events / server.requests))
    all_on, server = record(directory, ["--seconds", seconds, "--rate", 30000, "--connections", 32, "--faults", 1],
                            env={"WEFT_BUDGET_PPM": "off"}, more=["--spans"])
    tell("bytes_per_event_all_on", all_on, server, "with every context switch and the requests' contexts, as make demo records it")
    shutil.copyfile(paths[0], os.path.join(directory, "demo.weft"))
    paths, server = record(directory, ["--seconds", 2, "--connections", 48, "--pipeline", 4])
    tell("bytes_per_event_busy", paths, server, "the demo at saturation, %d requests" % server.requests)


if __name__ == "__main__":
    main()
