// SPDX-License-Identifier: Apache-2.0
// The minimap of the whole trace and the ruler above the lanes.
import type { Trace } from '../../api';
import { clock, duration, moment, niceStep } from '../format';
import type { Theme } from '../theme';
import { pattern } from '../theme';
import type { View } from '../state';
import { lengthOf } from './lod';

export const MAP_H = 44;
export const RULER_H = 24;
export const HEAD_H = MAP_H + RULER_H;

export function rulerStep(fromNs: number, toNs: number, width: number): number {
  return niceStep(((toNs - fromNs) / width) * 110);
}

/** The minimap's picture: for each column the longest poll, on a scale of logarithms, in the colour of its part. */
export function paintMap(canvas: HTMLCanvasElement, trace: Trace, theme: Theme, width: number, dpr: number): void {
  canvas.width = Math.max(1, Math.round(width * dpr));
  canvas.height = MAP_H * dpr;
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  ctx.scale(dpr, dpr);
  const { fromNs, toNs, lanes } = trace.info;
  const columns = Math.max(1, Math.floor(width / 2));
  const longest = new Float64Array(columns);
  const kind = new Uint8Array(columns);
  const layers = ['poll', 'wait', 'offcpu', 'flame'] as const;
  for (const layer of layers) {
    let any = false;
    for (const lane of lanes) {
      const s = trace.slices(lane.id, layer, fromNs, toNs, columns);
      if (s.n) any = true;
      for (let i = 0; i < s.n; i++) {
        const ns = s.count[i] > 1 && !s.longestNs ? (s.coverNs?.[i] ?? 0) / s.count[i] : lengthOf(s, i);
        const first = Math.max(0, Math.floor(((s.beginNs[i] - fromNs) / (toNs - fromNs)) * columns));
        const last = Math.min(columns - 1, Math.floor(((s.endNs[i] - fromNs) / (toNs - fromNs)) * columns));
        for (let c = first; c <= last; c++) if (ns > longest[c]) [longest[c], kind[c]] = [ns, s.kind[i]];
      }
    }
    if (any) break;
  }
  let most = 1e3;
  for (const ns of longest) if (ns > most) most = ns;
  const span = Math.log(most / 1e3) || 1;
  for (let c = 0; c < columns; c++) {
    if (!longest[c]) continue;
    const h = Math.max(2, (Math.max(0, Math.log(longest[c] / 1e3)) / span) * (MAP_H - 8));
    ctx.fillStyle = theme.part[kind[c]] ?? theme.accent;
    ctx.globalAlpha = 0.35 + 0.65 * Math.min(1, (h / (MAP_H - 8)) ** 2);
    ctx.fillRect(c * 2, MAP_H - 2 - h, 2, h);
  }
  ctx.globalAlpha = 1;
}

export interface Loss {
  rowid: number;
  threadId: number; // -1: of no one thread
  fromNs: number;
  toNs: number;
  reason: string;
}

/** Losses that say nothing of polls: records of context switches and samples that are missing. */
export function isQuiet(reason: string): boolean {
  return [
    'context switches',
    'no memory for stacks',
    'thread not sampled',
    'signal taken',
    'polls beyond the cap',
  ].includes(reason);
}

export interface Head {
  ctx: CanvasRenderingContext2D;
  map: HTMLCanvasElement;
  theme: Theme;
  width: number;
  trace: Trace;
  view: View;
  losses: Loss[];
  matches: { fromNs: number }[];
  hoverNs: number;
}

