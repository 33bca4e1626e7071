// SPDX-License-Identifier: Apache-2.0
// The view in the URL's hash: "#t=0,2500000&item=poll/17&panel=locks". Names of parameters are stable: a link that was
// sent once works for ever. What is as by default is left out; what cannot be read is ignored, never an error.
import type { Selection, TimeRange, Weight } from '../api';
import { PANELS } from './state';
import type { Item, Panel, Transform, View } from './state';

const WEIGHTS: Weight[] = ['cpu', 'offcpu', 'wait', 'wall'];
const KINDS: Transform['kind'][] = ['focus', 'merge', 'drop', 'zoom', 'sandwich'];

function numbers(text: string | null): number[] {
  if (!text) return [];
  return text.split(',').map(Number).filter(Number.isFinite);
}

function ns(value: number): string {
  return String(Math.round(value));
}

export function encodeItem(item: Item): string {
  if (item.kind === 'task') return `task/${item.recording}/${item.task}`;
  if (item.kind === 'span') return `span/${item.span}`;
  return `${item.table}/${item.rowid}`;
}

export function decodeItem(text: string): Item | null {
  const parts = text.split('/');
  if (parts[0] === 'span' && parts[1]) return { kind: 'span', span: parts[1] };
  if (parts[0] === 'task' && parts.length === 3) {
    const [recording, task] = [Number(parts[1]), Number(parts[2])];
    return Number.isFinite(recording) && Number.isFinite(task) ? { kind: 'task', recording, task } : null;
  }
  const rowid = Number(parts[1]);
  if (!/^[a-z_]+$/.test(parts[0]) || parts.length !== 2 || !Number.isInteger(rowid) || rowid < 0) return null;
  return { kind: 'row', table: parts[0], rowid };
}

/** "r1000,2000;th3,4;task17": one letter code for each field, so that it reads in one line. */
export function encodeSelection(s: Selection): string {
  const out: string[] = [];
  if (s.fromNs !== undefined || s.toNs !== undefined) {
    const [from, to] = [s.fromNs, s.toNs].map((v) => (v === undefined ? '' : ns(v)));
    out.push(`range:${from},${to}`);
  }
  const add = (key: string, value: number | string | undefined): void => {
    if (value !== undefined) out.push(`${key}:${encodeURIComponent(String(value))}`);
  };
  add('recording', s.recording);
  if (s.threadIds) out.push(`threads:${s.threadIds.join(',')}`);
  if (s.workerIds) out.push(`workers:${s.workerIds.join(',')}`);
  add('task', s.task);
  add('location', s.locationId);
  add('poll', s.pollId);
  add('span', s.spanId);
  if (s.label) add('label', `${s.label.key}=${s.label.value}`);
  add('min', s.minPollNs);
  return out.join(';');
}

export function decodeSelection(text: string): Selection {
  const s: Selection = {};
  for (const part of text.split(';')) {
    const colon = part.indexOf(':');
    if (colon < 0) continue;
    const key = part.slice(0, colon);
    let value: string;
    try {
      value = decodeURIComponent(part.slice(colon + 1));
    } catch {
      continue;
    }
    const number = value === '' ? NaN : Number(value);
    if (key === 'range') {
      const [from, to] = value.split(',').map((v) => (v === '' ? NaN : Number(v)));
      if (Number.isFinite(from)) s.fromNs = from;
      if (Number.isFinite(to)) s.toNs = to;
    } else if (key === 'threads') s.threadIds = numbers(value);
    else if (key === 'workers') s.workerIds = numbers(value);
    else if (key === 'span') s.spanId = value;
    else if (key === 'label' && value.includes('='))
      s.label = { key: value.slice(0, value.indexOf('=')), value: value.slice(value.indexOf('=') + 1) };
    else if (!Number.isFinite(number)) continue;
    else if (key === 'recording') s.recording = number;
    else if (key === 'task') s.task = number;
    else if (key === 'location') s.locationId = number;
    else if (key === 'poll') s.pollId = number;
    else if (key === 'min') s.minPollNs = number;
  }
  return s;
}

