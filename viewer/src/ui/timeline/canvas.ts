// SPDX-License-Identifier: Apache-2.0
// The two canvases of the timeline: draws them when something changed, at most once a frame.
import type { LaneLayer } from '../../api';
import type { App } from '../context';
import { readTheme } from '../theme';
import type { Theme } from '../theme';
import { beginFrame, drawLane, find } from './draw';
import type { Counted, Frame, Hit } from './draw';
import { HEAD_H, drawHead, isQuiet, paintMap, rulerStep } from './head';
import type { Loss } from './head';
import { layout, visible } from './layout';
import type { Box, Layers, Layout } from './layout';
import { hit as rectAt } from './lod';
import { drawArrows, drawChart, drawGrid, drawMarks, drawMatches, drawPlace, drawSelection } from './overlay';
import type { Chart } from './overlay';
import { Tiles } from './tiles';

const LAYERS: LaneLayer[] = ['poll', 'park', 'stuck', 'wait', 'offcpu', 'context', 'event', 'flame'];
const GUTTER = 190; // labels of lanes, as in page.css
const CHARTS = [
  { name: 'utilisation', title: 'Workers in polls' },
  { name: 'queue', title: 'Queue depth' },
  { name: 'wake_delay', title: 'Wake to poll' },
  { name: 'cost', title: 'CPU used by weft' },
];

export class TimelineCanvas {
  theme: Theme;
  hits: Hit[] = [];
  charts = new Map<string, Chart>();
  boxes: Layout = { boxes: [], height: 0 };
  losses: Loss[] = [];
  hoverNs = NaN;
  width = 100;
  height = 100;
  /** Times of the last frames' drawing, in ms, for the figure of the bench. */
  frames: number[] = [];
  private dirty = false;
  private layers = new Map<number, Layers>();
  private map = document.createElement('canvas');
  private mapFor = '';
  private frame: Frame;
  private lastBoxes = '';
  private charted = CHARTS;
  private tiles: Tiles;

  constructor(
    readonly app: App,
    readonly head: HTMLCanvasElement,
    readonly lanes: HTMLCanvasElement,
    readonly body: HTMLElement,
    readonly onLayout: (layout: Layout) => void,
  ) {
    this.theme = readTheme();
    this.tiles = new Tiles(app.trace);
    this.frame = {
      ctx: lanes.getContext('2d', { alpha: false }) as CanvasRenderingContext2D,
      trace: app.trace,
      theme: this.theme,
      width: 0,
      height: 0,
      fromNs: 0,
      toNs: 1,
      scroll: 0,
      byLocation: false,
      hits: this.hits,
      skipped: new Map(),
      quiet: new Set(),
      noSwitches: [],
      counted: new Map(),
    };
  }

  /** Which layers each lane has: what is not there gets no room. Called before the first picture. */
  readLayers(): void {
    const { info } = this.app.loaded.get();
    for (const lane of info.lanes) {
      const found: Layers = {};
      for (const layer of LAYERS) {
        const s = this.app.trace.slices(lane.id, layer, info.fromNs, info.toNs, 200);
        if (!s.n) continue;
        let deepest = 0;
        for (let i = 0; i < s.n; i++) deepest = Math.max(deepest, s.depth[i]);
        found[layer] = deepest + 1;
        if (layer !== 'flame') continue;
        const skipped = this.app.trace.sharedFrames(lane.id);
        this.frame.skipped.set(lane.id, skipped);
        found.flame = deepest + 1 - skipped;
      }
      this.layers.set(lane.id, found);
    }
    const any = (name: string): boolean =>
      this.app.trace.series(name, null, info.fromNs, info.toNs, 200).max.some((v) => !Number.isNaN(v));
    this.charted = CHARTS.filter(({ name }) => any(name));
    this.mapFor = '';
    this.relayout();
  }

  relayout(): void {
    const view = this.app.view.get();
    const { info } = this.app.loaded.get();
    const key = JSON.stringify([
      view.pinned,
      view.collapsed,
      view.laneFilter,
      info.lanes.length,
      this.charted,
      [...this.layers.values()],
    ]);
    if (key === this.lastBoxes) return;
    this.lastBoxes = key;
    this.boxes = layout(info.lanes, (id) => this.layers.get(id) ?? {}, this.charted, view);
    this.onLayout(this.boxes);
  }

