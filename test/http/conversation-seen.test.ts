/** What an operator sees of conversations: on the dashboard while they go on, and in the metrics. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { heard, until, untilAborted } from './harness.ts';
import { type LiveClient, tone } from './realtime.ts';
import { AUDIO, chunk, isFree, say, startTalk, type Talk, TEXT, talkTo } from './talk.ts';

const get = async ({ gateway }: Talk, path: string) => (await fetch(gateway.base + path)).text();
const session = async (talk: Talk) =>
  (await get(talk, '/admin/fragments/slot')).replace(/<[^>]*>/g, '').replace(/\s+/g, ' ');
const shows = (talk: Talk, what: RegExp) =>
  until(`the dashboard shows ${what}`, async () => what.test(await session(talk)));
/** The value of a series. */
async function series(talk: Talk, name: string): Promise<number | undefined> {
  const line = (await get(talk, '/metrics')).split('\n').find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
}
const answers = (talk: Talk, status: string, reason: string) =>
  series(talk, `voxgate_conversation_answers_total{status="${status}",reason="${reason}"}`);
const ended = async (client: LiveClient, nth = 1) => (await client.event('response.done', nth)).response;
const unhurried = (more: object = {}) => ({
  audio: { input: { transcription: { model: 'whisper-1', delay: 'xhigh' } } },
  ...more,
});

test('a spoken answer is timed from the end of speech, stage by stage', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, unhurried());
  await shows(talk, /1 live session Realtime conversation waiting for speech from \S+, last audio/);
  say(client);
  assert.equal((await ended(client)).status, 'completed');
  await until('it is counted', async () => (await answers(talk, 'completed', '')) === 1);
  const sum = async (stage: string) =>
    (await series(talk, `voxgate_conversation_stage_seconds_sum{stage="${stage}"}`)) ?? Number.NaN;
  const stages = await Promise.all(['text', 'slot', 'chat', 'speech'].map(sum));
  assert(
    stages.every((sec) => sec >= 0 && sec < 10),
    stages.join(' '),
  );
  const first = (await series(talk, 'voxgate_conversation_first_audio_seconds_sum')) ?? Number.NaN;
  const total = stages.reduce((a, b) => a + b);
  assert(Math.abs(first - total) < 0.001, `${first} is not ${stages.join(' + ')}`);
  await shows(
    talk,
    /Last answer: completed, transcription .* m?s, wait for the slot .* first word .* first audio /,
  );
});

test('an interruption, a cancelled answer and a client that leaves are told apart', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, unhurried());
  talk.chat.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write(chunk({ content: `${'Once upon a time there was a very long story. '.repeat(4)} And` }));
  });
  say(client);
  await client.event(AUDIO);
  await shows(talk, /answering/);
  say(client);
  await ended(client);
  await until(
    'an interruption is counted',
    async () => (await answers(talk, 'cancelled', 'turn_detected')) === 1,
  );
  await until('the next answer goes on', async () => talk.chat.asked.length === 2);
  client.send({ type: 'response.cancel' });
  await ended(client, 2);
  await until(
    'a cancelled one is counted',
    async () => (await answers(talk, 'cancelled', 'client_cancelled')) === 1,
  );
  client.send({ type: 'response.create' });
  await until('one more goes on', async () => talk.chat.asked.length === 3);
  client.socket.terminate();
  await until('the client has left', async () => (await answers(talk, 'cancelled', 'client_left')) === 1);
  await until('the slot is free', async () => isFree(talk));
});

test('an utterance that waits for the slot is counted, and its failure is shown', async () => {
  await using talk = await startTalk({ env: { SVC_LIVE_WAIT_SEC: '2' } });
  await using client = await talkTo(talk, unhurried(TEXT));
  const waiting = (source: string) => series(talk, `voxgate_slot_waiting{category="asr",source="${source}"}`);
  assert.equal(await waiting('live'), 0);
  using _hold = talk.gateway.app.slot.take('llm', 'other');
  say(client);
  await until('it waits', async () => (await waiting('live')) === 1);
  assert.equal(await waiting('request'), 0);
  assert.match(await session(talk), /Waiting, next one first Speech to text, live for/);
  await shows(talk, /transcribing/);
  await ended(client);
  await shows(talk, /waiting for speech .*Last answer: failed.*Last error: slot_busy \d s ago\./);
  await until('it is counted', async () => (await answers(talk, 'failed', 'slot_busy')) === 1);
});

test('a session that transcribes is shown as one, while it hears speech', async () => {
  await using talk = await startTalk({
    async transcribe(samples, options, hooks) {
      await untilAborted(samples, options, hooks);
      return heard('');
    },
  });
  await using client = await talkTo(talk, { type: 'transcription' }, '?intent=transcription');
  await shows(talk, /Realtime transcription waiting for speech/);
  client.speak(tone(1));
  await shows(talk, /hearing speech/);
  client.send({
    type: 'session.update',
    session: { type: 'transcription', audio: { input: { turn_detection: null } } },
  });
  await shows(talk, /waiting for speech/);
});

test('what people say live is never captured, also where capture is on', async () => {
  await using talk = await startTalk({ env: { SVC_OBS_PAYLOAD_ENABLED: '1' } });
  await using client = await talkTo(talk, unhurried());
  say(client);
  assert.equal((await ended(client)).status, 'completed');
  await client[Symbol.asyncDispose]();
  await until('the session is over', async () => !/live session/.test(await session(talk)));
  const path = '/v1/chat/completions';
  const asked = await fetch(talk.gateway.base + path, {
    method: 'POST',
    body: JSON.stringify({ model: 'llama', messages: [] }),
    headers: { 'Content-Type': 'application/json' },
  });
  await asked.text();
  const { payloadDir } = talk.gateway.config.observability;
  const captured = () =>
    existsSync(payloadDir) ? readdirSync(payloadDir, { recursive: true }).map(String) : [];
  const metas = () => captured().filter((path) => path.endsWith('meta.json'));
  const id = asked.headers.get('X-Request-ID') ?? 'none';
  await until('the request is captured', () => metas().some((path) => path.includes(id)));
  assert.equal(metas().length, 1, 'and nothing of the conversation');
});
