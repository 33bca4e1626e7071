// SPDX-License-Identifier: Apache-2.0
// Draws lanes. Everything on the canvas comes from Trace.slices: no event is an object here.
import { NONE } from '../../api';
import type { LaneLayer, Slices, Trace } from '../../api';
import { count } from '../format';
import { hash, pattern, slotOf } from '../theme';
import type { Theme } from '../theme';
import type { Loss } from './head';
import { FRAME_H, POLL_H } from './layout';
import type { LaneBox, Strip } from './layout';
import { aligned, newRects, pack } from './lod';
import type { Rects } from './lod';

/** What was drawn where, for the pointer. */
export interface Hit {
  box: LaneBox;
  layer: LaneLayer;
  y: number;
  h: number;
  rowH: number;
  slices: Slices;
  rects: Rects;
}

export interface Frame {
  ctx: CanvasRenderingContext2D;
  trace: Trace;
  theme: Theme;
  width: number;
  height: number;
  fromNs: number;
  toNs: number;
  scroll: number;
  byLocation: boolean;
  hits: Hit[];
  /** Rows of the flame chart that are left out at the top, by lane. */
  skipped: Map<number, number>;
  /** Losses that hide no polls, and those of context switches, which the row of time off the CPU shows. */
  quiet: Set<number>;
  noSwitches: Loss[];
  /** Where polls were only counted, by thread. */
  counted: Map<number, Counted[]>;
}

export interface Counted {
  fromNs: number;
  toNs: number;
  polls: number;
  parkedNs: number; // NaN: not known
}

const pool: Rects[] = [];
let pooled = 0;

export function beginFrame(frame: Frame): void {
  pooled = 0;
  frame.hits.length = 0;
}

function take(): Rects {
  if (pooled === pool.length) pool.push(newRects());
  return pool[pooled++];
}

function ask(f: Frame, box: LaneBox, layer: LaneLayer, y: number, h: number, rowH: number): Hit {
  const { from, to, pixels } = aligned(f.fromNs, f.toNs, f.width);
  const slices = f.trace.slices(box.lane.id, layer, from, to, pixels);
  if (layer === 'flame') skipRows(slices, f.skipped.get(box.lane.id) ?? 0);
  const rects = pack(slices, f.fromNs, (f.toNs - f.fromNs) / f.width, f.width, take());
  const hit = { box, layer, y, h, rowH, slices, rects };
  f.hits.push(hit);
  return hit;
}

/** Moves rows up; those at the top go below everything that is drawn. */
function skipRows(s: Slices, rows: number): void {
  if (rows) for (let i = 0; i < s.n; i++) s.depth[i] = s.depth[i] >= rows ? s.depth[i] - rows : 255;
}

/** Rectangles by colour, so that the canvas changes its colour seldom. */
function fill(f: Frame, hit: Hit, wide: number, colours: string[], colourOf: (i: number) => number, inset = 1): void {
  const { rects: r, slices: s } = hit;
  const ctx = f.ctx;
  for (let c = 0; c < colours.length; c++) {
    let first = true;
    for (let i = 0; i < r.n; i++) {
      if (r.wide[i] !== wide || colourOf(i) !== c) continue;
      if (first) {
        ctx.fillStyle = colours[c];
        first = false;
      }
      const top = hit.y + s.depth[r.src[i]] * hit.rowH;
      if (top >= hit.y + hit.h) continue;
      const full = hit.rowH - inset;
      const h = wide ? full : Math.max(Math.min(full, 5), Math.round(full * (0.35 + 0.65 * r.cover[i])));
      const gap = wide && r.x1[i] - r.x0[i] > 6 ? 1 : 0;
      ctx.fillRect(r.x0[i], top + full - h, r.x1[i] - r.x0[i] - gap, h);
    }
  }
}

