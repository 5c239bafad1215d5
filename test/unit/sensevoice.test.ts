/** The tokens of a scripted model become words, sentences and tags of the SenseVoice family. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ChunkOptions, DecodedSegment, Lane } from '../../src/engine/types.ts';
import type { ChunkRequest } from '../../src/transcription/recognizer.ts';
import { recognizer as sensevoice } from '../../src/transcription/sensevoice/recognizer.ts';
import { afterSpeechIn, chunkRequest } from '../chunk-request.ts';

/** Makes tokens of 100 ms each, one after the other. */
function segmentOf(pieces: readonly string[], rest: Partial<DecodedSegment> = {}): DecodedSegment {
  const tokens = pieces.map((piece, i) => ({
    id: i + 1,
    bytes: Buffer.from(piece),
    logprob: -0.2,
    startMs: i * 100,
    endMs: (i + 1) * 100,
  }));
  const tags = { language: 'zh', languageProbability: 0.9, emotion: 'NEUTRAL', event: 'Speech' };
  return { startMs: 0, endMs: pieces.length * 100, tokens, noSpeechProb: 0.01, ...tags, ...rest };
}

interface Fake extends Lane {
  calls: ChunkOptions[];
}

/** The model answers as told; asked for a language, it says that language. */
function modelOf(answer: DecodedSegment[], probabilities: Record<string, number> = {}): Fake {
  const calls: ChunkOptions[] = [];
  return {
    calls,
    info: {
      family: 'sensevoice',
      languages: ['zh', 'en', 'yue', 'ja', 'ko'],
      multilingual: true,
      audioContext: 0,
      textContext: 0,
      lanes: 1,
      memoryBytes: 0,
    },
    async transcribe(_samples, options, hooks) {
      hooks?.signal?.throwIfAborted();
      calls.push(options);
      return answer.map((s) => (options.language === '' ? s : { ...s, language: options.language }));
    },
    detectLanguage: async () => ({ language: 'zh', probability: 1, probabilities }),
  };
}

const chunk = {
  startSec: 10,
  endSec: 11,
  silentUntilSec: 12.5,
  samples: new Float32Array(16_000),
  speech: [],
};

function recognize(model: Lane, request: Partial<ChunkRequest> = {}) {
  return sensevoice.recognize(model, chunk, chunkRequest({ timed: true, ...request }));
}

async function texts(...pieces: string[]) {
  const { sentences } = await recognize(modelOf([segmentOf(pieces)]));
  return sentences.map((s) => s.text);
}

test('sentences end at the marks of every script, with the times of their tokens', async () => {
  const model = modelOf([segmentOf(['你', '好', '。', '再', '见', '！'])]);
  const { sentences } = await recognize(model);
  assert.deepEqual(
    sentences.map((s) => [s.text, s.start, s.end]),
    [
      ['你好。', 10, 10.2],
      ['再见！', 10.3, 10.5],
    ],
  );
  assert.deepEqual(
    sentences[0]?.words.map((w) => [w.text, w.start, w.end]),
    [
      ['你', 10, 10.1],
      ['好。', 10.1, 10.2],
    ],
  );
  assert.deepEqual(await texts('元', '気', '？', ' Yes', '.', ' No'), ['元気？', ' Yes.', ' No']);
});

test('there are no spaces between Han and Kana, and spaces are kept in Latin and Hangul', async () => {
  assert.deepEqual(await texts(' 你', ' 好', ' ', '世界'), ['你好世界']);
  assert.deepEqual(await texts('你', ' ', '。', ' ', '好'), ['你。', '好']);
  assert.deepEqual(await texts(' こん', 'にちは', ' 世', '界'), ['こんにちは世界']);
  assert.deepEqual(await texts(' he', 'llo', ' wor', 'ld'), [' hello world']);
  assert.deepEqual(await texts(' 안녕', '하세요', ' 세계'), [' 안녕하세요 세계']);
  assert.deepEqual(await texts(' 我', '用', ' app', 'le', ' 电', '脑'), ['我用 apple 电脑']);
});

test('words are told apart by script: characters in Han, whole words in Latin', async () => {
  const model = modelOf([segmentOf(['我', '们', ' app', 'le', '电', '脑', '，', 'i', 'Phone', '。'])]);
  const { sentences } = await recognize(model);
  assert.deepEqual(
    sentences[0]?.words.map((w) => w.text),
    ['我', '们', ' apple', '电', '脑，', 'iPhone。'],
  );
});

