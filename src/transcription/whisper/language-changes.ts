/**
 * Finds where the language changes in a chunk. Whisper writes a chunk in one language, and translates what is said in
 * another one. What is encoded for the whole chunk also gives the language of each span of speech in it, in the step of
 * the decoder that detects that of the chunk. A span that may be in another language is detected by itself, and only if
 * it is in another one, all of them are. bench/results/decoding.md has the figures.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { Lane, LanguageGuess } from '../../engine/types.ts';
import type { DetectedLanguage } from '../language/tally.ts';
import type { ChunkRequest } from '../recognizer.ts';
import { type Chunk, sampleInChunk, secondsInChunk, splitChunk } from '../speech/chunks.ts';
import { amongAllowed, type ChunkLanguage, chooseLanguage, languageBySound } from './language.ts';
import { betweenPauses } from './pauses.ts';

/** A span is in doubt where another language than that of the chunk is more probable. */
const OTHER_LANGUAGE = 0.3;
/** A span is in doubt, too, where that of the chunk is less probable, whichever the others are. */
const UNLIKELY_LANGUAGE = 0.1;
/**
 * Where the language has changed before, or words are improbable, a span is in doubt already where that of the chunk is
 * less probable.
 */
const SAME_LANGUAGE = 0.8;
/** The language has changed where this part of the speech before is in others than that of the chunk. */
const OTHER_SHARE = 0.1;
/** A change of language between two spans must make the whole this many times as probable. */
const CHANGE_ODDS = 2;
/** Shorter speech tells less, in proportion to its length, in seconds. */
const FULL_WEIGHT_SEC = 1.5;
/** The sound of a span never rules a language out. */
const LEAST_PROBABILITY = 1e-3;

/** A span of speech, and how probable each language is by its sound. */
interface SpanSound {
  seconds: number;
  probabilities: ReadonlyMap<string, number>;
}

/** The language of a chunk, its spans, and those that are likely to be in another one. */
interface SpanSounds {
  sound: LanguageGuess;
  language: string;
  spans: SpanSound[];
  /** The span most likely to be in another language. */
  suspect?: SpanSound | undefined;
  /** The span that sounds the least like that of the chunk. */
  unlike?: SpanSound | undefined;
}

/** Detects the language of the chunk and of each span in it. */
export async function detectPerSpan(lane: Lane, chunk: Chunk, request: ChunkRequest): Promise<SpanSounds> {
  const { speech } = cutAtPauses(chunk);
  const parts = speech.length > 1 && !request.draft ? speech : [];
  const lastMs = Math.floor((chunk.samples.length / SAMPLE_RATE) * 1000);
  const ms = (sec: number) => Math.min(lastMs, Math.max(0, Math.round(secondsInChunk(chunk, sec) * 1000)));
  const places = parts.map(({ startSec, endSec }) => ({ startMs: ms(startSec), endMs: ms(endSec) }));
  const sound = await languageBySound(lane, chunk, request, places);
  const [{ language }] = amongAllowed(sound.probabilities, request.languages);
  const spans = parts.map(({ startSec, endSec }, at) =>
    soundOf(endSec - startSec, sound.parts?.[at] ?? sound, request),
  );
  return { sound, language, spans, ...(await suspectsOf(spans, language, request)) };
}

async function suspectsOf(
  spans: SpanSound[],
  language: string,
  request: ChunkRequest,
): Promise<Pick<SpanSounds, 'suspect' | 'unlike'>> {
  const same = ({ probabilities }: SpanSound) => probabilities.get(language) ?? 0;
  const [unlike, ...others] = spans.toSorted((a, b) => same(a) - same(b));
  if (unlike === undefined || same(unlike) >= SAME_LANGUAGE) return { unlike };
  const isOther = (span: SpanSound) =>
    same(span) < UNLIKELY_LANGUAGE ||
    [...span.probabilities].some(
      ([other, probability]) => other !== language && probability > OTHER_LANGUAGE,
    );
  const suspect = [unlike, ...others].find(isOther);
  if (suspect !== undefined) return { suspect, unlike };
  return { unlike, ...((await hasChangedBefore(unlike, language, request)) && { suspect: unlike }) };
}

/** The span to ask for its language where words of the chunk are improbable. */
export async function suspectByWords(
  { unlike, language }: SpanSounds,
  request: ChunkRequest,
): Promise<SpanSound | undefined> {
  if (unlike === undefined) return undefined;
  const isUnlike = (unlike.probabilities.get(language) ?? 0) < SAME_LANGUAGE;
  return isUnlike || (await hasChangedBefore(unlike, language, request)) ? unlike : undefined;
}

/** True where a part of the speech before is in other languages than this one. @param span what knows the others */
export async function hasChangedBefore(
  { probabilities }: SpanSound,
  language: string,
  { before }: ChunkRequest,
): Promise<boolean> {
  const { languages } = await before();
  const share = (sum: number, other: string) => (other === language ? sum : sum + languages.share(other));
  return [...probabilities.keys()].reduce(share, 0) > OTHER_SHARE;
}

