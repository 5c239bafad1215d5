/** The official OpenAI packages of npm and of PyPI transcribe live, over their own WebSocket clients. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { startGateway, until } from '../http/harness.ts';
import { append, silence, tone } from '../http/realtime.ts';
import { JFK, MODEL, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { openaiRealtime } from './openai-realtime.ts';
import { pythonBin } from './python.ts';

const env = { SVC_API_KEY: 'right' };

test('the official OpenAI package of npm gets an utterance live', async () => {
  await using gateway = await startGateway({ env });
  const realtime = openaiRealtime(gateway.base, 'right');
  const seen: string[] = [];
  let transcript: string | null = null;
  realtime.on('error', (error) => void seen.push(`error ${error.message}`));
  realtime.on('event', ({ type }) => void seen.push(type));
  realtime.on('session.created', () =>
    realtime.send({
      type: 'session.update',
      session: {
        type: 'transcription',
        audio: {
          input: {
            format: { type: 'audio/pcm', rate: 24_000 },
            transcription: { model: 'gpt-4o-transcribe', language: 'en' },
            turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
          },
        },
      },
    }),
  );
  realtime.on('session.updated', () => {
    for (const part of [tone(1.5), silence(1.5)])
      realtime.send(append(part) as Parameters<typeof realtime.send>[0]);
  });
  realtime.on('conversation.item.input_audio_transcription.completed', (event) => {
    transcript = event.transcript;
  });
  await until(`it has a text: ${seen}`, () => transcript !== null, 20_000);
  realtime.close();
  assert.equal(transcript, 'Hello there.');
  assert.deepEqual(
    seen.filter((type) => type.startsWith('error')),
    [],
  );
  assert(seen.includes('conversation.item.input_audio_transcription.delta'));
});

test('the official OpenAI package of npm makes a client secret, and its session has the settings of it', async () => {
  await using gateway = await startGateway({ env });
  const client = new OpenAI({ baseURL: `${gateway.base}/v1`, apiKey: 'right', maxRetries: 0 });
  const { value, expires_at, session } = await client.realtime.clientSecrets.create({
    expires_after: { anchor: 'created_at', seconds: 30 },
    session: {
      type: 'transcription',
      audio: {
        input: {
          format: { type: 'audio/pcm', rate: 24_000 },
          noise_reduction: { type: 'near_field' },
          transcription: { model: 'gpt-4o-transcribe', language: 'en' },
          turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
        },
      },
    },
  });
  assert(Math.abs(expires_at - 30 - Date.now() / 1000) <= 2);
  assert(session.type === 'transcription');
  assert.equal(session.audio?.input?.transcription?.language, 'en');
  const realtime = openaiRealtime(gateway.base, value);
  let transcript: string | null = null;
  realtime.on('error', (error) => assert.fail(error.message));
  realtime.on('session.created', () => {
    for (const part of [tone(1.5), silence(1.5)])
      realtime.send(append(part) as Parameters<typeof realtime.send>[0]);
  });
  realtime.on('conversation.item.input_audio_transcription.completed', (event) => {
    transcript = event.transcript;
  });
  await until('it has a text', () => transcript !== null, 20_000);
  realtime.close();
  assert.equal(transcript, 'Hello there.');
  const talking = await client.realtime.clientSecrets.create({
    session: { type: 'realtime', model: 'gpt-realtime', instructions: 'Be short.' },
  });
  assert.equal(talking.session.type === 'realtime' && talking.session.instructions, 'Be short.');
  await assert.rejects(
    new OpenAI({ baseURL: `${gateway.base}/v1`, apiKey: value, maxRetries: 0 }).models.list(),
    OpenAI.AuthenticationError,
  );
});

test('the official OpenAI package of PyPI makes client secrets in both dialects, and opens sessions with them', async () => {
  const bin = await pythonBin();
  await using gateway = await startGateway({ env });
  const script = new URL('openai_secrets.py', import.meta.url).pathname;
  const args = [script, `${gateway.base}/v1`, 'right'];
  const { stdout } = await promisify(execFile)(join(bin, 'python'), args, { timeout: 60_000 });
  assert.equal(stdout.trim(), 'ok');
});

test('the official OpenAI package of PyPI hears speech live', async (t) => {
  if (!needsWeights(t)) return;
  const bin = await pythonBin();
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-openai-live-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const speech = join(dir, 'speech.s16le');
  const raw = ['-f', 's16le', '-ac', '1', '-ar', '24000', '-af', 'apad=pad_dur=3'];
  execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, ...raw, speech]);
  await using gateway = await startRealGateway({}, { SVC_API_KEY: 'right' });
  const script = new URL('openai_live.py', import.meta.url).pathname;
  const run = (key: string, model: string) =>
    promisify(execFile)(join(bin, 'python'), [script, `${gateway.base}/v1`, key, model, speech], {
      timeout: 120_000,
    });
  const [{ stdout }] = await Promise.all([
    run('right', MODEL),
    assert.rejects(run('wrong', MODEL), /HTTP 401/),
    assert.rejects(run('right', 'nonsense'), /unknown_model|nonsense/),
  ]);
  // How the clip is cut into utterances changes single words, on processors of different kinds, too.
  assert.match(plain(stdout), /fellow americans .*you can do for your country/);
});
