// SPDX-License-Identifier: Apache-2.0
// SQL in the page, and two recordings that are compared. Over kept segments, so that every run is the same.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { view } from './harness.ts';
import { GOLDEN, SOURCE, flameSum, query, ready, state } from './ui-oracle.ts';

test('SQL is answered as weft query does, and cells lead to the timeline', async (t) => {
  const { page } = await view(t, GOLDEN, { hash: '#panel=sql' });
  await ready(page);
  const box = page.getByRole('textbox', { name: 'SQL' });
  const cells = page.locator('[data-testid=grid-rows] tbody td');
  const sql = 'select id, location, begin_ns, duration_ns from poll order by duration_ns desc limit 1';
  await box.fill(sql);
  await box.press('Control+Enter');
  await cells.first().waitFor();
  const [worst] = query(GOLDEN, sql);
  assert.deepEqual(await cells.allInnerTexts(), Object.values(worst).map(String));
  await cells.nth(2).getByRole('button').click();
  const seen = await state(page);
  const [begin, length] = [Number(worst.begin_ns), Number(worst.duration_ns)];
  assert.ok(seen.fromNs <= begin && seen.toNs >= begin + length && seen.toNs - seen.fromNs < 3 * length);
  await cells.nth(0).getByRole('button').click();
  await page.getByTestId('poll-panel').getByRole('heading', { name: String(worst.location) }).waitFor();

  await box.fill('select absent from poll');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('no such column: absent').waitFor();
  assert.equal(await cells.count(), 0);
  await page.getByRole('combobox', { name: 'Saved questions' }).selectOption('cost');
  await cells.first().waitFor();
  assert.match(await box.inputValue(), /from cost group by what/);
});

test('one file says why it has no SQL, and which command has', async (t) => {
  const sql = `select count(*) from poll where location = 'x'`;
  const { page } = await view(t, GOLDEN, { html: true, hash: `#panel=sql&sql=${encodeURIComponent(sql)}` });
  await ready(page);
  await page.getByText('without a command behind it').waitFor();
  const command = await page.getByTestId('sql-command').innerText();
  assert.equal(command, `weft query DIR 'select count(*) from poll where location = '\\''x'\\'''`);
  assert.equal(await page.getByRole('button', { name: 'Run', exact: true }).count(), 0);
});

interface Shown {
  __weft: {
    view: { get(): { fromNs: number; toNs: number } };
    loaded: { get(): { info: { recordings: { shiftNs: number; spanNs: number }[] } } };
  };
}

test('two recordings: each alone, and one compared with the other', async (t) => {
  const paths = ['server', 'locks'].map((name) => path.join(SOURCE, 'test/golden', name, '0.weft'));
  const { page } = await view(t, paths);
  await ready(page);
  const choice = page.getByRole('combobox', { name: 'Recording' });
  const names = await choice.locator('option').allInnerTexts();
  assert.equal(names.length, 3);
  const sums = paths.map((one) => Number(query(one, 'select sum(weight_ns) as ns from sample')[0].ns));
  await flameSum(page, sums[0] + sums[1]);
  const of: number[] = [];
  for (const i of [0, 1]) {
    await choice.selectOption(String(i));
    await page.waitForFunction(
      (all) => all.includes(document.querySelector('[data-testid=flame-sum]')?.getAttribute('data-ns') ?? ''),
      sums.map(String),
    );
    of.push(Number(await page.getByTestId('flame-sum').getAttribute('data-ns')));
    // Its time is shown.
    const { fromNs, toNs, first } = await page.evaluate(() => {
      const { view, loaded } = (window as unknown as Shown).__weft;
      return { ...view.get(), first: loaded.get().info.recordings };
    });
    assert.deepEqual([fromNs, toNs - fromNs], [first[i].shiftNs, first[i].spanNs]);
    if (i === 0) await page.getByRole('button', { name: 'Compare from here' }).click();
  }
  await flameSum(page, sums[0] + sums[1] - of[0]);
  await page.getByText(/compared with/).waitFor();
  await page.getByText('End comparison').click();
  await page.getByTestId('chips').getByText(names[2]).waitFor();
});
