/** A Python process counts the errors of diarization with pyannote.metrics and meeteval. */
import { startJsonLines } from '../peers/json-lines.ts';
import { speakersPython } from '../peers/python.ts';
import type { LabeledWord, SpeakerSpan } from './conversations/reference.ts';

/** The errors in one file. Speech of two at once counts for both. */
export interface DiarizationErrors {
  /** Seconds of speech in the reference. */
  speech: number;
  missed: number;
  falseAlarm: number;
  /** Seconds given to another speaker. */
  confusion: number;
  /** Jaccard error rate of the file, 0..1. */
  jaccard: number;
  /** Speakers in the reference, and in the answer. */
  known: number;
  found: number;
  /** Words of the reference, and those that are wrong, missing, too many or of another speaker; null where unknown. */
  words: number | null;
  wordErrors: number | null;
}

export interface Judged {
  seconds: number;
  rttm: string;
  turns: readonly SpeakerSpan[];
  /** Path of the words; null where they are unknown. */
  stm: string | null;
  words: readonly LabeledWord[] | null;
}

export interface DiarizationScores extends AsyncDisposable {
  score(judged: Judged): Promise<DiarizationErrors>;
}

export async function startDiarizationScores(): Promise<DiarizationScores> {
  const child = await startJsonLines('diarization error', speakersPython(), [
    'speakers/diarization_error.py',
  ]);
  return {
    score: (judged) => child.ask<DiarizationErrors>(judged),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
