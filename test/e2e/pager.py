#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
"""On a terminal all tables go through a pager, the first page does not and has the columns of the terminal."""

import fcntl
import os
import pty
import struct
import sys
import termios

WEFT = os.path.join(os.environ["WEFT_BUILD"], "weft")
SEGMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "server", "0.weft")


def check(holds, what, output):
    if not holds:
        print(output)
        sys.exit("FAILED: " + what)


def on_terminal(columns, *args, pager="sed 's/^/paged: /'"):
    """What `weft report ARGS` prints on a terminal of so many columns, line by line, and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.environ.update(PAGER=pager, NO_COLOR="1", TERM="xterm")
        os.execv(WEFT, [WEFT, "report", "--no-symbols", *args, SEGMENT])
    output = b""
    while True:
        try:
            got = os.read(fd, 65536)
        except OSError:  # the other end is closed
            got = b""
        if not got:
            break
        output += got
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return output.decode().replace("\r\n", "\n").splitlines(), status


def main():
    lines, status = on_terminal(80, "--full")
    check(status == 0 and len(lines) > 100, "all tables, with status %d" % status, lines)
    check(all(line.startswith("paged: ") for line in lines), "each line goes through $PAGER", lines)
    lines, status = on_terminal(80, "--full", "--no-pager")
    check(status == 0 and not any(line.startswith("paged: ") for line in lines), "--no-pager asks for none", lines)
    lines, status = on_terminal(80, "--full", pager="head -1")
    check(status == 0 and len(lines) == 1, "a pager that is left early is no failure", lines)
    for columns in (70, 110):
        lines, status = on_terminal(columns)
        check(status == 0 and not any(line.startswith("paged: ") for line in lines), "the first page needs no pager", lines)
        longest = max(len(line) for line in lines if "weft report --full" not in line and "weft query" not in line)
        check(columns - 20 < longest <= columns, "a terminal of %d columns has lines of %d" % (columns, longest), lines)


main()
