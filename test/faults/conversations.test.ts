/** Conversations whose chat daemon or speech upstream lies, breaks off, or does not come to an end. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { silence } from '../http/realtime.ts';
import {
  type Answer,
  AUDIO,
  chunk,
  DONE,
  isFree,
  says,
  startTalk,
  TEXT,
  talkTo,
  write,
} from '../http/talk.ts';
import { until } from '../until.ts';
import { wav } from '../wav.ts';

const stream =
  (...pieces: string[]): Answer =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const piece of pieces) res.write(piece);
  };
const whole =
  (...pieces: string[]): Answer =>
  (res, body) => {
    stream(...pieces)(res, body);
    res.end();
  };
const whileOpen = (res: ServerResponse, write: () => void) => {
  const timer = setInterval(write, 5);
  res.on('close', () => clearInterval(timer));
};
const forEver =
  (piece: string): Answer =>
  (res, body) => {
    stream(chunk({ role: 'assistant' }))(res, body);
    whileOpen(res, () => res.write(piece));
  };
const call = (index: number, args: string, begins: object = {}) =>
  chunk({ tool_calls: [{ index, ...begins, function: { arguments: args, ...begins } }] });

test('a daemon that sends bytes but writes nothing is given up as one that is silent', async () => {
  await using talk = await startTalk({ env: { SVC_LLM_TIMEOUT_SEC: '1' } });
  await using client = await talkTo(talk, TEXT);
  const endless = {
    reasoning: chunk({ reasoning_content: 'Hm. ' }),
    'a thought': chunk({ content: '<think>Hm. ' }),
    comments: ': still here\n\n',
    'empty chunks': chunk({}),
  };
  for (const [i, [name, piece]] of Object.entries(endless).entries()) {
    talk.chat.answer(forEver(piece));
    client.send({ type: 'response.create' });
    const { response } = await client.event('response.done', i + 1);
    assert.equal(response.status_details.error?.code, 'upstream_timeout', name);
    assert(isFree(talk), name);
  }
});

test('an answer that has ended is complete, also where its daemon leaves the connection open', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  talk.chat.answer(stream(chunk({ content: 'Hi.' }), chunk({}, 'stop')));
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  assert.deepEqual([response.status, response.output[0].content[0].text], ['completed', 'Hi.']);
  assert(isFree(talk));
});

test('what a daemon breaks off is a failed response, which says what the daemon says', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  const half = chunk({ content: 'Half of' });
  const broken: [Answer, RegExp][] = [
    [whole(half, chunk({}, 'abort'), DONE), /broken off \(abort\)/],
    [whole(half, chunk({}, 'error'), DONE), /broken off \(error\)/],
    [whole(half, 'error: {"code":500,"message":"out of context"}\n\n'), /says: out of context/],
    [whole(half, 'event: error\ndata: {"message":"out of context"}\n\n'), /says: out of context/],
    [whole('{"error":{"message":"no model"}}'), /says: no model/],
    [(res) => void res.setHeader('Content-Type', 'application/json').end('{"detail":"no"}'), /says: no$/],
    [forEver(call(0, '', { name: 'f' })), /too many tools/],
  ];
  for (const [i, [answer, why]] of broken.entries()) {
    talk.chat.answer(answer);
    client.send({ type: 'response.create' });
    const { response } = await client.event('response.done', i + 1);
    assert.equal(response.status, 'failed', String(why));
    assert.match(response.status_details.error.message, why);
  }
});

test('the pieces of several calls that come in turn stay apart', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  talk.chat.answer(
    whole(
      call(0, '', { id: 'a', name: 'f' }),
      call(1, '', { id: 'b', name: 'g' }),
      ...[call(0, '{"x":'), call(1, '{"y":'), call(0, '1}'), call(1, '2}')],
      chunk({}, 'tool_calls'),
    ),
  );
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  assert.deepEqual(
    response.output.map(({ name, arguments: args }: Record<string, string>) => [name, args]),
    [
      ['f', '{"x":1}'],
      ['g', '{"y":2}'],
    ],
  );
});

test('speech that breaks off or does not come to an end is a failed response', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  talk.chat.answer(says('Hi.'));
  const second = wav(new Int16Array(24_000), 24_000);
  const broken: [Answer, RegExp][] = [
    [
      (res) => {
        // Neither a length nor chunks: the end of the connection ends the answer.
        res.socket?.end(
          `HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n\r\n${second.toString('latin1', 0, 9000)}`,
          'latin1',
        );
      },
      /broke off/,
    ],
    [
      (res) => {
        res.writeHead(200, { 'Content-Type': 'audio/pcm' });
        whileOpen(res, () => res.write(second));
      },
      /does not come to an end/,
    ],
  ];
  for (const [i, [answer, why]] of broken.entries()) {
    talk.speech.answer(answer);
    client.send({ type: 'response.create' });
    const { response } = await client.event('response.done', i + 1);
    assert.match(response.status_details?.error?.message, why);
    assert(isFree(talk));
  }
});

test('a client that reads nothing of its answer loses the slot, also where it goes on sending audio', async () => {
  await using talk = await startTalk({ budgets: { live: { unreadMs: 500, closeMs: 100 } } });
  await using client = await talkTo(talk);
  talk.chat.answer(says(`${'word '.repeat(55)}end.`));
  talk.speech.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'audio/pcm' });
    res.end(Buffer.alloc(250 * 48_000)); // more than the buffers of a connection hold
  });
  client.send({ type: 'response.create' });
  await client.event(AUDIO);
  client.socket.pause();
  const speaking = setInterval(() => client.speak(silence(0.1)), 50);
  try {
    await until('the slot is free', () => isFree(talk), 30_000);
  } finally {
    clearInterval(speaking);
  }
  assert(talk.gateway.logged.some((line) => line.includes('read its events too slowly')));
});

test('the result of a call that the conversation does not have is an error, as with OpenAI', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  const item = { type: 'function_call_output', call_id: 'call_1', output: 'noon' };
  client.send({ type: 'conversation.item.create', event_id: 'mine', item });
  const { error } = await client.event('error');
  assert.deepEqual([error.code, error.event_id], ['invalid_tool_call_id', 'mine']);
  const called = { type: 'function_call', call_id: 'call_1', name: 'time', arguments: '{}' };
  for (const each of [called, item]) client.send({ type: 'conversation.item.create', item: each });
  await client.event('conversation.item.done', 2);
  client.send({ type: 'response.create' });
  await client.event('response.done');
  assert.deepEqual(
    talk.chat.asked[0].messages.map(({ role }: { role: string }) => role),
    ['assistant', 'tool'],
  );
});

test('the result of a call that is forgotten by now is no error, which some clients end their session at', async () => {
  await using talk = await startTalk({ budgets: { conversation: { items: 2 } } });
  await using client = await talkTo(talk, TEXT);
  const called = { type: 'function_call', call_id: 'call_1', name: 'time', arguments: '{}' };
  client.send({ type: 'conversation.item.create', item: called });
  for (const text of ['One.', 'Two.']) write(client, text);
  const item = { type: 'function_call_output', call_id: 'call_1', output: 'noon' };
  client.send({ type: 'conversation.item.create', item });
  await client.event('conversation.item.done', 4);
  client.send({ type: 'response.create' });
  await client.event('response.done');
  assert.deepEqual(
    talk.chat.asked[0].messages.map(({ content }: { content: string }) => content),
    ['Two.'],
    'a daemon would refuse a result without its call',
  );
  client.send({ type: 'conversation.item.create', item: { ...called, call_id: 'x'.repeat(257) } });
  assert.equal((await client.event('error')).error.param, 'item.call_id');
});

test('an input that the model could not read is an error at once: a result without its call, an item that is gone', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  const result = { type: 'function_call_output', call_id: 'call_1', output: 'noon' };
  const called = { type: 'function_call', call_id: 'call_1', name: 'time', arguments: '{}' };
  const ask = (...input: object[]) =>
    client.send({ type: 'response.create', response: { conversation: 'none', input } });
  ask(result);
  ask({ type: 'item_reference', id: 'gone' });
  await client.event('error', 2);
  assert.deepEqual(
    client.events.filter(({ type }) => type === 'error').map(({ error }) => error.code),
    ['invalid_tool_call_id', 'item_retrieve_invalid_item_id'],
  );
  ask(called, result);
  await client.event('response.done');
  assert.equal(talk.chat.asked.length, 1);
});

test('audio in an item that nobody would hear is an error, and without its words an empty message', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  const create = (part: object) =>
    client.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_audio', ...part }] },
    });
  create({ audio: 'AAAA' });
  const { error } = await client.event('error');
  assert.equal(error.param, 'item.content.0.transcript');
  assert.match(error.message, /input_audio_buffer\.append/);
  for (const part of [
    { audio: 'AAAA', transcript: 'Hi.' },
    { audio: null, transcript: null },
  ])
    create(part);
  assert.equal((await client.event('conversation.item.done')).item.content[0].transcript, 'Hi.');
  await client.event('conversation.item.done', 2);
});

test('a session stays what it is while an answer goes on, and after an update that is refused', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  const become = (type: string, more: object = {}) =>
    client.send({ type: 'session.update', session: { type, ...more } });
  talk.chat.answer((res) => void res.write(chunk({ content: 'Wait' })));
  client.send({ type: 'response.create' });
  await client.event('response.output_text.delta');
  become('transcription');
  assert.equal((await client.event('error')).error.param, 'session.type');
  client.send({ type: 'response.cancel' });
  assert.equal((await client.event('response.done')).response.status, 'cancelled');
  become('transcription');
  assert.equal((await client.event('session.updated', 2)).session.type, 'transcription');
  become('realtime', { tools: [{ type: 'mcp' }] });
  await client.event('error', 2);
  client.send({ type: 'session.update', session: {} });
  assert.equal((await client.event('session.updated', 3)).session.type, 'transcription');
});
