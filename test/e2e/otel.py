#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev release one
"""A profiler outside of the process, which knows OTEP 4719 and OTEP 4947 and nothing of weft, reads what the process is and what its thread
works for: from its memory, while the thread is stopped."""
import ctypes
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import uuid

if platform.machine() != "x86_64":
    print("reason: the thread pointer is read as x86-64 has it")
    sys.exit(77)

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
ATTACH, DETACH, GETREGS = 16, 17, 12
FS_BASE = 21  # of the registers, which are words


class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def read(pid, address, n):
    to = ctypes.create_string_buffer(n)
    local, remote = Vec(ctypes.addressof(to), n), Vec(address, n)
    got = libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if got != n:
        sys.exit("FAIL: %d bytes at %#x of process %d: %s" % (n, address, pid, os.strerror(ctypes.get_errno())))
    return to.raw


def maps(pid):
    with open("/proc/%d/maps" % pid) as file:
        for line in file:
            parts = line.split(None, 5)
            start, end = (int(part, 16) for part in parts[0].split("-"))
            yield start, end, int(parts[2], 16), parts[5].strip() if len(parts) > 5 else ""


def fields(data):
    """The fields of a protobuf message, all of which have a length here."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        assert tag & 7 == 2, "field %d has wire type %d" % (tag >> 3, tag & 7)
        n = varint()
        assert at + n <= len(data), "a field is longer than its message"
        yield tag >> 3, data[at:at + n]
        at += n


def any_value(data):
    (field, value), = fields(data)
    if field == 5:
        return [any_value(one) for number, one in fields(value)]
    assert field == 1
    return value.decode()


def attributes(messages):
    out = {}
    for message in messages:
        pair = dict(fields(message))
        assert pair[1].decode() not in out, "a key is there twice"
        out[pair[1].decode()] = any_value(pair[2])
    return out


def process_context(pid):
    found = [start for start, _, _, name in maps(pid) if re.match(r"/memfd:OTEL_CTX|\[anon(_shmem)?:OTEL_CTX\]", name)]
    assert len(found) <= 1, "%d process contexts" % len(found)
    if not found:
        return None
    signature, version, size, published, payload = struct.unpack("<8sIIQQ", read(pid, found[0], 32))
    assert signature == b"OTEL_CTX" and version == 2 and published
    data = read(pid, payload, size)
    assert read(pid, found[0], 32)[16:24] == struct.pack("<Q", published)
    parts = list(fields(data))
    resource = attributes(value for field, part in parts if field == 1 for number, value in fields(part) if number == 1)
    return resource, attributes(part for field, part in parts if field == 2), published


def find_symbol(path):
    """Where the linker put the offset of the variable from the thread pointer: the place of the TPOFF64 relocation that names it."""
    with open(path, "rb") as file:
        data = file.read()
    shoff, shentsize, shnum = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shentsize) for i in range(shnum)]
    for section in sections:
        if section[1] != 4 or sections[section[6]][1] != 11:  # RELA that goes with DYNSYM
            continue
        symbols = sections[section[6]]
        strings = sections[symbols[6]]
        for at in range(section[4], section[4] + section[5], 24):
            offset, info, _ = struct.unpack_from("<QQq", data, at)
            name, kind = struct.unpack_from("<IB", data, symbols[4] + (info >> 32) * 24)
            text = data[strings[4] + name:data.index(b"\0", strings[4] + name)]
            if text == b"otel_thread_ctx_v1":
                assert kind & 15 == 6, "it is not thread-local"
                assert info & 0xffffffff == 18, "relocation %d" % (info & 0xffffffff)
                return offset
    sys.exit("FAIL: %s does not export otel_thread_ctx_v1" % path)


def thread_context(pid, keys):
    """Of the first thread of the process."""
    base, path = [(start, name) for start, _, offset, name in maps(pid) if "libweft.so" in name and not offset][0]
    slot = base + find_symbol(path)
    regs = (ctypes.c_ulong * 27)()
    assert libc.ptrace(ATTACH, pid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        os.waitpid(pid, 0x40000000)  # __WALL
        assert libc.ptrace(GETREGS, pid, None, ctypes.cast(regs, ctypes.c_void_p)) == 0
        offset, = struct.unpack("<q", read(pid, slot, 8))
        pointer, = struct.unpack("<Q", read(pid, regs[FS_BASE] + offset, 8))
        if not pointer:
            return None
        trace, span, valid, flags, size = struct.unpack("<16s8sBBH", read(pid, pointer, 28))
        if valid != 1:
            return None
        data, attrs = read(pid, pointer + 28, size), {}
        while data:
            attrs[keys[data[0]]] = data[2:2 + data[1]].decode()
            data = data[2 + data[1]:]
        return trace.hex(), span.hex(), flags, attrs
    finally:
        libc.ptrace(DETACH, pid, None, None)


class Program:
    def __init__(self):
        self.process = subprocess.Popen([os.path.join(os.environ["WEFT_BUILD"], "test/otel_program")], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        self.pid = self.answer()

    def answer(self):
        return int(self.process.stdout.readline())

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()


def check(a, b):
    if a != b:
        sys.exit("FAIL:\n  %r\nis not\n  %r" % (a, b))


EXPECTED = {"datadog.local_root_span_id": "2122232425262728", "http.route": "GET /users/:id", "tenant": "blue"}


def check_thread(pid, more):
    keys = process_context(pid)[1]["threadlocal.attribute_key_map"]
    check(thread_context(pid, keys), ("0102030405060708090a0b0c0d0e0f10", "1112131415161718", 1, {**EXPECTED, **more}))


def main():
    program = Program()
    resource, attrs, published = process_context(program.pid)
    check(resource["service.name"], "shop")
    check(resource["service.version"], "1.2")
    check(resource["deployment.environment.name"], "test")
    check(uuid.UUID(resource["service.instance.id"]).version, 4)
    check(attrs["threadlocal.schema_version"], "tlsdesc_v1_dev")
    check(thread_context(program.pid, []), None)

    program("set shard=1")
    check_thread(program.pid, {"shard": "1"})
    again = process_context(program.pid)
    check(again[0], resource)
    check(again[2] > published, True)  # it was told of the new keys
    check(again[1]["threadlocal.attribute_key_map"][:2], attrs["threadlocal.attribute_key_map"][:2])
    program("set zone=far")
    check_thread(program.pid, {"zone": "far"})
    program("clear")
    check(thread_context(program.pid, []), None)

    program("set shard=2")
    child = program("fork")
    check(child != program.pid, True)
    check_thread(child, {"shard": "2"})
    check_thread(program.pid, {"shard": "2"})
    theirs = process_context(child)[0]
    check(theirs["service.instance.id"] != resource["service.instance.id"], True)
    theirs["service.instance.id"] = resource["service.instance.id"]
    check(theirs, resource)
    check(program("quit"), program.pid)  # of the child: its parent goes on
    program("close")
    check(process_context(program.pid), None)
    program.process.stdin.close()
    check(program.process.wait(), 0)


signal.alarm(60)
main()
