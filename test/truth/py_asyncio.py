# SPDX-License-Identifier: Apache-2.0
# Callbacks of asyncio's loop that block it.
# run: py_time_sleep time_sleep
# run: py_hashlib hashlib
# run: py_file_read file_read
# run: py_lock lock
# run: py_subprocess subprocess
# run: py_socket_recv socket_recv
import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import truth_py

how = sys.argv[1]
lock = threading.Lock()
ours, theirs = socket.socketpair()
file = tempfile.TemporaryFile()
data = bytes(8 << 20)
if how == "file_read":
    for _ in range(8):
        file.write(data)
    file.flush()


def other():
    """Lets go after 20 ms."""
    time.sleep(0.02)
    if how == "lock":
        lock.release()
    else:
        theirs.send(b"x")


def work():
    if how == "time_sleep":
        time.sleep(0.02)
    elif how == "hashlib":
        for _ in range(4):
            hashlib.sha256(data).digest()
    elif how == "file_read":
        for i in range(8):
            os.pread(file.fileno(), len(data), i * len(data))
    elif how == "lock":
        with lock:
            pass
    elif how == "subprocess":
        subprocess.run(["/bin/sleep", "0.02"], check=True)
    else:
        ours.recv(1)


async def main():
    for _ in range(6):
        thread = None
        if how in ("lock", "socket_recv"):
            if how == "lock":
                lock.acquire()
            thread = threading.Thread(target=other)
            thread.start()
        await asyncio.sleep(0.003)
        truth_py.measured(how, work, waits=how == "lock")
        await asyncio.sleep(0.003)
        if thread:
            thread.join()
    await asyncio.sleep(0.001)


asyncio.run(main())
truth_py.tell()
