/**
 * The hundred windows of sound over which the networks for speakers are compared with torch: speech of one voice and of
 * two, one after the other and at the same time, loud, soft, clipped, in noise, and silence. Run as a program it writes
 * them for test/native/generate-speakers.py: `node --import tsx test/native/speaker-windows.ts FOLDER`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { loadNative } from '../../src/engine/addon.ts';
import { JFK } from '../wav.ts';

export const WINDOWS = 100;
const WINDOW_SAMPLES = 160_000;
const MASK_VALUES = 50;
/** The windows of which an embedding of a part is compared, too. */
export const MASKED = 20;

export interface SpeakerWindow {
  samples: Float32Array;
  /** Of how many samples, from the first on, the embedding is. */
  voiceSamples: number;
  /** Weights of equal stretches of these. */
  mask: Float32Array;
}

export function speakerWindow(speech: Float32Array, index: number): SpeakerWindow {
  const random = randomNumbers(index + 1);
  const part = (length: number) => (random() % length) / length;
  const gains = [part(8), index % 3 === 0 ? 0 : part(8), index % 5 === 0 ? 0 : part(64) / 16];
  if (index % 10 === 9) gains[0] = 30; // clipped
  if (index % 25 === 24) gains.fill(0); // silence
  const [first, second] = [random() % speech.length, random() % speech.length];
  const turn = 16_000 + (random() % 64_000);
  const at = (place: number) => {
    const whole = Math.floor(place);
    const rest = place - whole;
    const sample = (i: number) => speech[i % speech.length] ?? 0;
    return sample(whole) * (1 - rest) + sample(whole + 1) * rest;
  };
  const samples = new Float32Array(WINDOW_SAMPLES);
  for (let i = 0; i < samples.length; i++) {
    // The second voice is the first, higher by a quarter. It begins late, and the first may fall silent then.
    const one = i < turn || index % 2 === 0 ? at(first + i) * (gains[0] ?? 0) : 0;
    const other = i < turn ? 0 : at(second + i * 1.25) * (gains[1] ?? 0);
    const noise = ((random() % 65_536) / 65_536 - 0.5) * (gains[2] ?? 0);
    samples[i] = Math.min(Math.max(one + other + noise, -1), 1);
  }
  return {
    samples,
    voiceSamples: 8000 + (random() % 88_000),
    mask: Float32Array.from({ length: MASK_VALUES }, () => (random() % 3) / 2),
  };
}

/** The frames of a window whose values are frozen. */
export function frozenFrames(index: number): number[] {
  return Array.from({ length: 12 }, (_, k) => (index * 37 + k * 49) % 589);
}

/** Reads the speech that all windows are made of, at 16 kHz. */
export async function readVoice(): Promise<Float32Array> {
  const file = await loadNative().openAudio(JFK, 'mp3');
  const samples = await file.read(10 * 16_000);
  file.close();
  return samples ?? new Float32Array();
}

/** Marsaglia's xorshift32, https://www.jstatsoft.org/article/view/v008i14 */
function randomNumbers(seed: number): () => number {
  let state = (seed * 0x9e3779b9) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) {
  const voice = await readVoice();
  const all = Array.from({ length: WINDOWS }, (_, i) => speakerWindow(voice, i));
  const join32 = (parts: Float32Array[]) => Buffer.concat(parts.map((part) => Buffer.from(part.buffer)));
  const folder = argv[2] ?? '.';
  writeFileSync(join(folder, 'samples.f32'), join32(all.map(({ samples }) => samples)));
  writeFileSync(join(folder, 'masks.f32'), join32(all.map(({ mask }) => mask)));
  writeFileSync(join(folder, 'lengths.json'), JSON.stringify(all.map(({ voiceSamples }) => voiceSamples)));
}
