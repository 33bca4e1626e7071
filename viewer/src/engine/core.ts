// SPDX-License-Identifier: Apache-2.0
// weft.wasm, called: a trace in memory, its tables, lanes, layers, trees and reports. Runs in the worker, and in node
// for tests. Everything here is what viewer/wasm computes; this file only carries numbers across.
import type {
  ColumnInfo, Filter, Flame, Lane, LaneLayer, Order, Rows, Selection, TableInfo, Weight,
} from '../api.ts';
import { NONE } from '../api.ts';
import { Wasi, type MemoryFile } from './wasi.ts';

export const LAYERS: LaneLayer[] = [
  'poll', 'slice', 'park', 'offcpu', 'wait', 'context', 'event', 'stuck', 'loss', 'flame',
];
const OPS = ['=', '<', '<=', '>', '>='];
const WEIGHTS: Weight[] = ['cpu', 'offcpu', 'wait', 'wall'];
const ROWID = 255;
const ROWID_INFO: ColumnInfo = { name: 'rowid', type: 'number', unit: '', meaning: 'Index of the row.', absent: '' };

/** What a layer of a lane holds, in order of begin. */
export interface LayerData {
  n: number;
  beginNs: Float64Array;
  endNs: Float64Array;
  row: Uint32Array;
  label: Uint32Array;
  kind: Uint8Array;
  depth: Uint8Array;
}
/** In ns from the first event of the files; 0: no bound. */
export interface TimePart {
  fromNs: number;
  toNs: number;
}
export interface Points {
  timeNs: Float64Array;
  value: Float32Array; // NaN: none
}
export const POINTS = ['queue', 'local_queue', 'wake_delay', 'cost'];

type Exports = Record<string, (...args: number[]) => number> & { memory: WebAssembly.Memory };

export class Core {
  tables: TableInfo[] = [];
  strings: string[] = [];
  private pictureOnly = false;
  private wasi = new Wasi();
  private wasm!: Exports;
  private decoder = new TextDecoder();
  private encoder = new TextEncoder();

  static async make(module: WebAssembly.Module, progress: (done: number, total: number) => void): Promise<Core> {
    const core = new Core();
    const instance = await WebAssembly.instantiate(module, core.wasi.imports(progress));
    core.wasm = instance.exports as Exports;
    core.wasi.memory = core.wasm.memory as unknown as WebAssembly.Memory;
    (instance.exports as { _initialize?: () => void })._initialize?.();
    core.readSchema();
    return core;
  }

  /** All memory that the module has. */
  heapBytes(): number {
    return this.wasi.memory!.buffer.byteLength;
  }

  figure(what: number): number {
    return this.wasm.view_figure(what);
  }

  private text(at: number): string {
    if (at === 0) return '';
    const bytes = new Uint8Array(this.wasi.memory!.buffer);
    let end = at;
    while (bytes[end] !== 0) end++;
    return this.decoder.decode(bytes.subarray(at, end));
  }

  private give(text: string | Uint8Array): number {
    const bytes = typeof text === 'string' ? this.encoder.encode(text) : text;
    const at = this.wasm.view_alloc(bytes.length + 1);
    if (at === 0) throw new Error('out of memory');
    const to = new Uint8Array(this.wasi.memory!.buffer, at, bytes.length + 1);
    to.set(bytes);
    to[bytes.length] = 0;
    return at;
  }

  private check(code: number, what: string): number {
    if (code < 0) throw new Error(code === -48 ? `${what}: out of memory` : `${what}: error ${-code}`);
    return code;
  }

  private readSchema(): void {
    const types = { n: 'number', t: 'text', h: 'hex', i: 'id', r: 'real' } as const;
    for (const line of this.text(this.wasm.view_schema()).split('\n')) {
      const [what, name, ...rest] = line.split('\t');
      if (what === 'T') this.tables.push({ name, meaning: rest[0], columns: [] });
      if (what !== 'C') continue;
      const [type, unit, meaning, absent] = rest;
      this.tables.at(-1)!.columns.push({ name, type: types[type as keyof typeof types], unit, meaning, absent });
    }
  }

  /** Opens the files, which stay in memory; names are lines of viewer/wasm/names.c. Sizes are known then. */
  open(files: MemoryFile[], names?: Uint8Array): void {
    this.wasm.view_close();
    this.wasi.setFiles(files);
    for (const file of files) this.wasm.view_add(this.give(file.name));
    this.check(this.wasm.view_open(), 'opening the trace');
    if (names && names.length) this.check(this.wasm.view_names(this.give(names)), 'names');
  }

