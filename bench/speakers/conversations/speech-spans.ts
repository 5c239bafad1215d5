/** Finds speech in a clean recording, for turns whose times are known to a hundredth of a second. */
import { energyOf, RATE } from '../../common/samples.ts';

const FRAME = RATE / 100;
/** A frame is speech where it is less than this much softer than the loud ones, and well above the noise. */
const BELOW_LOUD_DB = 32;
const ABOVE_NOISE_DB = 9;
/** Shorter silence is inside of a word, or between two words that are said in one go. */
const LEAST_PAUSE_SEC = 0.25;
/** Shorter sound is a click, or a breath. */
const LEAST_SPEECH_SEC = 0.08;

/** Seconds from the start of what it belongs to. */
export interface Span {
  start: number;
  end: number;
}

/** The stretches of speech in a recording of one voice, at 16 kHz. None where nothing stands out. */
export function speechSpans(samples: Float32Array): Span[] {
  const levels = levelsOf(samples);
  const sorted = levels.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? -200;
  const loud = at(0.95);
  // Where a recording has hardly any silence, its soft frames are speech and tell nothing about noise.
  const noise = Math.min(at(0.05), loud - BELOW_LOUD_DB - ABOVE_NOISE_DB + 12);
  const threshold = Math.max(loud - BELOW_LOUD_DB, noise + ABOVE_NOISE_DB);
  const frames = [...levels].map((level, i) => ({
    start: i / 100,
    end: (i + 1) / 100,
    speech: level >= threshold,
  }));
  return merged(frames.filter(({ speech }) => speech)).filter(
    ({ start, end }) => end - start >= LEAST_SPEECH_SEC,
  );
}

/** Joins spans in order of time whose pauses are too short to end a turn. */
export function merged(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const { start, end } of spans) {
    const last = joined.at(-1);
    if (last !== undefined && start - last.end < LEAST_PAUSE_SEC) last.end = Math.max(last.end, end);
    else joined.push({ start, end });
  }
  return joined;
}

/** Decibels of each hundredth of a second. */
function levelsOf(samples: Float32Array): Float64Array {
  return Float64Array.from({ length: Math.floor(samples.length / FRAME) }, (_, i) => {
    const frame = samples.subarray(i * FRAME, (i + 1) * FRAME);
    return 10 * Math.log10(energyOf(frame) / FRAME + 1e-20);
  });
}
