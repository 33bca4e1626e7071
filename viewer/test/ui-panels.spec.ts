// SPDX-License-Identifier: Apache-2.0
// What belongs together: a task with its polls, a request with all that carries its span, polls of one length, callers
// and callees of one function. Held against weft query over a kept segment.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { view } from './harness.ts';
import { build } from './machine.ts';
import { GOLDEN, query, ready, state } from './ui-oracle.ts';

test('from a poll to its task and its request, and to their flame graphs', async (t) => {
  const [poll] = query(
    GOLDEN,
    `select p.id, p.task, p.span, w.duration_ns as waited, t.end_ns as ended from poll p join wait w on w.poll_id = p.id
     join task t on t.task = p.task where w.name = 'cache_lock' order by p.duration_ns desc limit 1`,
  );
  assert.ok(poll.span && poll.ended, 'a request that waited for the lock and ended');
  const { page } = await view(t, GOLDEN, { hash: `#item=task/0/${poll.task}` });
  await ready(page);
  const task = page.getByTestId('task-panel');
  await task.getByRole('heading', { name: `Task ${poll.task}` }).waitFor();
  await task.getByText('It has ended.').waitFor();
  const [{ n }] = query(GOLDEN, `select count(*) as n from poll where task = ${poll.task}`);
  assert.equal(await task.locator('table.plain tbody tr').count(), Number(n));
  await task.locator('table.plain button.link').last().click();
  await page.getByTestId('poll-panel').getByRole('button', { name: String(poll.span) }).click();
  const span = page.getByTestId('span-panel');
  await span.getByRole('heading', { name: 'LOCK' }).waitFor();
  await span.getByText('cache_lock').waitFor();
  await span.getByText('held by janitor').waitFor();
  await span.getByRole('button', { name: 'Flame graph of this request' }).click();
  await page.getByTestId('chips').getByText(`span ${poll.span}`).waitFor();
  await page.getByRole('button', { name: 'waits', exact: true }).click();
  await page.waitForFunction(
    (ns) => document.querySelector('[data-testid=flame-sum]')?.getAttribute('data-ns') === String(ns),
    poll.waited,
  );
});

test('a range of the histogram has the polls of that length', async (t) => {
  const { page } = await view(t, GOLDEN);
  await ready(page);
  await page.getByRole('tab', { name: 'Histogram' }).click();
  const chart = page.getByRole('img', { name: /^Histogram of/ });
  const box = (await chart.boundingBox())!;
  await page.mouse.move(box.x + box.width - 3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 3 });
  await page.mouse.up();
  const chosen = await page.getByText(/Chosen: .* to/).innerText();
  assert.match(chosen, /Chosen: [\d.]+ ms/);
  const rows = page.getByTestId('grid-polls').locator('tbody tr');
  await page.getByRole('button', { name: /^Only polls from/ }).click();
  const leastNs = ((await state(page)).selection as { minPollNs: number }).minPollNs;
  const [{ n }] = query(GOLDEN, `select count(*) as n from poll where duration_ns >= ${leastNs}`);
  await page.waitForFunction(
    (want) => document.querySelectorAll('[data-testid=grid-polls] tbody tr').length === want,
    Number(n),
  );
  await rows.first().click();
  await page.getByTestId('poll-panel').getByRole('heading', { name: 'handle_upload' }).waitFor();
});

test('callers and callees of a function, its source lines, and the way back', async (t) => {
  const { page } = await view(t, GOLDEN);
  await ready(page);
  await page.locator('.flame-table').getByText('hash_bytes', { exact: true }).click();
  await page.locator('.flame-table').getByText('Lines of').waitFor();
  await page.getByRole('button', { name: 'Sandwich' }).click();
  await page.getByRole('img', { name: /^Callers of hash_bytes/ }).waitFor();
  await page.getByRole('img', { name: /^Callees of hash_bytes/ }).waitFor();
  await page.getByRole('button', { name: '← Back' }).click();
  await page.getByRole('img', { name: /^Flame graph/ }).waitFor();
});

test('a label of a poll selects all that carries it', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-label-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const trace = path.join(directory, 'trace');
  execFileSync(path.join(build, 'test/view_writer'), [trace, '0.8'], { stdio: 'ignore' });
  const { page } = await view(t, trace);
  await ready(page);
  await page.keyboard.press('n');
  const panel = page.getByTestId('poll-panel');
  await panel.getByRole('button', { name: 'tenant=<b>acme</b>' }).waitFor();
  await panel.getByRole('button', { name: 'kind=job' }).click();
  await page.getByTestId('chips').getByText('kind=job').waitFor();
  const sql = `select coalesce(sum(s.weight_ns), 0) as ns from sample s join poll p on s.poll_id = p.id
    where ',' || p.labels || ',' like '%,kind=job,%'`;
  const [{ ns }] = query(trace, sql);
  assert.ok(Number(ns) > 0);
  await page.locator(`[data-testid=flame-sum][data-ns="${ns}"]`).waitFor();
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('label:kind%3Djob'));
});
