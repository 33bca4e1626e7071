// SPDX-License-Identifier: Apache-2.0
// The page's end of the engine: a Trace (api.ts) whose arrays are here, and whose questions go to the worker.
import type {
  Answer as SqlAnswer, Filter, Flame, LaneLayer, Order, Question,
  Rows, Selection, Series, Slices, Trace, TraceInfo, Weight,
} from '../api.ts';
import { chooseFiles, type Choice, type Part } from './choose.ts';
import type { LodData } from './lod.ts';
import { sharedFrames, slicesOf } from './lod.ts';
import { joinPreview, previewParts, type PreviewPart } from './preview.ts';
import type { Answer, Ask } from './protocol.ts';
import { sampleSeries, sampleUtilisation } from './series.ts';
import type { Loaded, LoadOptions } from './session.ts';
import { pageSource, type FileInfo, type Manifest, type Source } from './source.ts';
import type { MemoryFile } from './wasi.ts';
import workerCode from 'worker:./worker.ts';

const LIVE_MS = 2000;
const PROGRESS_MS = 200;
const FETCHES = 32; // at a time; browsers make a queue of them

export interface OpenOptions extends Part {
  /** What is going on, for people, and how far it is, 0 to 1. */
  onProgress?(what: string, share: number): void;
}

interface Coming extends Choice {
  files: Promise<MemoryFile>[]; // of `indices`
  names: Promise<Uint8Array>;
}

class Link {
  private worker: Worker;
  private waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  private next = 1;

  constructor(
    private strings: string[],
    private onProgress: (done: number, total: number) => void,
    private onInfo: (info: TraceInfo) => void,
  ) {
    const url = URL.createObjectURL(new Blob([workerCode], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    this.worker.onmessage = (event: MessageEvent<Answer>) => this.take(event.data);
    this.worker.onerror = (event) => this.fail(new Error(event.message || 'the worker failed'));
    this.worker.onmessageerror = () => this.fail(new Error('the worker sent what could not be read'));
  }

  private fail(error: Error): void {
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }

  private take(answer: Answer): void {
    if ('done' in answer) {
      this.onProgress(answer.done, answer.total);
      return;
    }
    if ('strings' in answer) for (const text of answer.strings) this.strings.push(text);
    if ('info' in answer) {
      this.onInfo(answer.info);
      return;
    }
    const waiting = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    if ('error' in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve(answer.result as never);
  }

  end(): void {
    this.worker.terminate();
  }

  ask<T>(method: Ask['method'], args: unknown[], transfer: Transferable[] = []): Promise<T> {
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (value: never) => void, reject });
      this.worker.postMessage({ id, method, args }, transfer);
    });
  }
}

export class EngineTrace implements Trace {
  info!: TraceInfo;
  strings: string[] = [];
  query?: (sql: string, limit: number) => Promise<SqlAnswer>;
  questions?: () => Promise<Question[]>;
  private listed: Promise<Manifest>;
  private link: Link;
  private loaded!: Loaded;
  private grown: ((info: TraceInfo) => void)[] = [];
  private known = new Map<number, { info: FileInfo; file: MemoryFile }>();
  private version = '';
  private saidMs = -PROGRESS_MS;
  private around: Pick<Choice, 'before' | 'after'> = {};

  constructor(private source: Source, private options: OpenOptions) {
    this.listed = source.manifest(); // is on its way while the worker is made
    this.listed.catch(() => {}); // reported by who waits for it
    this.link = this.newLink();
    if (!source.query || !source.questions) return;
    this.query = async (sql, limit) => {
      const answer = await source.query!(sql);
      const cut = answer.rows.length > limit;
      return { ...answer, rows: answer.rows.slice(0, limit), truncated: answer.truncated || cut };
    };
    this.questions = () => source.questions!();
  }

  private newLink(): Link {
    this.strings.length = 0;
    return new Link(
      this.strings,
      (done, total) => this.progress('Reading events', total ? done / total : 0),
      (info) => this.update(info),
    );
  }

  /** Only until there is something to show, and now and then: drawing it takes the CPU from what is going on. */
  private progress(what: string, share: number): void {
    const now = performance.now();
    if (this.loaded || now - this.saidMs < PROGRESS_MS) return;
    this.saidMs = now;
    this.options.onProgress?.(what, share);
  }

