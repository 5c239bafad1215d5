/** Speech over Wyoming as Home Assistant asks for it, made by the speech upstream, and what happens when that fails. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { wavHeader as openWavHeader } from '../../src/audio/wav-header.ts';
import {
  type Behavior,
  head,
  inPieces,
  startHostileUpstream,
  wholeAnswer,
} from '../faults/hostile-upstream.ts';
import { steady, wav } from '../wav.ts';
import { type Gateway, type Script, startGateway, until, untilWaiting } from './harness.ts';
import { connectWyoming, FORMAT, type WyomingClient } from './wyoming.ts';

const samples = (seconds: number) =>
  Int16Array.from({ length: 24_000 * seconds }, (_, i) => Math.round(9000 * Math.sin(i / 7)));
const bytesOf = (of: Int16Array) => Buffer.from(of.buffer, of.byteOffset, of.byteLength);
const SECOND = wav(samples(1), 24_000);
const OF_SECOND = { rate: 24_000, width: 2, channels: 1 };

const wavAnswer =
  (body: Buffer, type = 'audio/wav'): Behavior =>
  (socket) => {
    socket.write(head('200 OK', { 'Content-Type': type, 'Content-Length': String(body.length) }));
    socket.end(body);
  };

const bodyIn = (request: string) => JSON.parse(request.slice(request.indexOf('\r\n\r\n') + 4));

/** A gateway before an upstream that tests drive. `said` has the requests for speech. */
async function startSpeaking(speak: Behavior, script: Script = {}) {
  const upstream = await startHostileUpstream();
  const said: Record<string, unknown>[] = [];
  upstream.behave((socket, request) => {
    if (!request.startsWith('POST')) return wholeAnswer('{}', '404 Not Found')(socket, request);
    said.push(bodyIn(request));
    speak(socket, request);
  });
  const gateway = await startGateway({
    ...script,
    env: { SVC_WYOMING_PORT: '0', SVC_TTS_UPSTREAM_URL: upstream.url, ...script.env },
  });
  return {
    upstream,
    gateway,
    said,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const isFree = ({ app }: Gateway) => app.slot.status().holder === null;
const types = (client: WyomingClient) =>
  client.events
    .map(({ type }) => type)
    .filter((type, at, all) => type !== 'audio-chunk' || all[at - 1] !== type);
const heardBy = (client: WyomingClient) =>
  Buffer.concat(client.events.flatMap(({ payload }) => payload ?? []));

test('describe offers the voices of the speech upstream, and nothing while it cannot serve', async () => {
  for (const [voices, expected] of [
    ['{"voices": ["alloy", "nova", "alloy", 7]}', ['alloy', 'nova']],
    [
      '[{"voice_id": "af_heart", "name": "Heart"}, {"id": "one"}, {"name": "two"}]',
      ['af_heart', 'one', 'two'],
    ],
    ['{"data": [{"id": "one"}]}', ['one']],
    ['no list', ['piper']],
  ] as const) {
    await using upstream = await startHostileUpstream();
    upstream.behave((socket, request) =>
      wholeAnswer(request.includes('/v1/audio/voices') ? voices : '{}')(socket, request),
    );
    const env = { SVC_WYOMING_PORT: '0', SVC_TTS_UPSTREAM_URL: upstream.url, SVC_TTS_MODEL_ID: 'piper' };
    await using gateway = await startGateway({ env });
    await using client = await connectWyoming(gateway);
    client.send('describe');
    const { asr, tts } = await client.event('info');
    const [program, ...others] = tts;
    assert.deepEqual(
      [asr.length, others, program.name, program.installed, program.supports_synthesize_streaming],
      [1, [], 'voxgate', true, true],
    );
    assert.deepEqual(
      program.voices.map(({ name, installed }: any) => [name, installed]),
      expected.map((name) => [name, true]),
    );
    for (const language of ['en', 'de', 'zh']) assert(program.voices[0].languages.includes(language));
  }
  await using down = await startSpeaking(assert.fail);
  await down.upstream[Symbol.asyncDispose]();
  await using client = await connectWyoming(down.gateway);
  client.send('describe');
  assert.deepEqual((await client.event('info')).tts, []);
});

test('a text becomes audio, asked for as over HTTP, and is seen like a request', async () => {
  await using world = await startSpeaking(wavAnswer(SECOND), { env: { SVC_TTS_API_KEY: 'key-of-upstream' } });
  const { gateway, upstream, said } = world;
  await using client = await connectWyoming(gateway);
  client.send('synthesize', { text: ' Guten Tag, Köln. ', voice: { name: 'nova', speaker: null } });
  await client.event('audio-stop');
  assert.deepEqual(types(client), ['audio-start', 'audio-chunk', 'audio-stop']);
  assert.deepEqual(client.events[0]?.data, OF_SECOND);
  for (const { type, data } of client.events) if (type === 'audio-chunk') assert.deepEqual(data, OF_SECOND);
  assert.deepEqual(heardBy(client), bytesOf(samples(1)));
  assert.deepEqual(
    said.map(({ model, response_format, voice }) => [model, response_format, voice]),
    [['tts', 'wav', 'nova']],
  );
  const [request = ''] = upstream.heads;
  assert.match(request, /^POST \/v1\/audio\/speech HTTP/);
  assert.match(request, /^authorization: Bearer key-of-upstream\r$/m);
  assert(Buffer.from(request, 'latin1').toString().includes('"input":"Guten Tag, Köln."'));
  const [exchange, ...others] = gateway.exchanges;
  assert.deepEqual(
    [others.length, exchange?.method, exchange?.path, exchange?.category, exchange?.status, exchange?.class],
    [0, 'WYOMING', 'synthesize', 'tts', 200, '2xx'],
  );
  assert.deepEqual(
    [exchange?.model, exchange?.provider, exchange?.bytesIn, exchange?.bytesOut, exchange?.clientIp],
    ['tts', 'tts', 17, 48_000, '127.0.0.1'],
  );
  assert.match(request, new RegExp(`^x-request-id: ${exchange?.requestId}\\r$`, 'm'));
  assert((exchange?.latencyMs ?? 0) >= (exchange?.slotWaitMs ?? Number.NaN));
  assert(isFree(gateway));
  const metrics = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.match(metrics, /voxgate_requests_total\{[^}]*tts[^}]*\} 1/);
  client.say(new Float32Array(8000).map((_, i) => steady(0.5, i)));
  assert.equal((await client.event('transcript')).text, 'Hello there.', 'the connection serves on');
});

