/** The pages below a path, behind nginx with the file of deploy/proxies/, in a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type ReverseProxy, startFrontProxy } from '../clients/reverse-proxies.ts';
import { form, type Gateway, startGateway, toneWav } from '../http/harness.ts';
import { execute, shown, toggle } from './api-page.ts';
import { launchBrowser, openPage, press, status } from './browser.ts';

let browser: Browser;
let gateway: Gateway;
let proxy: ReverseProxy;
before(async () => {
  browser = await launchBrowser('--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream');
  gateway = await startGateway({
    env: { SVC_API_KEY: 'right', SVC_TRUST_PROXY: '1', SVC_OBS_PAYLOAD_ENABLED: 'on' },
  });
  proxy = await startFrontProxy('nginx', gateway.base);
});
after(async () => {
  await browser?.close();
  await proxy?.[Symbol.asyncDispose]();
  await gateway?.[Symbol.asyncDispose]();
});

/** Fails on disposal also where the page has asked for anything outside of the path, or for what is not there. */
async function openBelow(path: string) {
  const open = await openPage(browser, `${proxy.base}/voice/health`);
  const wrong: string[] = [];
  const note = (url: string) => {
    if (!/^(blob|data):/.test(url) && !new URL(url).pathname.startsWith('/voice/')) wrong.push(url);
  };
  open.page.on('request', (request) => note(request.url()));
  open.page.on('websocket', (socket) => note(socket.url()));
  open.page.on('response', (response) => {
    if (response.status() === 404) wrong.push(`404 for ${response.url()}`);
  });
  await open.page.goto(`${proxy.base}/voice${path}`);
  return {
    page: open.page,
    async [Symbol.asyncDispose]() {
      await open[Symbol.asyncDispose]();
      assert.deepEqual(wrong, []);
    },
  };
}

async function enterKey(page: Page) {
  await page.getByRole('textbox', { name: 'API key' }).fill('right');
  await press(page, 'Use this key');
}

test('the playground transcribes a file and live speech, and the code to copy has the path', async () => {
  for (const path of ['/', '/playground/']) {
    await using open = await openBelow(path);
    assert.equal(open.page.url(), `${proxy.base}/voice/playground`);
  }
  await using open = await openBelow('/playground');
  const { page } = open;
  await enterKey(page);
  const buffer = toneWav(2);
  await page.getByLabel('Choose a file').setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer });
  await press(page, 'Transcribe');
  await page.locator('.said').getByText('Hello there.').waitFor();
  assert(
    (await page.locator('#code-text').textContent())?.includes(`${proxy.base}/voice/v1/audio/transcriptions`),
  );
  await page.goto(`${proxy.base}/voice/playground#live`);
  await page.reload();
  await press(page, 'Live');
  await status(page, 'Listening.');
  await press(page, 'Stop live');
});

test('the dashboard takes the key, polls, shows a capture and forgets the key', async () => {
  const headers = { Authorization: 'Bearer right', 'X-Request-ID': 'below' };
  const init = { method: 'POST', headers, body: form(toneWav(1)) };
  assert.equal((await fetch(`${proxy.base}/voice/v1/audio/transcriptions`, init)).status, 200);
  await using open = await openBelow('/admin');
  const { page } = open;
  await enterKey(page);
  await page.getByText('Nothing is running.').waitFor();
  await page.getByRole('switch').first().waitFor();
  await press(page, 'Unload all');
  await page.getByRole('dialog').getByRole('button', { name: 'Unload all' }).click();
  await page.getByText('1 model unloaded.').waitFor();
  await page.locator('.requests').getByRole('link', { name: 'below' }).click();
  await page.waitForURL(`${proxy.base}/voice/admin/captures/below`);
  await press(page, 'Replay');
  await page.getByText('Status then').waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: /^Request, / }).click();
  assert.equal((await download).url(), `${proxy.base}/voice/admin/captures/below/req.bin`);
  await press(page, 'Sign out');
  await page.waitForURL(`${proxy.base}/voice/admin`);
  await page.getByRole('textbox', { name: 'API key' }).waitFor();
  await page.goto(`${proxy.base}/voice/admin/`);
  assert.equal(page.url(), `${proxy.base}/voice/admin`);
});

test('the page of the API asks below the path, and its links stay there', async () => {
  await using open = await openBelow('/docs');
  const { page } = open;
  assert.equal(await page.locator('#base-url').textContent(), `${proxy.base}/voice/v1`);
  const health = (await shown(page)).find(({ name }) => name === 'get /health');
  assert(health);
  await toggle(health.block);
  assert.equal(await execute(health.block), '200');
  for (const name of ['Dashboard', 'API', 'Playground']) {
    await page.getByRole('link', { name, exact: true }).click();
    await page.locator('a[aria-current="page"]', { hasText: name }).waitFor();
    if (name === 'Dashboard') await press(page, 'Cancel');
  }
});