  /** Of how many events all slices are kept; of more, those of short polls are read when they are asked for. */
  slicesUpTo(events: number): void {
    this.wasm.view_slices_up_to(events);
  }

  /** Before the load: whether only what lanes show is kept, without rows and labels, of this part of the time. */
  layersOnly(part: TimePart | null): void {
    this.pictureOnly = part !== null;
    this.wasm.view_layers_only(part ? 1 : 0, part?.fromNs ?? 0, part?.toNs ?? 0);
  }

  /** Reads all events into the tables. */
  load(): void {
    this.check(this.wasm.view_load(), 'loading the trace');
  }

  /** Decodes all events and does nothing with them, for measurements. Their number. */
  decode(): number {
    return this.wasm.view_decode();
  }

  /** Brings texts across that are new. */
  newStrings(): string[] {
    const from = this.strings.length;
    const n = this.wasm.view_texts();
    for (let i = from; i < n; i++) this.strings.push(this.text(this.wasm.view_text_get(i)));
    return this.strings.slice(from);
  }

  problems(): string[] {
    const all: string[] = [];
    for (let i = 0; i < 1000; i++) {
      const at = this.wasm.view_problem(i);
      if (at === 0) break;
      all.push(this.text(at));
    }
    return all;
  }

  recordings(): { shiftNs: number; startUnixNs: number; spanNs: number; clockNs: number }[] {
    return Array.from({ length: this.figure(3) }, (_, i) => ({
      shiftNs: this.wasm.view_recording(i, 0),
      startUnixNs: this.wasm.view_recording(i, 1),
      spanNs: this.wasm.view_recording(i, 2),
      clockNs: this.wasm.view_recording(i, 3),
    }));
  }

  private table(name: string): number {
    const at = this.tables.findIndex((table) => table.name === name);
    if (at < 0) throw new Error(`there is no table ${name}`);
    return at;
  }

  private column(table: number, name: string): number {
    if (name === 'rowid') return ROWID;
    const at = this.tables[table].columns.findIndex((column) => column.name === name);
    if (at < 0) throw new Error(`table ${this.tables[table].name} has no column ${name}`);
    return at;
  }

  rows(table: string, columns?: string[], filters: Filter[] = [], limit = 0, order?: Order): Rows {
    const id = this.table(table);
    const names = columns ?? this.tables[id].columns.map((column) => column.name);
    const at = names.map((name) => this.column(id, name));
    let low = 0;
    let high = 0;
    for (const column of at) {
      if (column === ROWID) continue;
      if (column < 32) low |= 1 << column;
      else high |= 1 << (column - 32);
    }
    this.check(this.wasm.view_select(id, low >>> 0, high >>> 0), table);
    if (at.includes(ROWID)) this.wasm.view_select_index();
    for (const filter of filters) {
      const number = typeof filter.value === 'number' ? filter.value : NaN;
      const text = this.give(String(filter.value));
      const op = OPS.indexOf(filter.op);
      this.check(this.wasm.view_filter(this.column(id, filter.column), op, number, text), `filter of ${filter.column}`);
    }
    const by = order ? this.column(id, order.column) : -1;
    const n = this.check(this.wasm.view_select_run(limit, by, order?.descending ? 1 : 0), table);
    const rows: Rows = { table, n, columns: {} };
    names.forEach((name, i) => {
      const info = at[i] === ROWID ? ROWID_INFO : this.tables[id].columns[at[i]];
      const from = this.wasm.view_gather(at[i]);
      if (from === 0) throw new Error('out of memory');
      const memory = this.wasi.memory!.buffer;
      const values = info.type === 'number' || info.type === 'real'
        ? new Float64Array(memory, from, n).slice()
        : new Uint32Array(memory, from, n).slice();
      rows.columns[name] = { info, values };
    });
    return rows;
  }

  lanes(): Lane[] {
    const n = this.check(this.wasm.view_lanes(), 'lanes');
    this.newStrings();
    return Array.from({ length: n }, (_, id) => {
      const [recording, threadId, workerId, tid, name] = [0, 1, 2, 3, 4].map((what) => this.wasm.view_lane(id, what));
      return { id, recording, threadId, workerId, tid, group: '', name: this.strings[name] ?? `thread ${tid}` };
    });
  }

