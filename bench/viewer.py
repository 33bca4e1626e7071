#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast and how small the page of weft view is: bench/viewer.py DIR [--quick]. Takes the segment that bench/trace.py
left as DIR/demo.weft and repeats it until there are 1, 2, 5, 10 and 20 M events.

viewer_load: from opening the page in Chromium to the first picture of 10 M events. viewer_load_rested: the same when
Chromium, which takes both CPUs for a second while it starts, has come to rest before. viewer_whole: until all of
them are loaded, so that everything in the picture can be clicked and every panel answers. viewer_parse: CPU time of
decoding an event in order of time in WebAssembly, in node; the baseline is the same code as it runs in the command.
viewer_heap: memory of the page's process beyond that of an empty page, for each of 10 M events. viewer_growth:
viewer_whole for each event of 20 M, beside that of 5 M; viewer_growth_heap: the same for memory. bundle_bytes: all
files of the page, gzipped. viewer_parse_dial9: CPU time of the decoder of dial9's viewer for each of as many events,
the same ones in dial9's format; not measured where there is no cargo."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import demo

COUNTS = (1, 2, 5, 10, 20)


def inside(*args):
    program = demo.program("bench", "bench_rows_inside")
    done = subprocess.run([program, *map(str, args)], stdout=subprocess.PIPE, check=True, text=True)
    return list(map(int, done.stdout.split()))


def node(script, *args):
    here = os.path.dirname(os.path.abspath(__file__))
    command = ["node", os.path.join(here, script), *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def dial9(scratch, segment, wanted):
    """Events, ns an event and bytes of dial9's decoder; or why it was not measured."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dial9")
    if not shutil.which("cargo"):
        return None, "there is no cargo"
    target = os.path.abspath(demo.program("bench", "dial9"))
    build = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target], cwd=here)
    if build.returncode:
        return None, "cargo could not build bench/dial9"
    facts = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"], cwd=here, check=True,
                           stdout=subprocess.PIPE, text=True)
    crate, = [one for one in json.loads(facts.stdout)["packages"] if one["name"] == "dial9-trace-format"]
    out = os.path.join(scratch, "dial9.bin")
    dump = subprocess.Popen([demo.program("weft"), "inspect", "--dump", "--order", "time", segment],
                            stdout=subprocess.PIPE)
    subprocess.run([os.path.join(target, "release", "weft-bench-dial9"), out, str(wanted)], stdin=dump.stdout,
                   stdout=subprocess.DEVNULL, check=True)
    if dump.wait():
        raise RuntimeError("weft inspect failed")
    made, = node("viewer_dial9.mjs", os.path.join(os.path.dirname(crate["manifest_path"]), "js", "decode.js"), out)
    os.unlink(out)
    return made, "CPU time of the decoder of dial9's viewer (dial9-trace-format %s, js/decode.js, in node) for %d " \
        "events, the same ones, %.1f B each" % (crate["version"], made["events"], made["bytes"] / made["events"])


def main():
    quick = "--quick" in sys.argv
    counts = (1, 10) if quick else COUNTS
    runs = 1 if quick else 3
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as scratch:
        where = {}
        for millions in counts:
            where[millions] = os.path.join(scratch, str(millions))
            os.mkdir(where[millions])
            inside("repeat", os.path.join(sys.argv[1], "demo.weft"), where[millions], millions * 1000000)
        n_events, native_ns = min((inside("decode", where[10]) for _ in range(runs)), key=lambda made: made[1])
        parsed = min(one["ns_per_event"] for one in node("viewer_parse.mjs", demo.BUILD, *[where[10]] * runs))
        baseline = native_ns / n_events
        demo.figure("viewer_parse", parsed, "ns/event", "CPU time of decoding %d events in WebAssembly in node; the "
                    "baseline is the command" % n_events, baseline=baseline, ratio=parsed / baseline)
        made, note = dial9(scratch, os.path.join(sys.argv[1], "demo.weft"), n_events)
        if made:
            demo.figure("viewer_parse_dial9", made["ns_per_event"], "ns/event", note + "; the baseline is viewer_parse",
                        baseline=parsed, ratio=made["ns_per_event"] / parsed)
        else:
            demo.figure("viewer_parse_dial9", None, "ns/event", "not measured: " + note)
        best = {}
        for millions in counts:
            made = node("viewer.mjs", demo.BUILD, *[where[millions]] * runs)
            best[millions] = [min(one[what] for one in made) for what in ("whole", "bytes", "picture")]
        demo.figure("viewer_load", best[10][2] / 1e3, "s", "from opening the page in Chromium to the first picture of "
                    "10 M events, best of %d" % runs)
        rested = min(one["picture"] for one in node("viewer.mjs", demo.BUILD, "--rested", *[where[10]] * runs))
        demo.figure("viewer_load_rested", rested / 1e3, "s",
                    "the same when Chromium has come to rest before, best of %d" % runs)
        demo.figure("viewer_whole", best[10][0] / 1e3, "s", "until all of the 10 M events are loaded, best of %d"
                    % runs)
        frames = node("../viewer/bench/frames.mjs", demo.BUILD, where[10])[0]
        demo.figure("viewer_frame_p95", frames["p95_ms"], "ms", "between frames while panning and zooming 10 M events "
                    "in headless Chromium, %.1f ms of it in scripts; the baseline is an empty canvas of that size"
                    % frames["script_p95_ms"], baseline=frames["empty_p95_ms"],
                    ratio=frames["p95_ms"] / frames["empty_p95_ms"])
        demo.figure("viewer_heap", best[10][1] / n_events, "B/event",
                    "memory of the page's process beyond an empty page")
        if not quick:
            per = {millions: (took / millions, used / millions) for millions, (took, used, _) in best.items()}
            note = ", ".join("%d M: %.2f s (first picture %.2f s), %.0f MB"
                             % (millions, took / 1e3, picture / 1e3, used / 1e6)
                             for millions, (took, used, picture) in best.items())
            demo.figure("viewer_growth", per[20][0], "us/kevent", note, baseline=per[5][0],
                        ratio=per[20][0] / per[5][0])
            demo.figure("viewer_growth_heap", per[20][1] / 1e6, "B/event", note, baseline=per[5][1] / 1e6,
                        ratio=per[20][1] / per[5][1])
    with open(demo.program("viewer", "bundle.json")) as file:
        demo.figure("bundle_bytes", json.load(file)["bytes"], "B", "all files of the page, gzipped, with WebAssembly")


main()
