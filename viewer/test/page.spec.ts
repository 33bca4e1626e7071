// SPDX-License-Identifier: Apache-2.0
// The engine in a browser: served, from disk, while a recording goes on, with names that mean harm.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, { type TestContext } from 'node:test';
import { demoTrace, serve, view } from './harness.ts';
import { build, query } from './machine.ts';

function scratch(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-page-'));
  fs.chmodSync(directory, 0o700);
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Records with names that mean harm; ends after the seconds. */
async function record(t: TestContext, directory: string, seconds: number): Promise<{ ended: Promise<void> }> {
  const child = spawn(path.join(build, 'test/view_writer'), [directory, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => void child.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await new Promise((resolve) => child.stdout!.once('data', resolve));
  return { ended };
}

function events(trace: string): number {
  return Number(query('.', [trace], 'select sum(events) as n from recording')[0].n);
}

for (const html of [false, true]) {
  test(`the demo's trace is shown, ${html ? 'as one file from disk' : 'served'}`, async (t) => {
    const { page } = await view(t, demoTrace(), { html });
    const n = events(demoTrace()).toLocaleString('en-US');
    await page.getByText(`${n} events`).first().waitFor();
    await page.getByText('handle_upload').first().waitFor();
    await page.getByText('demo/1').first().waitFor();
  });
}

test('names are text, whatever is in them', async (t) => {
  const directory = scratch(t);
  await (await record(t, directory, 0.5)).ended;
  for (const html of [false, true]) {
    const { page } = await view(t, directory, { html });
    await page.getByText('<b>job</b>').first().waitFor();
    await page.waitForTimeout(300);
    assert.notEqual(await page.title(), 'owned');
    assert.equal(await page.locator('img[src=x]').count(), 0);
  }
});

test('a recording that goes on is followed', async (t) => {
  const directory = scratch(t);
  await record(t, directory, 15);
  const deadline = Date.now() + 10000;
  while (!fs.readdirSync(directory).some((name) => name.includes('.weft')) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { page } = await view(t, directory);
  const count = async (): Promise<number> => {
    const text = await page.getByText(/[\d,]+ events/).first().innerText();
    return Number(/([\d,]+) events/.exec(text)![1].replaceAll(',', ''));
  };
  await page.getByText(/[\d,]+ events/).first().waitFor();
  const before = await count();
  const until = Date.now() + 12000;
  while ((await count()) <= before && Date.now() < until) await page.waitForTimeout(200);
  assert.ok((await count()) > before, 'the page has grown');
});

test('without its token the address shows nothing', async (t) => {
  const { url } = await serve(t, demoTrace());
  const answer = await fetch(new URL('/', url));
  assert.equal(answer.status, 403);
  assert.doesNotMatch(await answer.text(), /script/);
});
