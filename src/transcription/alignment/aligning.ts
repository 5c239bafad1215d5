/**
 * Aligns a text that is given with the audio. Each chunk is recognized first; what was recognized says which part of
 * the text the chunk holds (placing.ts), and the recognizer then says when each word of that part is spoken. Both run
 * on the lanes of the model, and only the sound of the chunks between the two is held.
 */
import type { Lane } from '../../engine/types.ts';
import { GatewayError } from '../../errors.ts';
import { type ChunkRecognition, type LaneWork, onLanes } from '../lanes.ts';
import type { DetectedLanguage } from '../language/tally.ts';
import type { Recognition, Recognizer } from '../recognizer.ts';
import { textOf, toSegments, type Word } from '../segment.ts';
import { type Chunk, speechSecOf } from '../speech/chunks.ts';
import { countSyllables } from '../speech/speech-rate.ts';
import { toSentences } from '../text/sentences.ts';
import { createPlacing, type Part, type RecognizedChunk, requireTime } from './placing.ts';
import type { Unit } from './units.ts';

/**
 * The chunks behind a chunk that are recognized before the end of its text is decided, and their most speech in
 * seconds.
 */
const CHUNKS_AHEAD = 8;
const SECONDS_AHEAD = 60;

export interface AlignmentRequest {
  /** The text that is said, with at least one word. */
  text: string;
  recognizer: Recognizer;
  signal: AbortSignal;
}

/** A chunk whose part of the text is known. */
interface Placed extends Chunk {
  parts: Part[];
  detected: DetectedLanguage;
}

/**
 * As `onLanes`, with the text of the request in place of what was recognized.
 * @throws GatewayError `text_too_long` or `no_speech` when the text cannot be said in the audio
 */
export function onLanesAligned(work: LaneWork, request: AlignmentRequest): AsyncGenerator<ChunkRecognition> {
  const recognized = onLanes({
    ...work,
    // A stop of its own: if a chunk cannot be recognized, the chunks before it are still aligned.
    stop: new AbortController(),
    recognize: async (lane, chunk, before) => ({
      ...(await work.recognize(lane, chunk, before)),
      samples: chunk.samples,
    }),
  });
  return onLanes({
    ...work,
    chunks: placed(recognized, request.text),
    recognize: (lane, chunk) => align(lane, chunk, request),
  });
}

type WithSamples = Recognition & Pick<Chunk, 'samples'>;

async function* placed(
  recognitions: AsyncIterable<ChunkRecognition<WithSamples>>,
  text: string,
): AsyncGenerator<Placed> {
  const place = createPlacing(text);
  const waiting: (RecognizedChunk & { chunk: Omit<Placed, 'parts'> })[] = [];
  const syllables = countSyllables(text);
  let speechSec = 0;
  const placeFirst = (isEnd: boolean): Placed[] => {
    const [first, ...others] = waiting;
    if (first === undefined) return [];
    waiting.shift();
    return [{ ...first.chunk, parts: place([first, ...others], isEnd) }];
  };
  for await (const { chunk, samples, sentences, detected } of recognitions) {
    const recognized = sentences.map((sentence) => sentence.text).join(' ');
    const ofChunk = speechSecOf(chunk);
    waiting.push({ chunk: { ...chunk, samples, detected }, text: recognized, speechSec: ofChunk });
    speechSec += ofChunk;
    while (isFarAhead(waiting)) yield* placeFirst(false);
  }
  if (speechSec === 0) throw new GatewayError('no_speech', {}, { param: 'file' });
  requireTime(syllables, speechSec);
  while (waiting.length > 0) yield* placeFirst(true);
}

function isFarAhead([_first, ...others]: readonly RecognizedChunk[]): boolean {
  const seconds = others.reduce((sum, { speechSec }) => sum + speechSec, 0);
  return others.length >= CHUNKS_AHEAD || seconds >= SECONDS_AHEAD;
}

async function align(
  lane: Lane,
  chunk: Placed,
  { recognizer, signal }: AlignmentRequest,
): Promise<Recognition> {
  const { parts, detected } = chunk;
  const { language } = detected;
  if (recognizer.align === undefined) throw new Error('The catalogue names a model that does not align');
  const text = textOf(parts.filter(({ said }) => said).flatMap(({ units }) => units));
  const words = text === '' ? [] : await recognizer.align(lane, chunk, { text, language, signal });
  const all = withUnsaid(words, parts, chunk.startSec);
  const groups = toSentences(all);
  return { detected, sentences: toSegments(groups, chunk, { temperature: 0, noSpeechProb: 0, language }) };
}

/**
 * The words that a recognizer has aligned, as they stand in the text: pieces of one unit are joined, and units that are
 * not said stand at an instant between their neighbors.
 */
export function withUnsaid(aligned: readonly Word[], parts: readonly Part[], startSec: number): Word[] {
  const words: Word[] = [];
  const rest = [...aligned];
  let clock = startSec;
  for (const { units, said } of parts) {
    const group = said ? unitsTimed(rest, units, clock) : instants(units, clock);
    for (const word of group) words.push(word); // a call with so many arguments would overflow the stack
    clock = words.at(-1)?.end ?? clock;
  }
  return words;
}

/**
 * Takes the words of these units off the front of `rest`. A word may hold several units, as two characters of one token
 * do, and a unit several words. Units for which the recognizer gave no word stand at an instant.
 */
function unitsTimed(rest: Word[], units: readonly Unit[], startSec: number): Word[] {
  const words: Word[] = [];
  let clock = startSec;
  let open: Unit[] = [];
  let missing = 0; // characters of the open units that no word has brought yet
  let pieces: Word[] = [];
  for (const unit of units) {
    open.push(unit);
    missing += charactersIn(unit.text);
    while (missing > 0) {
      const word = rest.shift();
      if (word === undefined)
        return [...words, ...instants(open.concat(units.slice(units.indexOf(unit) + 1)), clock)];
      pieces.push(word);
      missing -= charactersIn(word.text);
    }
    const [first] = pieces;
    if (missing < 0 || first === undefined) continue; // the word goes on in the next unit
    clock = pieces.at(-1)?.end ?? clock;
    const tokens = pieces.flatMap((piece) => piece.tokens);
    words.push({ text: textOf(open), start: first.start, end: clock, tokens });
    open = [];
    pieces = [];
  }
  return [...words, ...instants(open, clock)];
}

const instants = (units: readonly Unit[], sec: number): Word[] =>
  units.map(({ text }) => ({ text, start: sec, end: sec, tokens: [] }));

/** Spaces are not counted, because words may have lost them. */
const charactersIn = (text: string) => text.replace(/\s/gu, '').length;
