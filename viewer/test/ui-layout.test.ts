// SPDX-License-Identifier: Apache-2.0
// Where lanes are, and how slices become rectangles.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Lane, Slices, TraceInfo } from '../src/api.ts';
import { buildLods, sharedFrames } from '../src/engine/lod.ts';
import { clamp } from '../src/ui/actions.ts';
import { areApart } from '../src/ui/apart.ts';
import { boxAt, layout, stripsOf, visible } from '../src/ui/timeline/layout.ts';
import type { LaneBox } from '../src/ui/timeline/layout.ts';
import { roomBetween } from '../src/ui/timeline/draw.ts';
import { LEAST_PX, aligned, hit, newRects, pack } from '../src/ui/timeline/lod.ts';

function lane(id: number, name: string, group: string): Lane {
  return { id, recording: 0, threadId: id + 10, workerId: -1, group, name, tid: 100 + id };
}
const LANES = [lane(0, 'demo/0', 'demo'), lane(1, 'demo/1', 'demo'), lane(2, 'janitor', 'other threads')];
const none = { pinned: [], collapsed: [], laneFilter: '' };
const layers = () => ({ poll: 1, wait: 1 });

test('lanes are below their group, without gaps', () => {
  const { boxes, height } = layout(LANES, layers, [], none);
  assert.deepEqual(
    boxes.map((b) => b.key),
    ['g:demo', 'l:0', 'l:1', 'g:other threads', 'l:2'],
  );
  let y = 0;
  for (const box of boxes) {
    assert.equal(box.y, y);
    y += box.h;
  }
  assert.equal(y, height);
  assert.equal(boxAt(boxes, boxes[2].y)?.key, 'l:1');
  assert.deepEqual(visible(boxes, boxes[1].y + 1, boxes[1].y + 2), [boxes[1]]);
});

test('a pinned lane is at the top and nowhere else', () => {
  const { boxes } = layout(LANES, layers, [], { ...none, pinned: [2] });
  assert.deepEqual(
    boxes.map((b) => b.key),
    ['g:Pinned', 'l:2', 'g:demo', 'l:0', 'l:1'],
  );
});

test('a filter and a folded group leave lanes out', () => {
  assert.deepEqual(
    layout(LANES, layers, [], { ...none, laneFilter: 'JANI' }).boxes.map((b) => b.key),
    ['g:other threads', 'l:2'],
  );
  assert.deepEqual(
    layout(LANES, layers, [], { ...none, collapsed: ['g:demo'] }).boxes.map((b) => b.key),
    ['g:demo', 'g:other threads', 'l:2'],
  );
});

test('a folded lane is lower and keeps one strip', () => {
  const open = layout(LANES, layers, [], none).boxes[1] as LaneBox;
  const folded = layout(LANES, layers, [], { ...none, collapsed: ['l:0'] }).boxes[1] as LaneBox;
  assert.ok(folded.h < open.h);
  assert.deepEqual(
    folded.strips.map((s) => s.layer),
    ['poll'],
  );
});

test('a lane without polls shows what it has', () => {
  assert.deepEqual(
    stripsOf({ offcpu: 1, flame: 3 }, false).strips.map((s) => s.layer),
    ['offcpu', 'flame'],
  );
});

test('outer frames that all share are left out but for the last of them', () => {
  const frames = (depth: number[], label: number[]): number => {
    const times = Float64Array.from(depth, (_, i) => i);
    const [row, kind] = [new Uint32Array(depth.length), new Uint8Array(depth.length)];
    return sharedFrames(buildLods({
      n: depth.length, beginNs: times, endNs: times, row, kind, label: Uint32Array.from(label),
      depth: Uint8Array.from(depth),
    }));
  };
  // clone, main, then a or b
  assert.equal(frames([0, 1, 2, 0, 1, 2], [1, 2, 3, 1, 2, 4]), 1);
  assert.equal(frames([0, 0], [1, 2]), 0);
  assert.equal(frames([], []), 0);
  assert.equal(frames([0, 1, 0, 1], []), 0, 'of a preview nothing is known');
});

