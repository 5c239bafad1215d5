/** The tabs of the playground in a real browser, with a real speech server and a scripted chat daemon. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
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
import { listening } from '../local-server.ts';
import { speechLacks, startSpeech } from '../upstreams/start.ts';
import { joinWavs } from '../wav.ts';
import { browserHearing, openPage, press, status } from './browser.ts';

/** Somebody speaks for a second and pauses for three, again and again. */
const microphone = joinWavs(toneWav(0.5, 0), toneWav(1), toneWav(3, 0));
const browser = await browserHearing(microphone, '--autoplay-policy=no-user-gesture-required');
const lacks = speechLacks();
const speech = lacks === null ? await startSpeech() : undefined;
after(() => speech?.stop());

/** A gateway whose speech server is real; without one the test is skipped. */
const speaking = (script: Script = {}) =>
  startGateway({ ...script, env: { SVC_TTS_UPSTREAM_URL: speech?.base ?? '', ...script.env } });
const open = (gateway: Pick<Gateway, 'base'>, tab: string, options = {}) =>
  openPage(browser, `${gateway.base}/playground#${tab}`, options);
const tabs = (page: Page) => page.getByRole('tab').allInnerTexts();
const focused = (page: Page) => page.evaluate<string>('document.activeElement?.id');

/** Holds the slot by a transcription until it is told to let go. */
function holding(): Script & { release(): void } {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    async transcribe() {
      await released;
      return heard(' Held.');
    },
    release,
  };
}

interface Chat extends AsyncDisposable {
  base: string;
  /** The messages of each request. */
  asked: { role: string; content: string }[][];
  /** Connections that the client left before the end. */
  left(): number;
}

interface Refusal {
  status: number;
  type: string;
  body: string;
}

/** A chat daemon that writes `reply(asked)`, or refuses; null writes nothing more until the client leaves. */
async function startScriptedChat(reply: (request: number) => (string | null)[] | Refusal): Promise<Chat> {
  const asked: Chat['asked'] = [];
  let left = 0;
  const send = (res: ServerResponse, data: string) => res.write(`data: ${data}\n\n`);
  const server = createServer(async (req, res) => {
    if (req.url === '/v1/models') return void res.end('{"data":[{"id":"tiny"}]}');
    if (req.method === 'GET') return void res.writeHead(404).end();
    const { messages } = (await json(req)) as { messages: Chat['asked'][number] };
    asked.push(messages);
    res.on('close', () => {
      if (!res.writableFinished) left++;
    });
    const replied = reply(asked.length);
    if (!Array.isArray(replied)) {
      res.writeHead(replied.status, { 'Content-Type': replied.type }).end(replied.body);
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const content of replied) {
      if (content === null) return;
      send(res, JSON.stringify({ choices: [{ delta: { content }, finish_reason: null }] }));
    }
    send(res, JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] }));
    send(res, '[DONE]');
    res.end();
  });
  return {
    ...(await listening(server)),
    asked,
    left: () => left,
  };
}

const dead = 'http://127.0.0.1:1';

test('a tab that cannot serve says what it lacks', async () => {
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: dead, SVC_LLM_BACKEND_URL: dead },
  });
  await using opened = await open(gateway, 'speech');
  const { page } = opened;
  await status(page, /^Speech needs a speech server: start one, and set SVC_TTS_UPSTREAM_URL/);
  assert.deepEqual(await tabs(page), ['Transcription', 'Live', 'Speech', 'Chat', 'Voice']);
  assert.equal(await page.getByRole('tab', { selected: true }).innerText(), 'Speech');
  assert.equal(await page.getByRole('tabpanel').count(), 0);
  await page.getByRole('tab', { name: 'Voice' }).click();
  await status(page, /^Chat needs a chat daemon.* set SVC_LLM_BACKEND_URL .*\.\s+Speech needs /);
  await page.getByRole('tab', { name: 'Live' }).click();
  await page.getByRole('tabpanel', { name: 'Live' }).waitFor();
  assert.equal(await page.locator('#missing').isVisible(), false);
});

