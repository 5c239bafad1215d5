/** Where the language changes in a chunk, it is cut; what only sounds a little like another language is not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkOptions, DetectionOptions, Lane } from '../../src/engine/types.ts';
import { addLanguage } from '../../src/transcription/lanes.ts';
import { createLanguageTally } from '../../src/transcription/language/tally.ts';
import { NO_EARLIER_CHUNKS } from '../../src/transcription/recognizer.ts';
import { type Chunk, splitChunk } from '../../src/transcription/speech/chunks.ts';
import { likeliestLanguages } from '../../src/transcription/whisper/language-changes.ts';
import { recognizer as whisper } from '../../src/transcription/whisper/recognizer.ts';
import { chunkRequest } from '../chunk-request.ts';

const RATE = 16_000;
const ENGLISH = { en: 0.98, fr: 0.01, it: 0.01 };
const FRENCH = { en: 0.01, fr: 0.98, it: 0.01 };
const MURMUR = { en: 0.6, fr: 0.2, it: 0.2 };
const UNSURE = { en: 0.2, fr: 0.3, it: 0.5 };

/** What the model writes. */
interface Written {
  /** How many words it writes for these spans, one for each second; all by default. */
  wordsIn?: (spans: string) => number;
  /** True where the words of the second of three spans are improbable while it is heard with the others. */
  isImprobable?: boolean;
  /** The language of which the model is the surest where it hears the second span by itself; all the same by default. */
  surestApart?: string;
}

/** One of them a second is a usual pace. */
const LONG_WORDS =
  'imagination electricity responsibility administration encyclopedia vocabulary extraordinary communication identification revolutionary university international unbelievable'.split(
    ' ',
  );

type Sound = Record<string, number>;

const spanOf = (seconds: number, sound: Sound) => ({
  seconds,
  probabilities: new Map(Object.entries(sound)),
});

test('a clear change of language is found, and a short or unsure span has that of its neighbors', () => {
  const languages = (...spans: [number, Sound][]) =>
    likeliestLanguages(
      spans.map(([seconds, sound]) => spanOf(seconds, sound)),
      2,
    ).join(' ');
  assert.equal(languages([3, ENGLISH], [3, FRENCH], [2, ENGLISH]), 'en fr en');
  assert.equal(languages([3, ENGLISH], [3, FRENCH], [0.6, UNSURE], [3, FRENCH]), 'en fr fr fr');
  assert.equal(languages([3, ENGLISH], [3, UNSURE], [3, ENGLISH]), 'en en en');
  assert.equal(languages([3, ENGLISH], [0.4, FRENCH], [3, ENGLISH]), 'en en en');
  assert.equal(languages([3, FRENCH]), 'fr');
});

/** Three spans of 4 s with 0.6 s between them; the sample at the middle of each is its number. */
function threeSpans(): Chunk {
  const samples = new Float32Array(13.6 * RATE);
  const speech = [0.2, 4.8, 9.4].map((startSec) => ({ startSec, endSec: startSec + 4, certainty: 1 }));
  for (const [i, { startSec }] of speech.entries()) samples[(startSec + 2) * RATE] = i + 1;
  return { startSec: 0, endSec: 13.4, silentUntilSec: 15, samples, speech };
}

/** One span of speech, with a pause of 0.4 s in the middle; the sample at the middle of each half is its number. */
function spanWithPause(): Chunk {
  const samples = Float32Array.from({ length: 8.4 * RATE }, (_, i) =>
    i < 4 * RATE || i >= 4.4 * RATE ? 0.1 * Math.sin(i) : 0,
  );
  samples[2 * RATE] = 1;
  samples[6.4 * RATE] = 2;
  const speech = [{ startSec: 0, endSec: 8.4, certainty: 1 }];
  return { startSec: 0, endSec: 8.4, silentUntilSec: 10, samples, speech };
}

