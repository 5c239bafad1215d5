/** Writes and reads who speaks when, and what, in the forms that tools for it share. */
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
