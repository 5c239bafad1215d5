/** `voxgate transcribe` as an operator types it, over the scripted engine: what it writes where, and how it ends. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { registerTranscribeCommand } from '../../src/cli/transcribe.ts';
import { askFor } from '../../src/cli/transcribe-client.ts';
import { readConfig } from '../../src/config/config.ts';
import { transcriptionFields } from '../../src/wire/request.ts';
import { listening } from '../local-server.ts';
import { program } from '../program.ts';
import { joinWavs } from '../wav.ts';
import { heard, type Script, startGateway, toneWav, until, untilAborted } from './harness.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const TEXT = 'Hello there.';

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-transcribe-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

function start(args: string[], env: NodeJS.ProcessEnv = {}): ChildProcess & { out(): string; err(): string } {
  const command = [...program('test/http/scripted-serve.ts'), 'transcribe', ...args];
  const child = spawn(process.execPath, command, { cwd: ROOT, env: { ...process.env, ...env } });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  return Object.assign(child, { out: () => stdout, err: () => stderr });
}

async function run(args: string[], env?: NodeJS.ProcessEnv) {
  const child = start(args, env);
  const [status] = await once(child, 'close');
  return { status, stdout: child.out(), stderr: child.err() };
}

/** A folder with two files of sound, of which one is in a folder below, and one that is no sound. */
function recordings(t: TestContext): string {
  const dir = folder(t);
  mkdirSync(join(dir, 'calls'));
  writeFileSync(join(dir, 'b.wav'), toneWav(1));
  writeFileSync(join(dir, 'calls', 'a.WAV'), toneWav(1));
  writeFileSync(join(dir, 'notes.txt'), 'no sound');
  return dir;
}

test('the text of one file is printed, and nothing else', async (t) => {
  const dir = recordings(t);
  const { status, stdout, stderr } = await run([join(dir, 'b.wav')]);
  assert.deepEqual([status, stdout], [0, `${TEXT}\n`], stderr);
});

/** Runs the command in a script of the shell, where it is `"$@"` and standard input a socket with audio. */
async function inShell(script: string, args: string[]) {
  const command = [process.execPath, ...program('test/http/scripted-serve.ts'), 'transcribe', ...args];
  const child = spawn('sh', ['-c', script, 'sh', ...command], { cwd: ROOT });
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  child.stdin.on('error', () => undefined); // the command reads no stdin where the script gives it other audio
  child.stdin.end(toneWav(1));
  const [status] = await once(child, 'close');
  return { status, stdout: await stdout, stderr: await stderr };
}

test('- is standard input: a pipe, a socket, or a file that only ffmpeg reads', async (t) => {
  const dir = recordings(t);
  execFileSync('ffmpeg', ['-v', 'error', '-nostdin', '-i', join(dir, 'b.wav'), join(dir, 'b.m4a')]);
  await using gateway = await startGateway();
  for (const [script, ...options] of [
    ['"$@"'],
    ['cat | "$@"'],
    [`"$@" < ${join(dir, 'b.m4a')}`],
    ['"$@"', '--server', gateway.base],
    [`cat | "$@"`, '--server', gateway.base],
    [`"$@" < ${join(dir, 'b.wav')}`, '--server', gateway.base],
  ] as const)
    assert.deepEqual(
      await inShell(script, ['-', ...options]),
      { status: 0, stdout: `${TEXT}\n`, stderr: '' },
      script,
    );
  const none = await inShell('"$@" < /dev/null', ['-']);
  assert.deepEqual([none.status, none.stderr], [1, '/dev/stdin is no regular file\n']);
  const kept = await inShell('"$@"', ['-', '--output-dir', join(dir, 'texts')]);
  assert.equal(kept.status, 0, kept.stderr);
  assert.deepEqual(readdirSync(join(dir, 'texts')), ['stdin.txt']);
});

test('a terminal as standard input is told what to do, and nothing is waited for', {
  skip: process.platform !== 'linux' && 'util-linux makes the terminal',
}, async () => {
  const { status, stdout } = await inShell('exec script -qec "$(printf "%s " "$@")" /dev/null < /dev/null', [
    '-',
  ]);
  assert.equal(status, 1);
  assert.match(
    stdout,
    /^voxgate: stdin is a terminal: pipe audio in, as in "ffmpeg \.\.\. \| voxgate transcribe -"\r\n$/,
  );
});

