/** The voice tab in a real browser, whose microphone plays a file, beside a scripted chat daemon and speech server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { heard, toneWav } from '../http/harness.ts';
import type { Received } from '../http/realtime.ts';
import { type Answer, chunk, DONE, says, startTalk, type Talk } from '../http/talk.ts';
import { until } from '../until.ts';
import { joinWavs } from '../wav.ts';
import { violations } from './axe.ts';
import { browserHearing, openPage, press } from './browser.ts';

/** Somebody speaks for a second and pauses for three, again and again. */
const microphone = joinWavs(toneWav(0.5, 0), toneWav(1), toneWav(3, 0));
const LONG = says('This is a long answer. '.repeat(20));

const browser = await browserHearing(microphone, '--autoplay-policy=no-user-gesture-required');

const status = (page: Page, text: string) =>
  page.locator('#voice-status').filter({ hasText: text }).waitFor({ timeout: 30_000 });
const answers = (page: Page) => page.locator('#voice-messages .assistant');
const focused = (page: Page) => page.evaluate<string>('document.activeElement?.id');
const isFree = ({ gateway }: Talk) => gateway.app.slot.status().holder === null;
const heardAs = (text: string) => ({ transcribe: async () => heard(text) });

/** The events that the page sends, as they come. */
function sent(page: Page): Received[] {
  const events: Received[] = [];
  page.on('websocket', (socket) =>
    socket.on('framesent', ({ payload }) => void events.push(JSON.parse(String(payload)))),
  );
  return events;
}

async function openVoice({ gateway }: Talk, options = {}) {
  const opened = await openPage(browser, `${gateway.base}/playground#voice`, options);
  await status(opened.page, 'Start, and say something.');
  return opened;
}

async function pushToTalk(page: Page) {
  await page.getByLabel('Microphone is on').selectOption('push');
  await press(page, 'Start talking');
  await status(page, 'Hold the button');
}

/** Holds the button until there was sound enough for an utterance. */
async function talkHolding(page: Page) {
  const level = () => page.evaluate<number>("document.querySelector('#voice-level').value");
  await page.keyboard.down('Space');
  await until('something is said', async () => (await level()) > 0.1);
  await until('it is said', async () => (await level()) < 0.1);
  await page.keyboard.up('Space');
}

test('turn after turn is heard, answered in Markdown and spoken, with the time of every stage', async () => {
  await using talk = await startTalk(heardAs(' Are you there?'));
  talk.chat.answer(says('Yes, ', '**I am**.'));
  await using opened = await openVoice(talk);
  const { page } = opened;
  await press(page, 'Start talking');
  await answers(page).nth(1).waitFor({ timeout: 30_000 });
  assert.equal(
    await page.locator('#voice-messages .user').first().locator('.bubble').innerText(),
    'Are you there?',
  );
  assert.equal(await answers(page).first().locator('strong').innerText(), 'I am');
  const strip = answers(page).first().locator('.stages');
  await strip.waitFor();
  assert.match(
    await strip.locator('p').innerText(),
    /^\d\.\d\d s from the end of speech to the first sound$/,
  );
  const stages = await strip.locator('li').allInnerTexts();
  assert.deepEqual(
    stages.map((stage) => /^([a-z]+) \d+ ms$/.exec(stage)?.[1]),
    ['pause', 'text', 'model', 'voice', 'player'],
  );
  assert.match(talk.chat.asked[0].messages[0].content, /spoken aloud/);
  assert.deepEqual(talk.speech.asked[0].input, 'Yes, I am.');
  await press(page, 'Stop');
  await status(page, 'Stopped.');
  assert.equal(await focused(page), 'voice-start');
  await until('the slot is free', () => isFree(talk));
  assert.deepEqual(await violations(page), []);

  talk.chat.answer(says('Again.'));
  const before = talk.chat.asked.length;
  await press(page, 'Start talking');
  await until('the talk goes on', () => talk.chat.asked.length > before, 30_000);
  const { messages } = talk.chat.asked.at(-1);
  assert(messages.length >= 6, `the model knows what was said before: ${JSON.stringify(messages)}`);
  await press(page, 'Stop');
  await press(page, 'Clear');
  assert.equal(await page.locator('#voice-messages > li').count(), 0);
});

