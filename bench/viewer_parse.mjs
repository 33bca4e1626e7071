// SPDX-License-Identifier: Apache-2.0
// CPU time of decoding all events of segments in WebAssembly: node bench/viewer_parse.mjs BUILD DIR... One line of JSON
// for each DIR.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(path.join(here, '../viewer/package.json'))('esbuild');
const [build, ...directories] = process.argv.slice(2);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-bench-'));
try {
  const core = path.join(scratch, 'core.mjs');
  const entryPoints = [path.join(here, '../viewer/src/engine/core.ts')];
  await esbuild.build({ entryPoints, outfile: core, bundle: true, format: 'esm', platform: 'node', logLevel: 'error' });
  const { Core } = await import(pathToFileURL(core).href);
  const module = await WebAssembly.compile(fs.readFileSync(path.join(build, 'viewer/weft.wasm')));
  for (const directory of directories) {
    const engine = await Core.make(module, () => {});
    const files = fs.readdirSync(directory).filter((name) => name.endsWith('.weft')).sort();
    engine.open(files.map((name) => ({ name, bytes: new Uint8Array(fs.readFileSync(path.join(directory, name))) })));
    engine.decode(); // until the compiler has done its best
    const before = process.cpuUsage();
    const events = engine.decode();
    const { user, system } = process.cpuUsage(before);
    console.log(JSON.stringify({ directory, events, ns_per_event: ((user + system) * 1000) / events }));
  }
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}
