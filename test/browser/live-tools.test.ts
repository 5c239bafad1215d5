/** What the live tab offers beside its text: level, clock, pause, downloads, a choice of microphones, another try. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { startGateway, toneWav } from '../http/harness.ts';
import { COMPLETED, DELTA } from '../http/realtime.ts';
import { until } from '../until.ts';
import { assertUsable } from './axe.ts';
import { browserHearing, launchWholeBrowser, openPage, press } from './browser.ts';

const browser = await browserHearing(toneWav(5));

const status = (page: Page, text: string) => page.locator('#live-status').filter({ hasText: text }).waitFor();

/** A page whose gateway says of the sound only what the test wants. */
async function openLive(options: BrowserContextOptions = {}, from: Browser = browser) {
  const gateway = await startGateway();
  const opened = await openPage(from, `${gateway.base}/playground#live`, options, gateway);
  const { page } = opened;
  const sent: { type: string; audio?: string }[] = [];
  let say = (_event: object): void => assert.fail('no connection');
  let breakOff = (): void => assert.fail('no connection');
  await page.routeWebSocket(/realtime/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (/"type":"(session\.|input_audio_buffer\.cleared)/.test(String(message))) socket.send(message);
    });
    socket.onMessage((message) => {
      sent.push(JSON.parse(String(message)));
      server.send(message);
    });
    say = (event) => socket.send(JSON.stringify(event));
    breakOff = () => void socket.close({ code: 1011, reason: 'power cut' });
  });
  return {
    ...opened,
    sent,
    say: (event: object) => say(event),
    breakOff: () => breakOff(),
    /** Somebody has said something. */
    said(id: string, transcript: string, startMs: number, endMs: number) {
      say({ type: 'input_audio_buffer.speech_started', item_id: id, audio_start_ms: startMs });
      say({ type: 'input_audio_buffer.speech_stopped', item_id: id, audio_end_ms: endMs });
      say({ type: 'input_audio_buffer.committed', item_id: id });
      say({ type: COMPLETED, item_id: id, transcript });
    },
  };
}

const texts = (page: Page) => page.locator('#live-finals .said').allInnerTexts();
const clockSec = async (page: Page) => {
  const [minutes = 0, seconds = 0] = (await page.locator('#live-clock').innerText()).split(':').map(Number);
  return minutes * 60 + seconds;
};
async function take(page: Page, kind: string) {
  await page.locator('#live-exports summary').click();
  const item = page.getByRole('button', { name: new RegExp(`^${kind} `) });
  const [file] = await Promise.all([page.waitForEvent('download'), item.click()]);
  assert.equal(file.suggestedFilename(), `live.${kind}`);
  return readFileSync(await file.path());
}
async function startLive(page: Page) {
  await press(page, 'Live');
  await status(page, 'Listening.');
}

test('level and clock move, the text and the sound can be taken away, and their times agree', async () => {
  await using live = await openLive();
  const { page } = live;
  await startLive(page);
  await until('the level moves', () =>
    page.evaluate<boolean>("document.querySelector('#live-level').value > 0.05"),
  );
  await until('two seconds', async () => (await clockSec(page)) >= 2);
  live.said('a', 'One & <two>.', 500, 1500);
  await page.getByText('One & <two>.').waitFor();
  await press(page, 'Stop live');
  await status(page, 'Stopped.');
  const firstMs = await page.evaluate<number>(
    "0 + document.querySelector('#live-clock').textContent.slice(2) * 1000",
  );
  await startLive(page);
  await page.getByText(/^Started again at /).waitFor();
  live.said('b', 'Three.', 0, 1000);
  await page.getByText('Three.').waitFor();
  await press(page, 'Stop live');
  await status(page, 'Stopped.');
  assert.deepEqual(await texts(page), ['One & <two>.', 'Three.']);
  assert.equal(String(await take(page, 'txt')), 'One & <two>.\nThree.\n');
  assert.match(String(await take(page, 'srt')), /^1\n00:00:00,500 --> 00:00:01,500\nOne & <two>\.\n\n2\n/);
  assert.match(
    String(await take(page, 'vtt')),
    /^WEBVTT\n\n00:00:00\.500 --> 00:00:01\.500\nOne &amp; &lt;two&gt;\./,
  );
  const { segments } = JSON.parse(String(await take(page, 'json')));
  assert.equal(segments[0].start, 0.5);
  assert(segments[1].start * 1000 >= firstMs, 'the times of the second session follow the first');
  const wav = await take(page, 'wav');
  assert.equal(wav.toString('latin1', 0, 4), 'RIFF');
  assert.equal(wav.readUInt32LE(24), 24_000);
  assert.equal(wav.readUInt32LE(40), wav.length - 44);
  assert.equal(Math.floor((wav.length - 44) / 48_000), await clockSec(page));
  assert(wav.subarray(44).some((byte) => byte !== 0));

  await press(page, 'Clear');
  await status(page, 'Cleared.');
  assert.deepEqual(await texts(page), []);
  assert.equal(await page.getByText('Started again').count(), 0);
  assert.equal(await page.locator('#live-exports').isVisible(), false);
  assert.equal(await page.evaluate('document.activeElement.id'), 'live');
});

test('a pause ends what is said and sends nothing, and live goes on after it', async () => {
  await using live = await openLive();
  const { page, sent } = live;
  const appended = () => sent.filter(({ type }) => type === 'input_audio_buffer.append').length;
  await startLive(page);
  await until('sound is sent', () => appended() > 3);
  await press(page, 'Pause');
  await status(page, 'Paused.');
  await until('what is said is ended', () => sent.at(-1)?.type === 'input_audio_buffer.commit');
  const before = await page.evaluate<number>(
    "new Promise((resolve) => setTimeout(() => resolve(document.querySelector('#live-level').value), 500))",
  );
  assert.equal(before, 0);
  assert.equal(sent.at(-1)?.type, 'input_audio_buffer.commit');
  const count = appended();
  await press(page, 'Resume');
  await status(page, 'Listening.');
  await until('sound is sent again', () => appended() > count);
  await press(page, 'Stop live');
  await status(page, 'Stopped.');
});

