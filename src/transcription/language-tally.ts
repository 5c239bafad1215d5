/** Which language most of the speech is in. Pure. */
import type { DetectedLanguage } from './recognizers/recognizer.ts';

export interface LanguageTally {
  /**
   * What is detected with probability 0 is nobody's language: its words do not count where others were told.
   * @param samples of speech that became words in it; 0 where none did
   */
  add(detected: DetectedLanguage, samples: number): void;
  /** The language of most words, else the one last detected, else the given one, else English with probability 0. */
  most(): { language: string; languageProbability: number };
}

/** @param given ISO 639 code that the client gave */
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
