/** A Python process computes word error rates with jiwer and Whisper's normalizers. */
import { sumOf } from '../common/numbers.ts';
import { startJsonLines } from '../peers/json-lines.ts';
import { benchPython } from '../peers/python.ts';

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
  /** Counts the errors of each sentence of one text, in the spelling of its language. */
  count(sentences: readonly Sentence[], hypothesis: string): Promise<WordErrors[]>;
  /** Rates all texts together; 0.1 means one word in ten. */
  rate(texts: readonly (Sentence & { heard: string })[]): Promise<number>;
}

export async function startErrorRates(): Promise<ErrorRates> {
  const child = await startJsonLines('word error rate', benchPython(), ['accuracy/error_rate.py']);
  const count = async (sentences: readonly Sentence[], hypothesis: string) =>
    (await child.ask<{ pairs: WordErrors[] }>({ sentences, hypothesis })).pairs;
  return {
    count,
    async rate(texts) {
      const counted: WordErrors[] = [];
      for (const { heard, ...sentence } of texts) counted.push(...(await count([sentence], heard)));
      return sumOf(counted, ({ errors }) => errors) / sumOf(counted, ({ words }) => words);
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
