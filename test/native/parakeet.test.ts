/**
 * Parakeet runs through the real addon, with the small model of generate-parakeet.py, which speaks a known text with
 * known durations for any input.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { type ChunkOptions, NativeError } from '../../src/engine/types.ts';
import { recognizer as parakeet } from '../../src/transcription/parakeet/recognizer.ts';
import type { ChunkRequest } from '../../src/transcription/recognizer.ts';
import { chunkRequest } from '../chunk-request.ts';
import { chunkOptions, parakeetWithRival, textOf } from './fixtures.ts';

const SAMPLE_RATE = 16_000;
const path = new URL('./data/parakeet-script.bin', import.meta.url).pathname;
const engine = loadNative(process.env.VOXGATE_ADDON);
const model = await engine.loadModel({ family: 'parakeet', path, device: 'cpu', threads: 2 });
after(() => model.close());

const options: ChunkOptions = { ...chunkOptions, words: true };

function sweep(durationSec: number): Float32Array {
  return Float32Array.from(
    { length: durationSec * SAMPLE_RATE },
    (_, i) => 0.3 * Math.sin((i % 4000) ** 2 / 1e5),
  );
}

const request = chunkRequest({
  language: 'de',
  timed: true,
});
const hear = (durationSec: number, changes: Partial<ChunkRequest> = {}) =>
  parakeet.recognize(
    model,
    {
      startSec: 100,
      endSec: 100 + durationSec,
      silentUntilSec: 100 + durationSec,
      samples: sweep(durationSec),
      speech: [],
    },
    { ...request, ...changes },
  );
const rounded = (value: number) => Number(value.toFixed(3));

test('the model says what it is', () => {
  assert.equal(model.info.family, 'parakeet');
  assert.equal(model.info.languages.length, 25);
  assert(model.info.languages.includes('en') && !model.info.languages.includes('ja'));
  assert(model.info.memoryBytes > 35_000);
});

test('weights lie in large pages', { skip: !existsSync('/sys/kernel/mm/transparent_hugepage') }, async () => {
  const advised = () =>
    readFileSync('/proc/self/smaps', 'utf8')
      .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
      .filter((mapping) => /^VmFlags:.* hg\b/m.test(mapping))
      .reduce((sum, mapping) => sum + Number(/^Size: +(\d+) kB/m.exec(mapping)?.[1]), 0);
  const before = advised();
  const wide = new URL('./data/parakeet-wide.bin', import.meta.url).pathname;
  await using more = disposable(
    await engine.loadModel({ family: 'parakeet', path: wide, device: 'cpu', threads: 1 }),
  );
  assert(more.model.info.memoryBytes > 130_000);
  assert(advised() >= before + 100, `${before} kB, then ${advised()} kB`);
});

test('tokens have their text, times and probability', async () => {
  const [segment, ...more] = await model.transcribe(sweep(12), options);
  assert(segment);
  assert.equal(more.length, 0);
  const shown = segment.tokens.map((t) => [Buffer.from(t.bytes).toString(), t.startMs, t.endMs]);
  assert.deepEqual(shown.slice(0, 11), [
    [' Hell', 0, 160],
    ['o', 160, 320],
    [',', 320, 320],
    [' Dr', 400, 560],
    ['.', 560, 560],
    [' Eu', 640, 800],
    ['rop', 800, 880],
    ['a', 880, 880],
    ['.', 880, 880],
    ['', 960, 2960],
    [' L', 2960, 3040],
  ]);
  assert.deepEqual(shown.at(-1), ['?', 5040, 5040]);
  // Each token has one rival, whose logit is 2 less.
  for (const { logprob } of segment.tokens) assert(Math.abs(logprob + Math.log(1 + Math.exp(-2))) < 1e-3);
  assert.deepEqual([segment.startMs, segment.endMs], [0, 5040]);
});

test('a clip shorter than the text gives the part that fits, inside the clip', async () => {
  const [segment] = await model.transcribe(sweep(0.5), options);
  const last = segment?.tokens.at(-1);
  assert(last && last.endMs <= 500 && last.startMs >= 320);
  assert.deepEqual((await model.transcribe(new Float32Array(1), options))[0]?.endMs ?? 0, 0);
});

test('words and sentences have all fields', async () => {
  const { sentences, detected } = await hear(12);
  assert.deepEqual(detected, { language: 'de', probability: 1 });
  assert.deepEqual(
    sentences.map((s) => [s.text, rounded(s.start), rounded(s.end)]),
    [
      [' Hello, Dr. Europa.', 100, 100.88],
      [" L'été coûte 3.5 euros…", 102.96, 104.24],
      [' ¿Qué - sí?', 104.4, 105.04],
    ],
  );
  assert.deepEqual(
    sentences[1]?.words.map((w) => [w.text, rounded(w.start), rounded(w.end)]),
    [
      [" L'été", 102.96, 103.28],
      [' coûte', 103.28, 103.52],
      [' 3.5', 103.52, 103.92],
      [' euros…', 103.92, 104.24],
    ],
  );
  for (const sentence of sentences) {
    assert(sentence.compressionRatio > 0 && sentence.avgLogprob < -0.1 && sentence.avgLogprob > -0.2);
    assert.deepEqual([sentence.seek, sentence.temperature, sentence.noSpeechProb], [10_000, 0, 0]);
  }
});

test('subtitles last 1 to 7 s, and until they are read at 17 characters a second', async () => {
  const { sentences } = await hear(12, { granularity: 'subtitle' });
  assert.deepEqual(
    sentences.map((s) => [s.text, rounded(s.start), rounded(s.end)]),
    [
      [' Hello, Dr. Europa.', 100, 101.059],
      [" L'été coûte 3.5 euros…", 102.96, 104.254],
      [' ¿Qué - sí?', 104.4, 105.4],
    ],
  );
});

test('an aborted call rejects with its reason, and the next one gives the same text', async () => {
  const expected = await model.transcribe(sweep(30), options);
  const outcomes: unknown[] = [];
  for (const delayMs of [0, 0, 1, 5, 20]) {
    const abort = new AbortController();
    const call = model.transcribe(sweep(30), options, { signal: abort.signal });
    const outcome = call.then(
      () => 'done',
      (error) => error,
    );
    setTimeout(() => abort.abort('enough'), delayMs);
    outcomes.push(await outcome);
  }
  // A fast machine may be done before the last of them.
  for (const outcome of outcomes) assert(outcome === 'done' || outcome === 'enough', String(outcome));
  assert(outcomes.includes('enough'), `${outcomes}`);
  assert.deepEqual(await model.transcribe(sweep(30), options), expected);
});

test('an aborted call that waits for others is given up, and the others are not', async () => {
  const running = [model.transcribe(sweep(30), options), model.transcribe(sweep(30), options)];
  const abort = new AbortController();
  const waiting = model.transcribe(sweep(30), options, { signal: abort.signal });
  abort.abort('enough');
  await assert.rejects(waiting, (reason) => reason === 'enough');
  const [first, second] = await Promise.all(running);
  assert(first?.[0]?.tokens.length);
  assert.deepEqual(second, first);
});

test('a request that the model cannot serve is refused with a sentence', async () => {
  const refused = (error: unknown) => error instanceof NativeError && error.code === 'invalid_argument';
  await assert.rejects(model.transcribe(sweep(1), { ...options, translate: true }), refused);
  await assert.rejects(model.detectLanguage(sweep(1), { audioContext: 0 }), refused);
});

test('a file that is no such model is refused', async () => {
  const load = (file: string) =>
    engine.loadModel({ family: 'parakeet', path: file, device: 'cpu', threads: 1 });
  const failed = (error: unknown) => error instanceof NativeError && error.code === 'load_failed';
  await assert.rejects(load('/nowhere'), failed);
  await assert.rejects(load(new URL(import.meta.url).pathname), failed);
});

const SCRIPT = " Hello, Dr. Europa. L'été coûte 3.5 euros… ¿Qué - sí?";

/** What a model whose " eu" is `gap` below " Eu" says. */
async function sayWithRival(gap: number, keywords?: readonly string[]) {
  const path = parakeetWithRival(gap);
  const rival = await engine.loadModel({ family: 'parakeet', path, device: 'cpu', threads: 1 });
  try {
    const segments = await rival.transcribe(sweep(12), { ...options, ...(keywords && { keywords }) });
    return { text: textOf(segments), tokens: segments.flatMap((segment) => segment.tokens) };
  } finally {
    await rival.close();
  }
}

