/**
 * Cuts the speech out of the audio in chunks that an engine can take (at most 30 s). Neighboring spans of speech are
 * packed together with the silence between them, so that a sentence with a short pause stays whole. Audio is held only
 * from the last finished chunk to the newest block, so memory does not grow with the length of the file.
 */
import { joined, SAMPLE_RATE } from '../../audio/decoder.ts';
import type { DecodedSegment, VoiceActivityModel } from '../../engine/types.ts';
import { type AudioWindow, createAudioWindow } from './audio-window.ts';
import { createLeveler, createOffsetRemover, isNoise, raiseSoftSpans } from './level.ts';
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
  /** The time of the first sample, in seconds from the start of the audio, a little before the first speech. */
  startSec: number;
  /** The end of the last speech, in seconds from the start of the audio; `samples` may go on a little. */
  endSec: number;
  /**
   * The end of the silence after `endSec`, in seconds: the next chunk or the end of the audio. For a longer silence it
   * is a little more than `maxGapSec` after `endSec`.
   */
  silentUntilSec: number;
  /** 16 kHz mono. */
  samples: Float32Array;
  /** The factor with which the voice activity model heard soft `samples`; absent for 1. */
  gain?: number;
  /** The silences that `samples` lack, in order; absent where they lack none. */
  cuts?: readonly Cut[];
  /** The spans of speech in the chunk, in seconds from the start of the audio, each with its `certainty`, 0 to 1. */
  speech: SpeechSec[];
}

/** A span of speech in seconds. */
interface SpeechSec {
  startSec: number;
  endSec: number;
  certainty: number;
}

/** Silence in the middle of a pause that is not heard. */
export interface Cut {
  /** Its place, in seconds from the first of `samples`. */
  atSec: number;
  /** Its length in seconds. */
  sec: number;
}

export interface ChunkLimits {
  /** The longest chunk in seconds; a longer span becomes a chunk of its own. */
  maxSec: number;
  /** Replaces `maxSec` for the first chunk, so that its text comes soon; absent where that is not needed. */
  firstSec?: number;
  /** A longer silence between two spans, in seconds, ends the chunk. */
  maxGapSec: number;
  /** Replaces `maxGapSec` for the first chunk, for the same reason. */
  firstGapSec?: number;
  /** The model hears at most this much of a silence between two spans, in seconds; the middle is left out. */
  keptPauseSec: number;
}

export const DEFAULT_LIMITS: ChunkLimits = { maxSec: 29, maxGapSec: 1.5, keptPauseSec: 1.5 };

/**
 * Windows (0.2 s) that are heard before and behind the padded spans of a chunk, up to the middle of the silence there.
 * Words that are spoken softly or in a room begin and end in them. The times of speech do not reach there.
 */
export const PADDING = 6;

/** The spans of one chunk, and the first window after them in which there may be speech again. */
interface Group {
  spans: SpeechSpan[];
  silentUntil: number;
}