test('a text that comes piece by piece is spoken sentence by sentence, and not again as a whole', async () => {
  await using world = await startSpeaking(wavAnswer(SECOND));
  const { gateway, said } = world;
  await using client = await connectWyoming(gateway);
  const inputs = () => said.map(({ input, voice }) => [input, voice]);
  client.send('synthesize-start', { voice: { name: 'tts' } });
  for (const text of ['It is', ' 3.5 degrees', ', says Dr. ', 'Smith.', ' Take'])
    client.send('synthesize-chunk', { text });
  await client.event('audio-stop');
  assert.deepEqual(inputs(), [['It is 3.5 degrees, says Dr. Smith.', undefined]]);
  for (const text of [' care! Bye', ' ']) client.send('synthesize-chunk', { text });
  await client.event('audio-stop', 2);
  client.send('synthesize', {
    text: 'It is 3.5 degrees, says Dr. Smith. Take care! Bye ',
    voice: { name: 'tts' },
  });
  client.send('synthesize-stop');
  await client.event('synthesize-stopped');
  assert.deepEqual(
    inputs().map(([input]) => input),
    ['It is 3.5 degrees, says Dr. Smith.', 'Take care!', 'Bye'],
  );
  const spoken = ['audio-start', 'audio-chunk', 'audio-stop'];
  assert.deepEqual(types(client), [...spoken, ...spoken, ...spoken, 'synthesize-stopped']);
  assert(heardBy(client).equals(Buffer.concat(Array(3).fill(bytesOf(samples(1))))));
  assert.equal(gateway.exchanges.length, 3);
  client.send('synthesize-start');
  client.send('synthesize-stop');
  await client.event('synthesize-stopped', 2);
  client.send('synthesize', { text: 'Again.' });
  await client.event('audio-stop', 4);
  assert.equal(said.length, 4);
});

