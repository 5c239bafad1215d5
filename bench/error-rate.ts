/** A Python process computes word error rates with jiwer and Whisper's normalizers. */
import { join } from 'node:path';
import { startJsonLines } from './peers/json-lines.ts';
import { ROOT } from './peers/peer.ts';
import { ensureVenv } from './peers/python.ts';

export interface ErrorRates extends AsyncDisposable {
  /** Rates all pairs together; 0.1 means one word in ten. */
  rate(references: string[], hypotheses: string[], language: string): Promise<number>;
}

export async function startErrorRates(venv: string): Promise<ErrorRates> {
  const script = join(ROOT, 'bench/error_rate.py');
  const child = await startJsonLines('word error rate', ensureVenv(venv), [script]);
  return {
    async rate(references, hypotheses, language) {
      const english = language === 'en';
      return (await child.ask<{ rate: number }>({ references, hypotheses, english })).rate;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
