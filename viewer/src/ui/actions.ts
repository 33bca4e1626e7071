// SPDX-License-Identifier: Apache-2.0
// What keys, buttons and the pointer do to the view.
import { NONE, type Selection } from '../api';
import type { App, Match } from './context';
import { isEmpty, sameItem } from './state';
import type { Item, Panel } from './state';
import { many, one, timesOf } from './table';

const LEAST_NS = 20;

/** A range inside the trace, with a little room at both ends, and no shorter than LEAST_NS. */
export function clamp(fromNs: number, toNs: number, first: number, last: number): [number, number] {
  const room = Math.max(1, (last - first) * 0.02);
  const most = last - first + 2 * room;
  const span = Math.min(most, Math.max(LEAST_NS, toNs - fromNs));
  let from = fromNs + (toNs - fromNs - span) / 2;
  from = Math.max(first - room, Math.min(last + room - span, from));
  return [from, from + span];
}

export function show(app: App, fromNs: number, toNs: number): void {
  const { info } = app.loaded.get();
  const [from, to] = clamp(fromNs, toNs, info.fromNs, info.toNs);
  app.view.set({ fromNs: from, toNs: to });
}

export function zoomAt(app: App, ns: number, factor: number): void {
  const { fromNs, toNs } = app.view.get();
  const { info } = app.loaded.get();
  const span = Math.max(LEAST_NS, Math.min((toNs - fromNs) * factor, (info.toNs - info.fromNs) * 1.04));
  const at = (ns - fromNs) / (toNs - fromNs);
  show(app, ns - at * span, ns + (1 - at) * span);
}

export function zoom(app: App, factor: number): void {
  const { fromNs, toNs } = app.view.get();
  zoomAt(app, (fromNs + toNs) / 2, factor);
}

export function pan(app: App, share: number): void {
  const { fromNs, toNs } = app.view.get();
  const by = (toNs - fromNs) * share;
  show(app, fromNs + by, toNs + by);
}

export function showAll(app: App): void {
  const { info } = app.loaded.get();
  app.view.set({ fromNs: info.fromNs, toNs: info.toNs });
}

/** The time of one recording, or of all. */
export function showRecording(app: App, number: number | null): void {
  const recording = number === null ? undefined : app.loaded.get().info.recordings[number];
  if (!recording) return showAll(app);
  const { shiftNs, spanNs } = recording;
  app.view.set({ fromNs: shiftNs, toNs: shiftNs + Math.max(spanNs, 1000) });
}

/** What `f` is about: the item, else the selected area. */
function focused(app: App): [number, number] | null {
  const { place } = app.loaded.get();
  const { selection } = app.view.get();
  if (place) return [place.fromNs, place.toNs];
  if (selection.fromNs !== undefined && selection.toNs !== undefined) return [selection.fromNs, selection.toNs];
  return null;
}

/** First centres, then fits: it fits when it is in the middle already. */
export function focus(app: App): void {
  const range = focused(app);
  if (!range) return showAll(app);
  const { fromNs, toNs } = app.view.get();
  const [mid, now] = [(range[0] + range[1]) / 2, (fromNs + toNs) / 2];
  const span = toNs - fromNs;
  if (Math.abs(mid - now) < span * 0.005) return fit(app, range[0], range[1]);
  show(app, mid - span / 2, mid + span / 2);
  if (app.view.get().fromNs === fromNs) fit(app, range[0], range[1]); // at the trace's end: it cannot be centred
}

/** A range with room on both sides. */
export function fit(app: App, fromNs: number, toNs: number): void {
  const room = Math.max((toNs - fromNs) * 0.35, 200);
  show(app, fromNs - room, toNs + room);
}

/** Makes a range visible without moving more than is needed: too small or outside, it is fitted. */
export function reveal(app: App, fromNs: number, toNs: number): void {
  const view = app.view.get();
  const span = view.toNs - view.fromNs;
  const inside = fromNs >= view.fromNs && toNs <= view.toNs;
  if (inside && (toNs - fromNs) / span > 0.02) return;
  fit(app, fromNs, toNs);
}

export function say(app: App, text: string): void {
  app.loaded.set({ said: text });
}

export function openItem(app: App, item: Item | null): void {
  if (sameItem(item, app.view.get().item)) return;
  app.view.set({ item });
}

/** To a row and, on the timeline, to where it is. */
export async function go(app: App, table: string, rowid: number): Promise<void> {
  openItem(app, { kind: 'row', table, rowid });
  const [begin, end] = timesOf(table);
  const row = await one(app.trace, table, [{ column: 'rowid', op: '=', value: rowid }], [begin, end]);
  if (!row) return;
  const from = row.num(begin);
  const to = Number.isNaN(row.num(end)) ? app.loaded.get().info.toNs : row.num(end);
  if (!Number.isNaN(from)) reveal(app, from, to);
}

