/** Transcriptions over HTTP are tested with every field and format, and with every refusal. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NativeError } from '../../src/engine/types.ts';
import { GatewayError } from '../../src/errors.ts';
import { errorEnvelopeSchema, jsonSchema, verboseSchema } from '../../src/http/openapi/openapi.ts';
import { joinWavs } from '../wav.ts';
import { form, type Gateway, heard, json, post, startGateway, toneWav, until } from './harness.ts';

const speech = toneWav(2);

async function assertIdle(gateway: Gateway) {
  await until('no upload is left', () => gateway.uploads().length === 0);
  await until('no job is left', () => gateway.running() === 0);
  const response = await post(gateway, form(speech));
  assert.equal(response.status, 200, 'the slot is free again');
}

async function assertRefused(response: Response, status: number, expected: Record<string, unknown>) {
  const body = await json(response);
  assert.equal(response.status, status, JSON.stringify(body));
  for (const [key, value] of Object.entries(expected))
    assert.deepEqual(body.error[key], value, JSON.stringify(body));
  errorEnvelopeSchema.parse(body);
  return body.error;
}

test('json is text and usage, with the route in the headers', async () => {
  await using gateway = await startGateway();
  const response = await post(gateway, form(speech));
  const answer = jsonSchema.parse(await json(response));
  assert.deepEqual(answer, { text: 'Hello there.', usage: { type: 'duration', seconds: 2 } });
  assert.equal(response.headers.get('x-voxgate-model'), 'multilingual-base');
  assert.equal(response.headers.get('x-voxgate-route'), 'auto:no-hint-fallback');
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
});

for (const [language, silent, languages] of [
  ['de', false, [{ code: 'de' }]],
  [undefined, true, []],
] as const)
  test(`json for gpt-transcribe has the languages ${JSON.stringify(languages)}`, async () => {
    await using gateway = await startGateway();
    const body = form(silent ? toneWav(2, 0) : speech, {
      model: 'gpt-transcribe',
      ...(language && { language }),
    });
    const answer = jsonSchema.parse(await json(await post(gateway, body)));
    assert.deepEqual(answer.languages, languages);
  });

test('text is plain text', async () => {
  await using gateway = await startGateway();
  const response = await post(gateway, form(speech, { response_format: 'text' }));
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.equal(await response.text(), 'Hello there.\n');
});

test('verbose_json has all ten segment fields, words when they are asked for, and the additions', async () => {
  await using gateway = await startGateway();
  const fields = { response_format: 'verbose_json', model: 'multilingual-base', language: 'en' };
  const body = form(speech, fields);
  body.append('timestamp_granularities[]', 'word');
  body.append('timestamp_granularities[]', 'segment');
  const answer = await json(await post(gateway, body));
  const names =
    'id seek start end text tokens temperature avg_logprob compression_ratio no_speech_prob'.split(' ');
  assert.deepEqual(Object.keys(answer.segments[0]).sort(), names.sort());
  assert.deepEqual(
    answer.words.map((w: { word: string }) => w.word),
    ['Hello', 'there.'],
  );
  verboseSchema.parse(answer);
  assert.equal(answer.task, 'transcribe');
  assert.equal(answer.language, 'english');
  assert.equal(answer.language_code, 'en');
  assert.equal(answer.language_probability, 1);
  assert.equal(answer.duration, 2);
  assert.equal(answer.route, 'requested');
  const segmentsOnly = await json(await post(gateway, form(speech, fields)));
  assert(!('words' in segmentsOnly) && segmentsOnly.segments.length === 1);
});

test('the probability of a word is the mean of those of its tokens, and marks of time do not count', async () => {
  const token = (text: string, probability: number) => ({
    ...{ id: 1, bytes: Buffer.from(text), logprob: Math.log(probability), startMs: 0, endMs: 500 },
  });
  const tokens = [
    token(' Hel', 0.9),
    token('lo', 0.5),
    token('', 0.01),
    token(' there', 0.25),
    token('.', 0.75),
  ];
  const transcribe = async () => [{ startMs: 0, endMs: 1000, tokens, noSpeechProb: 0 }];
  await using gateway = await startGateway({ transcribe });
  const fields = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' };
  const { words } = await json(await post(gateway, form(speech, fields)));
  assert.deepEqual(
    words.map(({ word, probability }: any) => [word, probability]),
    [
      ['Hello', 0.7],
      ['there.', 0.5],
    ],
  );
});

test('silence is 200 with empty text, and no engine is asked', async () => {
  let asked = 0;
  await using gateway = await startGateway({
    transcribe: async () => {
      asked += 1;
      return heard(' Thanks for watching!');
    },
  });
  const response = await post(gateway, form(toneWav(3, 0), { response_format: 'verbose_json' }));
  const answer = await json(response);
  assert.equal(response.status, 200);
  assert.equal(answer.text, '');
  assert.deepEqual(answer.segments, []);
  assert.equal(answer.duration, 3);
  assert.equal(asked, 0);
});

test('ten milliseconds of audio are enough', async () => {
  await using gateway = await startGateway();
  const response = await post(gateway, form(toneWav(0.01)));
  assert.equal(response.status, 200);
});

test('a loop is decoded again with times, then at the full window, then dropped if it stays a loop', async () => {
  const tries: [boolean, number][] = [];
  await using gateway = await startGateway({
    transcribe: async (_samples, { times, audioContext }) => {
      tries.push([times, audioContext]);
      return heard(' you know'.repeat(50));
    },
  });
  assert.equal((await json(await post(gateway, form(speech)))).text, '');
  assert.deepEqual(tries, [
    [false, 320],
    [true, 320],
    [true, 0],
  ]);
});

test('speech that repeats itself is decoded once more with times, and kept', async () => {
  const timed: boolean[] = [];
  const refrain = ' unbelievably'.repeat(8);
  await using gateway = await startGateway({
    transcribe: async (_samples, { times }) => {
      timed.push(times);
      return heard(refrain);
    },
  });
  const answer = await json(await post(gateway, form(speech)));
  assert.equal(answer.text.trim(), refrain.trim());
  assert.deepEqual(timed, [false, true]);
});

/** The audio is 2 s of speech, 4 s of silence and 2 s of speech. */
const apart = joinWavs(toneWav(2), toneWav(4, 0), toneWav(2));