test('audio of every form that is PCM is passed on, however its bytes are cut', async () => {
  const audio = bytesOf(samples(0.2));
  const bits24 = { rate: 48_000, width: 3, channels: 2 };
  const chunk = (id: string, data: Buffer) => {
    const header = Buffer.alloc(8);
    header.write(id);
    header.writeUInt32LE(data.length, 4);
    return Buffer.concat([header, data]);
  };
  const whole = wav(samples(0.2), 24_000);
  const withLists = Buffer.concat([
    ...[whole.subarray(0, 12), chunk('LIST', Buffer.alloc(26)), whole.subarray(12)],
    chunk('LIST', Buffer.from('no audio')),
  ]);
  const extensible = chunk('fmt ', Buffer.concat([whole.subarray(20, 36), Buffer.alloc(24)]));
  extensible.writeUInt16LE(0xfffe, 8);
  extensible.writeUInt16LE(1, 8 + 24);
  for (const [name, body, format, type] of [
    ['with other chunks', withLists, OF_SECOND],
    ['of unknown length', Buffer.concat([openWavHeader(OF_SECOND), audio]), OF_SECOND],
    ['with three bytes a sample', Buffer.concat([openWavHeader(bits24), audio]), bits24],
    ['extensible', Buffer.concat([whole.subarray(0, 12), extensible, whole.subarray(36)]), OF_SECOND],
    ['without a head', audio, OF_SECOND, 'audio/pcm'],
    ['without a head, at a rate', audio, { ...OF_SECOND, rate: 16_000 }, 'audio/L16; rate=16000'],
  ] as const)
    for (const cuts of [Array(100).fill(1), [1001], []]) {
      const length = { 'Content-Type': type ?? 'audio/wav', 'Content-Length': String(body.length) };
      await using world = await startSpeaking((socket) => {
        socket.setNoDelay(true);
        socket.write(head('200 OK', length));
        let at = 0;
        for (const cut of [...cuts, body.length]) {
          socket.write(body.subarray(at, at + cut));
          at += cut;
        }
      });
      await using client = await connectWyoming(world.gateway);
      client.send('synthesize', { text: 'x' });
      await client.event('audio-stop');
      assert.deepEqual(client.events[0]?.data, format, name);
      assert(heardBy(client).equals(audio), `${name}, cut at ${cuts}`);
      for (const { payload } of client.events)
        assert.equal((payload?.length ?? 0) % (format.width * format.channels), 0, 'frames are whole');
    }
});

test('audio is passed on as it is made', async () => {
  let upstreams: Socket | undefined;
  await using world = await startSpeaking((socket) => {
    upstreams = socket;
    socket.write(head('200 OK', { 'Content-Type': 'audio/wav', 'Transfer-Encoding': 'chunked' }));
    socket.write(
      Buffer.concat([Buffer.from('2c\r\n'), openWavHeader(OF_SECOND), Buffer.from('\r\n4\r\nabcd\r\n')]),
    );
  });
  await using client = await connectWyoming(world.gateway);
  client.send('synthesize', { text: 'x' });
  await until('the first audio is there', () => heardBy(client).toString() === 'abcd');
  assert.equal(world.gateway.app.slot.status().holder, 'tts');
  upstreams?.end('4\r\nefgh\r\n0\r\n\r\n');
  await client.event('audio-stop');
  assert.equal(heardBy(client).toString(), 'abcdefgh');
});

test('speech waits for a busy slot, but not for longer than live speech does', async () => {
  await using world = await startSpeaking(wavAnswer(SECOND), { env: { SVC_LIVE_WAIT_SEC: '60' } });
  const held = world.gateway.app.slot.take('llm', 'holder');
  await using client = await connectWyoming(world.gateway);
  client.send('synthesize', { text: 'Hello.' });
  await untilWaiting(world.gateway, 1);
  assert.deepEqual(client.events, []);
  held[Symbol.dispose]();
  await client.event('audio-stop');
  const speech = world.gateway.exchanges.find(({ category }) => category === 'tts');
  assert((speech?.waitedMs ?? 0) > 0);

  await using hasty = await startSpeaking(assert.fail, { env: { SVC_LIVE_WAIT_SEC: '0.05' } });
  using _held = hasty.gateway.app.slot.take('llm', 'holder');
  await using refused = await connectWyoming(hasty.gateway);
  refused.send('synthesize', { text: 'Hello.' });
  assert.equal((await refused.event('error')).code, 'slot_busy');
  assert.deepEqual(
    hasty.gateway.exchanges.map(({ category, path, class: of }) => [category, path, of]),
    [['tts', 'synthesize', '503-busy']],
  );
});

