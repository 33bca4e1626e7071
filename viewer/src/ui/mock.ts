// SPDX-License-Identifier: Apache-2.0
// Development only, never in the bundle that ships: a Trace made of rows in JSON (weft query --json of every table) or
// of random numbers, so that the page can be worked on without the engine.
import { NONE } from '../api';
import type {
  Column,
  Filter,
  Flame,
  Lane,
  LaneLayer,
  Order,
  Rows,
  Selection,
  Series,
  Slices,
  Trace,
  TraceInfo,
  Weight,
} from '../api';
import { Tree, fromList } from './mocklanes';

type Cell = string | number | null;
type Record_ = Record<string, Cell>;
export type Dump = Record<string, Record_[]> & { report: any };

const PARTS = ['on_cpu_ns', 'blocked_ns', 'waiting_ns', 'preempted_ns', 'not_measured_ns'];
const NAMES = ['on_cpu', 'blocked', 'waiting', 'preempted', 'not_measured'];

export class MockTrace implements Trace {
  info: TraceInfo;
  strings: string[] = [];
  private ids = new Map<string, number>();
  private trees = new Map<string, Tree>();

  constructor(private dump: Dump) {
    const lanes: Lane[] = [];
    for (const t of dump.thread) {
      const poll = dump.poll.find((p) => p.thread_id === t.id && p.worker_id !== null);
      const worker = poll && dump.worker.find((w) => w.id === poll.worker_id);
      lanes.push({
        id: lanes.length,
        recording: 0,
        threadId: t.id as number,
        workerId: worker ? (worker.id as number) : -1,
        group: worker ? String(worker.runtime) : 'other threads',
        name: worker ? String(worker.name) : String(t.name),
        tid: t.tid as number,
      });
    }
    lanes.sort((a, b) => Number(b.workerId >= 0) - Number(a.workerId >= 0) || a.name.localeCompare(b.name));
    lanes.forEach((lane, i) => (lane.id = i));
    const rec = dump.recording[0];
    this.info = {
      fromNs: 0,
      toNs: rec.span_ns as number,
      startUnixNs: rec.start_unix_ns as number,
      events: rec.events as number,
      live: false,
      lanes,
      tables: Object.keys(dump)
        .filter((t) => t !== 'report')
        .map((name) => ({
          name,
          meaning: '',
          columns: Object.keys(dump[name][0] ?? {}).map((c) => this.columnInfo(dump[name], c)),
        })),
      problems: [],
      limits: dump.report.recordings[0].incomplete.map((x: any) => x.meaning),
      findings: dump.report.recordings[0].findings,
    };
    for (const lane of lanes) this.addLane(lane);
  }

  private id(text: string): number {
    let id = this.ids.get(text);
    if (id === undefined) {
      id = this.strings.push(text) - 1;
      this.ids.set(text, id);
    }
    return id;
  }

  private columnInfo(rows: Record_[], name: string) {
    const text = rows.some((r) => typeof r[name] === 'string');
    const unit = name.endsWith('_ns') ? 'ns' : '';
    return { name, type: text ? ('text' as const) : ('number' as const), unit, meaning: name, absent: '' };
  }