for (const [what, fields, expected] of [
  ['nothing', {}, [2.4, 2.4]],
  ['auto', { chunking_strategy: 'auto' }, [2.4, 2.4]],
  ['a silence of 5 s', { chunking_strategy: '{"type": "server_vad", "silence_duration_ms": 5000}' }, [8]],
  [
    'a padding of 1 s',
    { 'chunking_strategy[type]': 'server_vad', 'chunking_strategy[prefix_padding_ms]': '1000' },
    [2.46, 3.2], // at most half the silence that ended it is padding
  ],
  ['a threshold of 0', { chunking_strategy: '{"type": "server_vad", "threshold": 0}' }, [8]],
  ['a threshold above what it hears', { chunking_strategy: '{"type": "server_vad", "threshold": 0.95}' }, []],
] as [string, Record<string, string>, number[]][]) {
  test(`chunking_strategy with ${what} decides what the engine is given`, async () => {
    const given: number[] = [];
    await using gateway = await startGateway({
      transcribe: async (samples) => {
        given.push(samples.length / 16_000);
        return heard(
          ' This is as much text as eight seconds of speech have, however slowly anyone ever speaks in a recording.',
        );
      },
    });
    const request = form(apart, { language: 'en', ...fields });
    assert.equal((await post(gateway, request)).status, 200);
    assert.equal(given.length, expected.length, `${given}`);
    // The limits are exact to a window of 32 ms.
    for (const [i, sec] of expected.entries()) assert(Math.abs((given[i] ?? 0) - sec) < 0.033, `${given}`);
  });
}

for (const [task_type, normalizeText, isRich] of [
  [undefined, true, false],
  ['transcribe', true, false],
  ['transcribe_raw', false, false],
  ['rich', true, true],
] as const) {
  test(`task_type ${task_type ?? 'left out'} reaches the cjk engine and shapes the answer`, async () => {
    const asked: unknown[] = [];
    await using gateway = await startGateway({
      installed: ['cjk', 'voice-activity'],
      transcribe: async (_samples, options) => {
        asked.push(options.normalizeText);
        return heard(' 好').map((segment) => ({ ...segment, emotion: 'HAPPY', event: 'BGM' }));
      },
    });
    const fields = { model: 'cjk', response_format: 'verbose_json', ...(task_type && { task_type }) };
    const { segments } = await json(await post(gateway, form(speech, fields)));
    assert.deepEqual(asked, [normalizeText]);
    const [{ emotion, event }] = segments;
    assert.deepEqual([emotion, event], isRich ? ['happy', 'bgm'] : [undefined, undefined]);
  });
}

