# SPDX-License-Identifier: Apache-2.0
"""The example server and its load, for the benchmarks that need a real program."""
import json
import os
import re
import subprocess
import tempfile
import time

BUILD = os.environ.get("WEFT_BUILD", "build/release")


def program(*path):
    return os.path.join(BUILD, *path)


def alone(*cpus):
    """For a new process: these CPUs, and before all other programs there, where that is allowed. The kernel weighs whole
    sessions against each other (autogroup), so it needs one of its own."""
    def prepare():
        os.setsid()
        os.sched_setaffinity(0, set(cpus))
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -20)
            with open("/proc/self/autogroup", "w") as file:
                file.write("-20")
        except OSError:
            pass
    return prepare


class Server:
    """Runs until the end of a `with` block; then its summary is there. `env` has the WEFT_ variables it gets; `cpu` is
    the one that it has for itself."""

    def __init__(self, record=None, args=(), env=None, cpu=None):
        self.out = tempfile.TemporaryFile("w+")
        command = [program("examples", "server"), *map(str, args)]
        if record:
            command += ["--record", record]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
        self.process = subprocess.Popen(command, stdout=self.out, env={**clean, **(env or {})},
                                        preexec_fn=None if cpu is None else alone(cpu))
        self.port = self.wait_port()

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def wait_port(self):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = re.search(r"^listening on 127\.0\.0\.1:(\d+)$", self.text(), re.M)
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        raise SystemExit("bench: the example server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        status = self.process.wait()
        if status:
            raise SystemExit("bench: the example server ended with status %d" % status)
        served = re.search(r"served (\d+) requests .* in ([\d.]+) s of CPU", self.text())
        self.requests, self.cpu_s = int(served.group(1)), float(served.group(2))
        recorded = re.search(r"recorded (\d+) events .* lost (\d+)$", self.text(), re.M)
        self.events, self.lost = map(int, recorded.groups()) if recorded else (0, 0)
        self.out.close()


def load(port, *args, cpu=None):
    """Runs the load, on `cpu` alone when there is one, and returns what it measured."""
    command = [program("examples", "load"), "--port", str(port), "--json", *map(str, args)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=None if cpu is None else alone(cpu))
    if done.returncode:
        raise SystemExit("bench: the load ended with status %d" % done.returncode)
    return json.loads(done.stdout)


def inspect(path):
    """What weft inspect says of a segment."""
    done = subprocess.run([program("weft"), "inspect", "--json", path], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("bench: weft inspect %s ended with status %d" % (path, done.returncode))
    return json.loads(done.stdout)["segments"][0]


def figure(name, value, unit, note, **more):
    print(json.dumps(dict(name=name, value=value, unit=unit, **more, note=note)), flush=True)
