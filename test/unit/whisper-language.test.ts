/** A scripted model of the Whisper family tells languages by sound, by those heard before, and by the text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ChunkOptions, type Lane, NativeError } from '../../src/engine/types.ts';
import { createLanguageTally, type LanguageTally } from '../../src/transcription/language/tally.ts';
import { NO_EARLIER_CHUNKS } from '../../src/transcription/recognizer.ts';
import { recognizer as whisper } from '../../src/transcription/whisper/recognizer.ts';
import { chunkRequest } from '../chunk-request.ts';

const LANGUAGES = ['en', 'es', 'it', 'pt', 'cy'];
const SPANISH_IN_DOUBT = { it: 0.88, es: 0.1, pt: 0.01, en: 0.01 };
const CLEARLY_SPANISH = { es: 0.97, it: 0.018, pt: 0.012 };

const chunkOf = (seconds: number) => ({
  startSec: 0,
  endSec: seconds,
  silentUntilSec: seconds,
  samples: new Float32Array(seconds * 16000),
  speech: [{ startSec: 0, endSec: 1, certainty: 1 }],
});

interface Text {
  logprob: number;
  words?: string[];
  noSpeechProb?: number;
}

interface Scene {
  /** By sound. */
  probabilities: Record<string, number>;
  /** What is heard in each language. */
  texts: Record<string, Text | NativeError>;
  heardBefore?: LanguageTally | null;
  languages?: string[];
  draft?: boolean;
  seconds?: number;
}

/** The answer, and the calls in their order: `detect`, and the language of each transcription. */
async function hear(scene: Scene) {
  const { probabilities, texts, heardBefore, languages = LANGUAGES, draft = false, seconds = 5 } = scene;
  const calls: string[] = [];
  const encodings = new Set<string>();
  const lane = {
    info: { languages: LANGUAGES, audioContext: 1500, textContext: 448 },
    detectLanguage: async (_samples: Float32Array, { audioContext }: { audioContext: number }) => {
      calls.push('detect');
      encodings.add(`${audioContext}`);
      return { language: '', probability: 0, probabilities };
    },
    transcribe: async (_samples: Float32Array, { language, audioContext, again }: ChunkOptions) => {
      calls.push(language);
      if (!again || audioContext > 0) encodings.add(again ? `${audioContext}` : `new ${audioContext}`);
      const text = texts[language];
      if (text === undefined || text instanceof Error)
        throw text ?? new Error(`${language} was not expected`);
      const { logprob, words = [' a', ' text', ' in', ` ${language}`], noSpeechProb = 0 } = text;
      const tokens = words.map((word, id) => ({
        id,
        bytes: Buffer.from(word),
        logprob,
        startMs: id * 500,
        endMs: (id + 1) * 500,
      }));
      return [{ startMs: 0, endMs: 2500, tokens, noSpeechProb }];
    },
  };
  const request = chunkRequest({
    languages,
    draft,
    before: async () => {
      if (heardBefore === null) throw new Error('nothing has to be known of the chunks before');
      return { ...NO_EARLIER_CHUNKS, ...(heardBefore && { languages: heardBefore }) };
    },
  });
  const { detected, sentences } = await whisper.recognize(lane as unknown as Lane, chunkOf(seconds), request);
  assert.equal(encodings.size, 1, `all calls share one encoding: ${[...encodings]}`);
  return { detected, calls, text: sentences.map(({ text }) => text.trim()).join(' ') };
}

test('a clear sound decides at once, and does not wait for the chunks before', async () => {
  const { detected, calls } = await hear({
    probabilities: CLEARLY_SPANISH,
    texts: { es: { logprob: -0.9 } },
    heardBefore: null,
  });
  assert.deepEqual([detected, calls], [{ language: 'es', probability: 0.97 }, ['detect', 'es']]);
});

test('in doubt the more probable text decides, and is not decoded a second time', async () => {
  const { detected, calls, text } = await hear({
    probabilities: SPANISH_IN_DOUBT,
    texts: { it: { logprob: -0.7 }, es: { logprob: -0.17 } },
  });
  assert.deepEqual([detected.language, text], ['es', 'a text in es']);
  assert(detected.probability > 0.5 && detected.probability < 0.9, `${detected.probability}`);
  assert.deepEqual(calls, ['detect', 'it', 'es']);
});

test('in doubt the sound decides where no text is much more probable', async () => {
  const { detected, calls, text } = await hear({
    probabilities: SPANISH_IN_DOUBT,
    texts: { it: { logprob: -0.2 }, es: { logprob: -0.17 } },
  });
  assert.deepEqual([detected.language, text, calls], ['it', 'a text in it', ['detect', 'it', 'es']]);
  assert(detected.probability > 0.7 && detected.probability < 0.9, `${detected.probability}`);
});

test('the longer the speech is, the more its text says', async () => {
  const texts = { it: { logprob: -0.35 }, es: { logprob: -0.17 } };
  for (const [seconds, language] of [
    [5, 'it'],
    [10, 'it'],
    [20, 'es'],
  ] as const) {
    const { detected } = await hear({ probabilities: SPANISH_IN_DOUBT, texts, seconds });
    assert.equal(detected.language, language, `${seconds} s`);
  }
});

const FIVE_IN_DOUBT = { it: 0.4, pt: 0.25, en: 0.2, es: 0.1, cy: 0.05 };
const FIVE_TEXTS = {
  it: { logprob: -0.6 },
  pt: { logprob: -0.5 },
  en: { logprob: -0.9 },
  es: { logprob: -0.2 },
  cy: { logprob: -0.01 },
};