test('keywords that nearly were said are said, with their own times and probabilities', async () => {
  const { text, tokens } = await sayWithRival(1.2, ['euros']);
  assert.equal(text, ' Hello, Dr. euros… ¿Qué - sí?');
  const [said, next] = tokens.filter(({ id }) => id === 22 || id === 23);
  assert(said && next);
  // Beside the best token and one that is 2 less.
  assert(
    Math.abs(said.logprob + 1.2 + Math.log(1 + Math.exp(-1.2) + Math.exp(-2))) < 0.05,
    `${said.logprob}`,
  );
  assert(said.startMs === 640 && next.startMs >= said.endMs && next.endMs > next.startMs);
});

test('without keywords, and with those that are not said, no token is another', async () => {
  const plain = await sayWithRival(1.2);
  assert.equal(plain.text.replaceAll('\u0000', ''), SCRIPT);
  const absent = [
    'eurosí',
    'eua',
    'Laros',
    'Hell',
    'Dr',
    'Europa',
    'été coûte',
    'xyz',
    'Hello, Dr.',
    '…',
    '',
  ];
  for (const keywords of [[], ...absent.map((word) => [word]), absent])
    assert.deepEqual(await sayWithRival(1.2, keywords), plain, keywords.join());
  assert.deepEqual((await sayWithRival(1.6, ['euros'])).text, SCRIPT);
  assert.deepEqual((await sayWithRival(8, ['euros'])).text, SCRIPT);
});