test('nothing moves when the models are known', async () => {
  await using gateway = await startGateway();
  await using opened = await openPage(browser, `${gateway.base}/health`, {
    viewport: { width: 390, height: 844 },
  });
  const { page } = opened;
  let answer = () => {};
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/v1/models', (route) => held.then(() => route.continue()));
  const asked = page.waitForRequest('**/v1/models');
  await page.goto(`${gateway.base}/playground`);
  await asked;
  const places = () =>
    page.evaluate<number[]>(`[...document.querySelectorAll('main > *, #tabs > *, #form > *')]
      .flatMap((one) => { const { x, y, width } = one.getBoundingClientRect(); return [x, y, width]; })`);
  const before = await places();
  answer();
  await page.locator('#model-note:not(:empty)').waitFor();
  assert.deepEqual(await places(), before);
});

test('the code is below what a tab shows, beside its form, and names the voice', async () => {
  await using voices = await listening(createServer((_req, res) => void res.end('{"voices":["iris"]}')));
  await using daemon = await startScriptedChat(() => ['Hello.']);
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: voices.base, SVC_LLM_BACKEND_URL: daemon.base },
  });
  await using opened = await open(gateway, '', { viewport: { width: 1440, height: 900 } });
  const { page } = opened;
  const code = page.getByRole('region', { name: 'The same in code' });
  for (const name of ['Live', 'Speech', 'Chat', 'Voice']) {
    await page.getByRole('tab', { name }).click();
    const panel = page.getByRole('tabpanel', { name });
    const above = await panel.locator('.result').boundingBox();
    const box = await panel.locator(code).boundingBox();
    assert(above !== null && box !== null, name);
    assert.deepEqual([box.x, box.width], [above.x, above.width], name);
    assert(Math.abs(box.y - above.y - above.height - 16) < 1, `${name}: ${box.y - above.y - above.height}`);
  }
  await code.getByText('voice: "iris"').waitFor();
});

test('a gateway that can only chat opens with the chat, and the other tabs stay', async () => {
  await using daemon = await startScriptedChat(() => ['Hello.']);
  await using gateway = await startGateway({
    env: { SVC_LLM_BACKEND_URL: daemon.base, SVC_TTS_UPSTREAM_URL: dead },
    engine: null,
  });
  await using opened = await open(gateway, '');
  const { page } = opened;
  await page.getByRole('tabpanel', { name: 'Chat' }).waitFor();
  await page.getByRole('tab', { name: 'Transcription' }).click();
  await status(page, 'Transcription needs a model');
});

test('the keyboard alone moves among the tabs, and the address names the chosen one', async () => {
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: dead, SVC_LLM_BACKEND_URL: dead },
  });
  await using opened = await open(gateway, '');
  const { page } = opened;
  for (let i = 0; i < 9 && (await focused(page)) !== 'tab-transcription'; i++)
    await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowRight');
  assert.equal(await focused(page), 'tab-live');
  assert.match(page.url(), /#live$/);
  assert.equal(await page.getByRole('tabpanel', { name: 'Live' }).isVisible(), true);
  assert.equal(await page.getByRole('tabpanel').count(), 1);
  await page.keyboard.press('End');
  assert.equal(await focused(page), 'tab-voice');
  await page.keyboard.press('ArrowRight');
  assert.equal(await focused(page), 'tab-transcription');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await focused(page), 'tab-voice');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Tab');
  assert.equal(await focused(page), 'live-model', 'one Tab leaves the list of tabs');
});

test('a text is spoken with a voice of the server, played, and can be downloaded', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  await using gateway = await speaking();
  await using opened = await open(gateway, 'speech');
  const { page } = opened;
  await status(page, 'Write something');
  assert.deepEqual(await page.locator('#speech-model option').allInnerTexts(), ['tts']);
  await page.getByRole('combobox', { name: 'Voice', exact: true }).selectOption('nova');
  await page.getByLabel('Text', { exact: true }).fill('Hello <b>there</b>.');
  const asked = page.waitForRequest(/audio\/speech\/stream$/);
  await press(page, 'Speak');
  assert.deepEqual((await asked).postDataJSON(), {
    model: 'tts',
    voice: 'nova',
    input: 'Hello <b>there</b>.',
  });
  await status(page, 'Done: first sound');
  await page.evaluate("document.querySelector('#speech-audio').play()");
  await until('it plays again', () =>
    page.evaluate<boolean>("document.querySelector('#speech-audio').currentTime > 0"),
  );
  const [file] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')]);
  assert.equal(file.suggestedFilename(), 'speech.wav');
  assert.equal(readFileSync(await file.path()).toString('latin1', 0, 4), 'RIFF');
});

