# SPDX-License-Identifier: Apache-2.0
"""Sample segments, each with what a reader must find: NAME.weft, NAME.dump (stored order), and a line in samples.txt.

A line of samples.txt is: name, exit code, number of events, number of damaged places, bytes missing, sealed, recovered.
"""

import argparse
import os
import random
import re
import struct
from collections import namedtuple

from weftwrite import (RECOVERED, WORD, Chunk, Writer, block, definitions, encode, header, kind_record, raw_record,
                       record, text, trailer, varints)

# damage is a list of (offset, length); refused means that it is no segment of this version
Sample = namedtuple('Sample', 'data dump damage sealed recovered refused', defaults=([], True, False, False))

FORMAT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'FORMAT.md')
TYPES = {'string': 5, 'task': 6, 'worker': 7, 'location': 8, 'stack': 9}


def own_kinds():
    """Kinds as the document has them: number to name and fields, each with name, type and unit."""
    kinds = {}
    with open(FORMAT, encoding='utf-8') as document:
        table = document.read().partition('tools/gen-lists: kinds')[2].partition('tools/gen-lists: end')[0]
    for number, name, fields in re.findall(r'^\| (\d+) \| (\w+) \| ([^|]*)\|', table, re.M):
        kinds[int(number)] = name, [(field, TYPES.get(beside, 1), '' if beside in TYPES else beside)
                                    for field, beside in re.findall(r'(\w+)(?: \((\w+)\))?(?:, )?', fields)]
    return kinds


OWN_KINDS = own_kinds()


def some_records(streams=(1, 2, 3)):
    records = [kind_record(kind, name, fields) for kind, (name, fields) in OWN_KINDS.items()]
    records += [record(3, 0, 'main'), record(4, 0, 0, 0), record(2, 5, 42, 'handle_request', 'src/main.c')]
    records += [record(1, 7, 'grün'), record(7, 900, 10 ** 12, 17 * 10 ** 17), record(8, 1, 2, 5, 10, 20)]
    records += [record(5, stream, 4000 + stream, stream % 2, 100, 'worker-%d' % stream) for stream in streams]
    return records + [record(9, 'weft.version', '0.0'), record(9, 'weft.version', '0.1'), record(9, 'clock.hz', '1')]


