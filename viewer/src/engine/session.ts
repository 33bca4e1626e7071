// SPDX-License-Identifier: Apache-2.0
// A trace in the worker: from files to what the page draws, and answers to what it asks.
import type { Filter, Flame, Lane, LaneLayer, Order, Rows, Selection, TraceInfo, Weight } from '../api.ts';
import { Core, LAYERS, type TimePart } from './core.ts';
import { buildLods, type LodData } from './lod.ts';
import { buildSeries, type SeriesData } from './series.ts';
import type { MemoryFile } from './wasi.ts';

/** Of a larger trace findings come after the first picture. */
const FINDINGS_AT_ONCE = 1_000_000;

export interface Loaded {
  info: TraceInfo;
  layers: Record<LaneLayer, LodData[]>[]; // by lane
  series: { queue: SeriesData[]; cost: SeriesData[]; localQueue: SeriesData[][]; wakeDelay: SeriesData[][] }; // by lane
  complete: boolean; // findings are in
  clockNs: number; // moment 0, on the clock of the recording
  bootsNs: number[]; // when the clocks of the recordings were 0, in time of day
}
export interface LoadOptions {
  files: MemoryFile[];
  names: Uint8Array;
  live: boolean;
  left: string[]; // sentences about what was not loaded
  preview?: TimePart; // only what lanes show, of this part (preview.ts)
}

interface ReportJson {
  recordings: { findings?: unknown[]; limits?: string | null }[];
}

const OTHERS = 'other threads';

/** What a group of lanes is called: of several processes, whose it is comes first. */
export function processGroup(group: string, process: string, processes: number): string {
  return processes < 2 ? group : `${process} · ${group === OTHERS ? 'threads' : group}`;
}

export class Session {
  private core: Core;
  private sent = 0;

  private constructor(core: Core) {
    this.core = core;
  }

  static async make(module: WebAssembly.Module, progress: (done: number, total: number) => void): Promise<Session> {
    return new Session(await Core.make(module, progress));
  }

  get engine(): Core {
    return this.core;
  }

  /** Texts that the page has not been sent yet. */
  newStrings(): string[] {
    this.core.newStrings();
    const from = this.sent;
    this.sent = this.core.strings.length;
    return this.core.strings.slice(from);
  }

  load(options: LoadOptions): Loaded {
    this.core.layersOnly(options.preview ?? null);
    this.core.open(options.files, options.names);
    this.core.load();
    const names = this.recordingNames();
    const lanes = this.lanes(names);
    const recordings = this.core.recordings();
    const first = recordings.find((recording) => recording.shiftNs === 0);
    const info: TraceInfo = {
      fromNs: 0,
      toNs: Math.max(1, ...recordings.map((recording) => recording.shiftNs + recording.spanNs)),
      startUnixNs: first?.startUnixNs ?? 0,
      events: this.core.figure(0),
      live: options.live,
      lanes,
      recordings: recordings.map(({ shiftNs, spanNs }, i) => ({ name: names[i] ?? `${i}`, shiftNs, spanNs })),
      tables: this.core.tables,
      problems: [...options.left, ...this.core.problems()],
      limits: [],
      findings: [],
      complete: false,
    };
    if (recordings.length === 0) info.problems.unshift('No segment could be read.');
    const loaded: Loaded = {
      info,
      ...this.drawn(lanes),
      complete: false,
      clockNs: first?.clockNs ?? 0,
      bootsNs: recordings.map(({ startUnixNs, clockNs }) => startUnixNs - clockNs),
    };
    if (!options.preview && info.events <= FINDINGS_AT_ONCE) this.find(loaded);
    return loaded;
  }

  /** Findings and limits, as the first page of the report has them. */
  find(loaded: Loaded): void {
    const report = this.core.report({}, 48) as ReportJson;
    loaded.info.findings = report.recordings.flatMap((recording, i) =>
      (recording.findings ?? []).map((finding) => ({ recording: i, ...(finding as object) })),
    );
    const { recordings } = loaded.info;
    loaded.info.limits = report.recordings.flatMap(({ limits }, i) =>
      limits ? [recordings.length > 1 && recordings[i] ? `${recordings[i].name}: ${limits}` : limits] : [],
    );
    loaded.info.complete = true;
    loaded.complete = true;
  }

  private texts(rows: Rows, column: string): string[] {
    this.core.newStrings();
    return Array.from(rows.columns[column].values, (at) => this.core.strings[at] ?? '');
  }

  /** What the recordings are called: program, process, and which dump. */
  private recordingNames(): string[] {
    const recordings = this.core.rows('recording', ['pid', 'command', 'service', 'dump']);
    const services = this.texts(recordings, 'service');
    const commands = this.texts(recordings, 'command');
    return Array.from({ length: recordings.n }, (_, i) => {
      const program = services[i] || (commands[i] ?? '').split(' ')[0].split('/').at(-1) || 'process';
      const dump = recordings.columns.dump.values[i];
      return `${program} (${recordings.columns.pid.values[i]})${dump > 0 ? ` dump ${dump}` : ''}`;
    });
  }

  /** Lanes, grouped by process where there are several, and by runtime. */
  private lanes(names: string[]): Lane[] {
    const lanes = this.core.lanes();
    const workers = this.core.rows('worker', ['id', 'runtime']);
    const runtimes = this.texts(workers, 'runtime');
    const runtimeOf = new Map(Array.from(workers.columns.id.values, (id, i) => [id, runtimes[i]]));
    for (const lane of lanes) {
      const process = names[lane.recording];
      const group = lane.workerId >= 0 ? runtimeOf.get(lane.workerId) || 'workers' : OTHERS;
      lane.group = processGroup(group, process, names.length);
    }
    return lanes;
  }

  private points(name: string, lane: number, times?: Float64Array): SeriesData[] {
    const points = this.core.points(name, lane, times);
    return [buildSeries(points.timeNs, points.value)];
  }

  /** What lanes show, a layer at a time: what making one of all lanes takes is given back before the next. */
  private drawn(lanes: Lane[]): Pick<Loaded, 'layers' | 'series'> {
    const layers = lanes.map(() => ({}) as Record<LaneLayer, LodData[]>);
    const ofPolls = (name: string): SeriesData[][] =>
      layers.map(({ poll }, lane) => this.points(name, lane, poll.length === 1 ? poll[0].beginNs : undefined));
    const series: Loaded['series'] = {
      queue: this.points('queue', 0), cost: this.points('cost', 0), localQueue: [], wakeDelay: [],
    };
    for (const layer of LAYERS) {
      for (const lane of lanes) layers[lane.id][layer] = buildLods(this.core.layer(lane.id, layer));
      if (layer === 'poll') series.localQueue = ofPolls('local_queue');
      if (layer === 'poll') series.wakeDelay = ofPolls('wake_delay');
      this.core.layersDone();
    }
    return { layers, series };
  }

  rows(table: string, columns?: string[], filters?: Filter[], limit?: number, order?: Order): Rows {
    return this.core.rows(table, columns, filters, limit, order);
  }

  flame(selection: Selection, weight: Weight, invert?: boolean): Flame {
    return this.core.flame(selection, weight, invert);
  }

  report(selection: Selection): unknown {
    return this.core.report(selection);
  }
}