/** Hears the spans of the chunk together and apart, in two scripted ways. */
async function hear(
  together: Sound[],
  apart: Sound[],
  changes: Partial<Parameters<typeof chunkRequest>[0]> = {},
  chunk = threeSpans(),
  { wordsIn = () => Number.POSITIVE_INFINITY, isImprobable = false, surestApart }: Written = {},
) {
  const calls: string[] = [];
  const spansIn = (samples: Float32Array) => [1, 2, 3].filter((number) => samples.includes(number));
  const soundOf = (of: Sound[], samples: Float32Array) => ({
    probabilities: of[(spansIn(samples)[0] ?? 0) - 1],
  });
  const lane = {
    info: { languages: ['en', 'fr', 'it'], audioContext: 1500, textContext: 448 },
    detectLanguage: async (samples: Float32Array, { parts = [] }: DetectionOptions) => {
      calls.push(`detect ${spansIn(samples).join('')}`);
      const inPart = ({ startMs, endMs }: { startMs: number; endMs: number }) =>
        soundOf(together, samples.subarray(startMs * 16, endMs * 16));
      return { ...soundOf(apart, samples), parts: parts.map(inPart) };
    },
    transcribe: async (samples: Float32Array, { language, text }: ChunkOptions) => {
      const heard = spansIn(samples).join('');
      if (text === undefined) calls.push(`${language} ${heard}`);
      const count = Math.min(wordsIn(heard), Math.floor(samples.length / RATE));
      const isUnsure = surestApart !== undefined && heard === '2' && language !== surestApart;
      const words = [...LONG_WORDS.slice(0, count).map((long) => ` ${long}`), '.'];
      const tokens = words.map((word, id) => ({
        id,
        bytes: Buffer.from(word),
        logprob: isUnsure || (isImprobable && heard === '123' && id >= 5 && id < 9) ? -2 : -0.01,
        startMs: id * 1000,
        endMs: (id + 1) * 1000,
      }));
      return [{ startMs: 0, endMs: count * 1000, tokens, noSpeechProb: 0 }];
    },
  };
  const request = chunkRequest({ languages: ['en', 'fr', 'it'], ...changes });
  const recognition = await whisper.recognize(lane as unknown as Lane, chunk, request);
  return { calls, recognition, chunk };
}

test('a chunk whose language changes is cut there, and each piece has its own language', async () => {
  const spans = [ENGLISH, FRENCH, FRENCH];
  const { calls, recognition, chunk } = await hear(spans, spans);
  assert.deepEqual(calls.slice(-4), ['detect 3', 'en 1', 'detect 23', 'fr 23']);
  const { sentences } = recognition;
  assert.deepEqual(
    sentences.map(({ language }) => language),
    ['en', 'fr'],
  );
  const { start = 0 } = sentences[1] ?? {};
  assert(start > 4.4 && start < 5, `the second sentence is where it was said, not at ${start} s`);
  assert.equal(recognition.detected.language, 'fr');
  const tally = addLanguage(createLanguageTally(undefined), { ...recognition, chunk });
  assert(tally.share('en') > 0.2 && tally.share('fr') > tally.share('en'));
});

test('a span is cut at a pause in it where the language changes', async () => {
  const { calls, recognition } = await hear([ENGLISH, FRENCH], [ENGLISH, FRENCH], {}, spanWithPause());
  assert.deepEqual(calls.slice(-2), ['en 1', 'fr 2']);
  const { start = 0 } = recognition.sentences[1] ?? {};
  assert(start >= 4.2, `the second sentence is where it was said, not at ${start} s`);
});

test('a span that sounds like another language only beside others changes nothing', async () => {
  const one = [ENGLISH, ENGLISH, ENGLISH];
  const plain = await hear(one, one);
  assert.deepEqual(plain.calls, ['detect 123', 'en 123']);
  const unsure = await hear([ENGLISH, ENGLISH, FRENCH], one);
  assert.deepEqual(unsure.calls, ['detect 123', 'en 123', 'detect 3']);
  assert.deepEqual(unsure.recognition, plain.recognition);
});

