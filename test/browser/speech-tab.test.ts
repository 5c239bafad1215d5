/** The speech tab in a real browser, with a speech server that does as a test says. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { startGateway, toneWav, until } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { violations } from './axe.ts';
import { browserOfFile, openPage, press, status } from './browser.ts';

const browser = await browserOfFile('--autoplay-policy=no-user-gesture-required');

interface Asked {
  path: string;
  body: Record<string, unknown>;
  /** True once the client has left before the end. */
  isLeft: boolean;
  res: ServerResponse;
}

interface Speech extends AsyncDisposable {
  base: string;
  asked: Asked[];
}

async function startScriptedSpeech(
  speak: (asked: Asked) => void,
  voices: unknown = ['alloy', 'nova'],
): Promise<Speech> {
  const asked: Asked[] = [];
  const server = createServer(async (req, res) => {
    if (req.method === 'GET') {
      if (req.url === '/health') return void res.end('{}');
      if (req.url !== '/v1/audio/voices') return void res.writeHead(404).end();
      return void res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ voices }));
    }
    const one: Asked = { path: req.url ?? '', body: (await json(req)) as Asked['body'], isLeft: false, res };
    asked.push(one);
    res.on('close', () => {
      one.isLeft = !res.writableFinished;
    });
    speak(one);
  });
  return {
    ...(await listening(server)),
    asked,
  };
}

/** Counts the pieces that Web Audio was given, and remembers whether a context still sounds. */
const WATCH = `(() => {
  const start = AudioBufferSourceNode.prototype.start;
  globalThis.pieces = 0;
  globalThis.contexts = [];
  AudioBufferSourceNode.prototype.start = function (...args) {
    globalThis.pieces += 1;
    if (!globalThis.contexts.includes(this.context)) globalThis.contexts.push(this.context);
    return start.apply(this, args);
  };
})()`;
const pieces = (page: Page) => page.evaluate<number>('globalThis.pieces');
const isSounding = (page: Page) =>
  page.evaluate<boolean>("globalThis.contexts.some(({ state }) => state === 'running')");

async function openSpeech(speech: Speech) {
  const gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: speech.base } });
  const opened = await openPage(browser, `${gateway.base}/playground#speech`, {}, gateway);
  const { page } = opened;
  await page.addInitScript(WATCH);
  await page.reload();
  await status(page, 'Write something');
  return { ...opened, gateway };
}

async function say(page: Page) {
  await page.getByLabel('Text', { exact: true }).fill('Hello.');
  await press(page, 'Speak');
}

/** Somebody says something for two seconds, as espeak-ng and ffmpeg make it. */
function spoken(format: string): Buffer {
  const wav = execFileSync('espeak-ng', ['--stdout', 'One, two, three, four, five, six.']);
  const args = ['-loglevel', 'error', '-i', 'pipe:0', '-ac', '1', '-f', format, 'pipe:1'];
  return execFileSync('ffmpeg', args, { input: wav });
}

const half = ({ length }: Buffer) => 2 * Math.floor(length / 4);
const isPlaying = (page: Page) =>
  page.evaluate<boolean>("document.querySelector('#speech-audio').currentTime > 0");

for (const { format, type, samples } of [
  { format: 'wav', type: 'audio/wav', samples: true },
  { format: 's16le', type: 'audio/pcm', samples: true },
  { format: 'mp3', type: 'audio/mpeg', samples: false },
  { format: 'webm', type: 'audio/webm', samples: false },
]) {
  test(`speech in ${type} plays before it is whole, and is kept`, async () => {
    const sound = spoken(format);
    await using speech = await startScriptedSpeech(({ res }) => {
      res
        .writeHead(200, { 'Content-Type': type, 'X-Sample-Rate': '22050' })
        .write(sound.subarray(0, half(sound)));
    });
    await using opened = await openSpeech(speech);
    const { page } = opened;
    await say(page);
    await status(page, /^Speaking: first sound after \d\.\d s\.$/);
    await until('it plays', async () => (samples ? (await pieces(page)) > 0 : isPlaying(page)));
    assert.equal(await page.getByRole('button', { name: 'Download' }).isVisible(), false);
    speech.asked[0]?.res.end(sound.subarray(half(sound)));
    await status(page, /^Done: first sound after \d\.\d s, complete after \d\.\d s\.$/);
    assert.equal(speech.asked[0]?.path, '/v1/audio/speech/stream');
    const [file] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')]);
    const kept = readFileSync(await file.path());
    assert.equal(kept.length, sound.length - (format === 'wav' ? sound.indexOf('data') + 8 - 44 : 0));
    assert.deepEqual(kept.subarray(-1000), sound.subarray(-1000));
    const seconds = () => page.evaluate<number>("document.querySelector('#speech-audio').duration");
    await until('it can be played again', async () => (await seconds()) > 1.5);
  });
}

