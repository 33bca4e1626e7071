// SPDX-License-Identifier: Apache-2.0
// Development only: intervals of a lane with a tree of the longest over ranges, as the engine has them.
import type { Slices } from '../api';

export interface Intervals {
  begin: Float64Array;
  end: Float64Array;
  row: Uint32Array;
  kind: Uint8Array;
  depth: Uint8Array;
  label: Uint32Array;
}

export class Tree {
  readonly n: number;
  private size = 1;
  private best: Int32Array; // index of the longest under a node

  constructor(readonly at: Intervals) {
    this.n = at.begin.length;
    while (this.size < this.n) this.size *= 2;
    this.best = new Int32Array(2 * this.size).fill(-1);
    for (let i = 0; i < this.n; i++) this.best[this.size + i] = i;
    for (let i = this.size - 1; i > 0; i--) this.best[i] = this.longer(this.best[2 * i], this.best[2 * i + 1]);
  }

  private longer(a: number, b: number): number {
    if (a < 0) return b;
    if (b < 0) return a;
    return this.at.end[b] - this.at.begin[b] > this.at.end[a] - this.at.begin[a] ? b : a;
  }

  private longest(from: number, to: number): number {
    let best = -1;
    for (let l = from + this.size, r = to + this.size; l < r; l >>= 1, r >>= 1) {
      if (l & 1) best = this.longer(best, this.best[l++]);
      if (r & 1) best = this.longer(best, this.best[--r]);
    }
    return best;
  }

  private lower(ns: number, lo: number): number {
    let [a, b] = [lo, this.n];
    while (a < b) {
      const mid = (a + b) >> 1;
      if (this.at.begin[mid] < ns) a = mid + 1;
      else b = mid;
    }
    return a;
  }

  slices(fromNs: number, toNs: number, pixels: number): Slices {
    const bucket = (toNs - fromNs) / Math.max(1, pixels);
    const out: number[][] = [];
    let i = this.lower(fromNs, 0);
    // What began before and still runs: nested ones may hide it, so look back some.
    for (let k = Math.max(0, i - 64); k < i; k++) if (this.at.end[k] > fromNs) out.push([k, 1, this.at.end[k]]);
    while (i < this.n && this.at.begin[i] < toNs) {
      if (this.at.end[i] - this.at.begin[i] >= bucket) {
        out.push([i, 1, this.at.end[i]]);
        i++;
        continue;
      }
      const edge = fromNs + (Math.floor((this.at.begin[i] - fromNs) / bucket) + 1) * bucket;
      const next = Math.max(i + 1, this.lower(edge, i));
      const best = this.longest(i, next);
      out.push([best, next - i, this.at.end[best]]);
      i = next;
    }
    const n = out.length;
    const pick = <T extends { [index: number]: number }>(to: T, get: (i: number) => number): T => {
      for (let k = 0; k < n; k++) to[k] = get(out[k][0]);
      return to;
    };
    return {
      n,
      beginNs: pick(new Float64Array(n), (k) => this.at.begin[k]),
      endNs: Float64Array.from(out, (o) => o[2]),
      row: pick(new Uint32Array(n), (k) => this.at.row[k]),
      count: Uint32Array.from(out, (o) => o[1]),
      kind: pick(new Uint8Array(n), (k) => this.at.kind[k]),
      depth: pick(new Uint8Array(n), (k) => this.at.depth[k]),
      label: pick(new Uint32Array(n), (k) => this.at.label[k]),
    };
  }
}

export function fromList(
  list: { b: number; e: number; row: number; kind: number; depth: number; label: number }[],
): Tree {
  list.sort((x, y) => x.b - y.b || y.e - x.e);
  return new Tree({
    begin: Float64Array.from(list, (x) => x.b),
    end: Float64Array.from(list, (x) => x.e),
    row: Uint32Array.from(list, (x) => x.row),
    kind: Uint8Array.from(list, (x) => x.kind),
    depth: Uint8Array.from(list, (x) => x.depth),
    label: Uint32Array.from(list, (x) => x.label),
  });
}
