// SPDX-License-Identifier: Apache-2.0
// Callbacks of node's loop that compute, read a file from the page cache, run a command, or wait.
// run: node_read_file_sync readFileSync
// run: node_exec_file_sync execFileSync
// run: node_pbkdf2_sync pbkdf2Sync
// run: node_atomics_wait atomicsWait
// run: node_compute compute
// run: node_write_sync writeSync
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const child = require('child_process');
const crypto = require('crypto');
require('v8').setFlagsFromString('--expose-gc');
const collect = require('vm').runInNewContext('gc');

const how = process.argv[2] || 'compute';
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-truth-'));
const file = path.join(scratch, 'data');
if (how === 'readFileSync') fs.writeFileSync(file, Buffer.alloc(64 << 20, 1));
const data = Buffer.alloc(how === 'writeSync' ? 16 << 20 : 1, 1);
const memory = fs.openSync('/dev/shm/' + path.basename(scratch), 'w+');
fs.unlinkSync('/dev/shm/' + path.basename(scratch));
const polls = [];

// Asking for the process's CPU time makes the kernel bring that of this thread up to date. The last is how long it took to read them all.
function now() {
  for (;;) {
    const wall = process.hrtime.bigint();
    process.cpuUsage();
    const words = fs.readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ');
    const blocks = /^voluntary_ctxt_switches:\s*(\d+)/m.exec(fs.readFileSync('/proc/thread-self/status', 'utf8'))[1];
    const took = process.hrtime.bigint() - wall;
    if (took < 150000n) return [wall, words[0], words[1], blocks, took].map(BigInt);
  }
}

function compute(ms) {
  const end = Date.now() + ms;
  let sum = 0;
  while (Date.now() < end) for (let i = 0; i < 1000; i++) sum += Math.sqrt(i);
  return sum;
}

const ways = {
  readFileSync: () => {
    fs.readFileSync(file);
    collect(); // to give 64 MB back takes milliseconds: here, not at some moment between two callbacks
  },
  execFileSync: () => child.execFileSync('/bin/sleep', ['0.05']),
  pbkdf2Sync: () => crypto.pbkdf2Sync('secret', 'salt', 30000, 64, 'sha512'),
  atomicsWait: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30),
  compute: () => compute(40),
  writeSync: () => {
    for (let i = 0; i < 4; i++) fs.writeSync(memory, data, 0, data.length, 0);
  },
};

let ticks = 6;
function tick() {
  const begin = now();
  ways[how]();
  const end = now();
  const [wall, cpu, delay, blocks] = [0, 1, 2, 3].map((i) => Number(end[i] - begin[i]));
  const left = Math.max(0, wall - cpu - delay), off = blocks ? left : 0, waits = how === 'atomicsWait';
  // A collection of garbage, which large buffers bring about, waits for its helpers: the script knows of none.
  polls.push({name: how, tid: process.pid, open: 0, unmeasured: 0, begin: Number(begin[0]), end: Number(end[0]), on_cpu: cpu,
    blocked: waits ? 0 : off, waiting: waits ? off : 0, preempted: delay, either: how === 'readFileSync' ? 1 : 0,
    unsure: left - off + Number(begin[4] + end[4])});
  if (--ticks) return setTimeout(tick, 5);
  setTimeout(() => {
    fs.rmSync(scratch, {recursive: true});
    console.log(JSON.stringify({truth: 1, outside: 1000000, polls: polls.slice(1)})); // the first is also that in which the script was read
  }, 5);
}
setTimeout(tick, 50);
