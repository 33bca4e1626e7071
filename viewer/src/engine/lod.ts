// SPDX-License-Identifier: Apache-2.0
// Level of detail. Over things in order of their begin lies a tree of blocks, each with the longest of them, the latest
// end, and the sum of their lengths. So the longest in any place is found in a few steps, and survives zooming out.
import { NONE, type Slices } from '../api.ts';
import type { LayerData } from './core.ts';

const BLOCK = 32;

interface Level {
  best: Uint32Array; // index of the longest
  maxEnd: Float64Array;
  sum: Float64Array;
}

/** Things of one depth of a layer of a lane. In a preview they have neither row nor label. */
export interface LodData {
  depth: number;
  beginNs: Float64Array;
  endNs: Float64Array;
  row: Uint32Array;
  label: Uint32Array;
  kind: Uint8Array;
  levels: Level[];
  shiftNs: number; // to be added to all times
}

export function buildLod(layer: LayerData, depth: number, which: Uint32Array | null): LodData {
  const take = <T extends Float64Array | Uint32Array | Uint8Array>(from: T): T => {
    if (!which || from.length === 0) return from;
    const to = new (from.constructor as new (n: number) => T)(which.length);
    for (let i = 0; i < which.length; i++) to[i] = from[which[i]];
    return to;
  };
  const lod: LodData = {
    depth,
    beginNs: take(layer.beginNs),
    endNs: take(layer.endNs),
    row: take(layer.row),
    label: take(layer.label),
    kind: take(layer.kind),
    levels: [],
    shiftNs: 0,
  };
  buildLevels(lod);
  return lod;
}

function buildLevels(lod: LodData): void {
  let n = lod.beginNs.length;
  let below: Level | null = null;
  while (n > BLOCK) {
    const blocks = Math.ceil(n / BLOCK);
    const level: Level = {
      best: new Uint32Array(blocks),
      maxEnd: new Float64Array(blocks),
      sum: new Float64Array(blocks),
    };
    for (let block = 0; block < blocks; block++) fillBlock(lod, below, level, block, n);
    lod.levels.push(level);
    below = level;
    n = blocks;
  }
}

function fillBlock(lod: LodData, below: Level | null, level: Level, block: number, n: number): void {
  let best = 0;
  let longest = -1;
  let maxEnd = -Infinity;
  let sum = 0;
  const end = Math.min(n, (block + 1) * BLOCK);
  for (let i = block * BLOCK; i < end; i++) {
    const at = below ? below.best[i] : i;
    const length = lod.endNs[at] - lod.beginNs[at];
    if (length > longest) {
      longest = length;
      best = at;
    }
    maxEnd = Math.max(maxEnd, below ? below.maxEnd[i] : lod.endNs[i]);
    sum += below ? below.sum[i] : length;
  }
  level.best[block] = best;
  level.maxEnd[block] = maxEnd;
  level.sum[block] = sum;
}

/** One per depth, the outermost first. */
export function buildLods(layer: LayerData): LodData[] {
  const counts = new Uint32Array(256);
  for (let i = 0; i < layer.n; i++) counts[layer.depth[i]]++;
  const depths = [...counts.keys()].filter((depth) => counts[depth] > 0);
  if (depths.length <= 1) return depths.map((depth) => buildLod(layer, depth, null));
  const which = depths.map((depth) => new Uint32Array(counts[depth]));
  const at = new Uint32Array(256);
  const place = new Map(depths.map((depth, i) => [depth, i]));
  for (let i = 0; i < layer.n; i++) {
    const depth = layer.depth[i];
    which[place.get(depth)!][at[depth]++] = i;
  }
  return depths.map((depth, i) => buildLod(layer, depth, which[i]));
}

/** Outer frames that all stacks of a lane share say nothing: how many rows of a flame chart can be left out at the top.
 * The last of those, and the innermost, stay. */
export function sharedFrames(lods: LodData[]): number {
  const same = ({ label }: LodData): boolean => label.length > 0 && label.every((one) => one === label[0]);
  const rows = [...lods].sort((a, b) => a.depth - b.depth);
  let shared = 0;
  while (shared < rows.length - 1 && rows[shared].depth === shared && same(rows[shared])) shared++;
  return Math.max(0, shared - 1);
}

