// SPDX-License-Identifier: Apache-2.0
// From a slow poll to its cause, in the demo's trace: by the pointer, on a real page of weft view.
import assert from 'node:assert/strict';
import test from 'node:test';
import { demoTrace, view } from './harness.ts';
import { flameSum, place, pointOf, query, ready, report, state } from './ui-oracle.ts';

const TRACE = demoTrace();

test('the seeded poll of 50 ms is clicked on the timeline and its cause is hash_bytes', async (t) => {
  const [poll] = query(
    TRACE,
    `select id, thread_id, begin_ns, duration_ns from poll where location = 'handle_upload' and samples > 0
     order by duration_ns desc limit 1`,
  );
  assert.ok((poll.duration_ns as number) > 45e6, 'the demo has polls of 50 ms');
  const { page } = await view(t, TRACE);
  await ready(page);
  const middle = (poll.begin_ns as number) + (poll.duration_ns as number) / 2;
  const { x, y } = await pointOf(page, poll.thread_id as number, 'poll', middle);
  await page.mouse.click(x, y);
  const panel = page.getByTestId('poll-panel');
  await panel.getByRole('heading', { name: 'handle_upload' }).waitFor();
  await panel.getByText('on CPU in hash_bytes').first().waitFor();
  assert.match(await panel.innerText(), new RegExp(`poll\\s+${poll.id}\\b`));
});

test('the first page leads to the lock, its name and its holder', async (t) => {
  const { page } = await view(t, TRACE);
  await ready(page);
  await page.getByTestId('finding').filter({ hasText: 'cache_lock' }).first().click();
  const panel = page.getByTestId('poll-panel');
  await panel
    .getByText(/waiting for cache_lock, held by janitor/)
    .first()
    .waitFor();
  const holder = panel.getByTestId('holder').first();
  assert.match(await holder.innerText(), /cache_lock was held by janitor\(\d+\) for (19|2\d)\.\d ms/);
  const arrows = (await place(page)).arrows.filter((a) => a.kind === 'holder');
  const [thread] = query(TRACE, "select id from thread where name = 'janitor'");
  assert.deepEqual([...new Set(arrows.map((a) => a.fromThread))], [thread.id]);
  await holder.getByRole('button', { name: 'cache_lock' }).click();
  await page.getByTestId('row-panel').getByRole('heading', { name: 'cache_lock' }).waitFor();
  await page.getByTestId('row-panel').getByText('What the holder did').waitFor();
});

test('an arrow leads to the waker, and so does its link', async (t) => {
  const [poll] = query(
    TRACE,
    `select id, thread_id, begin_ns, wake_ns, waker_thread_id, waker_location, behind_poll_id from poll
     where waker_task is not null and behind_poll_id is not null order by wake_delay_ns desc limit 1`,
  );
  // Others may have waited longer, behind nothing: on a busy machine threads are preempted.
  const ranks = 'select id from poll where wake_delay_ns is not null order by wake_delay_ns desc limit 99';
  const { page } = await view(t, TRACE, { hash: '#panel=delays' });
  await ready(page);
  const rank = query(TRACE, ranks).findIndex((one) => one.id === poll.id);
  assert.ok(rank >= 0);
  await page.getByTestId('grid-delays').locator('tbody tr').nth(rank).click();
  const panel = page.getByTestId('poll-panel');
  await panel.getByTestId('behind').waitFor();
  const { arrows, fromNs } = await place(page);
  assert.equal(fromNs, poll.begin_ns);
  const wake = arrows.find((a) => a.kind === 'wake');
  assert.deepEqual(
    [wake?.fromThread, wake?.fromNs, wake?.toThread, wake?.toNs],
    [poll.waker_thread_id, poll.wake_ns, poll.thread_id, poll.begin_ns],
  );
  assert.ok(arrows.some((a) => a.kind === 'behind'));
  await panel.getByTestId('behind').getByRole('button').click();
  await page.waitForFunction(
    (id) =>
      new RegExp(`poll\\s*${id}(?!\\d)`).test(document.querySelector('[data-testid=poll-panel]')?.textContent ?? ''),
    poll.behind_poll_id,
  );
  const behind = query(TRACE, `select thread_id, begin_ns from poll where id = ${poll.behind_poll_id}`)[0];
  await page.waitForFunction(
    (begin) =>
      (window as never as { __weft: { loaded: { get(): { place: { fromNs: number } } } } }).__weft.loaded.get().place
        ?.fromNs === begin,
    behind.begin_ns,
  );
});

test('the flame graph of an area has the sum of weft report and weft query', async (t) => {
  const { page } = await view(t, TRACE);
  await ready(page);
  await flameSum(page, report(TRACE).cpu.cpu_ns);
  const head = await page.locator('.tl-head-canvas').boundingBox();
  assert.ok(head);
  const y = head.y + 55; // on the ruler: all lanes
  await page.mouse.move(head.x + head.width * 0.2, y);
  await page.mouse.down();
  await page.mouse.move(head.x + head.width * 0.6, y, { steps: 4 });
  await page.mouse.up();
  const { fromNs, toNs } = (await state(page)).selection;
  assert.ok(fromNs !== undefined && toNs !== undefined && toNs > fromNs);
  const seconds = (ns: number): string => (ns / 1e9).toFixed(9);
  const part = report(TRACE, '--from', seconds(fromNs), '--to', seconds(toNs));
  await flameSum(page, part.cpu.cpu_ns);
  const [sum] = query(
    TRACE,
    `select sum(weight_ns) as ns from sample where time_ns >= ${fromNs} and time_ns < ${toNs}`,
  );
  assert.equal(sum.ns, part.cpu.cpu_ns);
});

test('the flame graph of a location has the sum of weft report, and lists are its tables', async (t) => {
  const [location] = query(TRACE, "select id from location where name = 'handle_upload'");
  const { page } = await view(t, TRACE, { hash: `#sel=location:${location.id}` });
  await ready(page);
  await flameSum(page, report(TRACE, '--location', 'handle_upload').cpu.cpu_ns);
  await page.getByRole('button', { name: /Remove: handle_upload/ }).click();
  await page.getByRole('tab', { name: 'Locations' }).click();
  const rows = page.getByTestId('grid-locations').locator('tbody tr');
  const wanted = report(TRACE).locations;
  await page.waitForFunction(
    (n) => document.querySelectorAll('[data-testid=grid-locations] tbody tr').length === n,
    wanted.length,
  );
  for (const [i, one] of wanted.entries()) {
    const cells = await rows.nth(i).locator('td').allInnerTexts();
    assert.equal(cells[0], one.location);
    assert.equal(cells[2], one.polls.count.toLocaleString('en-US'));
  }
});
