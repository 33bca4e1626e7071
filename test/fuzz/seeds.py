#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes first inputs for the fuzz targets into a directory, one folder for each target: seeds.py DIR.

They are made from the samples of the second reader, so that they follow the format; test/fuzz/corpus holds what was made
and what fuzzing found since.
"""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'reader'))

import weftread
import weftsamples
import weftwrite as w

SMALL = 2500


def small_samples():
    for name, make in weftsamples.SAMPLES.items():
        data = make().data
        if len(data) <= SMALL:
            yield name, data


def blocks_of(data):
    try:
        segment = weftread.Segment(data)
    except weftread.NotASegment:
        return []
    return [(b, data[b.offset + 40:b.offset + b.size]) for b in segment.blocks]


def blocks_input(blocks, seal):
    out = b''
    for block, payload in blocks:
        if len(payload) < 65536:
            span = block.last_ns - block.first_ns
            out += bytes([block.type & 7 | (block.flags & 31) << 3])
            out += w.varints(block.count, block.first_ns, span) + struct.pack('<H', len(payload)) + payload
    return out + b'\xff' * seal


def slot(kind, tick, word):
    return struct.pack('<QQ', tick << 8 | kind, word & w.WORD)


def some_slots(rng, number, first_tick):
    """Slots of whole events, as a thread leaves them in its ring."""
    out, tick, count = slot(1, first_tick, 4242) + b'fuzz-thread\0\0\0\0\0', first_tick, 2
    while count < number:
        tick += rng.randrange(5000)
        kind = rng.choice((3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 64))
        if kind == 64:
            out += slot(64, tick, 64 | 3 << 32) + struct.pack('<QQQQ', 1, 2, 3, 0)
            count += 3
        elif kind == 11:
            out += slot(11, tick, 10 ** 6) + struct.pack('<QQ', 10 ** 5, 0)
            count += 2
        else:
            out += slot(kind, tick, rng.randrange(1 << 40))
            count += 1
    return out, count


def part(data):
    return struct.pack('<H', len(data)) + data


def rings_input(rng, active, staged=True):
    kind = w.kind_record(64, 'user', [('a', 1, ''), ('b', 2, ''), ('c', 3, '')])
    staging = b''
    if staged:
        slots, count = some_slots(rng, 12, 9000000)
        staging = struct.pack('<IIIIQ', 1, count, 0, 1, 0) + slots
        loss = w.record(8, 1, 1, 5, 10, 20)
        staging += struct.pack('<IIIIQ', 2, len(loss), 0, 1, 0) + loss + bytes(-len(loss) % 8)
    out = struct.pack('<H', 0) + part(w.record(9, 'weft.version', '0.1')) + part(kind + w.record(3, 0, 'main') + w.record(4, 0, 0, 0)) + part(staging)
    for _ in range(2):
        slots, count = some_slots(rng, 40, 9100000)
        out += struct.pack('<QQ', 0, count) + part(slots)
    return out + active


def program(rng):
    """Commands of roundtrip_fuzz."""
    out = bytes([rng.randrange(8)])
    for _ in range(rng.randrange(5, 60)):
        command = rng.randrange(256) if rng.random() < 0.3 else rng.randrange(0x40)
        out += bytes([command]) + rng.randbytes(rng.randrange(12))
    return out


def inputs():
    rng = random.Random(1)
    for name, data in small_samples():
        yield 'segment', name, data
    for name, make in weftsamples.SAMPLES.items():
        blocks = blocks_of(make().data)
        whole = blocks_input(blocks, name != 'unsealed')
        if blocks and len(whole) <= SMALL:
            yield 'blocks', name, whole
        for number, (block, payload) in enumerate(blocks):
            if block.type == 2 and len(payload) <= SMALL:
                yield 'events', '%s-%d' % (name, number), struct.pack('<I', block.count) + payload
    records = weftsamples.some_records()
    yield 'defs', 'all', b''.join(records)
    for number in range(0, len(records), 3):
        yield 'defs', 'some-%d' % number, b''.join(records[number:number + 6])
    code = weftsamples.CODE_RECORDS + weftsamples.NAME_RECORDS
    yield 'defs', 'code', b''.join(record for record in code if len(record) < 1000)
    yield 'defs', 'code-twice', b''.join(record for record in code + code[::-1] if len(record) < 100)
    for number in range(0, len(code), 4):
        yield 'defs', 'code-%d' % number, b''.join(record[:1000] for record in code[number:number + 5])
    yield 'defs', 'unknown', w.record(77, 'x', 1) + w.record(5, 1, 2, 3, 4, 'name', 6) + w.record(9, 'k', 'v', 'w')
    for number in range(12):
        yield 'roundtrip', 'program-%d' % number, program(rng)
    yield 'rings', 'no-file', rings_input(rng, b'')
    yield 'rings', 'no-staging', rings_input(rng, b'', staged=False)
    yield 'rings', 'file', rings_input(rng, weftsamples.plain().data)
    yield 'rings', 'unsealed', rings_input(rng, weftsamples.unsealed().data)
    yield 'rings', 'cut', rings_input(rng, weftsamples.cut_in_block().data)
    yield 'rings', 'in-the-file-already', rings_input(rng, weftsamples.done(weftsamples.start().add_events(
        [w.Chunk(1, [(9000000 // 8, 1, (4242,)), (1125010, 4, ())], 0, 0)])).data)


def main(folder):
    for target, name, data in inputs():
        os.makedirs(os.path.join(folder, target), exist_ok=True)
        with open(os.path.join(folder, target, name), 'wb') as file:
            file.write(data)


if __name__ == '__main__':
    main(sys.argv[1])
