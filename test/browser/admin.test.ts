/** The dashboard runs in a real browser: these tests say what a person sees of the gateway there and can do to it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Page, Response } from 'playwright-core';
import { GatewayError } from '../../src/errors.ts';
import { type Admin, exchange, liveUp, startAdmin } from '../http/admin-fixture.ts';
import { sideBySide } from '../side-by-side.ts';
import { until } from '../until.ts';
import { browserOfFile, openPage, press } from './browser.ts';

const browser = await browserOfFile();

async function dashboard(admin: Admin) {
  const open = await openPage(browser, `${admin.base}/admin`);
  await open.page.getByText('Inference slot').waitFor();
  await open.page.getByRole('switch').first().waitFor();
  return open;
}

/** The same under a clock that `poll` puts forward. */
async function clocked(admin: Admin) {
  const open = await dashboard(admin);
  await open.page.clock.install();
  await open.page.reload();
  await open.page.getByRole('switch').first().waitFor();
  return open;
}

/** Lets the page ask again for everything at once, as it does within 5 s, and draw this part. */
async function poll(page: Page, part: string) {
  const asked = page.waitForRequest((request) => request.url().endsWith(`/fragments/${part}`));
  await page.clock.fastForward(5500);
  const answer = await (await asked).response();
  await answer?.finished();
  await page.waitForTimeout(100);
}

const row = (page: Page, id: string) => page.locator('.models tbody tr').filter({ hasText: id }).first();
const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent.trim()');
// `waitForFunction` would read its text again in the page, which the page's policy forbids.
const drawn = (page: Page, chart: string) =>
  until(
    `the chart ${chart} is drawn`,
    () =>
      page.evaluate<boolean>(`(() => {
      const canvas = document.querySelector('#chart-${chart} canvas');
      if (canvas === null) return false;
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size > 4;
    })()`),
    30_000,
  );