test('OpenAI-Processing-Ms is the time that the request took, in whole milliseconds', async () => {
  await using gateway = await startGateway({
    transcribe: async () => {
      await sleep(80);
      return heard(' Text.');
    },
  });
  for (const response_format of ['json', 'text', 'verbose_json']) {
    const startedAt = performance.now();
    const response = await post(gateway, form(speech, { response_format }));
    const tookMs = performance.now() - startedAt;
    const said = response.headers.get('openai-processing-ms') ?? '';
    assert.match(said, /^\d+$/, response_format);
    assert(Number(said) >= 79 && Number(said) <= Math.ceil(tookMs), `${said} of ${tookMs} ms`);
  }
});

const badFiles: [string, Uint8Array | null, string][] = [
  ['no file', null, 'missing_file'],
  ['an empty file', new Uint8Array(0), 'empty_file'],
  ['a text file named .wav', Buffer.from('This is no audio at all. '.repeat(20)), 'unsupported_format'],
  ['a wav without samples', toneWav(0), 'undecodable_audio'],
  ['half a wav header', speech.subarray(0, 20), 'undecodable_audio'],
];
for (const [what, file, code] of badFiles) {
  test(`${what} is a 400 that says so, and leaves nothing behind`, async () => {
    await using gateway = await startGateway();
    await assertRefused(await post(gateway, form(file)), 400, { kind: 'malformed', param: 'file', code });
    await assertIdle(gateway);
  });
}

for (const bytes of [1000, 100_000, 4_000_000])
  test(`a file of ${bytes} bytes that is sent without a name is a missing file`, async () => {
    await using gateway = await startGateway();
    for (const [path, param] of [
      ['/v1/audio/transcriptions', 'file'],
      ['/asr', 'audio_file'],
    ] as const) {
      const body = new FormData();
      body.append(param, 'x'.repeat(bytes));
      const response = await fetch(`${gateway.base}${path}`, { method: 'POST', body });
      await assertRefused(response, 400, { kind: 'malformed', param, code: 'missing_file' });
    }
    await assertIdle(gateway);
  });

test('a text beside the file that has its name is ignored', async () => {
  await using gateway = await startGateway();
  for (const bytes of [1000, 100_000]) {
    const body = form(speech);
    body.append('file', 'x'.repeat(bytes));
    assert.equal((await post(gateway, body)).status, 200);
  }
  await assertIdle(gateway);
});

const badFields: [Record<string, string>, string][] = [
  [{ model: 'multilingual-bas' }, 'model'],
  [{ response_format: 'yaml' }, 'response_format'],
  [{ temperature: '3' }, 'temperature'],
  [{ language: 'klingon' }, 'language'],
  [{ 'timestamp_granularities[]': 'syllable' }, 'timestamp_granularities'],
  [{ model: 'multilingual-base', language: 'yue' }, 'language'],
];
for (const [fields, param] of badFields) {
  test(`bad field ${JSON.stringify(fields)} is a 400 naming it, and leaves nothing behind`, async () => {
    await using gateway = await startGateway();
    await assertRefused(await post(gateway, form(speech, fields)), 400, { kind: 'malformed', param });
    await assertIdle(gateway);
  });
}

test('a body that is no multipart form is refused', async () => {
  await using gateway = await startGateway();
  const url = `${gateway.base}/v1/audio/transcriptions`;
  for (const init of [
    { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } },
    { method: 'POST' },
  ]) {
    await assertRefused(await fetch(url, init), 400, { kind: 'malformed', code: 'invalid_content_type' });
  }
  const broken = {
    method: 'POST',
    body: 'garbage',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  };
  await assertRefused(await fetch(url, broken), 400, { kind: 'malformed' });
  const unnamed = { method: 'POST', body: 'x', headers: { 'content-type': 'multipart/form-data' } };
  await assertRefused(await fetch(url, unnamed), 400, { kind: 'malformed', code: 'invalid_form' });
  await assertIdle(gateway);
});

test('an upload over the limit is a 413 and leaves nothing behind', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOAD_MB: '0.1' } });
  await assertRefused(await post(gateway, form(toneWav(10))), 413, {
    kind: 'too_large',
    code: 'file_too_large',
  });
  await until('no upload is left', () => gateway.uploads().length === 0);
  assert.equal((await post(gateway, form(speech))).status, 200);
});

test('files beside the first one named file are ignored, like any unknown field', async () => {
  await using gateway = await startGateway();
  const body = new FormData();
  body.append('reference', new Blob(['not asked for']), 'a.txt');
  body.append('file', new Blob([Uint8Array.from(speech)]), 'speech.wav');
  body.append('file', new Blob(['not audio']), 'second.wav');
  body.append('reference', new Blob(['nor this']), 'b.txt');
  const response = await post(gateway, body);
  assert.equal((await json(response)).text, 'Hello there.');
  assert.equal(response.status, 200);
  await assertIdle(gateway);
});

