// SPDX-License-Identifier: Apache-2.0
// Makes the page: node build.mjs WEFT.WASM OUT [--watch]. In OUT are then app.js, app.css, index.html, licences.txt,
// weft.wasm, all of them gzipped, and bundle.c, which has them as bytes for the command.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, constants } from 'node:zlib';
import * as esbuild from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const [wasm, out] = process.argv.slice(2);
if (!wasm || !out) {
  console.error('usage: node build.mjs WEFT.WASM OUT');
  process.exit(2);
}

const shared = {
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: 'es2022',
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  absWorkingDir: here,
};

/** `worker:./x.ts` is the code of a worker as text. */
const workers = {
  name: 'workers',
  setup(build) {
    build.onResolve({ filter: /^worker:/ }, (args) => ({
      path: path.join(args.resolveDir, args.path.slice('worker:'.length)),
      namespace: 'worker',
    }));
    build.onLoad({ filter: /.*/, namespace: 'worker' }, async (args) => {
      const built = await esbuild.build({ ...shared, entryPoints: [args.path] });
      return { contents: built.outputFiles[0].text, loader: 'text', watchFiles: [args.path] };
    });
  },
};

function entry() {
  const main = path.join(here, 'src/main.tsx');
  return fs.existsSync(main) ? main : path.join(here, 'src/engine/plain.ts');
}

const page = fs.readFileSync(path.join(here, 'index.html'), 'utf8');

/** The page as one file: marks where parts go, and a policy that knows their hashes. cli/view_html.c fills it. */
function inlinePage(script, style) {
  const sum = (content) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
  const policy =
    `default-src 'none'; script-src ${sum(script)} 'wasm-unsafe-eval'; worker-src blob:; style-src ${sum(style)}; ` +
    `img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const put = (text, from, to) => {
    const parts = text.split(from);
    if (parts.length !== 2) throw new Error(`index.html has ${parts.length - 1} of ${from}, not one`);
    return parts.join(to);
  };
  let text = put(page, '<meta charset="utf-8" />', `<meta charset="utf-8" />\n    ` +
    `<meta http-equiv="Content-Security-Policy" content="${policy}" />`);
  text = put(text, '<link rel="stylesheet" href="app.css" />', '<style>@STYLE@</style>');
  return put(text, '<script src="app.js"></script>', '@DATA@<script>@SCRIPT@</script>');
}

/** The licences of all that is in the page. */
function licences() {
  const parts = [
    ['weft', path.join(here, '../LICENSE')],
    ['preact', path.join(here, 'node_modules/preact/LICENSE')],
    ['zstd (decoder)', path.join(here, 'node_modules/zstd-napi/deps/zstd/LICENSE')],
    ['xxHash (header)', null],
    ['wasi-libc', null],
  ];
  const known = {
    'xxHash (header)': ['/usr/share/doc/libxxhash-dev/copyright'],
    'wasi-libc': ['/usr/share/doc/wasi-libc/copyright'],
  };
  return parts
    .map(([name, file]) => {
      const from = file ?? known[name].find((one) => fs.existsSync(one));
      if (!from) throw new Error(`the licence of ${name} was not found: ${known[name].join(', ')}`);
      return `==== ${name} ====\n\n${fs.readFileSync(from, 'utf8').trim()}\n`;
    })
    .join('\n');
}

const built = await esbuild.build({
  ...shared,
  entryPoints: { app: entry() },
  outdir: out,
  plugins: [workers],
  loader: { '.svg': 'dataurl' },
  metafile: true,
});
const text = (name) => built.outputFiles.find((file) => file.path.endsWith(name))?.contents ?? new Uint8Array();
if (/<\/script|<!--/i.test(Buffer.from(text('app.js')).toString())) throw new Error('app.js would end its element');
const files = [
  ['index.html', 'text/html; charset=utf-8', Buffer.from(page)],
  ['inline.html', 'text/html; charset=utf-8', Buffer.from(inlinePage(text('app.js'), text('app.css')))],
  ['app.js', 'text/javascript; charset=utf-8', text('app.js')],
  ['app.css', 'text/css; charset=utf-8', text('app.css')],
  ['weft.wasm', 'application/wasm', fs.readFileSync(wasm)],
  ['licences.txt', 'text/plain; charset=utf-8', Buffer.from(licences())],
];

const hash = createHash('sha256');
const lines = [
  '/* SPDX-License-Identifier: Apache-2.0 */',
  '/* Made by viewer/build.mjs. */',
  '#include "view_bundle.h"',
  '',
];
let bytes = 0;
const rows = files.map(([name, type, content], i) => {
  const packed = gzipSync(content, { level: 9, strategy: constants.Z_DEFAULT_STRATEGY });
  fs.writeFileSync(path.join(out, name), content);
  fs.writeFileSync(path.join(out, `${name}.gz`), packed);
  hash.update(packed);
  bytes += packed.length;
  lines.push(`static const unsigned char file_${i}[] = {`);
  for (let at = 0; at < packed.length; at += 24) lines.push(`${[...packed.subarray(at, at + 24)].join(',')},`);
  lines.push('};', '');
  return `\t{"${name}", "${type}", file_${i}, ${packed.length}, ${content.length}},`;
});
lines.push('const struct view_file view_bundle[] = {', ...rows, '\t{0},', '};');
lines.push('const char view_bundle_missing[] = "";', '');
fs.writeFileSync(path.join(out, 'bundle.c'), lines.join('\n'));
fs.writeFileSync(path.join(out, 'bundle.json'), JSON.stringify({ bytes, sha256: hash.digest('hex') }));
console.log(`page of ${files.length} files, ${bytes} bytes compressed`);
