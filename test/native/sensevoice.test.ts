/**
 * SenseVoice runs through the real addon, with the small models of generate-sensevoice.py: one with random weights,
 * whose text funasr's own class has decoded too, and one that writes the pieces whose tones it hears.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { ChunkOptions } from '../../src/engine/types.ts';
import { recognizer as sensevoice } from '../../src/transcription/sensevoice/recognizer.ts';
import { chunkRequest } from '../chunk-request.ts';
import { chunkOptions, PIECE_SEC, textOf, whistle } from './fixtures.ts';

const SAMPLE_RATE = 16_000;
const data = (name: string) => new URL(`./data/sensevoice/${name}`, import.meta.url).pathname;
const readJson = <T>(name: string) => JSON.parse(readFileSync(data(name), 'utf8')) as T;

const engine = loadNative();
const load = (path: string) => engine.loadModel({ family: 'sensevoice', path, device: 'cpu', threads: 2 });
const random = await load(data('random/model.gguf'));
const tones = await load(data('tones.gguf'));
after(async () => {
  await random.close();
  await tones.close();
});

const options: ChunkOptions = { ...chunkOptions, language: '', words: true };

/** Gives the recording that the reference was computed from; it starts again where it ends. */
function signal(length: number): Float32Array {
  const bytes = readFileSync(data('signal.s16'));
  const recorded = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  return Float32Array.from({ length }, (_, i) => (recorded[i % recorded.length] ?? 0) / 32768);
}

function hear(pieces: string[], language?: string, startSec = 0) {
  return sensevoice.recognize(
    tones,
    {
      startSec,
      endSec: startSec + 1,
      silentUntilSec: startSec + 1,
      samples: whistle(pieces),
      speech: [],
    },
    chunkRequest({ language, timed: true }),
  );
}

interface Decoded {
  samples: number;
  language: string;
  itn: boolean;
  tokens: { id: number; logprob: number }[];
  text: string;
}

test('random weights give the tokens, the text and the probabilities of the reference', async () => {
  for (const { samples, language, itn, tokens, text } of readJson<Decoded[]>('random/decoded.json')) {
    const asked = { ...options, language: language === 'auto' ? '' : language, normalizeText: itn };
    const [segment, ...more] = await random.transcribe(signal(samples), asked);
    assert(segment);
    assert.deepEqual(more, []);
    assert.equal(Buffer.concat(segment.tokens.map((t) => t.bytes)).toString(), text);
    assert.deepEqual(
      segment.tokens.map((t) => t.id),
      tokens.map((t) => t.id),
    );
    segment.tokens.forEach((token, i) => {
      assert(Math.abs(token.logprob - (tokens[i]?.logprob ?? Number.NaN)) < 1e-4);
    });
  }
});

test('whistled pieces are written as sentences, words, times and tags', async () => {
  const { sentences, detected } = await hear(
    ['你', '好', '。', '▁hello', '▁wor', 'ld', '.', 'こん', 'にち', 'は', '！'],
    undefined,
    5,
  );
  assert.equal(detected.language, 'zh');
  assert(detected.probability > 0.99);
  assert.deepEqual(
    sentences.map((s) => s.text),
    ['你好。', ' hello world.', 'こんにちは！'],
  );
  assert.deepEqual(
    sentences.flatMap((s) => s.words.map((w) => w.text)),
    ['你', '好。', ' hello', ' world.', 'こん', 'にち', 'は！'],
  );
  // The words without their marks begin where their tones do.
  const begins = [0, 1, 3, 4, 7, 8, 9].map((piece) => 5 + piece * PIECE_SEC);
  sentences
    .flatMap((s) => s.words)
    .forEach((word, i) => {
      assert(Math.abs(word.start - (begins[i] ?? 0)) <= 0.06, `${word.text} begins at ${word.start}`);
    });
  assert.deepEqual([sentences[0]?.emotion, sentences[0]?.event], ['neutral', 'speech']);
  assert((sentences[0]?.avgLogprob ?? -1) > -0.01);
});

