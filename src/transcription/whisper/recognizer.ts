/** The Whisper family (Radford et al. 2022, arXiv 2212.04356) turns one chunk of speech into sentences. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type DecodedSegment, type Lane, type LanguageGuess, NativeError } from '../../engine/types.ts';
import { tooLong } from '../alignment/placing.ts';
import type { ChunkRecognition } from '../lanes.ts';
import {
  type ChunkRequest,
  type Dropped,
  type Recognition,
  type Recognizer,
  speechWithoutText,
  withoutText,
} from '../recognizer.ts';
import { toSegments, type UnnumberedSegment } from '../segment.ts';
import { type Chunk, sampleInChunk, speechSecOf } from '../speech/chunks.ts';
import { countSyllables, isFarTooShort, isShort, paceOf } from '../speech/speech-rate.ts';
import { groupsOf } from '../text/sentences.ts';
import { withLengths } from '../text/word-lengths.ts';
import { toWords } from '../text/words.ts';
import { withoutAnnotations } from './annotations.ts';
import {
  type AttemptResult,
  type Decoded,
  type Decoding,
  type DecodingResult,
  decode,
  firstAttempt,
  withTimes,
} from './decoding.ts';
import { isInvented } from './hallucination.ts';
import { type ChunkLanguage, chooseLanguage, languageBySound } from './language.ts';
import {
  detectPerSpan,
  hasChangedBefore,
  type Piece,
  piecesByLanguage,
  suspectByWords,
} from './language-changes.ts';
import { betweenPauses } from './pauses.ts';
import { mayRepeat, withoutRepeats } from './repeats.ts';
import { alignedWords, hasDoubtfulWords, lackText, speechLeftOut } from './text-alignment.ts';

/**
 * Longer chunks take no less time for each second of speech, and more memory. bench/results/time.md has the figures.
 */
const MAX_CHUNK_SEC = 20;
/**
 * What is said before and behind it helps Whisper with a sentence, also across a pause of this length
 * (bench/results/decoding.md). Where the language is not known, the next sentence may be in another one.
 */
const MAX_GAP_SEC = 5;
/** More silence would be encoded for nothing. */
const KEPT_PAUSE_SEC = 1;
/** Where the language of a chunk is less probable than this, its spans are asked, too, each heard by itself. */
const SURE_LANGUAGE = 0.8;
/** The spans of a chunk have lost text together when apart they have this many times as many syllables. */
const LEAST_GAIN = 1.25;

export const recognizer: Recognizer = {
  limits: (language) => ({
    maxSec: MAX_CHUNK_SEC,
    keptPauseSec: KEPT_PAUSE_SEC,
    ...(language !== undefined && { maxGapSec: MAX_GAP_SEC }),
  }),
  raisesSoft: true,

  async recognize(lane, chunk, request) {
    const { language } = request;
    if (language !== undefined) {
      const given = { detected: { language, probability: 1 } };
      return withLeftOut(lane, chunk, await recognizeIn(lane, chunk, given, request), request);
    }
    const detection = await detectPerSpan(lane, chunk, request);
    const whole = await recognizeAs(lane, chunk, detection.sound, request, (segments) =>
      mayChangeIn(segments, detection, request),
    );
    const hasSpans = detection.spans.length > 1 && whole.sentences.length > 0;
    const isUnsure = hasSpans && whole.detected.probability < SURE_LANGUAGE;
    const byWords =
      hasSpans && whole.texts?.some(hasDoubtfulWords) ? await suspectByWords(detection, request) : undefined;
    const suspects = [...new Set([detection.suspect, byWords])].filter((span) => span !== undefined);
    let [first, ...others]: Piece[] = [];
    for (const suspect of isUnsure ? [suspects[0]] : suspects) {
      [first, ...others] = await piecesByLanguage(lane, chunk, { ...detection, suspect, isUnsure }, request);
      if (first !== undefined) break;
    }
    if (first === undefined) return withLeftOut(lane, chunk, whole, request);
    if (others.length > 0) return inSeveralLanguages(lane, [first, ...others], request);
    const { detected } = first;
    const isOther = isUnsure && detected.language !== whole.detected.language;
    const right = isOther ? await recognizeIn(lane, chunk, { detected }, request) : whole;
    return withLeftOut(lane, chunk, right, request);
  },

  async align(lane, chunk, said) {
    const words = await alignedWords(lane, chunk, { ...said, translate: false });
    if (words === 'too long') throw tooLong(countSyllables(said.text), speechSecOf(chunk));
    return withLengths(words, chunk.endSec);
  },
};

type Recognized = Recognition & {
  /** Speech of the chunk without any word of its text, as pieces of it. */
  leftOut?: Chunk[];
  /** What was decoded for it: that of the chunk, or those of its parts. */
  texts?: DecodedSegment[][];
};

