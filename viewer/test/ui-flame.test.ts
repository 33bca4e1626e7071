// SPDX-License-Identifier: Apache-2.0
// What can be done to a flame graph keeps its sums.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Flame } from '../src/api.ts';
import { flameRects, neighbour, rectAt } from '../src/ui/flame/layout.ts';
import { topFunction, topStacks } from '../src/ui/flame/summary.ts';
import * as t from '../src/ui/flame/transform.ts';

/** From stacks, outermost first, with their time. */
function flame(stacks: Record<string, number>): Flame {
  const parent = [-1];
  const frame = [0];
  const total = [0];
  const self = [0];
  const count = [0];
  const frames = [{ name: 'all', module: '', file: '', line: 0 }];
  const kids = new Map<string, number>();
  for (const [stack, ns] of Object.entries(stacks)) {
    let at = 0;
    total[0] += ns;
    count[0]++;
    for (const name of stack.split(';')) {
      const key = `${at}/${name}`;
      let next = kids.get(key);
      if (next === undefined) {
        next = parent.push(at) - 1;
        kids.set(key, next);
        const [fn, line] = name.split(':');
        frame.push(frames.push({ name: fn, module: 'm', file: line ? 'f.c' : '', line: Number(line ?? 0) }) - 1);
        total.push(0);
        self.push(0);
        count.push(0);
      }
      at = next;
      total[at] += ns;
      count[at]++;
    }
    self[at] += ns;
  }
  return {
    unit: 'ns',
    parent: Int32Array.from(parent),
    frame: Uint32Array.from(frame),
    total: Float64Array.from(total),
    self: Float64Array.from(self),
    count: Uint32Array.from(count),
    frames,
  };
}

/** The tree as text, so that tests can be read. */
function text(tree: t.Tree, at = 0): string {
  const node = tree.nodes[at];
  const name = tree.functions[node.frame].name;
  const kids = node.children.map((c) => text(tree, c)).join(' ');
  return `${name}=${node.total}${kids ? `(${kids})` : ''}`;
}

const F = flame({ 'main;run;hash': 50, 'main;run;send': 30, 'main;idle': 20 });
const T = t.fromFlame(F);

test('a tree has the sums of the engine', () => {
  assert.equal(text(T), 'all=100(main=100(run=80(hash=50 send=30) idle=20))');
  assert.equal(T.nodes[0].count, 3);
});

test('lines of one function are put together, and can be listed', () => {
  const lined = flame({ 'main;hash:16': 30, 'main;hash:17': 20 });
  assert.equal(text(t.fromFlame(lined)), 'all=50(main=50(hash=50))');
  assert.deepEqual(
    t.lines(lined, 'hash').map((l) => [l.line, l.self]),
    [
      [16, 30],
      [17, 20],
    ],
  );
});

test('focus keeps only what is in a function', () => {
  assert.equal(text(t.focus(T, 'run')), 'all=80(run=80(hash=50 send=30))');
});
test('merge gives the own time of a function to its callers', () => {
  const merged = t.merge(T, 'hash');
  assert.equal(text(merged), 'all=100(main=100(run=80(send=30) idle=20))');
  assert.equal(merged.nodes[t.nodeAt(merged, `main${t.PATH}run`)].self, 50);
});
test('drop leaves out stacks with a function', () => {
  assert.equal(text(t.drop(T, 'send')), 'all=70(main=70(run=50(hash=50) idle=20))');
});
test('inverted, a tree has the same sum and its leaves first', () => {
  assert.equal(text(t.invert(T)), 'all=100(hash=50(run=50(main=50)) send=30(run=30(main=30)) idle=20(main=20))');
});
test('callers are those of the function alone', () => {
  assert.equal(text(t.callers(T, 'run')), 'all=80(run=80(main=80))');
});
test('transforms are done one after the other', () => {
  const both = t.applied(T, [
    { kind: 'drop', name: 'idle' },
    { kind: 'focus', name: 'hash' },
  ]);
  assert.equal(text(both), 'all=50(hash=50)');
});

test('a recursive function is counted once in its total', () => {
  const sums = t.sums(t.fromFlame(flame({ 'f;f;f': 10, 'f;g': 5 })));
  const f = sums.find((s) => s.name === 'f');
  assert.equal(f?.total, 15);
  assert.equal(f?.self, 10);
});

test('a difference shows what is gone', () => {
  const d = t.difference(T, t.fromFlame(flame({ 'main;run;hash': 10, 'main;old': 90 })));
  assert.equal(d.nodes[0].total, 100);
  assert.equal(d.baseTotal, 100);
  const old = d.nodes[t.nodeAt(d, `main${t.PATH}old`)];
  assert.deepEqual([old.total, old.baseTotal], [0, 90]);
});

test('in a difference children never need more room than their parent, however unlike the totals are', () => {
  const d = t.difference(T, t.fromFlame(flame({ 'main;run;hash': 1, 'main;old': 9 })));
  const { rects } = flameRects(d, 0, 0);
  for (const r of rects) assert.ok(r.x1 <= 1 + 1e-9 && r.x0 < r.x1);
  const old = rects.find((r) => d.functions[d.nodes[r.node].frame].name === 'old');
  assert.ok(old && old.x1 - old.x0 > 0.4, 'what is gone is seen');
});

test('a path is found again, and one that is gone leads to the root', () => {
  const at = t.nodeAt(T, `main${t.PATH}run${t.PATH}hash`);
  assert.equal(t.pathText(T, at), `main${t.PATH}run${t.PATH}hash`);
  assert.equal(t.nodeAt(T, `main${t.PATH}gone`), 0);
});

test('rectangles of children fill no more than their parent', () => {
  const { rects, rows } = flameRects(T, 0, 0);
  assert.equal(rows, 4);
  const hash = rectAt(rects, 0.4, 3);
  assert.ok(hash && Math.abs(hash.x1 - hash.x0 - 0.5) < 1e-9);
  assert.equal(rectAt(rects, 0.9, 3), undefined);
});
test('a zoomed node and what is above it fill the width', () => {
  const run = t.nodeAt(T, `main${t.PATH}run`);
  const { rects } = flameRects(T, run, 0);
  assert.deepEqual(
    rects.filter((r) => r.row <= 2).map((r) => [r.x0, r.x1]),
    [
      [0, 1],
      [0, 1],
      [0, 1],
    ],
  );
});
test('bare, a graph begins with the node that fills the width', () => {
  const run = t.nodeAt(T, `main${t.PATH}run`);
  const { rects } = flameRects(T, run, 0, true);
  assert.deepEqual([rects[0].node, rects[0].row], [run, 0]);
  assert.ok(rects.every((r) => r.node !== 0));
});
test('arrow keys walk the tree and stop at its ends', () => {
  const main = neighbour(T, 0, 'ArrowDown');
  const run = neighbour(T, main, 'ArrowDown');
  assert.equal(T.functions[T.nodes[neighbour(T, run, 'ArrowRight')].frame].name, 'idle');
  assert.equal(neighbour(T, run, 'ArrowLeft'), run);
  assert.equal(neighbour(T, 0, 'ArrowUp'), 0);
});

test('the heaviest function and stack of a poll are named', () => {
  assert.equal(topFunction(F), 'hash');
  assert.deepEqual(
    topStacks(F, 1).map((s) => s.frames.map((f) => f.name)),
    [['hash', 'run', 'main']],
  );
  assert.equal(topFunction(flame({})), '');
});
