/**
 * Transcriptions are streamed: these tests cover the events and their order, clients that leave or are slow, and
 * failures on the way.
 */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { deltaSchema, doneSchema, warningSchema } from '../../src/http/openapi/openapi.ts';
import { startEventStream } from '../../src/http/sse.ts';
import { joinWavs } from '../wav.ts';
import { form, type Gateway, heard, json, post, startGateway, toneWav, until } from './harness.ts';

/** The audio is speech, a long pause and speech, which make two chunks. */
const twoChunks = joinWavs(toneWav(2), toneWav(4, 0), toneWav(2));

type Event = any;

async function* events(response: Response): AsyncGenerator<Event> {
  assert(response.body);
  let text = '';
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [name, data] = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      if (name?.startsWith(':')) continue;
      const event = JSON.parse(data?.replace(/^data: /, '') ?? '');
      assert.equal(name, `event: ${event.type}`);
      yield event;
    }
  }
}

async function all(response: Response): Promise<Event[]> {
  const list = [];
  for await (const event of events(response)) list.push(event);
  return list;
}

async function slotIsFree(gateway: Gateway) {
  await until('no job is left', () => gateway.running() === 0 && gateway.uploads().length === 0);
  assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
}

test('the last event for gpt-transcribe has the languages, and for other models it has none', async () => {
  await using gateway = await startGateway();
  for (const [model, languages] of [
    ['openai/gpt-transcribe', [{ code: 'en' }]],
    ['whisper-1', undefined],
  ] as const) {
    const body = form(toneWav(2), { stream: 'true', model, language: 'en' });
    assert.deepEqual((await all(await post(gateway, body))).at(-1).languages, languages, model);
  }
});

test('the joined deltas are the text of the answer as a whole, in every format', async () => {
  // What is heard tells where the audio is cut.
  await using gateway = await startGateway({
    transcribe: async (samples) => heard(` It lasts ${samples.length}.`),
  });
  const audio = joinWavs(toneWav(9), toneWav(1, 0), toneWav(70), toneWav(2, 0), toneWav(3));
  const deltas = (await all(await post(gateway, form(audio, { stream: 'true' }))))
    .filter((e) => e.type === 'transcript.text.delta')
    .map((e) => e.delta);
  assert(deltas.length > 3, `${deltas}`);
  const text = deltas.join('');
  const whole = (fields: Record<string, string>) => post(gateway, form(audio, fields));
  for (const fields of [
    { response_format: 'json' },
    { response_format: 'verbose_json' },
    { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' },
  ] as Record<string, string>[])
    assert.equal((await json(await whole(fields))).text, text, JSON.stringify(fields));
  assert.equal(await (await whole({ response_format: 'text' })).text(), `${text}\n`);
  const spoken = (lines: string) => lines.match(/It lasts \d+\./g)?.join(' ');
  for (const format of ['srt', 'vtt'])
    assert.equal(
      spoken(await (await whole({ response_format: format, diarize: 'off' })).text()),
      text,
      format,
    );
});

test('a stream is deltas, then done, and the joined deltas are the text', async () => {
  let n = 0;
  await using gateway = await startGateway({
    transcribe: async () => heard(n++ === 0 ? ' One. Two.' : ' Three.'),
  });
  const response = await post(gateway, form(twoChunks, { stream: 'true' }));
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  assert.equal(response.headers.get('cache-control'), 'no-cache');
  assert.equal(response.headers.get('x-accel-buffering'), 'no');
  assert.equal(response.headers.get('x-voxgate-model'), 'multilingual-base');
  const list = await all(response);
  const deltas = list.filter((e) => e.type === 'transcript.text.delta');
  const done = list.at(-1);
  assert.deepEqual(
    deltas.map((e) => e.delta),
    ['One.', ' Two.', ' Three.'],
  );
  assert.equal(deltas.map((e) => e.delta).join(''), done.text);
  for (const delta of deltas) deltaSchema.parse(delta);
  doneSchema.parse(done);
  assert.deepEqual(done.usage, { type: 'duration', seconds: 8 });
  assert(deltas[2].start >= 5.55 && deltas[2].end <= 8, JSON.stringify(deltas[2]));
});

test('the first delta leaves before the second chunk is transcribed', async () => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let n = 0;
  await using gateway = await startGateway({
    transcribe: async () => {
      if (n++ > 0) await gate;
      return heard(' Text.');
    },
  });
  const stream = events(await post(gateway, form(twoChunks, { stream: '1' })));
  assert.equal((await stream.next()).value.delta, 'Text.');
  release();
  assert.equal((await stream.next()).value.delta, ' Text.');
  assert.equal((await stream.next()).value.type, 'transcript.text.done');
});

