#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of weft segments, written from docs/FORMAT.md alone.

It exists to be compared with the C reader, so it shares nothing with it and checks everything that the format
promises. Broken promises that leave the events readable (a thread without a definition, a stream that goes back in
time) are not damage; they are collected in Segment.warnings and shown by --lint.

Events blocks are decoded twice, once to check them and once for each walk over the events, and are never kept: a few
kilobytes of hostile file can stand for tens of megabytes of events.
"""

import argparse
import json
import os
import struct
import sys
from collections import Counter, namedtuple
from itertools import islice
from operator import itemgetter

import xxhash

from weftblock import WORD, Bad, Cursor, EventsBlock, unzstd

HEADER = struct.Struct('<8sHHI16sQQQQ')
BLOCK = struct.Struct('<4sHHIIQQQ')
TRAILER = struct.Struct('<8sQQ')
DEFINITIONS, EVENTS, INDEX = 1, 2, 3
FLAG_ZSTD, FLAG_RECOVERED = 1, 2
PAYLOAD_MAX = 32 << 20
DEFINITIONS_MAX = 16 << 20
FIELDS_MAX = 14
RECORDS_MAX = {'kinds': 8192, 'facts': 4096, 'modules': 65536}
RECORDS_MAX_OTHER = 1 << 20
TEXT_MAX = 64 << 20
FRAMES_MAX = {'stacks': 16777216, 'symbols': 4194304}
BUILD_ID_MAX = 32
TYPE_STACK = 9
RESYNC_BUDGET = 4
WARNINGS_MAX = 100

Header = namedtuple('Header', 'version bytes flags recording number mono_ns real_ns')
Block = namedtuple('Block', 'offset size type flags count first_ns last_ns')
IndexEntry = namedtuple('IndexEntry', 'type offset size count first_ns last_ns')
Location = namedtuple('Location', 'line name file')
Worker = namedtuple('Worker', 'runtime index')
Thread = namedtuple('Thread', 'tid worker first_ns name')
Kind = namedtuple('Kind', 'name fields')
Field = namedtuple('Field', 'name type unit')
Clock = namedtuple('Clock', 'tick mono_ns real_ns')
Loss = namedtuple('Loss', 'reason stream count from_ns to_ns')
Module = namedtuple('Module', 'kind start end offset build_id path')
Frame = namedtuple('Frame', 'module offset')
Stack = namedtuple('Stack', 'flags frames')
SymbolFrame = namedtuple('SymbolFrame', 'function file line inlined')
Damage = namedtuple('Damage', 'offset length why')


class NotASegment(Exception):
    pass


class GiveUp(Exception):
    """The search behind damage has hashed too much."""


def parse_kind(record):
    name, count = record.text(), record.varint()
    if count > FIELDS_MAX:
        raise Bad('kind record with %d fields' % count)
    fields = []
    for _ in range(count):
        fields.append(Field(record.text(), record.u32(), record.text()))
    return Kind(name, tuple(fields))


def parse_thread(record):
    tid, worker, first_ns = record.u32(), record.u32(), record.varint()
    return Thread(tid, worker - 1 if worker else None, first_ns, record.text())


def parse_module(record):
    kind, start, end, offset, size = record.u32(), record.varint(), record.varint(), record.varint(), record.varint()
    if size > BUILD_ID_MAX:
        raise Bad('build id of %d bytes' % size)
    if end < start:
        raise Bad('module that ends before it starts')
    return Module(kind, start, end, offset, record.take(size).hex(), record.text())


def parse_frames(record, read):
    count = record.varint()
    if count > record.left():
        raise Bad('the payload ends too early')
    return tuple(read() for _ in range(count))


def parse_stack(record):
    return Stack(record.u32(), parse_frames(record, lambda: Frame(record.u32(), record.varint())))


def parse_symbol(record):
    """The key, and the frames with the ids of their names."""
    place = Frame(record.u32(), record.varint())
    return place, parse_frames(record, lambda: SymbolFrame(record.u32(), record.u32(), record.u32(), record.u32()))


# tag: (name, has an id, what reads the fields behind the id)
RECORDS = {
    1: ('strings', True, lambda r: r.text()),
    2: ('locations', True, lambda r: Location(r.u32(), r.text(), r.text())),
    3: ('runtimes', True, lambda r: r.text()),
    4: ('workers', True, lambda r: Worker(r.u32(), r.u32())),
    5: ('threads', True, parse_thread),
    6: ('kinds', True, parse_kind),
    7: ('clocks', False, lambda r: Clock(r.varint(), r.varint(), r.varint())),
    8: ('losses', False, lambda r: Loss(r.u32(), r.u32(), r.varint(), r.varint(), r.varint())),
    9: ('facts', False, lambda r: (r.text(), r.text())),
    10: ('modules', True, parse_module),
    11: ('stacks', True, parse_stack),
    12: ('names', True, lambda r: r.text()),
    13: ('symbols', False, parse_symbol),
}
FROM_ONE = ('modules', 'stacks', 'names')  # id 0 is nothing
KEYED = ('facts', 'symbols')


def index_entry(block):
    """What the index says of a block."""
    return block and IndexEntry(block.type, block.offset, block.size, block.count, block.first_ns, block.last_ns)


def parse_header(data):
    if len(data) < HEADER.size or data[:8] != b'WEFTSEG1':
        raise NotASegment('no segment header')
    _, version, size, flags, recording, number, mono, real, check = HEADER.unpack_from(data)
    if version != 1:
        raise NotASegment('version %d, this reader knows version 1' % version)
    if check != xxhash.xxh64_intdigest(data[:56]):
        raise NotASegment('checksum of the header does not match')
    if size < HEADER.size:
        raise NotASegment('header of %d bytes' % size)
    return Header(version, size, flags, recording.hex(), number, mono, real)


def load(source):
    """The bytes of a path; the header is looked at first, so that an endless file is not read to its end."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    with open(source, 'rb') as file:
        head = file.read(HEADER.size)
        parse_header(head)
        return head + file.read()


