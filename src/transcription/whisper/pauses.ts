/** Finds the short pauses inside of speech, which voice activity detection leaves in a span. Pure. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { powerOf } from '../speech/level.ts';

const FRAME = SAMPLE_RATE / 50; // 20 ms
/** A pause is this much softer than the loud parts, as an amplitude: 20 dB. */
const SOFTER = 0.1;
/** The quantile of the frames' levels that counts as loud. */
const LOUD = 0.9;
/** Shorter ones are the closures of consonants, or too short to cut in. */
const MIN_PAUSE_SEC = 0.24;
/** Shorter ones belong to a word. */
const MIN_BREAK_SEC = 0.1;
/** Shorter speech joins what follows it. */
const MIN_PIECE_SEC = 1;

/** Cuts 16 kHz mono in the middle of its pauses. The ranges, in samples, follow each other and cover everything. */
export function betweenPauses(samples: Float32Array): { start: number; end: number }[] {
  const levels = levelsOf(samples);
  const pieces: { start: number; end: number }[] = [];
  let start = 0;
  for (const quiet of quietRuns(levels)) {
    const cut = Math.floor((quiet.start + quiet.end) / 2) * FRAME;
    const isPause = secOf(quiet) >= MIN_PAUSE_SEC && quiet.start > 0 && quiet.end < levels.length;
    if (!isPause || cut - start < MIN_PIECE_SEC * SAMPLE_RATE) continue;
    pieces.push({ start, end: cut });
    start = cut;
  }
  return [...pieces, { start, end: samples.length }];
}

/** The seconds in which 16 kHz mono of one span of speech can be heard. */
export function audibleSec(samples: Float32Array): number {
  const breaks = quietRuns(levelsOf(samples)).map(secOf);
  return breaks.reduce((sum, sec) => (sec >= MIN_BREAK_SEC ? sum - sec : sum), samples.length / SAMPLE_RATE);
}

interface Run {
  start: number;
  end: number;
}

const secOf = ({ start, end }: Run) => ((end - start) * FRAME) / SAMPLE_RATE;

/** The runs of frames that are much softer than the loud ones, in order. */
function quietRuns(levels: Float32Array): Run[] {
  const loud = levels.toSorted()[Math.floor(LOUD * levels.length)] ?? 0;
  const runs: Run[] = [];
  levels.forEach((level, i) => {
    if (level >= SOFTER * loud) return;
    const last = runs.at(-1);
    if (last?.end === i) last.end = i + 1;
    else runs.push({ start: i, end: i + 1 });
  });
  return runs;
}

/** The root mean square of each whole frame. */
function levelsOf(samples: Float32Array): Float32Array {
  return Float32Array.from({ length: Math.floor(samples.length / FRAME) }, (_, i) => {
    const frame = samples.subarray(i * FRAME, (i + 1) * FRAME);
    return Math.sqrt(powerOf(frame) / FRAME);
  });
}
