// SPDX-License-Identifier: Apache-2.0
// Pointer and wheel on the timeline: drag selects, wheel and pinch zoom at the cursor, a click opens what is there.
import { NONE } from '../../api';
import { openItem, pan, select, show, zoomAt } from '../actions';
import type { App } from '../context';
import { MAP_H } from './head';
import type { TimelineCanvas } from './canvas';

const TABLES: Record<string, string> = { flame: 'sample' };

interface Drag {
  kind: 'select' | 'pan' | 'map' | 'pinch';
  x: number;
  y: number;
  fromNs: number;
  toNs: number;
  moved: boolean;
}

function wheelFactor(event: WheelEvent): number {
  const lines = event.deltaMode === 1 ? 16 : 1;
  return Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002))));
}

function onWheel(app: App, t: TimelineCanvas, event: WheelEvent): void {
  const box = t.lanes.getBoundingClientRect();
  if (event.shiftKey) {
    t.body.scrollTop += event.deltaY || event.deltaX;
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(app, event.deltaX / t.width);
  else zoomAt(app, t.ns(event.clientX - box.left), wheelFactor(event));
  event.preventDefault();
}

/** The area between two points, as a selection: the time, and the lanes unless it covers all of them. */
function selectArea(app: App, t: TimelineCanvas, drag: Drag, x: number, y: number): void {
  const [a, b] = [t.ns(Math.max(0, Math.min(drag.x, x))), t.ns(Math.min(t.width, Math.max(drag.x, x)))];
  const scroll = t.body.scrollTop;
  const [top, bottom] = [Math.min(drag.y, y) + scroll, Math.max(drag.y, y) + scroll];
  const threads: number[] = [];
  for (const box of t.boxes.boxes)
    if (box.kind === 'lane' && box.y < bottom && box.y + box.h > top && !threads.includes(box.lane.threadId))
      threads.push(box.lane.threadId);
  const all = threads.length === 0 || threads.length === app.loaded.get().info.lanes.length;
  select(app, { fromNs: Math.round(a), toNs: Math.round(b), threadIds: all ? undefined : threads });
}

function click(app: App, t: TimelineCanvas, x: number, y: number): void {
  const found = t.at(x, y);
  if (!found) return openItem(app, null);
  const [hit, i] = found;
  const rowid = hit.slices.row[hit.rects.src[i]];
  if (rowid === NONE) return app.loaded.set({ said: 'The trace is still being read: what this is can be asked soon.' });
  openItem(app, { kind: 'row', table: TABLES[hit.layer] ?? hit.layer, rowid });
}

function moveMap(app: App, t: TimelineCanvas, drag: Drag, x: number): void {
  const { info } = app.loaded.get();
  const at = (px: number): number => info.fromNs + (px / t.width) * (info.toNs - info.fromNs);
  const { fromNs, toNs } = drag;
  const start = at(drag.x);
  if (start >= fromNs && start <= toNs && toNs - fromNs < 0.98 * (info.toNs - info.fromNs)) {
    const by = at(x) - start;
    return show(app, fromNs + by, toNs + by);
  }
  if (Math.abs(x - drag.x) > 3) show(app, Math.min(start, at(x)), Math.max(start, at(x)));
}

type Hover = (x: number, y: number) => void;

/** Listens until the returned function is called. `hover` and `hoverHead` are given where the pointer is. */
export function listen(app: App, t: TimelineCanvas, hover: Hover, hoverHead: Hover, left: () => void): () => void {
  let drag: Drag | null = null;
  const pointers = new Map<number, number>();
  const aborter = new AbortController();
  const options = { signal: aborter.signal };

  const down =
    (canvas: HTMLCanvasElement) =>
    (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const { fromNs, toNs } = app.view.get();
      pointers.set(event.pointerId, x);
      canvas.setPointerCapture(event.pointerId);
      let kind: Drag['kind'] = event.shiftKey || event.button === 1 ? 'pan' : 'select';
      if (canvas === t.head && y < MAP_H) kind = 'map';
      if (pointers.size === 2) kind = 'pinch';
      if (event.button > 1) return;
      drag = { kind, x, y: canvas === t.head ? 0 : y, fromNs, toNs, moved: false };
      left();
    };
  const pinch = (event: PointerEvent, x: number): void => {
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, px]) => px);
    const before = Math.abs((pointers.get(event.pointerId) ?? x) - others[0]);
    const after = Math.abs(x - others[0]);
    if (before > 4 && after > 4) zoomAt(app, t.ns((x + others[0]) / 2), before / after);
    pointers.set(event.pointerId, x);
  };
  const move =
    (canvas: HTMLCanvasElement) =>
    (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      if (!drag) {
        t.hoverNs = t.ns(x);
        t.request();
        if (canvas === t.lanes) hover(x, y);
        else hoverHead(x, y);
        return;
      }
      if (Math.abs(x - drag.x) > 3 || Math.abs(y - drag.y) > 6) drag.moved = true;
      if (drag.kind === 'pinch') return pinch(event, x);
      if (!drag.moved && drag.kind !== 'map') return;
      if (drag.kind === 'map') moveMap(app, t, drag, x);
      else if (drag.kind === 'pan') {
        const by = ((drag.x - x) / t.width) * (drag.toNs - drag.fromNs);
        show(app, drag.fromNs + by, drag.toNs + by);
      } else if (Math.abs(x - drag.x) > 3) {
        if (canvas === t.head)
          select(app, {
            fromNs: Math.round(t.ns(Math.min(drag.x, x))),
            toNs: Math.round(t.ns(Math.max(drag.x, x))),
            threadIds: undefined,
          });
        else selectArea(app, t, drag, x, y);
      }
    };
  const up =
    (canvas: HTMLCanvasElement) =>
    (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      pointers.delete(event.pointerId);
      if (drag && !drag.moved && drag.kind === 'select' && canvas === t.lanes)
        click(app, t, event.clientX - box.left, event.clientY - box.top);
      drag = null;
    };
  for (const canvas of [t.head, t.lanes]) {
    canvas.addEventListener('pointerdown', down(canvas), options);
    canvas.addEventListener('pointermove', move(canvas), options);
    canvas.addEventListener('pointerup', up(canvas), options);
    canvas.addEventListener('pointercancel', up(canvas), options);
    canvas.addEventListener('wheel', (event) => onWheel(app, t, event), { ...options, passive: false });
    canvas.addEventListener(
      'pointerleave',
      () => {
        t.hoverNs = NaN;
        t.request();
        left();
      },
      options,
    );
  }
  return () => aborter.abort();
}
