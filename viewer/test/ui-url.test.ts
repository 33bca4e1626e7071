// SPDX-License-Identifier: Apache-2.0
// The view in the URL: what goes in comes out, and what is broken is ignored.
import assert from 'node:assert/strict';
import test from 'node:test';
import { defaults } from '../src/ui/state.ts';
import type { View } from '../src/ui/state.ts';
import { decode, decodeItem, decodePart, decodeSelection, encode, encodeSelection } from '../src/ui/url.ts';

const base = defaults(0, 4e9);

test('a view as at first needs no hash', () => {
  assert.equal(encode(base, base), '');
  assert.deepEqual(decode(''), {});
});

test('a view with everything set survives the round trip', () => {
  const view: View = {
    fromNs: 1_052_254_356,
    toNs: 1_102_295_652,
    selection: {
      fromNs: 1,
      toNs: 2_000_000_000,
      recording: 1,
      threadIds: [3, 5],
      workerIds: [0],
      task: 102,
      locationId: 7,
      pollId: 967,
      spanId: '0000000000000066',
      label: { key: 'tenant', value: 'a=b;c&d' },
      minPollNs: 1_000_000,
    },
    item: { kind: 'row', table: 'poll', rowid: 966 },
    panel: 'locks',
    weight: 'wait',
    invert: true,
    transforms: [
      { kind: 'focus', name: 'std::vector<int>::push_back(int&&)' },
      { kind: 'zoom', name: 'all\u0001main' },
    ],
    baseline: { fromNs: 5, toNs: 6 },
    colour: 'location',
    time: 'wall',
    theme: 'dark',
    pinned: [2],
    collapsed: ['g:demo', 'l:3'],
    laneFilter: 'wörker & co',
    search: '<img src=x onerror=alert(1)>',
    marks: [10, 20],
    table: 'wait',
    sql: "select 'a&b' from poll; -- %",
  };
  assert.deepEqual({ ...base, ...decode(`#${encode(view, base)}`) }, view);
});

test('an empty selection of lanes is kept apart from none', () => {
  assert.deepEqual(decodeSelection(encodeSelection({ threadIds: [] })), { threadIds: [] });
  assert.deepEqual(decodeSelection(''), {});
});

test('items of tasks and spans are read, others refused', () => {
  assert.deepEqual(decodeItem('task/0/42'), { kind: 'task', recording: 0, task: 42 });
  assert.deepEqual(decodeItem('span/00ab'), { kind: 'span', span: '00ab' });
  for (const bad of ['', 'poll', 'poll/x', 'poll/-1', 'poll/1/2', '__proto__/x', 'Poll/1', 'task/0/x'])
    assert.equal(decodeItem(bad), null, bad);
});

test('what is broken is ignored and harms nothing else', () => {
  assert.deepEqual(
    decode('#t=5,1&panel=nowhere&weight=cpu&sel=range:x,7;task:y;span:%E0%A4%A&table=A%20b&do=eat:x'),
    {
      weight: 'cpu',
      selection: { toNs: 7 },
    },
  );
});

test('the part of a trace that was asked for stays in the URL', () => {
  for (const part of [{ fromNs: 5, toNs: 17 }, { fromNs: 5 }, { toNs: 17 }, {}])
    assert.deepEqual(decodePart(`#${encode({ ...base, panel: 'locks' }, base, part)}`), part);
  assert.deepEqual(decodePart('#part=x,<b>&t=1,2'), {});
});