function drawMap(h: Head): void {
  const { ctx, theme, width, view } = h;
  const { fromNs, toNs } = h.trace.info;
  const x = (ns: number): number => ((ns - fromNs) / (toNs - fromNs)) * width;
  ctx.fillStyle = theme.panel;
  ctx.fillRect(0, 0, width, MAP_H);
  ctx.drawImage(h.map, 0, 0, width, MAP_H);
  const { selection } = view;
  if (selection.fromNs !== undefined && selection.toNs !== undefined) {
    ctx.fillStyle = theme.selection;
    ctx.fillRect(x(selection.fromNs), 0, Math.max(2, x(selection.toNs) - x(selection.fromNs)), MAP_H);
  }
  const [a, b] = [x(view.fromNs), x(view.toNs)];
  ctx.fillStyle = theme.background;
  ctx.globalAlpha = 0.6;
  ctx.fillRect(0, 0, Math.max(0, a), MAP_H);
  ctx.fillRect(b, 0, Math.max(0, width - b), MAP_H);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(Math.max(0.75, a), 0.75, Math.max(3, Math.min(width, b) - Math.max(0, a)) - 1.5, MAP_H - 1.5);
  ctx.lineWidth = 1;
  for (const loss of h.losses) {
    if (isQuiet(loss.reason)) continue;
    ctx.fillStyle = theme.loss;
    ctx.fillRect(x(loss.fromNs), MAP_H - 3, Math.max(2, x(loss.toNs) - x(loss.fromNs)), 2);
  }
}

function drawRuler(h: Head): void {
  const { ctx, theme, width, view } = h;
  const step = rulerStep(view.fromNs, view.toNs, width);
  const x = (ns: number): number => ((ns - view.fromNs) / (view.toNs - view.fromNs)) * width;
  ctx.fillStyle = theme.background;
  ctx.fillRect(0, MAP_H, width, RULER_H);
  for (const loss of h.losses) {
    const [a, b] = [Math.max(0, x(loss.fromNs)), Math.min(width, x(loss.toNs))];
    if (b <= a && (b < 0 || a > width)) continue;
    const ink = isQuiet(loss.reason) ? theme.line : theme.loss;
    ctx.fillStyle = pattern(ctx, 4, ink) ?? ink;
    ctx.globalAlpha = isQuiet(loss.reason) ? 1 : 0.5;
    ctx.fillRect(a, MAP_H + RULER_H - 6, Math.max(3, b - a), 5);
    ctx.globalAlpha = 1;
  }
  ctx.font = theme.font;
  const unix = h.trace.info.startUnixNs;
  for (let t = Math.ceil(view.fromNs / step) * step; t < view.toNs; t += step) {
    const at = Math.round(x(t));
    ctx.fillStyle = theme.line;
    ctx.fillRect(at, MAP_H + 14, 1, RULER_H - 14);
    ctx.fillStyle = theme.muted;
    const text = view.time === 'wall' && unix ? clock(t, unix, step) : moment(t, step);
    ctx.fillText(text, at + 4, MAP_H + 13);
  }
  ctx.fillStyle = theme.accent;
  for (const match of h.matches) ctx.fillRect(x(match.fromNs) - 1, MAP_H + RULER_H - 8, 2, 7);
  for (const mark of view.marks) {
    const at = x(mark);
    ctx.beginPath();
    ctx.moveTo(at, MAP_H + RULER_H);
    ctx.lineTo(at, MAP_H + 6);
    ctx.lineTo(at + 9, MAP_H + 10);
    ctx.lineTo(at, MAP_H + 14);
    ctx.fill();
  }
  const { selection } = view;
  if (selection.fromNs !== undefined && selection.toNs !== undefined) {
    const [a, b] = [x(selection.fromNs), x(selection.toNs)];
    ctx.fillStyle = theme.accent;
    ctx.fillRect(a, MAP_H + RULER_H - 3, b - a, 3);
    const text = duration(selection.toNs - selection.fromNs);
    const w = ctx.measureText(text).width + 8;
    const mid = Math.max(w / 2, Math.min(width - w / 2, (Math.max(0, a) + Math.min(width, b)) / 2));
    ctx.fillRect(mid - w / 2, MAP_H + 3, w, 14);
    ctx.fillStyle = theme.panel;
    ctx.fillText(text, mid - w / 2 + 4, MAP_H + 14);
  }
  ctx.fillStyle = theme.line;
  ctx.fillRect(0, MAP_H, width, 1);
  ctx.fillRect(0, HEAD_H - 1, width, 1);
  if (h.hoverNs >= view.fromNs && h.hoverNs <= view.toNs) {
    ctx.fillStyle = theme.muted;
    ctx.fillRect(Math.round(x(h.hoverNs)), MAP_H + 14, 1, RULER_H - 14);
  }
}

export function drawHead(h: Head): void {
  drawMap(h);
  drawRuler(h);
}
