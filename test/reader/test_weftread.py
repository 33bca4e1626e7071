#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of weftread.py: samples, each rule of the format broken once, and mutations with a fixed seed."""

import contextlib
import io
import json
import os
import random
import struct
import sys
import tempfile
import unittest
import unittest.mock

import zstandard

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import weftread
import weftsamples
import weftwrite as w
from weftblock import EventsBlock
from weftread import NotASegment, Segment


def dump(segment, order='events'):
    out = io.StringIO()
    weftread.dump(getattr(segment, order)(), out)
    return out.getvalue().splitlines()


def run(*arguments):
    """The command's exit code, output and messages."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = weftread.main(list(arguments))
    return code, out.getvalue(), err.getvalue()


class Samples(unittest.TestCase):
    def test_each_sample_gives_its_dump_and_damage(self):
        for name, make in weftsamples.SAMPLES.items():
            with self.subTest(name):
                sample = make()
                if sample.refused:
                    self.assertRaises(NotASegment, Segment, sample.data)
                    continue
                segment = Segment(sample.data)
                self.assertEqual(dump(segment), sample.dump)
                self.assertEqual([(d.offset, d.length) for d in segment.damage], sample.damage)
                self.assertEqual((segment.sealed, segment.recovered), (sample.sealed, sample.recovered))
                self.assertEqual(segment.summary()['events'], len(sample.dump))

    def test_definitions(self):
        segment = Segment(weftsamples.plain().data)
        self.assertEqual(segment.strings, {7: 'grün'})
        self.assertEqual(segment.locations, {5: (42, 'handle_request', 'src/main.c')})
        self.assertEqual((segment.runtimes, segment.workers), ({0: 'main'}, {0: (0, 0)}))
        self.assertEqual(segment.threads[1], (4001, 0, 100, 'worker-1'))
        self.assertIsNone(segment.threads[2].worker)
        self.assertEqual(segment.kinds[9], ('wake', (('task', 6, ''), ('worker', 7, ''))))
        self.assertEqual(segment.facts, {'weft.version': '0.1', 'clock.hz': '1'})
        self.assertEqual(segment.clocks, [(900, 10 ** 12, 17 * 10 ** 17)])
        self.assertEqual(segment.losses, [(1, 2, 5, 10, 20)])
        self.assertEqual(segment.definitions['strings'], {7: 'grün'})
        self.assertEqual(segment.warnings, [])

    def test_later_definition_replaces(self):
        segment = Segment(weftsamples.unknown().data)
        self.assertEqual(segment.threads[1], (1, None, 0, 'a'))
        self.assertEqual(segment.facts['key'], 'value')

    def test_modules_stacks_and_symbols(self):
        segment = Segment(weftsamples.samples().data)
        self.assertEqual(segment.modules[1], (1, 0x555555555000, 0x555555560000, 0x1000,
                                              '000102030405060708090a0b0c0d0e0f10111213', '/usr/bin/grün'))
        self.assertEqual(segment.stacks[2], (65, ((9, 0xffffffff81000010), (9, 0xffffffff81ffffff))))
        self.assertEqual((len(segment.stacks[7].frames), segment.stacks[8].frames), (1024, ()))
        self.assertEqual(segment.symbol(1, 0x10), (('inner<int>::operator()', '/src/grün.cc', 42, 1),
                                                   ('', '/src/grün.cc', 50, 1), ('main', '', 0, 0)))
        self.assertEqual(segment.symbol(1, 0x400), (('main', '', 9, 0),))
        self.assertEqual((segment.symbol(2, 0x1234), segment.symbol(2, 0x1235)), ((), None))
        self.assertEqual(segment.warnings, [])
        samples = [fields for _, _, kind, fields in segment.events() if kind == 13]
        self.assertEqual(samples[1], (1, 2, 10101010, 3, 2))
        segment = Segment(weftsamples.replaced_code().data)
        self.assertEqual((segment.modules[1].kind, segment.stacks[1], segment.stacks[7].flags), (4, (0, ()), 64))
        self.assertEqual(segment.symbol(1, 0x10), (('last', 'last', 4, 4),))
        self.assertEqual(segment.symbol(1, 0x400)[0].function, 'last')
        segment = Segment(weftsamples.unparsable_code().data)
        self.assertEqual((segment.stacks[1].flags, segment.names), (1, {}))

    def test_every_prefix_of_a_file_reads_up_to_the_cut(self):
        writer = weftsamples.three_blocks()
        whole = writer.expected()
        for cut in range(64, len(writer.data)):
            segment = Segment(writer.data[:cut])
            got = dump(segment)
            self.assertEqual(got, whole[:len(got)])
            self.assertEqual(bool(segment.damage), cut not in writer.starts + [struct.unpack(
                '<Q', writer.data[-16:-8])[0], len(writer.data) - 24])

    def test_order_of_time(self):
        chunks = [w.Chunk(2, [(5, 4, ()), (9, 3, (1, 1)), (9, 4, ())], 0), w.Chunk(1, [(9, 4, ()), (10, 4, ())], 0)]
        segment = Segment(w.Writer().add_events(chunks).add_events([w.Chunk(1, [(10, 3, (2, 2))], 2)]).seal().data)
        self.assertEqual(dump(segment, 'events_by_time'),
                         ['5 2 4', '9 1 4', '9 2 3 1 1', '9 2 4', '10 1 4', '10 1 3 2 2'])
        values = [line.split()[3] for line in dump(Segment(weftsamples.equal_times().data), 'events_by_time')]
        self.assertEqual(values, '3 4 5 12 13 14 21 22 23 0 1 2 6 7 8 9 10 11 15 16 17 18 19 20 24 25 26'.split())

    def test_every_gap_class_is_in_the_samples(self):
        segment = Segment(weftsamples.all_gaps().data)
        block = next(b for b in segment.blocks if b.type == 2)
        classes = set(EventsBlock(segment._payload(block), block.count)._classes)
        self.assertEqual(classes, set(range(252)))


def edited(change, packed=False, chunks=None, **options):
    """A segment with one events block whose payload went through a change; the checksum is right."""
    chunks = chunks or [w.Chunk(1, [(100, 3, (7, 1)), (120, 4, ()), (121, 3, (8, 1))], 0)]
    payload, count, first, last = w.encode(chunks, packed=packed, **options)
    changed = change(payload)
    return w.Writer().add(w.block(w.EVENTS, changed, count, first, last)).data


class Rules(unittest.TestCase):
    """Each rule broken once. The payload below is taken apart by hand so that each byte can be named."""

    GOOD = {
        'quantum': b'\x02', 'chunks': b'\x01', 'chunk': b'\x01\x03\x05\x03\x00\x0a', 'symbols': b'\x03',
        'symbol': b'\x03\x00\x04\x08\x04\x01', 'columns': b'\x02', 'column0': b'\x03\x00\x00\x00\x01\x01',
        'column1': b'\x03\x01\x01\x01\x01\x00', 'mantissa': b'\x01\x01', 'size': b'\x0c', 'packed': b'\x00',
        'prefixes': b'\x00\x01\x02', 'dictionary': b'\x07' + bytes(7), 'values': b'\x04',
    }
    HEADER = {'count': 3, 'first': 20, 'last': 40}

    def read(self, header=None, **parts):
        payload = b''.join({**self.GOOD, **parts}.values())
        return Segment(w.Writer().add(w.block(w.EVENTS, payload, **{**self.HEADER, **(header or {})})).data)

    def test_good(self):
        segment = self.read()
        self.assertEqual(segment.damage, [])
        self.assertEqual(dump(segment), ['20 1 3 7 2', '38 1 4', '40 1 4'])

    def damaged(self, why, **parts):
        segment = self.read(**parts)
        self.assertEqual(len(segment.damage), 1, parts)
        self.assertIn(why, segment.damage[0].why)
        self.assertEqual((dump(segment), segment.count), ([], 0))

    def test_header(self):
        self.damaged('the header says', header={'count': 4})
        self.damaged('more chunks', header={'count': 0})
        self.damaged('the header says', header={'first': 21})
        self.damaged('the header says', header={'last': 39})

    def test_chunks(self):
        self.damaged('quantum', quantum=b'\x00')
        self.damaged('quantum', quantum=w.varint(10 ** 9 + 1))
        self.damaged('events in the chunks', chunk=b'\x01\x02\x05\x02\x00\x0a')
        self.damaged('without events', chunks=b'\x02', chunk=b'\x01\x03\x05\x03\x00\x0a\x01\x00\x05\x00\x00\x0a')
        self.damaged('32 bits', chunk=w.varint(1 << 32) + b'\x03\x05\x03\x00\x0a')
        self.damaged('32 bits', chunk=b'\x01\x03' + w.varint(1 << 32) + b'\x03\x00\x0a')
        self.damaged('64 bits', chunk=b'\x01\x03\x05\x03\x00' + b'\xff' * 9 + b'\x02')
        self.damaged('64 bits', chunk=b'\x01\x03\x05\x03\x00' + b'\xff' * 9 + b'\x01')

    def test_symbols(self):
        self.damaged('257 symbols', symbols=b'\x81\x02')
        self.damaged('two escape', symbol=b'\x03\x00\x00\x08\x00\x01')
        self.damaged('class 252', symbol=b'\x03\x00\x04\x08\x00\xfc')
        self.damaged('class 252', symbol=b'\x03\x00\x04\x08\x04\xfc')
        self.damaged('kind 65536', symbol=b'\x03\x00\x04\x08\x80\x80\x04\x01')
        self.damaged('first event', symbol=b'\x03\x01\x04\x08\x04\x01')
        self.damaged('prefix', prefixes=b'\x00\x01\x03')

    def test_escapes(self):
        symbol = b'\x03\x00\x04\x08\x00\x01'
        good = self.read(symbol=symbol, size=b'\x0f', prefixes=b'\x00\x01\x02\x04\x00\x01')
        self.assertEqual(dump(good), dump(self.read()))
        self.damaged('escape', symbol=symbol, size=b'\x0f', prefixes=b'\x00\x01\x02\x00\x00\x01')
        self.damaged('escape', symbol=symbol, size=b'\x0f', prefixes=b'\x00\x01\x02\x04\x00\xfc')
        self.damaged('values', symbol=symbol, size=b'\x0f', prefixes=b'\x00\x01\x02\x03\x00\x01')
        self.damaged('ends too early', symbol=symbol)

    def test_columns(self):
        self.damaged('transform 2', column0=b'\x03\x00\x02\x00\x01\x01')
        self.damaged('kind 0', column0=b'\x00\x00\x00\x00\x01\x01')
        self.damaged('field 14', column0=b'\x03\x0e\x00\x00\x01\x01')
        self.damaged('not in order', column0=b'\x03\x01\x00\x00\x01\x01')
        self.damaged('not in order', column1=b'\x03\x02\x01\x01\x01\x00')
        self.damaged('not in order', column1=b'\x03\x00\x01\x01\x01\x00')
        self.damaged('with 2 values', column1=b'\x03\x01\x01\x01\x02\x00', size=b'\x0d', values=b'\x04\x04')
        self.damaged('with 1 values', column1=b'\x07\x00\x01\x01\x01\x00')
        self.damaged('0 values', column1=b'\x07\x00\x01\x01\x00\x00')
        for width, entries in ((0, 0), (0, 2), (2, 1), (8, 1), (9, 0), (255, 0)):
            self.damaged('dictionary entries', column1=bytes([3, 1, 0, width, 1, entries]))
        self.damaged('dictionary entries', column1=b'\x03\x01\x00\x01\x01\x81\x02')
        self.damaged('index out', column1=b'\x03\x01\x00\x01\x01\x01', size=b'\x14', values=bytes(8) + b'\x01')

    def test_lengths(self):
        self.damaged('mantissa', mantissa=b'\x02\x01\x00')
        self.damaged('mantissa', mantissa=b'\x00')
        self.damaged('body of', size=b'\x0b')
        self.damaged('body of', size=b'\x0d')
        self.damaged('body of', size=b'\x20')
        self.damaged('behind the columns', size=b'\x0d', values=b'\x04\x00')
        self.damaged('packing', packed=b'\x02')
        self.damaged('zstd', packed=b'\x01')
        for cut in range(12):
            payload = b''.join(self.GOOD.values())[:-1 - cut]
            self.assertTrue(Segment(w.Writer().add(w.block(w.EVENTS, payload, **self.HEADER)).data).damage)

    def test_zstd_body(self):
        chunks = [w.Chunk(1, [(100, 3, (0, 0)), (101, 4, ()), (101, 3, (0, 0))], 0)]
        body = b'\x00\x01\x00' + bytes(16)
        plain, _, _, _ = w.encode(chunks, packed=False)
        self.assertEqual(plain[-len(body):], body)

        def with_frame(frame):
            return Segment(edited(lambda p: p[:-len(body) - 1] + b'\x01' + frame, chunks=chunks))
        compress = zstandard.ZstdCompressor
        self.assertEqual(with_frame(compress().compress(body)).damage, [])
        self.assertEqual(with_frame(compress(write_checksum=True).compress(body)).damage, [])
        self.assertEqual(with_frame(compress(write_content_size=False).compress(body)).damage, [])
        for frame in (compress().compress(body + b'\0'), compress().compress(body[:-1]), b'', body,
                      compress(write_content_size=False).compress(body + b'\0'),
                      compress(write_content_size=False).compress(body[:-1]),
                      compress().compress(body) + b'\0', compress().compress(body)[:-1],
                      compress(write_checksum=True).compress(body)[:-1] + b'!', compress().compress(body) * 2):
            self.assertEqual(len(with_frame(frame).damage), 1)

    def test_bomb_is_refused_before_it_is_unpacked(self):
        bomb = zstandard.ZstdCompressor().compress(bytes(17 << 20))
        segment = Segment(w.Writer().add(w.block(w.DEFINITIONS, bomb, 1, flags=w.ZSTD)).data)
        self.assertEqual(segment.damage[0].why, 'zstd frame of %d bytes' % (17 << 20))
        self.damaged('body of', size=w.varint((16 << 20) + 1), packed=b'\x01')
        self.damaged('262145 events', header={'count': 262145})

    def test_definitions(self):
        def read(payload, count=1, flags=0):
            return Segment(w.Writer().add(w.block(w.DEFINITIONS, payload, count, flags=flags)).data)
        good = w.record(9, 'key', 'value')
        self.assertEqual(read(good).facts, {'key': 'value'})
        sizeless = zstandard.ZstdCompressor(write_content_size=False).compress(good)
        for payload, flags in ((good[:-1], 0), (good + b'\x01', 0), (good[:1] + b'\x08' + good[2:-1], 0), (good, 1),
                               (sizeless, 1), (b'\x01\x00', 0), (w.kind_record(1, 'x', [('f', 1, '')] * 15), 0)):
            segment = read(payload, flags=flags)
            self.assertEqual((len(segment.damage), segment.facts, segment.kinds), (1, {}, {}))
        for payload in (good, b''):
            self.assertIn('the header says 2', read(payload, count=2).warnings[0])
        self.assertTrue(read(w.record(1, 1 << 32, 'x')).damage)
        self.assertFalse(read(good * 4096).damage)
        self.assertIn('too many', read(good * 4097).damage[0].why)
        self.assertEqual(read(w.record(9, b'\xff', 'x')).facts, {'\udcff': 'x'})

    def test_index(self):
        writer = weftsamples.three_blocks(seal=False)

        def read(entries, count=None):
            index = w.block(w.INDEX, b''.join(entries), len(entries) if count is None else count)
            return Segment(writer.data + index + w.trailer(len(writer.data)))
        far = w.varints(2, len(writer.data) - 40, 41, 0, 0, 0)
        for entries, count in ((writer.entries[::-1], None), (writer.entries * 2, None), (writer.entries, 3),
                               (writer.entries[:3] + [b'\x02'], 4), ([far], None),
                               ([w.varints(2, 64, 40, 0, w.WORD, 1)], None)):
            segment = read(entries, count)
            self.assertEqual([d.offset for d in segment.damage], [len(writer.data)])
            self.assertEqual((dump(segment), segment.sealed), (writer.expected(), False))
        for entries in (writer.entries[:-1], writer.entries[1:]):
            segment = read(entries)
            self.assertEqual((segment.damage, segment.sealed, dump(segment)), ([], True, writer.expected()))
            self.assertTrue(any('does not match' in warning for warning in segment.warnings))

    def test_search_behind_damage_ends(self):
        candidate = struct.pack('<4sHHIIQQQ', b'WBK1', 9, 0, 4000, 0, 0, 0, 0)
        good = w.block(9, b'')
        for repeats, found in ((100, 0), (1, 1)):
            segment = Segment(w.header() + b'!' + candidate * repeats + bytes(4000) + good)
            self.assertEqual((len(segment.damage), len(segment.blocks)), (1, found))

    def test_file_header(self):
        for data in (b'', b'WEFTSEG1', bytes(64), w.header(version=2), w.header(version=0), w.header(size=63),
                     w.header()[:-1] + b'!', w.header(size=80)[:70]):
            self.assertRaises(NotASegment, Segment, data)
        self.assertEqual(Segment(w.header(size=80)).damage, [])

    def test_warnings(self):
        chunks = [w.Chunk(1, [(10, 4, ())], 0), w.Chunk(1, [(9, 3, (1,))], 0)]
        records = [w.kind_record(3, 'poll_begin', [('task', 6, ''), ('depth', 1, '')])]
        warnings = Segment(w.Writer().add(w.definitions(records)).add_events(chunks).data).warnings
        for part in ('no thread record', 'goes back in time', 'slot 0 of ring 1 a second time', 'kind 4 is not defined',
                     '1 columns and 2'):
            self.assertTrue(any(part in warning for warning in warnings), part)

    def test_warnings_about_code(self):
        records = weftsamples.some_records() + [weftsamples.stack(1, 0, (5, 1), (0, 2))]
        chunk = w.Chunk(1, weftsamples.samples_of(5, (1, 6), (0, 0)), 0)
        writer = w.Writer().add(w.definitions(records)).add_events([chunk])
        writer.add(w.definitions([weftsamples.stack(6, 0)]))
        self.assertEqual([warning.split(': ', 1)[1] for warning in Segment(writer.data).warnings],
                         ['stack 1 has module 5, which is not defined', 'stack 6 is not defined before it'])

    def test_limits_on_code(self):
        def why(*records):
            damage = Segment(w.Writer().add(w.definitions(records)).data).damage
            return damage[0].why if damage else ''
        one = weftsamples.module(1, 1, 0, 1, 0, b'', '')
        self.assertEqual(why(one * 65536), '')
        self.assertEqual(why(one * 65537), 'too many definitions: modules')
        frames = w.raw_record(13, w.varints(1, 1, 1 << 16) + bytes(4 << 16))
        with unittest.mock.patch.dict(weftread.FRAMES_MAX, symbols=2 << 16):
            self.assertEqual(why(frames * 2), '')
            self.assertEqual(why(frames * 3), 'too many frames: symbols')
        self.assertEqual(why(w.record(11, 1, 0, 1 << 24)), 'the payload ends too early')


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_samples_as_files(self):
        weftsamples.main(['--samples', self.folder])
        with open(os.path.join(self.folder, 'samples.txt')) as table:
            rows = [line.split() for line in table]
        self.assertEqual(len(rows), len(weftsamples.SAMPLES))
        for name, code, *_ in rows:
            path = os.path.join(self.folder, name)
            with open(path + '.dump') as expected:
                got, out, messages = run(path + '.weft', '--dump')
                self.assertEqual((got, out), (int(code), expected.read()))
            self.assertEqual('not a segment' in messages, got == 2)
            self.assertEqual(messages.count('damage: offset '), messages.count('\n') if got == 3 else 0)

    def test_summary(self):
        path = os.path.join(self.folder, 'x')
        with open(path, 'wb') as file:
            file.write(weftsamples.plain().data)
        code, out, messages = run(path, '--summary')
        summary = json.loads(out)
        self.assertEqual((code, messages), (0, ''))
        self.assertEqual(summary['kinds'], {'1': 1, '2': 1, '3': 1, '4': 1, '9': 1})
        self.assertEqual((summary['events'], summary['streams'], summary['damage']), (5, 1, 0))
        self.assertEqual(summary['definitions']['kinds'], len(weftsamples.OWN_KINDS))
        self.assertEqual(run(path)[1], out)

    def test_unreadable(self):
        self.assertEqual(run(self.folder)[0], 2)
        self.assertEqual(run(os.path.join(self.folder, 'none'))[0], 2)


def mutate(rng, data, start):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(start, len(data)) if len(data) > start else start
        length = rng.choice((1, 1, 2, 8, 40))
        change = rng.randrange(6)
        if change == 0:
            data[at:at + 1] = bytes([data[at] ^ 1 << rng.randrange(8)]) if at < len(data) else b''
        elif change == 1:
            data[at:at + 1] = bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))])
        elif change == 2:
            del data[at:at + length]
        elif change == 3:
            data[at:at] = rng.choice((b'WBK1', b'WEFTEND1', b'\xff' * 9 + b'\x01', rng.randbytes(length)))
        elif change == 4:
            data[at:at] = data[start:][at // 2:at // 2 + length * 4]
        else:
            del data[at:]
    return bytes(data)


class Fuzz(unittest.TestCase):
    """Whatever the bytes, a reader says what is missing and gives only events of the right shape."""

    def check(self, data):
        try:
            segment = Segment(data)
        except NotASegment:
            return None
        events = list(segment.events())
        self.assertEqual(len(events), segment.count)
        self.assertEqual(sum(segment.kind_counts.values()), segment.count)
        for time_ns, stream, kind, fields in events:
            self.assertTrue(0 <= time_ns <= w.WORD and 0 < kind < 65536 and len(fields) <= 14)
            self.assertTrue(all(0 <= value <= w.WORD for value in fields))
        end = 0
        for offset, length, why in segment.damage:
            self.assertTrue(end <= offset and length > 0 and why)
            end = offset + length
        self.assertLessEqual(end, len(data))
        covered = 64 + sum(b.size for b in segment.blocks) + sum(d.length for d in segment.damage)
        covered += len(data) - segment._end
        if data[10:12] == b'\x40\0':
            self.assertEqual(covered, len(data))
        return segment

    def small(self):
        names = ('plain', 'samples', 'many_chunks', 'only_escapes', 'extreme_values', 'unknown', 'unparsable',
                 'damaged_payload')
        return [weftsamples.SAMPLES[name]().data for name in names]

    def test_mutated_files(self):
        rng, samples = random.Random(20), self.small()
        for _ in range(2500):
            self.check(mutate(rng, rng.choice(samples), rng.choice((0, 64))))

    def test_mutated_payloads_with_right_checksums(self):
        rng, whole = random.Random(21), []
        for data in self.small():
            for b in Segment(data).blocks:
                payload = data[b.offset + 40:b.offset + b.size]
                if len(payload) < 3000:
                    whole.append((b, payload))
        good = 0
        for _ in range(4000):
            b, payload = rng.choice(whole)
            payload = mutate(rng, payload, 0) if payload else b''
            count = b.count if rng.random() < 0.9 else rng.randrange(1 << 32)
            raw = w.block(b.type, payload, count, b.first_ns, b.last_ns, b.flags)
            segment = self.check(w.header() + raw + weftsamples.block(9, b''))
            self.assertEqual(segment.blocks[-1].type, 9)
            good += not segment.damage
        self.assertGreater(good, 100)

    def test_random_bytes_behind_a_header(self):
        rng = random.Random(22)
        for _ in range(300):
            self.check(w.header() + rng.randbytes(rng.randrange(300)))


if __name__ == '__main__':
    unittest.main()
