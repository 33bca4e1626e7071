// SPDX-License-Identifier: Apache-2.0
// URL, keyboard, hostile names, and traces that lack things. Over kept segments, so that every run is the same.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { view } from './harness.ts';
import { GOLDEN, SOURCE, pointOf, query, ready, state } from './ui-oracle.ts';

test('a view opens again from its URL as it was', async (t) => {
  const { page, url } = await view(t, GOLDEN);
  await ready(page);
  await page.getByTestId('finding').nth(1).click();
  await page.getByTestId('poll-panel').waitFor();
  await page.keyboard.press('m');
  await page.getByRole('tab', { name: 'Locks' }).click();
  await page.getByRole('button', { name: 'by part' }).click();
  await page.getByRole('button', { name: 'pin demo/1 to the top' }).click({ force: true });
  const [thread] = query(GOLDEN, "select thread_id as id from poll where worker = 'demo/0' limit 1");
  const at = await pointOf(page, thread.id as number, 'context', (await state(page)).fromNs);
  await page.mouse.move(at.x + 80, at.y);
  await page.mouse.down();
  await page.mouse.move(at.x + 300, at.y + 1, { steps: 3 });
  await page.mouse.up();
  const before = await state(page);
  assert.deepEqual(before.selection.threadIds, [thread.id]);
  await page.waitForFunction(
    (to) => location.hash.includes(to) && /pin=/.test(location.hash),
    String(before.selection.toNs),
  );
  const link = page.url();
  assert.ok(link.startsWith(url));
  const again = await page.context().newPage();
  await again.goto(link);
  await ready(again);
  const after = await state(again);
  assert.deepEqual({ ...after, fromNs: 0, toNs: 0 }, { ...before, fromNs: 0, toNs: 0 });
  assert.ok(Math.abs(after.fromNs - before.fromNs) <= 1 && Math.abs(after.toNs - before.toNs) <= 1);
  await again.getByTestId('poll-panel').getByRole('heading', { name: 'handle_report' }).waitFor();
  await again.getByText('No wait for a lock in the selection was recorded one by one.').waitFor();
});

test('everything is reached by keys alone', async (t) => {
  const { page } = await view(t, GOLDEN);
  await ready(page);
  const panel = page.getByTestId('poll-panel');
  await page.keyboard.press('n');
  await panel.waitFor();
  const first = (await state(page)).item;
  await page.keyboard.press('n');
  await page.waitForFunction(
    (was) => JSON.stringify((window as never as W).__weft.view.get().item) !== was,
    JSON.stringify(first),
  );
  await page.keyboard.press('p');
  await page.waitForFunction(
    (was) => JSON.stringify((window as never as W).__weft.view.get().item) === was,
    JSON.stringify(first),
  );
  await page.waitForFunction(() => (window as never as W).__weft.loaded.get().place);
  await page.keyboard.press('0');
  await page.keyboard.press('f');
  const centred = await state(page);
  await page.keyboard.press('f');
  const fitted = await state(page);
  assert.ok(fitted.toNs - fitted.fromNs < (centred.toNs - centred.fromNs) / 2, 'f centres, f again fits');
  await page.keyboard.press('d');
  assert.ok((await state(page)).fromNs > fitted.fromNs);
  await page.keyboard.press('w');
  assert.ok((await state(page)).toNs - (await state(page)).fromNs < fitted.toNs - fitted.fromNs);
  await page.keyboard.press('m');
  assert.equal((await state(page)).marks.length, 1);

  await page.keyboard.press('/');
  await page.keyboard.type('cache_lock');
  await page.waitForFunction(() => /^\d+$/.test(document.querySelector('[data-testid=matches]')?.textContent ?? ''));
  await page.keyboard.press('Enter');
  await page.getByTestId('row-panel').getByRole('heading', { name: 'cache_lock' }).waitFor();
  const one = (await state(page)).item;
  await page.keyboard.press('Shift+Enter');
  await page.waitForFunction(
    (was) => JSON.stringify((window as never as W).__weft.view.get().item) !== was,
    JSON.stringify(one),
  );
  await page.keyboard.press('Escape'); // out of the box and of the search
  await page.keyboard.press('Escape'); // the item
  await page.getByTestId('findings').waitFor();

  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Next long poll').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const focused = await page.evaluate(async () => {
    const init = { key: 'P', code: 'KeyP', ctrlKey: true, shiftKey: true, bubbles: true };
    document.body.dispatchEvent(new KeyboardEvent('keydown', init));
    await Promise.resolve().then(() => {}); // what is queued runs before a next key could come
    return document.activeElement?.getAttribute('aria-label');
  });
  assert.equal(focused, 'What to do', 'keys that follow at once are not lost');
  await page.keyboard.type('descr');
  await page.keyboard.press('Enter');
  await page.getByTestId('grid-descriptors').getByText('read').first().waitFor();
  const row = page.getByTestId('grid-descriptors').locator('tbody tr').first();
  await row.focus();
  await page.keyboard.press('Enter');
  await page.getByTestId('row-panel').getByRole('heading', { name: 'read' }).waitFor();
});

