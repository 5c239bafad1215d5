/** `voxgate live`, as a process that hears through a real gateway. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../bench/common/processes.ts';
import { wav } from '../wav.ts';
import { type Gateway, heard, startGateway, until } from './harness.ts';
import { silence, tone } from './realtime.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const live = (base: string, ...args: string[]) => liveWith({}, base, ...args);

function liveWith(env: NodeJS.ProcessEnv, base: string, ...args: string[]) {
  const options = { cwd: ROOT, env: { ...process.env, ...env } };
  const child = spawn(process.execPath, ['dist/main.js', 'live', '--url', base, ...args], options);
  const out = { text: '', errors: '' };
  child.stdout.on('data', (data) => (out.text += data));
  child.stderr.on('data', (data) => (out.errors += data));
  child.stdin.on('error', () => undefined);
  return { child, out, ended: once(child, 'close') as Promise<[code: number | null]> };
}

const samples = (...parts: Float32Array[]): Int16Array =>
  Int16Array.from(
    parts.flatMap((part) => [...part]),
    (s) => Math.round(s * 32_767),
  );
const bytes = (pcm: Int16Array) => Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
const openSockets = (gateway: Gateway) =>
  new Promise<number>((resolve) => gateway.app.server.getConnections((_error, count) => resolve(count)));

test('bare samples on stdin become a line for each utterance, the one that is not over yet included', async () => {
  let count = 0;
  await using gateway = await startGateway({ transcribe: async () => heard(` Text ${++count}.`) });
  const { child, out, ended } = live(gateway.base, '--raw', '16000', '--delay', 'xhigh', '--language', 'en');
  child.stdin.end(bytes(samples(silence(1), tone(1), silence(1), tone(1))));
  assert.deepEqual(await ended, [0, null]);
  assert.match(out.text, /^Text \d+\.\nText \d+\.\n$/);
  assert.equal(out.errors, '');
});

test('a container on stdin is read by ffmpeg, and --json writes the events', async () => {
  await using gateway = await startGateway();
  const { child, out, ended } = live(gateway.base, '-', '--json');
  child.stdin.end(wav(samples(silence(1), tone(1), silence(1))));
  assert.deepEqual(await ended, [0, null]);
  const types = out.text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { type: string }).type);
  assert.equal(types[0], 'session.created');
  assert(types.includes('conversation.item.input_audio_transcription.completed'), types.join(' '));
});

test('Ctrl-C ends with the last text', async () => {
  await using gateway = await startGateway();
  const { child, out, ended } = live(gateway.base, '--raw', '16000', '--json');
  child.stdin.write(bytes(samples(silence(1), tone(2))));
  await until('someone speaks', () => out.text.includes('speech_started'), 20_000);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [0, null]);
  assert.match(out.text, /"transcript":"Hello there\."/);
});

test('a reader that leaves ends the command and its session', async () => {
  await using gateway = await startGateway();
  const { child, out, ended } = live(gateway.base, '--raw', '16000', '--json');
  child.stdin.write(bytes(samples(silence(1))));
  await until('the session is open', () => out.text.includes('session.updated'), 20_000);
  child.stdout.destroy();
  for (let i = 0; i < 3; i += 1) child.stdin.write(bytes(samples(tone(1), silence(1))));
  assert.deepEqual(await ended, [0, null], out.errors);
  await until('no connection is left', async () => (await openSockets(gateway)) === 0, 20_000);
});

test('each failure is one sentence and exit status 1', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'secret' } });
  const cases: [RegExp, ...Parameters<typeof live>][] = [
    [
      /^voxgate: no gateway answers at http:\S+: start one with voxgate serve/,
      `http://127.0.0.1:${await freePort()}`,
    ],
    [/^voxgate: Cannot hear through http:\S+: .*key/i, gateway.base],
    [/^error: .*Expected an address such as http/, 'localhost:8000'],
    [/^voxgate: --raw reads stdin, and a.wav is a file/, gateway.base, 'a.wav'],
  ];
  for (const [sentence, base, ...args] of cases) {
    const { child, out, ended } = live(base, '--raw', '16000', ...args);
    child.stdin.end();
    assert.deepEqual(await ended, [1, null], out.errors);
    assert.match(out.errors, sentence);
    assert.equal(out.errors.trimEnd().split('\n').length, 1, out.errors);
  }
});

test('a file that cannot be read, an unknown rate and an utterance that fails are told', async () => {
  await using gateway = await startGateway({
    transcribe: async () => {
      throw new Error('the engine is broken');
    },
  });
  const missing = live(gateway.base, '/nowhere/a.wav');
  assert.deepEqual(await missing.ended, [1, null]);
  assert.match(
    missing.out.errors,
    /^voxgate: ffmpeg cannot read \/nowhere\/a\.wav: .*No such file or directory\n$/,
  );
  const rate = live(gateway.base, '--raw', '12345');
  assert.deepEqual(await rate.ended, [1, null]);
  assert.match(rate.out.errors, /Expected one of 8000/);
  const failed = live(gateway.base, '--raw', '16000');
  failed.child.stdin.end(bytes(samples(silence(1), tone(1), silence(1))));
  assert.deepEqual(await failed.ended, [1, null]);
  assert.match(failed.out.errors, /^voxgate: /);
});

test('a gateway that ends the session is told, and ffmpeg does not stay behind', async () => {
  const gateway = await startGateway();
  const { child, out, ended } = live(gateway.base, '-', '--json');
  child.stdin.write(wav(samples(silence(1), tone(1))));
  await until('the session is open', () => out.text.includes('session.created'), 20_000);
  await gateway[Symbol.asyncDispose]();
  assert.deepEqual(await ended, [1, null]);
  assert.match(out.errors, /^voxgate: The gateway ended the session: /);
});

test('a gateway with all its sessions taken, and settings that it refuses, are told at once', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_LIVE_SESSIONS: '1' } });
  const first = live(gateway.base, '--raw', '16000', '--json');
  await until('the session is open', () => first.out.text.includes('session.updated'), 20_000);
  const second = live(gateway.base, '--raw', '16000');
  assert.deepEqual(await second.ended, [1, null]);
  assert.match(second.out.errors, /^voxgate: Cannot hear through http:\S+: .*SVC_MAX_LIVE_SESSIONS/);
  first.child.stdin.end();
  assert.deepEqual(await first.ended, [0, null], first.out.errors);

  const refused = live(gateway.base, '--raw', '16000', '--language', 'klingon');
  refused.child.stdin.write(bytes(samples(silence(1), tone(1), silence(1))));
  assert.deepEqual(await refused.ended, [1, null]);
  assert.match(refused.out.errors, /^voxgate: .*klingon.*\n$/);
  assert.equal(refused.out.text, '');
});

test('the microphone is read by the first program that is there, and its last line says why it cannot', {
  skip: process.platform !== 'linux' && 'the programs of other systems differ',
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'voxgate-live-'));
  t.after(() => rm(folder, { recursive: true }));
  await using gateway = await startGateway();
  const env = { PATH: folder };
  const none = liveWith(env, gateway.base);
  assert.deepEqual(await none.ended, [1, null]);
  assert.match(none.out.errors, /^voxgate: There is no arecord or ffmpeg in PATH: .*\n$/);

  const recorder = (script: string) =>
    writeFile(join(folder, 'arecord'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  await recorder('echo "ALSA lib: no card" >&2\necho "audio open error: No such file" >&2\nexit 1');
  const broken = liveWith(env, gateway.base);
  assert.deepEqual(await broken.ended, [1, null]);
  assert.equal(
    broken.out.errors,
    'voxgate: arecord cannot read the microphone: audio open error: No such file\n',
  );

  // The stand-in checks the format, writes speech at 24 kHz, and records on until it is told to end.
  const speech = new Float32Array(24_000).map((_, i) => 0.5 * Math.sin(i / 10));
  await writeFile(join(folder, 'speech'), bytes(samples(new Float32Array(24_000), speech)));
  await recorder(`case "$*" in *S16_LE*-c\\ 1*-r\\ 24000*) ;; *) exit 2 ;; esac
/bin/cat ${join(folder, 'speech')}; exec /bin/sleep 600`);
  const { child, out, ended } = liveWith(env, gateway.base, '--json');
  await until('someone speaks', () => out.text.includes('speech_started'), 20_000);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [0, null], out.errors);
  assert.match(out.text, /"transcript":"Hello there\."/);
});