test('speech waits for a busy gateway and goes on by itself, and a stop ends the wait', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const script = holding();
  await using gateway = await speaking(script);
  await using opened = await open(gateway, 'speech');
  const { page } = opened;
  await status(page, 'Write something');
  const held = post(gateway, form(toneWav(1)));
  await until('the slot is held', () => gateway.running() === 1);
  await page.getByLabel('Text', { exact: true }).fill('Hello.');
  await press(page, 'Speak');
  const busy = page.locator('#speech-busy').filter({ hasText: 'busy with another transcription' });
  await busy.waitFor();
  assert.match(await page.locator('#speech-busy .countdown').innerText(), /^[1-5]$/);
  await press(page, 'Stop waiting');
  await status(page, 'Cancelled.');
  assert.equal(await focused(page), 'speech-start');
  await press(page, 'Speak');
  await busy.waitFor();
  script.release();
  await (await held).text();
  await status(page, 'Done: first sound');
});

test('a chat answer appears while it is written, and a stop keeps what came and ends the work', async () => {
  await using daemon = await startScriptedChat((n) => (n === 1 ? ['Hello ', '<b>you</b>.'] : ['Part', null]));
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  await using opened = await open(gateway, 'chat');
  const { page } = opened;
  const said = () => page.locator('.message p').allInnerTexts();
  await page.getByRole('tabpanel', { name: 'Chat' }).waitFor();
  await page.getByLabel('Message', { exact: true }).focus();
  await page.keyboard.type('Hi!');
  await page.keyboard.press('Enter');
  await status(page, 'Done.');
  assert.deepEqual(await said(), ['Hi!', 'Hello <b>you</b>.']);
  await page.keyboard.type('More.');
  await page.keyboard.press('Enter');
  await page.getByText('Part', { exact: true }).waitFor();
  assert.equal(await page.getByRole('log', { name: 'Messages' }).getAttribute('aria-busy'), 'true');
  await press(page, 'Stop');
  await status(page, 'Cancelled.');
  assert.deepEqual(await said(), ['Hi!', 'Hello <b>you</b>.', 'More.', 'Part']);
  await until('the daemon is left', () => daemon.left() === 1);
  assert.deepEqual(
    daemon.asked[1]?.map(({ role, content }) => `${role}: ${content}`),
    ['user: Hi!', 'assistant: Hello <b>you</b>.', 'user: More.'],
  );
  await press(page, 'Begin again');
  assert.deepEqual(await said(), []);
});

test('a long conversation scrolls in its box, and the place to write stays in view', async () => {
  const lines = 'A line of the answer.\n'.repeat(30);
  await using daemon = await startScriptedChat(() => [lines, 'The last word.']);
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  for (const viewport of [
    { width: 1280, height: 720 },
    { width: 390, height: 844 },
  ]) {
    await using opened = await open(gateway, 'chat', { viewport });
    const { page } = opened;
    const box = page.getByLabel('Message', { exact: true });
    const log = page.getByRole('log', { name: 'Messages' });
    const fromEnd = () => log.evaluate((el) => el.scrollHeight - el.scrollTop - el.clientHeight);
    for (let turn = 1; turn <= 4; turn += 1) {
      await box.fill(`Question ${turn}?`);
      await box.press('Enter');
      await page
        .getByText('The last word.')
        .nth(turn - 1)
        .waitFor();
      await status(page, 'Done.');
      assert((await fromEnd()) < 2, `${await fromEnd()} px from the end`);
      const at = await box.boundingBox();
      assert(at !== null && at.y >= 0 && at.y + at.height <= viewport.height, JSON.stringify(at));
    }
    await log.evaluate((el) => {
      el.scrollTop = 0;
    });
    await box.fill('And another?');
    await box.press('Enter');
    await page.getByText('The last word.').nth(4).waitFor();
    assert.equal(await log.evaluate((el) => el.scrollTop), 0, 'a reader who has scrolled up stays there');
  }
});

