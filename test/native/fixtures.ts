/** The tests of the addon share this audio, these weights and these options. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { ChunkOptions, TranscriptionModel } from '../../src/engine/types.ts';
import { GREEDY } from '../../src/transcription/recognizer.ts';
import { JFK } from '../wav.ts';

export { JFK as speechFile };

const folder = mkdtempSync(join(tmpdir(), 'voxgate-native-'));
after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** Writes a temporary file, which is removed when the tests of this process are over. */
export function temporaryFile(content: string | Uint8Array = ''): string {
  const path = join(folder, `file-${++files}`);
  writeFileSync(path, content);
  return path;
}

/** The path of a file that is not there yet, for the step `touch` of a fake model. */
export function markFile(): string {
  return join(folder, `mark-${++files}`);
}

/** Makes a model that plays these lines; native/backends/fake/fake_backend.h says what they can be. */
export function fakeModelFile(...lines: string[]): string {
  return temporaryFile(`${['voxgate-fake 1', ...lines].join('\n')}\n`);
}

export function loadFake(...lines: string[]): Promise<TranscriptionModel> {
  return loadNative().loadModel({
    family: 'fake',
    path: fakeModelFile(...lines),
    device: 'cpu',
    threads: 1,
  });
}

export const chunkOptions: ChunkOptions = { ...GREEDY, language: 'en', words: false };

/**
 * The model of generate-parakeet.py, in which " eu" is nearly said where " Eu" is: its logit is `gap` below. After it
 * the model says "ros…", and so on.
 * @param gap 0.1 to 10, rounded to 0.05
 */
export function parakeetWithRival(gap: number): string {
  const [rival, place, places] = [22, 5, 29]; // the token, the tokens before it, and the columns of the weights
  const content = readFileSync(new URL('./data/parakeet-script.bin', import.meta.url));
  const name = 'joint.joint_net.2.weight';
  const weights = content.indexOf(name) + name.length;
  // The LSTM scales a weight by tanh(1). Halves from 64 to 128 have steps of 1/16.
  const weight = 79 - gap / Math.tanh(1);
  content.writeUInt16LE((21 << 10) | Math.round((weight - 64) * 16), weights + 2 * (rival * places + place));
  return temporaryFile(content);
}

/** The time of a piece of `whistle`. */
export const PIECE_SEC = 0.24;

const HZ: Record<string, number> = JSON.parse(
  readFileSync(new URL('./data/sensevoice/tones.json', import.meta.url), 'utf8'),
);

/**
 * What the model of tones writes: makes for each piece 120 ms of its tone and as much silence; '' is silence alone, and of 'a|b' the tone of b is
 * `softer` times as loud as that of a.
 */
export function whistle(pieces: string[], softer = 0): Float32Array {
  const samples = new Float32Array(Math.round(pieces.length * PIECE_SEC * 16_000) + 1600);
  pieces.forEach((piece, at) => {
    const begin = at * PIECE_SEC * 16_000;
    piece.split('|').forEach((tone, i) => {
      const hz = tone === '' ? 0 : (HZ[tone] ?? assert.fail(`no tone for ${tone}`));
      for (let n = 0; n < 1920; n++)
        samples[begin + n] =
          (samples[begin + n] ?? 0) + 0.3 * softer ** i * Math.sin((2 * Math.PI * hz * n) / 16_000);
    });
  });
  return samples;
}

export function textOf(segments: readonly { tokens: readonly { bytes: Uint8Array }[] }[]): string {
  return Buffer.concat(segments.flatMap((s) => s.tokens.map((t) => t.bytes))).toString('utf8');
}

export function sine(hertz: number, seconds: number, sampleRate = 16_000): Int16Array {
  return Int16Array.from({ length: Math.round(seconds * sampleRate) }, (_, i) =>
    Math.round(16_000 * Math.sin((2 * Math.PI * hertz * i) / sampleRate)),
  );
}

/** Finds the weights that a variable of the environment names, or the reason to skip what needs them. */
export function weights(variable: string): { path: string; skip: string | false } {
  const path = process.env[variable] ?? '';
  return { path, skip: existsSync(path) ? false : `${variable} names no file` };
}

/** Reads the sample clip at 16 kHz. */
export async function readSpeech(): Promise<Float32Array> {
  const file = await loadNative().openAudio(JFK, 'mp3');
  const samples = await file.read(30 * 16_000);
  file.close();
  assert.ok(samples);
  return samples;
}
