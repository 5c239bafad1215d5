/** The tokens of a scripted model become words and sentences of the Parakeet family. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ChunkOptions, TranscriptionModel } from '../../src/engine/types.ts';
import { recognizer as parakeet, toSpacedWords } from '../../src/transcription/parakeet/recognizer.ts';
import { type ChunkRequest, NO_EARLIER_CHUNKS } from '../../src/transcription/recognizer.ts';
import { afterSpeechIn, chunkRequest } from '../chunk-request.ts';

type Piece = [text: string, startMs: number, endMs: number];

function segmentOf(...pieces: Piece[]) {
  const tokens = pieces.map(([text, startMs, endMs], id) => ({
    id,
    bytes: Buffer.from(text),
    logprob: -0.1 * (id + 1),
    startMs,
    endMs,
  }));
  return { startMs: 0, endMs: pieces.at(-1)?.[2] ?? 0, tokens, noSpeechProb: 0 };
}

const wordsOf = (...pieces: Piece[]) =>
  toSpacedWords([segmentOf(...pieces)], 10, 20).map(({ text, start, end }) => [
    text,
    rounded(start),
    rounded(end),
  ]);
const rounded = (value: number) => Number(value.toFixed(3));

test('a word begins at a space and ends with the last token that is spoken', () => {
  assert.deepEqual(
    wordsOf(
      [' l', 0, 80],
      ["'", 80, 80],
      ['été', 80, 320],
      [' du', 400, 480],
      ['re', 480, 640],
      ['…', 640, 800],
    ),
    [
      [" l'été", 10, 10.32],
      [' dure…', 10.4, 10.64],
    ],
  );
});

test('digits, percent and currency are spoken', () => {
  assert.deepEqual(
    wordsOf(
      [' ', 0, 80],
      ['3', 80, 160],
      ['.', 160, 160],
      ['5', 160, 240],
      ['%', 240, 560],
      [' €', 560, 800],
    ),
    [
      [' 3.5%', 10, 10.56],
      [' €', 10.56, 10.8],
    ],
  );
});

test('marks that stand alone join the word before them, and at the beginning the word after', () => {
  assert.deepEqual(
    wordsOf(
      [' -', 0, 80],
      [' ¿', 80, 160],
      ['Sí', 160, 320],
      ['?', 320, 320],
      [' -', 400, 480],
      [' no', 480, 640],
    ),
    [
      [' - ¿Sí? -', 10, 10.32],
      [' no', 10.48, 10.64],
    ],
  );
  assert.deepEqual(wordsOf([' ...', 0, 80]), [[' ...', 10, 10.08]]);
  assert.deepEqual(wordsOf([' a', 0, 80], [' ', 160, 240]), [[' a', 10, 10.08]]);
});

test('a word of no duration gets 0.3 s, or the time that the next one and the chunk leave it', () => {
  assert.deepEqual(wordsOf([' a', 0, 0], [' b', 160, 160], [' c', 1000, 1000], [' d', 9900, 9900]), [
    [' a', 10, 10.16],
    [' b', 10.16, 10.46],
    [' c', 11, 11.3],
    [' d', 19.9, 20],
  ]);
});

test('a token that reaches into the next word is cut there', () => {
  assert.deepEqual(wordsOf([' a', 0, 500], [' b', 400, 480])[0], [' a', 10, 10.4]);
});

test('no character and no token is lost, and times never fall', () => {
  const piece = fc.record({
    text: fc.oneof(
      fc.constantFrom(' the', 'ing', '.', ' -', '…', ' ', ' ¿', '', '%', "'"),
      fc.string({ maxLength: 3 }),
    ),
    gap: fc.nat(300),
    length: fc.nat(400),
  });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (list) => {
      let clock = 0;
      const pieces = list.map(({ text, gap, length }): Piece => {
        clock += gap;
        return [text, clock, clock + length];
      });
      const segment = segmentOf(...pieces);
      const words = toSpacedWords([segment], 0, 100);
      const visible = (text: string) => text.replace(/\s/g, '');
      assert.equal(visible(words.map((w) => w.text).join('')), visible(list.map((p) => p.text).join('')));
      if (words.length > 0) {
        const ids = words.flatMap((w) => w.tokens.map((t) => t.id));
        assert.deepEqual(
          ids,
          [...ids].sort((a, b) => a - b),
        );
        assert.equal(ids.length, list.length);
      }
      let last = 0;
      for (const word of words) {
        assert(word.start >= last && word.end >= word.start);
        last = word.end;
      }
    }),
  );
});

function modelOf(...pieces: Piece[]) {
  const asked: ChunkOptions[] = [];
  const model = {
    info: { languages: ['bg', 'en', 'fr', 'de'] },
    transcribe: async (_samples: Float32Array, options: ChunkOptions) => {
      asked.push(options);
      return pieces.length > 0 ? [segmentOf(...pieces)] : [];
    },
    detectLanguage: () => assert.fail('the model cannot tell the language'),
  } as unknown as TranscriptionModel;
  return { model, asked };
}

const chunk = {
  startSec: 10,
  endSec: 20,
  silentUntilSec: 21.5,
  samples: new Float32Array(160_000),
  speech: [],
};
const request = chunkRequest({
  before: async () => afterSpeechIn({ language: 'fr', probability: 1 }),
  prompt: 'a prompt',
  temperature: 0.5,
  timed: true,
});
const spoken: Piece[] = [
  [' One', 0, 400],
  [' two', 400, 1000],
  ['', 1000, 1000],
  ['.', 1000, 1000],
  [' Three', 1000, 1500],
  ['.', 1500, 1500],
];

test('a chunk is one call, and every sentence carries all fields', async () => {
  const { model, asked } = modelOf(...spoken);
  const { sentences, detected } = await parakeet.recognize(model, chunk, request);
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0], {
    language: 'bg',
    translate: false,
    prompt: '',
    temperature: 0,
    audioContext: 0,
    maxTokens: 0,
    beams: 1,
    times: true,
    words: true,
    again: false,
    keywords: [],
  });
  assert.equal(detected.language, 'en');
  assert(detected.probability > 0.9 && detected.probability <= 1, String(detected.probability));
  assert.deepEqual(
    sentences.map((s) => [s.text, s.start, s.end]),
    [
      [' One two.', 10, 11],
      [' Three.', 11, 11.5],
    ],
  );
  const [first] = sentences;
  assert(first);
  const { words, avgLogprob, compressionRatio, ...rest } = first;
  assert.equal(words.length, 2);
  assert.equal(rounded(avgLogprob), -0.233, 'of the tokens that spell something');
  assert(compressionRatio > 0 && compressionRatio < 1);
  assert.deepEqual(rest, {
    seek: 1000,
    start: 10,
    end: 11,
    text: ' One two.',
    temperature: 0,
    noSpeechProb: 0,
    language: 'en',
  });
});

test('a hint is recorded and does not reach the model', async () => {
  const { model, asked } = modelOf(...spoken);
  const { sentences, detected } = await parakeet.recognize(model, chunk, { ...request, language: 'ja' });
  assert.deepEqual(detected, { language: 'ja', probability: 1 });
  assert.equal(sentences[0]?.language, 'ja');
  assert.equal(asked[0]?.language, 'bg');
});

const saying = (text: string) =>
  modelOf(...text.split(/(?= )/).map((word, i): Piece => [word, i * 300, i * 300 + 200])).model;
const detectedIn = async (text: string, asked: Partial<ChunkRequest> = {}) =>
  (await parakeet.recognize(saying(text), chunk, { ...request, ...asked })).detected;

test('the language is told from the words, among those of the model or of the client', async () => {
  const french = ' Je ne sais pas pourquoi le train est en retard.';
  const told = await detectedIn(french);
  assert.equal(told.language, 'fr');
  assert(told.probability > 0.9, String(told.probability));
  assert.equal((await detectedIn(french, { languages: ['de', 'fr'] })).language, 'fr');
  assert.equal((await detectedIn(french, { languages: ['ky'] })).language, 'fr', 'none that it hears');
  const unheard = { languages: ['de', 'en'], before: async () => NO_EARLIER_CHUNKS };
  assert.notEqual((await detectedIn(french, unheard)).language, 'fr');
});

test('of too few words the language is the one heard before, else English or the client’s, with probability 0', async () => {
  const before = { language: 'fr', probability: 0.97 };
  assert.deepEqual(await detectedIn(' Yes.', { before: async () => afterSpeechIn(before) }), before);
  const alone = { before: async () => NO_EARLIER_CHUNKS };
  assert.deepEqual(await detectedIn(' Yes.', alone), { language: 'en', probability: 0 });
  assert.deepEqual(await detectedIn(' Yes.', { ...alone, languages: ['de'] }), {
    language: 'de',
    probability: 0,
  });
});

test('subtitles are made where they are asked for, and each lasts a second where silence follows it', async () => {
  const { model } = modelOf([' One', 0, 400], ['.', 400, 400], [' Two', 9700, 9900], ['.', 9900, 9900]);
  const lastOf = async (silentUntilSec: number) => {
    const subtitle = { ...request, granularity: 'subtitle' as const };
    const { sentences } = await parakeet.recognize(model, { ...chunk, silentUntilSec }, subtitle);
    assert.deepEqual(
      sentences.map((s) => [s.text, s.start]),
      [
        [' One.', 10],
        [' Two.', 19.7],
      ],
    );
    assert.equal(sentences[0]?.end, 11);
    return sentences[1]?.end;
  };
  assert.equal(await lastOf(21.5), 20.7);
  assert.equal(await lastOf(20.4), 20.4, 'speech begins again, or the audio is over');
});

test('without times a chunk is one segment, and silence is none', async () => {
  const untimed = { ...request, timed: false, granularity: 'subtitle' as const };
  const { sentences } = await parakeet.recognize(modelOf(...spoken).model, chunk, untimed);
  assert.deepEqual(
    sentences.map((s) => s.text),
    [' One two. Three.'],
  );
  for (const nothing of [modelOf(), modelOf(['', 0, 80])])
    assert.deepEqual((await parakeet.recognize(nothing.model, chunk, untimed)).sentences, []);
});

test('a loop is dropped and reported as one', async () => {
  const loop = Array.from({ length: 100 }, (_, i): Piece => [' yeah', i * 80, i * 80 + 80]);
  const { sentences, dropped } = await parakeet.recognize(modelOf(...loop).model, chunk, request);
  assert.deepEqual([sentences, dropped?.map(({ reason }) => reason)], [[], ['repetition']]);
});

/** Hears nothing where more than 0.3 s of silence stand before the speech, as the published weights may. */
function deafAfterSilence(heard: number[]): TranscriptionModel {
  return {
    info: { languages: ['en'] },
    transcribe: async (samples: Float32Array) => {
      const lead = samples.findIndex((sample) => sample !== 0) / 16_000;
      heard.push(samples.length / 16_000);
      return lead > 0.3 ? [] : [segmentOf([' Hello', lead * 1000, lead * 1000 + 400])];
    },
  } as unknown as TranscriptionModel;
}