class Segment:
    """One segment, wholly checked. source is a path or the bytes themselves. Raises NotASegment or OSError."""

    def __init__(self, source):
        self._data = load(source)
        self.header = parse_header(self._data)
        if self.header.bytes > len(self._data):
            raise NotASegment('the file ends inside the header')
        self.blocks, self.damage, self.warnings = [], [], []
        self.strings, self.locations, self.runtimes, self.workers, self.threads, self.kinds = ({} for _ in range(6))
        self.facts, self.clocks, self.losses = {}, [], []
        self.modules, self.stacks, self.names, self.symbols = {}, {}, {}, {}
        self.index, self.sealed = None, False
        self._record_counts, self._frame_counts, self._text_bytes = Counter(), Counter(), 0
        self._budget = RESYNC_BUDGET * len(self._data)
        self.count, self.kind_counts, self.stream_counts = 0, Counter(), Counter()
        self._stream_ends, self._ring_ends = {}, {}
        self._read_trailer()
        self.recovered = bool(self.header.flags & 1)
        self._walk()

    @property
    def definitions(self):
        """All definitions that have an id: name of the sort to {id: definition}."""
        return {name: getattr(self, name) for name, has_id, _ in RECORDS.values() if has_id}

    def symbol(self, module, offset):
        """The frames of a symbol with their names as text, or None."""
        frames, names = self.symbols.get((module, offset)), self.names
        if frames is None:
            return None
        return tuple(SymbolFrame(names.get(f.function, ''), names.get(f.file, ''), f.line, f.inlined) for f in frames)

    def events(self):
        """Yields (time_ns, stream, kind, fields) in stored order."""
        for block in self.blocks:
            if block.type == EVENTS:
                yield from EventsBlock(self._payload(block), block.count).events()

    def events_by_time(self):
        """The events in order of time, then stream id; those of one stream stay in stored order."""
        return iter(sorted(self.events(), key=itemgetter(0, 1)))

    def _payload(self, block):
        return self._data[block.offset + BLOCK.size:block.offset + block.size]

    def _warn(self, text):
        if len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(text)

    def _read_trailer(self):
        self._end, self._index_offset = len(self._data), None
        start = len(self._data) - TRAILER.size
        if start < self.header.bytes:
            return
        magic, offset, check = TRAILER.unpack_from(self._data, start)
        if magic == b'WEFTEND1' and check == xxhash.xxh64_intdigest(self._data[start:start + 16]):
            self._end, self._index_offset = start, offset

    def _block_at(self, at, resync=False):
        """The block at an offset. Raises Bad when there is no whole block with a right checksum."""
        if self._end - at < BLOCK.size:
            raise Bad('no room for a block header' if self._data.startswith(b'WBK1', at) else 'no block begins here')
        magic, kind, flags, length, count, first, last, check = BLOCK.unpack_from(self._data, at)
        if magic != b'WBK1':
            raise Bad('no block begins here')
        if length > PAYLOAD_MAX:
            raise Bad('block with a payload of %d bytes' % length)
        if length > self._end - at - BLOCK.size:
            raise Bad('block passes the end')
        if resync:
            self._budget -= BLOCK.size + length
            if self._budget < 0:
                raise GiveUp('no whole block was found for long')
        view = memoryview(self._data)
        digest = xxhash.xxh64(view[at:at + 32])
        digest.update(view[at + BLOCK.size:at + BLOCK.size + length])
        if digest.intdigest() != check:
            raise Bad('checksum of the block does not match')
        return Block(at, BLOCK.size + length, kind, flags, count, first, last)

    def _next_block(self, at):
        """The offset of the first whole block at or behind an offset, or the end."""
        while True:
            at = self._data.find(b'WBK1', at, self._end)
            if at < 0:
                return self._end
            try:
                return self._block_at(at, resync=True).offset
            except Bad:
                at += 1

    def _walk(self):
        at = self.header.bytes
        while at < self._end:
            try:
                block = self._block_at(at)
                after = at + block.size
            except Bad as bad:
                try:
                    after = self._next_block(at + 1)
                except GiveUp:
                    after = self._end
                self.damage.append(Damage(at, after - at, str(bad)))
            else:
                try:
                    self._read_block(block)
                    self.blocks.append(block)
                except Bad as bad:
                    self.damage.append(Damage(at, block.size, str(bad)))
            at = after

    def _read_block(self, block):
        if block.type in (DEFINITIONS, INDEX) and (block.first_ns or block.last_ns):
            self._warn('block at %d: has times but no events' % block.offset)
        if block.flags & ~(FLAG_ZSTD | FLAG_RECOVERED) or (block.flags & FLAG_ZSTD and block.type in (EVENTS, INDEX)):
            self._warn('block at %d: flags %#x' % (block.offset, block.flags))
        if block.type == DEFINITIONS:
            self._read_definitions(block)
        elif block.type == EVENTS:
            self._read_events(block)
        elif block.type == INDEX:
            self._read_index(block)

    def _read_definitions(self, block):
        payload = self._payload(block)
        if block.flags & FLAG_ZSTD:
            payload = unzstd(payload, None, DEFINITIONS_MAX)
        cursor, records, count = Cursor(payload), [], 0
        while not cursor.done():
            tag = cursor.varint()
            record = Cursor(payload, *cursor.span(cursor.varint()))
            count += 1
            if tag in RECORDS:
                records.append(self._read_record(record, *RECORDS[tag]))
            self._text_bytes += record.text_bytes
            if self._text_bytes > TEXT_MAX:
                raise Bad('too much text in definitions')
            if record.bad_text:
                self._warn('block at %d: text that is not UTF-8' % block.offset)
        if count != block.count:
            self._warn('block at %d: %d definition records, the header says %d' % (block.offset, count, block.count))
        for name, ident, value in records:
            target = getattr(self, name)
            if ident is not None:
                target[ident] = value
            elif name in KEYED:
                target[value[0]] = value[1]
            else:
                target.append(value)

        for name, ident, value in records:
            if name == 'stacks':
                self._lint_stack(block, ident, value)

    def _read_record(self, record, name, has_id, parse):
        ident = record.u32() if has_id else None
        if ident == 0 and name in FROM_ONE:
            raise Bad('id 0: ' + name)
        value = parse(record)
        self._record_counts[name] += 1
        if self._record_counts[name] > RECORDS_MAX.get(name, RECORDS_MAX_OTHER):
            raise Bad('too many definitions: ' + name)
        if name in FRAMES_MAX:
            self._frame_counts[name] += len(value[1])
            if self._frame_counts[name] > FRAMES_MAX[name]:
                raise Bad('too many frames: ' + name)
        return name, ident, value

    def _lint_stack(self, block, ident, stack):
        for module in {frame.module for frame in stack.frames}:
            if module and module not in self.modules:
                self._warn('block at %d: stack %d has module %d, which is not defined' % (block.offset, ident, module))

    def _read_events(self, block):
        decoded = EventsBlock(self._payload(block), block.count)
        first, last, ends = decoded.check()
        if (first, last) != (block.first_ns, block.last_ns):
            raise Bad('times are %d to %d, the header says %d to %d' % (first, last, block.first_ns, block.last_ns))
        self.count += block.count
        self.kind_counts.update(decoded.kind_counts)
        for chunk, end_ns in zip(decoded.chunks(), ends):
            self.stream_counts[chunk.stream] += chunk.events
            self._lint_chunk(block, chunk, end_ns)
        for kind in decoded.kind_counts:
            known = self.kinds.get(kind)
            if not known:
                self._warn('block at %d: kind %d is not defined before it' % (block.offset, kind))
            elif len(known.fields) != decoded.fields_of(kind):
                self._warn('block at %d: kind %d has %d columns and %d fields' %
                           (block.offset, kind, decoded.fields_of(kind), len(known.fields)))
            for number, field in enumerate(known.fields if known else ()):
                if field.type == TYPE_STACK:
                    self._lint_stack_ids(block, set(decoded.column(kind, number)))

    def _lint_stack_ids(self, block, idents):
        for ident in sorted(idents - {0}):
            if ident not in self.stacks:
                self._warn('block at %d: stack %d is not defined before it' % (block.offset, ident))

    def _lint_chunk(self, block, chunk, end_ns):
        where = 'block at %d: stream %d' % (block.offset, chunk.stream)
        if chunk.stream not in self.threads:
            self._warn(where + ' has no thread record before it')
        last_ns = self._stream_ends.get(chunk.stream, 0)
        if chunk.first_ns < last_ns:
            self._warn('%s goes back in time from %d to %d' % (where, last_ns, chunk.first_ns))
        slot, damages = self._ring_ends.get(chunk.ring, (0, -1))
        if slot > chunk.first_slot and damages == len(self.damage):
            self._warn('%s has slot %d of ring %d a second time' % (where, chunk.first_slot, chunk.ring))
        self._stream_ends[chunk.stream] = end_ns
        self._ring_ends[chunk.ring] = chunk.first_slot + chunk.slots, len(self.damage)

    def _read_index(self, block):
        cursor, entries, at = Cursor(self._payload(block)), [], self.header.bytes
        while not cursor.done():
            kind, offset, size, count, first, span = (cursor.varint() for _ in range(6))
            if kind >> 16 or count >> 32 or first + span > WORD:
                raise Bad('index entry out of range')
            if offset < at or size < BLOCK.size or size > BLOCK.size + PAYLOAD_MAX or offset + size > block.offset:
                raise Bad('index entries are not in order of the file')
            at = offset + size
            entries.append(IndexEntry(kind, offset, size, count, first, first + span))
        if len(entries) != block.count:
            raise Bad('%d index entries, the header says %d' % (len(entries), block.count))
        self.index = entries
        self.recovered = self.recovered or bool(block.flags & FLAG_RECOVERED)
        if block.offset == self._index_offset and block.offset + block.size == self._end:
            self.sealed = True
            self._lint_index(block)

    def _lint_index(self, block):
        found = [index_entry(other) for other in self.blocks if other.type != INDEX]
        if not self.damage and found != self.index:
            self._warn('block at %d: the index does not match the blocks before it' % block.offset)

    def summary(self):
        counts = {name: len(getattr(self, name)) for name, _, _ in RECORDS.values()}
        return {
            'events': self.count,
            'kinds': {str(kind): count for kind, count in sorted(self.kind_counts.items())},
            'streams': len(self.stream_counts),
            'damage': len(self.damage),
            'missing_bytes': sum(damage.length for damage in self.damage),
            'sealed': self.sealed,
            'recovered': self.recovered,
            'definitions': counts,
        }


