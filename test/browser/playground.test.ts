/** The playground runs in a real browser: it transcribes a file or the microphone, and things go wrong on the way. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { Download, Page } from 'playwright-core';
import {
  form,
  type Gateway,
  heard,
  post,
  type Script,
  startGateway,
  toneWav,
  until,
} from '../http/harness.ts';
import { JFK, MODEL, needsWeights, startRealGateway } from '../model/gateway.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { joinWavs, wav } from '../wav.ts';
import { browserHearing, clipboard, openPage, press, status } from './browser.ts';

/** When this names a folder, the pictures of the docs are taken there, with real weights. */
const SHOTS = process.env.VOXGATE_SCREENSHOTS;

const browser = await browserHearing(toneWav(5));
const dir = mkdtempSync(join(tmpdir(), 'voxgate-browser-test-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const playground = (gateway: Pick<Gateway, 'base'>, options = {}) =>
  openPage(browser, `${gateway.base}/playground`, options);

/** The audio is speech, a long pause and speech, which make two chunks. */
const twoBursts = joinWavs(toneWav(1), toneWav(3, 0), toneWav(1));

const asFile = (buffer: Buffer, name = 'speech.wav') => ({ name, mimeType: 'audio/wav', buffer });
const choose = (page: Page, buffer: Buffer, name?: string) =>
  page.getByLabel('Choose a file').setInputFiles(asFile(buffer, name));
/** Not `innerText`, which is empty while a row has not been drawn yet. */
const segments = (page: Page) => page.locator('.said').allTextContents();

/** Gives one text for each chunk, after its gate is open. */
function saying(...texts: string[]): Script & { release(): void } {
  const waiting: (() => void)[] = [];
  let n = 0;
  let opened = 0;
  return {
    async transcribe(_samples, _options, { signal }) {
      const mine = n++;
      if (mine >= opened) {
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve);
          signal?.addEventListener('abort', () => reject(signal.reason));
        });
      }
      return heard(texts[mine % texts.length] ?? '');
    },
    release() {
      opened++;
      waiting.shift()?.();
    },
  };
}

test('segments appear one by one, over a waveform, and light up with the sound', async () => {
  const script = saying(' One two. Three.', ' Four & <five>.');
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  assert.match(
    (await page.locator('#model option').allInnerTexts()).join(),
    /auto,multilingual-base \(installed\)/,
  );
  await choose(page, twoBursts);
  await page.locator('.time').filter({ hasText: '0:00 / 0:05' }).waitFor();
  await inked(page);
  await press(page, 'Transcribe');
  await status(page, 'Transcribing');
  assert.deepEqual(await segments(page), []);
  script.release();
  await page.getByText('Three.').waitFor();
  assert.deepEqual(await segments(page), ['One two.', 'Three.']);
  script.release();
  await status(page, 'Done: 3 segments.');
  assert.deepEqual(await segments(page), ['One two.', 'Three.', 'Four & <five>.']);
  assert.match(
    await page.locator('#facts').innerText(),
    /multilingual-base[\s\S]*english[\s\S]*5\.0 s of audio/,
  );
  assert.equal(await page.locator('#segments').getAttribute('lang'), 'en');

  await page.getByText('<five>.').click();
  assert.deepEqual(await page.locator('.word.now').allInnerTexts(), ['<five>.']);
  const wave = page.getByRole('slider');
  const at = Number(await wave.getAttribute('aria-valuenow'));
  assert(at > 3.6 && at < 5, `${at}`);
  await wave.click({ position: { x: 1, y: 20 } });
  assert.equal(await wave.getAttribute('aria-valuetext'), '0:00 of 0:05');
  await press(page, 'Play');
  await page.locator('.word.now').filter({ hasText: 'One' }).waitFor();
  await press(page, 'Pause');
});

test('a long text is followed to its end, unless the reader scrolls up', async () => {
  const who = 'Ada Ben Cleo Dan Eve Finn Gus Hope Ida Joe Kim Leo Mia Ned'.split(' ');
  const sentences = who.map((name) => ` ${name} spoke.`).join('');
  let asked = 0;
  let released = 0;
  const script: Script = {
    async transcribe() {
      const mine = asked++;
      await until('it may answer', () => released > mine, 30_000);
      return heard(sentences, 600);
    },
  };
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  const box = page.locator('#transcript');
  const atEnd = () => box.evaluate((el) => el.scrollHeight - el.scrollTop - el.clientHeight < 2);
  await choose(page, joinWavs(toneWav(20), toneWav(3, 0), toneWav(20), toneWav(3, 0), toneWav(20)));
  await press(page, 'Transcribe');
  released += 1;
  await page.locator('.said').nth(12).waitFor();
  await until('the end is in view', atEnd);
  released += 1;
  await page.locator('.said').nth(26).waitFor();
  await until('the end is in view again', atEnd);
  await box.hover();
  await page.mouse.wheel(0, -600);
  await until('the reader has scrolled up', async () => !(await atEnd()));
  released = 100;
  await status(page, 'Done');
  assert.equal(await atEnd(), false);
});