test('speech over an answer ends its sound at once, and the gateway is told how much was heard', async () => {
  await using talk = await startTalk(heardAs(' Stop it.'));
  talk.chat.answer(LONG);
  await using opened = await openVoice(talk);
  const { page } = opened;
  const events = sent(page);
  await press(page, 'Start talking');
  await until(
    'the answer is cut',
    () => events.some(({ type }) => type === 'conversation.item.truncate'),
    30_000,
  );
  const cut = events.find(({ type }) => type === 'conversation.item.truncate') as Received;
  // The microphone is still for three seconds between two utterances.
  assert(cut.audio_end_ms > 500 && cut.audio_end_ms < 4500, String(cut.audio_end_ms));
  await press(page, 'Stop');
  await until('the slot is free', () => isFree(talk));
});

test('push to talk: nothing is sent until the key is down, and its release asks for the answer', async () => {
  await using talk = await startTalk(heardAs(' What time is it?'));
  await using opened = await openVoice(talk);
  const { page } = opened;
  const events = sent(page);
  const appended = () => events.filter(({ type }) => type === 'input_audio_buffer.append').length;
  await pushToTalk(page);
  assert.equal(await focused(page), 'voice-hold');
  assert.equal(appended(), 0);
  await talkHolding(page);
  assert(appended() > 0);
  await answers(page).first().locator('.stages').waitFor({ timeout: 30_000 });
  const stages = await answers(page).first().locator('.stages li').allInnerTexts();
  assert.match(stages.join(), /text \d+ ms,model/);
  await status(page, 'Hold the button');
  assert.equal(talk.chat.asked.length, 1);
  assert.deepEqual(await violations(page), []);

  talk.chat.answer(LONG);
  await talkHolding(page);
  await status(page, 'Answering.');
  await press(page, 'Interrupt');
  await status(page, 'Hold the button');
  await until('the slot is free', () => isFree(talk));
  await answers(page).last().getByText('interrupted').waitFor();
});

test('a model may roll dice and ask for the time, and is told what came of it', async () => {
  const calls: Answer = (res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const call = { index: 0, id: 'call_1', function: { name: 'roll_dice', arguments: '{"count":2}' } };
    res.write(chunk({ tool_calls: [call] }));
    res.end(chunk({}, 'tool_calls') + DONE);
  };
  await using talk = await startTalk(heardAs(' Roll two dice.'));
  talk.chat.answer((res, body) =>
    body.messages.at(-1).role === 'tool' ? says('Done.')(res, body) : calls(res, body),
  );
  await using opened = await openVoice(talk);
  const { page } = opened;
  await page.getByText('Instructions and tools').click();
  await page.getByLabel('It may ask this page').check();
  await pushToTalk(page);
  await talkHolding(page);
  await answers(page).getByText('Done.').waitFor({ timeout: 30_000 });
  const shown = await page.locator('.tool-call').innerText();
  assert.match(shown, /^roll_dice\(\{"count":2\}\) gave \{"rolls":\[[1-6],[1-6]\]\}$/);
  const told = talk.chat.asked.at(-1).messages.at(-1);
  assert.deepEqual([told.role, told.tool_call_id], ['tool', 'call_1']);
  assert(shown.endsWith(told.content));
  assert.deepEqual(
    talk.chat.asked[0].tools.map((tool: { function: { name: string } }) => tool.function.name),
    ['current_time', 'roll_dice'],
  );
});

test('an upstream that fails is said in the page, and continues the conversation', async () => {
  await using talk = await startTalk(heardAs(' Hello?'));
  talk.chat.answer((res) => void res.writeHead(500).end('{"error":{"message":"no memory"}}'));
  await using opened = await openVoice(talk);
  const { page } = opened;
  await pushToTalk(page);
  await talkHolding(page);
  await page.locator('#voice-problem').filter({ hasText: /./ }).waitFor();
  await status(page, 'That did not work. Say it again.');
  talk.chat.answer(says('Better.'));
  await talkHolding(page);
  await answers(page).getByText('Better.').waitFor({ timeout: 30_000 });
  assert(await page.locator('#voice-problem').isHidden());
});

test('a gateway that goes away is said, and what was said stays', async () => {
  await using talk = await startTalk(heardAs(' Hello?'));
  await using opened = await openVoice(talk);
  const { page } = opened;
  await pushToTalk(page);
  await talkHolding(page);
  await answers(page).first().waitFor({ timeout: 30_000 });
  await talk.gateway[Symbol.asyncDispose]();
  await page.locator('#voice-problem').filter({ hasText: 'closed the live connection' }).waitFor();
  assert.equal(await answers(page).count(), 1);
  assert(await page.locator('#voice-start').isVisible());
});
