// SPDX-License-Identifier: Apache-2.0
// Traces that are not whole: what there is is shown, and what is missing is said.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, { type TestContext } from 'node:test';
import { view } from './harness.ts';
import { build, query, weft } from './machine.ts';
import { GOLDEN, ready } from './ui-oracle.ts';

function scratch(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-missing-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function sum(trace: string, what: string, table: string): number {
  return Number(query('.', [trace], `select coalesce(sum(${what}), 0) as n from ${table}`)[0].n);
}

test('of a trace that is cut in the middle its first part is shown, and that it is cut', async (t) => {
  const cut = path.join(scratch(t), 'cut.weft');
  const whole = fs.readFileSync(GOLDEN);
  fs.writeFileSync(cut, whole.subarray(0, Math.floor(whole.length / 2)));
  const events = sum(cut, 'events', 'recording');
  assert.ok(events > 0 && events < sum(GOLDEN, 'events', 'recording'), `${events} events`);
  for (const html of [false, true]) {
    const { page } = await view(t, cut, { html });
    await ready(page);
    await page.getByText(`${events.toLocaleString('en-US')} events`).first().waitFor();
    await page.getByTestId('findings').getByText(/cut\.weft: .*(cut|end|sealed|damaged)/i).waitFor();
    await page.keyboard.press('n');
    await page.getByTestId('poll-panel').waitFor();
  }
});

test('of a killed process all that weft recover saved is shown, and that it was killed', async (t) => {
  const trace = path.join(scratch(t), 'trace');
  const child = spawn(path.join(build, 'test/view_writer'), [trace, '60'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  execFileSync(path.join(build, 'weft'), ['recover', trace]);
  const events = sum(trace, 'events', 'recording');
  assert.ok(events > 0);
  const { page } = await view(t, trace);
  await ready(page);
  await page.getByText(`${events.toLocaleString('en-US')} events`).first().waitFor();
  await page.getByTestId('findings').getByText(/recover/i).first().waitFor();
  await page.keyboard.press('n');
  await page.getByTestId('poll-panel').waitFor();
  assert.match(weft('.', 'report', '--json', trace), /recover/);
  await page.getByTestId('program').getByText(`view_writer (${child.pid})`).waitFor();
});