/** Whether a text is worth an alignment that shows the speech without words. */
type MayChange = (segments: DecodedSegment[]) => Promise<boolean>;

/** What is said in a chunk, or a piece of one, that is in one language. */
async function recognizeIn(
  lane: Lane,
  chunk: Chunk,
  { detected, first }: ChunkLanguage,
  request: ChunkRequest,
  mayChange?: MayChange,
): Promise<Recognized> {
  const { language } = detected;
  const together = await decodeSpeech(lane, chunk, { language, first }, request);
  if (together === 'silence') return { detected, sentences: [] };
  const text = textOfResult(together);
  const isSlow = !request.draft && (await isSlower(text, chunk, request));
  const parts = isSlow ? partsOf(chunk) : [];
  const said = { text, language, translate: request.translate, signal: request.signal };
  const isDecodedApart = parts.length > 1 && (await lackText(lane, chunk, parts, said));
  if (isDecodedApart) {
    const apart = await decodeParts(lane, parts, LEAST_GAIN * countSyllables(text), language, request);
    if (apart !== null) {
      const texts = apart.flatMap(({ result }) => (typeof result === 'object' ? [result.segments] : []));
      return { detected, texts, ...joined(apart, language, request) };
    }
  }
  if (together === 'repetition')
    return { detected, sentences: [], dropped: [withoutText(chunk, 'repetition')] };
  const isComplete = parts.length > 1 && !isFarTooShort(text, speechSecOf(chunk));
  const isAsked = !isDecodedApart && !request.translate && (await mayChange?.(together.segments));
  return {
    detected,
    texts: [together.segments],
    ...(isAsked && { leftOut: await speechLeftOut(lane, chunk, said) }),
    ...textIn(together, chunk, language, request),
    ...(isComplete && { completePace: paceOf(text, speechSecOf(chunk)) }),
  };
}

/** True where the language has changed before, and a span sounds like another one or words are improbable. */
async function mayChangeIn(
  segments: DecodedSegment[],
  { spans: [first, ...others], suspect, language }: Awaited<ReturnType<typeof detectPerSpan>>,
  request: ChunkRequest,
): Promise<boolean> {
  if (first === undefined || others.length === 0) return false;
  const isDoubtful = suspect !== undefined || hasDoubtfulWords(segments);
  return isDoubtful && hasChangedBefore(first, language, request);
}

/** What is said in a chunk that the lane has just encoded, by whose sound its language is chosen. */
async function recognizeAs(
  lane: Lane,
  chunk: Chunk,
  sound: LanguageGuess,
  request: ChunkRequest,
  mayChange: MayChange,
): Promise<Recognized> {
  const chosen = await chooseLanguage(lane, chunk, request, sound);
  return recognizeIn(lane, chunk, chosen, request, mayChange);
}

/** What is said in the pieces of a chunk, as of one. */
async function inSeveralLanguages(lane: Lane, pieces: Piece[], request: ChunkRequest): Promise<Recognition> {
  const all: ChunkRecognition[] = [];
  const mayChange = async () => true;
  for (const { chunk, chosen } of pieces) {
    const piece =
      chosen === undefined
        ? await recognizeAs(lane, chunk, await languageBySound(lane, chunk, request), request, mayChange)
        : await recognizeIn(lane, chunk, chosen, request, mayChange);
    all.push({ chunk, ...(await withLeftOut(lane, chunk, piece, request)) });
  }
  const spoken = all.map(({ detected, sentences, chunk }) => ({
    detected,
    seconds: sentences.length > 0 ? speechSecOf(chunk) : 0,
  }));
  return {
    detected: spoken.reduce((a, b) => (b.seconds > a.seconds ? b : a)).detected,
    spoken,
    sentences: all.flatMap(({ sentences }) => sentences),
    dropped: all.flatMap(speechWithoutText),
  };
}

/**
 * Adds what is said in the pieces of a chunk that its text leaves out: Whisper may end a text before what is said in
 * another language.
 */
async function withLeftOut(
  lane: Lane,
  chunk: Chunk,
  { leftOut = [], texts: _, ...whole }: Recognized,
  request: ChunkRequest,
): Promise<Recognition> {
  const pieces: ChunkRecognition[] = [];
  for (const piece of leftOut) {
    const recognition = await recognizer.recognize(lane, piece, request);
    if (recognition.sentences.length > 0) pieces.push({ chunk: piece, ...recognition });
  }
  if (pieces.length === 0) return whole;
  const spokenIn = (piece: ChunkRecognition) =>
    piece.spoken ?? [{ detected: piece.detected, seconds: speechSecOf(piece.chunk) }];
  const added = pieces.flatMap(spokenIn);
  const rest = added.reduce((sec, { seconds }) => sec - seconds, speechSecOf(chunk));
  return {
    ...whole,
    spoken: [{ detected: whole.detected, seconds: Math.max(0, rest) }, ...added],
    sentences: [...whole.sentences, ...pieces.flatMap(({ sentences }) => sentences)].toSorted(
      (a, b) => a.start - b.start,
    ),
  };
}

