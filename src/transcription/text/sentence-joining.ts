/**
 * Joins the parts of sentences, because a sentence is one segment whatever pauses it has (contract 4.3, segment rules).
 * Chunks end at pauses, and people also pause in the middle of a sentence. Pure; every word is kept once and in order.
 */
import type { ChunkRecognition } from '../lanes.ts';
import { type Dropped, speechWithoutText } from '../recognizer.ts';
import { joinParts, type UnnumberedSegment, type Word } from '../segment.ts';
import {
  endsSentence,
  goesOnBehindPause,
  hasEndMark,
  isFinished,
  isLongPause,
  LONG_PAUSE_SEC,
  lastWord,
  MAX_SENTENCE_SEC,
  placeToCut,
} from './sentences.ts';

type Recognized = Pick<ChunkRecognition, 'chunk' | 'sentences' | 'dropped'>;

/**
 * Yields the sentences of all chunks, each as soon as nothing more can belong to it: when it is finished, when it has
 * reached the cap, or when the next words begin another sentence. Less than the cap is held, and that is also yielded
 * when the source fails or ends.
 */
export async function* joinSentences(
  recognitions: AsyncIterable<Recognized>,
): AsyncGenerator<UnnumberedSegment, void, undefined> {
  const joining = createJoining();
  try {
    for await (const recognition of recognitions) yield* joining.push(recognition);
  } catch (error) {
    yield* joining.finish();
    throw error;
  }
  yield* joining.finish();
}

function createJoining() {
  /** The parts of the sentence that may go on. */
  let held: UnnumberedSegment[] = [];
  /**
   * True when the last sentence ended with a mark, and false when there was no mark within the cap, as in lyrics and in
   * languages that are written without. Then long pauses are all that tells where a sentence may end.
   */
  let hasMarks: boolean | undefined;

  /** Everything that is held, as sentences. */
  function release(): UnnumberedSegment[] {
    const parts = held;
    held = [];
    return joined(hasMarks ? [parts] : cutAtPauses(parts));
  }

  function add(part: UnnumberedSegment, without: readonly Dropped[]): UnnumberedSegment[] {
    const last = held.at(-1);
    const isNext = last !== undefined && (isEndBetween(last, part) || isApart(last, part, without));
    const out = isNext || (hasMarks === false && !goesOn(held, part)) ? release() : [];
    held.push(part);
    if (lengthOf(held) > MAX_SENTENCE_SEC) out.push(...shorten());
    if (part.words.some(hasEndMark)) hasMarks = true;
    return out;
  }

  /** Gives away as much of a sentence as makes it too long. */
  function shorten(): UnnumberedSegment[] {
    const out: UnnumberedSegment[] = [];
    const isMarked = hasMarks || (held.at(-1)?.words.some(hasEndMark) ?? false);
    if (!isMarked) {
      const sentences = cutAtPauses(held);
      held = sentences.pop() ?? [];
      out.push(...joined(sentences));
    }
    while (held.length > 1 && lengthOf(held) > MAX_SENTENCE_SEC)
      out.push(...joined([held.splice(0, placeToCut(held))]));
    // Where a text with marks has none for so long, they may be over.
    hasMarks = isMarked ? undefined : false;
    return out;
  }

  /** @param silentUntilSec the end of the silence after the words, in seconds, if it is short */
  function isComplete(silentUntilSec: number): boolean {
    const [first] = held;
    const word = lastWord(held.at(-1)?.words ?? []);
    if (first?.words[0] === undefined || word === undefined) return held.length > 0;
    if (isFinished(word)) return true;
    const isPause = silentUntilSec - word.end > LONG_PAUSE_SEC;
    return hasMarks === false && isPause && !goesOnBehindPause(first.words[0], word);
  }

  return {
    push(recognition: Recognized): UnnumberedSegment[] {
      const { chunk, sentences } = recognition;
      const without = speechWithoutText(recognition).filter(isLong);
      const out = sentences.flatMap((part) => add(part, without));
      const heldTo = held.at(-1)?.end ?? 0;
      const isLost = without.some(({ end }) => end > heldTo);
      return isLost || isComplete(chunk.silentUntilSec) ? [...out, ...release()] : out;
    },
    finish: release,
  };
}

const lengthOf = (parts: UnnumberedSegment[]): number => (parts.at(-1)?.end ?? 0) - (parts[0]?.start ?? 0);

const joined = (sentences: UnnumberedSegment[][]): UnnumberedSegment[] =>
  sentences.flatMap(([first, ...others]) => (first === undefined ? [] : [joinParts(first, ...others)]));

/** Whether something is so of the last word of a part and the first one of the next part. */
const between =
  (is: (last: Word, next: Word) => boolean) =>
  (before: UnnumberedSegment, after: UnnumberedSegment): boolean => {
    const last = lastWord(before.words);
    const [next] = after.words;
    return last !== undefined && next !== undefined && is(last, next);
  };

const isEndBetween = between(endsSentence);
const isPauseBetween = between(isLongPause);

/** True for parts that no sentence spans: in two languages, or with speech without text between them. */
function isApart(before: UnnumberedSegment, after: UnnumberedSegment, without: readonly Dropped[]): boolean {
  const isLost = without.some(({ start, end }) => end > before.end && start < after.start);
  return isLost || (isPauseBetween(before, after) && before.language !== after.language);
}

/** A short sound without text, such as a cough, is a pause like another. */
const isLong = ({ start, end }: Dropped): boolean => end - start > LONG_PAUSE_SEC;

/** Cuts a text without marks at its long pauses, unless the writing shows that a sentence goes on there. */
function cutAtPauses(parts: UnnumberedSegment[]): UnnumberedSegment[][] {
  const sentences: UnnumberedSegment[][] = [];
  let open: UnnumberedSegment[] = [];
  for (const part of parts) {
    if (!goesOn(open, part)) {
      sentences.push(open);
      open = [];
    }
    open.push(part);
  }
  return [...sentences, open];
}

function goesOn(parts: UnnumberedSegment[], next: UnnumberedSegment): boolean {
  const [first, last] = [parts[0], parts.at(-1)];
  const word = lastWord(last?.words ?? []);
  if (first?.words[0] === undefined || last === undefined || word === undefined) return true;
  return !isPauseBetween(last, next) || goesOnBehindPause(first.words[0], word, next.words[0]);
}
