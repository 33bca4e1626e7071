// SPDX-License-Identifier: Apache-2.0
// What is on the screen, in one value. All of it can be in the URL (url.ts); what is loaded is not here.
import { useEffect, useState } from 'preact/hooks';
import type { Selection, Weight } from '../api';

/** What a click leads to: a row of a table, all of one task, or all that carries one span. */
export type Item =
  | { kind: 'row'; table: string; rowid: number }
  | { kind: 'task'; recording: number; task: number }
  | { kind: 'span'; span: string };

export type Panel =
  | 'flame'
  | 'polls'
  | 'delays'
  | 'locations'
  | 'locks'
  | 'waits'
  | 'functions'
  | 'threads'
  | 'descriptors'
  | 'histogram'
  | 'tables'
  | 'sql';
export const PANELS: Panel[] = [
  'flame',
  'polls',
  'delays',
  'locations',
  'histogram',
  'locks',
  'waits',
  'descriptors',
  'functions',
  'threads',
  'tables',
  'sql',
];

/** What was done to a flame graph, in order. */
export interface Transform {
  kind: 'focus' | 'merge' | 'drop' | 'zoom' | 'sandwich';
  /** The function; of zoom, the path from the root, with \u0001 between functions. */
  name: string;
}

export interface View {
  fromNs: number;
  toNs: number;
  selection: Selection;
  item: Item | null;
  panel: Panel;
  weight: Weight;
  invert: boolean;
  transforms: Transform[];
  baseline: Selection | null;
  colour: 'part' | 'location';
  time: 'relative' | 'wall';
  theme: 'auto' | 'light' | 'dark';
  pinned: number[];
  /** Keys of what is not shown: "g:NAME" a group, "l:ID" a lane. */
  collapsed: string[];
  laneFilter: string;
  search: string;
  marks: number[];
  table: string;
  sql: string;
}

export function defaults(fromNs: number, toNs: number): View {
  return {
    fromNs,
    toNs,
    selection: {},
    item: null,
    panel: 'flame',
    weight: 'cpu',
    invert: false,
    transforms: [],
    baseline: null,
    colour: 'part',
    time: 'relative',
    theme: 'auto',
    pinned: [],
    collapsed: [],
    laneFilter: '',
    search: '',
    marks: [],
    table: 'poll',
    sql: '',
  };
}

/** A value that components and canvases follow. */
export class Store<T extends object> {
  private listeners = new Set<() => void>();
  constructor(private value: T) {}
  get(): T {
    return this.value;
  }
  set(patch: Partial<T>): void {
    let changed = false;
    for (const key in patch) if (!Object.is(patch[key], this.value[key])) changed = true;
    if (!changed) return;
    this.value = { ...this.value, ...patch };
    for (const listener of [...this.listeners]) listener();
  }
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

/** Renders again only when what `pick` takes out has changed. */
export function useStore<T extends object, R>(store: Store<T>, pick: (value: T) => R): R {
  const [, again] = useState(0);
  const picked = pick(store.get());
  useEffect(() => {
    let last = pick(store.get());
    if (!Object.is(last, picked)) again((n) => n + 1);
    return store.subscribe(() => {
      const next = pick(store.get());
      if (!Object.is(next, last)) {
        last = next;
        again((n) => n + 1);
      }
    });
  }, [store]);
  return picked;
}

export function isEmpty(selection: Selection): boolean {
  return Object.values(selection).every((value) => value === undefined);
}

export function sameItem(a: Item | null, b: Item | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
