#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
# timeout: 600
"""The agent's builder in Rust (bindings/rust/weft/examples/agent.rs): each segment is in the directory, in the copy, at
the HTTP server, and was given to the program's own function, which failed once for each."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e"))
sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from crates import BUILD, UNSTABLE, cargo, example, need_cargo
from ship_server import Store


def segments(directory):
    return {name: open(os.path.join(directory, name), "rb").read() for name in os.listdir(directory)
            if name.endswith(".weft")}


def main():
    need_cargo()
    cargo(UNSTABLE, "build", "-p", "weft", "--example", "agent")
    store = Store()
    with tempfile.TemporaryDirectory(prefix="weft agent ") as scratch:
        kept, copied = os.path.join(scratch, "kept"), os.path.join(scratch, "a copy")
        env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
        done = subprocess.run([example("agent"), kept, copied, store.url + "/all"], stdout=subprocess.PIPE, text=True,
                              timeout=120, check=True, env=dict(env, LD_LIBRARY_PATH=BUILD))
        store.close()
        here, copies = segments(kept), segments(copied)
        put = {path.rsplit("/", 1)[1]: body for path, body in store.objects.items()}
        own = dict(line.split() for line in done.stdout.splitlines())
        assert len(here) >= 2, here.keys()
        assert copies == here and put == here, (here.keys(), copies.keys(), put.keys())
        assert own == {name: str(len(body)) for name, body in here.items()}, (own, here.keys())
        assert all(path.startswith("/all/agent-example/") for path in store.objects), store.objects.keys()
        report = subprocess.run([os.path.join(BUILD, "weft"), "report", "--json", kept], stdout=subprocess.PIPE,
                                check=True, text=True).stdout
        facts = json.loads(report)["recordings"][0]["facts"]
        assert facts.get("label.zone") == "a", facts


main()
