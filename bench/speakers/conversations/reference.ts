/** Who speaks when, and what: written in the forms that tools for it share, and the words of a recognizer given to speakers. */
import type { TimedWord } from '../../peers/peer.ts';
import type { Span } from './speech-spans.ts';

/** A turn of one speaker, in seconds from the start of the file. */
export interface SpeakerSpan extends Span {
  speaker: string;
}

/** RTTM of NIST's evaluations (rich transcription, 2009): one line for each turn, in order of time. */
export function rttmLines(file: string, speakers: readonly { id: string; spans: readonly Span[] }[]): string {
  const spans = speakers.flatMap(({ id, spans }) => spans.map((span) => ({ id, ...span })));
  return spans
    .toSorted((a, b) => a.start - b.start)
    .map(
      ({ id, start, end }) =>
        `SPEAKER ${file} 1 ${start.toFixed(3)} ${(end - start).toFixed(3)} <NA> <NA> ${id} <NA> <NA>\n`,
    )
    .join('');
}

/** STM of NIST's sclite: the words of each turn. */
export function stmLines(file: string, words: readonly (SpeakerSpan & { text: string })[]): string {
  return words
    .toSorted((a, b) => a.start - b.start)
    .map(
      ({ speaker, start, end, text }) =>
        `${file} 1 ${speaker} ${start.toFixed(3)} ${end.toFixed(3)} ${text}\n`,
    )
    .join('');
}

export interface LabeledWord {
  speaker: string;
  word: string;
}

/** Each word goes to the speaker who speaks for most of it, or next to it. Where there is no turn, no word has one. */
export function labeledWords(words: readonly TimedWord[], turns: readonly SpeakerSpan[]): LabeledWord[] {
  return words.flatMap(({ word, start, end }) => {
    const distance = (turn: SpeakerSpan) => Math.max(turn.start, start) - Math.min(turn.end, end);
    const nearest = turns.reduce<SpeakerSpan | null>(
      (best, turn) => (best === null || distance(turn) < distance(best) ? turn : best),
      null,
    );
    return nearest === null ? [] : [{ speaker: nearest.speaker, word: word.trim() }];
  });
}
