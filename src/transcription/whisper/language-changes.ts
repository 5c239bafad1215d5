/**
 * Finds where the language changes in a chunk. Whisper writes a chunk in one language, and translates what is said in
 * another one. What is encoded for the whole chunk also tells the language of each span of speech in it, in the step of
 * the decoder that tells that of the chunk. Spans that sound like another language are then heard by themselves, and only if
 * they are in it, all of them are. bench/results/decoding.md has the figures.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { Lane, LanguageGuess } from '../../engine/types.ts';
import type { ChunkRequest } from '../recognizer.ts';
import { type Chunk, secondsInChunk, splitChunk } from '../speech/chunks.ts';
import { amongAllowed, languageBySound } from './language.ts';
import { betweenPauses } from './pauses.ts';

/** A span is heard by itself where another language than that of the chunk is more probable. */
const OTHER_LANGUAGE = 0.4;
/** A change of language between two spans must make the whole this many times as probable. */
const CHANGE_ODDS = 4;
/** Shorter speech tells less, in proportion to its length, in seconds. */
const TELLING_SEC = 1.5;
/** The sound of a span never rules a language out. */
const LEAST_PROBABILITY = 1e-3;

/** A span of speech, and how probable each language is by its sound. */
interface SpanSound {
  seconds: number;
  probabilities: ReadonlyMap<string, number>;
}

/** Hears the language of the chunk and of each span in it; `doubtful` has those that may be in another one. */
export async function hearTogether(lane: Lane, chunk: Chunk, request: ChunkRequest) {
  const { speech } = cutAtPauses(chunk);
  const spans = speech.length > 1 && !request.draft ? speech : [];
  const lastMs = Math.floor((chunk.samples.length / SAMPLE_RATE) * 1000);
  const ms = (sec: number) => Math.min(lastMs, Math.max(0, Math.round(secondsInChunk(chunk, sec) * 1000)));
  const parts = spans.map(({ startSec, endSec }) => ({ startMs: ms(startSec), endMs: ms(endSec) }));
  const sound = await languageBySound(lane, chunk, request, parts);
  const [{ language }] = amongAllowed(sound.probabilities, request.languages);
  const sounds = spans.map(({ startSec, endSec }, at) =>
    soundOf(endSec - startSec, sound.parts?.[at] ?? sound, request),
  );
  const isDoubtful = ({ probabilities }: SpanSound) =>
    [...probabilities].some(([other, probability]) => other !== language && probability > OTHER_LANGUAGE);
  return { sound, language, spans: sounds, doubtful: new Set(sounds.filter(isDoubtful)) };
}

/** The pieces of the chunk between which the language changes; only the chunk where it does not. */
export async function piecesByLanguage(
  lane: Lane,
  whole: Chunk,
  { language, spans, doubtful }: Awaited<ReturnType<typeof hearTogether>>,
  request: ChunkRequest,
): Promise<Chunk[]> {
  const chunk = cutAtPauses(whole);
  const parts = splitChunk(chunk, [...chunk.speech.keys()].slice(1));
  const heard = [...spans];
  const hear = async (isWanted: (span: SpanSound) => boolean) => {
    for (const [at, span] of spans.entries()) {
      const part = parts[at];
      if (part === undefined || !isWanted(span)) continue;
      heard[at] = soundOf(span.seconds, await languageBySound(lane, part, request), request);
    }
  };
  await hear((span) => doubtful.has(span));
  // What else is heard together says nothing here: where a span is blurred, others are, too.
  if (heard.every((span, at) => span === spans[at] || topOf(span) === language)) return [whole];
  await hear((span) => !doubtful.has(span));
  const languages = likeliestLanguages(heard, CHANGE_ODDS);
  return splitChunk(
    chunk,
    [...languages.keys()].filter((at) => at > 0 && languages[at] !== languages[at - 1]),
  );
}

/** The chunk with spans of speech that have no pauses; of voice activity they may have short ones. */
function cutAtPauses(chunk: Chunk): Chunk {
  const { samples } = chunk;
  const at = (sec: number) => Math.round(secondsInChunk(chunk, sec) * SAMPLE_RATE);
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
  const among = amongAllowed(probabilities, languages);
  return {
    seconds,
    probabilities: new Map(among.map(({ language, probability }) => [language, probability])),
  };
}

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
    const weight = Math.min(1, seconds / TELLING_SEC);
    const best = paths.reduce(better, { score: Number.NEGATIVE_INFINITY, languages: [] });
    const changed = { ...best, score: best.score - Math.log(odds) };
    paths = paths.map((same, i) => {
      const language = known[i] as string;
      const { score, languages } = better(same, changed);
      const heard = Math.max(LEAST_PROBABILITY, probabilities.get(language) ?? 0);
      return { score: score + weight * Math.log(heard), languages: [...languages, language] };
    });
  }
  return paths.reduce(better, { score: Number.NEGATIVE_INFINITY, languages: [] }).languages;
}

interface Path {
  score: number;
  languages: string[];
}
