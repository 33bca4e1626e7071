#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the C reader with the second one: compare.py WEFT samples|files|covers|damage PATH...

samples DIR    the samples of weftwrite.py, with what is known of them
files FILE...  events in both orders, definitions, losses, facts and clocks
covers FILE... fails unless the files have what a comparison of readers needs: escapes, losses, all forms of columns
damage FILE... copies of the files, cut and spoiled with a fixed seed: the same events and the same missing bytes
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import weftread

CODES = {0: 0, 3: 3, 2: 1}  # exit codes of weftread.py and of weft inspect


class Differ(Exception):
    pass


def same(what, c, python):
    if c != python:
        raise Differ('%s: C has %s, the second reader %s' % (what, c, python))


def inspect(weft, path, *options):
    run = subprocess.run([weft, 'inspect', *options, path], capture_output=True, check=False)
    return run.returncode, run.stdout


def c_summary(weft, path):
    code, out = inspect(weft, path, '--json')
    return code, json.loads(out)['segments'][0] if code != 1 else None


def lines(events):
    return ''.join(' '.join(map(str, (*event[:3], *event[3]))) + '\n' for event in events).encode()


def compare_events(weft, path, segment, orders=('stored', 'time')):
    code = 3 if segment.damage else 0
    for order in orders:
        events = segment.events() if order == 'stored' else segment.events_by_time()
        got, out = inspect(weft, path, '--dump', '--order', order)
        same('exit code of --dump', got, code)
        expected = lines(events)
        if out != expected:
            pairs = enumerate(zip(out.splitlines(), expected.splitlines()))
            where = next((i for i, (a, b) in pairs if a != b), min(out.count(b'\n'), expected.count(b'\n')))
            raise Differ('events in %s order differ from event %d on' % (order, where))


def compare_summary(weft, path, segment, damage_only=False):
    code, c = c_summary(weft, path)
    same('exit code', code, 3 if segment.damage else 0)
    for key, value in (('events_read', segment.count), ('sealed', segment.sealed), ('recovered', segment.recovered)):
        same(key, c[key], value)
    same('missing bytes', c['damage']['missing_bytes'], sum(damage.length for damage in segment.damage))
    same('whether there is damage', c['damage']['places'] > 0, bool(segment.damage))
    if segment.damage:
        same('the first damaged place', c['damage']['first_offset'], segment.damage[0].offset)
    if not damage_only:
        compare_definitions(c, segment)


TYPES = {1: 'u64', 2: 'i64', 3: 'f64', 4: 'bool', 5: 'string', 6: 'task', 7: 'worker', 8: 'location', 9: 'stack'}
MODULE_KINDS = {1: 'file', 2: 'vdso', 3: 'kernel', 4: 'code'}
STACK_FLAGS = ['complete', 'cut', 'lost', 'frame pointers', 'signal', 'no code', 'kernel', 'early']


def compare_definitions(c, segment):
    same('recording', c['recording'], segment.header.recording)
    same('number', c['sequence'], segment.header.number)
    same('begin', (c['start_mono_ns'], c['start_real_ns']), (segment.header.mono_ns, segment.header.real_ns))
    same('facts', c['facts'], segment.facts)
    same('strings', {s['id']: s['text'] for s in c['strings']}, segment.strings)
    same('locations', {s['id']: (s['line'], s['name'], s['file']) for s in c['locations']}, segment.locations)
    same('runtimes', {s['id']: s['name'] for s in c['runtimes']}, segment.runtimes)
    same('workers', {s['id']: (s['runtime'], s['index']) for s in c['workers']}, segment.workers)
    threads = {s['thread_id']:
               (s['tid'], s['worker'], s['first_ns'] if isinstance(s['first_ns'], int) else 0, s['name'])
               for s in c['threads']}
    same('threads', threads, segment.threads)
    kinds = {s['kind']: (s['name'], tuple((f['name'], f['type'], f['unit']) for f in s['fields'])) for s in c['kinds']}
    for kind, (name, fields) in segment.kinds.items():
        same('kind %d' % kind, kinds[kind], (name, tuple((f.name, TYPES.get(f.type, '?'), f.unit) for f in fields)))
    counts = {s['kind']: s['events'] for s in c['kinds'] if s['events']}
    same('events of each kind', counts, dict(segment.kind_counts))
    same('clocks', [tuple(s.values()) for s in c['clocks']], segment.clocks)
    losses = [(s['thread_id'], s['from_ns'], s['to_ns']) for s in c['losses']]
    same('losses', losses, [(loss.stream, loss.from_ns, loss.to_ns) for loss in segment.losses])
    counted = [s.get('events', s.get('threads')) for s in c['losses']]
    counted = [count for count in counted if count is not None]
    same('lost events', counted, [loss.count for loss in segment.losses if loss.reason not in (4, 5)])
    compare_code(c, segment)