test('a segment has every field', async () => {
  const { sentences, detected } = await recognize(modelOf([segmentOf(['好', '的', '。'])]));
  assert.deepEqual(detected, { language: 'zh', probability: 0.9 });
  const { words, ...fields } = sentences[0] ?? assert.fail();
  assert.equal(words.length, 2);
  assert.deepEqual(
    { ...fields, compressionRatio: fields.compressionRatio > 0, avgLogprob: fields.avgLogprob.toFixed(3) },
    {
      seek: 1000,
      start: 10,
      end: 10.2,
      text: '好的。',
      temperature: 0,
      avgLogprob: '-0.200',
      compressionRatio: true,
      noSpeechProb: 0.01,
      language: 'zh',
      emotion: 'neutral',
      event: 'speech',
    },
  );
});

test('emotion and event are in lower case, and unknown where the model cannot tell', async () => {
  const tags = { emotion: 'EMO_UNKNOWN', event: 'Event_UNK' };
  const { sentences } = await recognize(modelOf([segmentOf(['好'], tags)]));
  assert.deepEqual([sentences[0]?.emotion, sentences[0]?.event], ['unknown', 'unknown']);
  const { emotion: _, event: __, ...without } = segmentOf(['好']);
  const silent = await recognize(modelOf([without]));
  assert.deepEqual([silent.sentences[0]?.emotion, silent.sentences[0]?.event], ['unknown', 'unknown']);
});

test('a chunk is one call, in the language that was asked for, else the model finds it', async () => {
  const model = modelOf([segmentOf(['好'])]);
  const asked = await recognize(model, { language: 'yue' });
  assert.deepEqual(asked.detected, { language: 'yue', probability: 1 });
  assert.equal(asked.sentences[0]?.language, 'yue');
  await recognize(model);
  assert.deepEqual(
    model.calls.map((call) => call.language),
    ['yue', ''],
  );
});

test('a language that is ruled out is not reported', async () => {
  const model = modelOf([segmentOf(['好'])], { zh: 0.6, ja: 0.1, ko: 0.3 });
  const { detected } = await recognize(model, { languages: ['ja', 'ko', 'de'] });
  assert.equal(detected.language, 'ko');
  assert.deepEqual(
    model.calls.map((call) => call.language),
    ['', 'ko'],
  );
  model.calls.length = 0;
  await recognize(model, { languages: ['zh', 'ko'] });
  await recognize(model, { languages: ['ja', 'fr'] });
  assert.deepEqual(
    model.calls.map((call) => call.language),
    ['', 'ja'],
  );
});

test('task_type transcribe_raw asks for bare text, and the others do not', async () => {
  const model = modelOf([segmentOf(['好'])]);
  for (const taskType of ['transcribe', 'transcribe_raw', 'rich'] as const)
    await recognize(model, { taskType });
  await recognize(model);
  assert.deepEqual(
    model.calls.map((call) => call.normalizeText),
    [true, false, true, true],
  );
});

test('without speech there are no sentences, and the language stays what it was', async () => {
  const before = { language: 'ja', probability: 0.8 };
  const nothing = modelOf([]);
  assert.deepEqual(await recognize(nothing, { before: async () => afterSpeechIn(before) }), {
    detected: before,
    sentences: [],
  });
  assert.deepEqual((await recognize(nothing)).detected, { language: 'zh', probability: 0 });
  assert.deepEqual((await recognize(nothing, { language: 'ko' })).detected, {
    language: 'ko',
    probability: 1,
  });
});

test('without times the chunk is one segment', async () => {
  const model = modelOf([segmentOf(['你', '好', '。', '再', '见', '。'])]);
  const { sentences } = await recognize(model, { timed: false });
  assert.deepEqual(
    sentences.map((s) => s.text),
    ['你好。再见。'],
  );
});

test('an abort rejects with the caller’s own reason', async () => {
  const reason = new Error('client gone');
  const signal = AbortSignal.abort(reason);
  await assert.rejects(recognize(modelOf([segmentOf(['好'])]), { signal }), reason);
});

test('no character is lost, words keep their order, and times never fall', async () => {
  const piece = fc.constantFrom(
    '你',
    '好',
    ' 世',
    ' he',
    'llo',
    ' ',
    '。',
    '，',
    ' 안녕',
    '요',
    '.',
    'ー',
    'カ',
    '?',
    '3',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 30 }), fc.boolean(), async (pieces, timed) => {
      const { sentences } = await recognize(modelOf([segmentOf(pieces)]), { timed });
      const text = sentences.map((s) => s.text).join('');
      assert.equal(text.replace(/\s/g, ''), pieces.join('').replace(/\s/g, ''));
      assert.doesNotMatch(text, /[\p{Script=Han}\p{Script=Katakana}]\s+[\p{Script=Han}\p{Script=Katakana}]/u);
      let clock = 0;
      for (const word of sentences.flatMap((s) => s.words)) {
        assert(word.start >= clock && word.end >= word.start);
        clock = word.start;
      }
    }),
  );
});