test('a model that does not stream says so, then gives its whole text as one delta, then is done', async () => {
  let n = 0;
  await using gateway = await startGateway({
    installed: ['european', 'voice-activity'],
    transcribe: async () => heard(n++ === 0 ? ' One. Two.' : ' Three.'),
  });
  const fields = { model: 'european', stream: 'true', 'include[]': 'logprobs' };
  const [warning, delta, done, ...more] = await all(await post(gateway, form(twoChunks, fields)));
  assert.equal(n, 2, 'two chunks');
  assert.deepEqual(more, []);
  warningSchema.parse(warning);
  assert.deepEqual([warning.type, warning.code], ['warning', 'streaming_unsupported']);
  assert.match(warning.message, /^european does not stream/);
  deltaSchema.parse(delta);
  assert.equal(delta.delta, 'One. Two. Three.');
  assert.equal(delta.logprobs.length, 3);
  doneSchema.parse(done);
  assert.equal(done.text, delta.delta);
  assert.deepEqual([delta.start, delta.end], [done.segments[0].start, done.segments.at(-1).end]);
});

test('a model that does not stream warns of it even when there is no speech', async () => {
  await using gateway = await startGateway({ installed: ['european', 'voice-activity'] });
  const fields = { model: 'european', stream: 'true' };
  const list = await all(await post(gateway, form(toneWav(2, 0), fields)));
  assert.deepEqual(
    list.map((e) => [e.type, e.text]),
    [
      ['warning', undefined],
      ['transcript.text.done', ''],
    ],
  );
});

test('logprobs are in every event when asked for', async () => {
  await using gateway = await startGateway();
  const list = await all(await post(gateway, form(toneWav(2), { stream: 'yes', 'include[]': 'logprobs' })));
  assert.equal(list.length, 2);
  for (const event of list) {
    assert.deepEqual(event.logprobs[0], {
      token: ' Hello',
      logprob: -0.1,
      bytes: [...Buffer.from(' Hello')],
    });
  }
});

test('silence streams only done', async () => {
  await using gateway = await startGateway();
  const list = await all(await post(gateway, form(toneWav(2, 0), { stream: 'true' })));
  assert.deepEqual(
    list.map((e) => [e.type, e.text]),
    [['transcript.text.done', '']],
  );
});

test('a mistake that is found before the slot is taken is an ordinary error', async () => {
  await using gateway = await startGateway();
  const response = await post(gateway, form(Buffer.from('no audio'.repeat(99)), { stream: 'true' }));
  assert.equal(response.status, 400);
  assert.equal((await json(response)).error.kind, 'malformed');
  await slotIsFree(gateway);
});

test('a failure after the headers is an error event, then the end', async () => {
  let n = 0;
  await using gateway = await startGateway({
    transcribe: async () => {
      if (n++ === 1) throw new Error('secret');
      return heard(' Fine.');
    },
  });
  const list = await all(await post(gateway, form(twoChunks, { stream: 'true' })));
  assert.deepEqual(
    list.map((e) => e.type),
    ['transcript.text.delta', 'error'],
  );
  assert.equal(list[1].error.kind, 'internal');
  assert.match(list[1].error.request_id, /^[0-9a-f]{16}$/);
  assert(!JSON.stringify(list).includes('secret'));
  await slotIsFree(gateway);
});

test('a comment keeps the connection alive until the first event', async () => {
  const written: string[] = [];
  const res = {
    status: () => res,
    set: () => res,
    flushHeaders: () => undefined,
    write: (text: string) => written.push(text) > 0,
    end: () => undefined,
  };
  const stream = startEventStream(res as never, { keepAliveMs: 10 });
  await until('two comments', () => written.length >= 2);
  assert(written.every((text) => text === ': keep-alive\n\n'));
  const before = written.length;
  await stream.send({ type: 'x' }, new AbortController().signal);
  await new Promise((resolve) => setTimeout(resolve, 35));
  assert.deepEqual(written.slice(before), ['event: x\ndata: {"type":"x"}\n\n']);
});