test('a text stays until the gateway has taken the next request, and so do the names of its speakers', async () => {
  let isBusy = false;
  const script = saying(' One.', ' Two.');
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await page.route('**/v1/audio/transcriptions', (route) =>
    isBusy ? route.fulfill({ status: 500, json: { error: { message: 'It broke' } } }) : route.continue(),
  );
  await choose(page, toneWav(1));
  script.release();
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await segments(page), ['One.']);
  isBusy = true;
  await press(page, 'Transcribe');
  await page.getByText('It broke').waitFor();
  assert.deepEqual(await segments(page), ['One.']);
  isBusy = false;
  script.release();
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await segments(page), ['Two.']);
});

test('downloads have the content that the gateway itself would write', async () => {
  await using gateway = await startGateway({
    transcribe: async () => heard(' One --> <two> & three. Four.'),
  });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, twoBursts, 'my talk.wav');
  await page.getByLabel('Word times').check();
  await press(page, 'Transcribe');
  await status(page, 'Done');
  for (const format of ['srt', 'vtt']) {
    const file = await download(page, `Download ${format}`);
    assert.equal(file.name, `my talk.${format}`);
    const fields = { response_format: format, segment_granularity: 'subtitle' };
    const ours = await (await post(gateway, form(twoBursts, fields))).text();
    assert(ours.length > 100);
    assert.equal(file.text, ours);
  }
  const json = JSON.parse((await download(page, 'Download json')).text);
  assert.equal(json.segments.length, 4);
  assert.equal(json.segments[2].id, 2);
  assert.equal(json.model, 'multilingual-base');
  await press(page, 'Copy text');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.match(await clipboard(page), /^One --> <two> & three\.\nFour\.\nOne/);
});

/** Two speakers take turns of 4 s, and every half second has a word. */
const conversing = () => ({
  speakers: scriptedVoices(),
  transcribe: async () =>
    heard(Array.from({ length: 24 }, (_, i) => ` w${i}${i === 23 ? '.' : ''}`).join(''), 500),
});
const twoSpeakers = wav(conversation(inTurns(2, 12), 12));

test('speakers are told apart, and a new name is on the page and in every download', async () => {
  await using gateway = await startGateway(conversing());
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, twoSpeakers, 'call.wav');
  assert.equal(await page.getByText('Speakers', { exact: true }).isVisible(), false);
  await page.getByLabel('Tell speakers apart').check();
  await press(page, 'Transcribe');
  await status(page, 'Done: 3 segments.');
  const shown = () => page.locator('.segment .who').allInnerTexts();
  assert.deepEqual(await shown(), ['A', 'B', 'A']);
  assert.match((await page.locator('.speakers .note').allInnerTexts()).join(), /^0:07,0:0[34]$/);
  const asked = { response_format: 'text', diarize: 'true' };
  const ours = await (await post(gateway, form(twoSpeakers, asked))).text();
  assert.equal((await download(page, 'Download txt')).text, ours);

  await page.getByLabel('Name of speaker B').fill('Zoë & <Co>');
  assert.deepEqual(await shown(), ['A', 'Zoë & <Co>', 'A']);
  assert.match((await download(page, 'Download srt')).text, /\nA: w0 [\s\S]*\nZoë & <Co>: w8 /);
  assert.match((await download(page, 'Download vtt')).text, /\n<v Zoë &amp; &lt;Co&gt;>w8 /);
  assert.match((await download(page, 'Download txt')).text, /^A: w0 .*\nZoë & <Co>: w8 .*\nA: w16 .*\n$/);
  const json = JSON.parse((await download(page, 'Download json')).text);
  for (const list of [json.segments, json.turns, json.speakers]) {
    const names = list.map(({ speaker }: { speaker: string }) => speaker);
    assert.deepEqual([...new Set(names)], ['A', 'Zoë & <Co>']);
  }
  await press(page, 'Copy text');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.match(await clipboard(page), /^A: w0 .*\nZoë & <Co>: w8 /);
  await page.getByLabel('Name of speaker B').fill('');
  assert.deepEqual(await shown(), ['A', 'B', 'A'], 'a speaker without a name has the label again');

  await page.getByLabel('Word times').check();
  await press(page, 'Transcribe');
  await status(page, 'Done: 3 segments.');
  for (const response_format of ['srt', 'vtt']) {
    const fields = { response_format, diarize: 'true', segment_granularity: 'subtitle' };
    const subtitles = await (await post(gateway, form(twoSpeakers, fields))).text();
    assert.equal((await download(page, `Download ${response_format}`)).text, subtitles);
  }
  const { words } = JSON.parse((await download(page, 'Download json')).text);
  assert.equal(words.map(({ speaker }: { speaker: string }) => speaker).join(''), 'AAAAAAAABBBBBBBBAAAAAAAA');
  assert.match((await page.locator('#code-text').textContent()) ?? '', /-F diarize=true/);
  await choose(page, toneWav(1));
  assert.equal(await page.getByLabel('Name of speaker A').count(), 0, 'they belonged to the last sound');
});

