// SPDX-License-Identifier: Apache-2.0
// Frames while panning and zooming: node viewer/bench/frames.mjs BUILD DIR [FRAMES]. One line of JSON: the time from
// frame to frame of the timeline (p50, p95, ms), of it the time that its script takes, and beside it the same of an
// empty canvas of the same size, cleared in each frame. Chromium without a GPU: every pixel is drawn by the CPU.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';

const [build, directory, n = '600'] = process.argv.slice(2);
const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((one) => fs.existsSync(one));
const args = ['--disable-gpu', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])];

function serve() {
  const child = spawn(path.join(build, 'weft'), ['view', '--no-open', directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`weft view ended with ${code}`)));
    child.stdout.once('data', (text) => resolve({ child, url: text.toString().split('\n')[0] }));
  });
}

function quantile(times, share) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** In the page: moves the view in each frame as a hand would: in, along, out, along; times from frame to frame. */
async function drive(frames) {
  const app = window.__weft;
  const timeline = window.__weftTimeline;
  const { fromNs, toNs } = app.trace.info;
  const whole = toNs - fromNs;
  const times = [];
  timeline.frames.length = 0;
  let last = 0;
  for (let i = 0; i < frames; i++) {
    const turn = (i / frames) * 4 * Math.PI; // twice in to a thousandth and out
    const span = whole * Math.pow(1000, -(1 - Math.cos(turn)) / 2);
    const middle = fromNs + whole * (0.5 + 0.35 * Math.sin(turn * 1.7));
    app.view.set({ fromNs: middle - span / 2, toNs: middle + span / 2 });
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    if (last) times.push(now - last);
    last = now;
  }
  return { times, drawn: [...timeline.frames] };
}

/** In the page: the same with a canvas that is only cleared. */
async function empty(frames) {
  const like = window.__weftTimeline.lanes;
  const canvas = document.createElement('canvas');
  canvas.width = like.width;
  canvas.height = like.height;
  document.body.replaceChildren(canvas);
  const ctx = canvas.getContext('2d', { alpha: false });
  const times = [];
  let last = 0;
  for (let i = 0; i < frames; i++) {
    ctx.fillStyle = i % 2 ? '#fff' : '#fefefe';
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    if (last) times.push(now - last);
    last = now;
  }
  return times;
}

const { child, url } = await serve();
const browser = await chromium.launch({ executablePath, args });
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready === '1', null, { timeout: 300000 });
  // The flame graph of all events is made in the worker meanwhile: it is not what is measured.
  await page.waitForFunction(() => document.querySelector('[data-testid=flame-sum]')?.getAttribute('data-ns'), null, {
    timeout: 300000,
  });
  const frames = Number(n);
  const events = await page.evaluate(() => window.__weft.trace.info.events);
  await page.evaluate(drive, 60);
  const { times, drawn } = await page.evaluate(drive, frames);
  const bare = await page.evaluate(empty, frames);
  console.log(
    JSON.stringify({
      events,
      frames: times.length,
      p50_ms: quantile(times, 0.5),
      p95_ms: quantile(times, 0.95),
      script_p50_ms: quantile(drawn, 0.5),
      script_p95_ms: quantile(drawn, 0.95),
      empty_p50_ms: quantile(bare, 0.5),
      empty_p95_ms: quantile(bare, 0.95),
    }),
  );
} finally {
  await browser.close();
  child.removeAllListeners('exit');
  child.kill('SIGINT');
}