test('the next event waits until the client reads again, or has gone', async () => {
  const written: string[] = [];
  const res = Object.assign(new EventEmitter(), {
    status: () => res,
    set: () => res,
    flushHeaders: () => undefined,
    write: (text: string) => written.push(text) < 0,
    end: () => undefined,
  });
  const stream = startEventStream(res as never);
  const gone = new AbortController();
  const taken = stream.send({ type: 'taken' }, gone.signal);
  res.emit('drain');
  await taken;
  const waiting = stream.send({ type: 'x' }, gone.signal);
  gone.abort(new Error('it left'));
  await assert.rejects(waiting, /it left/);
  assert.equal(written.length, 2);
});

const progress = { id: 'multilingual-base', what: 'x.bin', totalBytes: 10 };

test('the client of a stream has its headers while weights are downloaded, then the events', async () => {
  let arrived: () => void = () => undefined;
  const whole = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  await using gateway = await startGateway({
    installed: ['voice-activity'],
    async ensure(id, { onProgress }) {
      if (id === 'voice-activity') return;
      for (const doneBytes of [1, 2]) onProgress?.({ ...progress, phase: 'downloading', doneBytes });
      await whole;
    },
  });
  const response = await post(gateway, form(toneWav(1), { model: 'multilingual-base', stream: 'true' }));
  assert.equal(gateway.fetching(), 1, 'the download goes on');
  assert.equal(gateway.app.slot.status().holder, null, 'outside the slot');
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  assert.equal(response.headers.get('x-voxgate-model'), 'multilingual-base');
  arrived();
  const list = await all(response);
  assert.deepEqual(
    list.map((event) => event.type),
    ['transcript.text.delta', 'transcript.text.done'],
  );
  await slotIsFree(gateway);
});

for (const phase of ['downloading', 'verifying'] as const)
  test(`weights that fail before their first byte (${phase}) are an ordinary error of a stream`, async () => {
    await using gateway = await startGateway({
      installed: ['voice-activity'],
      async ensure(id, { onProgress }) {
        if (id === 'voice-activity') return;
        onProgress?.({ ...progress, phase, doneBytes: phase === 'verifying' ? 10 : 0 });
        await new Promise((resolve) => setImmediate(resolve));
        throw new GatewayError('download_failed', { model: id }, { provider: 'multilingual' });
      },
    });
    const response = await post(gateway, form(toneWav(1), { model: 'multilingual-base', stream: 'true' }));
    assert.equal(response.status, 503);
    assert.equal((await json(response)).error.code, 'download_failed');
  });

test('a download that fails on its way is an error event, and so is a slot that is busy after it', async () => {
  let end: (failure?: Error) => void = () => undefined;
  await using gateway = await startGateway({
    installed: ['voice-activity'],
    async ensure(id, { onProgress }) {
      if (id === 'voice-activity') return;
      onProgress?.({ ...progress, phase: 'downloading', doneBytes: 1 });
      await new Promise<void>((resolve, reject) => {
        end = (failure) => (failure === undefined ? resolve() : reject(failure));
      });
    },
  });
  const ask = () => post(gateway, form(toneWav(1), { model: 'multilingual-base', stream: 'true' }));
  const failing = await ask();
  end(new GatewayError('download_failed', { model: 'multilingual-base' }));
  const cut = await all(failing);
  assert.deepEqual(
    cut.map((event) => [event.type, event.error.code]),
    [['error', 'download_failed']],
  );
  const response = await ask();
  const held = gateway.app.slot.take('tts', 'other');
  end();
  const busy = await all(response);
  held[Symbol.dispose]();
  assert.deepEqual(
    busy.map((event) => [event.type, event.error.code, event.error.held_by]),
    [['error', 'slot_busy', 'tts']],
  );
  await until('both are over', () => gateway.exchanges.length === 2);
  assert.deepEqual(
    gateway.exchanges.map((exchange) => [exchange.status, exchange.class, exchange.model]),
    [
      [503, '5xx', 'multilingual-base'],
      [503, '503-busy', 'multilingual-base'],
    ],
  );
});