/** The buffers that can be given away to another thread. */
export function lodBuffers(lod: LodData): ArrayBuffer[] {
  const arrays = [lod.beginNs, lod.endNs, lod.row, lod.label, lod.kind];
  return [...arrays, ...lod.levels.flatMap((level) => [level.best, level.maxEnd, level.sum])].map(
    (array) => array.buffer as ArrayBuffer,
  );
}

export function lodBytes(lod: LodData): number {
  return lodBuffers(lod).reduce((sum, buffer) => sum + buffer.byteLength, 0);
}

/** First index in [from, to) whose value is not below. */
export function lowerBound(values: Float64Array, value: number, from = 0, to = values.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The same near `from`: steps that double, then halves. */
function gallop(values: Float64Array, value: number, from: number, to: number): number {
  let step = 1;
  let at = from;
  while (at < to && values[at] < value) {
    from = at + 1;
    at += step;
    step *= 2;
  }
  return lowerBound(values, value, from, Math.min(at, to));
}

interface Range {
  best: number;
  maxEnd: number;
  sum: number;
}

/** What blocks say of [from, to). */
function overRange(lod: LodData, from: number, to: number): Range {
  const ret = { best: from, maxEnd: -Infinity, sum: 0 };
  let longest = -1;
  const one = (index: number, maxEnd: number, sum: number): void => {
    const length = lod.endNs[index] - lod.beginNs[index];
    if (length > longest) {
      longest = length;
      ret.best = index;
    }
    if (maxEnd > ret.maxEnd) ret.maxEnd = maxEnd;
    ret.sum += sum;
  };
  const item = (k: number, i: number): void => {
    if (k < 0) one(i, lod.endNs[i], lod.endNs[i] - lod.beginNs[i]);
    else one(lod.levels[k].best[i], lod.levels[k].maxEnd[i], lod.levels[k].sum[i]);
  };
  let k = -1; // level: -1 are the things themselves
  while (from < to) {
    const up = k + 1 < lod.levels.length;
    if (!up || to - from <= 2 * BLOCK) {
      for (let i = from; i < to; i++) item(k, i);
      break;
    }
    for (; from % BLOCK !== 0; from++) item(k, from);
    for (; to % BLOCK !== 0; to--) item(k, to - 1);
    from /= BLOCK;
    to /= BLOCK;
    k++;
  }
  return ret;
}

/** Those that began before `index` and end after `time`, in order. */
function reaching(lod: LodData, index: number, time: number): number[] {
  const found: number[] = [];
  const look = (k: number, from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const width = BLOCK ** (k + 1);
      if (i * width >= index) return;
      if (k < 0) {
        if (lod.endNs[i] > time) found.push(i);
      } else if (lod.levels[k].maxEnd[i] > time) {
        const n = k === 0 ? lod.beginNs.length : lod.levels[k - 1].best.length;
        look(k - 1, i * BLOCK, Math.min(n, (i + 1) * BLOCK));
      }
    }
  };
  const top = lod.levels.length - 1;
  look(top, 0, top < 0 ? lod.beginNs.length : lod.levels[top].best.length);
  return found;
}

/** Slices that are being gathered, in room that grows and is used again. */
export class Gathering {
  private n = 0;
  private begin = new Float64Array(1024);
  private end = new Float64Array(1024);
  private cover = new Float64Array(1024);
  private index = new Uint32Array(1024);
  private count = new Uint32Array(1024);
  private which = new Uint8Array(1024);
  private lods: LodData[] = [];

  start(lods: LodData[]): void {
    this.n = 0;
    this.lods = lods;
  }

  private grow(): void {
    const more = <T extends Float64Array | Uint32Array | Uint8Array>(from: T): T => {
      const to = new (from.constructor as new (n: number) => T)(2 * from.length);
      to.set(from);
      return to;
    };
    this.begin = more(this.begin);
    this.end = more(this.end);
    this.cover = more(this.cover);
    this.index = more(this.index);
    this.count = more(this.count);
    this.which = more(this.which);
  }