  private addLane(lane: Lane): void {
    const mine = (table: string) =>
      this.dump[table].map((r, row) => ({ r, row })).filter((x) => x.r.thread_id === lane.threadId);
    const put = (layer: LaneLayer, list: Parameters<typeof fromList>[0]) =>
      this.trees.set(`${lane.id}/${layer}`, fromList(list));
    const label = (...cells: Cell[]) => {
      const found = cells.find((c) => c !== null && c !== undefined);
      return found === undefined ? NONE : this.id(String(found));
    };
    const iv = (r: Record_, row: number, kind: number, lab: number, depth = 0) => ({
      b: r.begin_ns as number,
      e: (r.end_ns ?? this.info.toNs) as number,
      row,
      kind,
      depth,
      label: lab,
    });
    put(
      'poll',
      mine('poll').map(({ r, row }) => {
        let kind = 4;
        let most = -1;
        PARTS.forEach((p, i) => {
          if (((r[p] as number) ?? 0) > most) [most, kind] = [(r[p] as number) ?? 0, i];
        });
        return iv(r, row, kind, label(r.location), r.nested_in as number);
      }),
    );
    put(
      'slice',
      mine('slice')
        .filter(({ r }) => r.begin_ns !== null)
        .map(({ r, row }) => iv(r, row, NAMES.indexOf(String(r.part)), label(r.name, r.function))),
    );
    put(
      'park',
      mine('park')
        .filter(({ r }) => r.begin_ns !== null)
        .map(({ r, row }) => iv(r, row, 0, NONE)),
    );
    put(
      'offcpu',
      mine('offcpu').map(({ r, row }) => iv(r, row, r.state === 'blocked' ? 1 : 3, label(r.function))),
    );
    put(
      'wait',
      mine('wait').map(({ r, row }) => iv(r, row, r.kind === 'call' ? 1 : 2, label(r.name, r.kind))),
    );
    const contexts = mine('context');
    put(
      'context',
      contexts
        .map(({ r, row }, i) => ({
          b: r.time_ns as number,
          e: (contexts[i + 1]?.r.time_ns ?? this.info.toNs) as number,
          row,
          kind: 0,
          depth: 0,
          label: label(r.endpoint, r.span),
        }))
        .filter((x) => x.label !== NONE),
    );
    const point = (r: Record_, row: number, lab: number) =>
      iv({ begin_ns: r.time_ns, end_ns: r.time_ns }, row, 0, lab);
    put(
      'event',
      mine('event').map(({ r, row }) => point(r, row, label(r.kind))),
    );
    put(
      'stuck',
      mine('stuck').map(({ r, row }) => point(r, row, label(r.function))),
    );
    put(
      'loss',
      mine('loss').map(({ r, row }) => iv({ begin_ns: r.from_ns, end_ns: r.to_ns }, row, 0, label(r.reason))),
    );
    const flame: Parameters<typeof fromList>[0] = [];
    for (const { r, row } of mine('sample')) {
      const functions = this.stackOf(r);
      const e = r.time_ns as number;
      functions.forEach((f, depth) =>
        flame.push({ b: e - (r.weight_ns as number), e, row, kind: 0, depth, label: this.id(f) }),
      );
    }
    put('flame', flame);
  }

  private stackOf(r: Record_): string[] {
    const stack = this.dump.stack.find((s) => s.id === r.stack_id);
    return stack ? String(stack.functions).split(';') : [];
  }

  slices(lane: number, layer: LaneLayer, fromNs: number, toNs: number, pixels: number): Slices {
    const tree = this.trees.get(`${lane}/${layer}`);
    return tree ? tree.slices(fromNs, toNs, pixels) : fromList([]).slices(0, 1, 1);
  }

  private points(name: string, lane: number | null): { t: number; v: number }[] {
    const thread = lane === null ? null : this.info.lanes[lane].threadId;
    const of = (r: Record_) => thread === null || r.thread_id === thread;
    if (name === 'queue' && thread === null)
      return this.dump.queue.map((r) => ({ t: r.time_ns as number, v: r.depth as number }));
    if (name === 'queue')
      return this.dump.poll.filter(of).map((r) => ({ t: r.begin_ns as number, v: r.queue_depth as number }));
    if (name === 'wake_delay')
      return this.dump.poll
        .filter((r) => of(r) && r.wake_delay_ns !== null)
        .map((r) => ({ t: r.begin_ns as number, v: r.wake_delay_ns as number }));
    if (name === 'cost')
      return this.dump.cost.map((r) => ({
        t: r.time_ns as number,
        v: (r.cpu_ns as number) / (r.span_ns as number),
      }));
    return [];
  }

  series(name: string, lane: number | null, fromNs: number, toNs: number, pixels: number): Series {
    const min = new Float32Array(pixels).fill(NaN);
    const max = new Float32Array(pixels).fill(NaN);
    const sum = new Float32Array(pixels);
    const n = new Float32Array(pixels);
    const step = (toNs - fromNs) / pixels;
    if (name === 'utilisation') {
      const workers = this.info.lanes.filter((l) => (lane === null ? l.workerId >= 0 : l.id === lane));
      for (const r of this.dump.poll) {
        if (!workers.some((w) => w.threadId === r.thread_id)) continue;
        for (let p = Math.max(0, Math.floor(((r.begin_ns as number) - fromNs) / step)); p < pixels; p++) {
          const lo = Math.max(r.begin_ns as number, fromNs + p * step);
          const hi = Math.min(r.end_ns as number, fromNs + (p + 1) * step);
          if (hi <= lo) break;
          sum[p] += (hi - lo) / step / workers.length;
        }
      }
      for (let p = 0; p < pixels; p++) min[p] = max[p] = sum[p];
    } else {
      for (const { t, v } of this.points(name, lane)) {
        const p = Math.floor((t - fromNs) / step);
        if (p < 0 || p >= pixels || v === null) continue;
        min[p] = n[p] ? Math.min(min[p], v) : v;
        max[p] = n[p] ? Math.max(max[p], v) : v;
        sum[p] += v;
        n[p]++;
      }
      for (let p = 0; p < pixels; p++) sum[p] = n[p] ? sum[p] / n[p] : NaN;
    }
    const unit = name === 'wake_delay' ? 'ns' : name === 'queue' ? 'tasks' : 'share';
    return {
      name,
      unit,
      timeNs: Float64Array.from(min, (_, p) => fromNs + (p + 0.5) * step),
      min,
      max,
      mean: sum,
    };
  }

