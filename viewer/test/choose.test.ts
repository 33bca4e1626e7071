// SPDX-License-Identifier: Apache-2.0
// Of a trace that is too large a part is loaded, and the page says so.
import assert from 'node:assert/strict';
import test from 'node:test';
import { chooseFiles } from '../src/engine/choose.ts';
import type { Manifest } from '../src/engine/source.ts';

const manifest: Manifest = {
  live: false,
  version: '1',
  files: Array.from({ length: 10 }, (_, i) => ({
    id: i, name: `${i}.weft`, bytes: 1, version: '', events: 4e6, fromNs: i * 1e9, toNs: (i + 1) * 1e9 - 1, live: false,
  })),
};

test('a trace that fits is loaded as a whole, without a word', () => {
  const choice = chooseFiles(manifest, { maxEvents: 40e6 });
  assert.equal(choice.indices.length, 10);
  assert.deepEqual(choice.left, []);
});

test('of one that does not fit the newest segments are loaded, and that is said', () => {
  const choice = chooseFiles(manifest, {});
  assert.deepEqual(choice.indices, [3, 4, 5, 6, 7, 8, 9]);
  assert.equal(choice.events, 28e6);
  assert.match(choice.left[0], /28\.0 M of 40\.0 M events, from 3\.0 s to 10\.0 s/);
  assert.match(choice.left[0], /more than a browser can hold \(30 M\)/);
});

test('a part that is asked for is loaded', () => {
  const choice = chooseFiles(manifest, { fromNs: 2.5e9, toNs: 3.5e9 });
  assert.deepEqual(choice.indices, [2, 3]);
  assert.match(choice.left[0], /from 2\.0 s to 4\.0 s: a part was asked for/);
});

test('what comes before and after can be asked for, part by part', () => {
  const last = chooseFiles(manifest, {});
  assert.deepEqual([last.before, last.after], [{ toNs: 3e9 - 1 }, undefined]);
  const first = chooseFiles(manifest, last.before!);
  assert.deepEqual([first.indices, first.before, first.after], [[0, 1, 2], undefined, { fromNs: 3e9 }]);
  assert.deepEqual(chooseFiles(manifest, first.after!).indices, [3, 4, 5, 6, 7, 8, 9]);
  const onward = chooseFiles(manifest, { fromNs: 1e9 });
  assert.deepEqual([onward.indices, onward.after], [[1, 2, 3, 4, 5, 6, 7], { fromNs: 8e9 }], 'the next, not the last');
  const all = chooseFiles(manifest, { maxEvents: 40e6 });
  assert.deepEqual([all.before, all.after], [undefined, undefined]);
});

test('one segment is loaded however large it is', () => {
  assert.deepEqual(chooseFiles(manifest, { maxEvents: 1 }).indices, [9]);
});

test('a file of more bytes than a browser takes is left out, and the others are loaded', () => {
  const files = manifest.files.slice(0, 3).map((file, i) => ({ ...file, bytes: i === 1 ? 3 * 2 ** 30 : 1000 }));
  const choice = chooseFiles({ ...manifest, files }, {});
  assert.deepEqual(choice.indices, [0, 2]);
  assert.deepEqual(choice.left, ['1.weft is not loaded: 3.0 GB are more than a browser can hold.']);
  assert.deepEqual(chooseFiles({ ...manifest, files: [files[1]] }, {}).indices, []);
});

test('segments are loaded up to a limit of bytes, too', () => {
  const files = manifest.files.slice(0, 3).map((file) => ({ ...file, bytes: 2 ** 29 }));
  const choice = chooseFiles({ ...manifest, files }, {});
  assert.deepEqual(choice.indices, [1, 2]);
  assert.match(choice.left[0], /more than a browser can hold \(1 GB\)/);
});
