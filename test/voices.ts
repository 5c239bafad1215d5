/**
 * A scripted conversation: audio whose samples say who speaks, and a model that reads it back. The two networks are
 * imitated with their faults: each window numbers its speakers anew, and each embedding is off by some noise.
 */
import type { SpeakerModel } from '../src/engine/types.ts';
import { steady } from './wav.ts';

export interface Said {
  speaker: number;
  /** Seconds. */
  start: number;
  end: number;
}

const WINDOW = { samples: 160_000, frames: 589 };
const DIMENSIONS = 192;
/** The magnitude of a sample is the set of speakers, as bits, over this. Each is loud enough to count as speech. */
const SCALE = 64;
/** Local sets in the order of the classes. */
const SETS = [0, 1, 2, 4, 3, 5, 6];

/** Numbers in 0..1 that are the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function conversation(said: readonly Said[], seconds: number): Float32Array {
  const samples = new Float32Array(Math.round(seconds * 16_000));
  for (const { speaker, start, end } of said) {
    const bit = (1 << speaker) / SCALE;
    for (let i = Math.round(start * 16_000); i < Math.min(samples.length, Math.round(end * 16_000)); i += 1)
      samples[i] = (samples[i] ?? 0) + steady(bit, i);
  }
  return samples;
}

/** `speakers` take turns of `turnSec`, over and over, with a pause of half a second between them. */
export function inTurns(speakers: number, seconds: number, turnSec = 4): Said[] {
  const turns = Math.ceil(seconds / turnSec);
  return Array.from({ length: turns }, (_, i) => ({
    speaker: i % speakers,
    start: i * turnSec,
    end: Math.min(seconds, (i + 1) * turnSec) - 0.5,
  }));
}

export const blocksOf = (samples: Float32Array, blockSamples = 256_000) =>
  Array.from({ length: Math.ceil(samples.length / blockSamples) }, (_, i) =>
    samples.slice(i * blockSamples, (i + 1) * blockSamples),
  );

const bitsAt = (samples: Float32Array, at: number) => Math.round(Math.abs(samples[at] ?? 0) * SCALE);

/** The direction of a speaker's voice, without noise. */
export function voiceOf(speaker: number): Float32Array {
  const random = seeded(1000 + speaker);
  const vector = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

export interface ScriptedVoices extends SpeakerModel {
  /** The calls so far, the windows and embeddings of all of them, and the seconds that were embedded. */
  readonly calls: {
    segmentation: number;
    embeddings: number;
    windows: number;
    voices: number;
    secondsInChunk: number;
  };
  /** The most samples of one call. */
  readonly longest: { segmentation: number; embeddings: number };
}

/** @param noise how far an embedding is off, as the length of the error beside a voice of length 1 */
export function scriptedVoices({ noise = 0.5, seed = 1 } = {}): ScriptedVoices {
  const random = seeded(seed);
  const calls = { segmentation: 0, embeddings: 0, windows: 0, voices: 0, secondsInChunk: 0 };
  const longest = { segmentation: 0, embeddings: 0 };

  function fillWindow(samples: Float32Array, logProbs: Float32Array): void {
    const numbers = [0, 1, 2].sort(() => random() - 0.5);
    const local = new Map<number, number>();
    for (let frame = 0; frame < WINDOW.frames; frame += 1) {
      const bits = bitsAt(samples, 495 + frame * 270);
      let set = 0;
      for (let speaker = 0; speaker < 6; speaker += 1) {
        if ((bits & (1 << speaker)) === 0) continue;
        // As the network, this one tells apart no more than three speakers in a window.
        if (!local.has(speaker)) local.set(speaker, numbers[local.size % 3] ?? 0);
        set |= 1 << (local.get(speaker) ?? 0);
      }
      logProbs[frame * SETS.length + Math.max(0, SETS.indexOf(set))] = -0.1;
    }
  }

  function embed(samples: Float32Array, mask: Float32Array): Float32Array {
    const votes = new Map<number, number>();
    for (let i = 0; i < samples.length; i += 100) {
      if ((mask[Math.floor((i * mask.length) / samples.length)] ?? 0) === 0) continue;
      votes.set(bitsAt(samples, i), (votes.get(bitsAt(samples, i)) ?? 0) + 1);
    }
    const [bits = 0] = [...votes].sort((a, b) => b[1] - a[1])[0] ?? [];
    const voice = voiceOf(Math.max(0, Math.log2(bits)));
    const error = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
    const length = Math.hypot(...error);
    return voice.map((x, i) => 3 * (x + (noise * (error[i] ?? 0)) / length));
  }

  return {
    calls,
    longest,
    async segmentation(samples, { step }) {
      const windows = 1 + Math.max(0, Math.ceil((samples.length - WINDOW.samples) / step));
      calls.segmentation += 1;
      calls.windows += windows;
      longest.segmentation = Math.max(longest.segmentation, samples.length);
      const size = WINDOW.frames * SETS.length;
      const logProbs = new Float32Array(windows * size).fill(-5);
      for (let i = 0; i < windows; i += 1)
        fillWindow(
          samples.subarray(i * step, i * step + WINDOW.samples),
          logProbs.subarray(i * size, (i + 1) * size),
        );
      return logProbs;
    },
    async embeddings(samples, { masks, values = new Float32Array() } = { masks: 0 }) {
      calls.embeddings += 1;
      calls.voices += Math.max(1, masks);
      calls.secondsInChunk += samples.length / 16_000;
      longest.embeddings = Math.max(longest.embeddings, samples.length);
      if (masks === 0) return embed(samples, new Float32Array(1).fill(1));
      const length = values.length / masks;
      const found = new Float32Array(masks * DIMENSIONS);
      for (let i = 0; i < masks; i += 1)
        found.set(embed(samples, values.subarray(i * length, (i + 1) * length)), i * DIMENSIONS);
      return found;
    },
    close: async () => undefined,
  };
}
