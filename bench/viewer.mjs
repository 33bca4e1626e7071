// SPDX-License-Identifier: Apache-2.0
// Loads traces in Chromium, for bench/viewer.py: node bench/viewer.mjs BUILD DIR... One line of JSON for each DIR: how
// long until the first picture, how long until all of the trace is loaded, and how much memory the page's process took.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(new URL('../viewer/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const [build, ...directories] = process.argv.slice(2);
const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((one) => fs.existsSync(one));
const args = process.getuid() === 0 ? ['--no-sandbox'] : [];

function serve(directory) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(path.join(build, 'weft'), ['view', '--no-open', directory], { stdio });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`weft view ended with ${code}`)));
    child.stdout.once('data', (text) => resolve({ child, url: text.toString().split('\n')[0] }));
  });
}

/** Memory of the renderers that is theirs alone, in bytes. */
async function memory(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  let bytes = 0;
  for (const { type, id } of processInfo) {
    if (type !== 'renderer') continue;
    const text = fs.readFileSync(`/proc/${id}/status`, 'utf8');
    bytes += 1024 * Number(/^RssAnon:\s+(\d+)/m.exec(text)[1]);
  }
  return bytes;
}

/** CPU time of all of Chromium, in s. */
async function cpuTime(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** Until Chromium has started, which takes both CPUs for a second or two and says nothing about the page. */
async function rest(session) {
  for (let before = -1, i = 0; i < 40; i++) {
    const now = await cpuTime(session);
    if (now - before < 0.02) return;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** `rested`: Chromium has started before the page is opened. */
async function measure(directory, rested) {
  const { child, url } = await serve(directory);
  const browser = await chromium.launch({ executablePath: browserPath, args });
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    const browserSession = await browser.newBrowserCDPSession();
    await page.goto('about:blank');
    if (rested) await rest(browserSession);
    const before = await memory(browserSession);
    await page.goto(url);
    await page.waitForFunction(() => performance.getEntriesByName('weft-loaded').length > 0, null, { timeout: 300000 });
    const times = await page.evaluate(async () => {
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      const at = (name) => performance.getEntriesByName(name)[0].startTime;
      return { picture: performance.now(), loaded: at('weft-loaded'), opened: at('weft-open') };
    });
    await page.waitForFunction(() => performance.getEntriesByName('weft-whole').length > 0, null, { timeout: 300000 });
    const whole = await page.evaluate(() => performance.getEntriesByName('weft-whole')[0].startTime);
    await page.waitForFunction(() => window.__weft.loaded.get().info.complete, null, { timeout: 300000 });
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    await page.waitForTimeout(500);
    return { ...times, whole, bytes: (await memory(browserSession)) - before };
  } finally {
    await browser.close();
    child.kill('SIGINT');
  }
}

const rested = directories[0] === '--rested';
for (const directory of directories.slice(rested ? 1 : 0))
  console.log(JSON.stringify({ directory, ...(await measure(directory, rested)) }));
process.exit(0);
