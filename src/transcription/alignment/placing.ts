/**
 * Gives each chunk of speech its part of a text. What was recognized in the chunk and in those after it says where the
 * part ends. Words that were not recognized go where there is time for them; a passage for which there is none is not
 * said in the audio. Pure; every unit is given to one chunk, in order.
 */
import { GatewayError } from '../../errors.ts';
import { countSyllables } from '../speech/speech-rate.ts';
import { matchWords } from './matching.ts';
import { type Unit, unitsOf } from './units.ts';

/** What was recognized in a chunk. */
export interface RecognizedChunk {
  text: string;
  speechSec: number;
}

/** Neighboring units of one chunk. Those that are not `said` have no time in the audio. */
export interface Part {
  units: Unit[];
  said: boolean;
}

/** The units of the text that are compared at once, for each one recognized, and in all. */
const WINDOW_FOR_EACH = 3;
const LEAST_WINDOW = 200;
const MOST_COMPARED = 2000;
/** In syllables a second (transcription/speech-rate.ts): a usual pace, a fast one, and one that is beyond people. */
const USUAL_PACE = 5;
const FAST_PACE = 8;
const IMPOSSIBLE_PACE = 14;
/** A short answer may be faster than any pace. */
const SPARE_SYLLABLES = 12;

/**
 * Gives the parts of the first of some chunks, which was not placed before.
 * @param chunks the chunk and those after it, as far as they were recognized
 * @param isEnd true when no chunk comes after these
 * @throws GatewayError `text_too_long` when the text cannot be said in the time of the audio
 */
type Place = (chunks: readonly [RecognizedChunk, ...RecognizedChunk[]], isEnd: boolean) => Part[];

/** @param text at least one word; `unitsOf` says what that is */
export function createPlacing(text: string): Place {
  const units = unitsOf(text);
  let at = 0;
  return (chunks, isEnd) => {
    const isLast = isEnd && chunks.length === 1;
    const { matched, own, next } = spansOf(chunks, units.slice(at, at + MOST_COMPARED), isEnd);
    const { speechSec } = chunks[0];
    let count = own;
    let syllables = syllablesOf(units.slice(at, at + own));
    for (; count < next; count++) {
      syllables += syllablesOf(units.slice(at + count, at + count + 1));
      if (!isLast && syllables > USUAL_PACE * speechSec) break;
    }
    if (isLast) count = units.length - at;
    const given = units.slice(at, at + count);
    at += count;
    return partsOf(given, (i) => (matched[i] ?? -1) >= 0, speechSec);
  };
}

/**
 * Which units were recognized, the number of those up to the last one that was recognized in the first chunk, and the
 * number up to the first one that was recognized in another chunk.
 */
function spansOf(chunks: readonly RecognizedChunk[], ahead: readonly Unit[], isEnd: boolean) {
  const recognized: string[] = [];
  let ofFirst = 0;
  for (const [i, { text }] of chunks.entries()) {
    recognized.push(...unitsOf(text).map(({ key }) => key));
    if (i === 0) ofFirst = recognized.length;
  }
  recognized.length = Math.min(recognized.length, Math.max(ofFirst, MOST_COMPARED));
  const window = Math.min(MOST_COMPARED, LEAST_WINDOW + WINDOW_FOR_EACH * recognized.length);
  const matched = matchWords(
    recognized,
    ahead.slice(0, window).map(({ key }) => key),
  );
  const own = matched.findLastIndex((h) => h >= 0 && h < ofFirst) + 1;
  const later = matched.findIndex((h) => h >= ofFirst);
  return { matched, own, next: later >= 0 ? later : isEnd ? ahead.length : own };
}

/** A passage that was not recognized is said all the same, unless all of it together is faster than people speak. */
function partsOf(
  units: readonly Unit[],
  isRecognized: (index: number) => boolean,
  speechSec: number,
): Part[] {
  const runs: (Part & { recognized: boolean; syllables: number })[] = [];
  for (const [i, unit] of units.entries()) {
    const recognized = isRecognized(i);
    const syllables = countSyllables(unit.key);
    const last = runs.at(-1);
    if (last?.recognized === recognized) {
      last.units.push(unit);
      last.syllables += syllables;
    } else runs.push({ units: [unit], said: true, recognized, syllables });
  }
  let syllables = runs.reduce((sum, run) => sum + run.syllables, 0);
  const unrecognized = runs.filter(({ recognized }) => !recognized).sort((a, b) => b.syllables - a.syllables);
  for (const run of unrecognized) {
    if (syllables <= FAST_PACE * speechSec + SPARE_SYLLABLES) break;
    run.said = false;
    syllables -= run.syllables;
  }
  requireTime(syllables, speechSec);
  return runs.reduce<Part[]>((parts, { units: more, said }) => {
    const last = parts.at(-1);
    if (last?.said !== said) parts.push({ units: more, said });
    else for (const unit of more) last.units.push(unit); // a call with so many arguments would overflow the stack
    return parts;
  }, []);
}

/** @throws GatewayError `text_too_long` when people do not speak so many syllables in the time */
export function requireTime(syllables: number, speechSec: number): void {
  if (syllables > IMPOSSIBLE_PACE * speechSec + SPARE_SYLLABLES) throw tooLong(syllables, speechSec);
}

/** The error for a text that cannot be said in the speech of the audio. */
export function tooLong(syllables: number, speechSec: number): GatewayError {
  return new GatewayError(
    'text_too_long',
    { syllables: Math.round(syllables), seconds: speechSec.toFixed(1) },
    { param: 'text' },
  );
}

const syllablesOf = (units: readonly Unit[]) => units.reduce((sum, { key }) => sum + countSyllables(key), 0);
