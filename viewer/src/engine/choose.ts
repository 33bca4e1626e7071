// SPDX-License-Identifier: Apache-2.0
// Which segments of a trace are loaded, when it is more than a browser can hold, or a part was asked for.
import type { FileInfo, Manifest } from './source.ts';

/** More events than this are not loaded at once: a browser gives a page about 4 GB, and an event takes up to 40 B. */
export const MAX_EVENTS = 30_000_000;
/** Nor more bytes: what is fetched is held until it is read. */
export const MAX_BYTES = 2 ** 30;

export interface Part {
  /** Only the segments with something between these moments, ns from the start. */
  fromNs?: number;
  toNs?: number;
  maxEvents?: number;
}
export interface Choice {
  indices: number[]; // of manifest.files
  events: number;
  left: string[]; // sentences about what is not loaded
  before?: Part; // how to ask for what comes before it, and after it
  after?: Part;
}

/** What there is before and after the segments that are loaded. */
function around(manifest: Manifest, taken: { file: FileInfo }[]): Pick<Choice, 'before' | 'after'> {
  const files = manifest.files.filter((file) => file.events > 0 && file.bytes <= MAX_BYTES);
  const from = Math.min(...taken.map(({ file }) => file.fromNs));
  const to = Math.max(...taken.map(({ file }) => file.toNs));
  const some: Pick<Choice, 'before' | 'after'> = {};
  if (files.some((file) => file.toNs < from)) some.before = { toNs: from - 1 };
  if (files.some((file) => file.fromNs > to)) some.after = { fromNs: to + 1 };
  return some;
}

/** Segments up to the limit: those that were asked for, from the first on where no end was named, else the newest. */
export function chooseFiles(manifest: Manifest, options: Part): Choice {
  const most = options.maxEvents ?? MAX_EVENTS;
  const { fromNs = -Infinity, toNs = Infinity } = options;
  const onward = options.fromNs !== undefined && options.toNs === undefined;
  const wanted = manifest.files
    .map((file, index) => ({ file, index }))
    .filter(({ file }) => file.bytes <= MAX_BYTES)
    .filter(({ file }) => file.events === 0 || (file.toNs >= fromNs && file.fromNs <= toNs))
    .sort((a, b) => (onward ? a.file.fromNs - b.file.fromNs : b.file.toNs - a.file.toNs));
  const taken: typeof wanted = [];
  let events = 0;
  let bytes = 0;
  for (const one of wanted) {
    if (taken.length > 0 && (events + one.file.events > most || bytes + one.file.bytes > MAX_BYTES)) break;
    taken.push(one);
    events += one.file.events;
    bytes += one.file.bytes;
  }
  const large = manifest.files.filter((file) => file.bytes > MAX_BYTES);
  const left = large.map(
    ({ name, bytes }) => `${name} is not loaded: ${(bytes / 2 ** 30).toFixed(1)} GB are more than a browser can hold.`,
  );
  if (taken.length > 0 && taken.length + large.length < manifest.files.length) {
    const all = manifest.files.reduce((sum, file) => sum + file.events, 0);
    const at = (ns: number): string => `${(ns / 1e9).toFixed(1)} s`;
    const from = Math.min(...taken.map(({ file }) => file.fromNs));
    const to = Math.max(...taken.map(({ file }) => file.toNs));
    const full = taken.length < wanted.length;
    const limit = bytes + wanted[taken.length]?.file.bytes > MAX_BYTES ? '1 GB' : `${most / 1e6} M`;
    const why = full ? `more than a browser can hold (${limit})` : 'a part was asked for';
    const millions = (n: number): string => (n / 1e6).toFixed(1);
    left.push(
      `Only a part is loaded: ${millions(events)} M of ${millions(all)} M events, ` +
        `from ${at(from)} to ${at(to)}: ${why}.`,
    );
  }
  return { events, left, indices: taken.map(({ index }) => index).sort((a, b) => a - b), ...around(manifest, taken) };
}
