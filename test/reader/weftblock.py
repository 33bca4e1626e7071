# SPDX-License-Identifier: Apache-2.0
"""Payloads of blocks: numbers, text, zstd frames and the columns of an events block (see docs/FORMAT.md).

Per event the work is left to C as far as Python allows: prefixes become classes with bytes.translate, planes become
numbers with a strided copy into an array, and only the gaps go through a loop.
"""

import struct
import sys
from array import array
from collections import Counter, deque, namedtuple
from itertools import accumulate, islice, repeat

import zstandard

WORD = (1 << 64) - 1
BODY_MAX = 16 << 20
EVENTS_MAX = 262144
QUANTUM_MAX = 10 ** 9
CLASS_MAX = 251
KIND_MAX = 65535
FIELDS_MAX = 14
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'

CLASS_BITS = [0 if c < 8 else (c - 8) // 4 + 1 for c in range(CLASS_MAX + 1)]
CLASS_BASE = [c if c < 8 else (4 + (c - 8) % 4) << CLASS_BITS[c] for c in range(CLASS_MAX + 1)]
CLASS_MASK = [(1 << bits) - 1 for bits in CLASS_BITS]

Chunk = namedtuple('Chunk', 'stream events ring slots first_slot first_ns')
CHUNK_NUMBERS = len(Chunk._fields)
Column = namedtuple('Column', 'kind field transform width values entries')


class Bad(Exception):
    """The bytes are not what the format says."""


class Cursor:
    """Reads numbers and text from a span of bytes, and never past its end."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end
        self.bad_text, self.text_bytes = False, 0

    def done(self):
        return self.at >= self.end

    def left(self):
        return self.end - self.at

    def byte(self):
        if self.at >= self.end:
            raise Bad('the payload ends too early')
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        data, at, end = self.data, self.at, self.end
        value = shift = 0
        while at < end:
            byte = data[at]
            at += 1
            if shift == 63 and byte > 1:
                raise Bad('varint of more than 64 bits')
            value |= (byte & 127) << shift
            if byte < 128:
                self.at = at
                return value
            shift += 7
        raise Bad('the payload ends too early')

    def u32(self):
        value = self.varint()
        if value >> 32:
            raise Bad('%d does not fit 32 bits' % value)
        return value

    def span(self, length):
        """The offsets of the next bytes, which are passed over."""
        start = self.at
        if length > self.end - start:
            raise Bad('the payload ends too early')
        self.at = start + length
        return start, self.at

    def take(self, length):
        start, end = self.span(length)
        return self.data[start:end]

    def text(self):
        raw = self.take(self.varint())
        self.text_bytes += len(raw) + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.bad_text = True
            return raw.decode(errors='surrogateescape')


def frame_bytes(data):
    """The bytes of the zstd frame at the start of data. The decompressor does not tell where the frame ended."""
    at = zstandard.frame_header_size(data)
    last = 0
    while not last:
        if at + 3 > len(data):
            raise Bad('zstd frame cut short')
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        last, sort, size = word & 1, word >> 1 & 3, word >> 3
        at += 3 + (1 if sort == 1 else size)
    return at + (4 if zstandard.get_frame_parameters(data).has_checksum else 0)


def unzstd(data, size, limit):
    """Decompresses one frame. size is what must come out; None asks the frame, which then has to say it."""
    if data[:4] != ZSTD_MAGIC:
        raise Bad('not a zstd frame')
    try:
        promised = zstandard.get_frame_parameters(data).content_size
        if promised == zstandard.CONTENTSIZE_UNKNOWN:
            if size is None:
                raise Bad('zstd frame without its content size')
            promised = size
        if size is not None and promised != size:
            raise Bad('zstd frame of %d bytes instead of %d' % (promised, size))
        if promised > limit:
            raise Bad('zstd frame of %d bytes' % promised)
        if frame_bytes(data) != len(data):
            raise Bad('not exactly one zstd frame')
        if promised:
            out = zstandard.ZstdDecompressor().decompress(data, max_output_size=promised)
        else:
            out = zstandard.ZstdDecompressor().stream_reader(data).read(1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise Bad('zstd: %s' % error) from None
    if len(out) != promised:
        raise Bad('zstd frame holds %d bytes instead of %d' % (len(out), promised))
    return out


def numbers(planes, count, width):
    """An indexable sequence of the numbers stored in planes."""
    if width == 1:
        return planes
    size = 2 if width == 2 else 4 if width <= 4 else 8
    raw = bytearray(size * count)
    for plane in range(width):
        raw[plane::size] = planes[plane * count:(plane + 1) * count]
    words = array({2: 'H', 4: 'I', 8: 'Q'}[size], bytes(raw))
    if sys.byteorder != 'little':
        words.byteswap()
    return words


def undelta(stored):
    """Sums zigzag-coded differences. The sums may pass 64 bits on the way; only what is given out is cut."""
    for value in accumulate((z >> 1) ^ -(z & 1) for z in stored):
        yield value & WORD


class EventsBlock:
    """One decoded events block; the constructor checks all but the gaps, which check() does."""

    def __init__(self, payload, count):
        if count > EVENTS_MAX:
            raise Bad('%d events' % count)
        self.count = count
        cursor = Cursor(payload)
        self._read_chunks(cursor)
        self._read_symbols(cursor)
        self._read_columns(cursor)
        self._mantissa = cursor.take(cursor.varint())
        self._read_body(cursor)
        self._split_body()

    def _read_chunks(self, cursor):
        self.quantum = cursor.varint()
        if not 1 <= self.quantum <= QUANTUM_MAX:
            raise Bad('a quantum of %d' % self.quantum)
        count = cursor.varint()
        if count > self.count:
            raise Bad('more chunks than events')
        self._chunks = array('Q')
        for _ in range(count):
            self._chunks.extend((cursor.u32(), cursor.varint(), cursor.u32(), *(cursor.varint() for _ in range(3))))
        events = self._chunks[1::CHUNK_NUMBERS]
        if 0 in events:
            raise Bad('a chunk without events')
        if sum(events) != self.count:
            raise Bad('%d events in the chunks, the header says %d' % (sum(events), self.count))

    def chunks(self):
        for *fields, q in zip(*[iter(self._chunks)] * CHUNK_NUMBERS):
            yield Chunk(*fields, q * self.quantum)

    def _read_symbols(self, cursor):
        count = cursor.varint()
        if count > 256:
            raise Bad('%d symbols' % count)
        self._symbol_kinds, classes, self._escape = [], [], None
        for symbol in range(count):
            kind, gap_class = cursor.varint(), cursor.byte()
            if kind > KIND_MAX:
                raise Bad('kind %d' % kind)
            if gap_class > CLASS_MAX:
                raise Bad('class %d' % gap_class)
            if not kind:
                if self._escape is not None:
                    raise Bad('two escape symbols')
                self._escape, gap_class = symbol, 0
            self._symbol_kinds.append(kind)
            classes.append(gap_class)
        self._symbol_classes = bytes(classes).ljust(256, b'\0')

    def _read_columns(self, cursor):
        count = cursor.varint()
        if count > cursor.left() // 6:
            raise Bad('the payload ends too early')
        self._columns, self._fields = [], Counter()
        for _ in range(count):
            column = Column(cursor.varint(), cursor.varint(), cursor.byte(), cursor.byte(), cursor.varint(),
                            cursor.varint())
            if not 1 <= column.kind <= KIND_MAX or column.field >= FIELDS_MAX:
                raise Bad('column of kind %d, field %d' % column[:2])
            if column.field != self._fields[column.kind]:
                raise Bad('columns of kind %d are not in order' % column.kind)
            if column.transform > 1 or not 1 <= column.values <= self.count:
                raise Bad('column with transform %d, %d values' % (column.transform, column.values))
            most = {0: 1, 1: 256}.get(column.width, 0)
            if column.width > 8 or column.entries > most or (not column.width and not column.entries):
                raise Bad('column of width %d with %d dictionary entries' % (column.width, column.entries))
            self._fields[column.kind] += 1
            self._columns.append(column)

    def fields_of(self, kind):
        return self._fields[kind]

    def column(self, kind, field):
        """The values of one field of the events of a kind, in order; none when they do not have it."""
        for column, start in zip(self._columns, self._starts):
            if column[:2] == (kind, field):
                return self._values(column, start)
        return iter(())

    def forms(self):
        """Names of the forms of the format that this block uses, for tests that want to have seen them all."""
        out = {'escapes'} if self._escapes else set()
        if max(self._classes, default=0) > 8 + 4 * 28:
            out.add('gap above 2^30')
        for column in self._columns:
            if not column.width:
                out.add('equal differences' if column.transform else 'equal')
            elif column.entries:
                out.add('dictionary of differences' if column.transform else 'dictionary')
            else:
                out.add(('differences of width %d' if column.transform else 'width %d') % column.width)
        return out

    def _read_body(self, cursor):
        size, packed = cursor.varint(), cursor.byte()
        fixed = self.count + sum(c.entries * 8 + c.width * c.values for c in self._columns)
        if not fixed <= size <= fixed + 3 * self.count:
            raise Bad('a body of %d bytes' % size)
        if size > BODY_MAX:
            raise Bad('a body of %d bytes' % size)
        rest = cursor.take(cursor.left())
        if packed > 1:
            raise Bad('packing %d of the body' % packed)
        self._body = unzstd(rest, size, BODY_MAX) if packed else rest
        if len(self._body) != size:
            raise Bad('a body of %d bytes instead of %d' % (len(self._body), size))

    def _split_body(self):
        body = Cursor(self._body)
        prefixes = body.take(self.count)
        if prefixes.translate(None, bytes(range(len(self._symbol_kinds)))):
            raise Bad('prefix out of range')
        counts = Counter(prefixes)
        self._escapes = body.take(3 * counts[self._escape]) if self._escape is not None else b''
        self._prefixes = prefixes
        self.kind_counts = Counter()
        for symbol, number in counts.items():
            if symbol != self._escape:
                self.kind_counts[self._symbol_kinds[symbol]] += number
        self._classes = prefixes.translate(self._symbol_classes)
        if self._escapes:
            self._unescape()
        else:
            self._kinds = None
        self._starts = []
        for column in self._columns:
            if column.values != self.kind_counts[column.kind]:
                raise Bad('column of kind %d with %d values' % (column.kind, column.values))
            self._starts.append(body.at)
            body.span(column.entries * 8)
            start, end = body.span(column.width * column.values)
            if column.entries and self._body[start:end].translate(None, bytes(range(column.entries))):
                raise Bad('dictionary index out of range')
        if not body.done():
            raise Bad('%d bytes behind the columns' % body.left())

    def _unescape(self):
        self._kinds = array('H', map(self._symbol_kinds.__getitem__, self._prefixes))
        self._classes = bytearray(self._classes)
        at = -1
        for kind, gap_class in struct.iter_unpack('<HB', self._escapes):
            if not kind or gap_class > CLASS_MAX:
                raise Bad('escape with kind %d, class %d' % (kind, gap_class))
            at = self._prefixes.find(self._escape, at + 1)
            self._kinds[at] = kind
            self._classes[at] = gap_class
            self.kind_counts[kind] += 1

    def check(self):
        """Checks the gaps. Returns the first and last time of the block and a list of the last time of each chunk."""
        bits = sum(CLASS_BITS[c] * number for c, number in Counter(self._classes).items())
        if (bits + 7) // 8 != len(self._mantissa):
            raise Bad('%d bytes of mantissa for %d bits' % (len(self._mantissa), bits))
        quanta, at, ends = self._quanta(), 0, array('Q')
        for chunk in self.chunks():
            if self._classes[at]:
                raise Bad('the first event of a chunk has a gap')
            at += chunk.events
            end_ns = deque(islice(quanta, chunk.events), maxlen=1).pop() * self.quantum
            if end_ns > WORD:
                raise Bad('a time of more than 64 bits')
            ends.append(end_ns)
        first_ns = min(self._chunks[5::CHUNK_NUMBERS], default=0) * self.quantum
        return first_ns, max(ends, default=0), ends

    def _quanta(self):
        """Yields the time of each event in quanta."""
        mantissa, at = self._mantissa, 0
        bits = have = pos = 0
        from_bytes = int.from_bytes
        for events, q in zip(self._chunks[1::CHUNK_NUMBERS], self._chunks[5::CHUNK_NUMBERS]):
            for c in self._classes[at:at + events]:
                if c > 7:
                    need = CLASS_BITS[c]
                    if have < need:
                        bits |= from_bytes(mantissa[pos:pos + 8], 'little') << have
                        pos += 8
                        have += 64
                    q += CLASS_BASE[c] | bits & CLASS_MASK[c]
                    bits >>= need
                    have -= need
                else:
                    q += c
                yield q
            at += events

    def _values(self, column, start):
        """An iterator over the values of a column; nothing is built that is larger than the column in the body."""
        planes = start + column.entries * 8
        stored = self._body[planes:planes + column.width * column.values]
        entries = struct.unpack('<%dQ' % column.entries, self._body[start:planes])
        if not column.width:
            values = repeat(entries[0], column.values)
        elif entries:
            values = map(entries.__getitem__, stored)
        else:
            values = iter(numbers(stored, column.values, column.width))
        return undelta(values) if column.transform else values

    def events(self):
        """Yields (time_ns, stream, kind, fields); only after check()."""
        columns = {}
        for column, start in zip(self._columns, self._starts):
            columns.setdefault(column.kind, []).append(self._values(column, start))
        fields = {kind: zip(*columns[kind]) if kind in columns else repeat(()) for kind in self.kind_counts}
        take = {kind: rows.__next__ for kind, rows in fields.items()}
        kinds = self._kinds or map(self._symbol_kinds.__getitem__, self._prefixes)
        pairs, quantum = zip(self._quanta(), kinds), self.quantum
        for stream, events in zip(self._chunks[0::CHUNK_NUMBERS], self._chunks[1::CHUNK_NUMBERS]):
            for q, kind in islice(pairs, events):
                yield q * quantum, stream, kind, take[kind]()
