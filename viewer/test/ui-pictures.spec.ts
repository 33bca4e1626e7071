// SPDX-License-Identifier: Apache-2.0
// Pictures of the demo's trace, zoomed out and in, light and dark: WEFT_PICTURES=docs/img writes those of the README.
// They are looked at by people; the test holds that each theme is drawn, and that they differ from an empty page.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { inflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { demoTrace, view } from './harness.ts';
import { place, ready } from './ui-oracle.ts';

const OUT = process.env.WEFT_PICTURES ?? fs.mkdtempSync(path.join(os.tmpdir(), 'weft-pictures-'));
test.after(() => {
  if (!process.env.WEFT_PICTURES) fs.rmSync(OUT, { recursive: true });
});

/** How many different bytes the picture's rows have: an empty page has few. */
function variety(png: Buffer): number {
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length;) {
    const size = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + size));
    at += size + 12;
  }
  return new Set(inflateSync(Buffer.concat(parts))).size;
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const png = await page.screenshot({ path: path.join(OUT, name) });
  assert.ok(variety(png) > 60, `${name} shows something`);
}

/** The brightness of the lanes' background. */
function background(page: Page): Promise<number> {
  return page.evaluate(() => {
    const canvas = document.querySelector('.tl-lanes') as HTMLCanvasElement;
    const pixel = canvas.getContext('2d')?.getImageData(canvas.width - 3, canvas.height - 3, 1, 1).data ?? [0, 0, 0];
    return (pixel[0] + pixel[1] + pixel[2]) / 3;
  });
}

for (const dark of [false, true]) {
  const theme = dark ? 'dark' : 'light';
  test(`pictures, ${theme}`, async (t) => {
    const { page } = await view(t, demoTrace(), { dark, width: 1440, height: 860 });
    await ready(page);
    await page.waitForFunction(() => document.querySelector('[data-testid=flame-sum]')?.getAttribute('data-ns'));
    assert.equal((await background(page)) < 128, dark);
    await shoot(page, `viewer-${theme}.png`);
    await page.getByTestId('finding').filter({ hasText: 'cache_lock' }).first().click();
    await page.getByTestId('holder').first().waitFor();
    await place(page);
    await page.keyboard.press('f');
    await page.keyboard.press('f');
    await page.getByRole('tab', { name: 'Polls' }).click();
    await page.getByTestId('grid-polls').waitFor();
    await shoot(page, `viewer-cause-${theme}.png`);
  });
}