test('a span that does not sound like the language of the chunk is in doubt, whatever else it sounds like', async () => {
  const blurred = { en: 0.05, fr: 0.25, it: 0.25 };
  const { recognition } = await hear([ENGLISH, blurred, ENGLISH], [ENGLISH, FRENCH, ENGLISH]);
  assert.deepEqual(
    recognition.sentences.map(({ language }) => language),
    ['en', 'fr', 'en'],
  );
});

test('only the span that is least like the language of the chunk is heard before there is another one', async () => {
  const { calls } = await hear([ENGLISH, UNSURE, FRENCH], [ENGLISH, ENGLISH, ENGLISH]);
  assert.deepEqual(calls, ['detect 123', 'en 123', 'detect 3']);
});

/** The request for a chunk behind 10 s of speech in each of these languages. */
function after(...spoken: string[]) {
  const languages = spoken.reduce(
    (tally, language) => tally.with({ language, probability: 0.9 }, 10),
    createLanguageTally(undefined),
  );
  return { before: async () => ({ ...NO_EARLIER_CHUNKS, languages }) };
}

test('less doubt is enough where the language has changed before', async () => {
  const [together, apart] = [
    [ENGLISH, MURMUR, ENGLISH],
    [ENGLISH, FRENCH, ENGLISH],
  ];
  const unchanged = await hear(together, apart, after('en', 'en'));
  assert.deepEqual(unchanged.calls, ['detect 123', 'en 123']);
  const { recognition } = await hear(together, apart, after('en', 'fr'));
  assert.deepEqual(
    recognition.sentences.map(({ language }) => language),
    ['en', 'fr', 'en'],
  );
});

test('a chunk of whose language nobody is sure is in that of its spans, each heard by itself', async () => {
  const { calls, recognition } = await hear([UNSURE, UNSURE, UNSURE], [UNSURE, FRENCH, FRENCH]);
  assert.deepEqual(calls.slice(-4), ['detect 1', 'detect 2', 'detect 3', 'fr 123']);
  const [{ language } = { language: '' }, ...others] = recognition.sentences;
  assert.deepEqual([language, recognition.detected.language, others.length], ['fr', 'fr', 0]);
  const { recognition: agreed } = await hear([UNSURE, UNSURE, UNSURE], [UNSURE, UNSURE, UNSURE]);
  assert.equal(agreed.detected.language, 'it');
});

test('speech that a text leaves out is recognized by itself where the language has changed before', async () => {
  const endsEarly = (spans: string) => (spans === '123' ? 8 : Number.POSITIVE_INFINITY);
  const together = [ENGLISH, ENGLISH, UNSURE];
  const apart = [ENGLISH, ENGLISH, FRENCH];
  const heardAfter = (before: object, wordsIn = endsEarly) =>
    hear(together, [ENGLISH, ENGLISH, ENGLISH], before, threeSpans(), { wordsIn });
  const { recognition, chunk } = await hear(together, apart, after('en', 'fr'), threeSpans(), {
    wordsIn: endsEarly,
  });
  const [first, second, ...others] = recognition.sentences;
  assert.deepEqual([first?.language, second?.language, others.length], ['en', 'fr', 0]);
  assert(second !== undefined && second.start > 9, 'it is where it was said');
  const tally = addLanguage(createLanguageTally(undefined), { ...recognition, chunk });
  assert(tally.share('fr') > 0.2 && tally.share('en') > tally.share('fr'));
  const same = await heardAfter(after('en', 'fr'));
  const asked = ['detect 3', 'detect 1', 'detect 2'];
  assert.deepEqual(same.calls, ['detect 123', 'en 123', ...asked, 'detect 3', 'en 3']);
  assert.equal(same.recognition.sentences.length, 2);
  const nothing = (spans: string) => (spans === '123' ? 8 : 0);
  assert.equal((await heardAfter(after('en', 'fr'), nothing)).recognition.sentences.length, 1);
  assert.deepEqual((await heardAfter(after('en', 'en'))).calls, ['detect 123', 'en 123', 'detect 3']);
});

