/** Models of the addon in the process of a bench, without the gateway around them. */
import { readConfig } from '../../src/config/config.ts';
import type { ChunkOptions, LoadOptions, NativeEngine, Token } from '../../src/engine/types.ts';
import { GREEDY } from '../../src/transcription/recognizer.ts';
import { JFK } from '../../test/wav.ts';
import { median } from './numbers.ts';
import { floatsOf, RATE, samplesOf } from './samples.ts';

/** One greedy text with times of its tokens, but not of words. */
export const GREEDY_TEXT: ChunkOptions = { ...GREEDY, language: 'en', words: false };

/** The most tokens that a timed model decodes. */
export const MAX_TOKENS = 30;

export interface ModelTimes {
  loadMs: number;
  /** The median of the rounds, after one that warms up. */
  transcribeMs: number;
  tokens: Token[];
}

/** Times a model over 11 s of speech: 640 encoder positions, and few tokens. */
export async function timeModel(
  engine: NativeEngine,
  model: Pick<LoadOptions, 'family' | 'path' | 'device'>,
  rounds: number,
): Promise<ModelTimes> {
  const samples = floatsOf(samplesOf(JFK)).subarray(0, 11 * RATE);
  const begin = performance.now();
  const loaded = await engine.loadModel({ ...model, threads: readConfig().config.threads });
  const loadMs = performance.now() - begin;
  const times: number[] = [];
  let tokens: Token[] = [];
  for (let round = 0; round <= rounds; round++) {
    const startedAt = performance.now();
    const segments = await loaded.transcribe(samples, {
      ...GREEDY_TEXT,
      audioContext: 640,
      maxTokens: MAX_TOKENS,
    });
    if (round > 0) times.push(performance.now() - startedAt);
    tokens = segments.flatMap((segment) => segment.tokens);
  }
  await loaded.close();
  return { loadMs, transcribeMs: median(times), tokens };
}
