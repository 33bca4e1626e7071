// SPDX-License-Identifier: Apache-2.0
// A page without a user interface, for tests of the engine in a browser: window.weft is the trace.
import { openTrace } from './client.ts';

const app = document.getElementById('app')!;
openTrace({ onProgress: (what) => (app.textContent = what) }).then(
  (trace) => {
    (window as unknown as { weft: unknown }).weft = trace;
    app.textContent = `${trace.info.events} events, ${trace.info.lanes.length} lanes`;
  },
  (error: Error) => (app.textContent = `failed: ${error.message}`),
);
