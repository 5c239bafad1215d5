/** Gives the words of a recognizer to the speakers of a program that tells speakers apart but hears no words. */
import type { TimedWord } from '../../peers/peer.ts';
import type { SpeakerSpan } from './reference.ts';

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