test('in doubt the texts of up to four languages are compared, and of two in a draft', async () => {
  const { detected, calls, text } = await hear({ probabilities: FIVE_IN_DOUBT, texts: FIVE_TEXTS });
  assert.deepEqual([detected.language, text], ['es', 'a text in es']);
  assert.deepEqual(calls, ['detect', 'it', 'pt', 'en', 'es']);
  // The mean is over the four tokens and the end, whose logarithm is 0; a lead of 0.1 counts e times.
  const weight = (language: 'it' | 'pt' | 'en' | 'es') =>
    FIVE_IN_DOUBT[language] *
    Math.exp(((4 / 5) * (FIVE_TEXTS[language].logprob - FIVE_TEXTS.es.logprob)) / 0.1);
  const expected = (0.95 * weight('es')) / (weight('it') + weight('pt') + weight('en') + weight('es'));
  assert(Math.abs(detected.probability - expected) < 1e-9, `${detected.probability}, expected ${expected}`);
  const draft = await hear({ probabilities: FIVE_IN_DOUBT, texts: FIVE_TEXTS, draft: true });
  assert.deepEqual([draft.detected.language, draft.calls], ['pt', ['detect', 'it', 'pt']]);
});

test('a language is in doubt up to a fiftieth of the probability of the best one', async () => {
  const texts = { it: { logprob: -0.4 }, es: { logprob: -0.4 } };
  for (const [es, asked] of [
    [1 / 49, ['detect', 'it', 'es']],
    [1 / 51, ['detect', 'it']],
  ] as const)
    assert.deepEqual((await hear({ probabilities: { it: 1, es }, texts })).calls, asked);
});

test('a language whose text is refused is left out, and the next one still counts', async () => {
  const unfinished = new NativeError('incomplete', 'scripted');
  const texts = { ...FIVE_TEXTS, pt: unfinished, en: unfinished };
  assert.equal((await hear({ probabilities: FIVE_IN_DOUBT, texts })).detected.language, 'es');
  const none = { ...texts, es: unfinished };
  const { detected } = await hear({ probabilities: FIVE_IN_DOUBT, texts: none });
  assert.equal(detected.language, 'it');
  assert(Math.abs(detected.probability - FIVE_IN_DOUBT.it) < 1e-9, `${detected.probability}`);
});

test('a loop, an unfinished text and silence speak for no language', async () => {
  const loop = { logprob: -0.01, words: Array<string>(40).fill(' again') };
  for (const es of [loop, new NativeError('incomplete', 'scripted'), { logprob: -0.01, words: [] }]) {
    const it = { logprob: -0.7 };
    const { detected, text } = await hear({ probabilities: SPANISH_IN_DOUBT, texts: { it, es } });
    assert.deepEqual([detected.language, text], ['it', 'a text in it']);
  }
  const heard = await hear({ probabilities: SPANISH_IN_DOUBT, texts: { it: loop, es: { logprob: -0.7 } } });
  assert.deepEqual([heard.detected.language, heard.text], ['es', 'a text in es']);
  const silence = { logprob: -2, noSpeechProb: 0.9 };
  const { calls, text } = await hear({ probabilities: SPANISH_IN_DOUBT, texts: { it: silence } });
  assert.deepEqual([calls, text], [['detect', 'it'], '']);
});

test('a word said again and again leaves the language to a sound that is far more probable', async () => {
  const again = { logprob: -0.1, words: Array<string>(20).fill(' million,') };
  const texts = { it: again, es: { logprob: -0.01 } };
  for (const [es, language] of [
    [0.1, 'it'],
    [0.2, 'es'],
  ] as const)
    assert.equal((await hear({ probabilities: { it: 1 - es, es }, texts })).detected.language, language);
});

test('in doubt the languages of the speech before count, and no text is needed', async () => {
  const spanish = createLanguageTally(undefined).with({ language: 'es', probability: 0.9 }, 300);
  const scene = { probabilities: { es: 0.6, it: 0.39, cy: 0.01 }, texts: { es: { logprob: -0.5 } } };
  const { detected, calls } = await hear({ ...scene, heardBefore: spanish });
  assert.deepEqual([detected.language, calls], ['es', ['detect', 'es']]);
});

test('a recording in one language is not left for a sound in doubt, but for a clear one', async () => {
  const english = createLanguageTally(undefined).with({ language: 'en', probability: 1 }, 300);
  const texts = { cy: { logprob: -0.4 }, en: { logprob: -0.4 }, es: { logprob: -0.4 } };
  const distant = await hear({ probabilities: { cy: 0.6, en: 0.2, es: 0.2 }, texts, heardBefore: english });
  assert.equal(distant.detected.language, 'en');
  const clear = await hear({ probabilities: CLEARLY_SPANISH, texts, heardBefore: english });
  assert.equal(clear.detected.language, 'es');
});

test('a recording in two languages changes between them by the sound', async () => {
  const both = createLanguageTally(undefined)
    .with({ language: 'en', probability: 1 }, 100)
    .with({ language: 'es', probability: 1 }, 100);
  const texts = { en: { logprob: -0.4 }, es: { logprob: -0.4 } };
  for (const [probabilities, language] of [
    [{ en: 0.7, es: 0.2, cy: 0.1 }, 'en'],
    [{ es: 0.7, en: 0.2, cy: 0.1 }, 'es'],
  ] as const)
    assert.equal((await hear({ probabilities, texts, heardBefore: both })).detected.language, language);
});

test('only the languages that the client allows are heard', async () => {
  const { detected, calls } = await hear({
    probabilities: SPANISH_IN_DOUBT,
    texts: { es: { logprob: -0.5 }, pt: { logprob: -0.2 } },
    languages: ['es', 'pt'],
  });
  assert.deepEqual([detected.language, calls], ['pt', ['detect', 'es', 'pt']]);
});
