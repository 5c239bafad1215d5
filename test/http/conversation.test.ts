/** Conversations over the realtime protocol: what is said is answered in text and speech, interrupted, and may fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './harness.ts';
import { COMPLETED, connectLive, silence } from './realtime.ts';
import {
  AUDIO,
  chunk,
  DONE,
  isFree,
  say,
  says,
  script,
  spokenBytes,
  startTalk,
  TEXT,
  talkTo,
  types,
  USAGE,
  write,
} from './talk.ts';

test('what is said is answered in speech, event by event as clients expect it', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, {
    instructions: 'Be short.',
    audio: { output: { voice: 'nova' } },
  });
  const { session } = await client.event('session.updated');
  assert.deepEqual(
    [session.type, session.object, session.model, session.output_modalities, session.audio.output.voice],
    ['realtime', 'realtime.session', 'gpt-realtime', ['audio'], 'nova'],
  );
  assert.equal(session.audio.input.turn_detection.interrupt_response, true);
  say(client);
  const { response } = await client.event('response.done');
  await client.event('rate_limits.updated');
  const seen = types(client).filter((type) => !/delta$|^session/.test(type));
  assert.deepEqual(seen, [
    'input_audio_buffer.speech_started',
    'input_audio_buffer.speech_stopped',
    'input_audio_buffer.committed',
    'conversation.item.added',
    'conversation.item.done',
    COMPLETED,
    'response.created',
    'response.output_item.added',
    'conversation.item.added',
    'response.content_part.added',
    'response.output_audio.done',
    'response.output_audio_transcript.done',
    'response.content_part.done',
    'conversation.item.done',
    'response.output_item.done',
    'response.done',
    'rate_limits.updated',
  ]);
  assert.deepEqual([response.status, response.status_details], ['completed', null]);
  assert.deepEqual(response.output[0].content, [
    { type: 'output_audio', transcript: 'Hello there. How are you?' },
  ]);
  assert.deepEqual(
    [
      response.usage.input_tokens,
      response.usage.output_tokens,
      response.usage.input_token_details.cached_tokens,
    ],
    [20, 7, 3],
  );
  assert.deepEqual(talk.chat.asked[0].messages, [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: 'Hello there.' },
  ]);
  assert.equal(talk.chat.asked[0].model, 'llama');
  assert.deepEqual(
    talk.speech.asked.map(({ input, voice }) => [input, voice]),
    [
      ['Hello there.', 'nova'],
      ['How are you?', 'nova'],
    ],
  );
  const seconds = spokenBytes(client) / 48_000;
  assert(Math.abs(seconds - 0.05 * 24) < 0.02, `${seconds} s of 24 kHz`);
  assert(isFree(talk));
  assert.deepEqual(
    talk.gateway.exchanges.map(({ category, status, model }) => [category, status, model]).slice(-2),
    [
      ['llm', 200, 'llama'],
      ['tts', 200, 'tts'],
    ],
  );
  for (const event of client.events) assert(event.event_id, event.type);
});

test('text is answered with text when a client asks, and the conversation goes on', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  for (const [i, question] of ['One?', 'Two?'].entries()) {
    talk.chat.answer(says(`Answer ${i}.`));
    write(client, question);
    client.send({ type: 'response.create', response: { metadata: { id: `${i}` } } });
    const { response } = await client.event('response.done', i + 1);
    assert.deepEqual([response.status, response.metadata], ['completed', { id: `${i}` }]);
    assert.deepEqual(response.output[0].content, [{ type: 'output_text', text: `Answer ${i}.` }]);
  }
  assert.equal(talk.speech.asked.length, 0);
  assert.deepEqual(
    talk.chat.asked[1].messages.map(({ content }: any) => content),
    ['One?', 'Answer 0.', 'Two?'],
  );
});

test('speech that begins ends the answer, whose text is what was heard of it', async () => {
  const texts = [' Tell me a story.', ' Stop.', ' Thanks.'];
  await using talk = await startTalk(script(texts));
  await using client = await talkTo(talk, {
    audio: { input: { transcription: { model: 'whisper-1', delay: 'xhigh' } } },
  });
  talk.chat.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write(chunk({ content: `${'Once upon a time there was a very long story. '.repeat(4)} And` }));
  });
  say(client);
  await client.event(AUDIO);
  talk.chat.answer(says('Fine.'));
  say(client);
  const { response } = await client.event('response.done');
  assert.deepEqual(
    [response.status, response.status_details],
    ['cancelled', { type: 'cancelled', reason: 'turn_detected' }],
  );
  const started = client.events.findIndex(
    ({ type }, i) =>
      type === 'input_audio_buffer.speech_started' && i > client.events.findIndex((e) => e.type === AUDIO),
  );
  const done = client.events.findIndex(({ type }) => type === 'response.done');
  assert(done > started && started >= 0);
  assert.equal(talk.chat.broken(), 1, 'the call of the daemon was closed');
  assert.equal((await client.event('response.done', 2)).response.status, 'completed');
  const [, answer] = talk.chat.asked[1].messages;
  assert.equal(talk.chat.asked[1].messages.at(-1).content, 'Stop.');
  if (answer.role === 'assistant') assert(answer.content.length < 150, answer.content);
  assert(isFree(talk));
});

test('a tool is called, and its output goes back to the model', async () => {
  await using talk = await startTalk();
  const tools = [
    { type: 'function', name: 'clock', description: 'The time', parameters: { type: 'object' } },
  ];
  await using client = await talkTo(talk, { ...TEXT, tools });
  talk.chat.answer((res) => {
    const call = (rest: object, args: string) => ({
      tool_calls: [
        { index: 0, ...rest, function: { ...('id' in rest && { name: 'clock' }), arguments: args } },
      ],
    });
    res.write(chunk(call({ id: 'call_1', type: 'function' }, '{"zo')));
    res.write(chunk(call({}, 'ne":"UTC"}')));
    res.end(chunk({}, 'tool_calls') + USAGE + DONE);
  });
  write(client, 'What time is it?');
  client.send({ type: 'response.create' });
  const call = await client.event('response.function_call_arguments.done');
  assert.deepEqual([call.name, call.call_id, call.arguments], ['clock', 'call_1', '{"zone":"UTC"}']);
  const { item } = await client.event('response.output_item.done');
  assert.deepEqual([item.type, item.status, item.name], ['function_call', 'completed', 'clock']);
  await client.event('response.done');
  talk.chat.answer(says('It is noon.'));
  client.send({
    type: 'conversation.item.create',
    item: { type: 'function_call_output', call_id: 'call_1', output: '12:00' },
  });
  client.send({ type: 'response.create' });
  await client.event('response.done', 2);
  const [, assistant, tool] = talk.chat.asked[1].messages;
  assert.deepEqual(assistant.tool_calls[0].function, { name: 'clock', arguments: '{"zone":"UTC"}' });
  assert.deepEqual(tool, { role: 'tool', tool_call_id: 'call_1', content: '12:00' });
  assert.equal(talk.chat.asked[0].tools[0].function.name, 'clock');
});

test('a client gets an id of a call that is no longer than OpenAI’s, and sends it back', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  talk.chat.answer((res) => {
    const id = 'chatcmpl-tool-0123456789abcdef0123456789abcdef'; // as vLLM makes them
    res.end(
      chunk({ tool_calls: [{ index: 0, id, function: { name: 'clock', arguments: '{}' } }] }, 'tool_calls'),
    );
  });
  write(client, 'What time is it?');
  client.send({ type: 'response.create' });
  const { call_id } = await client.event('response.function_call_arguments.done');
  assert.match(call_id, /^call_.{1,27}$/);
  await client.event('response.done');
  client.send({
    type: 'conversation.item.create',
    item: { type: 'function_call_output', call_id, output: 'noon' },
  });
  talk.chat.answer(says('It is noon.'));
  client.send({ type: 'response.create' });
  await client.event('response.done', 2);
  const [, assistant, tool] = talk.chat.asked[1].messages;
  assert.equal(assistant.tool_calls[0].id, call_id);
  assert.deepEqual(tool, { role: 'tool', tool_call_id: call_id, content: 'noon' });
});

test('a failing upstream is a failed response, and the session goes on', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  const failures: [string, () => void, string][] = [
    ['an error', () => talk.chat.answer((res) => void res.writeHead(500).end('no')), 'upstream_error'],
    ['rubbish', () => talk.chat.answer((res) => void res.end('data: {{{\n\n')), 'upstream_failed'],
    [
      'it breaks off',
      () => talk.chat.answer((res) => void res.end(chunk({ content: 'I am' }))),
      'upstream_failed',
    ],
    [
      'it dies',
      () =>
        talk.chat.answer((res) => {
          res.write(chunk({ content: 'I am' }));
          res.destroy();
        }),
      'upstream_failed',
    ],
    [
      'speech fails',
      () => {
        talk.chat.answer(says('Hello.'));
        talk.speech.answer((res) => void res.writeHead(400).end('{"error":"no such voice"}'));
      },
      'upstream_error',
    ],
    ['no audio', () => talk.speech.answer((res) => void res.end('none')), 'upstream_failed'],
  ];
  for (const [i, [name, prepare, code]] of failures.entries()) {
    prepare();
    client.send({ type: 'response.create' });
    const { response } = await client.event('response.done', i + 1);
    assert.deepEqual([response.status, response.status_details.error.code], ['failed', code], name);
    for (const item of response.output) assert.equal(item.status, 'incomplete', name);
    assert(isFree(talk), name);
  }
  await talk.chat[Symbol.asyncDispose]();
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done', failures.length + 1);
  assert.match(response.status_details.error.code, /upstream_unreachable|upstream_failed/);
  assert.equal(client.closed(), null);
});

test('one answer at a time, which a client can cancel; errors name the event at fault', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  talk.chat.answer((res) => void res.write(chunk({ content: 'Wait' })));
  client.send({ type: 'response.create' });
  await client.event('response.output_text.delta');
  client.send({ type: 'response.create', event_id: 'mine' });
  const { error } = await client.event('error');
  assert.deepEqual([error.code, error.event_id], ['conversation_already_has_active_response', 'mine']);
  client.send({ type: 'response.cancel' });
  const { response } = await client.event('response.done');
  assert.deepEqual(response.status_details, { type: 'cancelled', reason: 'client_cancelled' });
  await until('the call is closed', async () => talk.chat.broken() === 1);
  client.send({ type: 'response.cancel' });
  assert.equal((await client.event('error', 2)).error.code, 'response_cancel_not_active');
  assert(isFree(talk));
});

test('items are created in places, retrieved, truncated and deleted', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  const create = (id: string, after?: string) =>
    client.send({
      type: 'conversation.item.create',
      ...(after && { previous_item_id: after }),
      item: { id, type: 'message', role: 'system', content: [{ type: 'input_text', text: id }] },
    });
  create('b');
  create('a', 'root');
  create('c', 'b');
  const added = await client.event('conversation.item.added', 3);
  assert.deepEqual([added.previous_item_id, added.item.id], ['b', 'c']);
  create('c');
  assert.equal((await client.event('error')).error.code, 'item_create_duplicate_item_id');
  create('d', 'x');
  assert.equal((await client.event('error', 2)).error.code, 'item_create_invalid_previous_item_id');
  client.send({ type: 'conversation.item.delete', item_id: 'b' });
  await client.event('conversation.item.deleted');
  client.send({ type: 'conversation.item.retrieve', item_id: 'b' });
  assert.equal((await client.event('error', 3)).error.code, 'item_retrieve_invalid_item_id');
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  assert.deepEqual(
    talk.chat.asked[0].messages.map(({ content }: any) => content),
    ['a', 'c'],
  );
  const [{ id }] = response.output;
  client.send({ type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 600 });
  assert.equal((await client.event('conversation.item.truncated')).audio_end_ms, 600);
  client.send({ type: 'conversation.item.retrieve', item_id: id });
  const { item } = await client.event('conversation.item.retrieved');
  assert.equal(item.content[0].transcript, 'Hello there.');
});

test('what a client says to have heard counts, also when the answer that it cancels has not ended', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  talk.chat.answer((res) => void res.write(chunk({ content: 'Hello there. Hello there. And' })));
  client.send({ type: 'response.create' });
  const { item_id: id } = await client.event(AUDIO);
  await until('all is spoken', async () => spokenBytes(client) / 48_000 > 1.1);
  client.send({ type: 'response.cancel' });
  client.send({ type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 600 });
  assert.equal((await client.event('response.done')).response.status, 'cancelled');
  assert.equal((await client.event('conversation.item.truncated')).audio_end_ms, 600);
  client.send({ type: 'conversation.item.retrieve', item_id: id });
  const { item } = await client.event('conversation.item.retrieved');
  assert.equal(item.content[0].transcript, 'Hello there.');
});

test('what is null in response.create is as in the session', async () => {
  await using talk = await startTalk();
  const voice = 'alloy';
  await using client = await talkTo(talk, {
    ...TEXT,
    instructions: 'Be short.',
    audio: { output: { voice } },
  });
  write(client, 'Hello');
  const nothing = { output_modalities: null, instructions: null, tools: null, tool_choice: null };
  const output = { voice: null, format: null };
  client.send({
    type: 'response.create',
    response: { ...nothing, max_output_tokens: null, audio: { output } },
  });
  const { response } = await client.event('response.done');
  assert.deepEqual([response.output_modalities, response.audio.output.voice], [['text'], voice]);
  assert.deepEqual(talk.chat.asked[0].messages[0], { role: 'system', content: 'Be short.' });
});

test('a response tells the format and the voice that it has itself', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, { audio: { output: { voice: 'nova' } } });
  const output = { format: { type: 'audio/pcmu' }, voice: 'alloy' };
  client.send({ type: 'response.create', response: { audio: { output } } });
  const { response } = await client.event('response.created');
  assert.deepEqual(response.audio.output, output);
  await client.event('response.done');
  assert(Math.abs(spokenBytes(client) / 8000 - 0.05 * 24) < 0.02);
});

test('an answer out of band reads what it is given, and leaves the conversation as it was', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk, TEXT);
  write(client, 'Secret');
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Classify' }] }];
  client.send({
    type: 'response.create',
    response: { conversation: 'none', input, instructions: 'One word.' },
  });
  const { response } = await client.event('response.done');
  assert.equal(response.conversation_id, null);
  assert.deepEqual(
    talk.chat.asked[0].messages.map(({ content }: any) => content),
    ['One word.', 'Classify'],
  );
  assert.equal(client.events.filter(({ type }) => type === 'conversation.item.added').length, 1);
});

test('thoughts and Markdown are not read aloud', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  talk.chat.answer(
    says(
      '<thi',
      'nk>Hm.</think>\n# Plan\n\nUse **two** [eggs](http://x.y/z), and',
      ' `salt`.\n```js\nlet x;\n```\nGood luck!',
    ),
  );
  client.send({ type: 'response.create' });
  await client.event('response.done');
  assert.deepEqual(
    talk.speech.asked.map(({ input }) => input),
    ['Plan', 'Use two eggs, and salt.', 'Good luck!'],
  );
});

test('a busy slot is waited for, and then the response fails with slot_busy', async () => {
  await using talk = await startTalk({ env: { SVC_LIVE_WAIT_SEC: '0.2' } });
  await using client = await talkTo(talk, TEXT);
  const hold = talk.gateway.app.slot.take('llm', 'other');
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  assert.deepEqual([response.status, response.status_details.error.code], ['failed', 'slot_busy']);
  hold[Symbol.dispose]();
  client.send({ type: 'response.create' });
  assert.equal((await client.event('response.done', 2)).response.status, 'completed');
});

test('a client that leaves in the middle of an answer leaves nothing behind', async () => {
  await using talk = await startTalk();
  const client = await talkTo(talk);
  talk.chat.answer((res) => void res.write(chunk({ content: 'Wait. For' })));
  client.send({ type: 'response.create' });
  await client.event(AUDIO);
  client.socket.terminate();
  await until('the call is closed', async () => talk.chat.broken() === 1 && isFree(talk));
});

test('a client of the beta gets the names of the beta', async () => {
  await using talk = await startTalk();
  await using client = await connectLive(talk.gateway, {
    query: '?model=gpt-4o-realtime-preview',
    headers: { 'OpenAI-Beta': 'realtime=v1' },
  });
  const session = { modalities: ['text', 'audio'], voice: 'alloy', output_audio_format: 'g711_ulaw' };
  client.send({ type: 'session.update', session });
  const shown = (await client.event('session.updated')).session;
  assert.deepEqual(
    [shown.object, shown.voice, shown.output_audio_format],
    ['realtime.session', 'alloy', 'g711_ulaw'],
  );
  write(client, 'Hi');
  client.send({ type: 'response.create' });
  await client.event('response.done');
  const seen = new Set(client.events.map(({ type }) => type));
  for (const type of ['response.audio.delta', 'response.audio_transcript.done', 'conversation.item.created'])
    assert(seen.has(type), type);
  for (const type of seen) assert(!/output_(audio|text)|conversation\.item\.(added|done)/.test(type), type);
  const bytes = client.events.reduce(
    (sum, { type, delta }) =>
      sum + (type === 'response.audio.delta' ? Buffer.from(delta, 'base64').length : 0),
    0,
  );
  assert(Math.abs(bytes / 8000 - 1.2) < 0.02, `${bytes / 8000} s of mu-law`);
});

test('the echo of an answer does not interrupt it, and a person does', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  talk.chat.answer((res) => void res.write(chunk({ content: `${'word '.repeat(50)}. And` })));
  client.send({ type: 'response.create' });
  await client.event(AUDIO);
  const echo = Float32Array.from({ length: 16_000 }, (_, i) => 0.027 * Math.sin((i * 22_050) / 16_000 / 7));
  // As a microphone does: each piece when it is heard, which is the time that the echo is told by.
  for (let at = 0; at < echo.length; at += 1600) {
    await sleep(100);
    client.speak(echo.subarray(at, at + 1600));
  }
  client.speak(silence(0.1));
  write(client, 'Still here?');
  await client.event('conversation.item.done');
  const isHeard = () => client.events.some(({ type }) => type === 'input_audio_buffer.speech_started');
  assert(!isHeard());
  say(client);
  assert.equal((await client.event('response.done')).response.status_details.reason, 'turn_detected');
  assert(isHeard());
});

test('a talk whose gateway does not start leaves no server open', async () => {
  const servers = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
  await until('those of other tests are closed', () => servers() === 0);
  await assert.rejects(startTalk({ env: { SVC_PORT: 'none' } }), /SVC_PORT/);
  await until('its own are closed', () => servers() === 0);
});

test('what would be the echo of an answer is heard once its player has stopped', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  talk.chat.answer(says(`${'A long answer '.repeat(20)}.`));
  say(client);
  const { response } = await client.event('response.done');
  const common = { item_id: response.output[0].id, content_index: 0 };
  client.send({ type: 'conversation.item.truncate', ...common, audio_end_ms: 100 });
  await client.event('conversation.item.truncated');
  const before = client.events.length;
  const isHeard = () =>
    client.events.slice(before).some(({ type }) => type === 'input_audio_buffer.speech_started');
  // The tone that the speech server makes of every text, as fast as it is heard.
  const same = Float32Array.from({ length: 800 }, (_, i) => 0.2 * Math.sin((22_050 / 16_000 / 7) * i));
  for (let i = 0; i < 100 && !isHeard(); i += 1) {
    client.speak(same);
    await sleep(50);
  }
  assert(isHeard());
});
