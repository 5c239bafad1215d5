/**
 * The page of the API in a real browser. A reader who changes nothing, and only chooses a file where one is asked for,
 * gets an answer from every operation.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { startGateway } from '../http/harness.ts';
import { execute, executeEveryOperation, shown, toggle } from './api-page.ts';
import { violations } from './axe.ts';
import { launchBrowser, openPage } from './browser.ts';

let browser: Browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

test('Execute is answered on every operation with nothing but what it needs', (t) =>
  executeEveryOperation(t, browser, 'light'));

test('a form sends what was chosen and nothing else, and a list as several fields', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs`);
  const [transcription] = await shown(open.page);
  assert(transcription);
  const { block } = transcription;
  await toggle(block);
  await block.getByRole('combobox', { name: 'response_format' }).selectOption('verbose_json');
  await block.getByRole('listbox', { name: 'timestamp_granularities' }).selectOption(['word', 'segment']);
  assert.equal(await execute(block), '200');
  const command = await block.locator('.curl-command .microlight').innerText();
  assert.deepEqual([...command.matchAll(/-F '([^;']+)/g)].map(([, field]) => field).sort(), [
    'file=@clip.wav',
    'model=auto',
    'response_format=verbose_json',
    'timestamp_granularities=segment',
    'timestamp_granularities=word',
  ]);
  const { words, segments } = JSON.parse(
    await block.locator('.live-responses-table pre').first().innerText(),
  );
  assert(words.length > 0 && segments.length > 0);
});

test('the page of the API leads back to the other pages, and its address to an operation', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs#/chat/createChatCompletion`);
  const { page } = open;
  await page.locator('.opblock.is-open [data-path="/v1/chat/completions"]').waitFor();
  for (const [name, path] of [
    ['Playground', 'playground'],
    ['Dashboard', 'admin'],
  ] as const)
    assert.equal(await page.getByRole('link', { name, exact: true }).getAttribute('href'), path);
});

test('axe-core finds no violation on the page of the API, and it does not scroll sideways, in both themes and on a phone', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs`);
  const { page } = open;
  const operations = await shown(page);
  for (const { name, block } of operations)
    if (/transcriptions|completions|\/asr|captures\/\{requestId\}$/.test(name)) await toggle(block);
  assert(operations[0]);
  assert.equal(await execute(operations[0].block), '200');
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const scene = `${colorScheme}, ${width} px`;
      assert.deepEqual(await violations(page), [], scene);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, scene);
    }
  }
});
