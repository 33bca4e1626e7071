// SPDX-License-Identifier: Apache-2.0
// The first picture of a large trace. Its segments are shared out to several workers, each of which makes the lanes of
// its own part with the same code that later loads all of it; here they are joined. Until the whole trace is there,
// things have no row and no label: they can be looked at, not asked about. A poll across two parts ends at the seam.
import type { Lane, LaneLayer } from '../api.ts';
import { LAYERS } from './core.ts';
import type { LodData } from './lod.ts';
import type { Loaded } from './session.ts';
import type { FileInfo } from './source.ts';

/** Smaller traces are loaded before two pictures could be told apart. */
export const PREVIEW_EVENTS = 4_000_000;
const MOST_PARTS = 4;
/** What losses mean for lanes is only known with their rows. */
const DRAWN = LAYERS.filter((layer) => layer !== 'loss');

/** Indices of the files for each worker, in order of time and of about as many events each; none: not worth it. */
export function previewParts(files: FileInfo[], cores: number): number[][] {
  const events = files.reduce((sum, file) => sum + file.events, 0);
  const n = Math.min(files.length, cores, MOST_PARTS);
  if (events < PREVIEW_EVENTS || n < 2 || files.some((file) => file.live)) return [];
  const order = files.map((_, i) => i).sort((a, b) => files[a].fromNs - files[b].fromNs);
  const parts: number[][] = Array.from({ length: n }, () => []);
  let before = 0;
  for (const at of order) {
    parts[Math.min(n - 1, Math.floor((n * (before + files[at].events / 2)) / events))].push(at);
    before += files[at].events;
  }
  return parts.filter((part) => part.length > 0);
}

/** Which lanes of the parts are one: the same thread in the same role. */
function nameOf(lane: Lane): string {
  return `${lane.tid} ${lane.workerId >= 0} ${lane.name}`;
}

function shifted<T extends { shiftNs: number }>(all: T[], shiftNs: number): T[] {
  return all.map((one) => ({ ...one, shiftNs }));
}

/** The whole of parts in order of time, or null where they are not of one recording. */
export function joinPreview(parts: Loaded[]): Loaded | null {
  const [{ info: first }] = parts;
  const name = first.recordings[0]?.name;
  if (parts.some(({ info }) => info.recordings.length !== 1 || info.recordings[0].name !== name)) return null;
  const clockNs = Math.min(...parts.map((part) => part.clockNs));
  const joined: Loaded = {
    info: { ...first, lanes: [], toNs: 1, events: 0, problems: parts.flatMap(({ info }) => info.problems) },
    layers: [],
    series: { queue: [], cost: [], localQueue: [], wakeDelay: [] },
    complete: false,
    clockNs,
  };
  const ids = new Map<string, number>();
  for (const part of parts) addPart(joined, ids, part);
  return joined;
}

function addLane({ info, layers, series }: Loaded, lane: Lane): number {
  const id = info.lanes.push({ ...lane, id: info.lanes.length }) - 1;
  layers.push(Object.fromEntries(LAYERS.map((layer) => [layer, []])) as unknown as Record<LaneLayer, LodData[]>);
  series.localQueue.push([]);
  series.wakeDelay.push([]);
  return id;
}

function addPart(to: Loaded, ids: Map<string, number>, part: Loaded): void {
  const byNs = part.clockNs - to.clockNs;
  to.info.toNs = Math.max(to.info.toNs, part.info.toNs + byNs);
  to.info.events += part.info.events;
  for (const which of ['queue', 'cost'] as const) to.series[which].push(...shifted(part.series[which], byNs));
  for (const lane of part.info.lanes) {
    const id = ids.get(nameOf(lane)) ?? addLane(to, lane);
    ids.set(nameOf(lane), id);
    for (const which of ['localQueue', 'wakeDelay'] as const)
      to.series[which][id].push(...shifted(part.series[which][lane.id], byNs));
    for (const layer of DRAWN) to.layers[id][layer].push(...shifted(part.layers[lane.id][layer], byNs));
  }
}