def polls(rng, q, number, top=4000):
    """What a worker does: polls with wakes in them, gaps of all sizes, the CPU time now and then."""
    out, cpu = [], 10 ** 9
    for _ in range(number):
        task = rng.randrange(1, 50)
        q += rng.randrange(rng.choice((2, 9, 300, top)))
        out.append((q, 3, (task, rng.choice((0, 1, 65535)))))
        if rng.random() < 0.3:
            q += rng.randrange(20)
            out.append((q, 9, (rng.randrange(1, 50), rng.choice((0, 65535)))))
        if rng.random() < 0.1:
            cpu += rng.randrange(10 ** 7)
            out.append((q, 11, (cpu, cpu // 3)))
        q += rng.randrange(top)
        if rng.random() < 0.2:
            out.append((q, 14, (rng.randrange(1, 50), rng.choice((0, 3, 65535)))))
            q += rng.randrange(top)
        out.append((q, 4, ()))
    return out


def start(*more, packed=True, **options):
    return Writer(**options).add(definitions(some_records() + list(more), packed))


def done(writer, **more):
    return Sample(writer.data, writer.expected(), **more)


def plain():
    chunk = Chunk(1, [(1000, 1, (4001,)), (1000, 3, (9, 0)), (1007, 9, (10, 65535)), (1015, 4, ()), (9000, 2, ())], 0)
    return done(start(packed=False).add_events([chunk], packed=False).seal())


def empty():
    return done(Writer().seal())


def header_only():
    return Sample(Writer().data, [], sealed=False)


def many_chunks():
    rng, writer = random.Random(1), start()
    slot, q = {1: 0, 2: 0, 3: 0}, {1: 10 ** 6, 2: 10 ** 6, 3: 5}
    for number in range(3):
        chunks = []
        for stream in (2, 1, 2, 3)[:number + 2]:
            made = polls(rng, q[stream], 60)
            chunks.append(Chunk(stream, made, slot[stream]))
            slot[stream] += len(made)
            q[stream] = made[-1][0]
        writer.add_events(chunks, quantum=64, packed=number != 1, content_size=number != 2)
    return done(writer.seal())


def all_columns():
    """Each width with each transform, dictionaries of 1, 2 and 256 entries, and columns that are all equal."""
    rng, shapes = random.Random(2), []
    for transform in (0, 1):
        shapes += [(transform, 0, False)] + [(transform, width, False) for width in range(1, 9)]
        shapes += [(transform, 1, 1), (transform, 1, 2), (transform, 1, 256)]
    force, made, records = {}, [], []
    for number, (transform, width, entries) in enumerate(shapes):
        kind, top = 64 + number, 1 << 8 * width
        force[kind, 0] = (transform, width, bool(entries))
        records.append(kind_record(kind, 'shape%d' % number, [('value', 1, '')]))
        choice = [rng.randrange(1 << 64) for _ in range(entries)] if entries else [7]
        # Dictionaries and equal columns hold what is stored, so the values follow from the stored numbers.
        stored = [choice[i % entries] if entries else rng.randrange(top) if width else 7 for i in range(600)]
        stored[1:3] = [top - 1, 0] if width and not entries else stored[1:3]
        before = 0
        for i, value in enumerate(stored):
            if transform:
                before = value = (before + ((value >> 1) ^ -(value & 1))) & WORD
            made.append((5000 + i * 50 + number, kind, (value,)))
    made.sort()
    return done(start(*records).add_events([Chunk(1, made, 0)], force=force).seal())


def extreme_values():
    values = (0, WORD, 0, 1 << 63, (1 << 63) - 1, 1, WORD - 1, 1 << 63, 0)
    made = [(i, 70, (value, i)) for i, value in enumerate(values)]
    kind = kind_record(70, 'extreme', [('a', 2, ''), ('b', 1, '')])
    writer = start(kind).add_events([Chunk(1, made, 0)], force={(70, 0): (1, 8, False), (70, 1): (1, 1, True)})
    return done(writer.seal())


def all_gaps():
    """Every class, with the smallest and the largest gap that it holds; each in a chunk of its own."""
    gaps = set(range(8))
    for bits in range(1, 62):
        for top in range(4, 8):
            gaps |= {top << bits, (top + 1 << bits) - 1}
    chunks = [Chunk(1, [(0, 2, ()), (gap, 4, ())], 2 * number) for number, gap in enumerate(sorted(gaps))]
    return done(start().add_events(chunks).seal())


def escapes():
    rng, q, made = random.Random(3), 77, []
    for _ in range(1500):
        kind = rng.randrange(200, 60000) if rng.random() < 0.1 else rng.choice((3, 4, 9, 64, 65, 66, 67, 65535))
        q += rng.randrange(1 << rng.randrange(1, 30))
        made.append((q, kind, tuple(rng.randrange(1000) for _ in range({3: 2, 9: 2, 65: 14}.get(kind, 1)))))
    chunks = [Chunk(1, made[:700], 0), Chunk(2, made[700:], 0)]
    return done(start().add_events(chunks).add_events([Chunk(3, made, 0)], symbols=2, packed=False).seal())


def only_escapes():
    """One symbol, the escape, and every event uses it."""
    made = [(9, 3, (1, 2)), (9, 4, ()), (30, 66, (3,)), (10 ** 9, 4, ())]
    return done(start().add_events([Chunk(1, made, 0)], symbols=1, always_escape=True).seal())


def symbols_256():
    """Exactly 256 symbols and no escape."""
    made, q = [(0, 64, ())], 0
    for gap in range(1, 9):
        for kind in range(64, 96):
            q += gap
            made.append((q, kind, ()))
    made.pop(-1)
    assert len({(b[0] - a[0], b[1]) for a, b in zip(made, made[1:])}) + 1 == 256
    return done(start().add_events([Chunk(1, made, 0)]).seal())


def unknown():
    """Unknown block types, tags, kinds, flags and bytes behind the known fields."""
    more = [record(77, 'from', 'later'), b'\x64\x00', record(9, 'key', 'value', 'more'), record(5, 1, 1, 0, 0, 'a', 6)]
    made = [(10, 500, (1, 2, 3)), (11, 501, ()), (12, 500, (4, 5, 6)), (12, 3, (1, 2))]
    writer = start(*more).add(block(900, b'WBK1 in a block of another type', 5, 6, 7, 0xfff0))
    writer.add_events([Chunk(1, made, 0)]).add(block(0, b''))
    return done(writer.seal())


def no_events():
    return done(start().add_events([]).add_events([], packed=False).seal())


def long_varints():
    """Numbers with needless zero bytes at their end are allowed, up to ten bytes."""
    raw = b'\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00'
    return done(Writer().add(definitions([b'\x89\x00' + b'\x84\x00' + b'\x01k\x01v', record(1, 5, 'five')]))
                .add(definitions([b'\x01\x0c' + raw + b'\x01x'])).add_events([Chunk(1, [(1, 4, ())], 0)]).seal())


def recovered_header():
    return done(start(flags=1).add_events([Chunk(1, polls(random.Random(4), 1, 9), 0)]).seal(), recovered=True)


def recovered_index():
    writer = start().add_events([Chunk(1, polls(random.Random(4), 1, 9), 0)])
    return done(writer.seal(RECOVERED), recovered=True)


def module(ident, kind, start, end, offset, build_id, path):
    return raw_record(10, varints(ident, kind, start, end, offset) + text(build_id) + text(path))


def stack(ident, flags, *frames):
    return record(11, ident, flags, len(frames), *(number for frame in frames for number in frame))


def symbol(place, *frames):
    return record(13, *place, len(frames), *(number for frame in frames for number in frame))


PROGRAM, LIBC, KERNEL = 1, 2, 9
CODE_RECORDS = [
    module(PROGRAM, 1, 0x555555555000, 0x555555560000, 0x1000, bytes(range(20)), '/usr/bin/grün'),
    module(LIBC, 1, 0x7ffff7c28000, 0x7ffff7db0000, 0x28000, b'', '/lib/libc.so.6'),
    module(KERNEL, 3, 0, WORD, 0, bytes(32), '[kernel]'),
    stack(1, 1, (PROGRAM, 0x10), (PROGRAM, 0x400), (LIBC, 0x1234), (0, 0x7fff00000010)),
    stack(2, 65, (KERNEL, 0xffffffff81000010), (KERNEL, 0xffffffff81ffffff)),
    stack(7, 2 | 8 | 16, *((PROGRAM, 0x400 + i % 3) for i in range(1024))),
    stack(4000000000, 4 | 32, (0, WORD)), stack(8, 4), record(8, 6, 0, 12, 5, 9), record(8, 7, 0, 3, 5, 9),
]
NAME_RECORDS = [
    symbol((PROGRAM, 0x10), (1, 2, 42, 1), (3, 2, 50, 1), (4, 5, 0, 0)), symbol((PROGRAM, 0x400), (4, 77, 9, 0)),
    record(12, 1, 'inner<int>::operator()'), record(12, 2, '/src/grün.cc'), record(12, 3, ''),
    record(12, 4, 'wrong'), record(12, 4, 'main'), symbol((LIBC, 0x1234), (1, 1, 1, 1)), symbol((LIBC, 0x1234)),
    symbol((KERNEL, 0xffffffff81000010), (6, 0, 0, 0)), symbol((0, WORD), (4, 0, 0, 0)),
]


def samples_of(q, *stacks):
    return [(q + 10 * i, 13, (ident, kernel, 10101010, 3 if ident else 0xffffffff, 1 + (kernel > 0)))
            for i, (ident, kernel) in enumerate(stacks)]


def samples():
    """Samples among polls, with modules, stacks and symbols; symbols are appended, as weft symbolize does."""
    made = [(100, 3, (9, 0))] + samples_of(110, (1, 0), (1, 2), (7, 0), (1, 0)) + [(200, 4, ())]
    writer = start(*CODE_RECORDS[:-4]).add_events([Chunk(1, made, 0)]).add(definitions(CODE_RECORDS[-4:]))
    writer.add_events([Chunk(2, samples_of(300, (4000000000, 0), (8, 2), (0, 0)), 0)])
    return done(writer.add(definitions(NAME_RECORDS[:4])).add(definitions(NAME_RECORDS[4:], True)).seal())


def replaced_code():
    """The last definition counts, also for symbols that stand before a name."""
    more = [module(PROGRAM, 4, 5, 5, 0, b'', ''), stack(1, 0), stack(7, 64, (LIBC, 1)), record(12, 4, 'last'),
            symbol((PROGRAM, 0x10), (4, 4, 4, 4))]
    writer = start(*CODE_RECORDS, *NAME_RECORDS).add(definitions(more)).add_events([Chunk(1, samples_of(5, (1, 7)), 0)])
    return done(writer.seal())


def unparsable_code():
    """Each a block that is missing, with a good record before the fault."""
    bad = [module(0, 1, 0, 1, 0, b'', 'x'), module(5, 1, 9, 8, 0, b'', 'x'), module(5, 1, 0, 1, 0, bytes(33), 'x'),
           stack(0, 0), record(11, 5, 0, 2, 1, 1, 1), record(11, 5, 0, WORD), record(11, 5, 0, 1, 1 << 32, 1),
           record(11, 5, 1 << 32, 0), record(12, 0, 'x'), record(12, 5), record(13, 1, 1, 1, 1, 1, 1),
           record(13, 1 << 32, 1, 0), record(13, 1, 1, 1, 1 << 32, 0, 0, 0)]
    writer = start(*CODE_RECORDS)
    for raw in bad:
        writer.add(definitions([stack(1, 0), record(12, 1, 'lost'), raw]))
    writer.add_events([Chunk(1, samples_of(5, (1, 7)), 0)]).seal()
    damage = [(writer.starts[i], writer.starts[i + 1] - writer.starts[i]) for i in range(1, len(bad) + 1)]
    return Sample(writer.data, writer.expected(), damage)


def three_blocks(seal=True):
    rng, writer, q = random.Random(5), start(), 1000
    for number in range(3):
        made = polls(rng, q, 30)
        q = made[-1][0]
        writer.add_events([Chunk(number + 1, made, 0)])
    return writer.seal() if seal else writer


def unsealed():
    return done(three_blocks(seal=False), sealed=False)


def cut_in_block():
    writer = three_blocks()
    cut = writer.starts[3] + 70
    return Sample(writer.data[:cut], writer.expected({2}), [(writer.starts[3], 70)], sealed=False)


def cut_in_block_header():
    writer = three_blocks()
    cut = writer.starts[2] + 13
    return Sample(writer.data[:cut], writer.expected({1, 2}), [(writer.starts[2], 13)], sealed=False)


def cut_in_trailer():
    writer = three_blocks()
    return Sample(writer.data[:-1], writer.expected(), [(len(writer.data) - 24, 23)], sealed=False)


def zero_tail():
    writer = three_blocks(seal=False)
    tail = (writer.starts[3], 5000 - writer.starts[3])
    assert 0 < tail[1]
    return Sample(writer.data[:tail[0]] + bytes(tail[1]), writer.expected({2}), [tail], sealed=False)


def spoil(at, length=1):
    writer = three_blocks()
    data = bytearray(writer.data)
    for i in range(at(writer), at(writer) + length):
        data[i] ^= 0x55
    first, second = writer.starts[2:4]
    return Sample(bytes(data), writer.expected({1}), [(first, second - first)])


def damaged_payload():
    return spoil(lambda writer: writer.starts[2] + 100, 8)


def damaged_magic():
    return spoil(lambda writer: writer.starts[2])


def damaged_length():
    return spoil(lambda writer: writer.starts[2] + 8, 4)


def junk_between():
    """Bytes put between two blocks, with a false beginning of a block in them."""
    writer = three_blocks(seal=False)
    at, junk = writer.starts[2], b'\0\0WBK1 and what follows is no block header at all, whatever it says'
    data = writer.data[:at] + junk + writer.data[at:]
    return Sample(data, writer.expected(), [(at, len(junk))], sealed=False)


def unparsable():
    """Blocks with a right checksum whose payload is nonsense. All records of a definitions block count, or none."""
    writer = start().add_events([Chunk(1, [(1, 4, ())], 0)])
    writer.add(block(2, b'\xff' * 50, 1, 2, 3)).add(definitions([record(9, 'lost', 'x'), b'\x09\x01\x01']))
    writer.add_events([Chunk(1, [(5, 4, ())], 1)]).seal()
    damage = [(writer.starts[i], writer.starts[i + 1] - writer.starts[i]) for i in (2, 3)]
    return Sample(writer.data, writer.expected(), damage)


def damaged_index():
    writer = three_blocks()
    at = struct.unpack_from('<Q', writer.data, len(writer.data) - 16)[0]
    data = bytearray(writer.data)
    data[at + 45] ^= 1
    return Sample(bytes(data), writer.expected(), [(at, len(data) - 24 - at)], sealed=False)


def unparsable_index():
    """An index with a right checksum whose entries are not in order: it is missing, and the blocks are walked."""
    writer = three_blocks(seal=False)
    index = block(3, b''.join(writer.entries[::-1]), len(writer.entries))
    at = len(writer.data)
    return Sample(writer.data + index + trailer(at), writer.expected(), [(at, len(index))], sealed=False)


def index_leaves_out():
    """A good block that the index does not list is found all the same."""
    writer = three_blocks(seal=False)
    index = block(3, b''.join(writer.entries[:2] + writer.entries[3:]), len(writer.entries) - 1)
    return Sample(writer.data + index + trailer(len(writer.data)), writer.expected())


def damage_before_index():
    """What recovery makes of a file that was damaged in the middle: sealed, and still damaged."""
    writer = three_blocks(seal=False)
    first, second = writer.starts[2:4]
    data = bytearray(writer.data)
    data[first + 60] ^= 1
    index = block(3, b''.join(writer.entries[:2] + writer.entries[3:]), len(writer.entries) - 1, flags=RECOVERED)
    return Sample(bytes(data) + index + trailer(len(data)), writer.expected({1}), [(first, second - first)],
                  recovered=True)


def index_in_the_middle():
    """A writer that was killed between index and trailer, and went on behind."""
    writer = three_blocks(seal=False)
    writer.data += block(3, b''.join(writer.entries), len(writer.entries))
    writer.add_events([Chunk(1, [(10 ** 6, 4, ())], 500)])
    return done(writer.seal())


def trailer_elsewhere():
    """A trailer that does not lead to an index is ignored: no damage, not sealed."""
    writer = three_blocks()
    return Sample(writer.data[:-24] + trailer(writer.starts[0]), writer.expected(), sealed=False)


def trailer_alone():
    return Sample(header() + trailer(64), [], sealed=False)


def wrong_times():
    """A block whose header says other times than its events have is damaged: seeking would pass it by."""
    writer = start().add_events([Chunk(1, [(5, 4, ())], 0)])
    payload, count, first, last = encode([Chunk(1, [(7, 4, ()), (90, 4, ())], 1)])
    writer.add(block(2, payload, count, first + 1, last)).add(block(2, payload, count, first, last - 1))
    writer.add_events([Chunk(1, [(91, 4, ())], 3)])
    damage = [(writer.starts[i], writer.starts[i + 1] - writer.starts[i]) for i in (2, 3)]
    return Sample(writer.data, writer.expected(), damage, sealed=False)


def times_that_wrap():
    """Gaps that add up to more than 64 bits, and come out right modulo 2^64."""
    writer = start()
    payload, count, _, _ = encode([Chunk(1, [(0, 4, ()), (1 << 63, 4, ()), (1 << 64, 4, ())], 0)])
    writer.add(block(2, payload, count, 0, 1 << 63)).add_events([Chunk(1, [(91, 4, ())], 3)])
    return Sample(writer.data, writer.expected(), [(writer.starts[1], writer.starts[2] - writer.starts[1])],
                  sealed=False)


def long_header():
    return done(start(size=200).add_events([Chunk(1, [(1, 4, ())], 0)]).seal())


def equal_times():
    """Events of one stream at one moment, in several chunks and blocks: order of time keeps their stored order."""
    writer, value = start(), 0
    for _ in range(3):
        chunks = []
        for stream in (2, 1, 2):
            chunks.append(Chunk(stream, [(50, 8, (value + i,)) for i in range(3)], value))
            value += 3
        writer.add_events(chunks)
    return done(writer.seal())


def late_first_block():
    """The block that is stored last begins first: threads are drained one after the other."""
    writer = start().add_events([Chunk(1, [(100, 8, (1,)), (200, 8, (2,))], 0)])
    writer.add_events([Chunk(2, [(10, 8, (3,)), (200, 8, (4,))], 0), Chunk(1, [(200, 8, (5,))], 2)])
    return done(writer.seal())


def refused(data):
    return Sample(data, [], sealed=False, refused=True)


def newer_version():
    return refused(three_blocks().data.replace(header(), header(version=2)))


def version_0():
    return refused(three_blocks().data.replace(header(), header(version=0)))


def header_past_the_end():
    return refused(header(size=300)[:200])


def damaged_header():
    data = three_blocks().data
    return refused(data[:40] + b'!' + data[41:])


def cut_in_header():
    return refused(three_blocks().data[:63])


def no_bytes():
    return refused(b'')


SAMPLES = {make.__name__: make for make in (
    plain, empty, header_only, many_chunks, all_columns, extreme_values, all_gaps, escapes, only_escapes, symbols_256,
    samples, replaced_code, unparsable_code, unknown, no_events, long_varints, recovered_header, recovered_index,
    unsealed, cut_in_block, cut_in_block_header,
    cut_in_trailer, zero_tail, damaged_payload, damaged_magic, damaged_length, junk_between, unparsable, damaged_index,
    unparsable_index, index_leaves_out, damage_before_index, index_in_the_middle, trailer_elsewhere, trailer_alone,
    wrong_times, times_that_wrap, long_header, equal_times, late_first_block, version_0, header_past_the_end, newer_version, damaged_header, cut_in_header, no_bytes)}


def main(argv=None):
    parser = argparse.ArgumentParser(description='Write sample segments and the dumps that a reader must make of them.')
    parser.add_argument('--samples', metavar='DIR', required=True)
    folder = parser.parse_args(argv).samples
    os.makedirs(folder, exist_ok=True)
    table = []
    for name, make in SAMPLES.items():
        sample = make()
        with open(os.path.join(folder, name + '.weft'), 'wb') as file:
            file.write(sample.data)
        with open(os.path.join(folder, name + '.dump'), 'w') as file:
            file.writelines(line + '\n' for line in sample.dump)
        missing = sum(length for _, length in sample.damage)
        code = 2 if sample.refused else 3 if sample.damage else 0
        table.append((name, code, len(sample.dump), len(sample.damage), missing, int(sample.sealed),
                      int(sample.recovered)))
    with open(os.path.join(folder, 'samples.txt'), 'w') as file:
        file.writelines(' '.join(map(str, row)) + '\n' for row in table)
    return 0
