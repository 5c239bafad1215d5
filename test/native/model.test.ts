/**
 * The calls of a loaded model run over the scripted backend: these tests say what they take, refuse, cancel and
 * report.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { until } from '../until.ts';
import { chunkOptions, fakeModelFile, loadFake, markFile, temporaryFile, textOf } from './fixtures.ts';

const second = new Float32Array(16_000);

test('a model tells what it is', async () => {
  const model = await loadFake('language fr 0.2', 'language en 0.7', 'audio_context 200');
  assert.deepEqual(model.info.languages, ['fr', 'en']);
  assert.equal(model.info.multilingual, true);
  assert.equal(model.info.audioContext, 200);
  await model.close();
});

test('a model gives its segments in order, with the times of their tokens', async () => {
  const model = await loadFake('segment 0 500 One two.', 'segment 500 900 Three.');
  const segments = await model.transcribe(second, chunkOptions);
  assert.equal(textOf(segments), ' One two. Three.');
  assert.deepEqual(
    segments[0]?.tokens.map((t) => [t.startMs, t.endMs]),
    [
      [0, 250],
      [250, 500],
    ],
  );
  await model.close();
});

test('a model guesses the language', async () => {
  const model = await loadFake('language fr 0.2', 'language en 0.7');
  const guess = await model.detectLanguage(second, { audioContext: 0 });
  assert.equal(guess.language, 'en');
  assert.ok(Math.abs((guess.probabilities.fr ?? 0) - 0.2) < 1e-6);
  const part = { startMs: 0, endMs: 500 };
  const { parts } = await model.detectLanguage(second, { audioContext: 0, parts: [part, part] });
  assert.deepEqual(
    parts?.map(({ language }) => language),
    ['en', 'en'],
  );
  const tooMany = { audioContext: 0, parts: Array(64).fill(part) };
  await assert.rejects(async () => await model.detectLanguage(second, tooMany), /up to 63 parts/);
  await model.close();
});

test('a model runs calls one after the other, in order', async () => {
  const model = await loadFake('delay_ms 20', 'segment 0 1 x');
  const ended: number[] = [];
  await Promise.all([1, 2, 3].map((n) => model.transcribe(second, chunkOptions).then(() => ended.push(n))));
  assert.deepEqual(ended, [1, 2, 3]);
  await model.close();
});

test('a load that fails has a code and says why', async () => {
  await assert.rejects(loadFake('load_fail the disk is on fire'), {
    name: 'NativeError',
    code: 'load_failed',
    message: 'the disk is on fire',
  });
  for (const family of ['fake', 'whisper'] as const) {
    const load = loadNative().loadModel({ family, path: '/nowhere', device: 'cpu', threads: 1 });
    await assert.rejects(load, { code: 'load_failed', message: /\/nowhere/ });
  }
});

test('a file that is no model is refused by all that read one', async () => {
  for (const content of [
    '',
    'lmgg',
    Buffer.alloc(5000),
    Buffer.from(`lmgg${'\xff'.repeat(999)}`, 'latin1'),
  ]) {
    const path = temporaryFile(content);
    const native = loadNative();
    await assert.rejects(native.loadModel({ family: 'whisper', path, device: 'cpu', threads: 1 }), {
      code: 'load_failed',
    });
    await assert.rejects(native.loadVoiceActivity({ path }), { code: 'load_failed' });
    await assert.rejects(native.quantize({ source: path, target: `${path}.q8`, type: 'q8_0' }), {
      code: 'load_failed',
    });
  }
});

test('a call that fails leaves the model usable', async () => {
  const model = await loadFake('segment 0 1 said', 'fail no more');
  for (let i = 0; i < 2; i++)
    await assert.rejects(model.transcribe(second, chunkOptions), {
      code: 'inference_failed',
      message: 'no more',
    });
  await model.close();
});

test('a signal that is aborted already starts nothing', async () => {
  const mark = markFile();
  const model = await loadFake(`touch ${mark}`);
  const reason = new Error('too late');
  const signal = AbortSignal.abort(reason);
  await assert.rejects(model.transcribe(second, chunkOptions, { signal }), reason);
  await model.close();
  assert.equal(existsSync(mark), false);
});

test('a signal stops a running call, which rejects with the signal’s reason once it has stopped', async () => {
  const mark = markFile();
  const model = await loadFake(`touch ${mark}`, 'ignore_cancel_ms 1000', 'delay_ms 60000');
  const controller = new AbortController();
  const reason = new Error('client gone');
  const stopped = assert.rejects(
    model.transcribe(second, chunkOptions, { signal: controller.signal }),
    reason,
  );
  await until('the call runs', () => existsSync(mark));
  const aborted = performance.now();
  controller.abort(reason);
  await stopped;
  const elapsed = performance.now() - aborted;
  assert.ok(elapsed >= 500 && elapsed < 30_000, `${elapsed} ms`);
  await model.close();
});

test('a signal ends a waiting call at once, and only that one', async () => {
  const model = await loadFake('delay_ms 150', 'segment 0 1 x');
  const controller = new AbortController();
  const order: string[] = [];
  const first = model.transcribe(second, chunkOptions).then(() => order.push('first'));
  const waiting = model
    .transcribe(second, chunkOptions, { signal: controller.signal })
    .catch(() => order.push('waiting'));
  const last = model.transcribe(second, chunkOptions).then(() => order.push('last'));
  controller.abort();
  await Promise.all([first, waiting, last]);
  assert.deepEqual(order, ['waiting', 'first', 'last']);
  await model.close();
});

test('a signal that is aborted after the end changes nothing, and is not held', async () => {
  const model = await loadFake('segment 0 1 x');
  const controller = new AbortController();
  let removed = 0;
  const remove = controller.signal.removeEventListener.bind(controller.signal);
  controller.signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    removed++;
    remove(...args);
  };
  const segments = await model.transcribe(second, chunkOptions, { signal: controller.signal });
  assert.equal(removed, 1);
  controller.abort();
  assert.equal(textOf(segments), ' x');
  await model.close();
});

test('close cancels the calls that run or wait, and waits for them', async () => {
  const mark = markFile();
  const model = await loadFake(`touch ${mark}`, 'ignore_cancel_ms 1000', 'delay_ms 60000');
  const calls = [1, 2].map(() =>
    assert.rejects(model.transcribe(second, chunkOptions), { name: 'NativeError', code: 'closed' }),
  );
  await until('the call runs', () => existsSync(mark));
  const started = performance.now();
  await model.close();
  assert.ok(performance.now() - started > 500);
  await Promise.all(calls);
});

test('close may be called again, and later calls are refused', async () => {
  const model = await loadFake();
  await Promise.all([model.close(), model.close()]);
  await model.close();
  await assert.rejects(model.transcribe(second, chunkOptions), { code: 'closed' });
  await assert.rejects(model.detectLanguage(second, { audioContext: 0 }), { code: 'closed' });
  assert.equal(model.info.family, 'fake');
});

test('samples are copied, so changing or transferring them during the call is harmless', async () => {
  const model = await loadFake('delay_ms 50', 'segment 0 1 x');
  const samples = new Float32Array(16_000).fill(0.1);
  const call = model.transcribe(samples, chunkOptions);
  samples.fill(Number.NaN);
  structuredClone(samples.buffer, { transfer: [samples.buffer] });
  assert.equal(textOf(await call), ' x');
  await assert.rejects(model.transcribe(samples, chunkOptions), {
    code: 'invalid_argument',
    message: 'Expected 1 to 488000 samples for samples.length but received 0 (number)',
  });
  await model.close();
});

test('an argument error says what was expected and what it received', async () => {
  const model = await loadFake();
  const cases: [unknown, unknown, string][] = [
    [[0, 1], chunkOptions, 'Expected a Float32Array for samples but received object'],
    [new Float64Array(5), chunkOptions, 'Expected a Float32Array for samples but received object'],
    [second, 7, 'Expected an object for options but received 7 (number)'],
    [
      second,
      { ...chunkOptions, language: 'xx' },
      'Expected a language of the model for language but received "xx" (string)',
    ],
    [
      second,
      { ...chunkOptions, temperature: 1.5 },
      'Expected a number from 0 to 1 for temperature but received 1.5 (number)',
    ],
    [
      second,
      { ...chunkOptions, temperature: Number.NaN },
      'Expected a number from 0 to 1 for temperature but received NaN (number)',
    ],
    [
      second,
      { ...chunkOptions, audioContext: 1501 },
      'Expected a whole number from 0 to 1500 for audioContext but received 1501 (number)',
    ],
    [
      second,
      { ...chunkOptions, maxTokens: 1.5 },
      'Expected a whole number from 0 to 448 for maxTokens but received 1.5 (number)',
    ],
    [
      second,
      { ...chunkOptions, beams: 9 },
      'Expected a whole number from 1 to 8 for beams but received 9 (number)',
    ],
    [
      second,
      { ...chunkOptions, doubt: { least: -1, sure: -0.1, beams: 9 } },
      'Expected a whole number from 2 to 8 for beams but received 9 (number)',
    ],
    [
      second,
      { ...chunkOptions, doubt: { least: -1, sure: 0.1, beams: 5 } },
      'Expected a number from -100 to 0 for sure but received 0.1 (number)',
    ],
    [second, { ...chunkOptions, words: 'yes' }, 'Expected a boolean for words but received "yes" (string)'],
    [second, { ...chunkOptions, prompt: null }, 'Expected a string for prompt but received null'],
    [
      second,
      { ...chunkOptions, language: 'x'.repeat(61) },
      `Expected a language of the model for language but received "${'x'.repeat(60)}..." (string)`,
    ],
    [
      new Float32Array(488_001),
      chunkOptions,
      'Expected 1 to 488000 samples for samples.length but received 488001 (number)',
    ],
  ];
  for (const [samples, options, message] of cases) {
    const call = async () => model.transcribe(samples as Float32Array, options as typeof chunkOptions);
    await assert.rejects(call(), { name: 'NativeError', code: 'invalid_argument', message });
  }
  await model.transcribe(new Float32Array(488_000), chunkOptions);
  await model.close();
});

test('an argument error at a load names the choices', async () => {
  const options = { family: 'fake', path: fakeModelFile(), device: 'cpu', threads: 1 } as const;
  const { info, loadModel } = loadNative();
  const load = (changed: object) => loadModel({ ...options, ...changed });
  await assert.rejects(load({ family: 'magic' }), {
    code: 'invalid_argument',
    message: `Expected ${info.families.join(' or ')} for family but received "magic" (string)`,
  });
  for (const threads of [0, 513])
    await assert.rejects(load({ threads }), {
      message: `Expected a whole number from 1 to 512 for threads but received ${threads} (number)`,
    });
  await (await load({ threads: 512 })).close();
  await assert.rejects(load({ path: undefined }), {
    message: 'Expected a string for path but received undefined',
  });
});
