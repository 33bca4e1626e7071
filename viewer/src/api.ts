// SPDX-License-Identifier: Apache-2.0
// The contract between the engine (WebAssembly in a worker, viewer/src/engine) and the page (viewer/src/ui).
// The page never sees events or segments: only typed arrays made from the columns of docs/TABLES.md.

/** As struct weft_trace_column: what a column is, in words of the C declaration. */
export interface ColumnInfo {
  name: string;
  type: 'number' | 'text' | 'hex' | 'id' | 'real';
  unit: string;
  meaning: string;
  absent: string;
}
export interface TableInfo {
  name: string;
  meaning: string;
  columns: ColumnInfo[];
}

/** One column of many rows. Moments are ns from the start of the first recording, so that they fit a double. */
export interface Column {
  info: ColumnInfo;
  /** number and real: the values, NaN where NULL. text, hex, id: indices of Trace.strings, NONE where NULL. */
  values: Float64Array | Float32Array | Int32Array | Uint32Array;
}
export const NONE = 0xffffffff;

export interface Rows {
  table: string;
  n: number;
  columns: Record<string, Column>;
}

/** The pseudo column `rowid` is the index that Slices.row has: it may be asked for, and filtered by. */
export interface Filter {
  column: string;
  op: '=' | '<' | '<=' | '>' | '>=';
  value: number | string;
}

/** Rows come in this order, NULL last; without it in that of the table. */
export interface Order {
  column: string;
  descending: boolean;
}

/** What all panels follow. What is undefined does not restrict. */
export interface Selection {
  fromNs?: number;
  toNs?: number;
  recording?: number;
  threadIds?: number[];
  workerIds?: number[];
  task?: number;
  locationId?: number;
  pollId?: number;
  spanId?: string;
  label?: { key: string; value: string };
  minPollNs?: number;
}

export type Weight = 'cpu' | 'offcpu' | 'wait' | 'wall';

/** A merged tree of stacks. Node 0 is the root; a node comes after its parent. */
export interface Flame {
  unit: 'ns';
  parent: Int32Array; // -1 for the root
  frame: Uint32Array; // index of frames
  total: Float64Array;
  self: Float64Array;
  count: Uint32Array; // samples, intervals or waits
  frames: { name: string; module: string; file: string; line: number }[];
}

/** One row of the timeline. */
export interface Lane {
  id: number;
  recording: number;
  threadId: number; // -1: none
  workerId: number; // -1: no worker
  group: string; // runtime or process
  name: string; // "demo/1", "janitor"
  tid: number;
}

/** Level-of-detail: what to draw of a lane between two moments in `pixels` columns. Sorted by begin. */
export interface Slices {
  n: number;
  beginNs: Float64Array;
  endNs: Float64Array;
  /** Index of the row in its table, of the longest in this place; count says how many are under it. */
  row: Uint32Array;
  count: Uint32Array;
  /** polls: the part with most of the time (0 on CPU, 1 blocked, 2 waiting, 3 preempted, 4 not measured). */
  kind: Uint8Array;
  depth: Uint8Array; // nesting, or depth in the flame chart
  label: Uint32Array; // index of strings, NONE
  coverNs?: Float64Array; // how much time what is under it covers, nested ones not twice
  longestNs?: Float64Array; // length of the row that `row` names; begin and end of several are only their place
}
export type LaneLayer =
  | 'poll' | 'slice' | 'park' | 'offcpu' | 'wait' | 'context' | 'event' | 'stuck' | 'loss' | 'flame';

/** A line over time: queue depth, utilisation, wake delay, weft's cost. Per pixel minimum, maximum and mean. */
export interface Series {
  name: string;
  unit: string;
  timeNs: Float64Array;
  min: Float32Array;
  max: Float32Array;
  mean: Float32Array;
}

export interface TraceInfo {
  fromNs: number;
  toNs: number;
  startUnixNs: number; // wall clock of moment 0, 0 if not known
  events: number;
  live: boolean;
  lanes: Lane[];
  recordings: { name: string; shiftNs: number; spanNs: number }[]; // when it began, and how long it is
  tables: TableInfo[];
  /** Sentences for the reader: what could not be read, what limits the trace, as the first page of weft report. */
  problems: string[];
  limits: string[];
  complete?: boolean; // false: limits and findings are still being computed, onGrow brings them
  findings: unknown[]; // `findings` of weft report --json
  /** Of a trace of which a part is loaded: what to ask for to have the one before it, and after it. */
  before?: TimeRange;
  after?: TimeRange;
}

/** In ns from the first event of the whole trace. */
export interface TimeRange {
  fromNs?: number;
  toNs?: number;
}

/** Of SQL. An integer that a double cannot hold is a text. */
export interface Answer {
  columns: string[];
  rows: (string | number | null)[][];
  truncated: boolean;
}
export interface Question {
  name: string;
  what: string;
  sql: string;
}

export interface Trace {
  info: TraceInfo;
  strings: string[]; // grows; indices stay
  rows(table: string, columns?: string[], filters?: Filter[], limit?: number, order?: Order): Promise<Rows>;
  /** At once, from mip-maps. */
  slices(lane: number, layer: LaneLayer, fromNs: number, toNs: number, pixels: number): Slices;
  /** How many outer rows of a lane's flame chart are the same all the time and can be left out. */
  sharedFrames(lane: number): number;
  series(name: string, lane: number | null, fromNs: number, toNs: number, pixels: number): Series;
  flame(selection: Selection, weight: Weight, invert?: boolean): Promise<Flame>;
  /** The same JSON as `weft report --json` with the selection as its filters. */
  report(selection: Selection): Promise<unknown>;
  /** One statement that reads, run by weft view as weft query does; not there in a page that is one file. */
  query?(sql: string, limit: number): Promise<Answer>;
  questions?(): Promise<Question[]>; // saved ones
  onGrow(callback: (info: TraceInfo) => void): void; // a live recording
}