/** The dashboard asks again every few seconds. */
sideBySide(() => {
  test('the dashboard says what to do before the first request', async () => {
    await using admin = await startAdmin();
    await using open = await dashboard(admin);
    const { page } = open;
    await page.getByText('No requests in the last three minutes.').waitFor();
    await page.getByText('Figures cover the last hour.').waitFor();
    await page.getByText('No requests yet. Try the playground.').waitFor();
    assert.equal(await page.getByText('No requests yet.').count(), 1, 'it is said once');
    assert.equal(await page.getByText('No data in the last hour.').count(), 2);
    await page.getByText('Nothing is running.').waitFor();
    admin.metrics.record(exchange());
    await page.locator('.requests').getByText('aaaabbbbccccdddd').waitFor();
  });

  test('the charts draw, and the page is light', async () => {
    await using admin = await startAdmin();
    liveUp(admin);
    const context = await browser.newContext();
    const page = await context.newPage();
    // The page asks again for some of it every few seconds, which is none of its weight.
    const responses = new Map<string, Response>();
    page.on('response', (response) => {
      const path = new URL(response.url()).pathname;
      if (!responses.has(path)) responses.set(path, response);
    });
    await page.goto(`${admin.base}/admin`);
    for (const chart of ['rate', 'latency', 'rtf']) await drawn(page, chart);
    await page.locator('.requests').waitFor();
    const size = async ([path, response]: [string, Response]): Promise<[string, number]> => {
      await response.finished();
      const { responseBodySize, responseHeadersSize } = await response.request().sizes();
      return [path, responseBodySize + responseHeadersSize];
    };
    const all = await Promise.all([...responses].map(size));
    assert(all.length > 15, 'all that it needs was seen');
    const total = all.reduce((sum, [, size]) => sum + size, 0);
    assert(total < 200_000, `${total}: ${all.join(' ')}`);
    await page.getByText('Chat', { exact: true }).last().click();
    assert.match(
      (await page.locator('#chart-latency').getAttribute('aria-label')) ?? '',
      /^Latency: latest p95 \d/,
    );
    await page.emulateMedia({ colorScheme: 'dark' });
    await drawn(page, 'rate');
    await context.close();
  });

  test('the switches turn instruments on and off', async () => {
    await using admin = await startAdmin();
    admin.metrics.record(exchange());
    await using open = await dashboard(admin);
    const { page } = open;
    const payload = page.getByRole('switch', { name: 'Payload capture' });
    assert.equal(await payload.getAttribute('aria-checked'), 'false');
    await payload.click();
    await page.locator('[role=switch][aria-checked=true][aria-labelledby=switch-payload]').waitFor();
    assert.equal(admin.toggles.payload, true);
    await page.getByRole('link', { name: 'aaaabbbbccccdddd' }).waitFor();
    await page.getByRole('switch', { name: 'Metrics' }).press('Space');
    await page.getByText('Metrics are switched off').waitFor();
    assert.equal(
      await page.evaluate('document.activeElement.getAttribute("aria-labelledby")'),
      'switch-metrics',
    );
    await payload.click();
    await page.locator('.requests code').first().waitFor();
    await until('off again', () => !admin.toggles.payload);
  });

  test('captures are all deleted after a question', async () => {
    await using admin = await startAdmin();
    admin.captured.add('one').add('two');
    await using open = await clocked(admin);
    const { page } = open;
    await press(page, 'Delete all captures');
    await press(page, 'Cancel');
    assert.equal(admin.captured.size, 2);
    await press(page, 'Delete all captures');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click();
    await page.getByText('2 captures deleted.').waitFor();
    assert.equal(admin.captured.size, 0);
    await poll(page, 'observability');
    assert.equal(await page.getByText('2 captures deleted.').count(), 1, 'outlives a poll');
  });

  test('a capture shows what was noted, its files, and its replay', async () => {
    await using admin = await startAdmin();
    admin.captured.add('req:1');
    await using open = await openPage(browser, `${admin.base}/admin/captures/req:1`);
    const { page } = open;
    await page.getByText('<b>bold</b>').waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Request, 25 B' }).click(),
    ]);
    assert.equal(readFileSync(await file.path(), 'utf8'), '<script>alert(1)</script>');
    await press(page, 'Replay');
    await page.getByText('<i>The answers differ</i>').waitFor();
  });

  test('models can be pulled with progress, loaded, and unloaded one by one or all', async () => {
    await using admin = await startAdmin();
    await using open = await dashboard(admin);
    const { page } = open;
    const cjk = admin.models.find(({ id }) => id === 'cjk');
    assert(cjk);
    await row(page, 'cjk').getByText('no space left').waitFor();
    await press(page, 'Pull cjk, 250 MiB');
    await row(page, 'cjk').getByText('downloading cjk.bin: 0 B of 250 MiB').waitFor();
    assert.equal(await row(page, 'cjk').getByText('no space left').count(), 0);
    const progress = {
      id: 'cjk',
      phase: 'verifying',
      what: 'cjk.bin',
      doneBytes: 70_000_000,
      totalBytes: 262_000_000,
    } as const;
    Object.assign(cjk, { progress });
    await row(page, 'cjk').getByText('verifying').waitFor({ timeout: 3000 });
    assert.equal(await row(page, 'cjk').getByRole('progressbar').getAttribute('value'), '70000000');
    Object.assign(cjk, { progress: null, installed: true });
    await page.getByRole('button', { name: 'Load cjk' }).click({ timeout: 3000 });
    await row(page, 'cjk').getByText('loading').waitFor();
    cjk.state = 'resident';
    await row(page, 'cjk').getByText('in memory').waitFor();
    await press(page, 'Unload cjk');
    await row(page, 'cjk').getByText('on disk').waitFor();
    await press(page, 'Unload all');
    await page.getByRole('dialog').getByRole('button', { name: 'Unload all' }).click();
    await page.getByText('2 models unloaded.').waitFor();
    assert.deepEqual(admin.asked, ['pull cjk', 'load cjk', 'unload cjk', 'reset']);
  });

  test('the slot is stopped after a question, and never the next request by mistake', async () => {
    await using admin = await startAdmin();
    const first = admin.slot.take('asr', 'first');
    await using open = await clocked(admin);
    const { page } = open;
    await page.getByText('Busy: speech to text').waitFor();
    await press(page, 'Stop the request that holds the slot');
    const dialog = page.getByRole('dialog');
    await poll(page, 'slot');
    assert(await dialog.isVisible(), 'polling leaves the question alone');
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopping the request.').waitFor();
    assert.equal(first.signal.aborted, true);
    first[Symbol.dispose]();

    const second = admin.slot.take('tts', 'second');
    await page.locator('#slot code').filter({ hasText: 'second' }).waitFor();
    await press(page, 'Stop the request that holds the slot');
    second[Symbol.dispose]();
    using third = admin.slot.take('llm', 'third');
    await page.locator('#slot code').filter({ hasText: 'third' }).waitFor();
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('That has already ended').waitFor();
    assert.equal(third.signal.aborted, false);
    assert.equal(second.signal.aborted, false);
  });

  test('polling takes nothing from the reader', async () => {
    await using admin = await startAdmin();
    for (const id of ['one', 'two', 'three']) admin.metrics.record(exchange({ requestId: id }));
    await using open = await clocked(admin);
    const { page } = open;
    await page.locator('.requests code').filter({ hasText: 'two' }).dblclick();
    await page.getByRole('button', { name: 'Unload multilingual-base' }).focus();
    await page.evaluate(`(() => {
      globalThis.announced = 0;
      for (const live of document.querySelectorAll('[role=status], [aria-live]')) {
        new MutationObserver(() => { announced += 1; })
          .observe(live, { childList: true, characterData: true, subtree: true });
      }
    })()`);
    await page.evaluate(`(() => {
      const code = [...document.querySelectorAll('.requests code')].find((c) => c.textContent === 'two');
      getSelection().selectAllChildren(code);
    })()`);
    admin.metrics.record(exchange({ requestId: 'four', at: new Date(Date.now() + 1000) }));
    await page.locator('.requests tbody tr').first().filter({ hasText: 'four' }).waitFor();
    for (const part of ['models', 'slot']) await poll(page, part);
    assert.equal(await page.evaluate('String(getSelection())'), 'two');
    assert.equal(await focused(page), 'Unload');
    assert.equal(await page.evaluate('announced'), 0);
    admin.models.splice(1, 1);
    await poll(page, 'models');
    await row(page, 'multilingual-base').waitFor({ state: 'detached' });
    assert.equal(
      await page.evaluate('document.querySelector("#models").contains(document.activeElement)'),
      true,
    );
    using _hold = admin.slot.take('asr', 'held');
    await page.getByText('Busy: speech to text').waitFor();
    assert.equal(await page.evaluate('announced'), 1);
  });

  test('the keyboard alone steers the dashboard', async () => {
    await using admin = await startAdmin();
    using hold = admin.slot.take('asr', 'held');
    await using open = await clocked(admin);
    const { page } = open;
    await page.getByText('Busy: speech to text').waitFor();
    const tabTo = async (name: string) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press('Tab');
        if ((await page.evaluate('document.activeElement.getAttribute("aria-label")')) === name) return;
      }
      assert.fail(`no Tab leads to ${name}`);
    };
    await page.keyboard.press('Tab');
    assert.equal(await focused(page), 'Skip to the content');
    await tabTo('Stop the request that holds the slot');
    await page.keyboard.press('Enter');
    assert.equal(await focused(page), 'Cancel', 'the safe answer is the first');
    await page.keyboard.press('Escape');
    assert.equal(hold.signal.aborted, false);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await until('stopped', () => hold.signal.aborted);
    await page.getByText('2 other models to pull').waitFor();
    for (let i = 0; i < 60 && (await focused(page)) !== '2 other models to pull'; i++)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await poll(page, 'models'); // which leaves the fold open
    await tabTo('Pull european, 681 MiB');
    await page.keyboard.press('Enter');
    await row(page, 'european').getByRole('progressbar').waitFor();
    assert.equal(
      await page.evaluate('document.querySelector("#models").contains(document.activeElement)'),
      true,
    );
  });

  test('the dashboard recovers from a gateway that was away for a while', async () => {
    await using admin = await startAdmin();
    await using open = await dashboard(admin);
    const { page } = open;
    await page.getByText('All is well.').waitFor();
    await admin.goAway();
    await page.getByText(/been unreachable since \d\d:\d\d:\d\d/).waitFor();
    assert.equal(await page.getByText('All is well.').isVisible(), false);
    await press(page, 'Load multilingual-tiny');
    await page.getByText('Nothing was done').waitFor();
    await page.waitForTimeout(3000);
    await admin.comeBack();
    await page.getByText('been unreachable').waitFor({ state: 'hidden' });
    await page.getByText('All is well.').waitFor();
    admin.metrics.record(exchange());
    await page.locator('.requests').waitFor();
  });

  test('a refused action says why', async () => {
    await using admin = await startAdmin([
      (req, _res, next) => {
        if (req.path.endsWith('/pull'))
          throw new GatewayError('model_not_installed', { model: '<b>m</b>', why: 'downloads are <off>' });
        next();
      },
    ]);
    await using open = await dashboard(admin);
    const { page } = open;
    await press(page, 'Pull cjk, 250 MiB');
    await page.getByText('Downloads are <off>').waitFor();
    await press(page, 'Dismiss');
    assert.equal(await page.getByText('Downloads are <off>').isVisible(), false);
  });

  test('an API key is asked for once and exchanged for a cookie', async () => {
    await using admin = await startAdmin([
      (req, res, next) => {
        if (req.path === '/admin' || req.path.startsWith('/assets')) return next();
        if (req.path === '/admin/session') {
          let body = '';
          req.on('data', (chunk) => {
            body += chunk;
          });
          req.on('end', () => {
            if (JSON.parse(body).key === 'right')
              res.cookie('session', 'ok', { httpOnly: true }).status(204).end();
            else next(new GatewayError('invalid_api_key', {}));
          });
          return;
        }
        if (req.headers.cookie !== 'session=ok') throw new GatewayError('invalid_api_key', {});
        next();
      },
    ]);
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    const key = page.getByRole('textbox', { name: 'API key' });
    await key.fill('wrong');
    await page.waitForTimeout(1500);
    assert.equal(await key.inputValue(), 'wrong', 'asked once');
    await press(page, 'Use this key');
    await page.getByText('That key was not accepted.').waitFor();
    await press(page, 'Cancel');
    await press(page, 'Enter the key');
    await key.fill('right');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing is running.').waitFor();
    assert.equal(await page.getByText('needs an API key').first().isVisible(), false);
  });
}, 3);
