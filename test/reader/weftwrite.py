#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small writer of weft segments, written from docs/FORMAT.md alone, to test readers with.

It can be told to use any width, transform and dictionary, and to leave out or spoil parts; it does not try to be small
or fast. `weftwrite.py --samples DIR` writes the segments of weftsamples.py with the events that a reader must find.
"""

import struct
import sys
from collections import namedtuple

import xxhash
import zstandard

WORD = (1 << 64) - 1
DEFINITIONS, EVENTS, INDEX = 1, 2, 3
ZSTD, RECOVERED = 1, 2

# events is a list of (time in quanta, kind, fields); every stream has a ring of its own unless told
Chunk = namedtuple('Chunk', 'stream events first_slot ring', defaults=(None,))


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def varints(*values):
    return b''.join(map(varint, values))


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


def checked(head, payload=b''):
    return head + struct.pack('<Q', xxhash.xxh64_intdigest(head + payload)) + payload


def header(version=1, size=64, flags=0, number=0):
    recording, mono_ns, real_ns = bytes(range(16)), 10 ** 12, 17 * 10 ** 17
    head = struct.pack('<8sHHI16sQQQ', b'WEFTSEG1', version, size, flags, recording, number, mono_ns, real_ns)
    return checked(head) + bytes(max(size - 64, 0))


def block(kind, payload, count=0, first=0, last=0, flags=0):
    return checked(struct.pack('<4sHHIIQQ', b'WBK1', kind, flags, len(payload), count, first, last), payload)


def trailer(offset):
    return checked(struct.pack('<8sQ', b'WEFTEND1', offset))


def record(tag, *fields):
    """A definition record: numbers become varints, strings and bytes become text."""
    return raw_record(tag, b''.join(varint(f) if isinstance(f, int) else text(f) for f in fields))


def raw_record(tag, body):
    return varints(tag, len(body)) + body


def kind_record(kind, name, fields):
    return record(6, kind, name, len(fields), *(part for field in fields for part in field))


def definitions(records, packed=False, count=None):
    payload = b''.join(records)
    if packed:
        payload = zstandard.ZstdCompressor().compress(payload)
    return block(DEFINITIONS, payload, len(records) if count is None else count, flags=ZSTD if packed else 0)


def gap_class(gap):
    """The class of a gap, the number of its mantissa bits and these bits."""
    if gap < 8:
        return gap, 0, 0
    bits = gap.bit_length() - 3
    return 8 + 4 * (bits - 1) + (gap >> bits) - 4, bits, gap & ((1 << bits) - 1)


def zigzag(values):
    out, before = [], 0
    for value in values:
        difference = (value - before) & WORD
        before = value
        signed = difference - (1 << 64) if difference >> 63 else difference
        out.append(2 * signed if signed >= 0 else -2 * signed - 1)
    return out


def planes(values, width):
    rows = [value.to_bytes(8, 'little') for value in values]
    return b''.join(bytes(row[plane] for row in rows) for plane in range(width))


def column(kind, field, values, force=None):
    """The description and the bytes of a column. force is (transform, width, whether to use a dictionary)."""
    transform, width, entries = force or (0, None, False)
    stored = zigzag(values) if transform else values
    if width is None:
        width = max((value.bit_length() + 7) // 8 for value in stored) if stored else 1
        width = 0 if len(set(stored)) == 1 else max(width, 1)
    known = sorted(set(stored)) if entries or not width else []
    known = known or ([0] if not width else [])
    assert len(known) <= 256 and (width or len(known) == 1) and (not known or width < 2)
    assert known or all(value >> 8 * width == 0 for value in stored)
    head = varints(kind, field) + bytes([transform, width]) + varints(len(values), len(known))
    numbers = [known.index(value) for value in stored] if known else stored
    return head, struct.pack('<%dQ' % len(known), *known) + planes(numbers, width)


def symbols_of(pairs, at_most=256, always_escape=False):
    """Symbols for (kind, class) pairs; those that find no place need the escape (0, 0), which is then the last."""
    distinct = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
    if len(distinct) <= at_most and not always_escape:
        return distinct
    return distinct[:at_most - 1] + [(0, 0)]


def encode(chunks, quantum=1, force=None, packed=True, symbols=256, always_escape=False, content_size=True):
    """The payload of an events block, and its count, first and last time. force: {(kind, field): as column()}."""
    pairs, rows, mantissa, used = [], {}, 0, 0
    head = varints(quantum, len(chunks))
    for chunk in chunks:
        ring = chunk.stream if chunk.ring is None else chunk.ring
        head += varints(chunk.stream, len(chunk.events), ring, len(chunk.events), chunk.first_slot, chunk.events[0][0])
        before = chunk.events[0][0]
        for q, kind, fields in chunk.events:
            number, bits, low = gap_class(q - before)
            before = q
            mantissa |= low << used
            used += bits
            pairs.append((kind, number))
            rows.setdefault(kind, []).append(fields)
    table = symbols_of(pairs, symbols, always_escape)
    prefix = {pair: symbol for symbol, pair in enumerate(table)}
    body = bytes(prefix.get(pair, len(table) - 1) for pair in pairs)
    body += b''.join(struct.pack('<HB', *pair) for pair in pairs if pair not in prefix)
    columns = [column(kind, field, list(values), (force or {}).get((kind, field)))
               for kind in sorted(rows) for field, values in enumerate(zip(*rows[kind]))]
    head += varint(len(table)) + b''.join(varint(kind) + bytes([number]) for kind, number in table)
    head += varint(len(columns)) + b''.join(described for described, _ in columns)
    head += text(mantissa.to_bytes((used + 7) // 8, 'little'))
    body += b''.join(stored for _, stored in columns)
    head += varint(len(body)) + bytes([packed])
    if packed:
        body = zstandard.ZstdCompressor(write_content_size=content_size).compress(body)
    times = [q * quantum for chunk in chunks for q, _, _ in chunk.events]
    return head + body, len(pairs), min(times, default=0), max(times, default=0)


def events(chunks, **options):
    payload, count, first, last = encode(chunks, **options)
    return block(EVENTS, payload, count, first, last)


def lines(chunks, quantum=1):
    """The dump of the events of a block, in stored order."""
    return [' '.join(map(str, (q * quantum, chunk.stream, kind, *fields)))
            for chunk in chunks for q, kind, fields in chunk.events]


class Writer:
    """Puts blocks into a segment and remembers what a reader must find."""

    def __init__(self, **options):
        self.data = header(**options)
        self.entries, self.starts, self.dump = [], [], []

    def add(self, raw):
        kind, _, size, count, first, last = struct.unpack_from('<HHIIQQ', raw, 4)
        self.entries.append(varints(kind, len(self.data), len(raw), count, first, last - first))
        self.starts.append(len(self.data))
        self.data += raw
        return self

    def add_events(self, chunks, **options):
        self.dump.append(lines(chunks, options.get('quantum', 1)))
        return self.add(events(chunks, **options))

    def seal(self, flags=0):
        offset = len(self.data)
        self.data += block(INDEX, b''.join(self.entries), len(self.entries), flags=flags) + trailer(offset)
        return self

    def expected(self, without=()):
        """The lines of the dump, without some of the events blocks."""
        return [line for number, part in enumerate(self.dump) if number not in without for line in part]


if __name__ == '__main__':
    import weftsamples
    sys.exit(weftsamples.main())
