// SPDX-License-Identifier: Apache-2.0
// The first picture of a large trace. Its time is shared out to several workers, each of which makes the lanes of its
// own part with the same code that later loads all of it; here they are joined. Until the whole trace is there, things
// have no row and no label: they can be looked at, not asked about. A poll across two parts is in none, or ends at the
// seam.
import type { Lane, LaneLayer } from '../api.ts';
import { LAYERS, type TimePart } from './core.ts';
import type { LodData } from './lod.ts';
import { processGroup, type Loaded } from './session.ts';
import type { FileInfo } from './source.ts';

/** Smaller traces are loaded before two pictures could be told apart. */
export const PREVIEW_EVENTS = 4_000_000;
const MOST_PARTS = 4;
/** Clocks of one boot of a machine began at one time of day, but for what set it right since. */
const BOOT_NS = 10e9;
/** A part may be so much larger than another, so that it ends where a segment does. */
const UNEVEN = 1 / 8;
/** What losses mean for lanes is only known with their rows. */
const DRAWN = LAYERS.filter((layer) => layer !== 'loss');

/** What a worker reads: these files, from the first event of them on. */
export interface PreviewPart extends TimePart {
  files: number[];
}

/** Events before a moment, as if those of a file were evenly spread. */
function eventsBefore(files: FileInfo[], ns: number): number {
  const share = (file: FileInfo): number => (ns - file.fromNs) / Math.max(1, file.toNs - file.fromNs);
  return files.reduce((sum, file) => sum + file.events * Math.min(1, Math.max(0, share(file))), 0);
}

/** The moment before which there are so many events; the begin of a segment where one is near. */
function cutAt(files: FileInfo[], events: number, uneven: number): number {
  let [from, to] = [Math.min(...files.map((file) => file.fromNs)), Math.max(...files.map((file) => file.toNs))];
  const off = (ns: number): number => Math.abs(eventsBefore(files, ns) - events);
  const begins = files.map((file) => file.fromNs).sort((a, b) => off(a) - off(b));
  if (off(begins[0]) <= uneven) return begins[0];
  while (to - from > 1) {
    const middle = Math.floor((from + to) / 2);
    if (eventsBefore(files, middle) < events) from = middle;
    else to = middle;
  }
  return to;
}

/** A part of the time for each worker, of about as many events each; none: not worth it. */
export function previewParts(files: FileInfo[], cores: number): PreviewPart[] {
  const full = files.filter((file) => file.events > 0);
  const events = full.reduce((sum, file) => sum + file.events, 0);
  const n = Math.min(cores, MOST_PARTS);
  if (events < PREVIEW_EVENTS || n < 2 || files.some((file) => file.live)) return [];
  const cuts = Array.from({ length: n - 1 }, (_, i) => cutAt(full, ((i + 1) * events) / n, (UNEVEN * events) / n));
  const parts = Array.from({ length: n }, (_, i): PreviewPart => {
    const [fromNs, toNs] = [i > 0 ? cuts[i - 1] : -Infinity, i < n - 1 ? cuts[i] : Infinity];
    const inside = (file: FileInfo): boolean => file.events > 0 && file.fromNs < toNs && file.toNs >= fromNs;
    const which = files.map((_file, at) => at).filter((at) => inside(files[at]));
    const first = Math.min(...which.map((at) => files[at].fromNs));
    return { files: which, fromNs: Math.max(0, fromNs - first), toNs: Number.isFinite(toNs) ? toNs - first : 0 };
  });
  return parts.filter((part) => part.files.length > 0);
}

/** Which lanes of the parts are one: the same thread of the same process in the same role. */
function nameOf(lane: Lane, process: string): string {
  return `${lane.tid} ${lane.workerId >= 0} ${lane.name} ${process}`;
}

function shifted<T extends { shiftNs: number }>(all: T[], shiftNs: number): T[] {
  return all.map((one) => ({ ...one, shiftNs }));
}

