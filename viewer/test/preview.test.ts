// SPDX-License-Identifier: Apache-2.0
// The first picture of a large trace, made of parts: the same as that of the whole, without rows.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { NONE } from '../src/api.ts';
import { LAYERS, type TimePart } from '../src/engine/core.ts';
import { slicesOf } from '../src/engine/lod.ts';
import { PREVIEW_EVENTS, joinPreview, previewParts } from '../src/engine/preview.ts';
import { sampleSeries } from '../src/engine/series.ts';
import type { Loaded } from '../src/engine/session.ts';
import type { FileInfo } from '../src/engine/source.ts';
import { newSession, segments, source } from './machine.ts';

const SERVER = path.join(source, 'test/golden/server');

const ALL = { fromNs: 0, toNs: 0 };

async function load(preview?: TimePart): Promise<Loaded> {
  const files = segments(SERVER);
  return (await newSession()).load({ files, names: new Uint8Array(), live: false, left: [], preview });
}

const SECOND = 1e9;

/** A segment of `seconds`. */
function file(events: number, from: number, seconds: number, live = false): FileInfo {
  const [fromNs, toNs] = [from * SECOND, (from + seconds) * SECOND - 1];
  return { id: 0, name: '', bytes: 1, version: '', events, fromNs, toNs, live };
}

test('time is shared out by events, at the begin of a segment where one is near', () => {
  const million = PREVIEW_EVENTS / 4;
  const files = [file(million, 30, 10), file(million, 0, 10), file(2 * million, 20, 10), file(million, 10, 10)];
  assert.deepEqual(previewParts(files, 2), [
    { files: [1, 2, 3], fromNs: 0, toNs: 22.5 * SECOND },
    { files: [0, 2], fromNs: 2.5 * SECOND, toNs: 0 },
  ]);
  const near = [file(million, 30, 10), file(million, 0, 10), file(million, 20, 10), file(1.1 * million, 10, 10)];
  assert.deepEqual(previewParts(near, 2), [
    { files: [1, 3], fromNs: 0, toNs: 20 * SECOND },
    { files: [0, 2], fromNs: 0, toNs: 0 },
  ]);
  assert.deepEqual(previewParts(files, 1), [], 'one core has nothing to share');
  assert.deepEqual(previewParts([file(million, 0, 1), file(million, 1, 1)], 2), [], 'nor has a small trace');
  assert.deepEqual(previewParts([...files, file(million, 40, 1, true)], 2), [], 'one that is written is not complete');
});

test('one segment is shared out too', () => {
  const [a, b] = previewParts([file(2 * PREVIEW_EVENTS, 5, 10)], 2);
  assert.ok(Math.abs(a.toNs - 5 * SECOND) < 10 && a.fromNs === 0, `${a.toNs}`);
  assert.deepEqual(b, { files: [0], fromNs: a.toNs, toNs: 0 });
});

test('halves of one segment have the lanes of the whole, and nearly all that they show', async () => {
  const whole = await load();
  const cutNs = Math.floor(whole.info.toNs / 2);
  const parts = [await load({ fromNs: 0, toNs: cutNs }), await load({ fromNs: cutNs, toNs: 0 })];
  const joined = joinPreview(parts, whole.info.events)!;
  assert.equal(joined.info.events, whole.info.events);
  assert.deepEqual(joined.info.lanes.map((lane) => [lane.name, lane.group]),
    whole.info.lanes.map((lane) => [lane.name, lane.group]));
  const count = (of: Loaded, lane: number, layer: 'poll' | 'park') =>
    of.layers[lane][layer].reduce((sum, lod) => sum + lod.beginNs.length, 0);
  for (const { id, name } of whole.info.lanes)
    for (const layer of ['poll', 'park'] as const) {
      const lost = count(whole, id, layer) - count(joined, id, layer);
      assert.ok(lost >= 0 && lost <= 2, `${name}: ${lost} of ${count(whole, id, layer)} ${layer}s lost at the seam`);
    }
  for (const part of parts) assert.ok(part.info.lanes.some(({ id }) => count(part, id, 'poll') > 0));
});

test('two parts are drawn as the whole is, the second where its clock says', async () => {
  const whole = await load();
  const [a, b] = [await load(ALL), await load(ALL)];
  const laterNs = 10e9;
  b.clockNs += laterNs;
  const joined = joinPreview([a, b], 2 * whole.info.events)!;
  assert.equal(joined.info.events, 2 * whole.info.events);
  assert.equal(joined.info.toNs, whole.info.toNs + laterNs);
  assert.deepEqual(joined.info.lanes.map((lane) => lane.name), whole.info.lanes.map((lane) => lane.name));
  const { toNs } = whole.info;
  let drawn = 0;
  for (const lane of whole.info.lanes) {
    for (const layer of LAYERS.filter((one) => one !== 'loss')) {
      const wanted = slicesOf(whole.layers[lane.id][layer], 0, toNs, 300);
      for (const fromNs of [0, laterNs]) {
        const got = slicesOf(joined.layers[lane.id][layer], fromNs, fromNs + toNs, 300);
        const where = `${lane.name} ${layer} at ${fromNs}`;
        assert.deepEqual(got.beginNs.map((ns) => ns - fromNs), wanted.beginNs, where);
        assert.deepEqual([got.kind, got.count, got.depth], [wanted.kind, wanted.count, wanted.depth], where);
        assert.ok([...got.row, ...got.label].every((one) => one === NONE), where);
        drawn += got.n;
      }
    }
    const lines = (of: Loaded, fromNs: number) =>
      sampleSeries('', '', of.series.wakeDelay[lane.id], fromNs, fromNs + toNs, 50).max;
    assert.deepEqual(lines(joined, laterNs), lines(whole, 0));
  }
  assert.ok(drawn > 1000, `${drawn} things`);
});

test('parts of several processes are joined, each with its lanes', async () => {
  const [a, b] = [await load(ALL), await load(ALL)];
  b.info.recordings[0].name = 'other (1)';
  b.clockNs += 7;
  const { info } = joinPreview([a, b], 1)!;
  assert.deepEqual(info.recordings.map(({ name, shiftNs }) => [name, shiftNs]),
    [[a.info.recordings[0].name, 0], ['other (1)', 7]]);
  assert.equal(info.lanes.length, 2 * a.info.lanes.length);
  const groups = (recording: number) => info.lanes.filter((one) => one.recording === recording).map((one) => one.group);
  const named = a.info.lanes.map((one) => `other (1) · ${one.group.replace('other threads', 'threads')}`);
  assert.deepEqual(groups(1), named);
  assert.deepEqual(info.lanes.map((one) => one.id), [...info.lanes.keys()]);
});

test('parts of different boots are not joined', async () => {
  const [a, b] = [await load(ALL), await load(ALL)];
  b.bootsNs[0] += 3600e9;
  assert.equal(joinPreview([a, b], 1), null);
});
