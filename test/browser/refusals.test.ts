/** The playground where the browser refuses what it usually gives, and where the gateway goes away in the middle. */
import assert from 'node:assert/strict';
import { createServer, request, type Server } from 'node:http';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Gateway, heard, startGateway, toneWav, until } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { joinWavs } from '../wav.ts';
import { violations } from './axe.ts';
import { browserOfFile, openPage, press, status } from './browser.ts';

const browser = await browserOfFile();

/** The playground in a browser that was changed before its scripts run. */
async function openRefusing(gateway: Pick<Gateway, 'base'>, refusal: string) {
  const opened = await openPage(browser, `${gateway.base}/assets/voxgate.svg`);
  const { page } = opened;
  await page.addInitScript(refusal);
  await page.goto(`${gateway.base}/playground`);
  return opened;
}

async function transcribe(page: Page, name: string) {
  await page.getByLabel('Choose a file').setInputFiles({ name, mimeType: 'audio/wav', buffer: toneWav(1) });
  await press(page, 'Transcribe');
  await status(page, 'Done');
}

const saying = (text: string) => ({ transcribe: async () => heard(text) });

test('a browser that stores nothing at all still transcribes, and keeps the key while the page is open', async () => {
  await using gateway = await startGateway({ ...saying(' Hello.'), env: { SVC_API_KEY: 'secret' } });
  const denied = "get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); }";
  await using opened = await openRefusing(
    gateway,
    `for (const name of ['localStorage', 'sessionStorage', 'indexedDB'])
       Object.defineProperty(globalThis, name, { ${denied} });`,
  );
  const { page } = opened;
  await page.getByRole('textbox', { name: 'API key' }).fill('secret');
  await press(page, 'Use this key');
  await transcribe(page, 'a.wav');
  assert.deepEqual(await page.locator('.said').allInnerTexts(), ['Hello.']);
  await page.getByText('This browser refuses to keep anything here').waitFor();
  await transcribe(page, 'b.wav');
  assert.equal(await page.getByRole('dialog').isVisible(), false, 'it is asked for once');
  assert.deepEqual(await violations(page), []);
});

test('a page on plain http, which has no clipboard, copies in the old way', async () => {
  await using gateway = await startGateway(saying(' Copied by hand.'));
  await using opened = await openRefusing(
    gateway,
    `const real = navigator.clipboard;
     real.readText().catch(() => undefined);
     globalThis.readClipboard = () => real.readText();
     Object.defineProperty(navigator, 'clipboard', { value: undefined });`,
  );
  const { page } = opened;
  await transcribe(page, 'a.wav');
  await press(page, 'Copy text');
  await status(page, 'Copied.');
  assert.equal(await page.evaluate('globalThis.readClipboard()'), 'Copied by hand.');
  assert.equal(await page.evaluate('document.activeElement.id'), 'copy-text', 'the keyboard stays there');
});

test('no microphone is said in words', async () => {
  await using gateway = await startGateway();
  await using opened = await openRefusing(
    gateway,
    `navigator.mediaDevices.getUserMedia = async () => {
       throw new DOMException('Requested device not found', 'NotFoundError');
     };`,
  );
  const { page } = opened;
  await press(page, 'Record');
  await page.getByRole('alert').filter({ hasText: 'No microphone was found.' }).waitFor();
});

/** Leads to the gateway until it is cut. */
async function startLine(gateway: Pick<Gateway, 'base'>) {
  const server: Server = createServer((req, res) => {
    const { method, headers } = req;
    const onward = request(gateway.base + req.url, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    res.on('close', () => onward.destroy());
    req.pipe(onward);
  });
  return {
    ...(await listening(server)),
    cut: () => server.closeAllConnections(),
  };
}

test('a text that breaks off is kept as far as it came, through a reload, with its edits', async () => {
  const waiting: (() => void)[] = [];
  await using gateway = await startGateway({
    transcribe: () => new Promise((resolve) => waiting.push(() => resolve(heard(' First part.')))),
  });
  await using line = await startLine(gateway);
  await using opened = await openPage(browser, `${line.base}/playground`);
  const { page } = opened;
  const buffer = joinWavs(toneWav(1), toneWav(3, 0), toneWav(1));
  await page.getByLabel('Choose a file').setInputFiles({ name: 'long.wav', mimeType: 'audio/wav', buffer });
  await press(page, 'Transcribe');
  await until('the first chunk is heard', () => waiting.length === 1);
  waiting[0]?.();
  await page.locator('.said').filter({ hasText: 'First part.' }).waitFor();
  line.cut();
  await page.getByRole('alert').filter({ hasText: 'What had arrived is kept.' }).waitFor();
  await page.locator('#facts').getByText('incomplete').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.locator('.word').first().dblclick();
  await page.getByRole('textbox', { name: /^Text at/ }).fill('Part one.');
  await page.keyboard.press('Enter');
  await page.locator('.said').filter({ hasText: 'Part one.' }).waitFor();
  await page.reload();
  await status(page, 'Opened: long.wav.');
  assert.deepEqual(await page.locator('.said').allInnerTexts(), ['Part one.']);
  await page.locator('#facts').getByText('incomplete').waitFor();
  await page.locator('#time').filter({ hasText: '/ 0:05' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Transcribe', exact: true }).isEnabled(), true);
  for (const go of waiting) go();
});

test('a reload in the middle of a transcription is asked about first', async () => {
  const waiting: (() => void)[] = [];
  await using gateway = await startGateway({
    transcribe: () => new Promise((resolve) => waiting.push(() => resolve(heard(' Done.')))),
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${gateway.base}/playground`);
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.dismiss();
  });
  await page
    .getByLabel('Choose a file')
    .setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer: toneWav(1) });
  await press(page, 'Transcribe');
  await until('the chunk is heard', () => waiting.length === 1);
  void page.evaluate('location.reload()').catch(() => undefined);
  await until('it is asked', () => asked.length === 1);
  waiting[0]?.();
  await status(page, 'Done');
  assert.deepEqual(asked, ['beforeunload']);
  await page.reload();
  await status(page, 'Opened: a.wav.');
  assert.deepEqual(asked, ['beforeunload'], 'what is finished is kept, and can be left');
  await context.close();
});

/** What is written to the store is told when `letGo` is called, as by a slow disk. */
const HOLD_STORE = `{
  const held = new Promise((resolve) => { window.letGo = resolve; });
  Object.defineProperty(IDBTransaction.prototype, 'oncomplete', {
    configurable: true,
    set(told) { this.addEventListener('complete', () => held.then(told)); },
  });
}`;

test('a transcription is done when its take is kept, also that of the last of several files', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Heard.') });
  await using open = await openPage(browser, `${gateway.base}/playground`);
  const { page } = open;
  const file = (name: string) => ({ name, mimeType: 'audio/wav', buffer: toneWav(1) });
  for (const [names, done] of [
    [['a.wav'], 'Done: 1 segment.'],
    [['b.wav', 'c.wav'], 'Done: 2 of 2 files.'],
  ] as const) {
    await page.evaluate(HOLD_STORE);
    await page.getByLabel('Choose a file').setInputFiles(names.map(file));
    await press(page, 'Transcribe');
    await page
      .locator('#panel-transcription')
      .getByText('Heard.')
      .nth(names.length - 1)
      .waitFor();
    assert.equal(await page.getByRole('status').filter({ hasText: 'Done' }).count(), 0);
    await page.evaluate('letGo()');
    await status(page, done);
  }
});