test('opening the speech tab of a busy gateway waits for nothing, and lists the voices when it is free', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const script = holding();
  await using gateway = await speaking(script);
  const held = post(gateway, form(toneWav(1)));
  await until('the slot is held', () => gateway.running() === 1);
  await using opened = await open(gateway, 'speech');
  const { page } = opened;
  await status(page, 'Write something');
  assert.equal(await page.locator('#speech-busy').isVisible(), false);
  await page.getByLabel('Text', { exact: true }).fill('Hello.');
  const voices = page.locator('#speech-voice option');
  assert.equal(await voices.count(), 0);
  script.release();
  await (await held).text();
  await voices.first().waitFor({ state: 'attached' });
  const names = await voices.allInnerTexts();
  assert.equal(await page.locator('#speech-voice optgroup[label="German"] option').innerText(), 'de');
  await page.route('**/v1/audio/voices', (route) => route.abort()); // a tab of the browser remembers them
  await page.reload();
  await voices.first().waitFor({ state: 'attached' });
  assert.deepEqual(await voices.allInnerTexts(), names);
});

test('a message without an answer comes back to be sent again, with what the daemon said', async () => {
  const whole = { choices: [{ message: { content: 'All at once.' }, finish_reason: 'stop' }] };
  const refusals: [Refusal, string][] = [
    [
      { status: 400, type: 'application/json', body: '{"detail":{"message":"No such voice"}}' },
      'No such voice',
    ],
    [
      { status: 404, type: 'application/json', body: '{"error":"try pulling it first"}' },
      'try pulling it first',
    ],
    [{ status: 500, type: 'text/plain', body: 'CUDA out of memory' }, 'CUDA out of memory'],
    [{ status: 200, type: 'text/event-stream', body: 'data: {"error":"too long"}\n\n' }, 'too long'],
    [{ status: 200, type: 'text/event-stream', body: 'data: exploded\n\n' }, 'exploded'],
  ];
  const json = { status: 200, type: 'application/json', body: JSON.stringify(whole) };
  await using daemon = await startScriptedChat((n) => refusals[n - 1]?.[0] ?? json);
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  await using opened = await open(gateway, 'chat');
  const { page } = opened;
  const box = page.getByLabel('Message', { exact: true });
  await box.fill('Hi!');
  for (const [, says] of refusals) {
    await box.press('Enter');
    await page.locator('#chat-problem').filter({ hasText: says }).waitFor();
    assert.equal(await box.inputValue(), 'Hi!');
    assert.equal(await page.locator('.message').count(), 0);
  }
  await box.press('Enter');
  await page.getByText('All at once.').waitFor();
  assert.deepEqual(daemon.asked.at(-1)?.length, 1);
});

test('what a long chat sends along begins with a message of the user', async () => {
  await using daemon = await startScriptedChat((n) => [`Answer ${n}.`]);
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  await using opened = await open(gateway, 'chat');
  const { page } = opened;
  const box = page.getByLabel('Message', { exact: true });
  for (let turn = 1; turn <= 22; turn += 1) {
    await box.fill(`Question ${turn}?`);
    await box.press('Enter');
    await page.getByText(`Answer ${turn}.`, { exact: true }).waitFor();
    await status(page, 'Done.');
  }
  assert.deepEqual(
    daemon.asked.map((messages) => messages[0]?.role),
    Array(22).fill('user'),
  );
  assert.equal(daemon.asked.at(-1)?.length, 39);
});

test('the tabs stand in one line on a phone', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  await using daemon = await startScriptedChat(() => ['Hello.']);
  await using gateway = await speaking({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  await using opened = await open(gateway, 'speech', { viewport: { width: 360, height: 900 } });
  const lines = await opened.page
    .getByRole('tab')
    .evaluateAll((all) => all.map((tab) => Math.round(tab.getBoundingClientRect().bottom)));
  assert(lines.length > 1);
  assert.equal(new Set(lines).size, 1, `${lines}`);
});
