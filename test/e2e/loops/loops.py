# SPDX-License-Identifier: Apache-2.0
"""Loops of Python, each with ticks that block. Usage: loops.py asyncio|select|poll"""
import asyncio
import json
import os
import select
import subprocess
import sys
import time

TICKS = 20
blocks = []


def block(call, what):
    begin = time.monotonic_ns()
    what()
    blocks.append([call, begin, time.monotonic_ns()])


def tell(loop, ticks, over=0, **more):
    print(json.dumps({"loop": loop, "ticks": ticks, "over": over, "blocks": blocks, **more}), flush=True)


def wait_for_other():
    """Of the same module, and so from the same place of the interpreter, for something else."""
    ends = os.pipe()
    other = select.poll()
    other.register(ends[0], select.POLLIN)
    for _ in range(3):
        other.poll(8)
    os.close(ends[0])
    os.close(ends[1])


def with_asyncio():
    async def main():
        for i in range(TICKS):
            await asyncio.sleep(0.002)
            if i == 5:
                block("clock_nanosleep", lambda: time.sleep(0.02))
            if i == 8:
                block("poll", wait_for_other)
            if i == 11:
                block("epoll_wait", lambda: nested.poll(0.02))

    nested = select.epoll()
    asyncio.run(main())
    over = time.monotonic_ns()
    time.sleep(0.06)
    tell("epoll_wait loop", TICKS, over, more=30)


def with_select():
    ends, other = os.pipe(), os.pipe()
    for i in range(TICKS):
        select.select([ends[0], sys.stderr], [], [], 0.002)
        if i in (6, 9):
            block("select", lambda: select.select([other[0]], [], [], 0.015))
        if i == 12:
            block("select", lambda: select.select([], [], [], 0.015))
    tell("select loop", TICKS)


def with_poll():
    ends, more = os.pipe(), os.pipe()
    poll = select.poll()
    poll.register(ends[0], select.POLLIN)
    poll.register(more[0], select.POLLIN)
    for i in range(TICKS):
        poll.poll(2)
        if i in (6, 9):
            block("poll", wait_for_other)
        if i == 13:
            block("poll", lambda: subprocess.run(["sleep", "0.03"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True))
    tell("poll loop", TICKS)


{"asyncio": with_asyncio, "select": with_select, "poll": with_poll}[sys.argv[1]]()