/** All recordings of the parts, that which began first before the others. */
function joinRecordings(parts: Loaded[], clockNs: number): Loaded['info']['recordings'] {
  const joined = new Map<string, { name: string; shiftNs: number; spanNs: number }>();
  for (const part of parts)
    for (const { name, shiftNs: at, spanNs } of part.info.recordings) {
      const shiftNs = at + part.clockNs - clockNs;
      const known = joined.get(name) ?? { shiftNs, spanNs };
      const fromNs = Math.min(known.shiftNs, shiftNs);
      const toNs = Math.max(known.shiftNs + known.spanNs, shiftNs + spanNs);
      joined.set(name, { name, shiftNs: fromNs, spanNs: toNs - fromNs });
    }
  return [...joined.values()].sort((a, b) => a.shiftNs - b.shiftNs);
}

/** As viewer/wasm/lanes.c orders them. */
function laneOrder(a: Lane, b: Lane): number {
  const workers = Number(b.workerId >= 0) - Number(a.workerId >= 0);
  const names = a.name.localeCompare(b.name, 'en', { numeric: true });
  return a.recording - b.recording || workers || names || a.tid - b.tid;
}

/** What a thread shows is shown by the one worker that it is, though its part does not know that it is one. */
function joinThreads(lanes: Map<string, Lane>): Map<string, Lane> {
  const joined = new Map<string, Lane>();
  for (const [name, lane] of lanes) {
    const same = (one: Lane): boolean => one.recording === lane.recording && one.tid === lane.tid && one.workerId >= 0;
    const workers = lane.workerId < 0 ? [...lanes.values()].filter(same) : [];
    joined.set(name, workers.length === 1 ? workers[0] : lane);
  }
  return joined;
}

/** Lanes of all parts, by what they are called there. */
function joinLanes(parts: Loaded[], recordings: Loaded['info']['recordings']): Map<string, Lane> {
  const lanes = new Map<string, Lane>();
  for (const { info } of parts)
    for (const lane of info.lanes) {
      const process = info.recordings[lane.recording].name;
      const recording = recordings.findIndex((one) => one.name === process);
      const group = info.recordings.length > 1 ? lane.group : processGroup(lane.group, process, recordings.length);
      lanes.set(nameOf(lane, process), { ...lane, recording, group });
    }
  const joined = joinThreads(lanes);
  [...new Set(joined.values())].sort(laneOrder).forEach((lane, id) => (lane.id = id));
  return joined;
}

/** The whole of parts in order of time, of `events`, or null where their clocks are not one. */
export function joinPreview(parts: Loaded[], events: number): Loaded | null {
  const boots = parts.flatMap((part) => part.bootsNs);
  if (boots.length === 0 || Math.max(...boots) - Math.min(...boots) > BOOT_NS) return null;
  const [{ info: first }] = parts;
  const clockNs = Math.min(...parts.map((part) => part.clockNs));
  const recordings = joinRecordings(parts, clockNs);
  const lanes = joinLanes(parts, recordings);
  const problems = [...new Set(parts.flatMap(({ info }) => info.problems))];
  const shown = [...new Set(lanes.values())].sort((a, b) => a.id - b.id);
  const none = (): LodData[] => [];
  const joined: Loaded = {
    info: { ...first, lanes: shown, recordings, toNs: 1, events, problems },
    layers: shown.map(
      () => Object.fromEntries(LAYERS.map((layer) => [layer, none()])) as Record<LaneLayer, LodData[]>,
    ),
    series: { queue: [], cost: [], localQueue: shown.map(() => []), wakeDelay: shown.map(() => []) },
    complete: false,
    clockNs,
    bootsNs: boots,
  };
  for (const part of parts) addPart(joined, lanes, part);
  return joined;
}

function addPart(to: Loaded, lanes: Map<string, Lane>, part: Loaded): void {
  const byNs = part.clockNs - to.clockNs;
  to.info.toNs = Math.max(to.info.toNs, part.info.toNs + byNs);
  for (const which of ['queue', 'cost'] as const) to.series[which].push(...shifted(part.series[which], byNs));
  for (const lane of part.info.lanes) {
    const { id } = lanes.get(nameOf(lane, part.info.recordings[lane.recording].name))!;
    for (const which of ['localQueue', 'wakeDelay'] as const)
      to.series[which][id].push(...shifted(part.series[which][lane.id], byNs));
    for (const layer of DRAWN) to.layers[id][layer].push(...shifted(part.layers[lane.id][layer], byNs));
  }
}