  layer(lane: number, layer: LaneLayer): LayerData {
    const n = this.check(this.wasm.view_layer(lane, LAYERS.indexOf(layer)), `layer ${layer}`);
    const at = (which: number): number => this.wasm.view_layer_column(which);
    const memory = this.wasi.memory!.buffer;
    const named = this.pictureOnly ? 0 : n;
    const label = new Uint32Array(memory, at(3), named);
    return {
      n,
      beginNs: new Float64Array(memory, at(0), n).slice(),
      endNs: new Float64Array(memory, at(1), n).slice(),
      row: new Uint32Array(memory, at(2), named).slice(),
      label: label.some((one) => one !== NONE) ? label.slice() : new Uint32Array(),
      kind: new Uint8Array(memory, at(4), n).slice(),
      depth: new Uint8Array(memory, at(5), n).slice(),
    };
  }

  /** `times`: those of the lane's polls. They are used, not copied, where each poll has a point. */
  points(name: string, lane: number, times?: Float64Array): Points {
    const n = this.check(this.wasm.view_points(POINTS.indexOf(name), lane), `series ${name}`);
    const memory = this.wasi.memory!.buffer;
    return {
      timeNs: times?.length === n ? times : new Float64Array(memory, this.wasm.view_layer_column(0), n).slice(),
      value: new Float32Array(memory, this.wasm.view_layer_column(6), n).slice(),
    };
  }

  /** What only the making of layers needed. */
  layersDone(): void {
    this.wasm.view_by_lane_forget();
    this.wasm.view_layer_forget();
  }

  private select(selection: Selection): void {
    const set = (what: number, value: number | undefined): void => {
      if (value !== undefined) this.check(this.wasm.view_selection_set(what, value), 'selection');
    };
    this.wasm.view_selection_clear();
    set(0, selection.fromNs);
    set(1, selection.toNs);
    set(2, selection.recording);
    set(3, selection.task);
    set(4, selection.locationId);
    set(5, selection.pollId);
    set(6, selection.minPollNs);
    for (const id of selection.threadIds ?? []) set(7, id);
    for (const id of selection.workerIds ?? []) set(8, id);
    if (selection.spanId) this.wasm.view_selection_text(0, this.give(selection.spanId));
    if (selection.label) {
      this.wasm.view_selection_text(1, this.give(`${selection.label.key}=${selection.label.value}`));
    }
  }

  flame(selection: Selection, weight: Weight, invert = false): Flame {
    this.select(selection);
    const n = this.check(this.wasm.view_flame(WEIGHTS.indexOf(weight), invert ? 1 : 0), 'flame graph');
    const at = this.wasm.view_flame_columns();
    const nFrames = this.wasm.view_flame_frames();
    const framesAt = this.wasm.view_flame_frame_columns();
    const memory = this.wasi.memory!.buffer;
    const flame: Flame = {
      unit: 'ns',
      total: new Float64Array(memory, at, n).slice(),
      self: new Float64Array(memory, at + 8 * n, n).slice(),
      parent: new Int32Array(memory, at + 16 * n, n).slice(),
      frame: new Uint32Array(memory, at + 20 * n, n).slice(),
      count: new Uint32Array(memory, at + 24 * n, n).slice(),
      frames: [],
    };
    const frames = new Uint32Array(memory, framesAt, 4 * nFrames).slice();
    this.newStrings();
    for (let i = 0; i < nFrames; i++) {
      const [name, module, file, line] = frames.subarray(4 * i, 4 * i + 4);
      flame.frames.push({ name: this.strings[name], module: this.strings[module], file: this.strings[file], line });
    }
    return flame;
  }

  /** As `weft report --json`; `not_applied` has what of the selection the report does not know. */
  report(selection: Selection, top = 200): unknown {
    const all = { version: 1, recordings: [] as unknown[], not_applied: [] as string[] };
    this.select(selection);
    for (let i = 0; i < this.figure(3); i++) {
      this.wasi.takeOutput();
      const code = this.wasm.view_report(i, top);
      if (code < 0) throw new Error(`the report failed: ${this.wasi.stderr.join('')}`);
      if (code === 0) continue;
      all.recordings.push(...(JSON.parse(this.wasi.takeOutput()) as { recordings: unknown[] }).recordings);
    }
    const lanes = (selection.threadIds?.length ?? 0) + (selection.workerIds?.length ?? 0);
    if (lanes > 1) all.not_applied.push('lanes');
    for (const key of ['task', 'pollId', 'minPollNs'] as const) {
      if (selection[key] !== undefined) all.not_applied.push(key);
    }
    return all;
  }
}
