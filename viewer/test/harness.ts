// SPDX-License-Identifier: Apache-2.0
// A real weft view in a real browser, for specs:
//
//     test('...', async (t) => {
//       const { page } = await view(t, demoTrace());
//
// Everything is closed when the test ends. Errors of the page, and what its policy refused, fail the test.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { weft, weftPath } from './machine.ts';

/** The trace of `make demo`, which the script that runs the specs has recorded. */
export function demoTrace(): string {
  const directory = process.env.WEFT_TRACE ?? 'build/demo/trace';
  assert.ok(fs.existsSync(directory), `${directory} is not there: run make demo, or set WEFT_TRACE`);
  return path.resolve(directory);
}

function chromiumPath(): string {
  const found = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
    (one) => one && fs.existsSync(one),
  );
  assert.ok(found, 'no chromium: run tools/bootstrap check');
  return found;
}

let browser: Promise<Browser> | null = null;
after(async () => {
  if (browser) await (await browser).close();
});

/** One for all tests of a file. Root has no sandbox for it. */
function theBrowser(): Promise<Browser> {
  if (!browser) {
    const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    browser = chromium.launch({ executablePath: chromiumPath(), args });
  }
  return browser;
}

export interface Served {
  url: string;
  child: ChildProcess;
}

/** Starts weft view of these paths. */
export async function serve(t: TestContext, ...paths: string[]): Promise<Served> {
  const child = spawn(weftPath, ['view', '--no-open', ...paths], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    if (child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout!.on('data', (some: Buffer) => {
      text += some.toString();
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
    });
    child.once('exit', (code) => reject(new Error(`weft view ended with status ${code}`)));
  });
  return { url, child };
}

export interface ViewOptions {
  html?: boolean; // as one file, from disk
  dark?: boolean;
  hash?: string; // of the URL
  width?: number;
  height?: number;
}
export interface Viewed {
  page: Page;
  url: string;
  errors: string[]; // what went wrong in the page; empty at the end, or the test fails
}

/** The page of a trace, not yet loaded to the end. */
export async function view(t: TestContext, trace: string | string[], options: ViewOptions = {}): Promise<Viewed> {
  let url: string;
  if (options.html) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-view-'));
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
    weft('.', 'view', '--html', path.join(directory, 'trace.html'), ...[trace].flat());
    url = pathToFileURL(path.join(directory, 'trace.html')).href;
  } else {
    url = (await serve(t, ...[trace].flat())).url;
  }
  const context = await (await theBrowser()).newContext({
    viewport: { width: options.width ?? 1400, height: options.height ?? 900 },
    colorScheme: options.dark ? 'dark' : 'light',
  });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    // Chromium asks for an icon below the root, where nothing is served without the token.
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) errors.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(errors, [], 'errors of the page');
  });
  await page.goto(url + (options.hash ?? ''));
  return { page, url, errors };
}