  private passes(r: Record_, row: number, f: Filter): boolean {
    const cell = f.column === 'rowid' ? row : r[f.column];
    if (cell === null || cell === undefined) return false;
    if (f.op === '=') return cell === f.value;
    if (f.op === '<') return cell < f.value;
    if (f.op === '<=') return cell <= f.value;
    return f.op === '>' ? cell > f.value : cell >= f.value;
  }

  async rows(
    table: string,
    columns?: string[],
    filters: Filter[] = [],
    limit = Infinity,
    order?: Order,
  ): Promise<Rows> {
    const source = this.dump[table] ?? [];
    let found = source
      .map((r, row) => ({ r, row }))
      .filter(({ r, row }) => filters.every((f) => this.passes(r, row, f)));
    if (order) {
      const key = (x: { r: Record_ }) => (x.r[order.column] ?? -Infinity) as number;
      found = found.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (order.descending ? -1 : 1));
    }
    found = found.slice(0, limit);
    const out: Rows = { table, n: found.length, columns: {} };
    for (const name of columns ?? ['rowid', ...Object.keys(source[0] ?? {})]) {
      if (name !== 'rowid' && source[0] && !(name in source[0])) continue;
      const info =
        name === 'rowid'
          ? { name, type: 'number' as const, unit: '', meaning: '', absent: '' }
          : this.columnInfo(source, name);
      const cells = found.map(({ r, row }) => (name === 'rowid' ? row : r[name]));
      const values: Column['values'] =
        info.type === 'text'
          ? Uint32Array.from(cells, (c) => (c === null ? NONE : this.id(String(c))))
          : Float64Array.from(cells, (c) => (c === null ? NaN : Number(c)));
      out.columns[name] = { info, values };
    }
    return out;
  }

  async flame(selection: Selection, weight: Weight, invert = false): Promise<Flame> {
    const table = weight === 'cpu' || weight === 'wall' ? 'sample' : weight === 'wait' ? 'wait' : 'offcpu';
    const parent: number[] = [-1];
    const frame: number[] = [0];
    const total: number[] = [0];
    const self: number[] = [0];
    const counts: number[] = [0];
    const frames: Flame['frames'] = [{ name: 'all', module: '', file: '', line: 0 }];
    const children = new Map<string, number>();
    for (const r of this.dump[table]) {
      const t = (r.time_ns ?? r.begin_ns) as number;
      if (t < (selection.fromNs ?? -Infinity) || t >= (selection.toNs ?? Infinity)) continue;
      if (selection.threadIds && !selection.threadIds.includes(r.thread_id as number)) continue;
      if (selection.pollId !== undefined && r.poll_id !== selection.pollId) continue;
      const ns = (r.weight_ns ?? r.duration_ns) as number;
      let at = 0;
      const names = this.stackOf(r);
      if (invert) names.reverse();
      total[0] += ns;
      counts[0]++;
      for (const name of names) {
        let f = frames.findIndex((x) => x.name === name);
        if (f < 0) f = frames.push({ name, module: '/srv/app/server', file: 'src/server.c', line: 10 }) - 1;
        let next = children.get(`${at}/${f}`);
        if (next === undefined) {
          next = parent.push(at) - 1;
          children.set(`${at}/${f}`, next);
          frame.push(f);
          total.push(0);
          self.push(0);
          counts.push(0);
        }
        at = next;
        total[at] += ns;
        counts[at]++;
      }
      self[at] += ns;
    }
    return {
      unit: 'ns',
      parent: Int32Array.from(parent),
      frame: Uint32Array.from(frame),
      total: Float64Array.from(total),
      self: Float64Array.from(self),
      count: Uint32Array.from(counts),
      frames,
    };
  }

  async report(): Promise<unknown> {
    return this.dump.report;
  }
  onGrow(): void {}
}
