// SPDX-License-Identifier: Apache-2.0
// What is drawn over the lanes: the selection, the item, arrows, marks, matches; and charts.
import type { Series } from '../../api';
import type { Arrow, Match, Place } from '../context';
import type { View } from '../state';
import { byUnit, duration, share } from '../format';
import { pattern } from '../theme';
import type { Frame } from './draw';
import type { Box, ChartBox, LaneBox } from './layout';
import { stepOf } from './tiles';
import type { Tiles } from './tiles';

function x(f: Frame, ns: number): number {
  return ((ns - f.fromNs) / (f.toNs - f.fromNs)) * f.width;
}

function laneBox(boxes: Box[], threadId: number): LaneBox | undefined {
  return boxes.find((box): box is LaneBox => box.kind === 'lane' && box.lane.threadId === threadId);
}

export function drawGrid(f: Frame, stepNs: number): void {
  f.ctx.fillStyle = f.theme.grid;
  for (let t = Math.ceil(f.fromNs / stepNs) * stepNs; t < f.toNs; t += stepNs)
    f.ctx.fillRect(Math.round(x(f, t)), 0, 1, f.height);
}

export function drawSelection(f: Frame, view: View, boxes: Box[]): void {
  const { fromNs, toNs, threadIds } = view.selection;
  if (fromNs === undefined || toNs === undefined) return;
  const { ctx, theme } = f;
  const [a, b] = [x(f, fromNs), x(f, toNs)];
  if (b < 0 || a > f.width) return;
  ctx.fillStyle = theme.selection;
  for (const box of boxes) {
    if (box.kind === 'group') continue;
    if (threadIds && (box.kind !== 'lane' || !threadIds.includes(box.lane.threadId))) continue;
    ctx.fillRect(a, box.y - f.scroll, b - a, box.h);
  }
  ctx.fillStyle = theme.accent;
  ctx.fillRect(Math.round(a), 0, 1, f.height);
  ctx.fillRect(Math.round(b), 0, 1, f.height);
}

export function drawMarks(f: Frame, view: View): void {
  const { ctx, theme } = f;
  ctx.strokeStyle = theme.accent;
  ctx.setLineDash([4, 3]);
  ctx.beginPath();
  for (const mark of view.marks) {
    const at = Math.round(x(f, mark)) + 0.5;
    if (at < 0 || at > f.width) continue;
    ctx.moveTo(at, 0);
    ctx.lineTo(at, f.height);
  }
  ctx.stroke();
  ctx.setLineDash([]);
}

/** Outline of one interval in the strip of its layer. */
function outline(f: Frame, boxes: Box[], threadId: number, layer: string, fromNs: number, toNs: number): void {
  const box = laneBox(boxes, threadId);
  if (!box) return;
  const strip = box.strips.find((s) => s.layer === layer) ?? box.strips[0];
  if (!strip) return;
  const a = Math.max(-4, x(f, fromNs));
  const b = Math.min(f.width + 4, Math.max(a + 4, x(f, toNs)));
  f.ctx.strokeRect(a - 1, box.y - f.scroll + strip.y - 1.5, b - a + 1, strip.h + 2);
}

export function drawPlace(f: Frame, boxes: Box[], place: Place | null): void {
  if (!place || place.threadId < 0) return;
  f.ctx.strokeStyle = f.theme.text;
  f.ctx.lineWidth = 2;
  outline(f, boxes, place.threadId, place.layer, place.fromNs, place.toNs);
  f.ctx.lineWidth = 1;
}

export function drawMatches(f: Frame, boxes: Box[], matches: Match[], current: number): void {
  f.ctx.strokeStyle = f.theme.accent;
  const layer = (m: Match): string => (m.table === 'sample' ? 'flame' : m.table);
  matches.forEach((m, i) => {
    if (m.toNs < f.fromNs || m.fromNs > f.toNs) return;
    f.ctx.lineWidth = i === current ? 2 : 1;
    outline(f, boxes, m.threadId, layer(m), m.fromNs, m.toNs);
  });
  f.ctx.lineWidth = 1;
}

function arrowHead(ctx: CanvasRenderingContext2D, px: number, py: number, down: number): void {
  ctx.beginPath();
  ctx.moveTo(px, py);
  ctx.lineTo(px - 4, py - 7 * down);
  ctx.lineTo(px + 4, py - 7 * down);
  ctx.fill();
}