/** To the poll with this id, as other tables name it. */
export async function goPoll(app: App, id: number): Promise<void> {
  const row = await one(app.trace, 'poll', [{ column: 'id', op: '=', value: id }], ['rowid', 'id']);
  if (row) await go(app, 'poll', row.num('rowid'));
}

/** To the longest poll of a thread that covers a moment; false when none is recorded. */
export async function goMoment(app: App, threadId: number, ns: number): Promise<boolean> {
  const lane = app.loaded.get().info.lanes.find((l) => l.threadId === threadId);
  if (!lane) return false;
  const found = app.trace.slices(lane.id, 'poll', ns - 1, ns + 1, 1);
  for (let i = 0; i < found.n; i++) {
    if (found.beginNs[i] > ns || found.endNs[i] < ns || found.row[i] === NONE) continue;
    await go(app, 'poll', found.row[i]);
    return true;
  }
  return false;
}

export function select(app: App, patch: Selection): void {
  const next: Selection = { ...app.view.get().selection, ...patch };
  for (const key of Object.keys(next) as (keyof Selection)[]) if (next[key] === undefined) delete next[key];
  app.view.set({ selection: next });
}

/** One step back: overlay, search, item, selection. */
export function escape(app: App): void {
  const { overlay, matches } = app.loaded.get();
  const view = app.view.get();
  if (overlay) app.loaded.set({ overlay: null });
  else if (matches.length || view.search) {
    app.view.set({ search: '' });
    app.loaded.set({ matches: [], match: -1 });
  } else if (view.item) app.view.set({ item: null });
  else if (!isEmpty(view.selection)) app.view.set({ selection: {} });
}

export function mark(app: App): void {
  const { place } = app.loaded.get();
  const view = app.view.get();
  const at = Math.round(place ? place.fromNs : (view.selection.fromNs ?? (view.fromNs + view.toNs) / 2));
  const near = (view.toNs - view.fromNs) / 500;
  const kept = view.marks.filter((m) => Math.abs(m - at) > near);
  app.view.set({ marks: kept.length === view.marks.length ? [...kept, at] : kept });
}

export function panel(app: App, name: Panel): void {
  app.view.set({ panel: name });
}

/** The next or previous row of the same table on the same thread. */
export async function step(app: App, direction: 1 | -1): Promise<void> {
  const { item } = app.view.get();
  if (item?.kind !== 'row') return stepLong(app, direction);
  const columns = [...new Set(timesOf(item.table)), 'thread_id', 'rowid'];
  const [begin] = timesOf(item.table);
  const now = await one(app.trace, item.table, [{ column: 'rowid', op: '=', value: item.rowid }], columns);
  if (!now) return;
  const thread = now.num('thread_id');
  const filters = [
    ...(Number.isNaN(thread) ? [] : [{ column: 'thread_id', op: '=' as const, value: thread }]),
    { column: begin, op: direction > 0 ? ('>' as const) : ('<' as const), value: now.num(begin) },
  ];
  const order = { column: begin, descending: direction < 0 };
  const rows = await app.trace.rows(item.table, columns, filters, 1, order);
  if (!rows.n)
    return say(app, direction > 0 ? 'That was the last one of this lane.' : 'That was the first one of this lane.');
  await go(app, item.table, rows.columns.rowid.values[0]);
}

/** The polls that n and p walk through: the 1000 longest of 1 ms and longer; of fast programs the 50 longest. */
export async function longPolls(app: App): Promise<Match[]> {
  const columns = ['rowid', 'thread_id', 'begin_ns', 'duration_ns', 'location'];
  const order = { column: 'duration_ns', descending: true };
  let rows = await many(app.trace, 'poll', columns, [{ column: 'duration_ns', op: '>=', value: 1e6 }], 1000, order);
  if (rows.length === 0) rows = await many(app.trace, 'poll', columns, [], 50, order);
  return rows
    .map((r) => ({
      table: 'poll',
      rowid: r.num('rowid'),
      threadId: r.num('thread_id'),
      fromNs: r.num('begin_ns'),
      toNs: r.num('begin_ns') + r.num('duration_ns'),
      label: r.str('location'),
    }))
    .sort((a, b) => a.fromNs - b.fromNs);
}

export async function stepLong(app: App, direction: 1 | -1): Promise<void> {
  const list = await longPolls(app);
  if (!list.length) return say(app, 'No polls are recorded one by one in this trace.');
  const { item, fromNs } = app.view.get();
  const now = item?.kind === 'row' && item.table === 'poll' ? list.findIndex((m) => m.rowid === item.rowid) : -1;
  const { place } = app.loaded.get();
  const at = place && item ? place.fromNs : direction > 0 ? fromNs - 1 : Infinity;
  const later = list.findIndex((m) => m.fromNs > at);
  const after = later < 0 ? list.length : later;
  const next: Match | undefined = now >= 0 ? list[now + direction] : list[direction > 0 ? after : after - 1];
  const to = next ?? (direction > 0 ? list[0] : list[list.length - 1]);
  if (!next) say(app, 'From the start again.');
  await go(app, 'poll', to.rowid);
}
