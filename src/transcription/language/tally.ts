/** Finds the language that most of the speech is in, and how much of it is in each. Pure. */

/** A language and the model's probability for it (0..1; 1 when the client gave the language). */
export interface DetectedLanguage {
  language: string;
  probability: number;
}

/** With less speech than this, in seconds, the languages heard so far say little about the next words. */
const LITTLE_SEC = 5;

interface Spoken {
  seconds: number;
  probability: number;
}

/** The languages of the speech so far. It never changes, so that each chunk can have its own. */
export interface LanguageTally {
  /** The language added last; null before the first. */
  readonly last: DetectedLanguage | null;
  /**
   * The tally with the speech of one more chunk. A language with probability 0 was not detected, so its speech is not
   * counted.
   * @param seconds the speech that became words in this language; 0 if there were no words
   */
  with(detected: DetectedLanguage, seconds: number): LanguageTally;
  /** The part of the speech, 0..1, that is in a language. It stays below 1, the more so the less there was. */
  share(language: string): number;
  /**
   * The language of most of the speech with words. If no speech was counted, it is the language added last, else the
   * given one, else English with probability 0.
   */
  most(): { language: string; languageProbability: number };
}

/** @param given the ISO 639 code that the client gave */
export function createLanguageTally(given: string | undefined): LanguageTally {
  const unheard =
    given === undefined ? { language: 'en', probability: 0 } : { language: given, probability: 1 };
  return tallyOf(new Map(), null, unheard);
}

function tallyOf(
  spoken: ReadonlyMap<string, Spoken>,
  last: DetectedLanguage | null,
  unheard: DetectedLanguage,
): LanguageTally {
  const total = [...spoken.values()].reduce((sum, { seconds }) => sum + seconds, 0);
  return {
    last,
    with(detected, seconds) {
      if (seconds === 0 || detected.probability === 0) return tallyOf(spoken, detected, unheard);
      const previous = spoken.get(detected.language) ?? { seconds: 0, probability: 0 };
      const now = {
        seconds: previous.seconds + seconds,
        probability: Math.max(previous.probability, detected.probability),
      };
      return tallyOf(new Map(spoken).set(detected.language, now), detected, unheard);
    },
    share: (language) => (spoken.get(language)?.seconds ?? 0) / (total + LITTLE_SEC),
    most() {
      const [top] = [...spoken].sort(([, a], [, b]) => b.seconds - a.seconds);
      const { language, probability } =
        top === undefined ? (last ?? unheard) : { language: top[0], ...top[1] };
      return { language, languageProbability: probability };
    },
  };
}