test('whatever the upstream does instead of speaking is an error event, and the slot is free', async () => {
  const floats = Buffer.from(SECOND);
  floats.writeUInt16LE(3, 20);
  const stereo = { 'Content-Type': 'audio/wav', 'Content-Length': String(SECOND.length) };
  const env = { SVC_TTS_TIMEOUT_SEC: '0.3' };
  for (const [name, speak, code, says] of [
    [
      '500',
      wholeAnswer('{"error": {"message": "out of voices"}}', '500 Oops'),
      'upstream_error',
      'out of voices',
    ],
    ['500 without a body', wholeAnswer('', '500 Oops'), 'upstream_error', '500'],
    ['a login page', wholeAnswer('<html>', '200 OK'), 'upstream_failed', 'is no wav file'],
    ['nothing', wholeAnswer('', '200 OK'), 'upstream_failed', 'is no audio'],
    [
      'a head without end',
      wavAnswer(Buffer.concat([SECOND.subarray(0, 12), Buffer.alloc(40_000)])),
      'upstream_failed',
      'samples',
    ],
    ['floats', wavAnswer(floats), 'upstream_failed', 'no PCM'],
    ['silence', () => undefined, 'upstream_timeout', '0.3 s'],
    ['silence after the head', inPieces([head('200 OK', stereo)]), 'upstream_timeout', '0.3 s'],
    [
      'silence within audio',
      inPieces([head('200 OK', stereo), SECOND.subarray(0, 999)]),
      'upstream_timeout',
      '0.3 s',
    ],
    ['a close', inPieces([null]), 'upstream_failed', ''],
    [
      'a close within audio',
      inPieces([head('200 OK', stereo), SECOND.subarray(0, 999), null]),
      'upstream_failed',
      '',
    ],
    ['no HTTP', inPieces(['garbage\r\n\r\n', null]), 'upstream_failed', ''],
  ] as const) {
    await using world = await startSpeaking(speak, { env });
    await using client = await connectWyoming(world.gateway);
    client.send('synthesize', { text: 'Hello.' });
    const error = await client.event('error');
    assert.equal(error.code, code, `${name}: ${error.text}`);
    assert(error.text.includes(says), `${name}: ${error.text}`);
    assert(!types(client).includes('audio-stop'), `${name} looks whole`);
    assert(isFree(world.gateway), name);
    await until('the connection ends', () => client.closed());
    await until(`${name} leaves no connection`, () => world.upstream.open() === 0);
    const [exchange, ...others] = world.gateway.exchanges;
    assert.deepEqual(
      [others.length, exchange?.category, exchange?.class, exchange?.provider],
      [0, 'tts', '5xx', 'tts'],
    );
  }
  await using down = await startSpeaking(assert.fail);
  await down.upstream[Symbol.asyncDispose]();
  await using client = await connectWyoming(down.gateway);
  client.send('synthesize', { text: 'Hello.' });
  assert.equal((await client.event('error')).code, 'upstream_unreachable');
  assert(isFree(down.gateway));
});

/** May have hours of audio (`spokenText` in `src/limits/budgets.ts`). */
const LONG = 'x'.repeat(10_000);

/** Speaks without an end, as fast as it is read. */
const endless: Behavior = (socket) => {
  socket.write(head('200 OK', { 'Content-Type': 'audio/wav' }));
  socket.write(openWavHeader(OF_SECOND));
  const second = Buffer.alloc(48_000);
  const go = () => {
    while (!socket.destroyed && socket.write(second));
  };
  socket.on('drain', go);
  go();
};

test('a client that leaves ends the call of the upstream and frees the slot', async () => {
  for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const)
    for (const [where, speak] of [
      ['before audio', () => undefined],
      ['within audio', inPieces([head('200 OK', { 'Content-Type': 'audio/wav' }), SECOND.subarray(0, 999)])],
    ] as const) {
      await using world = await startSpeaking(speak);
      await using client = await connectWyoming(world.gateway);
      client.send('synthesize-start');
      client.send('synthesize-chunk', { text: 'Hello. And' });
      await until('it is asked', () => world.said.length === 1);
      if (where === 'within audio') await until('it hears', () => heardBy(client).length > 0);
      client.socket[leave]();
      await until(
        `${leave} ${where} leaves nothing`,
        () => isFree(world.gateway) && world.upstream.open() === 0,
      );
      await until('it is noted', () => world.gateway.exchanges.length === 1);
      const { status, class: of, category } = world.gateway.exchanges[0] ?? {};
      assert.deepEqual([status, of, category], [499, 'client-disconnect', 'tts']);
    }
});

