// SPDX-License-Identifier: Apache-2.0
// What every part of the page shares: the trace, the view, and what is loaded for it.
import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { Lane, Trace, TraceInfo } from '../api';
import type { Item, Store, View } from './state';
import { useStore } from './state';

/** A line between two moments of two threads: who caused what. */
export interface Arrow {
  kind: 'wake' | 'behind' | 'holder' | 'delayed';
  fromThread: number;
  fromNs: number;
  toThread: number;
  toNs: number;
  label: string;
}

/** What the timeline shows of the item that the panel is about. */
export interface Place {
  item: Item;
  threadId: number;
  layer: string;
  fromNs: number;
  toNs: number;
  arrows: Arrow[];
}

export interface Match {
  table: string;
  rowid: number;
  threadId: number;
  fromNs: number;
  toNs: number;
  label: string;
}

/** What is loaded or computed for the view; not in the URL. */
export interface Loaded {
  info: TraceInfo;
  place: Place | null;
  matches: Match[];
  match: number; // which of them Enter went to, -1: none
  searching: boolean;
  overlay: 'help' | 'palette' | null;
  said: string; // for screen readers, and the line at the bottom
  dark: boolean;
}

export interface App {
  trace: Trace;
  view: Store<View>;
  base: View;
  loaded: Store<Loaded>;
}

export const AppContext = createContext<App>(null as unknown as App);
export function useApp(): App {
  return useContext(AppContext);
}
export function useView<R>(pick: (view: View) => R): R {
  return useStore(useApp().view, pick);
}
export function useLoaded<R>(pick: (loaded: Loaded) => R): R {
  return useStore(useApp().loaded, pick);
}

export function laneOf(app: App, threadId: number): Lane | undefined {
  return app.loaded.get().info.lanes.find((lane) => lane.threadId === threadId);
}

/** What a promise gave, for the last call only: answers of superseded ones are dropped. */
export interface Async<T> {
  value: T | null;
  loading: boolean;
  error: string;
}
export function useAsync<T>(make: () => Promise<T>, keys: unknown[]): Async<T> {
  const [state, set] = useState<Async<T>>({ value: null, loading: true, error: '' });
  useEffect(() => {
    let current = true;
    set((old) => ({ value: old.value, loading: true, error: '' }));
    make().then(
      (value) => current && set({ value, loading: false, error: '' }),
      (error: unknown) =>
        current && set({ value: null, loading: false, error: String((error as Error)?.message ?? error) }),
    );
    return () => void (current = false);
  }, keys);
  return state;
}