def compare_code(c, segment):
    modules = {s['id']: (s['kind'], *(int(s[key], 16) for key in ('start', 'end', 'offset')), s['build_id'] or '',
                         s['path']) for s in c['modules']}
    same('modules', modules, {ident: (MODULE_KINDS.get(module.kind, '?'), *module[1:])
                              for ident, module in segment.modules.items()})
    stacks = {s['id']: (s['flags'], s['frames']) for s in c['stacks']}
    same('ids of stacks', sorted(stacks), sorted(segment.stacks))
    for ident, stack in segment.stacks.items():
        flags = [name for bit, name in enumerate(STACK_FLAGS) if stack.flags >> bit & 1]
        same('stack %d' % ident, stacks[ident], (flags, ['%d+%#x' % frame for frame in stack.frames]))
    symbols = {(s['module'], int(s['offset'], 16)): tuple((f['function'], f['file'], f['line'], f['inlined'])
                                                          for f in s['frames']) for s in c['symbols']}
    same('places of symbols', sorted(symbols), sorted(segment.symbols))
    for place in segment.symbols:
        frames = tuple((*f[:3], bool(f.inlined)) for f in segment.symbol(*place))
        same('symbol at %d, %d' % place, symbols[place], frames)
    samples = [fields for _, _, kind, fields in segment.events() if kind == 13 and len(fields) == 5]
    same('samples', (c['samples']['count'], c['samples']['weight_ns'], c['samples']['with_kernel_stack']),
         (len(samples), sum(fields[2] for fields in samples) & weftread.WORD, sum(fields[1] > 0 for fields in samples)))


def compare_file(weft, path):
    segment = weftread.Segment(path)
    compare_events(weft, path, segment)
    compare_summary(weft, path, segment)
    return segment


def samples(weft, folder):
    with open(os.path.join(folder, 'samples.txt')) as table:
        rows = [line.split() for line in table]
    for name, code, *_ in rows:
        path = os.path.join(folder, name + '.weft')
        with open(os.path.join(folder, name + '.dump'), 'rb') as file:
            expected = file.read()
        try:
            got, out = inspect(weft, path, '--dump')
            same('exit code', got, CODES[int(code)])
            same('dump', out, expected)
            if int(code) != 2:
                compare_file(weft, path)
        except Differ as differ:
            raise Differ('%s: %s' % (name, differ)) from None
    print('%d samples: the same' % len(rows))


def files(weft, *paths):
    for path in paths:
        try:
            segment = compare_file(weft, path)
        except Differ as differ:
            raise Differ('%s: %s' % (path, differ)) from None
        if segment.damage or segment.warnings:
            raise Differ('%s: %s %s' % (path, segment.damage, segment.warnings))
        print('%s: the same %d events, %d bytes%s' % (os.path.basename(path), segment.count, os.path.getsize(path),
                                                      ', recovered' if segment.recovered else ''))


def covers(_, *paths):
    found, sampled = set(), False
    for path in paths:
        segment = weftread.Segment(path)
        found |= {'loss %d' % loss.reason for loss in segment.losses}
        sampled |= segment.facts.get('sample.engine') in ('timer', 'perf')
        found |= {'stack that is ' + name for stack in segment.stacks.values() for bit, name in enumerate(STACK_FLAGS)
                  if stack.flags >> bit & 1}
        found |= {'module with build id' for module in segment.modules.values() if module.build_id}
        found |= {'samples' for kind in segment.kind_counts if kind == 13}
        for block in segment.blocks:
            if block.type == weftread.EVENTS:
                found |= weftread.EventsBlock(segment._payload(block), block.count).forms()
    wanted = {'loss 1', 'loss 4', 'escapes', 'gap above 2^30', 'dictionary', 'dictionary of differences', 'equal',
              'width 1', 'width 2', 'width 8'}
    if sampled:
        wanted |= {'samples', 'stack that is complete', 'module with build id'}
    if wanted - found:
        raise Differ('the segments do not have: ' + ', '.join(sorted(wanted - found)))
    print('covered: ' + ', '.join(sorted(found)))


def spoiled(rng, data):
    """Copies of a file with what a disk or a network may do to it."""
    for number in range(25):
        yield 'cut %d' % number, data[:rng.randrange(64, len(data))]
    for number in range(50):
        copy = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            copy[rng.randrange(64, len(copy))] ^= 1 << rng.randrange(8)
        yield 'flip %d' % number, bytes(copy)
    for number in range(20):
        at, length = rng.randrange(64, len(data)), rng.choice((1, 40, 4096))
        change = rng.choice((b'', bytes(length), rng.randbytes(length)))
        yield 'change %d' % number, data[:at] + change + data[at + length:]


def damage(weft, *paths):
    rng, total, places = random.Random(7), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, 'copy.weft')
        for path in paths:
            with open(path, 'rb') as file:
                data = file.read()
            for what, bad in spoiled(rng, data):
                with open(copy, 'wb') as file:
                    file.write(bad)
                try:
                    segment = weftread.Segment(bad)
                    compare_events(weft, copy, segment, ('stored',))
                    compare_summary(weft, copy, segment, damage_only=True)
                except Differ as differ:
                    kept = os.path.join(tempfile.gettempdir(), 'differs.weft')
                    os.replace(copy, kept)
                    raise Differ('%s, %s (kept as %s): %s' % (path, what, kept, differ)) from None
                total, places = total + 1, places + len(segment.damage)
    print('%d damaged copies with %d damaged places: the same' % (total, places))


def main(weft, mode, *paths):
    try:
        {'samples': samples, 'files': files, 'covers': covers, 'damage': damage}[mode](weft, *paths)
    except Differ as differ:
        print(differ, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