test('word times are the gateway’s own when they are asked for', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' One two. Three.') });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, twoBursts);
  await press(page, 'Transcribe');
  await page.getByText('is estimated').waitFor();
  await press(page, 'Measure word times');
  await page.getByText('is estimated').waitFor({ state: 'hidden' });
  await status(page, 'Done: 4 segments.');
  const { words } = JSON.parse((await download(page, 'Download json')).text);
  assert.deepEqual(
    words.map((w: { word: string }) => w.word),
    await page.locator('.word').allInnerTexts(),
  );
  await page.locator('.word').nth(4).click();
  assert.equal(await page.getByRole('slider').getAttribute('aria-valuenow'), words[4].start.toFixed(1));
});

test('the code to copy sends the same request, with any characters in the names and the prompt', async () => {
  const asked: string[] = [];
  await using gateway = await startGateway({
    transcribe: async (_samples, { prompt, language }) => {
      asked.push(`${language} ${prompt}`);
      return heard(' One.');
    },
  });
  const name = `it's "odd"; $(x) \\ @.wav`;
  const prompt = `@it's "fine"; $HOME \`x\` \\n\n<b>`;
  writeFileSync(join(dir, name), twoBursts);
  symlinkSync(new URL('../../node_modules', import.meta.url).pathname, join(dir, 'node_modules'));
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, twoBursts, name);
  await page.getByLabel('Language spoken').selectOption('en');
  await page.getByText('More options').click();
  await page.getByLabel('Prompt', { exact: true }).fill(prompt);
  const shown = async (language: string) => {
    await page.getByLabel(language, { exact: true }).check();
    return (await page.locator('#code-text').textContent()) ?? '';
  };
  await press(page, 'Copy');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await clipboard(page), await shown('curl'));
  const cases: { words: boolean; says: RegExp }[] = [
    { words: false, says: /"text":"One\. One\."/ },
    { words: true, says: /"words":\[\{"word":"One\.","start"/ },
  ];
  for (const { words, says } of cases) {
    await page.getByLabel('Word times').setChecked(words);
    assert.match(await run('sh', ['-c', await shown('curl')]), says);
    writeFileSync(join(dir, 'snippet.mjs'), await shown('Node'));
    assert.match(
      await run(process.execPath, ['snippet.mjs']),
      words ? /^0 0\.\d+ One\.\n/ : /^One\. One\.\n$/,
    );
    writeFileSync(join(dir, 'snippet.py'), await shown('Python'));
    await run('python3', ['-c', 'import ast; ast.parse(open("snippet.py").read())']);
  }
  assert.equal(gateway.exchanges.filter(({ category }) => category === 'asr').length, 4);
  assert(
    asked.every((one) => one.replace('\r', '') === `en ${prompt}`),
    asked.join('\n'),
  );
});

test('a file that is no sound is refused kindly', async () => {
  await using gateway = await startGateway();
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, Buffer.from('no audio '.repeat(99)), '<b>garbage</b>.mp3');
  await page.getByText(/cannot (decode|play) this/).waitFor();
  assert.equal(await page.getByRole('heading', { level: 2 }).first().innerText(), '<b>garbage</b>.mp3');
  await press(page, 'Transcribe');
  await page
    .getByRole('alert')
    .filter({ hasText: /format|audio/i })
    .waitFor();
  await status(page, 'That did not work.');
});

