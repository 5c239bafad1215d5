/** Finds the language that most of the speech is in. Pure. */
import type { DetectedLanguage } from './recognizers/recognizer.ts';

export interface LanguageTally {
  /**
   * Adds the speech of a chunk. A language with probability 0 was not detected, so its speech is not counted.
   * @param samples the samples of speech that became words in this language; 0 if there were no words
   */
  add(detected: DetectedLanguage, samples: number): void;
  /**
   * The language of most of the speech with words. If no speech was counted, it is the language added last, else the
   * given one, else English with probability 0.
   */
  most(): { language: string; languageProbability: number };
}

/** @param given the ISO 639 code that the client gave */
export function createLanguageTally(given: string | undefined): LanguageTally {
  const spoken = new Map<string, { samples: number; probability: number }>();
  let last: DetectedLanguage =
    given === undefined ? { language: 'en', probability: 0 } : { language: given, probability: 1 };
  return {
    add(detected, samples) {
      last = detected;
      if (samples === 0 || detected.probability === 0) return;
      const previous = spoken.get(detected.language) ?? { samples: 0, probability: 0 };
      spoken.set(detected.language, {
        samples: previous.samples + samples,
        probability: Math.max(previous.probability, detected.probability),
      });
    },
    most() {
      const [top] = [...spoken].sort(([, a], [, b]) => b.samples - a.samples);
      const { language, probability } = top === undefined ? last : { language: top[0], ...top[1] };
      return { language, languageProbability: probability };
    },
  };
}
