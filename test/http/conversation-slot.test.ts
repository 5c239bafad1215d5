/** The slot in conversations: a turn and its answer are one holder, and who has no answer keeps nobody waiting. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heard, type Script, until, untilAborted, untilWaiting } from './harness.ts';
import { COMPLETED, FAILED, type LiveClient, silence, tone } from './realtime.ts';
import { chunk, isFree, say, says, startTalk, type Talk, TEXT, talkTo, write } from './talk.ts';

/** Answers in writing, and no words before the end of a turn, which would need the slot as well. */
const written = (input: object = {}) => ({
  ...TEXT,
  audio: { input: { transcription: { model: 'whisper-1', delay: 'xhigh' }, ...input } },
});

/** A transcription that goes on until it is let go. */
function gated(text = ' Hello there.') {
  let go: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const script: Script = {
    env: { SVC_MAX_WAIT_SEC: '60' },
    async transcribe(samples, options, hooks) {
      await Promise.race([gate, untilAborted(samples, options, hooks)]);
      return heard(text);
    },
  };
  return { script, go };
}

/** Says a turn and goes on speaking before its text is there, which comes then. */
async function speakOn(client: LiveClient, go: () => void): Promise<void> {
  say(client);
  await client.event('input_audio_buffer.committed');
  client.speak(tone(1));
  await client.event('input_audio_buffer.speech_started', 2);
  go();
  await client.event(COMPLETED);
}

/** A chat of another client, which waits for the slot while the text of a turn is computed. */
async function anotherWaits({ gateway }: Talk): Promise<{ answer: Promise<Response> }> {
  await until('the turn has the slot', async () => !gateway.app.slot.isFree());
  const answer = fetch(`${gateway.base}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'llama', messages: [{ role: 'user', content: 'Another' }] }),
    headers: { 'Content-Type': 'application/json', Prefer: 'wait=60' },
  });
  await untilWaiting(gateway, 1);
  return { answer };
}

const asked = ({ chat }: Talk) => chat.asked.map(({ messages }: any) => messages.at(-1).content);
const ended = async (client: LiveClient, nth = 1) => (await client.event('response.done', nth)).response;
const untilFree = (talk: Talk) => until('the slot is free', async () => isFree(talk));

test('nobody comes between the end of a turn and its answer', async () => {
  const { script, go } = gated();
  await using talk = await startTalk(script);
  await using client = await talkTo(talk, written());
  const holders: unknown[] = [];
  talk.chat.answer((res, body) => {
    const { holder, requestId } = talk.gateway.app.slot.status();
    holders.push([holder, requestId]);
    return says('Hi.')(res, body);
  });
  say(client);
  await client.event('input_audio_buffer.committed');
  const another = await anotherWaits(talk);
  go();
  const response = await ended(client);
  assert.equal(response.status, 'completed');
  assert.equal((await another.answer).status, 200);
  assert.deepEqual(asked(talk), ['Hello there.', 'Another']);
  assert.deepEqual(holders[0], ['llm', response.id]);
  await untilFree(talk);
});

test('a turn that is not answered gives the slot back at once', async () => {
  const silent = written({ turn_detection: { type: 'server_vad', create_response: false } });
  for (const [name, text, session] of [
    ['nothing was said', ' ', written()],
    ['nobody asked for answers', ' Hello.', silent],
  ] as const) {
    const { script, go } = gated(text);
    await using talk = await startTalk(script);
    await using client = await talkTo(talk, session);
    say(client);
    await client.event('input_audio_buffer.committed');
    const another = await anotherWaits(talk);
    go();
    await client.event(COMPLETED);
    assert.equal((await another.answer).status, 200, name);
    assert.deepEqual(asked(talk), ['Another'], name);
    await untilFree(talk);
  }
});

test('turns that follow each other closely get one answer, and none waits for itself', async () => {
  const { script, go } = gated();
  await using talk = await startTalk(script);
  await using client = await talkTo(talk, written());
  for (const _ of ['one', 'two', 'three']) say(client);
  await client.event('input_audio_buffer.committed', 3);
  const startedAt = performance.now();
  go();
  await client.event(COMPLETED, 3);
  await ended(client);
  assert(performance.now() - startedAt < 5000);
  const last = talk.chat.asked.at(-1).messages.filter(({ role }: any) => role === 'user');
  assert.deepEqual([last.length, talk.chat.asked.length], [3, 1]);
});

test('who goes on speaking before the text of a turn is there gets one answer, to all of it', async () => {
  const { script, go } = gated();
  await using talk = await startTalk(script);
  await using client = await talkTo(talk, written());
  await speakOn(client, go);
  client.speak(silence(1));
  assert.equal((await ended(client)).status, 'completed');
  assert.equal(talk.chat.asked.length, 1);
  assert.equal(talk.chat.asked[0].messages.length, 2);
});

test('a response that a client asks for reads what was said before, which is not answered once more', async () => {
  const { script, go } = gated();
  await using talk = await startTalk(script);
  await using client = await talkTo(talk, written());
  say(client);
  await client.event('input_audio_buffer.committed');
  client.send({ type: 'response.create' });
  await client.event('response.created');
  go();
  await ended(client);
  write(client, 'One more thing.');
  await client.event('conversation.item.done', 3);
  assert.equal(client.events.filter(({ type }) => type === 'response.created').length, 1);
});

test('what somebody began to say and took back keeps no answer waiting', async () => {
  const { script, go } = gated();
  await using talk = await startTalk(script);
  await using client = await talkTo(talk, written());
  await speakOn(client, go);
  client.send({ type: 'input_audio_buffer.clear' });
  assert.equal((await ended(client)).status, 'completed');
});

test('a turn that cannot have the slot in time fails with slot_busy, and the next one is answered', async () => {
  await using talk = await startTalk({ env: { SVC_LIVE_WAIT_SEC: '0.2' } });
  await using client = await talkTo(talk, written());
  const hold = talk.gateway.app.slot.take('llm', 'other');
  say(client);
  assert.equal((await client.event(FAILED)).error.code, 'slot_busy');
  const { status, status_details: details } = await ended(client);
  assert.deepEqual([status, details.error.code], ['failed', 'slot_busy']);
  assert.equal(talk.gateway.app.slot.status().requestId, 'other');
  hold[Symbol.dispose]();
  say(client);
  assert.equal((await ended(client, 2)).status, 'completed');
});

test('whoever ends a turn frees the slot: its client, the operator, a daemon that fails', async () => {
  const faults: [name: string, fault: (talk: Talk, client: LiveClient) => void][] = [
    ['the client leaves', (_talk, client) => client.socket.terminate()],
    ['the operator stops it', (talk) => void talk.gateway.app.slot.stopHolder()],
    ['the daemon dies', (talk) => void talk.chat[Symbol.asyncDispose]()],
  ];
  for (const [name, fault] of faults) {
    const { script, go } = gated();
    await using talk = await startTalk(script);
    await using client = await talkTo(talk, written());
    talk.chat.answer((res) => void res.write(chunk({ content: 'Wait' })));
    say(client);
    go();
    await client.event('response.output_text.delta');
    assert(!isFree(talk), name);
    fault(talk, client);
    await untilFree(talk);
  }
});