/** What the command prints for people who look on, or for programs, with a gateway of ours. */
async function printed(args: string[], { isTTY, gateway }: { isTTY: boolean; gateway: { base: string } }) {
  const parts: string[] = [];
  const shown: string[] = [];
  const sink = (to: string[]) =>
    Object.assign(
      new Writable({
        write(chunk, _encoding, done) {
          to.push(String(chunk));
          done();
        },
      }),
      isTTY ? { isTTY, columns: 80 } : {},
    ) as unknown as NodeJS.WriteStream;
  const command = new Command();
  registerTranscribeCommand(command, {
    config: () => readConfig({}).config,
    start: async () => ({
      ask(question) {
        if (question.onTextUntil) setTimeout(question.onTextUntil, 20, 6);
        return askFor({ ...question, base: gateway.base, key: undefined });
      },
      durationOf: async () => 8,
      async [Symbol.asyncDispose]() {},
    }),
    stdout: sink(parts),
    stderr: sink(shown),
  });
  await command.parseAsync(['node', 'voxgate', 'transcribe', ...args]);
  const code = process.exitCode ?? 0;
  process.exitCode = 0; // the command has set that of the test
  return { parts, shown: shown.join(''), code };
}

test('on a terminal segments come one by one below a bar, and make the same text', async (t) => {
  const path = join(folder(t), 'talk.wav');
  writeFileSync(path, joinWavs(toneWav(2), toneWav(4, 0), toneWav(2)));
  await using gateway = await startGateway({ transcribe: async () => heard(' One. Two.') });
  for (const paths of [[path], [path, path]]) {
    const piped = await printed(paths, { isTTY: false, gateway });
    const seen = await printed(paths, { isTTY: true, gateway });
    assert.equal(seen.parts.join(''), piped.parts.join(''));
    assert(seen.parts.includes('One.') && seen.parts.includes(' Two.'), JSON.stringify(seen.parts));
    assert.equal(piped.shown, '');
    assert.match(seen.shown, /talk\.wav \[.*% of 0:08/);
  }
});

/** Works for long enough that a terminal is told about it. */
const takingTime: Script = {
  async transcribe() {
    await sleep(200);
    return heard(' One. Two.');
  },
};

test('on a terminal every format has a bar, and its text comes as a whole', async (t) => {
  const path = join(folder(t), 'talk.wav');
  writeFileSync(path, toneWav(2));
  await using gateway = await startGateway(takingTime);
  for (const format of ['srt', 'vtt', 'json', 'verbose_json']) {
    const args = [path, '--format', format];
    const piped = await printed(args, { isTTY: false, gateway });
    const seen = await printed(args, { isTTY: true, gateway });
    assert.deepEqual(seen.parts, piped.parts);
    assert.match(seen.shown, /talk\.wav \[.*75 % of 0:08/, format);
    assert.equal(piped.shown, '');
  }
});

test('while a gateway works on a body of one piece, a terminal says for how long', async (t) => {
  const path = join(folder(t), 'talk.wav');
  writeFileSync(path, toneWav(2));
  await using gateway = await startGateway(takingTime);
  for (const format of ['srt', 'vtt', 'json', 'verbose_json']) {
    const args = [path, '--format', format, '--server', gateway.base];
    const piped = await printed(args, { isTTY: false, gateway });
    const seen = await printed(args, { isTTY: true, gateway });
    assert.deepEqual(seen.parts, piped.parts);
    assert.match(seen.shown, /talk\.wav waiting for the gateway, \d+s/, format);
    assert.equal(piped.shown, '');
  }
});

test('of a file that fails in the middle nothing is printed, or what a terminal shows is said to be incomplete', async (t) => {
  const dir = folder(t);
  const [long, short] = ['long.wav', 'short.wav'].map((name) => join(dir, name)) as [string, string];
  writeFileSync(long, joinWavs(toneWav(20), toneWav(4, 0), toneWav(20), toneWav(4, 0), toneWav(20)));
  writeFileSync(short, toneWav(1));
  let chunks = 0;
  await using gateway = await startGateway({
    async transcribe(samples) {
      if (samples.length < 3 * 16_000) return heard(' Short.');
      chunks += 1;
      if (chunks === 3) throw new Error('out of memory');
      return heard(' Half.');
    },
  });
  for (const isTTY of [false, true])
    for (const more of [[], ['--jobs', '2'], ['--server', gateway.base]]) {
      chunks = 0;
      const { parts, shown, code } = await printed([long, short, ...more], { isTTY, gateway });
      const text = parts.join('');
      assert.equal(code, 1);
      const isShown = isTTY && more[0] !== '--jobs';
      assert.equal(text, `${isShown ? `==> ${long} <==\nHalf.\n` : ''}==> ${short} <==\nShort.\n`);
      assert.equal(shown.includes('(the text above is incomplete)\n'), isShown, shown);
      assert.equal(chunks, 3, 'the text has begun');
    }
});

test('records of a gateway in the same folder are left to it, however old', async (t) => {
  const [dir, logs] = [recordings(t), folder(t)];
  writeFileSync(join(logs, 'access-2020-01-01.jsonl'), 'x');
  const { status, stderr } = await run([join(dir, 'b.wav')], { SVC_OBS_LOG_DIR: logs });
  assert.equal(status, 0, stderr);
  assert.deepEqual(readdirSync(logs), ['access-2020-01-01.jsonl']);
});

test('several texts have their paths above them, and a folder gives those of its audio files', async (t) => {
  const dir = recordings(t);
  const { status, stdout, stderr } = await run([dir]);
  assert.equal(status, 0, stderr);
  const [b, a] = [join(dir, 'b.wav'), join(dir, 'calls', 'a.WAV')];
  assert.equal(stdout, `==> ${b} <==\n${TEXT}\n==> ${a} <==\n${TEXT}\n`);
});

test('texts are written to a folder once, and anew with --overwrite', async (t) => {
  const [dir, to] = [recordings(t), join(folder(t), 'texts')];
  const args = [dir, '--output-dir', to, '--response-format', 'srt', '--jobs', '2'];
  const first = await run(args);
  assert.equal(first.status, 0, first.stderr);
  assert.deepEqual(readdirSync(to, { recursive: true }).sort(), ['b.srt', 'calls', 'calls/a.srt']);
  assert.match(readFileSync(join(to, 'b.srt'), 'utf8'), /^1\n00:00:0.*\nHello there\.\n/);
  writeFileSync(join(to, 'b.srt'), 'mine');
  const second = await run(args);
  assert.equal(second.status, 0, second.stderr);
  assert.match(second.stderr, /b\.wav: .*b\.srt is there already/);
  assert.equal(readFileSync(join(to, 'b.srt'), 'utf8'), 'mine');
  const third = await run([...args, '--overwrite', '--json']);
  assert.match(readFileSync(join(to, 'b.srt'), 'utf8'), /Hello there/);
  const lines = third.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ output }) => output).sort(), [join(to, 'b.srt'), join(to, 'calls', 'a.srt')]);
});

