// SPDX-License-Identifier: Apache-2.0
// What the command says about a trace, to hold the page against; and hands for what is on a canvas.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { Page } from 'playwright-core';

const build = process.env.WEFT_BUILD ?? 'build/release';
export const SOURCE = process.env.WEFT_SOURCE ?? process.cwd();
export const GOLDEN = path.join(SOURCE, 'test/golden/server/0.weft');

export function weft(...args: string[]): string {
  return execFileSync(path.join(build, 'weft'), args, { encoding: 'utf8', maxBuffer: 1 << 28 });
}

export type Cells = Record<string, number | string | null>;
export function query(trace: string, sql: string): Cells[] {
  return JSON.parse(weft('query', '--json', trace, sql)) as Cells[];
}

export interface Recording {
  cpu: { cpu_ns: number; functions: { function: string; self_ns: number }[] };
  locations: { location: string; polls: { count: number; max_ns: number } }[];
}
export function report(trace: string, ...filters: string[]): Recording {
  const all = JSON.parse(weft('report', '--json', ...filters, trace)) as { recordings: Recording[] };
  assert.equal(all.recordings.length, 1);
  return all.recordings[0];
}

export interface ViewState {
  fromNs: number;
  toNs: number;
  selection: { fromNs?: number; toNs?: number; threadIds?: number[]; pollId?: number };
  item: { table?: string; rowid?: number } | null;
  panel: string;
  marks: number[];
}
interface Hooks {
  __weft: {
    view: { get(): ViewState };
    loaded: { get(): { place: { arrows: Arrow[]; fromNs: number; threadId: number } | null } };
    trace: { slices(lane: number, layer: string, from: number, to: number, pixels: number): { n: number } };
  };
  __weftTimeline: {
    boxes: {
      boxes: {
        kind: string;
        y: number;
        lane: { threadId: number };
        strips: { layer: string; y: number; h: number }[];
      }[];
    };
    lanes: HTMLCanvasElement;
    body: HTMLElement;
    x(ns: number): number;
  };
}
export interface Arrow {
  kind: string;
  fromThread: number;
  fromNs: number;
  toThread: number;
  toNs: number;
}

export async function ready(page: Page): Promise<void> {
  await page.waitForFunction(() => document.documentElement.dataset.ready === '1');
}

export function state(page: Page): Promise<ViewState> {
  return page.evaluate(() => (window as unknown as Hooks).__weft.view.get());
}

/** What the timeline draws around the item, once it is loaded. */
export async function place(page: Page): Promise<{ arrows: Arrow[]; fromNs: number; threadId: number }> {
  const handle = await page.waitForFunction(() => (window as unknown as Hooks).__weft.loaded.get().place);
  return (await handle.jsonValue()) as { arrows: Arrow[]; fromNs: number; threadId: number };
}

/** Where on the screen a moment of a thread's strip is. */
export async function pointOf(
  page: Page,
  thread: number,
  layer: string,
  ns: number,
): Promise<{ x: number; y: number }> {
  const handle = await page.waitForFunction(
    ([threadId, name, at]) => {
      const t = (window as unknown as Hooks).__weftTimeline;
      const box = t.boxes.boxes.find((b) => b.kind === 'lane' && b.lane.threadId === threadId);
      const strip = box?.strips.find((s) => s.layer === name);
      if (!box || !strip) return null;
      const rect = t.lanes.getBoundingClientRect();
      return { x: rect.left + t.x(at as number), y: rect.top + box.y - t.body.scrollTop + strip.y + 6 };
    },
    [thread, layer, ns] as const,
  );
  return (await handle.jsonValue()) as { x: number; y: number };
}

/** The panel of the flame graph, once it is that of `ns` of weight; fails with what it has instead. */
export async function flameSum(page: Page, ns: number): Promise<void> {
  const sum = page.getByTestId('flame-sum');
  try {
    await page.waitForFunction(
      (want) => document.querySelector('[data-testid=flame-sum]')?.getAttribute('data-ns') === String(want),
      ns,
      { timeout: 10_000 },
    );
  } catch {
    assert.equal(await sum.getAttribute('data-ns'), String(ns));
  }
}
