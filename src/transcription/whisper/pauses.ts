/** Finds the short pauses inside of speech, which voice activity detection leaves in a span. Pure. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { powerOf } from '../speech/level.ts';

const FRAME = SAMPLE_RATE / 50; // 20 ms
/** A pause is this much softer than the loud parts, as an amplitude: 20 dB. */
const SOFTER = 0.1;
/** The quantile of the frames' levels that counts as loud. */
const LOUD = 0.9;
/** Shorter ones are the closures of consonants. */
const MIN_PAUSE_SEC = 0.24;
/** Shorter speech joins what follows it. */
const MIN_PIECE_SEC = 1;

/** Cuts 16 kHz mono in the middle of its pauses. The ranges, in samples, follow each other and cover everything. */
export function betweenPauses(samples: Float32Array): { start: number; end: number }[] {
  const levels = levelsOf(samples);
  const loud = levels.toSorted()[Math.floor(LOUD * levels.length)] ?? 0;
  const pieces: { start: number; end: number }[] = [];
  let start = 0;
  let quietFrom = 0;
  levels.forEach((level, i) => {
    if (level < SOFTER * loud) return;
    const cut = Math.floor((quietFrom + i) / 2) * FRAME;
    const isPause = i - quietFrom >= (MIN_PAUSE_SEC * SAMPLE_RATE) / FRAME;
    if (isPause && quietFrom > 0 && cut - start >= MIN_PIECE_SEC * SAMPLE_RATE) {
      pieces.push({ start, end: cut });
      start = cut;
    }
    quietFrom = i + 1;
  });
  return [...pieces, { start, end: samples.length }];
}

/** The root mean square of each whole frame. */
function levelsOf(samples: Float32Array): Float32Array {
  return Float32Array.from({ length: Math.floor(samples.length / FRAME) }, (_, i) => {
    const frame = samples.subarray(i * FRAME, (i + 1) * FRAME);
    return Math.sqrt(powerOf(frame) / FRAME);
  });
}
