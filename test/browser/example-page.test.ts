/** examples/browser.html runs on a port of its own, as another site that the gateway lets in. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { heard, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { browserHearing, status } from './browser.ts';

const PAGE = readFileSync(new URL('../../examples/browser.html', import.meta.url));
const KEY = 'a-key-of-the-examples';
const browser = await browserHearing(toneWav(5));
const site = await listening(
  createServer((_req, res) => res.setHeader('Content-Type', 'text/html').end(PAGE)),
);
after(() => site[Symbol.asyncDispose]());

async function withPage(
  script: Script,
  use: (page: Page, gateway: Awaited<ReturnType<typeof startGateway>>) => Promise<void>,
): Promise<void> {
  const origin = site.base;
  await using gateway = await startGateway({
    ...script,
    // Chromium records webm, which ffmpeg decodes.
    env: { SVC_API_KEY: KEY, SVC_CORS_ORIGINS: origin, PATH: process.env.PATH ?? '' },
  });
  const context = await browser.newContext({ permissions: ['microphone'] });
  context.setDefaultTimeout(15_000);
  try {
    const page = await context.newPage();
    const wrong: Error[] = [];
    page.on('pageerror', (error) => wrong.push(error));
    await page.goto(origin);
    await page.getByLabel('Gateway').fill(gateway.base);
    await page.getByLabel('Key').fill(KEY);
    await use(page, gateway);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

const choose = (page: Page) =>
  page
    .getByLabel('or a file')
    .setInputFiles({ name: 'speech.wav', mimeType: 'audio/wav', buffer: toneWav(1) });

test('the text of a file is shown', () =>
  withPage({ transcribe: async () => heard(' Good morning.') }, async (page) => {
    await choose(page);
    await status(page, 'Done');
    assert.equal(await page.locator('#text').innerText(), 'Good morning.');
  }));

test('the text of the microphone is shown, and the microphone can be used again', () =>
  withPage({}, async (page, gateway) => {
    const text = page.locator('#text');
    for (const served of [1, 2]) {
      await page.getByRole('button', { name: 'Record' }).click();
      const stop = page.getByRole('button', { name: 'Stop' });
      await stop.waitFor();
      await sleep(500); // it records for this long
      await stop.click();
      await until(
        'it was heard',
        () => gateway.exchanges.filter(({ category }) => category === 'asr').length === served,
        15_000,
      );
      await text.filter({ hasText: 'Hello there.' }).waitFor();
    }
  }));

test('a busy gateway is waited for', () =>
  withPage({}, async (page, gateway) => {
    const hold = gateway.app.slot.take('llm', 'somebody');
    await choose(page);
    await status(page, 'The gateway is busy (llm); trying again in 5 s');
    hold[Symbol.dispose]();
    await status(page, 'Done');
  }));

test('refusals and failures in the middle of a stream are shown', () =>
  withPage({ transcribe: () => Promise.reject(new Error('out of words')) }, async (page) => {
    await choose(page);
    await status(page, 'The gateway failed');
    await page.getByLabel('Key').fill('wrong');
    await choose(page);
    await status(page, 'invalid_api_key');
  }));