function arrow(f: Frame, boxes: Box[], a: Arrow): void {
  const from = laneBox(boxes, a.fromThread);
  const to = laneBox(boxes, a.toThread);
  if (!from || !to) return;
  const { ctx, theme } = f;
  const x0 = Math.max(-20, Math.min(f.width + 20, x(f, a.fromNs)));
  const x1 = Math.max(-20, Math.min(f.width + 20, x(f, a.toNs)));
  const same = from === to;
  const down = from.y <= to.y ? 1 : -1;
  const stripOf = (box: LaneBox): number => box.y - f.scroll + (box.strips[0]?.y ?? 2);
  const heightOf = (box: LaneBox): number => Math.min(22, box.strips[0]?.h ?? 10);
  const y0 = same ? stripOf(from) : stripOf(from) + heightOf(from) / 2;
  const y1 = same ? stripOf(to) : down > 0 ? stripOf(to) : stripOf(to) + heightOf(to);
  ctx.strokeStyle = ctx.fillStyle = theme[a.kind];
  ctx.lineWidth = a.kind === 'delayed' ? 1 : 1.75;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  if (same) ctx.bezierCurveTo(x0, y0 - 16, x1, y1 - 16, x1, y1);
  else {
    const bend = (y1 - y0) * 0.5;
    ctx.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }
  ctx.stroke();
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.arc(x0, y0, 2.5, 0, 7);
  ctx.fill();
  arrowHead(ctx, x1, y1, same ? 1 : down);
  if (a.kind === 'delayed') return;
  const mid = { x: (x0 + x1) / 2 + 6, y: same ? Math.max(10, y0 - 14) : (y0 + y1) / 2 };
  const w = ctx.measureText(a.label).width;
  const lx = Math.max(4, Math.min(f.width - w - 8, mid.x));
  ctx.fillStyle = theme.panel;
  ctx.globalAlpha = 0.9;
  ctx.fillRect(lx - 3, mid.y - 9, w + 6, 13);
  ctx.globalAlpha = 1;
  ctx.fillStyle = theme.text;
  ctx.fillText(a.label, lx, mid.y + 1);
}

export function drawArrows(f: Frame, boxes: Box[], arrows: Arrow[]): void {
  f.ctx.font = f.theme.font;
  for (const one of arrows) if (one.kind === 'delayed') arrow(f, boxes, one);
  for (const one of arrows) if (one.kind !== 'delayed') arrow(f, boxes, one);
}

export function chartText(series: Series, value: number): string {
  if (Number.isNaN(value)) return 'not measured';
  if (series.unit === 'ns') return duration(value);
  if (series.unit === 'share' || series.unit === '1')
    return value > 0 && value < 0.0005 ? '< 0.1 %' : share(value, 1);
  return byUnit(value, series.unit);
}

export interface Chart {
  tiles: Series[];
  stepNs: number;
}

export interface Reading {
  series: Series;
  min: number;
  max: number;
  mean: number;
}

/** What a chart has at a moment. */
export function readingAt(chart: Chart, ns: number): Reading | null {
  for (const series of chart.tiles) {
    const i = Math.floor((ns - series.timeNs[0]) / chart.stepNs + 0.5);
    if (i >= 0 && i < series.timeNs.length)
      return { series, min: series.min[i], max: series.max[i], mean: series.mean[i] };
  }
  return null;
}

function nothing(f: Frame, top: number, h: number): void {
  const style = pattern(f.ctx, 4, f.theme.grid);
  if (style) {
    f.ctx.fillStyle = style;
    f.ctx.fillRect(0, top, f.width, h);
  }
  f.ctx.fillStyle = f.theme.muted;
  f.ctx.font = f.theme.font;
  f.ctx.fillText('not measured in this range', 8, top + h / 2 + 4);
}

/** What the top of a chart stands for. */
function scaleText(f: Frame, text: string, top: number): void {
  const { ctx, theme } = f;
  ctx.font = theme.font;
  const w = ctx.measureText(text).width + 8;
  ctx.fillStyle = theme.background;
  ctx.globalAlpha = 0.8;
  ctx.fillRect(f.width - w, top, w, 12);
  ctx.globalAlpha = 1;
  ctx.fillStyle = theme.muted;
  ctx.fillText(text, f.width - w + 4, top + 10);
}

/** An area of the maximum with the mean over it; where nothing was read there is a hatch, not a zero. */
export function drawChart(f: Frame, box: ChartBox, kept: Tiles): Chart {
  const { ctx, theme } = f;
  const stepNs = stepOf((f.toNs - f.fromNs) / f.width);
  const tiles = kept.over(box.name, f.fromNs, f.toNs, stepNs);
  const top = box.y - f.scroll + 4;
  const h = box.h - 8;
  let most = -1;
  const each = (visit: (series: Series, i: number) => void): void => {
    for (const series of tiles)
      for (let i = 0; i < series.timeNs.length; i++)
        if (series.max[i] >= 0 && series.timeNs[i] > f.fromNs - stepNs && series.timeNs[i] < f.toNs + stepNs)
          visit(series, i);
  };
  each((series, i) => {
    if (series.max[i] > most) most = series.max[i];
  });
  if (most < 0) nothing(f, top, h);
  else {
    if (box.name === 'utilisation') most = 1;
    const scale = most > 0 ? h / most : 0;
    const w = (stepNs / (f.toNs - f.fromNs)) * f.width;
    ctx.fillStyle = theme.accent;
    ctx.globalAlpha = 0.28;
    each((series, i) => {
      const high = Math.max(1, series.max[i] * scale);
      ctx.fillRect(x(f, series.timeNs[i]) - w / 2, top + h - high, w, high);
    });
    ctx.globalAlpha = 1;
    each((series, i) =>
      ctx.fillRect(x(f, series.timeNs[i]) - w / 2, top + h - series.mean[i] * scale - 0.75, w, 1.5),
    );
    scaleText(f, chartText(tiles[0], most), top);
  }
  ctx.fillStyle = theme.line;
  ctx.fillRect(0, top + h, f.width, 1);
  return { tiles, stepNs };
}
