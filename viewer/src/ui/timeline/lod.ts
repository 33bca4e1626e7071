// SPDX-License-Identifier: Apache-2.0
// From slices to rectangles. What is narrower than LEAST_PX goes into a cell of that width on a grid that is fixed in
// time, so that panning does not make bars flicker; the longest of a cell gives it its colour and takes the click.
import type { Slices } from '../../api';

export const LEAST_PX = 3;

export interface Rects {
  n: number;
  x0: Float32Array;
  x1: Float32Array;
  src: Uint32Array; // index in the slices
  count: Uint32Array; // how many are under it
  wide: Uint8Array; // 1: drawn with its own length
  cover: Float32Array; // share of its width that is covered
}

export function newRects(size = 1024): Rects {
  return {
    n: 0,
    x0: new Float32Array(size),
    x1: new Float32Array(size),
    src: new Uint32Array(size),
    count: new Uint32Array(size),
    wide: new Uint8Array(size),
    cover: new Float32Array(size),
  };
}

function grow(r: Rects, size: number): void {
  if (r.x0.length >= size) return;
  const to = Math.max(size, 2 * r.x0.length);
  r.x0 = new Float32Array(to);
  r.x1 = new Float32Array(to);
  r.src = new Uint32Array(to);
  r.count = new Uint32Array(to);
  r.wide = new Uint8Array(to);
  r.cover = new Float32Array(to);
}

/** Of the row that a slice names. */
export function lengthOf(s: Slices, i: number): number {
  return s.longestNs ? s.longestNs[i] : s.endNs[i] - s.beginNs[i];
}

const MAX_DEPTH = 256;
const lastCell = new Float64Array(MAX_DEPTH);
const lastRect = new Int32Array(MAX_DEPTH);

/** Fills `out`. Rectangles of one depth do not overlap but for narrow cells at the edges of wide ones. */
export function pack(s: Slices, fromNs: number, nsPerPx: number, width: number, out: Rects): Rects {
  grow(out, s.n);
  lastCell.fill(-Infinity);
  const cellNs = nsPerPx * LEAST_PX;
  const fromPx = fromNs / nsPerPx;
  let n = 0;
  for (let i = 0; i < s.n; i++) {
    const begin = s.beginNs[i];
    const end = s.endNs[i];
    const depth = s.depth[i];
    const covered = s.coverNs ? s.coverNs[i] : s.count[i] > 1 ? cellNs : end - begin;
    if (end - begin >= cellNs) {
      const x0 = (begin - fromNs) / nsPerPx;
      const x1 = (end - fromNs) / nsPerPx;
      if (x1 < 0 || x0 > width) continue;
      out.x0[n] = Math.max(-10, x0);
      out.x1[n] = Math.min(width + 10, x1);
      out.src[n] = i;
      out.count[n] = s.count[i];
      out.wide[n] = 1;
      out.cover[n] = 1;
      n++;
      continue;
    }
    const cell = Math.floor(begin / cellNs);
    if (cell === lastCell[depth]) {
      const at = lastRect[depth];
      if (lengthOf(s, i) > lengthOf(s, out.src[at])) out.src[at] = i;
      out.count[at] += s.count[i];
      out.cover[at] = Math.min(1, out.cover[at] + covered / cellNs);
      continue;
    }
    const x0 = cell * LEAST_PX - fromPx;
    if (x0 + LEAST_PX < 0 || x0 > width) continue;
    lastCell[depth] = cell;
    lastRect[depth] = n;
    out.x0[n] = x0;
    out.x1[n] = x0 + LEAST_PX;
    out.src[n] = i;
    out.count[n] = s.count[i];
    out.wide[n] = 0;
    out.cover[n] = Math.min(1, covered / cellNs);
    n++;
  }
  out.n = n;
  return out;
}

/** The range to ask for: in cells of LEAST_PX on the grid of pack, so that the longest of a cell is the engine's. */
export function aligned(fromNs: number, toNs: number, width: number): { from: number; to: number; pixels: number } {
  const cellNs = ((toNs - fromNs) / width) * LEAST_PX;
  const from = Math.floor(fromNs / cellNs) * cellNs;
  const pixels = Math.ceil(width / LEAST_PX) + 1;
  return { from, to: from + pixels * cellNs, pixels };
}

/** The rectangle under x; narrow ones win over wide ones, as they are drawn above. -1: none. */
export function hit(r: Rects, x: number, slack = 1): number {
  let found = -1;
  for (let i = 0; i < r.n; i++) {
    if (x < r.x0[i] - slack || x > r.x1[i] + slack) continue;
    if (found < 0 || r.x1[i] - r.x0[i] <= r.x1[found] - r.x0[found]) found = i;
  }
  return found;
}
