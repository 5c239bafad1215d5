/**
 * Speech cut out of the audio in pieces an engine can take (at most 30 s): neighboring spans are packed
 * together with the silence between them, so that a sentence with a short pause in it stays whole. Audio is held
 * only from the last finished chunk to the newest block: memory does not grow with the length of the file.
 */
import { SAMPLE_RATE } from '../audio/decoder.ts';
import type { VoiceActivityModel } from '../engine/types.ts';
import {
  createSegmenter,
  type SegmenterOptions,
  type Span,
  WINDOW_SAMPLES,
  WINDOW_SEC,
} from './voice-activity.ts';

export interface Chunk {
  /** Of the first sample, seconds from the start of the audio. */
  startSec: number;
  /** Behind the last sample. Further from the start than `samples` are long where silence was left out of them. */
  endSec: number;
  /**
   * Nothing is said from `endSec` until then: until the next chunk, or the end of the audio, or a little longer than
   * the silence that chunks are packed across, where it lasts longer.
   */
  silentUntilSec: number;
  /** 16 kHz mono. */
  samples: Float32Array;
  /** Where in the whole audio there is speech, seconds. */
  speech: { startSec: number; endSec: number }[];
}

export interface ChunkLimits {
  /** Longest chunk, seconds; a span that is longer is a chunk of its own. */
  maxSec: number;
  /** A longer silence between two spans ends the chunk. */
  maxGapSec: number;
}

export const DEFAULT_LIMITS: ChunkLimits = { maxSec: 29, maxGapSec: 1.5 };

/** Spans for one chunk, and the first window behind them in which there may be speech again. */
interface Group {
  spans: Span[];
  silentUntil: number;
}

/** Packs spans, in order, into groups no longer than the limits allow. Pure. */
export function createPacker(limits: ChunkLimits) {
  const maxWindows = Math.floor(limits.maxSec / WINDOW_SEC);
  const maxGap = Math.floor(limits.maxGapSec / WINDOW_SEC);
  let group: Span[] = [];

  /** @param silentUntil at least, in windows; capped, so that it does not depend on when this is called */
  function flush(silentUntil: number): Group[] {
    const spans = group;
    const last = spans.at(-1);
    group = [];
    return last === undefined ? [] : [{ spans, silentUntil: Math.min(silentUntil, last.end + maxGap + 1) }];
  }

  return {
    push(span: Span): Group[] {
      const first = group[0];
      const last = group.at(-1);
      const fits =
        first === undefined ||
        last === undefined ||
        (span.end - first.start <= maxWindows && span.start - last.end <= maxGap);
      const out = fits ? [] : flush(span.start);
      group.push(span);
      return out;
    },
    /** Call when nothing before `window` can still be spoken: a group that can no longer grow is finished. */
    settle(window: number): Group[] {
      const last = group.at(-1);
      return last !== undefined && window - last.end > maxGap ? flush(window) : [];
    },
    /** @param end of the audio, in windows */
    finish: (end: number): Group[] => flush(end),
    get start(): number | undefined {
      return group[0]?.start;
    },
  };
}

/**
 * Detects speech in blocks of audio and yields it in chunks. `onBlock` gets each block before it is
 * searched: every other pass over the same audio listens there.
 */
export async function* speechChunks(
  blocks: AsyncIterable<Float32Array>,
  vad: VoiceActivityModel,
  options: {
    signal: AbortSignal;
    onBlock(block: Float32Array): void;
    segmenter?: SegmenterOptions;
    limits?: ChunkLimits;
  },
): AsyncGenerator<Chunk> {
  const segmenter = createSegmenter(options.segmenter);
  const packer = createPacker(options.limits ?? DEFAULT_LIMITS);
  const audio = createAudioWindow();
  let first = true;

  for await (const block of blocks) {
    options.onBlock(block);
    audio.append(block);
    const probabilities = await vad.probabilities(block, { reset: first }, { signal: options.signal });
    first = false;
    const groups = segmenter.push(probabilities).flatMap(packer.push);
    groups.push(...packer.settle(segmenter.settled));
    for (const group of groups) yield toChunk(group, audio);
    audio.forget(Math.min(segmenter.settled, packer.start ?? Number.POSITIVE_INFINITY) * WINDOW_SAMPLES);
  }
  const rest = segmenter.finish().flatMap(packer.push);
  for (const group of [...rest, ...packer.finish(audio.length / WINDOW_SAMPLES)]) yield toChunk(group, audio);
}

/**
 * Short chunks put together, without the silence between them: times in them mean nothing then, but the model hears
 * what was said before, and computes fewer windows that are wider than what is in them.
 */
export async function* joinedChunks(chunks: AsyncGenerator<Chunk>, maxSec: number): AsyncGenerator<Chunk> {
  let held: Chunk | null = null;
  for await (const chunk of chunks) {
    if (held !== null && held.samples.length + chunk.samples.length <= maxSec * SAMPLE_RATE) {
      held = join(held, chunk);
      continue;
    }
    if (held !== null) yield held;
    held = chunk;
  }
  if (held !== null) yield held;
}

function join(a: Chunk, b: Chunk): Chunk {
  const samples = new Float32Array(a.samples.length + b.samples.length);
  samples.set(a.samples);
  samples.set(b.samples, a.samples.length);
  return { ...b, startSec: a.startSec, samples, speech: [...a.speech, ...b.speech] };
}

function toChunk({ spans, silentUntil }: Group, audio: ReturnType<typeof createAudioWindow>): Chunk {
  const start = (spans[0]?.start ?? 0) * WINDOW_SAMPLES;
  const samples = audio.copy(start, (spans.at(-1)?.end ?? 0) * WINDOW_SAMPLES);
  return {
    startSec: start / SAMPLE_RATE,
    endSec: (start + samples.length) / SAMPLE_RATE,
    silentUntilSec: (silentUntil * WINDOW_SAMPLES) / SAMPLE_RATE,
    samples,
    speech: spans.map((s) => ({ startSec: s.start * WINDOW_SEC, endSec: s.end * WINDOW_SEC })),
  };
}

/** The audio not yet used up, addressed by its position in the whole. */
function createAudioWindow() {
  let parts: { at: number; samples: Float32Array }[] = [];
  let length = 0;
  return {
    get length(): number {
      return length;
    },
    append(samples: Float32Array) {
      parts.push({ at: length, samples });
      length += samples.length;
    },
    forget(before: number) {
      parts = parts.filter((part) => part.at + part.samples.length > before);
    },
    copy(start: number, end: number): Float32Array {
      const out = new Float32Array(Math.max(0, Math.min(end, length) - start));
      for (const { at, samples } of parts) {
        const from = Math.max(start, at);
        const to = Math.min(end, at + samples.length);
        if (from < to) out.set(samples.subarray(from - at, to - at), from - start);
      }
      return out;
    },
  };
}