test('a span whose words are improbable is asked for its language where it has changed before', async () => {
  const doubtful = async (before: object) => {
    const together = [ENGLISH, ENGLISH, ENGLISH];
    const apart = [ENGLISH, FRENCH, ENGLISH];
    const { recognition } = await hear(together, apart, before, threeSpans(), { isImprobable: true });
    return recognition.sentences.map(({ language }) => language);
  };
  assert.deepEqual(await doubtful(after('en', 'fr')), ['en', 'fr', 'en']);
  assert.deepEqual(await doubtful(after('en', 'en')), ['en']);
});

test('a span that sounds a little unlike the chunk is asked for its language where words are improbable', async () => {
  const asked = async (sound: Sound, isImprobable: boolean) => {
    const together = [ENGLISH, sound, ENGLISH];
    const apart = [ENGLISH, FRENCH, ENGLISH];
    const { recognition } = await hear(together, apart, after('en', 'en'), threeSpans(), { isImprobable });
    return recognition.sentences.map(({ language }) => language);
  };
  assert.deepEqual(await asked(MURMUR, true), ['en', 'fr', 'en']);
  assert.deepEqual(await asked(MURMUR, false), ['en']);
  assert.deepEqual(await asked(ENGLISH, true), ['en']);
});

test('the text decides in which language a span is whose sound leaves a doubt', async () => {
  const languages = async (surestApart: string) => {
    const together = [ENGLISH, FRENCH, ENGLISH];
    const apart = [ENGLISH, MURMUR, ENGLISH];
    const { calls, recognition } = await hear(together, apart, {}, threeSpans(), { surestApart });
    const ofSpan = calls.filter((call) => /^(?:en|fr|it) 2$/.test(call));
    assert.equal(new Set(ofSpan).size, ofSpan.length, 'a text that was compared is not decoded again');
    return recognition.sentences.map(({ language }) => language);
  };
  assert.deepEqual(await languages('fr'), ['en', 'fr', 'en']);
  assert.deepEqual(await languages('en'), ['en']);
});

test('all spans of a chunk with a suspect are asked where the language has changed before', async () => {
  const together = [ENGLISH, MURMUR, UNSURE];
  const apart = [ENGLISH, FRENCH, ENGLISH];
  const spoken = async (...before: string[]) => {
    const { recognition } = await hear(together, apart, after(...before));
    return recognition.sentences.map(({ language }) => language);
  };
  assert.deepEqual(await spoken('en', 'fr'), ['en', 'fr', 'en']);
  assert.deepEqual(await spoken('en', 'en'), ['en']);
});

test('a draft and a request with a language look for no change', async () => {
  const spans = [ENGLISH, FRENCH, FRENCH];
  assert.deepEqual((await hear(spans, spans, { draft: true })).calls, ['detect 123', 'en 123']);
  assert.deepEqual((await hear(spans, spans, { languages: ['en'] })).calls, ['detect 123', 'en 123']);
});

test('the pieces of a chunk follow one another, with their own pauses', () => {
  const whole = { ...threeSpans(), cuts: [{ atSec: 4.5, sec: 2 }], endSec: 15.4, silentUntilSec: 17 };
  const speech = whole.speech.map((span, i) =>
    i > 0 ? { ...span, startSec: span.startSec + 2, endSec: span.endSec + 2 } : span,
  );
  const [first, second, ...others] = splitChunk({ ...whole, speech }, [1]) as [Chunk, Chunk];
  assert.deepEqual([first.speech.length, second.speech.length, others.length], [1, 2, 0]);
  assert.deepEqual([first.startSec, first.endSec, first.silentUntilSec], [0, 4.2, 6.8]);
  assert.deepEqual([second.endSec, second.silentUntilSec, second.cuts], [15.4, 17, []]);
  assert(first.samples.includes(1) && !first.samples.includes(2));
  // The middle of the second span is where its times say.
  assert.equal(second.samples[Math.round((8.8 - second.startSec) * RATE)], 2);
  const apart = splitChunk({ ...whole, speech }, [2])[0] as Chunk;
  assert.deepEqual(apart.cuts, [{ atSec: 4.5, sec: 2 }]);
});