test('a lost connection keeps the text, also what was not finished, and one button connects again', async () => {
  await using live = await openLive();
  const { page } = live;
  await startLive(page);
  live.said('a', 'Whole.', 0, 100);
  live.say({ type: DELTA, item_id: 'b', delta: ' Half of' });
  await page.locator('#live-partials').getByText('Half of').waitFor();
  live.breakOff();
  await page.getByText('The gateway closed the live connection (power cut).').waitFor();
  assert.deepEqual(await texts(page), ['Whole.', 'Half of']);
  assert.equal(await page.locator('#live-finals .note').last().innerText(), 'not finished');
  await press(page, 'Reconnect');
  await status(page, 'Listening.');
  assert.equal(await page.locator('#live-problem').isVisible(), false);
  live.said('c', 'And on.', 0, 100);
  await page.getByText('And on.').waitFor();
  assert.deepEqual(await texts(page), ['Whole.', 'Half of', 'And on.']);
});

test('a lost microphone is said in words, and the text stays', async () => {
  await using live = await openLive();
  const { page } = live;
  await page.evaluate(`
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wanted) => (window.heard = await ask(wanted));`);
  await startLive(page);
  live.said('a', 'Still here.', 0, 100);
  await page.getByText('Still here.').waitFor();
  await page.evaluate("window.heard.getAudioTracks()[0].dispatchEvent(new Event('ended'))");
  await page.getByText('The microphone was disconnected. The text so far is still here.').waitFor();
  await status(page, 'Stopped.');
  assert.deepEqual(await texts(page), ['Still here.']);
  assert.equal(await page.getByRole('button', { name: 'Reconnect' }).isVisible(), true);
});

test('another microphone can be chosen, also while one is heard, and is remembered', async () => {
  const devices = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];
  await using whole = await launchWholeBrowser(...devices);
  await using live = await openLive({}, whole);
  const { page, sent } = live;
  await startLive(page);
  const select = page.getByRole('combobox', { name: 'Microphone', exact: true });
  await select.waitFor();
  const options = await select
    .locator('option')
    .evaluateAll((all) => all.map((each) => (each as { value?: string }).value));
  assert(options.length > 1, 'the browser names its microphones');
  const chosen = String(options.at(-1));
  const asked = page.evaluate<string>(`new Promise((resolve) => {
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = (wanted) => {
      resolve(wanted.audio.deviceId.ideal);
      return ask(wanted);
    };
  })`);
  await select.selectOption(chosen);
  assert.equal(await asked, chosen);
  const count = sent.length;
  await until('the other one is heard', () => sent.length > count + 3);
  await status(page, 'Listening.');
  await page.reload();
  await until('it is remembered', async () => (await select.inputValue()) === chosen);
});

test('the sound that is kept has a limit, and is whole up to there', async () => {
  await using live = await openLive();
  const { page } = live;
  const kept =
    await page.evaluate<unknown>(`import('/assets/playground/kept-sound.js').then(async (module) => {
    const sound = module.createKeptSound(1_000_000);
    for (let i = 0; i < 300; i++) sound.append(new Uint8Array(4800).fill(i % 256));
    const bytes = new Uint8Array(await sound.toBlob().arrayBuffer());
    const again = await sound.toBlob().arrayBuffer();
    const isFull = sound.isFull;
    sound.clear();
    return [bytes.length, again.byteLength, bytes[44], bytes.at(-1), isFull, sound.isFull, sound.isEmpty];
  })`);
  assert.deepEqual(kept, [44 + 208 * 4800, 44 + 208 * 4800, 0, 207, true, false, true]);
});

test('the keyboard alone pauses, stops, downloads and clears', async () => {
  await using live = await openLive({ reducedMotion: 'reduce' });
  const { page } = live;
  const focused = () => page.evaluate<string>('document.activeElement.id || document.activeElement.tagName');
  const tabTo = async (id: string) => {
    for (let i = 0; i < 30 && (await focused()) !== id; i++) await page.keyboard.press('Tab');
    assert.equal(await focused(), id);
  };
  await tabTo('live');
  await page.keyboard.press('Enter');
  await status(page, 'Listening.');
  live.said('a', 'Heard.', 0, 100);
  await page.getByText('Heard.').waitFor();
  await tabTo('live-pause');
  await page.keyboard.press('Space');
  await status(page, 'Paused.');
  await page.keyboard.press('Space');
  await status(page, 'Listening.');
  await tabTo('live-stop');
  await page.keyboard.press('Enter');
  await status(page, 'Stopped.');
  assert.equal(await focused(), 'live');
  await tabTo('SUMMARY');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^txt / }).waitFor();
  await page.keyboard.press('ArrowDown');
  const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
  assert.equal(file.suggestedFilename(), 'live.txt');
  await tabTo('live-clear');
  await page.keyboard.press('Enter');
  await status(page, 'Cleared.');
});

test('axe-core finds nothing wrong with live text that breaks off', async () => {
  await using live = await openLive();
  const { page } = live;
  await startLive(page);
  live.said('a', 'The first thing that somebody said, which is long enough to go over the line.', 0, 100);
  live.say({ type: DELTA, item_id: 'b', delta: ' And then half of' });
  await page.locator('#live-partials p').waitFor();
  live.breakOff();
  await page.getByRole('button', { name: 'Reconnect' }).waitFor();
  await assertUsable(page, 'lost');
});
