/** The two sides of the comparison: faster-whisper in a Python environment of its own, and the running gateway. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openAsBlob, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PINS = ['faster-whisper==1.2.1', 'jiwer==4.0.0', 'whisper-normalizer==0.1.15'];
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
  text: string;
  words: TimedWord[];
}

export interface Clip {
  audio: string;
  language: string;
  words: boolean;
}

export interface Peer extends AsyncDisposable {
  versions: Record<string, string>;
  transcribe(clip: Clip, options: { vad: boolean }): Promise<Run>;
  wordErrorRate(reference: string, hypothesis: string, language: string): Promise<number>;
}

/** Makes the environment at the first call; later ones find the pins in it. Returns its Python. */
export function ensureVenv(folder: string): string {
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

/** `model`: a directory with a CTranslate2 Whisper checkpoint (model.bin, config.json, tokenizer.json, vocabulary). */
export async function startPeer(options: { venv: string; model: string; threads: number }): Promise<Peer> {
  const child = spawn(
    ensureVenv(options.venv),
    [SCRIPT, options.model, '--threads', String(options.threads)],
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
      const result = await ask<{ wall_ms: number; text: string; words: TimedWord[] }>({
        op: 'transcribe',
        ...clip,
        vad,
      });
      return { wallMs: result.wall_ms, text: result.text, words: result.words };
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
  const body = await response.text();
  const wallMs = performance.now() - begin;
  if (!response.ok) throw new Error(`The gateway answered ${response.status}: ${body}`);
  const { text, words = [] } = JSON.parse(body) as { text: string; words?: TimedWord[] };
  return { wallMs, text, words };
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
