# SPDX-License-Identifier: Apache-2.0
"""Writes Flight Recorder files with the classes, fields and pools of async-profiler, for tests that know what is in
them. A stack is a list of (library, function), leaf first; times are ticks of a clock of TICKS a second."""
import struct

TICKS = 2_500_000_000
START_NS = 1_700_000_000_000_000_000
START_TICKS = 10**13

# number, name, fields: (name, class, pooled, array)
CLASSES = [
    (4, "boolean", []), (5, "char", []), (6, "float", []), (7, "double", []), (8, "byte", []), (9, "short", []),
    (10, "int", []), (11, "long", []), (20, "java.lang.String", []),
    (21, "java.lang.Class", [("classLoader", 11, 0, 0), ("name", 32, 1, 0), ("modifiers", 10, 0, 0)]),
    (22, "java.lang.Thread", [("osName", 20, 0, 0), ("osThreadId", 11, 0, 0), ("javaName", 20, 0, 0),
                              ("javaThreadId", 11, 0, 0)]),
    (24, "jdk.types.FrameType", [("description", 20, 0, 0)]),
    (25, "jdk.types.ThreadState", [("name", 20, 0, 0)]),
    (26, "jdk.types.StackTrace", [("truncated", 4, 0, 0), ("frames", 27, 0, 1)]),
    (27, "jdk.types.StackFrame", [("method", 28, 1, 0), ("lineNumber", 10, 0, 0), ("bytecodeIndex", 10, 0, 0),
                                  ("type", 24, 1, 0)]),
    (28, "jdk.types.Method", [("type", 21, 1, 0), ("name", 32, 1, 0), ("descriptor", 32, 1, 0),
                              ("modifiers", 10, 0, 0), ("hidden", 4, 0, 0)]),
    (32, "jdk.types.Symbol", [("string", 20, 0, 0)]),
    (40, "profiler.types.UserEventType", [("name", 20, 0, 0)]),
    (101, "jdk.ExecutionSample", [("startTime", 11, 0, 0), ("sampledThread", 22, 1, 0), ("stackTrace", 26, 1, 0),
                                  ("state", 25, 1, 0)]),
    (107, "jdk.ActiveSetting", [("startTime", 11, 0, 0), ("duration", 11, 0, 0), ("eventThread", 22, 1, 0),
                                ("stackTrace", 26, 1, 0), ("id", 11, 0, 0), ("name", 20, 0, 0),
                                ("value", 20, 0, 0)]),
    (116, "profiler.WallClockSample", [("startTime", 11, 0, 0), ("sampledThread", 22, 1, 0),
                                       ("stackTrace", 26, 1, 0), ("state", 25, 1, 0), ("samples", 10, 0, 0),
                                       ("timeSpan", 11, 0, 0)]),
    (118, "profiler.UserEvent", [("startTime", 11, 0, 0), ("eventThread", 22, 1, 0), ("type", 40, 1, 0),
                                 ("data", 20, 0, 0)]),
]


def number(value):
    out = b""
    for _ in range(8):
        if value < 128:
            return out + bytes([value])
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(value):
    if value is None:
        return b"\0"
    return b"\3" + number(len(value.encode())) + value.encode()


def record(kind, payload):
    """Its size has five bytes, so that it can be known before."""
    body = number(kind) + payload
    size = len(body) + 5
    return bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21 & 127 | 128,
                  size >> 28]) + body


class Pool(dict):
    def of(self, value):
        return self.setdefault(value, len(self) + 1)


class Chunk:
    def __init__(self, clock="tsc"):
        self.events = b""
        self.symbols, self.classes, self.methods, self.stacks = Pool(), Pool(), Pool(), Pool()
        self.threads, self.users = {}, Pool()
        self.setting("clock", clock)

    def setting(self, name, value):
        self.events += record(107, number(START_TICKS) + b"\0\0\0" + number(107) + text(name) + text(value))

    def stack(self, frames):
        methods = []
        for library, function in frames:
            of = self.classes.of(self.symbols.of(library))
            methods.append(self.methods.of((of, self.symbols.of(function))))
        return self.stacks.of(tuple(methods))

    def cpu(self, at, tid, frames):
        self.events += record(101, number(at) + number(tid) + number(self.stack(frames)) + number(1))

    def wall(self, at, tid, frames, sleeping=True, samples=1, span=0):
        self.events += record(116, number(at) + number(tid) + number(self.stack(frames)) + number(2 if sleeping else 1)
                              + number(samples) + number(span))

    def user(self, at, tid, name, data):
        self.events += record(118, number(at) + number(tid) + number(self.users.of(name))
                              + b"\5" + number(len(data)) + data)

    def poll(self, begin, end, tid, name="tokio.PollcatchV1"):
        """The TSC of the hooks may be off by a constant from that of the file."""
        self.user(end, tid, name, struct.pack("<QQ", begin + 12345, end + 12345))

    def thread(self, tid, name):
        self.threads[tid] = name

    def pools(self):
        def pool(kind, values):
            return number(kind) + number(len(values)) + b"".join(number(key) + value for key, value in values)

        named = [
            (24, [(3, text("Native"))]),
            (25, [(1, text("STATE_RUNNABLE")), (2, text("STATE_SLEEPING"))]),
            (22, [(tid, text(name) + number(tid) + b"\0" + number(0)) for tid, name in self.threads.items()]),
            (26, [(key, b"\0" + number(len(frames))
                   + b"".join(number(method) + number(0) + number(0) + number(3) for method in frames))
                  for frames, key in self.stacks.items()]),
            (28, [(key, number(of) + number(name) + number(name) + number(0) + b"\0")
                  for (of, name), key in self.methods.items()]),
            (21, [(key, number(0) + number(name) + number(0)) for name, key in self.classes.items()]),
            (32, [(key, text(value)) for value, key in self.symbols.items()]),
            (40, [(key, text(value)) for value, key in self.users.items()]),
        ]
        named = [one for one in named if one[1]]
        return record(1, number(START_TICKS) + number(0) + number(0) + b"\1" + number(len(named))
                      + b"".join(pool(*one) for one in named))

    def metadata(self):
        strings = Pool()

        def element(name, attributes, children=()):
            out = number(strings.of(name) - 1) + number(len(attributes))
            for key, value in attributes:
                out += number(strings.of(key) - 1) + number(strings.of(value) - 1)
            return out + number(len(children)) + b"".join(children)

        def field(name, kind, pooled, array):
            more = [("constantPool", "true")] * pooled + [("dimension", "1")] * array
            return element("field", [("name", name), ("class", str(kind))] + more)

        classes = [element("class", [("id", str(kind)), ("name", name)], [field(*one) for one in fields])
                   for kind, name, fields in CLASSES]
        tree = element("root", [], [element("metadata", [], classes), element("region", [("locale", "en_US")])])
        return record(0, number(START_TICKS) + number(0) + number(0x7fffffff) + number(len(strings))
                      + b"".join(text(one) for one in strings) + tree)

    def bytes(self, start_ns=START_NS, start_ticks=START_TICKS):
        metadata, pools = self.metadata(), self.pools()
        metadata_at = 68 + len(self.events)
        pools_at = metadata_at + len(metadata)
        size = pools_at + len(pools)
        return (struct.pack(">4sHHQQQQQQQI", b"FLR\0", 2, 0, size, pools_at, metadata_at, start_ns, 10**9, start_ticks,
                            TICKS, 1) + self.events + metadata + pools)
