/**
 * `npm run quickstart` leads in one command from a fresh clone to a gateway that has transcribed its first clip. Each
 * step is skipped when nothing has changed since it last ran. `-- --once` stops after the sample. `-- --demo` puts a
 * speech server (espeak-ng) and a chat daemon (a toy model) behind it, so that all three capabilities answer.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describeMissing, exec, missingTools, newest, ROOT, requireTools, run } from './tools.mjs';

const MODEL = 'multilingual-base';
const SAMPLE = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp/samples/jfk.mp3');
const START_LIMIT_MS = 30_000;
const once = process.argv.includes('--once');
const demo = process.argv.includes('--demo');

checkTools();
install();
build();
exec(process.execPath, ['dist/main.js', 'models', 'pull', MODEL]);
await serve();

function checkTools() {
  requireTools(['cmake', 'compiler', 'make', 'patch']);
  const optional = missingTools(['ffmpeg', 'python', 'pip']);
  if (optional.length > 0) process.stdout.write(`${describeMissing(optional)}\nGoing on without.\n\n`);
}

function install() {
  const installed = join(ROOT, 'node_modules/.package-lock.json');
  if (newest(installed) >= newest(join(ROOT, 'package-lock.json'))) return;
  run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
}

function build() {
  exec(process.execPath, ['scripts/build-native.mjs']);
  const sources = newest(...['src', 'tsconfig.build.json', 'tsconfig.json'].map((path) => join(ROOT, path)));
  if (newest(join(ROOT, 'dist/.built')) >= sources) return;
  run('compile', 'npm', ['run', '--silent', 'build', '--', 'ts']);
}

async function serve() {
  const { readConfig } = await import('../dist/config/config.js');
  const { baseUrl, reachable } = await import('../dist/address.js');
  const { host, apiKeys } = readConfig().config;
  const port = Number(process.env.SVC_PORT) || (await freePort(8000));
  const base = baseUrl(reachable(host), port);
  const headers = apiKeys[0] === undefined ? {} : { Authorization: `Bearer ${apiKeys[0]}` };
  const post = (path, init) =>
    fetch(base + path, { ...init, method: 'POST', headers: { ...init.headers, ...headers } });
  const curl = apiKeys[0] === undefined ? 'curl' : "curl -H 'Authorization: Bearer <key>'";
  const upstreams = demo ? await startUpstreams() : {};
  const gateway = spawn(process.execPath, ['--max-semi-space-size=1', 'dist/main.js', 'serve'], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...upstreams, SVC_PORT: String(port) },
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => gateway.kill(signal));
  process.on('exit', () => gateway.kill()); // also where a step below fails
  gateway.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 0)));

  await untilHealthy(base);
  const text = await transcribeSample(base, { post, curl });
  if (text === '') gateway.kill('SIGTERM');
  if (demo) await showUpstreams(base, { post, curl });
  if (!once) return process.stdout.write('\nCtrl-C stops the gateway.\n');
  gateway.kill('SIGTERM');
}

/** Starts the upstreams, which end with this process. */
async function startUpstreams() {
  requireTools(['espeak-ng', 'ffmpeg']);
  const { tsImport } = await import('tsx/esm/api');
  const { startSpeech, startChat } = await tsImport('../test/upstreams/start.ts', import.meta.url);
  const [speech, chat] = [await startSpeech(), await startChat()];
  return { SVC_TTS_UPSTREAM_URL: speech.base, SVC_LLM_BACKEND_URL: chat.base };
}

/** Lets the gateway speak a sentence and transcribe it, and asks the toy model a question. */
async function showUpstreams(base, { post, curl }) {
  const postJson = (path, body) =>
    post(path, { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  const said = 'The gateway can speak, and it can hear what it has said.';
  const speech = await postJson('/v1/audio/speech', { input: said, voice: 'alloy', model: 'tts' });
  const audio = await speech.blob();
  const form = new FormData();
  form.set('file', audio, 'speech.wav');
  form.set('model', MODEL);
  form.set('language', 'en');
  const heard = await post('/v1/audio/transcriptions', { body: form });
  const chat = await postJson('/v1/chat/completions', {
    model: 'tiny',
    messages: [{ role: 'user', content: 'Say something.' }],
    max_tokens: 12,
  });
  const answer = (await chat.json()).choices?.[0]?.message?.content;
  process.stdout.write(
    [
      `  said         "${said}" (${audio.size} bytes of speech)`,
      `  heard        "${(await heard.json()).text}"`,
      `  chat         "${answer}" (random weights: the words mean nothing)`,
      '',
      `  speak        ${curl} ${base}/v1/audio/speech -H 'Content-Type: application/json' -d '{"input":"Hello"}' -o hello.wav`,
      `  chat         ${curl} -N ${base}/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"tiny","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
      '',
    ].join('\n'),
  );
}

async function untilHealthy(base) {
  const deadline = Date.now() + START_LIMIT_MS;
  while (Date.now() < deadline) {
    const ok = await fetch(`${base}/health`).then(
      (r) => r.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`The gateway did not answer at ${base}/health within ${START_LIMIT_MS / 1000} s`);
}

async function transcribeSample(base, { post, curl }) {
  const form = new FormData();
  form.set('file', new Blob([readFileSync(SAMPLE)]), 'jfk.mp3');
  form.set('model', MODEL);
  form.set('response_format', 'verbose_json');
  const startedAt = performance.now();
  const response = await post('/v1/audio/transcriptions', { body: form });
  const took = (performance.now() - startedAt) / 1000;
  const body = await response.json();
  if (!response.ok) throw new Error(`The sample was refused: ${body.error?.message ?? response.status}`);
  process.stdout.write(
    [
      '',
      `  "${body.text}"`,
      '',
      `  ${body.duration.toFixed(1)} s of ${body.language} in ${took.toFixed(2)} s by ${body.model}, model load included`,
      `  real-time factor ${(took / body.duration).toFixed(3)}`,
      '',
      `  transcribe   ${curl} ${base}/v1/audio/transcriptions -F file=@speech.mp3`,
      `  try it       ${base}/playground`,
      `  watch it     ${base}/admin`,
      `  explore      ${base}/docs`,
      `  models       ${base}/v1/models`,
      `  health       ${base}/health`,
      '',
    ].join('\n'),
  );
  return body.text;
}

/** Returns the wanted port when it is free, else any free one. */
function freePort(wanted) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => {
      if (error.code !== 'EADDRINUSE' || wanted === 0) return reject(error);
      process.stdout.write(`Port ${wanted} is in use; taking a free one (SVC_PORT chooses).\n`);
      resolve(freePort(0));
    });
    probe.listen(wanted, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