def dump(events, out):
    """One line for each event, written in large pieces."""
    lines = ('%d %d %d' % event[:3] + ''.join(map(' %d'.__mod__, event[3])) + '\n' for event in events)
    while True:
        piece = ''.join(islice(lines, 8192))
        if not piece:
            return
        out.write(piece)


def main(argv=None):
    parser = argparse.ArgumentParser(description='Read a weft segment.')
    parser.add_argument('file')
    parser.add_argument('--dump', action='store_true', help='print each event: TIME_NS STREAM KIND FIELD...')
    parser.add_argument('--summary', action='store_true', help='print counts as JSON (the default)')
    parser.add_argument('--order', choices=('stored', 'time'), default='stored', help='order of --dump')
    parser.add_argument('--lint', action='store_true', help='also tell what breaks the format without being damage')
    args = parser.parse_args(argv)
    try:
        segment = Segment(args.file)
    except NotASegment as error:
        print('%s: not a segment: %s' % (args.file, error), file=sys.stderr)
        return 2
    except OSError as error:
        print('%s: cannot be read: %s' % (args.file, error.strerror), file=sys.stderr)
        return 2
    for damage in segment.damage:
        print('damage: offset %d, %d bytes missing: %s' % damage, file=sys.stderr)
    for warning in segment.warnings if args.lint else ():
        print('lint: ' + warning, file=sys.stderr)
    try:
        if args.dump:
            dump(segment.events_by_time() if args.order == 'time' else segment.events(), sys.stdout)
        if args.summary or not args.dump:
            print(json.dumps(segment.summary(), indent=2))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 3 if segment.damage else 0


if __name__ == '__main__':
    sys.exit(main())