test('recordings are apart when most of the time between them was not recorded', () => {
  const of = (...recordings: [number, number][]): TraceInfo => ({
    ...({} as TraceInfo),
    fromNs: 0,
    toNs: Math.max(...recordings.map(([at, span]) => at + span)),
    recordings: recordings.map(([shiftNs, spanNs]) => ({ name: '', shiftNs, spanNs })),
  });
  assert.equal(areApart(of([0, 5])), false, 'one alone');
  assert.equal(areApart(of([0, 5], [3, 5])), false);
  assert.equal(areApart(of([0, 5], [100, 5])), true);
  assert.equal(areApart(of([0, 5], [1, 5], [2, 3], [100, 1])), true, 'what overlaps counts once');
  assert.equal(areApart(of([0, 50], [100, 5])), false);
});

function slices(list: [number, number, number?][]): Slices {
  const n = list.length;
  return {
    n,
    beginNs: Float64Array.from(list, (s) => s[0]),
    endNs: Float64Array.from(list, (s) => s[1]),
    row: Uint32Array.from(list, (_, i) => i),
    count: new Uint32Array(n).fill(1),
    kind: new Uint8Array(n),
    depth: Uint8Array.from(list, (s) => s[2] ?? 0),
    label: new Uint32Array(n),
  };
}

test('nothing is narrower than three pixels', () => {
  const r = pack(
    slices([
      [0, 1],
      [500, 501],
      [900, 1000],
    ]),
    0,
    10,
    100,
    newRects(),
  );
  assert.equal(r.n, 3);
  for (let i = 0; i < r.n; i++) assert.ok(r.x1[i] - r.x0[i] >= LEAST_PX, `${i}`);
});

test('of many in three pixels the longest is the one', () => {
  const r = pack(
    slices([
      [0, 1],
      [2, 9],
      [10, 11],
    ]),
    0,
    10,
    100,
    newRects(),
  );
  assert.equal(r.n, 1);
  assert.equal(r.src[0], 1);
  assert.equal(r.count[0], 3);
});

test('depths do not melt into each other', () => {
  assert.equal(
    pack(
      slices([
        [0, 1, 0],
        [0, 1, 1],
      ]),
      0,
      10,
      100,
      newRects(),
    ).n,
    2,
  );
});

test('cells stay in their place in time when the view moves by a part of a pixel', () => {
  const s = slices([
    [1000, 1001],
    [1031, 1032],
    [1075, 1076],
  ]);
  const there = pack(s, 0, 10, 200, newRects());
  const moved = pack(s, 4, 10, 200, newRects());
  assert.equal(there.n, moved.n);
  for (let i = 0; i < there.n; i++) assert.ok(Math.abs(there.x0[i] - moved.x0[i] - 0.4) < 1e-3);
});

test('the asked range is on the grid of cells and covers the view', () => {
  const { from, to, pixels } = aligned(1234.5, 11234.5, 1000);
  const cell = 10 * LEAST_PX;
  assert.equal(from % cell, 0);
  assert.ok(from <= 1234.5 && to >= 11234.5);
  assert.ok(Math.abs((to - from) / pixels - cell) < 1e-9);
});

test('a click finds a narrow one over a wide one', () => {
  const r = pack(
    slices([
      [0, 1000, 0],
      [480, 481, 1],
    ]),
    0,
    10,
    100,
    newRects(),
  );
  assert.equal(r.src[hit(r, 48)], 1);
  assert.equal(r.src[hit(r, 80)], 0);
  assert.equal(hit(pack(slices([]), 0, 1, 10, newRects()), 5), -1);
});

test('a view stays inside the trace and is never shorter than 20 ns', () => {
  assert.deepEqual(clamp(-1e9, 1e12, 0, 1e9), [-2e7, 1.02e9]);
  const [from, to] = clamp(500, 501, 0, 1e9);
  assert.equal(to - from, 20);
  const late = clamp(2e9, 2.1e9, 0, 1e9);
  assert.equal(late[1], 1.02e9);
});

test('text is written where no bar is, or nowhere', () => {
  const bars = { ...newRects(4), n: 2 };
  bars.x0.set([50, 200]);
  bars.x1.set([60, 210]);
  assert.equal(roomBetween(bars, 0, 300, 40), 0);
  assert.equal(roomBetween(bars, 0, 300, 100), 64);
  assert.equal(roomBetween(bars, 190, 300, 80), 214);
  assert.equal(roomBetween(bars, 0, 300, 150), null);
});