test('two files whose texts would have one name are not written over each other', async (t) => {
  const dir = recordings(t);
  writeFileSync(join(dir, 'b.flac'), toneWav(1));
  const to = folder(t);
  const { status, stderr } = await run([dir, '--output-dir', to]);
  assert.equal(status, 1);
  assert.match(stderr, /b\.wav: its text would be .*b\.txt, which is that of .*b\.flac/);
  assert.deepEqual(readdirSync(to).sort(), ['b.txt', 'calls']);
});

test('a file that fails is named with the reason, and the others have their texts', async (t) => {
  const dir = recordings(t);
  writeFileSync(join(dir, 'a.mp3'), 'no sound at all');
  const { status, stdout, stderr } = await run([dir, '--json', '--response-format', 'json']);
  assert.equal(status, 1);
  assert.match(stderr, /a\.mp3: The format of the file is not supported: .*\n$/);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ response, error }) => response?.text ?? typeof error),
    ['string', TEXT, TEXT],
  );
});

test('what is wrong ends the command before anything starts', async (t) => {
  const dir = recordings(t);
  const file = join(dir, 'b.wav');
  for (const [args, message] of [
    [[file, '--temperature', '3'], /temperature/],
    [[join(dir, 'none.wav')], /^voxgate: \S*none\.wav: no such file or directory\n$/],
    [[file, '--watch'], /--watch needs a folder/],
    [
      [file, '--output-dir', '/proc/nope'],
      /^voxgate: The folder of --output-dir cannot be written to: \/proc\/nope: no such file or directory\n$/,
    ],
    [[file, '--output-dir', file], /^voxgate: The folder of --output-dir .*b\.wav: file already exists\n$/],
    [['-', '/dev/stdin'], /^voxgate: stdin can be given only once\n$/],
    [[file, '--jobs', '0'], /whole number from 1 to 64/],
    [[file, '--speaker', 'Anna'], /expected a name, = and a file/],
    [[file, '--server', 'ftp://x'], /Expected an address/],
  ] as const) {
    const { status, stdout, stderr } = await run([...args]);
    assert.deepEqual([status, stdout], [1, ''], stderr);
    assert.match(stderr, message);
  }
});

