/** Live speech in the playground, in a real browser with a microphone that plays a file. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { runFfmpeg } from '../audio-fixtures.ts';
import { heard, startGateway } from '../http/harness.ts';
import { COMPLETED, DELTA, type Received } from '../http/realtime.ts';
import { JFK, MODEL, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { until } from '../until.ts';
import { browserHearing, clipboard, launchBrowser, launchWholeBrowser, openPage, press } from './browser.ts';

const dir = mkdtempSync(join(tmpdir(), 'voxgate-live-test-'));
const speech = join(dir, 'speech.wav');
const STARTED = 'input_audio_buffer.speech_started';

runFfmpeg('-i', JFK, '-af', 'apad=pad_dur=2', '-ar', '48000', speech);
const browser = await browserHearing(readFileSync(speech));
after(() => rmSync(dir, { recursive: true, force: true }));

const status = (page: Page, text: string) =>
  page.locator('#live-status').filter({ hasText: text }).waitFor({ timeout: 30_000 });
/** All events of the gateway, as they come. */
function received(page: Page): Received[] {
  const events: Received[] = [];
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => void events.push(JSON.parse(String(payload)))),
  );
  return events;
}

test('what is said into the microphone becomes text, and stop gives the last', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  await gateway.app.preload(MODEL);
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  const events = received(page);
  const last = (type: string) => events.findLast((event) => event.type === type);
  await press(page, 'Live');
  await status(page, 'Listening.');
  await page.locator('#live-finals li').first().waitFor({ timeout: 60_000 });
  const count = events.length;
  await until('more is said', () => events.slice(count).some(({ type }) => type === STARTED), 60_000);
  const { item_id: lastId } = last(STARTED) as Received;
  await press(page, 'Stop live');
  await status(page, 'Stopped.');
  const completed = events.filter(({ type }) => type === COMPLETED);
  assert(
    completed.some(({ item_id }) => item_id === lastId),
    'the last text came after stop',
  );
  const texts = completed.map(({ transcript }) => transcript.trim()).filter((text) => text !== '');
  assert.deepEqual(await page.locator('#live-finals .said').allInnerTexts(), texts);
  assert.match(plain(texts.join(' ')), /fellow americans|your country/);
  assert.match(await page.locator('#live-finals .note').first().innerText(), /^\d+ ms after/);
  await page.setViewportSize({ width: 360, height: 900 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

test('words that may change are gray, and a finished text is black and replaces them', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  let say = (_event: object): void => assert.fail('no connection');
  await page.routeWebSocket(/realtime/, (socket) => {
    // What the microphone says would come between the events of this test.
    socket.connectToServer().onMessage((message) => {
      if (/"type":"session\./.test(String(message))) socket.send(message);
    });
    say = (event) => socket.send(JSON.stringify(event));
  });
  await press(page, 'Live');
  await status(page, 'Listening.');
  const color = (selector: string) => page.evaluate(`getComputedStyle(${selector}).color`);
  say({ type: DELTA, item_id: 'x', delta: ' One' });
  say({ type: DELTA, item_id: 'x', delta: ' <b>two' });
  await page.locator('#live-partials').getByText('One <b>two').waitFor();
  assert.equal(await page.locator('#live-finals li').count(), 0);
  const gray = await color("document.querySelector('#live-partials p')");
  say({ type: 'input_audio_buffer.committed', item_id: 'x' });
  say({ type: COMPLETED, item_id: 'x', transcript: 'One, <b>two.' });
  await page.locator('#live-finals').getByText('One, <b>two.').waitFor();
  assert.equal(await page.locator('#live-partials p').count(), 0);
  assert.notEqual(await color("document.querySelector('#live-finals .said')"), gray);
  await press(page, 'Copy text');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await clipboard(page), 'One, <b>two.\n');
  say({ type: DELTA, item_id: 'y', delta: ' Three' });
  say({ type: 'input_audio_buffer.committed', item_id: 'y' });
  say({ type: COMPLETED.replace('completed', 'failed'), item_id: 'y', error: { message: 'Too <busy>' } });
  await page.getByText('Too <busy>').waitFor();
  assert.equal(await page.locator('#live-partials p').count(), 0);
  await status(page, 'Listening.');
});

test('a microphone that is refused is said so, and live can be tried again', async () => {
  await using gateway = await startGateway();
  await using silent = await launchWholeBrowser(
    '--use-fake-device-for-media-stream',
    '--deny-permission-prompts',
  );
  await using open = await openPage(silent, `${gateway.base}/playground#live`);
  await open.page.context().clearPermissions();
  await press(open.page, 'Live');
  await open.page.getByText('The microphone was not allowed.').waitFor();
  assert.equal(await open.page.getByRole('button', { name: 'Live', exact: true }).isEnabled(), true);
});

test('live speech says so when the gateway is gone', async () => {
  const gateway = await startGateway({ transcribe: async () => heard(' Hello.') });
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  await press(open.page, 'Live');
  await status(open.page, 'Listening.');
  await gateway[Symbol.asyncDispose]();
  await open.page.getByText('The gateway closed the live connection').waitFor();
});

test('the keyboard alone starts and stops live speech', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Hello.') });
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  const focused = () => page.evaluate('document.activeElement.id');
  for (let i = 0; i < 20 && (await focused()) !== 'live'; i++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await status(page, 'Listening.');
  assert.equal(await focused(), 'live');
  await page.keyboard.press('Enter');
  await status(page, 'Stopped.');
  assert.equal(await focused(), 'live');
});

test('stop waits for the last text for 20 s and no longer, and says so', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  // Everything reaches the gateway but the end, so the answer to it never comes.
  const ends: string[] = [];
  await page.routeWebSocket(/realtime/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      const { type } = JSON.parse(String(message));
      if (/commit|clear/.test(type)) ends.push(type);
      else server.send(message);
    });
  });
  await press(page, 'Live');
  await status(page, 'Listening.');
  await page.clock.install();
  await press(page, 'Stop live');
  await status(page, 'Waiting for the last text.');
  await until('both events', () => ends.length === 2);
  assert.deepEqual(ends, ['input_audio_buffer.commit', 'input_audio_buffer.clear']);
  await page.clock.fastForward(19_000);
  assert.equal(await page.locator('#live-problem').isVisible(), false);
  await page.clock.fastForward(1500);
  await page.getByText('The last text did not arrive within 20 s.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Live', exact: true }).isEnabled(), true);
});

