/** Samples of audio files, at 16 kHz and in mono. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const RATE = 16_000;
export const BYTES_A_SECOND = 2 * RATE;
export const HEADER_BYTES = 44;
const RAW = ['-ar', String(RATE), '-ac', '1', '-f', 's16le'] as const;

/** Runs ffmpeg with these inputs and filters. Returns 16-bit samples. */
export function decoded(inputs: readonly string[], input?: Buffer): Buffer {
  return ffmpeg([...inputs, ...RAW, '-'], input);
}

export function ffmpeg(args: readonly string[], input?: Buffer): Buffer {
  const options = { maxBuffer: 1e9, ...(input === undefined ? {} : { input }) };
  return execFileSync('ffmpeg', ['-v', 'error', ...args], options);
}

export const samplesOf = (audio: string) => decoded(inputOf(audio));

/** The same for many short files in one process, because starting it takes longer than decoding one. */
export function samplesOfAll(audios: readonly string[]): Buffer[] {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-samples-'));
  try {
    const outputs = audios.flatMap((_, i) => ['-map', `${i}:a:0`, ...RAW, join(folder, `${i}.raw`)]);
    ffmpeg([...audios.flatMap(inputOf), ...outputs]);
    return audios.map((_, i) => readFileSync(join(folder, `${i}.raw`)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Names a file to ffmpeg, which does not know short GSM without a header by its content. */
function inputOf(audio: string): string[] {
  return [...(audio.endsWith('.gsm') ? ['-f', 'gsm'] : []), '-i', audio];
}

/** From -1 to 1. */
export function floatsOf(samples: Buffer): Float32Array {
  return Float32Array.from({ length: samples.length / 2 }, (_, i) => samples.readInt16LE(2 * i) / 32_768);
}

/** The 16-bit samples of a wav of the benches. */
export const wavSamples = (audio: string) => readFileSync(audio).subarray(HEADER_BYTES);

export function addAt(sum: Float32Array, part: Float32Array, at: number, gain = 1): void {
  for (let i = Math.max(0, -at); i < part.length && at + i < sum.length; i += 1)
    sum[at + i] = (sum[at + i] ?? 0) + gain * (part[i] ?? 0);
}

export const scaled = (samples: Float32Array, gain: number) => samples.map((sample) => sample * gain);

/** The sum of the squares. */
export function energyOf(samples: Float32Array): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0);
}

export const rms = (samples: Float32Array) => Math.sqrt(energyOf(samples) / samples.length);