test('every field of the API but stream is an option', async () => {
  const { stdout } = await run(['--help']);
  const options = [...stdout.matchAll(/^ +--([\w-]+)/gm)].map(([, name = '']) => name.replaceAll('-', '_'));
  const missing = Object.keys(transcriptionFields).filter((name) => !options.includes(name));
  // A speaker's name and voice are one option, --speaker.
  assert.deepEqual(missing, ['stream', 'known_speaker_names', 'known_speaker_references']);
  assert(options.includes('speaker'));
});

/** A gateway of this process, with a key. */
const withKey = (script: Script = {}) => startGateway({ ...script, env: { SVC_API_KEY: 'secret' } });

test('a gateway that runs already gets the fields and the key', async (t) => {
  const dir = recordings(t);
  const seen: unknown[] = [];
  await using gateway = await withKey({
    async transcribe(_samples, options) {
      seen.push(options.language, options.prompt);
      return [];
    },
  });
  const args = [join(dir, 'b.wav'), '--server', `${gateway.base}/v1`];
  const fields = ['--model', 'multilingual-base', '--language', 'de', '--prompt', 'Grüße'];
  const fine = await run([...args, ...fields], { SVC_API_KEY: 'secret' });
  assert.deepEqual([fine.status, seen.slice(0, 2)], [0, ['de', 'Grüße']], fine.stderr);
  const keyless = await run(args);
  assert.equal(keyless.status, 1);
  assert.match(keyless.stderr, /b\.wav: A valid key is needed/);
});

test('a busy gateway is asked again, and what it says is told once', async (t) => {
  const dir = recordings(t);
  await using gateway = await startGateway();
  const hold = gateway.app.slot.take('tts', 'other');
  const running = run([join(dir, 'b.wav'), '--server', gateway.base]);
  const refusals = () => gateway.exchanges.filter(({ status }) => status === 503).length;
  await until('it was refused twice', () => refusals() === 2, 40_000);
  hold[Symbol.dispose]();
  const { status, stdout, stderr } = await running;
  assert.deepEqual([status, stdout], [0, `${TEXT}\n`], stderr);
  assert.match(
    stderr,
    /^http:\S+: The inference slot is busy \(tts\); retry in \d+ s: waiting for up to 60 min\n$/,
  );
});

test('a gateway that is not there, or that ends in the middle, is told', async (t) => {
  const dir = recordings(t);
  const file = join(dir, 'b.wav');
  const none = await run([file, '--server', 'http://127.0.0.1:1']);
  assert.equal(none.status, 1);
  assert.match(none.stderr, /b\.wav: no gateway answers at http:\/\/127\.0\.0\.1:1: start one/);
  await using server = await listening(createServer((socket) => socket.once('data', () => socket.destroy())));
  const cut = await run([file, '--server', server.base]);
  assert.equal(cut.status, 1);
  assert.match(cut.stderr, /b\.wav: the connection to http:\S+ broke off\n$/);
});

test('Ctrl-C stops the work and leaves no half text', async (t) => {
  const [dir, to] = [recordings(t), folder(t)];
  await using gateway = await startGateway({ transcribe: untilAborted });
  const child = start([dir, '--server', gateway.base, '--output-dir', to]);
  const ended = once(child, 'close');
  await until('it is heard', () => gateway.running() > 0, 20_000);
  child.kill('SIGINT');
  const [status] = await ended;
  assert.equal(status, 130, child.err());
  assert.deepEqual(readdirSync(to), []);
  await until('the gateway is free', () => gateway.app.slot.status().holder === null);
});

test('--watch takes files that come later, and again those that change', async (t) => {
  const [dir, to] = [recordings(t), folder(t)];
  const child = start([dir, '--watch', '--output-dir', to, '--overwrite']);
  const ended = once(child, 'close');
  const late = join(to, 'late.txt');
  await until('the first text', () => existsSync(join(to, 'b.txt')), 30_000);
  writeFileSync(join(dir, 'late.wav'), toneWav(1));
  await until('the text of the late file', () => existsSync(late), 30_000);
  rmSync(late);
  writeFileSync(join(dir, 'late.wav'), toneWav(2));
  await until('the text of the changed file', () => existsSync(late), 30_000);
  child.kill('SIGINT');
  const [status] = await ended;
  assert.equal(status, 130, child.err());
  assert.equal(child.out(), '');
});