test('keywords that nearly were said are said, and without them no token is another', async () => {
  const heard = ['▁hello', '世', '好|界', '。'];
  const say = async (softer: number, keywords?: string[]) =>
    tones.transcribe(whistle(heard, softer), { ...options, ...(keywords && { keywords }) });
  const plain = await say(0.45);
  assert.equal(textOf(plain), ' hello世好。');
  const led = await say(0.45, ['世界']);
  assert.equal(textOf(led), ' hello世界。');
  const said = led[0]?.tokens.at(2)?.logprob ?? 0;
  assert(said < -1 && said > -2, `${said}`);
  assert.deepEqual(await say(0.45, []), plain);
  for (const word of ['世好', '世界.', '你好', 'hello', 'hellold', 'xyz', '界世', '好。界'])
    assert.deepEqual(await say(0.45, [word]), plain, word);
  assert.equal(textOf(await say(0.45, ['界'])), ' hello世界。');
  assert.deepEqual(await say(0.1, ['世界', '界']), await say(0.1));
  assert.deepEqual(await say(0.45), plain);
});

test('keywords of another language than that of the model change nothing of a text of the reference', async () => {
  for (const { samples, language, itn } of readJson<Decoded[]>('random/decoded.json')) {
    const asked = { ...options, language: language === 'auto' ? '' : language, normalizeText: itn };
    const plain = await random.transcribe(signal(samples), asked);
    assert.deepEqual(
      await random.transcribe(signal(samples), { ...asked, keywords: ['Grüße', 'Привет'] }),
      plain,
    );
  }
});

test('the language that is asked for reaches the model and comes back', async () => {
  for (const language of ['zh', 'en', 'yue', 'ja', 'ko']) {
    const [segment] = await tones.transcribe(whistle(['▁안녕', '하세', '요', '?']), { ...options, language });
    assert.equal(segment?.language, language);
    assert((segment?.languageProbability ?? 0) > 0.99);
    const { sentences } = await hear(['▁안녕', '하세', '요', '?', '▁안녕'], language);
    assert.deepEqual(
      sentences.map((s) => s.text),
      [' 안녕하세요?', ' 안녕'],
    );
  }
  const guess = await tones.detectLanguage(whistle(['你']), { audioContext: 0 });
  assert.equal(guess.language, 'zh');
  assert.deepEqual(Object.keys(guess.probabilities).sort(), ['en', 'ja', 'ko', 'yue', 'zh']);
});

test('silence gives no segment', async () => {
  assert.deepEqual(await tones.transcribe(new Float32Array(48_000), options), []);
  assert.deepEqual((await hear(['', '', ''])).sentences, []);
});

test('an abort ends the call with its reason, and the model goes on', async () => {
  const samples = signal(30 * SAMPLE_RATE);
  const whole = await random.transcribe(samples, options);
  const reason = new Error('client gone');
  const outcomes: unknown[] = [];
  for (const delayMs of [null, 0, 5]) {
    const abort = new AbortController();
    const aborted = random.transcribe(samples, options, { signal: abort.signal });
    const next = random.transcribe(samples, options);
    if (delayMs === null) abort.abort(reason);
    else setTimeout(() => abort.abort(reason), delayMs);
    outcomes.push(await aborted.catch((error) => error));
    assert.deepEqual(await next, whole);
  }
  // A call may be done before a later abort, when this thread has to wait for a processor and the engine has one.
  assert.equal(outcomes[0], reason);
  for (const outcome of outcomes) if (outcome !== reason) assert.deepEqual(outcome, whole);
});

test('a request that the model cannot serve is refused', async () => {
  const samples = whistle(['你']);
  const refused = (asked: Partial<ChunkOptions>) =>
    assert.rejects(async () => tones.transcribe(samples, { ...options, ...asked }), {
      code: 'invalid_argument',
    });
  await refused({ language: 'de' });
  await refused({ translate: true });
  await refused({ normalizeText: 1 as unknown as boolean });
});

test('a file that is no such model is refused with the reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-sensevoice-'));
  const path = join(folder, 'broken.gguf');
  try {
    writeFileSync(path, readFileSync(data('tones.gguf')).subarray(0, 5000));
    await assert.rejects(load(path), { code: 'load_failed', message: /broken\.gguf/ });
    await assert.rejects(load(join(folder, 'absent.gguf')), { code: 'load_failed' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
