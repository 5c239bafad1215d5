/**
 * Joins tokens to words. The rules are those of the Whisper reference code (`split_to_word_tokens`,
 * `merge_punctuations` and the duration limits of `add_word_timestamps` in timing.py), so that word times can be
 * compared with those of other Whisper systems. Words are joined further than there, once their times are known: no
 * word is a piece of one or a mark by itself, because sentences, subtitles and speakers change between words. Pure.
 */
import { TextDecoder } from 'node:util';
import type { DecodedSegment, Token } from '../../engine/types.ts';
import { beginsUnspaced, continues, endsUnspaced, spelledIn, type Word } from '../segment.ts';

/** Languages that are written without spaces, where each token is a word. `mul` stands for a mix of languages. */
const UNSPACED = new Set(['zh', 'ja', 'th', 'lo', 'my', 'yue', 'mul']);

/** A word of punctuation that is not spoken; a percent sign and similar signs are. */
const MARK = /^(?:\s|(?![%‰&@#*/§])\p{P})+$/u;
/** Marks that belong to the word after them; quotes and dashes do where a space is before them. */
const OPENS = /^(?:\s+["'\p{Pd}\p{Ps}\p{Pi}¿¡]+|[\p{Ps}\p{Pi}¿¡]+)$/u;
const PUNCTUATION = new Set([...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~']);
const SENTENCE_END = new Set([...'.。!！?？']);
/** A word is at most twice as long as the median word, and the median counts as at most this. */
const MAX_MEDIAN_SEC = 0.7;

/**
 * A word that goes on for this long in the span behind a silence is said there, however much time it has before the
 * silence: the alignment often ends the last word of a span too early. It is more than the padding of a span (0.2 s), into
 * which the alignment may draw out a word that is said before.
 */
const SPOKEN_SEC = 0.25;

/** A word with less time than this is extended into the silence before it. */
const MIN_WORD_SEC = 0.06;

/**
 * The words of one decoded chunk, with times in seconds from the start of the audio.
 * @param offsetSec the start of the chunk in the audio
 * @param speech the spans of speech; no word reaches across the silence between two spans, nor out of all of them
 */
export function toWords(
  segments: DecodedSegment[],
  language: string,
  offsetSec: number,
  speech: readonly { startSec: number; endSec: number }[] = [],
): Word[] {
  const pieces = segments.flatMap((segment) => spell(segment.tokens, offsetSec));
  const words = joinSubwords(pieces, UNSPACED.has(language));
  const median = limitDurations(words);
  const merged = joinPieces(joinBlanks(words));
  fitToSpeech(merged, speech, { medianSec: median, beginSec: offsetSec });
  return merged;
}

/** Joins tokens until their bytes are whole characters. Control tokens are kept with a neighboring token. */
export function spell(tokens: Token[], offsetSec: number): Word[] {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const pieces: Word[] = [];
  let pending: Token[] = [];
  /** Bytes that never became a character are shown as the replacement character rather than lost. */
  const showBroken = (broken: Token[]) => {
    const bytes = Buffer.concat(broken.map((token) => token.bytes));
    if (bytes.length > 0) pieces.push(toPiece(bytes.toString(), broken, offsetSec));
  };
  for (const token of tokens) {
    const last = pieces.at(-1);
    if (token.bytes.length === 0 && pending.length === 0 && last !== undefined) {
      last.tokens.push(token);
      continue;
    }
    pending.push(token);
    const text = tryDecode(decoder, pending);
    const own = text === undefined ? tryDecode(decoder, [token]) : text;
    if (own === undefined || own === '') continue;
    // Bytes before a token that is whole by itself will never become a character.
    if (text === undefined) showBroken(pending.splice(0, pending.length - 1));
    pieces.push(toPiece(own, pending, offsetSec));
    pending = [];
  }
  showBroken(pending);
  return pieces;
}

function toPiece(text: string, tokens: Token[], offsetSec: number): Word {
  const spelled = spelledIn(tokens);
  return {
    text,
    start: offsetSec + (spelled[0]?.startMs ?? 0) / 1000,
    end: offsetSec + (spelled.at(-1)?.endMs ?? 0) / 1000,
    tokens: tokens.map(({ id, bytes, logprob }) => ({ id, bytes, logprob })),
  };
}

function tryDecode(decoder: TextDecoder, tokens: Token[]): string | undefined {
  try {
    return decoder.decode(Buffer.concat(tokens.map((token) => token.bytes)));
  } catch {
    return undefined; // the bytes end inside a character
  }
}

/** @param unspaced true when a change to or from a script without spaces also separates words */
function joinSubwords(pieces: Word[], unspaced: boolean): Word[] {
  const words: Word[] = [];
  for (const piece of pieces) {
    const last = words.at(-1);
    const begins =
      !continues(piece.text) &&
      (piece.text.startsWith(' ') ||
        PUNCTUATION.has(piece.text.trim()) ||
        (unspaced && (beginsUnspaced(piece.text) || endsUnspaced(last?.text ?? ''))));
    if (last === undefined || begins) words.push(piece);
    else words[words.length - 1] = join(last, piece);
  }
  return words;
}

function join(a: Word, b: Word): Word {
  return { text: a.text + b.text, start: a.start, end: b.end, tokens: [...a.tokens, ...b.tokens] };
}

/** Shortens words at sentence ends, because the alignment counts the pause there as a part of the word. */
function limitDurations(words: Word[]): number {
  const durations = words.map((w) => w.end - w.start).filter((d) => d > 0);
  durations.sort((a, b) => a - b);
  const median = Math.min(MAX_MEDIAN_SEC, durations[Math.floor(durations.length / 2)] ?? 0);
  if (median === 0) return 0;
  const longest = median * 2;
  words.forEach((word, i) => {
    const before = words[i - 1];
    if (word.end - word.start <= longest) return;
    if (SENTENCE_END.has(word.text.trim())) word.end = word.start + longest;
    else if (before === undefined || SENTENCE_END.has(before.text.trim())) word.start = word.end - longest;
  });
  return median;
}

/**
 * Moves words out of the silences. The alignment does not know silence: it counts a pause as a part of the word beside
 * it, and may leave the next word no time at all.
 */
function fitToSpeech(
  words: Word[],
  speech: readonly { startSec: number; endSec: number }[],
  { medianSec, beginSec }: { medianSec: number; beginSec: number },
): void {
  const bounds = { startSec: speech[0]?.startSec, endSec: speech.at(-1)?.endSec };
  for (const word of words) {
    speech.slice(1).forEach((span, i) => {
      const silence = { start: speech[i]?.endSec ?? 0, end: span.startSec };
      if (word.start >= silence.end || word.end <= silence.start) return;
      if (word.end - silence.end >= Math.min(silence.start - word.start, SPOKEN_SEC))
        word.start = Math.max(word.start, silence.end);
      else word.end = silence.start;
    });
    // A word that lies wholly outside of the spans was spoken softly, so it stays there.
    const { startSec = 0, endSec = Number.POSITIVE_INFINITY } = bounds;
    if (word.end > startSec) word.start = Math.max(word.start, startSec);
    if (word.start < endSec) word.end = Math.min(word.end, endSec);
    word.end = Math.max(word.start, word.end);
  }
  words.forEach((word, i) => {
    if (word.end - word.start >= MIN_WORD_SEC) return;
    // What is before the chunk, or before its speech, belongs to the words of another one.
    const free = words[i - 1]?.end ?? Math.min(word.start, Math.max(beginSec, bounds.startSec ?? 0));
    word.start = Math.max(free, Math.min(word.start, word.end - medianSec));
  });
}

/**
 * Joins a space that is a token by itself to the word after it. At the end of a chunk only its tokens are kept, because
 * what follows has a space of its own where it needs one.
 */
function joinBlanks(words: Word[]): Word[] {
  const joined: Word[] = [];
  let blank: Word | null = null;
  for (const word of words) {
    if (word.text.trim() === '') blank = blank === null ? word : join(blank, word);
    else if (blank === null) joined.push(word);
    else {
      joined.push({ ...join(blank, word), text: ` ${word.text.trimStart()}`, start: word.start });
      blank = null;
    }
  }
  const last = joined.at(-1);
  if (blank !== null && last !== undefined)
    joined[joined.length - 1] = { ...last, tokens: [...last.tokens, ...blank.tokens] };
  return joined;
}

/**
 * Joins opening marks to the word after them and other marks to the word before, without the time of the marks. Beyond
 * the reference code, a word without a space before it is joined to the word before (`$3` `.50`, `C` `'est`), with its
 * time, unless a script without spaces is on either side.
 */
function joinPieces(words: Word[]): Word[] {
  const joined: Word[] = [];
  let opening: Word | null = null;
  words.forEach((word, i) => {
    const last = joined.at(-1);
    const isMark = MARK.test(word.text);
    if (isMark && opens(word, last, words[i + 1])) opening = opening === null ? word : attach(opening, word);
    else if (isMark && last !== undefined) {
      joined[joined.length - 1] = { ...attach(last, opening, word), end: last.end };
      opening = null;
    } else if (opening !== null) {
      joined.push({ ...attach(opening, word), start: word.start });
      opening = null;
    } else if (last !== undefined && isGlued(last, word)) joined[joined.length - 1] = attach(last, word);
    else joined.push(word);
  });
  const last = joined.at(-1);
  if (opening !== null && last !== undefined)
    joined[joined.length - 1] = { ...attach(last, opening), end: last.end };
  else if (opening !== null) joined.push(opening);
  return joined;
}

/** True for a mark that belongs to the word after it. Each mark before the first word does. */
function opens(mark: Word, last: Word | undefined, next: Word | undefined): boolean {
  if (last === undefined) return true;
  // German closes with the quote that opens in English, and writes it without a space.
  const isInside = !isGlued(last, mark) || beginsUnspaced(next?.text ?? '');
  return isInside && OPENS.test(mark.text);
}

const isGlued = (before: Word, word: Word): boolean =>
  !/^\s/.test(word.text) && !endsUnspaced(before.text) && !beginsUnspaced(word.text);

/** Joins words, without the space between a mark and a character of a script without spaces. */
function attach(first: Word, ...others: (Word | null)[]): Word {
  return others.reduce<Word>((whole, word) => {
    if (word === null) return whole;
    const bare = { ...word, text: word.text.trimStart() };
    return join(whole, endsUnspaced(whole.text) && beginsUnspaced(bare.text) ? bare : word);
  }, first);
}