test('a file that cannot be decoded is refused before weights are downloaded for it', async () => {
  const fetched: string[] = [];
  await using gateway = await startGateway({
    installed: ['voice-activity'],
    ensure: async (id) => void fetched.push(id),
  });
  for (const stream of ['true', 'false']) {
    const response = await post(
      gateway,
      form(Buffer.from('no audio'.repeat(99)), { model: 'multilingual-base', stream }),
    );
    assert.equal(response.status, 400);
  }
  assert.deepEqual(fetched, []);
});

test('translations are English by the multilingual family', async () => {
  const asked: boolean[] = [];
  await using gateway = await startGateway({
    transcribe: async (_s, { translate }) => {
      asked.push(translate);
      return heard(' Hello.');
    },
  });
  const body = form(toneWav(1), { response_format: 'verbose_json', language: 'de' });
  const answer = await json(await fetch(`${gateway.base}/v1/audio/translations`, { method: 'POST', body }));
  assert.equal(answer.task, 'translate');
  assert.equal(answer.language, 'english');
  assert.equal(answer.route, 'auto:translate-fallback');
  assert.deepEqual(asked, [true]);
});

for (const model of ['european', 'cjk', 'multilingual-large-v3-turbo', 'multilingual-distil-large-v3']) {
  test(`translations by ${model}, which does not translate, are refused before weights are fetched`, async () => {
    const fetched: string[] = [];
    await using gateway = await startGateway({ ensure: async (id) => void fetched.push(id) });
    const body = form(toneWav(1), { model });
    const refused = await fetch(`${gateway.base}/v1/audio/translations`, { method: 'POST', body });
    assert.equal(refused.status, 400);
    const { error } = await json(refused);
    assert.deepEqual(
      [error.kind, error.param, error.code],
      ['malformed', 'translate', 'unsupported_translate'],
    );
    assert.deepEqual(fetched, []);
  });
}

test('srt and vtt answers consist of cues', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' One <b>. Two.') });
  const ask = async (response_format: string) =>
    (await post(gateway, form(toneWav(2), { response_format }))).text();
  const srt = await ask('srt');
  assert.match(srt, /^1\n00:00:00,\d{3} --> 00:00:0\d,\d{3}\nOne <b>\.\n\n2\n/);
  const vtt = await ask('vtt');
  assert.match(vtt, /^WEBVTT\n\n00:00:00\.\d{3} --> 00:00:0\d\.\d{3}\nOne &lt;b&gt;\.\n\n/);
});

test('keywords lead the decoder, and languages limit the detection', async () => {
  const prompts: string[] = [];
  await using gateway = await startGateway({
    transcribe: async (_s, { prompt, language }) => {
      prompts.push(`${language}: ${prompt}`);
      return heard(' Hi.');
    },
  });
  const body = form(toneWav(1), { prompt: 'At work.', 'languages[]': 'en' });
  body.append('keywords[]', 'Voxgate');
  body.append('keywords[]', 'Parakeet');
  await (await post(gateway, body)).text();
  assert.deepEqual(prompts, ['en: At work. Voxgate, Parakeet']);
});

test('speech that only loops is dropped and marked', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' you know'.repeat(50)) });
  const answer = await json(await post(gateway, form(toneWav(2), { response_format: 'verbose_json' })));
  assert.equal(answer.text, '');
  assert.deepEqual(answer.dropped, [{ start: 0, end: 2, reason: 'repetition' }]);
});

test('speech without words is dropped and marked', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' [Music]') });
  const answer = await json(await post(gateway, form(toneWav(2), { response_format: 'verbose_json' })));
  assert.equal(answer.text, '');
  assert.deepEqual(answer.dropped, [{ start: 0, end: 2, reason: 'no_text' }]);
});

test('the API describes itself, and the docs page answers at /docs with local assets', async () => {
  await using gateway = await startGateway();
  const document = await json(await fetch(`${gateway.base}/openapi.json`));
  assert.equal(document.openapi, '3.1.0');
  assert(document.paths['/v1/audio/transcriptions'].post);
  const page = await fetch(`${gateway.base}/docs`, { redirect: 'manual' });
  assert.equal(page.status, 200);
  const html = await page.text();
  const assets = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map((m) => m[1] ?? '');
  assert(assets.includes('docs/swagger-ui-bundle.js') && assets.length > 3, assets.join(' '));
  for (const asset of assets) assert.equal((await fetch(new URL(asset, page.url))).status, 200, asset);
});