test('a body without end is refused when it is over the limit, in a file that is kept or one that is not', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOAD_MB: '0.1' } });
  const part = (disposition: string) => `--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
  const file = Buffer.concat([
    Buffer.from(part('name="file"; filename="a.wav"')),
    speech,
    Buffer.from('\r\n'),
  ]);
  for (const [what, beginning] of [
    ['the file', Buffer.from(part('name="file"; filename="a.wav"'))],
    ['an ignored file', Buffer.concat([file, Buffer.from(part('name="other"; filename="b"'))])],
    ['a second file', Buffer.concat([file, Buffer.from(part('name="file"; filename="b"'))])],
    ['no part at all', file.subarray(0, 0)],
  ] as const) {
    const status = await new Promise<number>((resolve, reject) => {
      const headers = { 'Content-Type': 'multipart/form-data; boundary=x' };
      const options = { method: 'POST', headers, agent: false };
      const req = request(`${gateway.base}/v1/audio/transcriptions`, options, (res) => {
        clearInterval(pour);
        resolve(res.statusCode ?? 0);
        req.destroy();
      });
      req.on('error', () => undefined);
      req.write(beginning);
      const pour = setInterval(() => req.write(Buffer.alloc(300_000, 1)), 5);
      setTimeout(() => {
        clearInterval(pour);
        req.destroy();
        reject(new Error(`${what}: no answer within 20 s`));
      }, 20_000).unref();
    });
    assert.equal(status, 413, what);
    await until(`no upload is left of ${what}`, () => gateway.uploads().length === 0);
  }
});

test('the file of a refused body is removed when the body ends well after all', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOAD_MB: '0.1' } });
  const body = new FormData();
  body.append('file', new Blob([Uint8Array.from(speech)]), 'speech.wav');
  body.append('other', new Blob([new Uint8Array(25_000_000)]), 'b');
  // A stream has no Content-Length, so its size is seen only on the way.
  const { headers, body: stream } = new Request('http://x', { method: 'POST', body });
  const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, {
    ...{ method: 'POST', headers, body: stream, duplex: 'half' },
  } as RequestInit);
  await assertRefused(response, 413, { code: 'file_too_large' });
  await until('no upload is left', () => gateway.uploads().length === 0);
});

test('audio over the length limit is refused', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_AUDIO_SEC: '5' } });
  await assertRefused(await post(gateway, form(toneWav(20))), 400, { code: 'audio_too_long' });
  await assertIdle(gateway);
});

test('while one request runs, another is refused at once with what it needs to come back', async () => {
  let finish: () => void = () => undefined;
  await using gateway = await startGateway({
    transcribe: () => new Promise((resolve) => (finish = () => resolve(heard(' Done.')))),
  });
  const first = post(gateway, form(speech));
  await until('the first is running', () => gateway.running() === 1);
  const second = await post(gateway, form(speech));
  assert.equal(second.headers.get('retry-after'), '5');
  assert.equal(second.headers.get('x-should-retry'), null);
  const error = await assertRefused(second, 503, { kind: 'network', code: 'slot_busy', provider: 'voxgate' });
  assert.equal(error.held_by, 'asr');
  assert(error.held_for_ms >= 0);
  finish();
  assert.equal((await first).status, 200);
  await until('no upload is left', () => gateway.uploads().length === 0);
});

test('a client that waits for 100 Continue gets the 503 instead, and never sends its body', async () => {
  let finish: () => void = () => undefined;
  await using gateway = await startGateway({
    transcribe: () => new Promise((resolve) => (finish = () => resolve(heard(' Done.')))),
  });
  const first = post(gateway, form(speech));
  await until('the first is running', () => gateway.running() === 1);
  const reply = await raw(gateway, expectHead(100_000_000));
  assert.match(reply, /^HTTP\/1\.1 503 /);
  assert.match(reply, /Retry-After: 5/);
  assert.match(reply, /Connection: close/i);
  finish();
  await first;
});

test('a client that waits for 100 Continue gets it when the gateway is free', async () => {
  await using gateway = await startGateway();
  const reply = await raw(gateway, expectHead(1000), (text) => text.includes('100 Continue'));
  assert.match(reply, /^HTTP\/1\.1 100 Continue/);
  await assertIdle(gateway);
});

function expectHead(length: number): string {
  return [
    'POST /v1/audio/transcriptions HTTP/1.1',
    'Host: localhost',
    'Content-Type: multipart/form-data; boundary=x',
    `Content-Length: ${length}`,
    'Expect: 100-continue',
    '\r\n',
  ].join('\r\n');
}

/** Sends bytes and reads until the server ends the connection or `enough` is seen. */
function raw(
  gateway: Gateway,
  bytes: string,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const { port, hostname } = new URL(gateway.base);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = '';
    socket.setTimeout(20_000, () => reject(new Error(`Timed out after: ${text}`)));
    socket.on('data', (data) => {
      text += data;
      if (enough(text)) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}

test('an engine that fails is a 500 that hides why, and the slot is free', async () => {
  let broken = true;
  await using gateway = await startGateway({
    transcribe: async () => {
      if (!broken) return heard(' Fine.');
      broken = false;
      throw new Error('secret path /root/x');
    },
  });
  const error = await assertRefused(await post(gateway, form(speech)), 500, { kind: 'internal' });
  assert(!JSON.stringify(error).includes('secret'));
  await assertIdle(gateway);
});

test('where a GPU has no memory, the CPU goes on with its own weights, and GPU weights never run on it', async () => {
  const asked: string[] = [];
  let full = true;
  await using gateway = await startGateway({
    devices: [{ name: 'CUDA0', gpu: true, memoryBytes: 1 }],
    env: { SVC_MODEL_KEEP_ALIVE_SEC: '0' },
    load({ device, path }) {
      asked.push(`${device} ${path}`);
      if (full && device !== 'cpu') throw new NativeError('out_of_memory', 'CUDA error: out of memory');
    },
  });
  assert.equal((await post(gateway, form(speech))).status, 200);
  full = false;
  assert.equal((await post(gateway, form(speech))).status, 200);
  assert.deepEqual(asked, [
    'cuda:0 /nowhere/multilingual-base',
    'cpu /nowhere/q8_0/multilingual-base',
    'cuda:0 /nowhere/multilingual-base',
  ]);
});

test('the CPU goes on with the weights of the GPU when its own cannot be made', async () => {
  const asked: string[] = [];
  await using gateway = await startGateway({
    devices: [{ name: 'CUDA0', gpu: true, memoryBytes: 1 }],
    load({ device, path }) {
      asked.push(`${device} ${path}`);
      if (device !== 'cpu') throw new NativeError('out_of_memory', 'CUDA error: out of memory');
    },
    ensure: async (_id, { precision }) => {
      if (precision !== undefined) throw new Error('no space left on the disk');
    },
  });
  assert.equal((await post(gateway, form(speech))).status, 200);
  assert.deepEqual(asked, ['cuda:0 /nowhere/multilingual-base', 'cpu /nowhere/multilingual-base']);
});

test('a request that gets no memory or no thread is a 503 that says so, and the next request is served', async () => {
  let full = true;
  await using gateway = await startGateway({
    load() {
      if (full) throw new NativeError('out_of_memory', 'The system refuses /root/x');
    },
  });
  const response = await post(gateway, form(speech));
  assert.equal(response.headers.get('retry-after'), null);
  const error = await assertRefused(response, 503, { kind: 'network', code: 'out_of_memory' });
  assert(!JSON.stringify(error).includes('/root/x'));
  full = false;
  await assertIdle(gateway);
});

test('without the addon a transcription is a permanent 503 of the backend, and no ASR model is listed', async () => {
  await using gateway = await startGateway({ engine: null });
  const response = await post(gateway, form(speech));
  assert.equal(response.headers.get('x-should-retry'), 'false');
  assert.equal(response.headers.get('retry-after'), null);
  await assertRefused(response, 503, {
    kind: 'network',
    provider: 'multilingual',
    code: 'backend_unavailable',
  });
  const listed = await json(await fetch(`${gateway.base}/v1/models`));
  assert.deepEqual(listed, { object: 'list', data: [] });
  assert.equal((await fetch(`${gateway.base}/health`)).status, 200);
});

test('the log says why weights are missing, and the client is not told', async () => {
  await using gateway = await startGateway({
    ensure: async (id) => {
      const cause = new Error('ENOSPC in /srv/models, 12 MB are free');
      throw new GatewayError('download_failed', { model: id }, { cause });
    },
  });
  for (const stream of ['false', 'true']) {
    const response = await post(gateway, form(speech, { stream }));
    const id = response.headers.get('x-request-id');
    assert.equal(response.status, 503);
    assert.doesNotMatch(await response.text(), /ENOSPC|srv|MB/);
    assert(gateway.logged.some((line) => line.includes('/srv/models') && line.includes(String(id))));
  }
});
