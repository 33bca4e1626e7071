// SPDX-License-Identifier: Apache-2.0
// Runs tests of the viewer: node viewer/test/run.mjs FILE.ts... They are bundled first, because node does not read
// TypeScript. WEFT_BUILD is the directory of the binaries.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-viewer-test-'));
try {
  const built = await esbuild.build({
    entryPoints: process.argv.slice(2).map((file) => path.resolve(file)),
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['playwright-core'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
    metafile: true,
  });
  // Where playwright-core is found from.
  fs.symlinkSync(path.join(here, '../node_modules'), path.join(out, 'node_modules'));
  const files = Object.keys(built.metafile.outputs).map((file) => path.resolve(file));
  const run = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], { stdio: 'inherit' });
  process.exitCode = run.status ?? 1;
} finally {
  fs.rmSync(out, { recursive: true, force: true });
}