function hatch(f: Frame, hit: Hit, kindOf: (i: number) => number, inset: number, ink: string): void {
  const { rects: r, slices: s } = hit;
  for (let i = 0; i < r.n; i++) {
    const kind = kindOf(i);
    if (!r.wide[i] || kind === 0 || r.x1[i] - r.x0[i] < 8) continue;
    const style = pattern(f.ctx, kind, ink);
    if (!style) continue;
    f.ctx.fillStyle = style;
    f.ctx.globalAlpha = 0.4;
    f.ctx.fillRect(r.x0[i], hit.y + s.depth[r.src[i]] * hit.rowH, r.x1[i] - r.x0[i] - 1, hit.rowH - inset);
  }
  f.ctx.globalAlpha = 1;
}

const CHAR_PX = 6.2;

/** As much of a text as fits, or nothing when that would say nothing. */
export function fitted(text: string, px: number, charPx = CHAR_PX): string {
  const room = Math.floor((px - 6) / charPx);
  if (room < 3) return '';
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

/** Of text in a strip of 12 px: an underscore is still inside. */
const THIN_BASE = 8.75;

function labels(f: Frame, hit: Hit, colour: string, baseline: number, lift = 0): void {
  const { rects: r, slices: s } = hit;
  const ctx = f.ctx;
  ctx.fillStyle = colour;
  for (let i = 0; i < r.n; i++) {
    if (!r.wide[i] || r.x1[i] - r.x0[i] < 26) continue;
    const label = s.label[r.src[i]];
    if (label === NONE) continue;
    const left = Math.max(0, r.x0[i]);
    const text = fitted(f.trace.strings[label] ?? '', Math.min(f.width, r.x1[i]) - left);
    const depth = s.depth[r.src[i]];
    if (text && depth * hit.rowH < hit.h) ctx.fillText(text, left + 4, hit.y + depth * hit.rowH + baseline - lift);
  }
}

function polls(f: Frame, box: LaneBox, strip: Strip, top: number): void {
  const { ctx, theme } = f;
  const rowH = Math.min(POLL_H, strip.h / strip.rows);
  const park = ask(f, box, 'park', top, strip.h, strip.h);
  ctx.fillStyle = theme.park;
  for (let i = 0; i < park.rects.n; i++) {
    const h = Math.max(2, Math.round(rowH * 0.28 * (park.rects.wide[i] ? 1 : park.rects.cover[i])));
    ctx.fillRect(park.rects.x0[i], top + rowH - 1 - h, park.rects.x1[i] - park.rects.x0[i], h);
  }
  const hit = ask(f, box, 'poll', top, strip.h, rowH);
  counted(f, box, top, rowH, hit.rects);
  const { slices: s } = hit;
  const location = (i: number): number => {
    const label = s.label[hit.rects.src[i]];
    return label === NONE ? 9 : slotOf(f.trace.strings[label] ?? '');
  };
  const part = (i: number): number => s.kind[hit.rects.src[i]];
  const colours = f.byLocation ? theme.location : theme.part;
  const colourOf = f.byLocation ? location : part;
  fill(f, hit, 1, colours, colourOf);
  if (!box.collapsed) breakdown(f, box, top, rowH);
  fill(f, hit, 0, colours, colourOf);
  labels(f, hit, theme.onBar, 12, 0);
  stuckAndLost(f, box, strip, top);
}

/** The slices of a long poll, as a band in its lower part. */
function breakdown(f: Frame, box: LaneBox, top: number, rowH: number): void {
  const band = 6;
  const hit = ask(f, box, 'slice', top + rowH - band - 1, band, band);
  const kind = (i: number): number => hit.slices.kind[hit.rects.src[i]];
  const { ctx } = f;
  ctx.fillStyle = f.theme.background;
  for (let i = 0; i < hit.rects.n; i++)
    if (hit.rects.wide[i]) ctx.fillRect(hit.rects.x0[i], hit.y - 1, hit.rects.x1[i] - hit.rects.x0[i], 1);
  fill(f, hit, 1, f.theme.part, kind, 0);
  hatch(f, hit, kind, 0, f.theme.onBar);
}

/** Where, from `a` to `b`, so many pixels are free of bars. */
export function roomBetween(bars: Rects, a: number, b: number, px: number): number | null {
  let left = a;
  for (let i = 0; i < bars.n && left + px <= b; i++) {
    if (bars.x1[i] <= left) continue;
    if (bars.x0[i] >= left + px) return left;
    left = bars.x1[i] + 4;
  }
  return left + px <= b ? left : null;
}

/** A pale band where polls were counted, not recorded one by one: as high as the worker was busy, by its parks. */
function counted(f: Frame, box: LaneBox, top: number, rowH: number, polls: Rects): void {
  const list = f.counted.get(box.lane.threadId);
  if (!list || box.collapsed) return;
  const { ctx, theme } = f;
  const x = (ns: number): number => ((ns - f.fromNs) / (f.toNs - f.fromNs)) * f.width;
  const full = rowH - 1;
  for (const { fromNs, toNs, polls: n, parkedNs } of list) {
    if (toNs < f.fromNs || fromNs > f.toNs || !n) continue;
    const [a, b] = [Math.max(0, x(fromNs)), Math.min(f.width, x(toNs))];
    const busy = Number.isNaN(parkedNs) ? 0.15 : Math.max(0.08, Math.min(1, 1 - parkedNs / (toNs - fromNs)));
    const h = Math.max(3, busy * full);
    ctx.globalAlpha = 0.22;
    ctx.fillStyle = theme.part[4];
    ctx.fillRect(a, top + full - h, b - a - 1, h);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.muted;
    for (const text of [`${count(n)} short polls, counted`, `${count(n)} counted`]) {
      const left = roomBetween(polls, a + 5, b - 5, text.length * CHAR_PX);
      if (left === null) continue;
      ctx.fillText(text, left, top + 9);
      break;
    }
  }
}

function stuckAndLost(f: Frame, box: LaneBox, strip: Strip, top: number): void {
  const { ctx, theme } = f;
  const stuck = ask(f, box, 'stuck', top, strip.h, strip.h);
  ctx.fillStyle = theme.loss;
  for (let i = 0; i < stuck.rects.n; i++) {
    const x = stuck.rects.x1[i];
    ctx.beginPath();
    ctx.moveTo(x - 4, top);
    ctx.lineTo(x + 4, top);
    ctx.lineTo(x, top + 7);
    ctx.fill();
  }
  const lost = ask(f, box, 'loss', top, strip.h, strip.h);
  const style = pattern(ctx, 4, theme.loss);
  for (let i = 0; i < lost.rects.n; i++) {
    if (f.quiet.has(lost.slices.row[lost.rects.src[i]])) continue;
    const w = lost.rects.x1[i] - lost.rects.x0[i];
    ctx.fillStyle = style ?? theme.loss;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(lost.rects.x0[i], top, w, strip.h);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.loss;
    ctx.fillRect(lost.rects.x0[i], top + strip.h - 2, w, 2);
  }
}

/** Where context switches were not recorded, an empty row does not mean that the thread ran. */
function noSwitches(f: Frame, top: number, h: number): void {
  const x = (ns: number): number => ((ns - f.fromNs) / (f.toNs - f.fromNs)) * f.width;
  const style = pattern(f.ctx, 4, f.theme.line);
  if (style) f.ctx.fillStyle = style;
  for (const { fromNs, toNs } of f.noSwitches) {
    const [a, b] = [Math.max(0, x(fromNs)), Math.min(f.width, x(toNs))];
    if (style && b > a) f.ctx.fillRect(a, top + 1, b - a, h - 3);
  }
}

function thin(f: Frame, box: LaneBox, strip: Strip, top: number): void {
  const { theme } = f;
  const hit = ask(f, box, strip.layer, top, strip.h, strip.h);
  const { slices: s, rects: r } = hit;
  if (strip.layer === 'wait' || strip.layer === 'offcpu') {
    const kind = (i: number): number => s.kind[r.src[i]];
    if (strip.layer === 'offcpu') {
      noSwitches(f, top, strip.h);
      f.ctx.globalAlpha = 0.45;
    }
    fill(f, hit, 1, theme.part, kind);
    fill(f, hit, 0, theme.part, kind);
    f.ctx.globalAlpha = 1;
    hatch(f, hit, kind, 1, theme.onBar);
    labels(f, hit, strip.layer === 'wait' ? theme.onBar : theme.text, THIN_BASE);
  } else if (strip.layer === 'event') {
    f.ctx.fillStyle = theme.accent;
    for (let i = 0; i < r.n; i++) {
      const x = r.x0[i] + 1.5;
      f.ctx.beginPath();
      f.ctx.moveTo(x, hit.y + 1);
      f.ctx.lineTo(x + 4, hit.y + 5.5);
      f.ctx.lineTo(x, hit.y + 10);
      f.ctx.lineTo(x - 4, hit.y + 5.5);
      f.ctx.fill();
    }
  } else {
    const colour = (i: number): number => {
      const label = s.label[r.src[i]];
      return label === NONE ? 9 : slotOf(f.trace.strings[label] ?? '');
    };
    f.ctx.globalAlpha = 0.75;
    fill(f, hit, 1, theme.location, colour);
    fill(f, hit, 0, theme.location, colour);
    f.ctx.globalAlpha = 1;
    labels(f, hit, theme.onBar, THIN_BASE);
  }
}

function flame(f: Frame, box: LaneBox, strip: Strip, top: number): void {
  const rowH = Math.min(FRAME_H, strip.h / strip.rows);
  const hit = ask(f, box, 'flame', top, strip.h, rowH);
  const { slices: s, rects: r } = hit;
  const colour = (i: number): number => {
    const label = s.label[r.src[i]];
    return label === NONE ? 5 : hash(f.trace.strings[label] ?? '') % 5;
  };
  fill(f, hit, 1, f.theme.frames, colour);
  fill(f, hit, 0, f.theme.frames, colour);
  labels(f, hit, f.theme.text, THIN_BASE);
}

export function drawLane(f: Frame, box: LaneBox): void {
  const top = box.y - f.scroll;
  f.ctx.font = f.theme.font;
  for (const strip of box.strips) {
    const y = top + strip.y;
    if (y > f.height || y + strip.h < 0) continue;
    if (strip.layer === 'poll') polls(f, box, strip, y);
    else if (strip.layer === 'flame') flame(f, box, strip, y);
    else thin(f, box, strip, y);
  }
}

/** The row under a point: the innermost of what was drawn last there. */
export function find(
  hits: Hit[],
  x: number,
  y: number,
  rectAt: (r: Rects, x: number) => number,
  quiet: Set<number>,
): [Hit, number] | null {
  for (let k = hits.length - 1; k >= 0; k--) {
    const hit = hits[k];
    if (y < hit.y || y >= hit.y + hit.h) continue;
    const row = Math.floor((y - hit.y) / hit.rowH);
    const { rects: r, slices: s } = hit;
    let best = -1;
    const at = rectAt(r, x);
    if (at >= 0 && s.depth[r.src[at]] === row) best = at;
    else
      for (let i = 0; i < r.n; i++)
        if (s.depth[r.src[i]] === row && x >= r.x0[i] - 1 && x <= r.x1[i] + 1)
          if (best < 0 || r.x1[i] - r.x0[i] < r.x1[best] - r.x0[best]) best = i;
    if (best >= 0 && hit.layer !== 'slice' && !(hit.layer === 'loss' && quiet.has(s.row[r.src[best]])))
      return [hit, best];
  }
  return null;
}