test('a busy gateway is named, counted down and tried again, and waiting can be stopped', async () => {
  const script = saying(' Held.');
  await using gateway = await startGateway(script);
  const held = post(gateway, form(toneWav(1)));
  await until('the slot is held', () => gateway.running() === 1);
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, toneWav(1));
  await press(page, 'Transcribe');
  await page.locator('#busy .busy-text').filter({ hasText: 'busy with another transcription' }).waitFor();
  assert.match(await page.locator('#busy .countdown').innerText(), /^[1-5]$/);
  await press(page, 'Stop waiting');
  await status(page, 'Cancelled.');
  assert.equal(await focused(page), 'start');
  await press(page, 'Transcribe');
  await page.locator('#busy .busy-text').filter({ hasText: 'busy with another transcription' }).waitFor();
  await press(page, 'Try now');
  await page.locator('#busy .busy-text').filter({ hasText: 'busy with another transcription' }).waitFor();
  script.release();
  script.release();
  await (await held).text();
  await status(page, 'Done: 1 segment.');
});

test('cancelling stops the engine', async () => {
  await using gateway = await startGateway(saying(' Never.'));
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, toneWav(1));
  await press(page, 'Transcribe');
  await until('it runs', () => gateway.running() === 1);
  await press(page, 'Cancel');
  await status(page, 'Cancelled.');
  await until('it stopped', () => gateway.running() === 0 && gateway.uploads().length === 0);
  await page.getByRole('button', { name: 'Transcribe' }).waitFor();
});

test('a failure in the middle of a stream keeps the text that had arrived', async () => {
  let n = 0;
  await using gateway = await startGateway({
    transcribe: async () => {
      if (n++ > 0) throw new Error('secret');
      return heard(' Fine.');
    },
  });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, twoBursts);
  await press(page, 'Transcribe');
  await page
    .getByRole('alert')
    .filter({ hasText: /Request id: [0-9a-f]{16}/ })
    .waitFor();
  assert.deepEqual(await segments(page), ['Fine.']);
  assert.match((await download(page, 'Download srt')).text, /Fine\./);
});

test('the microphone records a file that can be transcribed', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Spoken.') });
  await using open = await playground(gateway);
  const { page } = open;
  await press(page, 'Record');
  await page.getByRole('button', { name: 'Stop (0:01)' }).click();
  await page.getByRole('heading', { name: 'recording.wav' }).waitFor();
  await status(page, 'Ready');
  const asks = () => page.evaluate<boolean>(LEAVE);
  assert(await asks(), 'nobody has this recording but the page');
  await press(page, 'Transcribe');
  await status(page, 'Done: 1 segment.');
  assert.deepEqual(await segments(page), ['Spoken.']);
  assert.equal(await asks(), false, 'it is kept with its text');
});

/** Whether a visitor who leaves the page would be asked whether they want that. */
const LEAVE = `(() => {
  const event = new Event('beforeunload', { cancelable: true });
  dispatchEvent(event);
  return event.defaultPrevented;
})()`;

test('a file can be dropped anywhere on the page', async () => {
  await using gateway = await startGateway();
  await using open = await playground(gateway);
  const { page } = open;
  const dataTransfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['x'], 'dropped.mp3'));
    return transfer;
  })()`);
  await page.dispatchEvent('h1', 'dragover', { dataTransfer });
  await page.locator('body.dragging').waitFor();
  await page.dispatchEvent('h1', 'drop', { dataTransfer });
  await status(page, 'Ready: dropped.mp3.');
  assert.equal(await page.locator('body.dragging').count(), 0);
});

test('text of the gateway is never taken for markup', async () => {
  const evil = '<img src=x onerror=alert(1)>';
  await using gateway = await startGateway({ transcribe: async () => heard(` ${evil}`) });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, toneWav(1), `${evil}.wav`);
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await segments(page), [evil]);
  assert.equal(await page.locator('img').count(), 1, 'only the logo');
});

test('the keyboard alone steers the playground', async () => {
  const script = saying(
    ' These are as many words as someone says in eight seconds, so that nobody asks for more.',
  );
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  const tabTo = async (id: string) => {
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab');
      if ((await focused(page)) === id) return;
    }
    assert.fail(`no Tab leads to #${id}`);
  };
  const chosen = page.waitForEvent('filechooser');
  await tabTo('file');
  await page.keyboard.press('Enter');
  const chooser = await chosen;
  await chooser.setFiles(asFile(toneWav(8)));
  await tabTo('language');
  await page.keyboard.type('ger');
  assert.equal(await page.getByLabel('Language spoken').inputValue(), 'de');
  await tabTo('start');
  await page.keyboard.press('Enter');
  await until('it runs', () => gateway.running() === 1);
  assert.equal(await focused(page), 'cancel');
  await page.keyboard.press('Enter');
  await status(page, 'Cancelled.');
  assert.equal(await focused(page), 'start');
  script.release();
  script.release();
  await until('it stopped', () => gateway.running() === 0 && gateway.uploads().length === 0);
  await page.keyboard.press('Enter');
  await status(page, 'Done');
  await tabTo('wave');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.getByRole('slider').getAttribute('aria-valuetext'), '0:05 of 0:08');
});

