// SPDX-License-Identifier: Apache-2.0
// From a trace that is being opened to the page: progress, errors in words, then the page itself.
import { render } from 'preact';
import type { Trace } from '../api';
import { Root, makeApp } from './app';

export type Open = (progress: (message: string, share: number) => void) => Promise<Trace>;

function Progress({ message, share }: { message: string; share: number }) {
  return (
    <div class="opening" role="status">
      <h1>weft</h1>
      <p>{message}</p>
      <progress value={Number.isFinite(share) ? share : undefined} max={1} />
    </div>
  );
}

function Failed({ message }: { message: string }) {
  return (
    <div class="opening" role="alert">
      <h1>weft</h1>
      <p>The trace could not be opened.</p>
      <pre>{message}</pre>
      <p class="muted">“weft inspect FILE” says what a segment holds and where it is damaged.</p>
    </div>
  );
}

export async function start(root: HTMLElement, open: Open): Promise<void> {
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  render(<Progress message="Opening the trace" share={NaN} />, root);
  try {
    const trace = await open((message, share) => render(<Progress message={message} share={share} />, root));
    const app = makeApp(trace);
    (window as unknown as Record<string, unknown>).__weft = app;
    render(null, root);
    render(<Root app={app} />, root);
  } catch (error) {
    render(<Failed message={String((error as Error)?.message ?? error)} />, root);
    document.documentElement.dataset.ready = 'failed';
    throw error;
  }
}
