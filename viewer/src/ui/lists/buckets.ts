// SPDX-License-Identifier: Apache-2.0
// Lengths on a scale of logarithms.

export const PER_DECADE = 8;
export const FIRST_NS = 100;

export function bucketOf(ns: number): number {
  return Math.max(0, Math.floor(Math.log10(Math.max(ns, FIRST_NS) / FIRST_NS) * PER_DECADE + 1e-9));
}
export function lowerEdge(bucket: number): number {
  return FIRST_NS * Math.pow(10, bucket / PER_DECADE);
}

export interface Histogram {
  buckets: number; // how many there are
  first: number; // the first with anything in it
  counts: Map<string, Uint32Array>; // by name of the location
  polls: number; // all together
  most: number; // of one bucket, all locations together
}

export function histogram(lengths: ArrayLike<number>, nameOf: (i: number) => string, named: number): Histogram {
  const totals = new Map<string, number>();
  let [last, first] = [0, Infinity];
  for (let i = 0; i < lengths.length; i++) {
    const bucket = bucketOf(lengths[i]);
    last = Math.max(last, bucket);
    first = Math.min(first, bucket);
    const name = nameOf(i);
    totals.set(name, (totals.get(name) ?? 0) + lengths[i]);
  }
  const names = [...totals].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const kept = new Set(names.slice(0, named));
  const counts = new Map<string, Uint32Array>();
  for (const name of names.slice(0, named)) counts.set(name, new Uint32Array(last + 1));
  if (names.length > named) counts.set('others', new Uint32Array(last + 1));
  for (let i = 0; i < lengths.length; i++) {
    const name = nameOf(i);
    const list = counts.get(kept.has(name) ? name : 'others');
    if (list) list[bucketOf(lengths[i])]++;
  }
  let most = 0;
  for (let b = 0; b <= last; b++) {
    let sum = 0;
    for (const list of counts.values()) sum += list[b];
    most = Math.max(most, sum);
  }
  return { buckets: last + 1, first: Number.isFinite(first) ? first : 0, counts, polls: lengths.length, most };
}