test('an API key is asked for once, kept for the tab and never shown', async () => {
  await using gateway = await startGateway();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.route('**/v1/**', (route) =>
    route.request().headers().authorization === 'Bearer right'
      ? route.continue()
      : route.fulfill({
          status: 401,
          json: { error: { kind: 'unauthorized', message: 'An API key is needed', code: 'invalid_api_key' } },
        }),
  );
  await page.goto(`${gateway.base}/playground`);
  await page.getByRole('textbox', { name: 'API key' }).fill('wrong');
  await press(page, 'Use this key');
  await page.getByText('That key was not accepted.').waitFor();
  // No header can carry it, so it is not tried at all.
  await page.getByRole('textbox', { name: 'API key' }).fill('“right”');
  await press(page, 'Use this key');
  await page.getByText('That key was not accepted.').waitFor();
  await page.getByRole('textbox', { name: 'API key' }).fill('right');
  await page.keyboard.press('Enter');
  await page.locator('#model-note').filter({ hasText: 'Picks a model by language' }).waitFor();
  await choose(page, toneWav(1));
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.match(await page.locator('#code-text').innerText(), /Bearer \$VOXGATE_API_KEY/);
  assert(!(await page.content()).includes('right"'));
  await context.close();
});

test('pages and assets carry their headers and revalidate', async () => {
  await using gateway = await startGateway();
  for (const path of ['/playground', '/assets/playground.js', '/assets/voxgate.css']) {
    const response = await fetch(gateway.base + path);
    assert.equal(response.status, 200, path);
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'self'; /);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(response.headers.get('x-frame-options'), 'DENY');
    assert.equal(response.headers.get('cache-control'), 'no-cache');
    const again = await fetch(gateway.base + path, {
      // Without this header fetch adds `no-cache`, as a browser does for a forced reload.
      headers: { 'If-None-Match': response.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' },
    });
    assert.equal(again.status, 304, path);
  }
  for (const path of ['/assets/', '/assets/none.js'])
    assert.equal((await fetch(gateway.base + path)).status, 404, path);
  assert.equal((await fetch(`${gateway.base}/assets/..%2fpackage.json`)).status, 400);
});

for (const colorScheme of ['light', 'dark'] as const) {
  if (SHOTS === undefined) continue;
  test(`a screenshot for the docs is taken: ${colorScheme}`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await startRealGateway();
    await gateway.app.preload(MODEL);
    await using open = await playground(gateway, { colorScheme, viewport: { width: 1280, height: 900 } });
    const { page } = open;
    await page.getByLabel('Choose a file').setInputFiles(JFK);
    await press(page, 'Transcribe');
    await status(page, 'Done');
    await page.locator('.word').filter({ hasText: 'Americans' }).click();
    await page.evaluate('scrollTo(0, 0)');
    await page.screenshot({ path: join(SHOTS, `playground-${colorScheme}.png`) });
  });
}

// These are texts, because code that runs in the page is no code of this program.
const focused = (page: Page) => page.evaluate<string>('document.activeElement?.id');
// `waitForFunction` would read its text again in the page, which the page's policy forbids.
const inked = (page: Page) =>
  until(
    'the waveform is drawn',
    () =>
      page.evaluate<boolean>(`(() => {
      const canvas = document.querySelector('canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, i) => i % 4 === 3 && value > 0);
    })()`),
    30_000,
  );
async function download(page: Page, button: string): Promise<{ name: string; text: string }> {
  await page.locator('#exports > summary').click();
  const [file]: [Download, unknown] = await Promise.all([page.waitForEvent('download'), press(page, button)]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') };
}

async function run(command: string, args: string[]): Promise<string> {
  return (await promisify(execFile)(command, args, { cwd: dir })).stdout;
}
