// SPDX-License-Identifier: Apache-2.0
// The worker: answers messages of client.ts with what a session says.
import { lodBuffers } from './lod.ts';
import { seriesBuffers } from './series.ts';
import { Session, type Loaded, type LoadOptions } from './session.ts';
import type { Answer, Ask } from './protocol.ts';

const port = self as unknown as {
  postMessage(message: Answer, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<Ask>) => void) | null;
};
let session: Session | null = null;

function buffersOf(loaded: Loaded): ArrayBuffer[] {
  const { queue, cost, localQueue, wakeDelay } = loaded.series;
  const layers = loaded.layers.flatMap((lane) => Object.values(lane).flatMap((lods) => lods.flatMap(lodBuffers)));
  return [...layers, ...[queue, cost, ...localQueue, ...wakeDelay].flat().flatMap(seriesBuffers)];
}

function load(id: number, options: LoadOptions): void {
  const loaded = session!.load(options);
  port.postMessage({ id, result: loaded, strings: session!.newStrings() }, [...new Set(buffersOf(loaded))]);
  if (loaded.complete || options.preview) return;
  session!.find(loaded);
  port.postMessage({ info: loaded.info, strings: session!.newStrings() });
}

async function answer(ask: Ask): Promise<void> {
  if (ask.method === 'start') {
    session = await Session.make(ask.args[0], (done, total) => port.postMessage({ done, total }));
    port.postMessage({ id: ask.id, result: null, strings: [] });
  } else if (ask.method === 'load') {
    load(ask.id, ask.args[0]);
  } else {
    const method = session![ask.method] as (...args: unknown[]) => unknown;
    const result = method.apply(session, ask.args);
    port.postMessage({ id: ask.id, result, strings: session!.newStrings() });
  }
}

port.onmessage = (event) => {
  answer(event.data).catch((error: unknown) => {
    port.postMessage({ id: event.data.id, error: error instanceof Error ? error.message : String(error) });
  });
};
