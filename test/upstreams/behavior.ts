/**
 * Tests what a client may expect of the two upstreams, directly or through a gateway. Every call goes through the
 * official OpenAI package, or through its transport where the package knows no such endpoint.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { until } from '../until.ts';

const MODEL = 'tiny';
const MESSAGES = [{ role: 'user' as const, content: 'Say something.' }];
const SAMPLE_RATE = 24_000;
/** The text is much longer than any buffer on the way: about 8 minutes of speech, 22 MB. */
const LONG_TEXT = 'This is a sentence of some length, said for the test. '.repeat(150);

export interface Stats {
  running: number;
  completed: number;
  aborted: number;
  /** Number of tokens made so far; only the chat daemon has it. */
  tokens?: number;
}

/** @param direct addresses of the upstreams themselves, for their `/stats`, when the bases are those of a gateway */
export function testUpstreams(
  name: string,
  speechBase: string,
  chatBase: string,
  direct: { speech: string; chat: string } = { speech: speechBase, chat: chatBase },
): void {
  const { speech: speechAt, chat: chatAt } = direct;
  testSpeech(`speech, ${name}`, clientOf(speechBase), () => statsOf(speechAt));
  testChat(`chat, ${name}`, clientOf(chatBase), () => statsOf(chatAt));
}

function testSpeech(where: string, openai: OpenAI, stats: () => Promise<Stats>): void {
  test(`${where}: an answer is one wav`, async () => {
    const response = await openai.audio.speech.create({
      model: 'tts',
      voice: 'alloy',
      input: 'Hello there.',
    });
    assert.match(response.headers.get('content-type') ?? '', /^audio\/wav/);
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.equal(bytes.readUInt32LE(4), bytes.length - 8, 'size in the RIFF header');
    assert.equal(bytes.readUInt32LE(40), bytes.length - 44, 'size of the samples');
    assertSpeech(bytes);
  });

  test(`${where}: a stream is heard before it is finished, and ends`, async () => {
    const input = LONG_TEXT.slice(0, 2000);
    const response = await openai.post('/audio/speech/stream', { body: { input } }).asResponse();
    const chunks: Buffer[] = [];
    for await (const chunk of bodyOf(response)) chunks.push(Buffer.from(chunk));
    assert(chunks.length > 1, `${chunks.length} chunks`);
    const bytes = Buffer.concat(chunks);
    assertSpeech(bytes);
    assert(bytes.length > 60 * 2 * SAMPLE_RATE, `${bytes.length} bytes`);
  });

  test(`${where}: a slow reader holds the voice back, and one that leaves ends it`, async () => {
    const before = await stats();
    const gone = new AbortController();
    const response = await openai
      .post('/audio/speech/stream', { body: { input: LONG_TEXT }, signal: gone.signal })
      .asResponse();
    const reader = bodyOf(response)[Symbol.asyncIterator]();
    assert((await reader.next()).value.length > 0);
    await pause(1000);
    assert.equal((await stats()).running, 1, 'the upstream is held back while the client reads nothing');
    gone.abort();
    await settled(stats);
    assert.equal((await stats()).aborted, before.aborted + 1);
  });

  test(`${where}: a batch answers each of its items`, async () => {
    const items = ['One.', { input: 'Zwei.', voice: 'de' }];
    const { results } = await openai.post<{ results: { index: number; audio_data: string }[] }>(
      '/audio/speech/batch',
      { body: { items } },
    );
    assert.deepEqual(
      results.map(({ index }) => index),
      [0, 1],
    );
    for (const { audio_data } of results) assertSpeech(Buffer.from(audio_data, 'base64'));
  });

  test(`${where}: voices are registered, used, listed and deleted`, async () => {
    const voices = async () => (await openai.get<{ voices: string[] }>('/audio/voices')).voices;
    assert((await voices()).includes('alloy'));
    await openai.post('/audio/voices', { body: { name: 'by-json', base: 'de' } });
    const form = new FormData();
    form.set('name', 'by-form');
    form.set('base', 'fr-fr');
    form.set('audio_sample', new Blob([new Uint8Array(100_000)]), 'sample.wav');
    await openai.post('/audio/voices', { body: form });
    for (const voice of ['by-json', 'by-form']) {
      assert((await voices()).includes(voice), voice);
      const response = await openai.audio.speech.create({ model: 'tts', voice, input: 'Hello.' });
      assertSpeech(Buffer.from(await response.arrayBuffer()));
      await openai.delete(`/audio/voices/${voice}`);
      assert(!(await voices()).includes(voice), voice);
    }
  });

  test(`${where}: its own errors reach the client`, async () => {
    await assert.rejects(openai.delete('/audio/voices/nobody'), { status: 404, code: 'voice_not_found' });
    const ask = { model: 'tts', voice: 'nobody', input: 'Hello.' };
    await assert.rejects(openai.audio.speech.create(ask), { status: 400, param: 'voice' });
    await assert.rejects(openai.audio.speech.create({ ...ask, voice: 'alloy', input: '' }), {
      status: 400,
      param: 'input',
    });
  });
}

