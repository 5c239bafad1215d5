/** The programs of examples/ do what they say, as processes, with a gateway that wants a key. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { heard, startGateway, toneWav, until } from '../http/harness.ts';
import { JFK, JFK_TEXT, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { sideBySide } from '../side-by-side.ts';
import { chatLacks, speechLacks, startChat, startSpeech, type Upstream } from '../upstreams/start.ts';
import { joinWavs } from '../wav.ts';
import { pythonBin } from './python.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url).pathname;
const KEY = 'a-key-of-the-examples';
const RETRY_AFTER_MS = 5000;
const LIMIT_MS = 180_000;
const NO_UPSTREAMS = {
  SVC_TTS_UPSTREAM_URL: 'http://127.0.0.1:9',
  SVC_LLM_BACKEND_URL: 'http://127.0.0.1:9',
  SVC_API_KEY: KEY,
};

const dir = mkdtempSync(join(tmpdir(), 'voxgate-examples-'));
const tone = join(dir, 'tone.wav');
writeFileSync(tone, toneWav(1));
const pause = join(dir, 'pause.wav');
writeFileSync(pause, joinWavs(toneWav(1), toneWav(3, 0), toneWav(1)));

const lacks = speechLacks() ?? chatLacks();
const upstreams: Upstream[] = [];
let python: string;
before(async () => {
  python = join(await pythonBin(), 'python');
  if (lacks === null) upstreams.push(await startSpeech(), await startChat());
});
after(async () => {
  for (const upstream of upstreams) await upstream.stop();
  rmSync(dir, { recursive: true, force: true });
});

const programs = readdirSync(EXAMPLES).filter((name) => /\.(sh|mjs|py)$/.test(name));

test('every example is short enough to read at once', () => {
  assert.equal(programs.length, 5);
  for (const name of [...programs, 'browser.html']) {
    assert(readFileSync(join(EXAMPLES, name), 'utf8').split('\n').length <= 60, name);
  }
});

interface Outcome {
  cwd: string;
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program in a folder of its own, where it leaves its speech. */
function runExample(name: string, base: string, audio: string, key = KEY): Promise<Outcome> {
  const cwd = mkdtempSync(join(dir, 'run-'));
  const interpreter = { sh: 'sh', mjs: process.execPath, py: python }[name.split('.').at(-1) ?? ''] ?? '';
  const env = { ...process.env, VOXGATE_URL: base, VOXGATE_API_KEY: key };
  return new Promise((resolve) => {
    const options = { cwd, env, timeout: LIMIT_MS };
    const child = execFile(interpreter, [join(EXAMPLES, name), audio], options, (_error, stdout, stderr) =>
      resolve({ cwd, code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

sideBySide(() => {
  for (const name of programs) {
    test(`${name} waits for a busy gateway, then transcribes, streams, speaks and chats`, async (t) => {
      if (lacks !== null) return t.skip(lacks);
      if (!needsWeights(t)) return;
      const [SVC_TTS_UPSTREAM_URL = '', SVC_LLM_BACKEND_URL = ''] = upstreams.map(({ base }) => base);
      const env = { SVC_TTS_UPSTREAM_URL, SVC_LLM_BACKEND_URL, SVC_API_KEY: KEY };
      await using gateway = await startRealGateway({}, env);
      const asked: { atMs: number; status: number }[] = [];
      gateway.app.server.on('request', (req, res) => {
        const atMs = performance.now();
        if (req.url === '/v1/audio/transcriptions')
          res.on('finish', () => asked.push({ atMs, status: res.statusCode }));
      });
      const hold = gateway.app.slot.take('llm', 'somebody');
      const running = runExample(name, gateway.base, JFK);
      await until('it was refused', () => asked.length === 1, LIMIT_MS);
      hold[Symbol.dispose]();
      const { cwd, code, stdout, stderr } = await running;
      assert.equal(code, 0, stderr);

      const [refused, served] = asked;
      assert.deepEqual([refused?.status, served?.status], [503, 200]);
      assert((served?.atMs ?? 0) - (refused?.atMs ?? 0) >= RETRY_AFTER_MS - 50, 'it did not wait');

      const said = plain(JFK_TEXT);
      assert.equal(plain(/^text: (.*)/m.exec(stdout)?.[1] ?? ''), said);
      const deltas = [...stdout.matchAll(/^delta: (.*)|"delta":"([^"]*)/gm)].map((m) => m[1] ?? m[2]);
      assert.equal(plain(deltas.join(' ')), said);
      const words = [...stdout.matchAll(/^word: [\d.]+ to [\d.]+ s (.*)|"word":"([^"]*)/gm)];
      assert.equal(plain(words.map((m) => m[1] ?? m[2]).join(' ')), said);
      assert.match(stdout, /^speech: speech\.wav$/m);
      assert.equal(readFileSync(join(cwd, 'speech.wav')).subarray(0, 4).toString(), 'RIFF');
      assert.match(stdout, /^chat: .*\S/m);
    });
  }
});

for (const name of programs) {
  test(`${name} does what a gateway without upstreams can do`, async () => {
    await using gateway = await startGateway({ env: NO_UPSTREAMS });
    const { code, stdout, stderr } = await runExample(name, gateway.base, tone);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^text: Hello there\.$/m);
    assert.doesNotMatch(stdout, /^(speech|chat): /m);
  });

  test(`${name} fails without the key`, async () => {
    await using gateway = await startGateway({ env: NO_UPSTREAMS });
    const { code, stderr } = await runExample(name, gateway.base, tone, 'wrong');
    assert.notEqual(code, 0);
    assert.match(stderr, /401|invalid_api_key/);
  });
}

for (const name of programs.filter((program) => program !== 'curl.sh')) {
  test(`${name} fails when a stream ends in an error, after the text that had arrived`, async () => {
    let chunks = 0;
    await using gateway = await startGateway({
      env: NO_UPSTREAMS,
      transcribe: async () => {
        chunks += 1;
        if (chunks === 4) throw new Error('out of words');
        return heard(' Hello there.');
      },
    });
    const { code, stdout, stderr } = await runExample(name, gateway.base, pause);
    assert.equal(chunks, 4);
    assert.notEqual(code, 0);
    assert.match(stdout, /^delta: Hello there\.$/m);
    assert.match(stderr, /failed|error/i);
  });
}
