# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests, of Debian's interpreter. A unit is a module; a test is a test of unittest."""
import os
import subprocess
import xml.etree.ElementTree as ElementTree

NAME = "cpython"
PYTHON = "/usr/bin/python3.11"
SECONDS = 600
UNITS = """test_subprocess test_threading test_signal test_socket test_select test_asyncio test_os
    test_faulthandler test_posix test_fork1 test_wait3 test_wait4 test_pty test_epoll test_poll test_selectors test_eintr test_fcntl test_mmap test_resource
    test_popen test_atexit test_thread test_threadsignals test_queue test_concurrent_futures test_multiprocessing_fork""".split()
# A machine may have vsock and nobody at its other end: these hang, without weft, too.
IGNORED = {"test_socket": ["*VSOCK*"]}
WORST = ("pass", "skip", "fail", "error")


def prepare(_):
    subprocess.run([PYTHON, "-c", "import test.support"], stderr=subprocess.DEVNULL, check=True)


def result(case):
    return "error" if case.find("error") is not None else "fail" if case.find("failure") is not None else "skip" if case.find("skipped") is not None else "pass"


def run(place, _, unit, only):
    xml = os.path.join(place.dir, "results.xml")
    command = [PYTHON, "-m", "test", "--junit-xml", xml, "--tempdir", place.dir]
    for pattern in IGNORED.get(unit, []):
        command += ["-i", pattern]
    for test in only or []:
        if "." in test: # not the module as a whole, nor what comes before its tests
            command += ["-m", test.split(" ")[0]]
    status = place.run(command + [unit], place.dir, SECONDS)
    results = {}
    if os.path.exists(xml):
        for case in ElementTree.parse(xml).iter("testcase"):
            name, now = case.get("name"), result(case)
            results[name] = max(results.get(name, "pass"), now, key=WORST.index)
    if only is None or unit in only:
        results[unit] = "pass" if status == 0 else str(status)
    return results