  add(which: number, index: number, begin: number, end: number, count: number, cover: number): void {
    const at = this.n++;
    if (at === this.begin.length) this.grow();
    this.begin[at] = begin;
    this.end[at] = end;
    this.cover[at] = cover;
    this.index[at] = index;
    this.count[at] = count;
    this.which[at] = which;
  }

  finish(): Slices {
    const n = this.n;
    const order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[i] = i;
    if (this.lods.length > 1) order.sort((a, b) => this.begin[a] - this.begin[b] || this.which[a] - this.which[b]);
    const slices: Slices = {
      n,
      beginNs: new Float64Array(n),
      endNs: new Float64Array(n),
      row: new Uint32Array(n),
      count: new Uint32Array(n),
      kind: new Uint8Array(n),
      depth: new Uint8Array(n),
      label: new Uint32Array(n).fill(NONE),
      coverNs: new Float64Array(n),
      longestNs: new Float64Array(n),
    };
    for (let i = 0; i < n; i++) {
      const at = order[i];
      const lod = this.lods[this.which[at]];
      const index = this.index[at];
      slices.beginNs[i] = this.begin[at];
      slices.endNs[i] = this.end[at];
      slices.row[i] = lod.row[index] ?? NONE;
      slices.count[i] = this.count[at];
      slices.kind[i] = lod.kind[index];
      slices.depth[i] = lod.depth;
      slices.label[i] = lod.label[index] ?? NONE;
      slices.coverNs![i] = this.cover[at];
      slices.longestNs![i] = lod.endNs[index] - lod.beginNs[index];
    }
    return slices;
  }
}

/** What there is between two moments: things of a pixel and longer by themselves, shorter ones of one pixel as one, in
 * the name of the longest. */
function gather(
  lod: LodData, which: number, viewFromNs: number, viewToNs: number, pixels: number, into: Gathering,
): void {
  const { shiftNs } = lod;
  const [fromNs, toNs] = [viewFromNs - shiftNs, viewToNs - shiftNs];
  const first = lowerBound(lod.beginNs, fromNs);
  const last = lowerBound(lod.beginNs, toNs, first);
  const single = (i: number): void => {
    into.add(which, i, lod.beginNs[i] + shiftNs, lod.endNs[i] + shiftNs, 1, lod.endNs[i] - lod.beginNs[i]);
  };
  for (const i of reaching(lod, first, fromNs)) single(i);
  const pixelNs = (toNs - fromNs) / Math.max(1, pixels);
  const long = (i: number): boolean => lod.endNs[i] - lod.beginNs[i] >= pixelNs;
  for (let i = first; i < last; ) {
    if (long(i)) {
      single(i++);
      continue;
    }
    const bucket = Math.floor((lod.beginNs[i] - fromNs) / pixelNs);
    let next = gallop(lod.beginNs, fromNs + (bucket + 1) * pixelNs, i + 1, last);
    let range = overRange(lod, i, next);
    if (long(range.best)) {
      next = range.best;
      range = overRange(lod, i, next);
    }
    into.add(which, range.best, lod.beginNs[i] + shiftNs, range.maxEnd + shiftNs, next - i, range.sum);
    i = next;
  }
}

/** How much of [fromNs, toNs) things cover that do not overlap. */
export function covered(lod: LodData, viewFromNs: number, viewToNs: number): number {
  const [fromNs, toNs] = [viewFromNs - lod.shiftNs, viewToNs - lod.shiftNs];
  const first = lowerBound(lod.beginNs, fromNs);
  const last = lowerBound(lod.beginNs, toNs, first);
  let sum = 0;
  if (first > 0) sum += Math.max(0, Math.min(toNs, lod.endNs[first - 1]) - fromNs);
  if (last > first) {
    sum += overRange(lod, first, last).sum - Math.max(0, lod.endNs[last - 1] - toNs);
  }
  return sum;
}

const gathering = new Gathering();

/** Slices of all depths of a layer, in order of their begin. */
export function slicesOf(lods: LodData[], fromNs: number, toNs: number, pixels: number): Slices {
  gathering.start(lods);
  lods.forEach((lod, which) => gather(lod, which, fromNs, toNs, pixels, gathering));
  return gathering.finish();
}