test('a stop ends the call of the speech server and the sound at once, and what came is kept', async () => {
  await using speech = await startScriptedSpeech(({ res }) => {
    res.writeHead(200, { 'Content-Type': 'audio/wav' }).write(toneWav(20).subarray(0, 44 + 32_000 * 10));
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  await say(page);
  await status(page, 'Speaking: first sound');
  await until('it sounds', () => isSounding(page));
  assert((await pieces(page)) <= 4, 'only the next seconds are decoded');
  await press(page, 'Stop');
  await status(page, 'Cancelled.');
  assert.equal(await isSounding(page), false);
  await until('the speech server is left', () => speech.asked[0]?.isLeft === true);
  await page.getByRole('button', { name: 'Download' }).waitFor();
});

test('sound goes on after a stall', async () => {
  const sound = toneWav(1);
  await using speech = await startScriptedSpeech(({ res }) => {
    res.writeHead(200, { 'Content-Type': 'audio/wav' }).write(sound.subarray(0, 10_001));
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  await say(page);
  await until('the first piece has sounded', async () =>
    page.evaluate<boolean>('globalThis.contexts[0]?.currentTime > 0.6'),
  );
  const before = await pieces(page);
  speech.asked[0]?.res.end(sound.subarray(10_001));
  await status(page, 'Done: first sound');
  assert((await pieces(page)) > before);
});

test('speech that breaks in the middle is heard as far as it came, kept, and said to be broken', async () => {
  const sound = spoken('mp3');
  await using speech = await startScriptedSpeech(({ res }) => {
    res.writeHead(200, { 'Content-Type': 'audio/mpeg' }).write(sound.subarray(0, half(sound)));
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  await say(page);
  await status(page, 'Speaking: first sound');
  speech.asked[0]?.res.destroy();
  await status(page, 'The connection broke; this plays what had arrived.');
  await page.getByRole('alert').filter({ hasText: 'The connection ended before the answer did.' }).waitFor();
  await page.getByRole('button', { name: 'Download' }).waitFor();
});

test('what the speech server refuses is said in its words', async () => {
  await using speech = await startScriptedSpeech(({ res, path }) => {
    const message = path.endsWith('/stream') ? 'This stream has pcm alone.' : 'No aac here.';
    const body = JSON.stringify({ error: { message } });
    res.writeHead(400, { 'Content-Type': 'application/json' }).end(body);
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  await page.getByLabel('Format').selectOption('aac');
  await page.getByRole('spinbutton', { name: 'Speed' }).fill('5');
  await say(page);
  assert.equal(speech.asked.length, 0, 'the browser names the limits of the speed');
  await page.getByRole('spinbutton', { name: 'Speed' }).fill('1.25');
  await press(page, 'Speak');
  await page.getByRole('alert').filter({ hasText: 'No aac here.' }).waitFor();
  await status(page, 'That did not work.');
  assert.deepEqual(speech.asked.at(-1)?.body, {
    model: 'tts',
    voice: 'alloy',
    input: 'Hello.',
    response_format: 'aac',
    speed: 1.25,
  });
});

test('a speech server without a stream is asked for the whole, and for the stream no more', async () => {
  await using speech = await startScriptedSpeech(({ res, path }) => {
    if (path.endsWith('/stream')) res.writeHead(404).end();
    else res.writeHead(200, { 'Content-Type': 'audio/wav' }).end(toneWav(0.2));
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  for (let turn = 0; turn < 2; turn++) {
    await say(page);
    await status(page, 'Done: first sound');
  }
  assert.deepEqual(
    speech.asked.map(({ path }) => path),
    ['/v1/audio/speech/stream', '/v1/audio/speech', '/v1/audio/speech'],
  );
});

test('a format that comes in no pieces plays as a whole, and one that is no sound can be downloaded', async () => {
  await using speech = await startScriptedSpeech(({ res, body }) => {
    const isSound = body.response_format === 'opus';
    res.writeHead(200, { 'Content-Type': 'audio/ogg' }).end(isSound ? spoken('ogg') : 'no sound');
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  await page.getByLabel('Format').selectOption('opus');
  await say(page);
  await status(page, /^Done: first sound after \d\.\d s, complete/);
  await page.getByLabel('Format').selectOption('flac');
  await press(page, 'Speak');
  await status(page, 'This browser cannot play this format, but you can download it');
  await page.getByRole('button', { name: 'Download' }).waitFor();
});

test('voices stand by language, and the last choices are remembered', async () => {
  const voices = [
    { name: 'Anna', language: 'de-DE' },
    { name: 'en_US-lessac-medium' },
    'af_heart',
    { id: 'Zed', language: 'Klingon' },
    'misc',
  ];
  await using speech = await startScriptedSpeech(
    ({ res }) => res.writeHead(200, { 'Content-Type': 'audio/wav' }).end(toneWav(0.2)),
    voices,
  );
  await using opened = await openSpeech(speech);
  const { page } = opened;
  const groups = await page.evaluate<string[]>(
    "[...document.querySelectorAll('#speech-voice optgroup')].map((one) => one.label + ': ' + one.textContent)",
  );
  assert.deepEqual(groups, [
    'English: en_US-lessac-mediumaf_heart',
    'German: Anna',
    'Klingon: Zed',
    'Other voices: misc',
  ]);
  await page.getByRole('combobox', { name: 'Voice', exact: true }).selectOption('Anna');
  await page.getByLabel('Format').selectOption('wav');
  await page.getByRole('spinbutton', { name: 'Speed' }).fill('1.5');
  await say(page);
  await status(page, 'Done:');
  await page.reload();
  await status(page, 'Write something');
  await page.locator('#speech-voice optgroup').first().waitFor({ state: 'attached' });
  assert.equal(await page.getByRole('combobox', { name: 'Voice', exact: true }).inputValue(), 'Anna');
  assert.equal(await page.getByLabel('Format').inputValue(), 'wav');
  assert.equal(await page.getByRole('spinbutton', { name: 'Speed' }).inputValue(), '1.5');
});

for (const { format, type } of [
  { format: 'wav', type: 'audio/wav' },
  { format: 'mp3', type: 'audio/mpeg' },
])
  test(`speech in ${type} is paused and resumed from the keyboard, while it still comes`, async () => {
    const sound = spoken(format);
    await using speech = await startScriptedSpeech(({ res }) => {
      res.writeHead(200, { 'Content-Type': type }).write(sound.subarray(0, half(sound)));
    });
    await using opened = await openSpeech(speech);
    const { page } = opened;
    await page.getByLabel('Text', { exact: true }).fill('Hello.');
    await page.getByRole('button', { name: 'Speak' }).press('Enter');
    await status(page, 'Speaking: first sound');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await status(page, 'Paused.');
    const clock = () =>
      page.evaluate<number>(
        "globalThis.contexts[0]?.currentTime ?? document.querySelector('#speech-audio').currentTime",
      );
    const at = await clock();
    speech.asked[0]?.res.end(sound.subarray(half(sound)));
    await page.getByRole('button', { name: 'Download' }).waitFor();
    await status(page, 'Paused.');
    assert.equal(await clock(), at, 'it stands still');
    await page.keyboard.press('Enter');
    await status(page, /^Speaking: first sound after \d\.\d s, complete after/);
    await status(page, /^Done: first sound/);
    assert.equal(await page.evaluate('document.activeElement.id'), 'speech-start');
    assert.equal(await page.getByRole('button', { name: 'Pause' }).isVisible(), false);
  });

test('a format that plays only when whole says so before, and the last sound stays until the next one is there', async () => {
  let isDown = false;
  await using speech = await startScriptedSpeech(({ res }) => {
    if (isDown) res.writeHead(503, { 'Content-Type': 'text/plain' }).end('CUDA out of memory');
    else res.writeHead(200, { 'Content-Type': 'audio/wav' }).end(toneWav(0.2));
  });
  await using opened = await openSpeech(speech);
  const { page } = opened;
  const note = page.getByText('only once all of it is there');
  for (const [format, isWhole] of [
    ['opus', true],
    ['mp3', false],
    ['flac', true],
    ['wav', false],
  ] as const) {
    await page.getByLabel('Format').selectOption(format);
    assert.equal(await note.isVisible(), isWhole, format);
  }
  await say(page);
  await status(page, 'Done:');
  isDown = true;
  await press(page, 'Speak');
  await page.getByRole('alert').filter({ hasText: 'CUDA out of memory' }).waitFor();
  assert(await page.getByRole('button', { name: 'Download' }).isVisible(), 'it can still be heard and kept');
  assert.deepEqual(await violations(page), []);
});
