/** Transcriptions over Wyoming as Home Assistant asks for them: every event, with its fields. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { heard, json, type Script, startGateway, until } from './harness.ts';
import { silence, tone } from './realtime.ts';
import { SCRIPTED, serve } from './served.ts';
import { connectWyoming, FORMAT, message, pcm16 } from './wyoming.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const start = (script: Script = {}) =>
  startGateway({ ...script, env: { SVC_WYOMING_PORT: '0', ...script.env } });

test('describe says which models can serve, and which of them are installed', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  client.send('describe');
  const info = await client.event('info');
  const [program] = info.asr;
  assert.deepEqual(
    [program.name, program.installed, program.supports_transcript_streaming],
    ['voxgate', true, true],
  );
  const listed = await json(await fetch(`${gateway.base}/v1/models`));
  const expected = listed.data.filter(
    ({ id, capabilities }: any) => id !== 'auto' && capabilities[0] === 'asr',
  );
  const byName = (a: string[], b: string[]) => String(a[0]).localeCompare(String(b[0]));
  assert.deepEqual(
    program.models.map((model: any) => [model.name, model.installed, model.languages]).sort(byName),
    expected.map((model: any) => [model.id, model.installed, model.languages]).sort(byName),
  );
  const base = program.models.find(({ name }: any) => name === 'multilingual-base');
  assert.deepEqual(base.attribution, {
    name: 'ggerganov/whisper.cpp',
    url: 'https://huggingface.co/ggerganov/whisper.cpp',
  });
  assert.deepEqual([base.installed, base.version, typeof base.description], [true, null, 'string']);
});

test('without weights and downloads nothing is offered', async () => {
  await using gateway = await start({ installed: [], env: { SVC_MODEL_DOWNLOAD: 'off' } });
  await using client = await connectWyoming(gateway);
  client.send('describe');
  const [program] = (await client.event('info')).asr;
  assert.deepEqual([program.models, program.installed], [[], false]);
});

test('audio becomes a transcript with its language, in the events of a stream, and is seen like a request', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  client.send('transcribe', { language: 'en' });
  client.say(tone(1));
  await client.event('transcript-stop');
  assert.deepEqual(client.events, [
    { type: 'transcript-start', data: {} },
    { type: 'transcript-chunk', data: { text: 'Hello there.' } },
    { type: 'transcript', data: { text: 'Hello there.', language: 'en' } },
    { type: 'transcript-stop', data: {} },
  ]);
  const [exchange, ...others] = gateway.exchanges;
  assert.equal(others.length, 0);
  assert.deepEqual(
    [exchange?.method, exchange?.path, exchange?.category, exchange?.status, exchange?.class],
    ['WYOMING', 'transcribe', 'asr', 200, '2xx'],
  );
  assert.deepEqual(
    [exchange?.model, exchange?.language, exchange?.audioSec, exchange?.bytesIn, exchange?.clientIp],
    ['multilingual-base', 'en', 1, 32_000, '127.0.0.1'],
  );
  assert((exchange?.latencyMs ?? 0) > 0);
  const metrics = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.match(metrics, /voxgate_requests_total\{[^}]*asr[^}]*\} 1/);
});

test('words are sent while someone speaks', async () => {
  await using gateway = await start({
    transcribe: async () => heard(' One two three four five six.', 50),
  });
  await using client = await connectWyoming(gateway);
  client.send('audio-start', FORMAT);
  const hasChunk = () => client.events.some(({ type }) => type === 'transcript-chunk');
  for (let i = 0; i < 250 && !hasChunk(); i += 1) {
    client.send('audio-chunk', FORMAT, pcm16(tone(0.1)));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert(hasChunk(), 'no words came before the end');
  assert(!client.events.some(({ type }) => type === 'transcript'));
  client.send('audio-stop');
  await client.event('transcript-stop');
  const chunks = client.events.filter(({ type }) => type === 'transcript-chunk');
  assert.equal(chunks.map(({ data }) => data.text).join(''), 'One two three four five six.');
});

test('the model, the language, and names and terms to expect are those of a request', async () => {
  const asked: unknown[] = [];
  await using gateway = await start({
    transcribe: async (_samples, options) => {
      asked.push([options.language, options.prompt]);
      return heard(' Hello there.');
    },
  });
  await using client = await connectWyoming(gateway);
  client.send('transcribe', {
    ...{
      name: 'multilingual-base',
      language: 'de-AT',
      context: { any: 'thing' },
      vad_sensitivity: 'relaxed',
    },
    transcript_names: ['Küche', 'Flur', 'x'.repeat(201)],
    transcript_terms: ['Rollladen', ...Array.from({ length: 200 }, (_, i) => `Wort${i}`)],
  });
  client.say(tone(1));
  await client.event('transcript');
  const [language, prompt] = asked.at(-1) as [string, string];
  assert.equal(language, 'de');
  const words = prompt.split(', ');
  assert.equal(words.length, 100, 'as many as a request may have');
  assert.deepEqual(
    words.slice(-4),
    ['Wort0', 'Rollladen', 'Flur', 'Küche'],
    'the names are nearest to the text',
  );
});

test('what transcribe asks for holds for one transcription', async () => {
  const languages: unknown[] = [];
  await using gateway = await start({
    transcribe: async (_samples, { language }) => {
      languages.push(language);
      return heard(' Hello there.');
    },
  });
  await using client = await connectWyoming(gateway);
  client.send('transcribe', { language: 'de' });
  client.say(tone(1));
  await client.event('transcript', 1);
  client.say(tone(1));
  await client.event('transcript', 2);
  assert.deepEqual([...new Set(languages)], ['de', 'en'], 'the second one is detected');
  assert(!client.closed());
});

test('every rate, width and number of channels of the reference is heard as the same sound', async () => {
  const seen: number[] = [];
  await using gateway = await start({
    transcribe: async (samples) => {
      seen.push(Math.max(...samples.subarray(4000, 12_000)));
      return heard(' Hello there.');
    },
  });
  const formats = [
    { rate: 8000, width: 1, channels: 1 },
    { rate: 22_050, width: 2, channels: 2 },
    { rate: 44_100, width: 3, channels: 1 },
    { rate: 48_000, width: 4, channels: 2 },
  ];
  for (const format of formats) {
    await using client = await connectWyoming(gateway);
    const samples = Math.round(1.2 * format.rate);
    const bytes = Buffer.alloc(samples * format.width * format.channels);
    for (let i = 0; i < samples; i += 1) {
      const value = 0.5 * Math.sin((2 * Math.PI * 440 * i) / format.rate);
      for (let channel = 0; channel < format.channels; channel += 1) {
        const at = (i * format.channels + channel) * format.width;
        if (format.width === 1) bytes.writeUInt8(Math.round(128 + value * 127), at);
        else bytes.writeIntLE(Math.round(value * (2 ** (8 * format.width - 1) - 1)), at, format.width);
      }
    }
    const before = seen.length;
    client.send('audio-start', format);
    // A cut within a sample loses nothing.
    for (let at = 0; at < bytes.length; at += 4097)
      client.send('audio-chunk', format, bytes.subarray(at, at + 4097));
    client.send('audio-stop');
    assert.equal((await client.event('transcript')).text, 'Hello there.', JSON.stringify(format));
    const level = seen.at(-1) ?? 0;
    assert(seen.length > before && Math.abs(level - 0.5) < 0.02, `${JSON.stringify(format)}: ${level}`);
  }
});

test('silence, and audio that ends before anything can be said, is an empty text', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  for (const [nth, samples] of [silence(2), new Float32Array(0), silence(0.05)].entries()) {
    client.say(samples);
    assert.deepEqual(await client.event('transcript', nth + 1), { text: '' });
  }
  assert.equal(gateway.begun(), 0, 'no model was asked');
  assert.deepEqual(
    gateway.exchanges.map(({ status }) => status),
    [200, 200, 200],
  );
});

test('a ping is answered with its text, unknown events are ignored, and data may be in the line', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  client.send('ping', { text: 'there?' });
  assert.deepEqual(await client.event('pong', 1), { text: 'there?' });
  client.send('ping');
  assert.deepEqual(await client.event('pong', 2), {});
  client.send('select-program', { name: 'other' }, Buffer.from('a payload'));
  client.socket.write('{"type":"ping","data":{"text":"inline"}}\n');
  assert.deepEqual(await client.event('pong', 3), { text: 'inline' });
});

test('messages are read however their bytes are cut', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  const bytes = Buffer.concat([
    message('audio-start', FORMAT),
    message('audio-chunk', FORMAT, pcm16(tone(0.3))),
    message('audio-stop'),
  ]);
  for (let at = 0; at < bytes.length; at += 97) {
    client.socket.write(bytes.subarray(at, at + 97));
    if (at % 970 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await client.event('transcript')).text, 'Hello there.');
});

test('the gateway listens for Wyoming only where it is told to, and stops with it', async () => {
  await using quiet = await startGateway();
  assert.deepEqual([quiet.wyomingPort, quiet.app.wyoming.listening], [0, false]);
  const gateway = await start();
  const client = await connectWyoming(gateway);
  client.send('ping');
  await client.event('pong');
  await gateway[Symbol.asyncDispose]();
  await until('the connection is closed', () => client.closed());
  assert.equal(gateway.app.wyoming.listening, false);
});

test('voxgate serve says where Wyoming listens, answers there, and ends with it open', async () => {
  await using served = await serve({ SVC_WYOMING_PORT: '0' }, SCRIPTED);
  await until('it says so', () => served.log().includes('wyoming=tcp://127.0.0.1:'));
  const [, port] = /wyoming=tcp:\/\/127\.0\.0\.1:(\d+)/.exec(served.log()) ?? [];
  await using client = await connectWyoming({ wyomingPort: Number(port) });
  client.send('ping');
  await client.event('pong');
  served.child.kill('SIGTERM');
  await served.ended;
  assert.equal(served.child.exitCode, 0);
});

test('a port of Wyoming that is taken, or that passes by the keys, stops the start with one sentence', async () => {
  await using other = await start();
  for (const [settings, says] of [
    [
      { SVC_WYOMING_PORT: String(other.wyomingPort) },
      /Cannot listen on .*SVC_WYOMING_PORT chooses another port/,
    ],
    [
      { SVC_WYOMING_PORT: '0', SVC_API_KEY: 'secret', SVC_HOST: '0.0.0.0' },
      /SVC_WYOMING_KEYLESS=on allows it/,
    ],
  ] as const) {
    const env = { ...process.env, SVC_PORT: '0', SVC_OBS_ACCESS_LOG_ENABLED: '0', ...settings };
    const child = spawn(process.execPath, SCRIPTED, { cwd: ROOT, env });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
    await once(child, 'close');
    assert.notEqual(child.exitCode, 0);
    assert.match(text, says);
    assert(!text.includes('secret'));
  }
});
