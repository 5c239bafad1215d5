/** A Python process computes word error rates with jiwer and Whisper's normalizers. */
import { join } from 'node:path';
import { startJsonLines } from '../peers/json-lines.ts';
import { ROOT } from '../peers/peer.ts';
import { ensureVenv } from '../peers/python.ts';

/** The errors of one text: substitutions, deletions and insertions. */
export interface WordErrors {
  errors: number;
  /** The words of the reference. */
  words: number;
  /** Each difference as `heard for said`; `-` stands for nothing. */
  wrong: string[];
}

/** What is said, and its language as an ISO 639 code. */
export interface Sentence {
  text: string;
  language: string;
}

export interface ErrorRates extends AsyncDisposable {
  /** Rates all pairs together; 0.1 means one word in ten. */
  rate(references: string[], hypotheses: string[], language: string): Promise<number>;
  /** Counts the errors of each pair. */
  count(references: string[], hypotheses: string[], language: string): Promise<WordErrors[]>;
  /** Counts the errors of each sentence of one text, in the spelling of its language. */
  countSentences(sentences: readonly Sentence[], hypothesis: string): Promise<WordErrors[]>;
}

export async function startErrorRates(venv: string): Promise<ErrorRates> {
  const script = join(ROOT, 'bench/accuracy/error_rate.py');
  const child = await startJsonLines('word error rate', ensureVenv(venv), [script]);
  const ask = (references: string[], hypotheses: string[], language: string) =>
    child.ask<{ rate: number; pairs: WordErrors[] }>({ references, hypotheses, language });
  return {
    rate: async (...texts) => (await ask(...texts)).rate,
    count: async (...texts) => (await ask(...texts)).pairs,
    countSentences: async (sentences, hypothesis) =>
      (await child.ask<{ pairs: WordErrors[] }>({ sentences, hypothesis })).pairs,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
