/** What the chunks before one tell about it. Pure. */
import { createLanguageTally, type LanguageTally } from './language/tally.ts';

export interface HeardBefore {
  readonly languages: LanguageTally;
  /** The slowest speech, in syllables a second, that was found to have all its text; infinite before any was. */
  readonly slowestPace: number;
}

export const NOTHING_BEFORE: HeardBefore = {
  languages: createLanguageTally(undefined),
  slowestPace: Number.POSITIVE_INFINITY,
};