/** Packs spans, in order, into groups no longer than the limits allow. Pure. */
export function createPacker(limits: ChunkLimits) {
  let maxWindows = Math.floor((limits.firstSec ?? limits.maxSec) / WINDOW_SEC);
  let maxGap = Math.floor((limits.firstGapSec ?? limits.maxGapSec) / WINDOW_SEC);
  const keptPause = keptPauseOf(limits);
  let group: SpeechSpan[] = [];
  let length = 0; // windows of the group, without what is cut out of its pauses

  /** @param silentUntil a window that the silence reaches; capped, so that the time of the call has no influence */
  function flush(silentUntil: number): Group[] {
    const spans = group;
    const last = spans.at(-1);
    group = [];
    if (last === undefined) return [];
    const out = { spans, silentUntil: Math.min(silentUntil, last.end + maxGap + 1) };
    maxWindows = Math.floor(limits.maxSec / WINDOW_SEC);
    maxGap = Math.floor(limits.maxGapSec / WINDOW_SEC);
    return [out];
  }

  return {
    push(span: SpeechSpan): Group[] {
      const last = group.at(-1);
      const gap = last === undefined ? 0 : span.start - last.end;
      const more = Math.min(gap, keptPause) + span.end - span.start;
      const fits = last === undefined || (length + more <= maxWindows && gap <= maxGap);
      const out = fits ? [] : flush(span.start);
      length = last === undefined || !fits ? span.end - span.start : length + more;
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
 * @param blocks whole windows of the voice activity, but for the last one
 */
export async function* speechChunks(
  blocks: AsyncIterable<Float32Array>,
  vad: VoiceActivityModel,
  options: {
    signal: AbortSignal;
    onBlock(block: Float32Array): void | Promise<void>;
    segmenter?: SegmenterOptions;
    limits?: ChunkLimits;
    /** False where the voice activity was found before, in the audio as it is. */
    leveled?: boolean | undefined;
    /** True for a model that omits soft speech beside a loud voice. */
    raisesSoft?: boolean | undefined;
    /** True where the audio begins with the rest of speech that was cut. */
    continued?: boolean | undefined;
  },
): AsyncGenerator<Chunk> {
  const { leveled = true, raisesSoft = false, continued = false } = options;
  const segmentation = options.segmenter ?? DEFAULT_SEGMENTER;
  const segmenter = createSegmenter(segmentation, { continued });
  const limits = options.limits ?? DEFAULT_LIMITS;
  const packer = createPacker(limits);
  const audio = createAudioWindow();
  const leveler = createLeveler();
  const offset = createOffsetRemover();
  let first = true;
  let previousEnd = 0; // the window at which the chunk before ended
  const chunkOf = (group: Group) => {
    const gain = Math.min(...group.spans.map(gainOf));
    const chunk = toChunk(group, audio, { gain, previousEnd, keptPause: keptPauseOf(limits) });
    previousEnd = chunk.end;
    if (raisesSoft && leveled) raiseSoftSpans(chunk.chunk.samples, spansInSamples(chunk.chunk));
    return chunk.chunk;
  };
  const gainOf = ({ start, end }: Span) => leveler.gainIn(start * WINDOW_SAMPLES, end * WINDOW_SAMPLES);
  const isSpeech = (span: SpeechSpan) =>
    !isNoise(span.certainty, segmentation.threshold, () => samplesOf(span, audio), gainOf(span));

  for await (const recorded of blocks) {
    const block = leveled ? offset.remove(recorded) : recorded;
    await options.onBlock(block);
    audio.append(block);
    const probabilities = await vad.probabilities(
      leveled ? leveler.level(block) : block,
      { reset: first },
      { signal: options.signal },
    );
    first = false;
    const groups = segmenter.push(probabilities).filter(isSpeech).flatMap(packer.push);
    groups.push(...packer.settle(segmenter.settled));
    for (const group of groups) yield chunkOf(group);
    const needed = Math.min(segmenter.settled, packer.start ?? Number.POSITIVE_INFINITY) - PADDING;
    audio.forget(Math.max(0, needed) * WINDOW_SAMPLES);
  }
  const rest = segmenter.finish().filter(isSpeech).flatMap(packer.push);
  for (const group of [...rest, ...packer.finish(audio.length / WINDOW_SAMPLES)]) yield chunkOf(group);
}

/**
 * @param gain that of the voice activity
 * @param previousEnd the window at which the chunk before ended
 * @param keptPause the windows that are heard of a pause
 * @returns the chunk, and the window at which it ends
 */
function toChunk(
  { spans, silentUntil }: Group,
  audio: AudioWindow,
  { gain, previousEnd, keptPause }: { gain: number; previousEnd: number; keptPause: number },
) {
  const [speechStart, speechEnd] = [spans[0]?.start ?? 0, spans.at(-1)?.end ?? 0];
  const start = Math.max(speechStart - PADDING, Math.min(previousEnd, speechStart));
  const end = speechEnd + Math.min(PADDING, Math.max(0, Math.floor((silentUntil - speechEnd) / 2)));
  const { ranges, cuts } = withoutLongPauses(spans, { start, end }, keptPause);
  const samples = joined(ranges.map((range) => samplesOf(range, audio)));
  const first = start * WINDOW_SAMPLES;
  const chunk: Chunk = {
    startSec: first / SAMPLE_RATE,
    endSec: Math.min(speechEnd * WINDOW_SAMPLES, audio.length) / SAMPLE_RATE,
    silentUntilSec: (silentUntil * WINDOW_SAMPLES) / SAMPLE_RATE,
    samples,
    ...(gain > 1 && { gain }),
    ...(cuts.length > 0 && { cuts }),
    speech: spans.map(({ start, end, certainty }) => ({
      startSec: start * WINDOW_SEC,
      endSec: Math.min(end * WINDOW_SAMPLES, audio.length) / SAMPLE_RATE,
      certainty,
    })),
  };
  return { chunk, end };
}

/** The spans of speech in the samples of a chunk. */
function spansInSamples(chunk: Chunk): Span[] {
  return chunk.speech.map(({ startSec, endSec }) => ({
    start: sampleInChunk(chunk, startSec),
    end: sampleInChunk(chunk, endSec),
  }));
}

const keptPauseOf = ({ keptPauseSec }: ChunkLimits) => Math.floor(keptPauseSec / WINDOW_SEC);

/** The windows of a chunk that are heard: of a pause, the beginning and the end. */
function withoutLongPauses(spans: SpeechSpan[], { start, end }: Span, keptPause: number) {
  const ranges: Span[] = [];
  const cuts: Cut[] = [];
  let from = start;
  let length = 0;
  spans.slice(1).forEach((span, i) => {
    const pauseStart = spans[i]?.end ?? 0;
    const excess = span.start - pauseStart - keptPause;
    if (excess <= 0) return;
    const at = pauseStart + Math.ceil(keptPause / 2);
    ranges.push({ start: from, end: at });
    length += at - from;
    cuts.push({ atSec: length * WINDOW_SEC, sec: excess * WINDOW_SEC });
    from = at + excess;
  });
  return { ranges: [...ranges, { start: from, end }], cuts };
}

/** The place of a time of the audio in the samples of a chunk, in seconds from the first of them. */
export function secondsInChunk(
  { startSec, cuts = [] }: Pick<Chunk, 'startSec' | 'cuts'>,
  sec: number,
): number {
  let place = sec - startSec;
  for (const cut of cuts) place -= Math.min(cut.sec, Math.max(0, place - cut.atSec));
  return place;
}

/** The same in samples. */
export const sampleInChunk = (chunk: Pick<Chunk, 'startSec' | 'cuts'>, sec: number): number =>
  Math.round(secondsInChunk(chunk, sec) * SAMPLE_RATE);

/** The seconds of the chunk in which someone speaks. */
export const speechSecOf = ({ speech }: Pick<Chunk, 'speech'>): number =>
  speech.reduce((sum, { startSec, endSec }) => sum + endSec - startSec, 0);

/**
 * The chunk in pieces, in order, each from one of its spans of speech to the next that is named.
 * @param starts the places of those spans in `speech`, rising, without the first one
 */
export function splitChunk(chunk: Chunk, starts: readonly number[]): Chunk[] {
  const { speech, cuts = [], samples } = chunk;
  const padding = PADDING * WINDOW_SEC;
  return [0, ...starts].map((from, i) => {
    const to = starts[i] ?? speech.length;
    const spans = speech.slice(from, to);
    const [first, last] = [spans[0] as SpeechSec, spans.at(-1) as SpeechSec];
    const [before, after] = [speech[from - 1], speech[to]];
    const startSec = before
      ? Math.max((before.endSec + first.startSec) / 2, first.startSec - padding)
      : chunk.startSec;
    const endSec = after ? Math.min((last.endSec + after.startSec) / 2, last.endSec + padding) : undefined;
    const start = secondsInChunk(chunk, startSec);
    const end = endSec === undefined ? samples.length / SAMPLE_RATE : secondsInChunk(chunk, endSec);
    const own = cuts.filter(({ atSec }) => atSec > start && atSec < end);
    return {
      ...chunk,
      startSec,
      endSec: after ? last.endSec : chunk.endSec,
      silentUntilSec: after?.startSec ?? chunk.silentUntilSec,
      samples: samples.subarray(Math.round(start * SAMPLE_RATE), Math.round(end * SAMPLE_RATE)),
      cuts: own.map(({ atSec, sec }) => ({ atSec: atSec - start, sec })),
      speech: spans,
    };
  });
}

/** Segments as they were decoded from the samples of a chunk, with the times that they have with its silences. */
export function withSilences(
  segments: DecodedSegment[],
  { cuts = [] }: Pick<Chunk, 'cuts'>,
): DecodedSegment[] {
  if (cuts.length === 0) return segments;
  const later = (ms: number, isStart: boolean) =>
    cuts.reduce((sum, { atSec, sec }) => {
      const isBehind = isStart ? ms >= atSec * 1000 : ms > atSec * 1000;
      return isBehind ? sum + sec * 1000 : sum;
    }, ms);
  const moved = <T extends { startMs: number; endMs: number }>(timed: T): T => {
    const startMs = later(timed.startMs, timed.endMs > timed.startMs);
    return { ...timed, startMs, endMs: Math.max(startMs, later(timed.endMs, false)) };
  };
  return segments.map((segment) => ({ ...moved(segment), tokens: segment.tokens.map(moved) }));
}

const samplesOf = ({ start, end }: Span, audio: AudioWindow) =>
  audio.copy(start * WINDOW_SAMPLES, end * WINDOW_SAMPLES);
