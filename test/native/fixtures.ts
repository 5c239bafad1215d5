/** The tests of the addon share this audio, these weights and these options. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { ChunkOptions, TranscriptionModel } from '../../src/engine/types.ts';
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

export const chunkOptions: ChunkOptions = {
  language: 'en',
  translate: false,
  prompt: '',
  temperature: 0,
  audioContext: 0,
  maxTokens: 0,
  beams: 1,
  times: true,
  words: false,
  again: false,
};

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
  const file = await loadNative().openAudio(JFK);
  const samples = await file.read(30 * 16_000);
  file.close();
  assert.ok(samples);
  return samples;
}