  private update(info: TraceInfo): void {
    this.info = Object.assign(info, this.around);
    for (const callback of this.grown) callback(info);
  }

  async open(): Promise<void> {
    performance.mark('weft-open'); // for bench/viewer.mjs
    this.progress('Starting', 0);
    const started = this.source.wasm().then(async (module) => {
      await this.link.ask('start', [module]);
      return module;
    });
    started.catch(() => {}); // reported below
    const manifest = await this.listed;
    const coming = this.fetchAll(manifest); // while the worker starts
    const parts = previewParts(coming.indices.map((index) => manifest.files[index]), navigator.hardwareConcurrency);
    const whole = async (): Promise<void> => {
      await this.loadWhatFits(await started, manifest, coming);
      performance.mark('weft-whole');
      if (this.source.live && manifest.live) void this.follow();
    };
    if (!(await this.preview(started, parts, coming))) return whole();
    // The picture first: the worker would take the CPU from it.
    requestAnimationFrame(() => setTimeout(() => whole().catch((error: Error) => this.ended(error))));
  }

  /** What is there is shown, with a word about what is not. */
  private ended(error: Error): void {
    this.info.problems.push(`The trace could not be loaded in full: ${error.message}`);
    this.info.complete = true;
    this.update(this.info);
  }

  /** A picture of a large trace by several workers, before the one that did the first part loads all of it. */
  private async preview(started: Promise<WebAssembly.Module>, parts: PreviewPart[], coming: Coming): Promise<boolean> {
    if (parts.length < 2) return false;
    const others = parts.slice(1).map(() => new Link([], () => {}, () => {}));
    try {
      const loading = [this.link, ...others].map(async (link, i) => {
        const module = await started;
        if (link !== this.link) await link.ask('start', [module]);
        const { fromNs, toNs } = parts[i];
        const files = await Promise.all(parts[i].files.map((at) => coming.files[at]));
        const preview = { fromNs, toNs };
        const options: LoadOptions = { files, names: new Uint8Array(), live: false, left: coming.left, preview };
        return link.ask<Loaded>('load', [options]);
      });
      const joined = joinPreview(await Promise.all(loading), coming.events);
      if (joined) this.show(joined);
      return joined !== null;
    } catch {
      return false; // loading all of it says what is wrong
    } finally {
      for (const link of others) link.end();
    }
  }

  private show(loaded: Loaded): void {
    this.loaded = loaded;
    performance.mark('weft-loaded'); // the first of these is the first picture
    this.update(loaded.info);
  }

  /** Less and less, until it fits into the memory that the browser gives. */
  private async loadWhatFits(module: WebAssembly.Module, manifest: Manifest, first: Coming): Promise<void> {
    for (let coming = first; ; coming = this.fetchAll(manifest)) {
      const { indices, events } = coming;
      try {
        await this.load(manifest, coming);
        return;
      } catch (error) {
        if (!/memory/i.test((error as Error).message) || indices.length < 2) throw error;
        this.options = { ...this.options, maxEvents: Math.floor(events / 2) };
        this.link.end();
        this.link = this.newLink();
        await this.link.ask('start', [module]);
      }
    }
  }

  private async fetchOne(info: FileInfo, live: boolean): Promise<MemoryFile> {
    const known = this.known.get(info.id);
    const same = known && known.info.version === info.version;
    const file = same ? known.file : await this.source.file(info, info.live ? known?.file.bytes : undefined);
    if (live) this.known.set(info.id, { info, file });
    return file;
  }

  /** Some at a time; files of several directories may have one name. */
  private fetchFiles(manifest: Manifest, indices: number[]): Promise<MemoryFile>[] {
    const names = manifest.files.map((file) => file.name);
    const last: Promise<unknown>[] = []; // of each line in which files wait
    let done = 0;
    return indices.map((index, at) => {
      const info = manifest.files[index];
      const fetched = (last[at % FETCHES] ?? Promise.resolve()).then(async () => {
        this.progress(`Fetching ${info.name}`, done++ / indices.length);
        const file = await this.fetchOne(info, manifest.live);
        const alone = names.indexOf(info.name) === names.lastIndexOf(info.name);
        return { ...file, name: alone ? info.name : `${info.id}/${info.name}` };
      });
      fetched.catch(() => {}); // reported by who waits for it
      last[at % FETCHES] = fetched;
      return fetched;
    });
  }

