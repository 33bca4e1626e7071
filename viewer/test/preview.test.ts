// SPDX-License-Identifier: Apache-2.0
// The first picture of a large trace, made of parts: the same as that of the whole, without rows.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { NONE } from '../src/api.ts';
import { LAYERS } from '../src/engine/core.ts';
import { slicesOf } from '../src/engine/lod.ts';
import { PREVIEW_EVENTS, joinPreview, previewParts } from '../src/engine/preview.ts';
import { sampleSeries } from '../src/engine/series.ts';
import type { Loaded } from '../src/engine/session.ts';
import type { FileInfo } from '../src/engine/source.ts';
import { newSession, segments, source } from './machine.ts';

const SERVER = path.join(source, 'test/golden/server');

async function load(preview: boolean): Promise<Loaded> {
  const files = segments(SERVER);
  return (await newSession()).load({ files, names: new Uint8Array(), live: false, left: [], preview });
}

function file(events: number, fromNs: number, live = false): FileInfo {
  return { id: 0, name: '', bytes: 1, version: '', events, fromNs, toNs: fromNs + 1, live };
}

test('segments are shared out by their events, in order of time', () => {
  const million = PREVIEW_EVENTS / 4;
  const files = [file(million, 30), file(million, 0), file(2 * million, 20), file(million, 10)];
  assert.deepEqual(previewParts(files, 2), [[1, 3], [2, 0]]);
  assert.deepEqual(previewParts(files, 1), [], 'one core has nothing to share');
  assert.deepEqual(previewParts([file(8 * million, 0)], 2), [], 'nor has one segment');
  assert.deepEqual(previewParts([file(million, 0), file(million, 1)], 2), [], 'nor a small trace');
  assert.deepEqual(previewParts([...files, file(million, 40, true)], 2), [], 'one that is written is not complete');
});

test('two parts are drawn as the whole is, the second where its clock says', async () => {
  const whole = await load(false);
  const [a, b] = [await load(true), await load(true)];
  const laterNs = 10e9;
  b.clockNs += laterNs;
  const joined = joinPreview([a, b])!;
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

test('parts of different programs are not joined', async () => {
  const [a, b] = [await load(true), await load(true)];
  b.info.recordings[0].name = 'other (1)';
  assert.equal(joinPreview([a, b]), null);
});