function testChat(where: string, openai: OpenAI, stats: () => Promise<Stats>): void {
  const { completions } = openai.chat;

  test(`${where}: its model is listed`, async () => {
    const ids = [];
    for await (const model of openai.models.list()) ids.push(model.id);
    assert(ids.includes(MODEL), ids.join());
  });

  test(`${where}: an answer ends at its limit or by itself`, async () => {
    const answer = await completions.create({ model: MODEL, messages: MESSAGES, max_tokens: 12 });
    assert.equal(answer.object, 'chat.completion');
    assert.equal(answer.choices[0]?.finish_reason, 'length');
    assert.equal(answer.choices[0]?.message.role, 'assistant');
    assert.equal(answer.choices[0]?.message.content?.trim().split(' ').length, 12);
    assert.equal(answer.usage?.completion_tokens, 12);
    assert.equal(answer.usage.total_tokens, 12 + answer.usage.prompt_tokens);
    const unbounded = await completions.create({ model: MODEL, messages: MESSAGES });
    assert.equal(unbounded.choices[0]?.finish_reason, 'stop');
  });

  test(`${where}: a stream says what the answer says`, async () => {
    const ask = { model: MODEL, messages: MESSAGES, max_tokens: 200, seed: 7 };
    const answer = await completions.create(ask);
    const stream = await completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert(chunks.every(({ object, id }) => object === 'chat.completion.chunk' && id === chunks[0]?.id));
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    assert.equal(deltas[0]?.role, 'assistant');
    const text = deltas.map(({ content }) => content ?? '').join('');
    assert.equal(text, answer.choices[0]?.message.content);
    assert.doesNotMatch(text, /\uFFFD/);
    assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, 'length');
    assert.equal(chunks.at(-1)?.usage?.completion_tokens, 200);
  });

  test(`${where}: a tool is called, and its result is read`, async () => {
    const tool = { type: 'function' as const, function: { name: 'clock', parameters: { type: 'object' } } };
    const asked = { model: MODEL, stream: true as const, tools: [tool] };
    const calling = await openai.chat.completions.create({
      ...asked,
      messages: MESSAGES,
      tool_choice: 'required',
    });
    let id = '';
    let json = '';
    for await (const { choices } of calling)
      for (const call of choices[0]?.delta.tool_calls ?? []) {
        id ||= call.id ?? '';
        json += call.function?.arguments ?? '';
      }
    const call = { id, type: 'function' as const, function: { name: 'clock', arguments: json } };
    const result = { role: 'tool' as const, tool_call_id: id, content: 'noon' };
    const messages = [...MESSAGES, { role: 'assistant' as const, content: null, tool_calls: [call] }, result];
    const answering = await openai.chat.completions.create({ ...asked, messages, max_tokens: 5 });
    let text = '';
    for await (const { choices } of answering) text += choices[0]?.delta.content ?? '';
    assert.equal(typeof JSON.parse(json), 'object');
    assert.match(text, /\S/);
  });

  test(`${where}: a client that leaves a stream stops the generation`, async () => {
    const before = await stats();
    const stream = await completions.create({
      model: MODEL,
      messages: MESSAGES,
      max_tokens: 1e6,
      stream: true,
    });
    let seen = 0;
    for await (const _chunk of stream) if (++seen === 20) break;
    assert.equal(seen, 20);
    await assertStopped(stats, before);
  });

  test(`${where}: a client that leaves before the answer stops the generation`, async () => {
    const before = await stats();
    const gone = new AbortController();
    const answer = completions.create(
      { model: MODEL, messages: MESSAGES, max_tokens: 1e6 },
      { signal: gone.signal },
    );
    const rejected = assert.rejects(answer, OpenAI.APIUserAbortError);
    await until('the generation runs', async () => (await stats()).running === 1);
    gone.abort();
    await rejected;
    await assertStopped(stats, before);
  });

  test(`${where}: its own errors reach the client`, async () => {
    await assert.rejects(completions.create({ model: 'nope', messages: MESSAGES }), {
      status: 404,
      code: 'model_not_found',
    });
    await assert.rejects(completions.create({ model: MODEL, messages: [] }), {
      status: 400,
      param: 'messages',
    });
  });
}

/** Checks that the bytes are a mono 16-bit wav of more than 0.3 s that is not silent. */
function assertSpeech(bytes: Buffer): void {
  assert.equal(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 16), 'RIFFWAVEfmt ');
  assert.deepEqual(
    [bytes.readUInt16LE(20), bytes.readUInt16LE(22), bytes.readUInt32LE(24), bytes.readUInt16LE(34)],
    [1, 1, SAMPLE_RATE, 16],
  );
  const samples = new Int16Array(Uint8Array.from(bytes.subarray(44)).buffer);
  assert(samples.length > 0.3 * SAMPLE_RATE, `${samples.length} samples`);
  const energy = samples.reduce((sum, sample) => sum + sample * sample, 0);
  const rms = Math.sqrt(energy / samples.length);
  assert(rms > 300, `it is silent: ${rms}`);
}

async function assertStopped(stats: () => Promise<Stats>, before: Stats): Promise<void> {
  await settled(stats);
  const { tokens, aborted } = await stats();
  assert.equal(aborted, before.aborted + 1);
  await pause(100);
  assert.equal((await stats()).tokens, tokens, 'it still makes tokens');
}

const clientOf = (base: string) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0 });

const statsOf = async (base: string) => (await (await fetch(`${base}/stats`)).json()) as Stats;

const settled = (stats: () => Promise<Stats>) =>
  until('nothing runs', async () => (await stats()).running === 0);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function bodyOf(response: Response): AsyncIterable<Uint8Array> {
  assert(response.body);
  return response.body;
}