  private fetchAll(manifest: Manifest): Coming {
    const choice = chooseFiles(manifest, this.options);
    const names = this.source.names();
    names.catch(() => {}); // reported by who waits for it
    return { ...choice, files: this.fetchFiles(manifest, choice.indices), names };
  }

  private async load(manifest: Manifest, coming: Coming): Promise<void> {
    const [names, ...files] = await Promise.all([coming.names, ...coming.files]);
    const options: LoadOptions = { files, names, live: manifest.live, left: coming.left };
    // Bytes that will not be needed here again are given away, not copied.
    const transfer = manifest.live ? [] : files.map((file) => file.bytes.buffer as ArrayBuffer);
    const loaded = await this.link.ask<Loaded>('load', [options], transfer);
    this.version = manifest.version;
    this.around = { before: coming.before, after: coming.after };
    this.show(loaded);
  }

  /** A recording that goes on: looks for more, and rests several times as long as loading took. */
  private async follow(): Promise<void> {
    let restMs = LIVE_MS;
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, restMs));
      try {
        const manifest = await this.source.manifest();
        if (manifest.version !== this.version) {
          const begin = performance.now();
          await this.load(manifest, this.fetchAll(manifest));
          restMs = Math.max(LIVE_MS, 4 * (performance.now() - begin));
        }
        if (!manifest.live) return;
      } catch (error) {
        this.info.live = false;
        this.info.problems.push(`Following the recording ended: ${(error as Error).message}`);
        this.update(this.info);
        return;
      }
    }
  }

  rows(table: string, columns?: string[], filters?: Filter[], limit?: number, order?: Order): Promise<Rows> {
    return this.link.ask('rows', [table, columns, filters, limit, order]);
  }

  flame(selection: Selection, weight: Weight, invert?: boolean): Promise<Flame> {
    return this.link.ask('flame', [selection, weight, invert]);
  }

  report(selection: Selection): Promise<unknown> {
    return this.link.ask('report', [selection]);
  }

  slices(lane: number, layer: LaneLayer, fromNs: number, toNs: number, pixels: number): Slices {
    return slicesOf(this.loaded.layers[lane]?.[layer] ?? [], fromNs, toNs, pixels);
  }

  sharedFrames(lane: number): number {
    return sharedFrames(this.loaded.layers[lane]?.flame ?? []);
  }

  private pollLods(lane: number | null): LodData[] {
    const lanes = lane === null ? this.info.lanes.filter((one) => one.workerId >= 0) : [this.info.lanes[lane]];
    const chosen = lanes.length > 0 ? lanes : this.info.lanes;
    return chosen.flatMap((one) => this.loaded.layers[one.id].poll.filter((lod) => lod.depth === 0));
  }

  series(name: string, lane: number | null, fromNs: number, toNs: number, pixels: number): Series {
    const { queue, cost, localQueue, wakeDelay } = this.loaded.series;
    switch (name) {
      case 'utilisation':
        return sampleUtilisation(this.pollLods(lane), fromNs, toNs, pixels);
      case 'wake_delay':
        return sampleSeries(name, 'ns', lane === null ? wakeDelay.flat() : wakeDelay[lane], fromNs, toNs, pixels);
      case 'cost':
        return sampleSeries(name, 'share', cost, fromNs, toNs, pixels);
      case 'queue':
        return sampleSeries(name, 'tasks', lane === null ? queue : localQueue[lane], fromNs, toNs, pixels);
      case 'local_queue':
        return sampleSeries(name, 'tasks', lane === null ? localQueue.flat() : localQueue[lane], fromNs, toNs, pixels);
      default:
        throw new Error(`there is no series ${name}`);
    }
  }

  onGrow(callback: (info: TraceInfo) => void): void {
    this.grown.push(callback);
  }
}

/** The trace that the page was opened for. */
export async function openTrace(options: OpenOptions = {}, source: Source = pageSource()): Promise<Trace> {
  const trace = new EngineTrace(source, options);
  await trace.open();
  return trace;
}