interface W {
  __weft: { view: { get(): { item: unknown } }; loaded: { get(): { place: unknown } } };
}

/** A real recording of a program whose names are markup. */
function hostile(dir: string): string {
  const build = process.env.WEFT_BUILD ?? 'build/release';
  execFileSync(path.join(build, 'test/view_writer'), [path.join(dir, 'trace'), '0.3']);
  return path.join(dir, 'trace');
}

test('names in a trace are text, whatever they say', async (t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-hostile-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const { page } = await view(t, hostile(dir));
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await ready(page);
  const name = '<b>job</b>';
  await page.keyboard.press('n');
  const panel = page.getByTestId('poll-panel');
  await panel.getByRole('heading', { name }).waitFor();
  assert.match(await panel.getByRole('heading').first().innerText(), /^<b>job<\/b>&amp;<img src=x onerror=/);
  await panel.getByText('"><svg onload=').first().waitFor();
  for (const tab of ['Polls', 'Locations', 'Histogram', 'Locks', 'Waits', 'Threads', 'Tables']) {
    await page.getByRole('tab', { name: tab }).click();
    await page.getByRole('tabpanel', { name: tab }).waitFor();
  }
  await page.getByRole('tab', { name: 'Locations' }).click();
  await page.getByTestId('grid-locations').getByText(name).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('<img');
  await page.waitForFunction(() => /^\d+$/.test(document.querySelector('[data-testid=matches]')?.textContent ?? ''));
  const found = await page.evaluate(() => ({
    title: document.title,
    images: document.querySelectorAll('#root img, #root script, #root iframe, #root i:not(.dot)').length,
    bold: [...document.querySelectorAll('#root b')].filter((b) => b.textContent === 'job').length,
    handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => /^on/.test(a.name)))
      .length,
  }));
  assert.deepEqual(found, { title: 'weft', images: 0, bold: 0, handlers: 0 });
  assert.deepEqual(dialogs, []);
});

test('a trace without workers shows its threads and says what is missing', async (t) => {
  const { page } = await view(t, path.join(SOURCE, 'test/golden/locks/0.weft'));
  await ready(page);
  await page.getByText('No thread was a worker of a runtime').waitFor();
  await page.getByTestId('finding').first().click();
  await page
    .getByTestId('row-panel')
    .getByText(/held by\s+rebuilder/)
    .waitFor();
  await page.getByRole('tab', { name: 'Polls' }).click();
  await page.getByText('No poll in the selection was recorded one by one.').waitFor();
});

test('turns of a loop that weft run saw are ticks, without a task', async (t) => {
  const { page } = await view(t, path.join(SOURCE, 'test/golden/loop/0.weft'));
  await ready(page);
  await page.keyboard.press('n');
  const panel = page.getByTestId('poll-panel');
  await panel.getByRole('heading', { name: 'Tick of the epoll_wait loop' }).waitFor();
  assert.equal(await panel.getByRole('button', { name: /^task/ }).count(), 0);
});