test('a client that reads slowly slows the upstream, and one that reads nothing is given up', async () => {
  let speaking: Socket | undefined;
  const speak: Behavior = (socket, request) => {
    speaking = socket;
    endless(socket, request);
  };
  const env = { SVC_TTS_TIMEOUT_SEC: '0.2' };
  await using world = await startSpeaking(speak, { env, budgets: { wyoming: { stallMs: 1500 } } });
  await using client = await connectWyoming(world.gateway);
  client.socket.pause();
  client.send('synthesize', { text: LONG });
  await until('the upstream has to wait', () => speaking?.writableNeedDrain === true);
  const sent = () => speaking?.bytesWritten ?? 0;
  let before = -1;
  await until('nothing more is taken', () => {
    const isStill = before === sent();
    before = sent();
    return isStill;
  });
  assert.equal(world.gateway.app.slot.status().holder, 'tts', 'the silence is not that of the upstream');
  await until('it is given up', () => isFree(world.gateway));
  await until('the upstream may stop', () => world.upstream.open() === 0);
  const { class: of, errorKind } = world.gateway.exchanges[0] ?? {};
  assert.deepEqual([of, errorKind], ['client-disconnect', 'cancelled']);
});

test('the operator, and the longest time for the slot, end a speech', async () => {
  await using world = await startSpeaking(endless, { env: { SVC_MAX_HOLD_SEC: '1' } });
  for (const code of ['stopped_by_operator', 'held_too_long']) {
    await using client = await connectWyoming(world.gateway);
    client.send('synthesize', { text: LONG });
    await client.event('audio-start');
    if (code === 'stopped_by_operator') world.gateway.app.slot.stopHolder();
    assert.equal((await client.event('error')).code, code);
    assert(isFree(world.gateway));
  }
});

test('texts that cannot be spoken, and events out of their order, are refused', async () => {
  await using world = await startSpeaking(assert.fail);
  const stream = ['synthesize-start', {}] as const;
  for (const [sent, code, says] of [
    [[['synthesize', {}]], 'invalid_value', '"text"'],
    [[['synthesize', { text: 7 }]], 'invalid_value', '"text"'],
    [[['synthesize', { text: ' \n' }]], 'invalid_value', 'words to speak'],
    [[['synthesize', { text: 'x'.repeat(16_385) }]], 'invalid_value', '16384'],
    [[['synthesize', { text: '<speak/>', text_format: 'ssml' }]], 'invalid_value', '"text_format"'],
    [[['synthesize', { text: 'x', voice: 'nova' }]], 'invalid_value', '"voice"'],
    [[['synthesize', { text: 'x', voice: { name: 7 } }]], 'invalid_value', '"voice.name"'],
    [
      [
        stream,
        ['synthesize-chunk', { text: 'x'.repeat(9000) }],
        ['synthesize-chunk', { text: 'x'.repeat(9000) }],
      ],
      'invalid_value',
      '16384',
    ],
    [[['synthesize-chunk', { text: 'x' }]], 'unexpected_event', 'before synthesize-start'],
    [[['synthesize-stop', {}]], 'unexpected_event', 'before synthesize-start'],
    [[stream, stream], 'unexpected_event', 'before synthesize-stop'],
    [[stream, ['audio-start', FORMAT]], 'unexpected_event', 'before synthesize-stop'],
    [
      [
        ['audio-start', FORMAT],
        ['synthesize', { text: 'x' }],
      ],
      'unexpected_event',
      'before audio-stop',
    ],
  ] as const) {
    await using client = await connectWyoming(world.gateway);
    for (const [type, data] of sent) client.send(type, data);
    const error = await client.event('error');
    assert.equal(error.code, code, error.text);
    assert(error.text.includes(says), error.text);
    await until('the connection ends', () => client.closed());
  }
});

test('a stop of the gateway lets a speech under way end, and waits for no more text', async () => {
  let finish: () => void = assert.fail;
  await using world = await startSpeaking((socket, request) => {
    finish = () => wavAnswer(SECOND)(socket, request);
  });
  await using client = await connectWyoming(world.gateway);
  client.send('synthesize-start');
  client.send('synthesize-chunk', { text: 'The last words. And' });
  await until('it is asked', () => world.said.length === 1);
  const closing = world.gateway.app.close(10_000);
  finish();
  await client.event('audio-stop');
  assert.equal((await client.event('error')).code, 'shutting_down');
  await closing;
});
