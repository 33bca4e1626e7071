// SPDX-License-Identifier: Apache-2.0
// CPU time of the decoder of dial9's viewer: node bench/viewer_dial9.mjs DECODE.JS FILE. One line of JSON. Each event
// is decoded and forgotten, as viewer_parse does it.
import fs from 'node:fs';
import { createRequire } from 'node:module';

const [script, file] = process.argv.slice(2);
const { TraceDecoder } = createRequire(import.meta.url)(script);
const bytes = fs.readFileSync(file);

function decode() {
  const decoder = new TraceDecoder(bytes);
  if (!decoder.decodeHeader()) throw new Error('no trace of dial9');
  let n = 0;
  for (let frame = decoder.nextFrame(); frame !== null; frame = decoder.nextFrame()) {
    if (frame.type === 'event') n++;
  }
  return n;
}

decode(); // until the compiler has done its best
const before = process.cpuUsage();
const events = decode();
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ events, ns_per_event: ((user + system) * 1000) / events, bytes: bytes.length }));