/**
 * The pieces of the chunk between which the language changes, or all of it as one; none where nothing says that it is in
 * another language than the one detected for it.
 * @param isUnsure true where that language is in doubt, so that all spans are asked for it
 */
export async function piecesByLanguage(
  lane: Lane,
  whole: Chunk,
  { language, spans, suspect, isUnsure }: SpanSounds & { isUnsure: boolean },
  request: ChunkRequest,
): Promise<Piece[]> {
  const chunk = cutAtPauses(whole);
  const parts = splitChunk(chunk, [...chunk.speech.keys()].slice(1));
  const chosen = new Map<number, ChunkLanguage>();
  const detect = async (at: number) => {
    const part = parts[at] as Chunk;
    const { seconds } = spans[at] as SpanSound;
    const sound = await languageBySound(lane, part, request);
    if (isUnsure) return soundOf(seconds, sound, request);
    const choice = await chooseLanguage(lane, part, request, sound);
    chosen.set(at, choice);
    return { seconds, probabilities: probabilitiesOf(choice.languages) };
  };
  const first = suspect === undefined ? 0 : spans.indexOf(suspect);
  const firstDetected = await detect(first);
  const mayChange =
    suspect !== undefined &&
    (topOf(firstDetected) !== language || (await hasChangedBefore(suspect, language, request)));
  if (!mayChange && !isUnsure) return [];
  // Detection over the whole chunk says nothing here: where a span is blurred, others are, too.
  const detected: SpanSound[] = [];
  for (const at of spans.keys()) detected.push(at === first ? firstDetected : await detect(at));
  const languages = likeliestLanguages(detected, mayChange ? CHANGE_ODDS : Number.POSITIVE_INFINITY);
  const starts = [...languages.keys()].filter((at) => at > 0 && languages[at] !== languages[at - 1]);
  return splitChunk(chunk, starts).map((piece, i) => {
    const from = [0, ...starts][i] ?? 0;
    const own = detected.slice(from, starts[i]);
    const whole = own.length === 1 ? chosen.get(from) : undefined;
    return { chunk: piece, detected: meanOf(own, languages[from] as string), chosen: whole };
  });
}

/** A piece of a chunk, and the language of its spans, each detected by itself. */
export interface Piece {
  chunk: Chunk;
  detected: DetectedLanguage;
  /** How the language of a piece of one span was found, where its texts were compared for that. */
  chosen: ChunkLanguage | undefined;
}

function meanOf(spans: SpanSound[], language: string): DetectedLanguage {
  const sum = spans.reduce((total, { probabilities }) => total + (probabilities.get(language) ?? 0), 0);
  return { language, probability: sum / spans.length };
}

/** The chunk with spans of speech that have no pauses; of voice activity they may have short ones. */
export function cutAtPauses(chunk: Chunk): Chunk {
  const { samples } = chunk;
  const at = (sec: number) => sampleInChunk(chunk, sec);
  const speech = chunk.speech.flatMap((span) =>
    betweenPauses(samples.subarray(at(span.startSec), at(span.endSec))).map(({ start, end }) => ({
      ...span,
      startSec: span.startSec + start / SAMPLE_RATE,
      endSec: span.startSec + end / SAMPLE_RATE,
    })),
  );
  return { ...chunk, speech };
}

function soundOf(seconds: number, { probabilities }: LanguageGuess, { languages }: ChunkRequest): SpanSound {
  return { seconds, probabilities: probabilitiesOf(amongAllowed(probabilities, languages)) };
}

const probabilitiesOf = (languages: readonly DetectedLanguage[]): ReadonlyMap<string, number> =>
  new Map(languages.map(({ language, probability }) => [language, probability]));

/** The most probable language, which `amongAllowed` puts first. */
const topOf = ({ probabilities }: SpanSound): string | undefined => [...probabilities.keys()][0];

/**
 * The most probable languages of spans in a row, as of the states of a hidden Markov model (Viterbi) in which each
 * change has the same price.
 * @param odds the price of a change
 */
export function likeliestLanguages(spans: readonly SpanSound[], odds: number): string[] {
  const known = [...new Set(spans.flatMap(({ probabilities }) => [...probabilities.keys()]))];
  const better = (a: Path, b: Path) => (b.score > a.score ? b : a);
  let paths = known.map((): Path => ({ score: 0, languages: [] }));
  for (const { seconds, probabilities } of spans) {
    const weight = Math.min(1, seconds / FULL_WEIGHT_SEC);
    const best = paths.reduce(better, { score: Number.NEGATIVE_INFINITY, languages: [] });
    const changed = { ...best, score: best.score - Math.log(odds) };
    paths = paths.map((same, i) => {
      const language = known[i] as string;
      const { score, languages } = better(same, changed);
      const probability = Math.max(LEAST_PROBABILITY, probabilities.get(language) ?? 0);
      return { score: score + weight * Math.log(probability), languages: [...languages, language] };
    });
  }
  return paths.reduce(better, { score: Number.NEGATIVE_INFINITY, languages: [] }).languages;
}

interface Path {
  score: number;
  languages: string[];
}