  resize(): void {
    const dpr = Math.min(2, window.devicePixelRatio || 1);
    // Both canvases are as wide as what the scroll bar leaves, or moments of the ruler were not above their bars.
    this.width = Math.max(50, this.body.clientWidth - GUTTER);
    this.height = Math.max(50, this.body.clientHeight);
    for (const [canvas, h] of [
      [this.head, HEAD_H],
      [this.lanes, this.height],
    ] as const) {
      canvas.width = Math.round(this.width * dpr);
      canvas.height = Math.round(h * dpr);
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${h}px`;
    }
    this.mapFor = '';
    this.request();
  }

  themeChanged(): void {
    this.theme = this.frame.theme = readTheme();
    this.mapFor = '';
    this.request();
  }

  request(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.draw();
    });
  }

  private drawHead(): void {
    const { app, theme, width } = this;
    const { info, matches } = app.loaded.get();
    const dpr = this.head.width / width;
    const wanted = `${width}/${info.events}/${theme.background}/${dpr}`;
    if (wanted !== this.mapFor) {
      this.mapFor = wanted;
      paintMap(this.map, app.trace, theme, width, dpr);
    }
    const ctx = this.head.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    const { trace } = app;
    drawHead({
      ctx,
      map: this.map,
      theme,
      width,
      trace,
      view: app.view.get(),
      losses: this.losses,
      matches,
      hoverNs: this.hoverNs,
    });
  }

  draw(): void {
    const began = performance.now();
    const view = this.app.view.get();
    const { place, matches, match } = this.app.loaded.get();
    this.relayout();
    this.drawHead();
    const f = this.frame;
    const { ctx } = f;
    const dpr = this.lanes.width / this.width;
    Object.assign(f, { width: this.width, height: this.height, fromNs: view.fromNs, toNs: view.toNs });
    f.scroll = this.body.scrollTop;
    f.byLocation = view.colour === 'location';
    beginFrame(f);
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.fillStyle = this.theme.background;
    ctx.fillRect(0, 0, f.width, f.height);
    drawGrid(f, rulerStep(view.fromNs, view.toNs, f.width));
    const boxes = visible(this.boxes.boxes, f.scroll, f.scroll + f.height);
    for (const box of boxes) this.drawBox(f, box);
    drawSelection(f, view, boxes);
    drawMarks(f, view);
    drawMatches(f, boxes, matches, match);
    drawPlace(f, boxes, place);
    if (place) drawArrows(f, this.boxes.boxes, place.arrows);
    if (this.hoverNs >= view.fromNs && this.hoverNs <= view.toNs) {
      ctx.fillStyle = this.theme.line;
      ctx.fillRect(Math.round(this.x(this.hoverNs)), 0, 1, f.height);
    }
    this.frames.push(performance.now() - began);
    if (this.frames.length > 2000) this.frames.splice(0, 1000);
  }

  private drawBox(f: Frame, box: Box): void {
    const y = box.y - f.scroll;
    if (box.kind === 'group') {
      f.ctx.fillStyle = this.theme.panel;
      f.ctx.fillRect(0, y, f.width, box.h);
    } else if (box.kind === 'chart') this.charts.set(box.name, drawChart(f, box, this.tiles));
    else drawLane(f, box);
    f.ctx.fillStyle = this.theme.line;
    f.ctx.fillRect(0, y + box.h - 1, f.width, 1);
  }

  x(ns: number): number {
    const { fromNs, toNs } = this.app.view.get();
    return ((ns - fromNs) / (toNs - fromNs)) * this.width;
  }
  ns(x: number): number {
    const { fromNs, toNs } = this.app.view.get();
    return fromNs + (x / this.width) * (toNs - fromNs);
  }

  /** All losses; those of one thread are drawn on its lane, the others on the ruler, too. */
  setLosses(losses: Loss[]): void {
    this.losses = losses.filter((l) => l.threadId < 0);
    this.frame.quiet = new Set(losses.filter((l) => isQuiet(l.reason)).map((l) => l.rowid));
    this.frame.noSwitches = losses.filter((l) => l.reason === 'context switches');
    this.request();
  }

  setCounted(counted: Frame['counted']): void {
    this.frame.counted = counted;
    this.request();
  }

  /** The polls of a lane that were only counted around a moment. */
  countedAt(threadId: number, ns: number): Counted | undefined {
    return this.frame.counted.get(threadId)?.find((c) => ns >= c.fromNs && ns <= c.toNs);
  }

  /** Scrolls as little as makes a lane visible, with the others that arrows lead to if there is room. */
  revealLanes(threadId: number, others: number[]): void {
    const boxOf = (id: number): Box | undefined =>
      this.boxes.boxes.find((b) => b.kind === 'lane' && b.lane.threadId === id);
    const main = boxOf(threadId);
    if (!main) return;
    const { scrollTop, clientHeight } = this.body;
    const bottomOf = (b: Box): number => b.y + Math.min(b.h, 44);
    const all = [main, ...others.map(boxOf).filter((b) => b !== undefined)];
    let [top, bottom] = [Math.min(...all.map((b) => b.y)), Math.max(...all.map(bottomOf))];
    if (bottom - top > clientHeight) [top, bottom] = [main.y, bottomOf(main)];
    if (top < scrollTop) this.body.scrollTop = top - 20;
    else if (bottom > scrollTop + clientHeight) this.body.scrollTop = Math.min(top - 20, bottom - clientHeight + 4);
  }

  /** The first lanes of a recording, and what they are called. */
  revealRecording(number: number): void {
    const first = this.boxes.boxes.findIndex((b) => b.kind === 'lane' && !b.pinned && b.lane.recording === number);
    const box = this.boxes.boxes[first - 1] ?? this.boxes.boxes[first];
    if (box) this.body.scrollTop = box.y;
  }

  /** What is missing at a moment, for the ruler's tooltip. */
  lossesAt(ns: number): Loss[] {
    const slack = this.ns(3) - this.ns(0);
    return this.losses.filter((l) => ns >= l.fromNs - slack && ns <= l.toNs + slack);
  }

  at(x: number, y: number): [Hit, number] | null {
    return find(this.hits, x, y, rectAt, this.frame.quiet);
  }
}
