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

/** A program without a runtime: one process that computes, and one that sleeps. */
const BURN = 'sleep 0.6 & i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; wait';

test('processes that only compute: threads, samples, and no word about polls', async (t) => {
  const trace = path.join(scratch(t), 'trace');
  execFileSync(path.join(build, 'weft'), ['run', '--start-after', '0', '-o', trace, '--', 'sh', '-c', BURN], {
    stdio: 'ignore',
  });
  const { page } = await view(t, trace);
  await ready(page);
  const findings = page.getByTestId('findings');
  await findings.getByText('No thread was a worker of a runtime').waitFor();
  await findings.getByText('preempted').first().waitFor();
  assert.equal(await findings.getByText('next long poll').count(), 0);
  // A group says whose it is in the first letters, and a thread whose name nobody knows has its number.
  const lanes = await page.evaluate(() => (window as unknown as Shown).__weft.trace.info.lanes);
  const program = /^(\S+) \(\d+\) · threads$/;
  assert.ok(lanes.length >= 2 && lanes.every((lane) => program.test(lane.group)), JSON.stringify(lanes));
  for (const { tid, name } of lanes) {
    const sql = `select distinct thread as name from (select tid, thread from offcpu union all
      select tid, thread from sample union all select tid, thread from wait) where tid = ${tid} and thread is not null`;
    const names = query('.', [trace], sql).map((row) => row.name); // several, where it called itself something else
    assert.ok(names.length ? names.includes(name) : name === `thread ${tid}`, `${name}: ${names.join()}`);
  }
  const ns = sum(trace, 'weight_ns', 'sample');
  assert.ok(ns > 2e7, `${ns} ns of samples`);
  await page.locator(`[data-testid=flame-sum][data-ns="${ns}"]`).waitFor();
});

interface Shown {
  __weft: { trace: { info: { lanes: { tid: number; name: string; group: string }[] } } };
}