/** True for a short text, unless people were found to speak as slowly before. */
async function isSlower(text: string, chunk: Chunk, { before }: ChunkRequest): Promise<boolean> {
  const speechSec = speechSecOf(chunk);
  return isShort(text, speechSec) && isShort(text, speechSec, (await before()).slowestPace);
}

/** As `decode`, and `silence` too where the text was invented for a sound. */
async function decodeSpeech(lane: Lane, chunk: Chunk, decoding: Decoding, request: ChunkRequest) {
  const result = await decode(lane, chunk, decoding, request);
  if (typeof result !== 'object') return result;
  if (isInvented(result.outcome, chunk)) return 'silence';
  const needsTimes = !result.timed && !request.draft && mayRepeat(result.outcome.text);
  return needsTimes ? withTimes(lane, chunk, result, decoding.language, request) : result;
}

interface Part {
  part: Chunk;
  result: DecodingResult;
}

/** The spans of speech, each as a chunk, or the speech between the pauses of a single span. */
function partsOf(chunk: Chunk): Chunk[] {
  const { startSec, samples, speech } = chunk;
  const sec = (sample: number) => startSec + sample / SAMPLE_RATE; // a single span has no pause to be cut
  const spans =
    speech.length > 1
      ? speech
      : betweenPauses(samples).map(({ start, end }) => ({
          startSec: sec(start),
          endSec: sec(end),
          certainty: speech[0]?.certainty ?? 1,
        }));
  return spans.map((span) => ({
    ...chunk,
    ...span,
    samples: samples.subarray(sampleInChunk(chunk, span.startSec), sampleInChunk(chunk, span.endSec)),
    cuts: [],
    speech: [span],
  }));
}

/**
 * Decodes parts of a chunk each by itself; null where they have no more syllables than `least`. In one chunk Whisper
 * writes a sentence once that is said several times, or stops after the first one. Slow speech is the more common
 * reason for a short text, so one attempt at each part shows first whether the parts are worth all attempts.
 */
async function decodeParts(
  lane: Lane,
  parts: Chunk[],
  least: number,
  language: string,
  request: ChunkRequest,
): Promise<Part[] | null> {
  const firsts = [];
  for (const part of parts) firsts.push(await firstAttempt(lane, part, language, request));
  if (!firsts.some(isRejected) && syllablesOf(firsts.map(textOfAttempt)) <= least) return null;
  const all: Part[] = [];
  for (const [i, part] of parts.entries()) {
    const decoding = { language, first: firsts[i] };
    all.push({ part, result: await decodeSpeech(lane, part, decoding, request) });
  }
  return syllablesOf(all.map(({ result }) => textOfResult(result))) > least ? all : null;
}

const syllablesOf = (texts: string[]): number => texts.reduce((sum, text) => sum + countSyllables(text), 0);

/** True where another attempt may find more text. */
const isRejected = (attempt: AttemptResult | NativeError): boolean =>
  attempt instanceof NativeError || attempt.verdict === 'retry';

const textOfAttempt = (attempt: AttemptResult | NativeError): string =>
  attempt instanceof NativeError ? '' : attempt.decoded.outcome.text;

function joined(parts: Part[], language: string, request: ChunkRequest) {
  const sentences: UnnumberedSegment[] = [];
  const without: Dropped[] = [];
  for (const { part, result } of parts) {
    const own = typeof result === 'object' ? textIn(result, part, language, request) : { sentences: [] };
    sentences.push(...own.sentences);
    without.push(...(own.dropped ?? []));
    if (own.sentences.length === 0)
      without.push(withoutText(part, result === 'repetition' ? result : 'no_text'));
  }
  return { sentences, dropped: without };
}

const textOfResult = (result: DecodingResult): string =>
  typeof result === 'object' ? result.outcome.text : '';

function textIn(
  decoded: Decoded,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): Pick<Recognition, 'sentences' | 'dropped'> {
  const { segments, attempt, outcome, timed } = decoded;
  const written = toWords(segments, request.translate ? 'en' : language, chunk.startSec, chunk.speech);
  const all = withoutAnnotations(written, request.prompt);
  const { words: said, dropped } = timed ? withoutRepeats(all) : { words: all, dropped: [] };
  const words = withLengths(said, chunk.endSec);
  const { temperature } = attempt;
  const sentences = toSegments(groupsOf(words, request), chunk, {
    temperature,
    noSpeechProb: outcome.noSpeechProb,
    language,
  });
  return { sentences, ...(dropped.length > 0 && { dropped }) };
}
