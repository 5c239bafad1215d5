/** Silence after an answer: the assistant speaks again where the session says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from './harness.ts';
import { chunk, isFree, say, startTalk, TEXT, talkTo, types } from './talk.ts';

const TRIGGERED = 'input_audio_buffer.timeout_triggered';
const idle = (ms: number | null) => ({
  audio: { input: { turn_detection: { type: 'server_vad', idle_timeout_ms: ms } } },
});

test('after an answer that nobody replies to the assistant speaks, once until somebody does', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, { ...TEXT, ...idle(100) });
  const { session } = await client.event('session.updated');
  assert.equal(session.audio.input.turn_detection.idle_timeout_ms, 100);
  say(client);
  const event = await client.event(TRIGGERED);
  const { audio_start_ms: from, audio_end_ms: to } = event;
  assert(to - from === 100 && to <= 2000, `${from} to ${to} ms of 2000`);
  await client.event('response.done', 2);
  assert.deepEqual(
    talk.chat.asked[1].messages.map(({ role, content }: any) => [role, content]),
    [
      ['user', 'Hello there.'],
      ['assistant', 'Hello there. How are you?'],
      ['user', '…'],
    ],
  );
  const seen = types(client);
  assert.deepEqual(seen.slice(seen.indexOf(TRIGGERED), seen.indexOf(TRIGGERED) + 5), [
    TRIGGERED,
    'input_audio_buffer.committed',
    'conversation.item.added',
    'conversation.item.done',
    'response.created',
  ]);
  const committed = client.events.find(
    ({ type, item_id: id }) => /committed/.test(type) && id === event.item_id,
  );
  assert.ok(committed?.previous_item_id);
  say(client);
  await client.event(TRIGGERED, 2);
  assert.equal(client.events.filter(({ type }) => type === 'response.done').length >= 3, true);
});

test('the silence begins when the answer was played, and speech or the end of the session ends it', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, idle(50));
  const began = performance.now();
  client.send({ type: 'response.create' });
  await client.event(TRIGGERED);
  assert(performance.now() - began > 1200, 'the answer takes 1.2 s');
  talk.chat.answer((res) => void res.write(chunk({ content: 'And so. On' })));
  say(client);
  await client.event('response.done', 2);
  client.socket.terminate();
  await until('nothing is left', async () => isFree(talk));
});

test('without the setting nobody is asked', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, { ...TEXT, ...idle(null) });
  assert.equal(
    (await client.event('session.updated')).session.audio.input.turn_detection.idle_timeout_ms,
    null,
  );
  say(client);
  await client.event('response.done');
  client.send({ type: 'session.update', session: { type: 'realtime', ...idle(0) } });
  assert.equal((await client.event('error')).error.code, 'invalid_value');
});