test('a call with keywords changes no call after it, and may be aborted', async () => {
  const path = parakeetWithRival(1.2);
  await using rival = disposable(
    await engine.loadModel({ family: 'parakeet', path, device: 'cpu', threads: 1 }),
  );
  const said = async (keywords: string[]) =>
    textOf(await rival.model.transcribe(sweep(12), { ...options, keywords }));
  for (const keywords of [['euros'], [], ['Europa'], ['euros']])
    assert.equal(await said(keywords), keywords[0] === 'euros' ? ' Hello, Dr. euros… ¿Qué - sí?' : SCRIPT);
  const abort = new AbortController();
  const call = rival.model.transcribe(
    sweep(30),
    { ...options, keywords: ['euros'] },
    { signal: abort.signal },
  );
  abort.abort('enough');
  await assert.rejects(call, (reason) => reason === 'enough');
  assert.equal(await said(['euros']), ' Hello, Dr. euros… ¿Qué - sí?');
});

test('keywords are at most 300 strings of 600 bytes', async () => {
  const many = Array.from({ length: 300 }, (_, i) => `${i}`.padEnd(600, 'é1').slice(0, 400));
  assert.equal((await sayWithRival(1.2, many)).text, SCRIPT);
  for (const keywords of [[...many, 'x'], ['x'.repeat(601)], [1], 'x'] as string[][])
    await assert.rejects(sayWithRival(1.2, keywords), { code: 'invalid_argument' });
});

const disposable = (loaded: typeof model) => ({
  model: loaded,
  [Symbol.asyncDispose]: () => loaded.close(),
});
