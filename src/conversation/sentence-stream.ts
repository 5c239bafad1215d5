/** Finds the sentences of a text that comes piece by piece, so that each is spoken while the next one is written. */
import { endsSentence } from '../transcription/text/sentences.ts';

const segmenter = new Intl.Segmenter(undefined, { granularity: 'sentence' });
/** A word that is longer has no abbreviation at its end. */
const WORD_CHARACTERS = 100;

/**
 * The sentences of a text whose end is still to come. Unicode says where sentences may end in any script, and the rules
 * for transcripts know abbreviations. A sentence ends when the next one has begun.
 */
export function splitSentences(text: string): { sentences: string[]; rest: string } {
  const sentences: string[] = [];
  let open = '';
  for (const { segment } of segmenter.segment(text)) {
    if (/[\p{L}\p{N}]/u.test(segment) && isWhole(open, segment)) {
      sentences.push(open);
      open = '';
    }
    open += segment;
  }
  return { sentences, rest: open };
}

function isWhole(sentence: string, next: string): boolean {
  if (sentence.trim() === '') return false;
  if (sentence.slice(sentence.trimEnd().length).includes('\n')) return true;
  const word = (text = '') => ({ text, start: 0, end: 0 });
  const last = sentence.slice(-WORD_CHARACTERS).trim().split(/\s+/).at(-1);
  const [first] = next.slice(0, WORD_CHARACTERS).trim().split(/\s+/);
  return endsSentence(word(last), word(first));
}
