/**
 * Cuts the speech out of the audio in chunks that an engine can take (at most 30 s). Neighboring spans of speech are
 * packed together with the silence between them, so that a sentence with a short pause stays whole. Audio is held only
 * from the last finished chunk to the newest block, so memory does not grow with the length of the file.
 */
import { SAMPLE_RATE } from '../audio/decoder.ts';
import type { VoiceActivityModel } from '../engine/types.ts';
import { type AudioWindow, createAudioWindow } from './audio-window.ts';
import { isNoise } from './loudness.ts';
import {
  createSegmenter,
  DEFAULT_SEGMENTER,
  type SegmenterOptions,
  type Span,
  type SpeechSpan,
  WINDOW_SAMPLES,
  WINDOW_SEC,
} from './voice-activity.ts';

export interface Chunk {
  /** The time of the first sample, in seconds from the start of the audio. */
  startSec: number;
  /** The end in the original audio, in seconds; later than the length of `samples` when silence was removed. */
  endSec: number;
  /**
   * The end of the silence after `endSec`, in seconds: the next chunk or the end of the audio. For a longer silence it
   * is a little more than `maxGapSec` after `endSec`.
   */
  silentUntilSec: number;
  /** 16 kHz mono. */
  samples: Float32Array;
  /** The spans of speech in the chunk, in seconds from the start of the audio, each with its `certainty`, 0 to 1. */
  speech: { startSec: number; endSec: number; certainty: number }[];
}

export interface ChunkLimits {
  /** The longest chunk in seconds; a longer span becomes a chunk of its own. */
  maxSec: number;
  /** A longer silence between two spans, in seconds, ends the chunk. */
  maxGapSec: number;
}

export const DEFAULT_LIMITS: ChunkLimits = { maxSec: 29, maxGapSec: 1.5 };

/** The spans of one chunk, and the first window after them in which there may be speech again. */
interface Group {
  spans: SpeechSpan[];
  silentUntil: number;
}

/** Packs spans, in order, into groups no longer than the limits allow. Pure. */
export function createPacker(limits: ChunkLimits) {
  const maxWindows = Math.floor(limits.maxSec / WINDOW_SEC);
  const maxGap = Math.floor(limits.maxGapSec / WINDOW_SEC);
  let group: SpeechSpan[] = [];

  /** @param silentUntil a window that the silence reaches; capped, so that the time of the call has no influence */
  function flush(silentUntil: number): Group[] {
    const spans = group;
    const last = spans.at(-1);
    group = [];
    return last === undefined ? [] : [{ spans, silentUntil: Math.min(silentUntil, last.end + maxGap + 1) }];
  }

  return {
    push(span: SpeechSpan): Group[] {
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
    /** Call when no speech can begin before `window` any more. Returns the group if it can no longer grow. */
    settle(window: number): Group[] {
      const last = group.at(-1);
      return last !== undefined && window - last.end > maxGap ? flush(window) : [];
    },
    /** @param end the end of the audio, in windows */
    finish: (end: number): Group[] => flush(end),
    get start(): number | undefined {
      return group[0]?.start;
    },
  };
}

/**
 * Detects speech in blocks of audio and yields it in chunks. `onBlock` gets each block before it is searched, for
 * other passes over the same audio.
 */
export async function* speechChunks(
  blocks: AsyncIterable<Float32Array>,
  vad: VoiceActivityModel,
  options: {
    signal: AbortSignal;
    onBlock(block: Float32Array): void | Promise<void>;
    segmenter?: SegmenterOptions;
    limits?: ChunkLimits;
  },
): AsyncGenerator<Chunk> {
  const segmentation = options.segmenter ?? DEFAULT_SEGMENTER;
  const segmenter = createSegmenter(segmentation);
  const packer = createPacker(options.limits ?? DEFAULT_LIMITS);
  const audio = createAudioWindow();
  let first = true;
  const isSpeech = (span: SpeechSpan) =>
    !isNoise(span.certainty, segmentation.threshold, () => samplesOf(span, audio));

  for await (const block of blocks) {
    await options.onBlock(block);
    audio.append(block);
    const probabilities = await vad.probabilities(block, { reset: first }, { signal: options.signal });
    first = false;
    const groups = segmenter.push(probabilities).filter(isSpeech).flatMap(packer.push);
    groups.push(...packer.settle(segmenter.settled));
    for (const group of groups) yield toChunk(group, audio);
    audio.forget(Math.min(segmenter.settled, packer.start ?? Number.POSITIVE_INFINITY) * WINDOW_SAMPLES);
  }
  const rest = segmenter.finish().filter(isSpeech).flatMap(packer.push);
  for (const group of [...rest, ...packer.finish(audio.length / WINDOW_SAMPLES)]) yield toChunk(group, audio);
}

function toChunk({ spans, silentUntil }: Group, audio: AudioWindow): Chunk {
  const start = spans[0]?.start ?? 0;
  const samples = samplesOf({ start, end: spans.at(-1)?.end ?? 0 }, audio);
  const first = start * WINDOW_SAMPLES;
  return {
    startSec: first / SAMPLE_RATE,
    endSec: (first + samples.length) / SAMPLE_RATE,
    silentUntilSec: (silentUntil * WINDOW_SAMPLES) / SAMPLE_RATE,
    samples,
    speech: spans.map(({ start, end, certainty }) => ({
      startSec: start * WINDOW_SEC,
      endSec: end * WINDOW_SEC,
      certainty,
    })),
  };
}

const samplesOf = ({ start, end }: Span, audio: AudioWindow) =>
  audio.copy(start * WINDOW_SAMPLES, end * WINDOW_SAMPLES);