/** A second of speech between 5 s and 6 s, with silence around it. */
function chunkWith(silenceSec: number, spans = [{ startSec: 4.8, endSec: 6.2, certainty: 1 }]) {
  const samples = new Float32Array(Math.round((1 + 2 * silenceSec) * 16_000));
  samples.fill(0.1, Math.round(silenceSec * 16_000), Math.round((1 + silenceSec) * 16_000));
  return { startSec: 5 - silenceSec, endSec: 6.2, silentUntilSec: 8, samples, speech: spans };
}

test('where nothing is heard, the speech is heard again without the silence around it', async () => {
  const request = chunkRequest({ timed: true });
  for (const [silenceSec, lengths] of [
    [0.2, [1.4]],
    [0.4, [1.8, 1.4]],
    [0.8, [2.6, 1.4]],
  ] as const) {
    const heard: number[] = [];
    const { sentences, dropped } = await parakeet.recognize(
      deafAfterSilence(heard),
      chunkWith(silenceSec),
      request,
    );
    const [word, ...more] = sentences.flatMap(({ words }) => words);
    assert.deepEqual([word?.text, rounded(word?.start ?? 0), rounded(word?.end ?? 0)], [' Hello', 5, 5.4]);
    assert.deepEqual([more, dropped, heard.map(rounded)], [[], undefined, lengths]);
  }
});

test('speech without a word that has nothing around it is heard once', async () => {
  const heard: number[] = [];
  const chunk = chunkWith(0.4, [{ startSec: 4.6, endSec: 6.4, certainty: 1 }]);
  const { sentences } = await parakeet.recognize(deafAfterSilence(heard), chunk, chunkRequest({}));
  assert.deepEqual([sentences, heard.map(rounded)], [[], [1.8]]);
});
