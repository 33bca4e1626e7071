// SPDX-License-Identifier: Apache-2.0
// Where lanes, their strips, groups and charts are, from top to bottom. No canvas here.
import type { Lane, LaneLayer } from '../../api';

export interface Strip {
  layer: LaneLayer;
  y: number; // from the top of the lane
  h: number;
  rows: number; // nesting, or depth of the flame chart
}
export interface LaneBox {
  kind: 'lane';
  key: string;
  lane: Lane;
  y: number;
  h: number;
  strips: Strip[];
  collapsed: boolean;
  pinned: boolean;
}
export interface GroupBox {
  kind: 'group';
  key: string;
  name: string;
  lanes: number;
  y: number;
  h: number;
  collapsed: boolean;
}
export interface ChartBox {
  kind: 'chart';
  key: string;
  name: string;
  title: string;
  y: number;
  h: number;
}
export type Box = LaneBox | GroupBox | ChartBox;
export interface Layout {
  boxes: Box[];
  height: number;
}

/** Which layers a lane has anything in, and how deep they are. */
export type Layers = Partial<Record<LaneLayer, number>>;

export const GROUP_H = 24;
export const CHART_H = 26;
export const POLL_H = 22;
export const THIN_H = 12;
export const FRAME_H = 12;
export const GAP = 6;
export const COLLAPSED_H = 16;
export const MOST_FRAMES = 6;

const THIN: LaneLayer[] = ['wait', 'offcpu', 'context', 'event'];

export function stripsOf(layers: Layers, collapsed: boolean): { strips: Strip[]; h: number } {
  const strips: Strip[] = [];
  let y = 3;
  const main = layers.poll !== undefined || layers.park !== undefined || layers.stuck !== undefined;
  if (collapsed) {
    const layer = main
      ? 'poll'
      : (['flame', 'wait', 'offcpu', 'event'] as const).find((l) => layers[l] !== undefined);
    if (layer) strips.push({ layer, y: 2, h: COLLAPSED_H - 4, rows: 1 });
    return { strips, h: COLLAPSED_H };
  }
  if (main) {
    const rows = Math.min(4, Math.max(1, layers.poll ?? 1));
    strips.push({ layer: 'poll', y, h: POLL_H * rows, rows });
    y += POLL_H * rows + 2;
  }
  for (const layer of THIN) {
    if (layers[layer] === undefined) continue;
    strips.push({ layer, y, h: THIN_H, rows: 1 });
    y += THIN_H + 2;
  }
  if (layers.flame !== undefined) {
    const rows = Math.min(MOST_FRAMES, Math.max(1, layers.flame));
    strips.push({ layer: 'flame', y, h: FRAME_H * rows, rows });
    y += FRAME_H * rows + 2;
  }
  return { strips, h: Math.max(y + GAP - 2, COLLAPSED_H) };
}

export interface Choice {
  pinned: number[];
  collapsed: string[];
  laneFilter: string;
}

export function layout(
  lanes: Lane[],
  layersOf: (lane: number) => Layers,
  charts: { name: string; title: string }[],
  choice: Choice,
): Layout {
  const boxes: Box[] = [];
  const folded = new Set(choice.collapsed);
  const wanted = choice.laneFilter.toLowerCase();
  let y = 0;
  const addLane = (lane: Lane, pinned: boolean): void => {
    const key = `l:${lane.id}`;
    const collapsed = folded.has(key);
    const { strips, h } = stripsOf(layersOf(lane.id), collapsed);
    boxes.push({ kind: 'lane', key, lane, y, h, strips, collapsed, pinned });
    y += h;
  };
  const addGroup = (name: string, n: number): boolean => {
    const key = `g:${name}`;
    const collapsed = folded.has(key);
    boxes.push({ kind: 'group', key, name, lanes: n, y, h: GROUP_H, collapsed });
    y += GROUP_H;
    return !collapsed;
  };
  const shown = lanes.filter(
    (lane) => !wanted || `${lane.name} ${lane.group} ${lane.tid}`.toLowerCase().includes(wanted),
  );
  const pinned = choice.pinned.flatMap((id) => shown.filter((lane) => lane.id === id));
  if (pinned.length && addGroup('Pinned', pinned.length)) for (const lane of pinned) addLane(lane, true);
  if (charts.length && addGroup('Charts', charts.length))
    for (const chart of charts) {
      boxes.push({ kind: 'chart', key: `c:${chart.name}`, ...chart, y, h: CHART_H });
      y += CHART_H;
    }
  const groups = new Map<string, Lane[]>();
  for (const lane of shown) {
    if (pinned.includes(lane)) continue;
    const list = groups.get(lane.group);
    if (list) list.push(lane);
    else groups.set(lane.group, [lane]);
  }
  for (const [name, list] of groups) if (addGroup(name, list.length)) for (const lane of list) addLane(lane, false);
  return { boxes, height: y };
}

/** The boxes that are at least in part between two heights. */
export function visible(boxes: Box[], top: number, bottom: number): Box[] {
  return boxes.filter((box) => box.y < bottom && box.y + box.h > top);
}

export function boxAt(boxes: Box[], y: number): Box | undefined {
  return boxes.find((box) => y >= box.y && y < box.y + box.h);
}

export function stripAt(box: LaneBox, y: number): Strip | undefined {
  return box.strips.find((strip) => y >= box.y + strip.y - 1 && y < box.y + strip.y + strip.h + 1);
}