test('live speech stops and says so when more than 1 MiB is unsent', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  const unsent = (bytes: number) =>
    page.evaluate(
      `Object.defineProperty(WebSocket.prototype, 'bufferedAmount', { get: () => ${bytes}, configurable: true })`,
    );
  await unsent(1024 ** 2);
  await press(page, 'Live');
  await status(page, 'Listening.');
  await page.waitForTimeout(500);
  await status(page, 'Listening.');
  await unsent(1024 ** 2 + 1);
  await page.getByText('The connection is too slow for live audio').waitFor();
});

test('live speech asks for the API key as the rest of the page does', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'right' } });
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  await press(page, 'Cancel');
  await press(page, 'Live');
  await page.getByRole('textbox', { name: 'API key' }).fill('right');
  await page.keyboard.press('Enter');
  await status(page, 'Listening.');
});

test('a browser without a microphone is said so', async () => {
  await using gateway = await startGateway();
  await using silent = await launchBrowser('--use-fake-ui-for-media-stream');
  await using open = await openPage(silent, `${gateway.base}/playground#live`);
  await press(open.page, 'Live');
  await open.page.getByText('No microphone was found.').waitFor();
});

test('live speech gives up a connection that does not open in 10 s', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  await page.routeWebSocket(/realtime/, () => undefined); // says nothing
  await page.clock.install();
  await press(page, 'Live');
  await status(page, 'Starting.');
  await until('the page gives up', async () => {
    await page.clock.fastForward(10_500);
    return await page.getByText('did not open a live connection within 10 s').isVisible();
  });
});

test('a long live session keeps its last 1000 texts', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/playground#live`);
  const { page } = open;
  await page.evaluate(
    'WebSocket = class extends WebSocket { constructor(...all) { super(...all); globalThis.socket = this; } }',
  );
  await press(page, 'Live');
  await status(page, 'Listening.');
  // So many events take Playwright half a minute from outside of the page.
  await page.evaluate(`for (let i = 1; i <= 1002; i++) {
    const data = JSON.stringify({ type: '${COMPLETED}', item_id: String(i), transcript: 'Text ' + i + '.' });
    socket.dispatchEvent(new MessageEvent('message', { data }));
  }`);
  assert.equal(await page.locator('#live-finals li').count(), 1000);
  assert.equal(await page.locator('#live-finals .said').first().innerText(), 'Text 3.');
});