/** Which part of a trace that is too large was asked for: "part=FROM,TO" in ns, either of which may be left out. */
export function decodePart(hash: string): TimeRange {
  const text = new URLSearchParams(hash.replace(/^#/, '')).get('part') ?? '';
  const [from, to] = text.split(',').map((one) => (one.trim() === '' ? NaN : Number(one)));
  return { ...(Number.isFinite(from) && { fromNs: from }), ...(Number.isFinite(to) && { toNs: to }) };
}

export function encodePart({ fromNs, toNs }: TimeRange): string {
  if (fromNs === undefined && toNs === undefined) return '';
  return `part=${[fromNs, toNs].map((one) => (one === undefined ? '' : ns(one))).join(',')}`;
}

/** `part`: of the trace, which the view does not change. */
export function encode(view: View, base: View, part: TimeRange = {}): string {
  const out = new URLSearchParams(encodePart(part));
  const differs = (key: keyof View): boolean => JSON.stringify(view[key]) !== JSON.stringify(base[key]);
  if (differs('fromNs') || differs('toNs')) out.set('t', `${ns(view.fromNs)},${ns(view.toNs)}`);
  if (differs('selection')) out.set('sel', encodeSelection(view.selection));
  if (view.item) out.set('item', encodeItem(view.item));
  for (const key of ['panel', 'weight', 'colour', 'time', 'theme', 'table'] as const)
    if (differs(key)) out.set(key, view[key]);
  if (view.invert) out.set('invert', '1');
  for (const t of view.transforms) out.append('do', `${t.kind}:${t.name}`);
  if (view.baseline) out.set('base', encodeSelection(view.baseline));
  if (view.pinned.length) out.set('pin', view.pinned.join(','));
  for (const key of view.collapsed) out.append('fold', key);
  if (view.laneFilter) out.set('lanes', view.laneFilter);
  if (view.sql) out.set('sql', view.sql);
  if (view.search) out.set('find', view.search);
  if (view.marks.length) out.set('marks', view.marks.map(ns).join(','));
  return out.toString();
}

function choice<T extends string>(text: string | null, of: readonly T[]): T | undefined {
  return of.find((one) => one === text);
}

/** Only what the hash says, and what is valid. */
export function decode(hash: string): Partial<View> {
  const from = new URLSearchParams(hash.replace(/^#/, ''));
  const view: Partial<View> = {};
  const range = numbers(from.get('t'));
  if (range.length === 2 && range[1] > range[0]) [view.fromNs, view.toNs] = range;
  const put = <K extends keyof View>(key: K, value: View[K] | undefined | null): void => {
    if (value !== undefined && value !== null) view[key] = value;
  };
  if (from.has('sel')) view.selection = decodeSelection(from.get('sel') ?? '');
  put('item', decodeItem(from.get('item') ?? ''));
  put('panel', choice<Panel>(from.get('panel'), PANELS));
  put('weight', choice(from.get('weight'), WEIGHTS));
  put('colour', choice(from.get('colour'), ['part', 'location'] as const));
  put('time', choice(from.get('time'), ['relative', 'wall'] as const));
  put('theme', choice(from.get('theme'), ['auto', 'light', 'dark'] as const));
  if (/^[a-z_]+$/.test(from.get('table') ?? '')) put('table', from.get('table'));
  if (from.get('invert') === '1') view.invert = true;
  const transforms = from.getAll('do').flatMap((text): Transform[] => {
    const kind = choice(text.slice(0, text.indexOf(':')), KINDS);
    return kind ? [{ kind, name: text.slice(text.indexOf(':') + 1) }] : [];
  });
  if (transforms.length) view.transforms = transforms;
  if (from.has('base')) view.baseline = decodeSelection(from.get('base') ?? '');
  if (from.has('pin')) view.pinned = numbers(from.get('pin'));
  if (from.has('fold')) view.collapsed = from.getAll('fold');
  put('laneFilter', from.get('lanes'));
  put('sql', from.get('sql'));
  put('search', from.get('find'));
  if (from.has('marks')) view.marks = numbers(from.get('marks'));
  return view;
}
