// SPDX-License-Identifier: Apache-2.0
// Numbers as text, keys, order of tables, buckets of lengths.
import assert from 'node:assert/strict';
import test from 'node:test';
import { commandFor } from '../src/ui/keys.ts';
import { byUnit, clock, count, duration, lockName, moment, niceStep, share } from '../src/ui/format.ts';
import { bucketOf, histogram, lowerEdge } from '../src/ui/lists/buckets.ts';
import { sorted } from '../src/ui/lists/grid.tsx';
import { at } from '../src/ui/lists/report.tsx';
import { slotOf } from '../src/ui/theme.ts';

test('lengths have three digits that count', () => {
  assert.deepEqual([0, 5, 999, 1000, 30_800, 50_041_296, 999_960_000, 4.04e9, 123e9].map(duration), [
    '0 ns',
    '5 ns',
    '999 ns',
    '1.00 us',
    '30.8 us',
    '50.0 ms',
    '1.00 s',
    '4.04 s',
    '123 s',
  ]);
  assert.equal(duration(NaN), 'not measured');
});
test('moments have the digits of their step', () => {
  assert.equal(moment(1_052_254_356), '+1.052 s');
  assert.equal(moment(1_052_254_356, 1000), '+1.052254 s');
  assert.equal(moment(-5e8), '-0.500 s');
});
test('wall-clock time does not lose its last digits', () => {
  const start = Date.UTC(2026, 10, 16, 22, 3, 14) * 1e6;
  assert.equal(clock(1_500_000_000, start, 1e9), '22:03:15');
  assert.equal(clock(1_500_000_000, start, 1e6), '22:03:15.500');
});
test('counts, shares, units and steps', () => {
  assert.equal(count(142448), '142,448');
  assert.equal(share(1, 3), '33 %');
  assert.equal(share(1, 40), '2.5 %');
  assert.equal(share(1, 0), '');
  assert.equal(byUnit(NaN, 'ns'), '');
  assert.deepEqual([1, 3, 11, 70].map(niceStep), [1, 5, 20, 100]);
});

const press = { key: '', code: '', ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
test('keys that move are by place, the others by what they write', () => {
  assert.equal(commandFor({ ...press, key: 'z', code: 'KeyW' })?.name, 'Zoom in'); // AZERTY
  assert.equal(commandFor({ ...press, key: 'w', code: 'KeyZ' }), undefined);
  assert.equal(commandFor({ ...press, key: '/', code: 'Digit7', shiftKey: true })?.name, 'Find'); // German
  assert.equal(commandFor({ ...press, key: 'P', code: 'KeyP', ctrlKey: true, shiftKey: true })?.name, 'All commands');
  assert.equal(commandFor({ ...press, key: 'f', code: 'KeyF', ctrlKey: true }), undefined);
  assert.equal(commandFor({ ...press, key: 'f', code: 'KeyF', altKey: true }), undefined);
});

test('what was not measured is last in both orders', () => {
  assert.deepEqual(
    sorted([2, NaN, 1], (x) => x, true),
    [2, 1, NaN],
  );
  assert.deepEqual(
    sorted([2, NaN, 1], (x) => x, false),
    [1, 2, NaN],
  );
});
test('a null on the way through the report is no error', () => {
  assert.equal(at({ a: { b: null } }, 'a.b.c'), undefined);
  assert.equal(at({ a: [{ b: 1 }] }, 'a.0.b'), 1);
});

test('a length is in the bucket whose edges are around it', () => {
  for (const ns of [100, 101, 999, 1000, 12_345, 50_041_296]) {
    const b = bucketOf(ns);
    assert.ok(lowerEdge(b) <= ns * (1 + 1e-9) && ns < lowerEdge(b + 1), `${ns}`);
  }
});
test('a histogram counts everything once, small locations as others', () => {
  const h = histogram([100, 200, 200, 5e7], (i) => ['a', 'b', 'c', 'd'][i], 2);
  let sum = 0;
  for (const list of h.counts.values()) sum += list.reduce((a, b) => a + b, 0);
  assert.equal(sum, 4);
  assert.deepEqual([...h.counts.keys()], ['d', 'b', 'others']);
});
test('the first nine names have nine colours, and keep them', () => {
  const names = Array.from({ length: 9 }, (_, i) => `location ${i}`);
  const slots = names.map(slotOf);
  assert.equal(new Set(slots).size, 9);
  assert.deepEqual(names.map(slotOf), slots);
});

test('a lock is called by its symbol, or by its name where the symbol is an offset', () => {
  assert.equal(lockName('cache.lock', 'pthread_mutex_lock'), 'cache.lock');
  assert.equal(lockName('server.2+0x30c0', 'cache_lock'), 'cache_lock');
  assert.equal(lockName('server.2+0x30c0', ''), 'server.2+0x30c0');
  assert.equal(lockName('', 'lock'), 'lock');
});
