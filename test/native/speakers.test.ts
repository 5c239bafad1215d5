/** The networks that tell speakers apart give what torch gives, and refuse what they are not made for. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { SpeakerModel } from '../../src/engine/types.ts';
import { readSpeech, temporaryFile, weights } from './fixtures.ts';
import { CLASSES, cosine, distancesFromTorch, FRAMES } from './speakers.ts';

const { path, skip } = weights('VOXGATE_TEST_DIARIZATION');

let model: SpeakerModel;
let speech: Float32Array;
before(async () => {
  if (skip) return;
  speech = await readSpeech();
  model = await loadNative().loadSpeakers({ path });
});
after(() => model?.close());

test('ten of a hundred windows have the logarithms and embeddings that torch computes', {
  skip,
}, async () => {
  const { logarithm, mean, cosine: least } = await distancesFromTorch(model, 10);
  assert(logarithm < 1e-4, `${logarithm}`);
  assert(mean < 1e-4, `${mean}`);
  assert(least > 0.9999, `${least}`);
});

test('windows that begin in steps are what each of them is by itself, to the last bit', {
  skip,
}, async () => {
  const [step, window] = [11_200, 160_000];
  const samples = new Float32Array(window + 5 * step - 77);
  samples.set(speech.subarray(0, samples.length));
  const together = await model.segmentation(samples, { step });
  assert.equal(together.length, 6 * FRAMES * CLASSES);
  for (let i = 0; i < 6; i++) {
    const alone = new Float32Array(window);
    alone.set(samples.subarray(i * step, i * step + window));
    const expected = await model.segmentation(alone, { step });
    assert.deepEqual(together.subarray(i * FRAMES * CLASSES, (i + 1) * FRAMES * CLASSES), expected);
  }
});

test('any number of threads computes the same, to the last bit', { skip }, async () => {
  const samples = new Float32Array(480_000);
  for (let i = 0; i < samples.length; i++) samples[i] = speech[i % speech.length] ?? 0;
  const computed = async ({ segmentation, embeddings }: SpeakerModel) => [
    await segmentation(samples, { step: 16_000 }),
    await segmentation(samples.subarray(0, 200_000), { step: 11_207 }), // shares no frames between windows
    await embeddings(samples),
    await embeddings(samples.subarray(0, 80_000), { masks: 2, values: Float32Array.of(1, 0, 0, 1) }),
  ];
  const expected = await computed(model);
  for (const threads of [2, 3, 8]) {
    const other = await loadNative().loadSpeakers({ path, threads });
    assert.deepEqual(await computed(other), expected);
    await other.close();
  }
  for (const threads of [0, 513])
    await assert.rejects(
      loadNative().loadSpeakers({ path, threads }),
      /whole number from 1 to 512 for threads/,
    );
});

test('the probabilities of a frame add up to 1, and nobody speaks in silence', { skip }, async () => {
  const sums = (values: Float32Array) =>
    Array.from({ length: values.length / CLASSES }, (_, frame) =>
      values
        .subarray(frame * CLASSES, (frame + 1) * CLASSES)
        .reduce((sum, value) => sum + Math.exp(value), 0),
    );
  const spoken = await model.segmentation(speech, { step: 160_000 });
  assert(sums(spoken).every((sum) => Math.abs(sum - 1) < 1e-5));
  const silence = await model.segmentation(new Float32Array(16_000), { step: 160_000 });
  assert.equal(silence.length, FRAMES * CLASSES);
  for (let frame = 0; frame < FRAMES; frame++) assert(Math.exp(silence[frame * CLASSES] ?? 0) > 0.9);
});

test('two parts of one voice have similar embeddings, and a mask of ones changes nothing', {
  skip,
}, async () => {
  const some = await model.embeddings(speech.subarray(0, 80_000));
  const others = await model.embeddings(speech.subarray(80_000, 160_000));
  assert(cosine(some, others) > 0.6, `${cosine(some, others)}`);
  const ones = new Float32Array(2).fill(1);
  const masked = await model.embeddings(speech.subarray(0, 80_000), { masks: 1, values: ones });
  assert(cosine(some, masked) > 0.999999);
  const first = await model.embeddings(speech.subarray(0, 80_000), {
    masks: 1,
    values: Float32Array.of(1, 0),
  });
  assert(cosine(some, first) < 0.999);
  for (const value of await model.embeddings(speech, { masks: 1, values: new Float32Array(3) }))
    assert(Number.isFinite(value));
  assert((await model.embeddings(Float32Array.of(0.5))).every(Number.isFinite));
});

test('samples, steps and masks beyond the limits are refused', { skip }, async () => {
  const one = new Float32Array(1);
  await assert.rejects(model.segmentation(new Float32Array(1_920_001), { step: 160_000 }), {
    message: 'Expected 1 to 1920000 samples for samples.length but received 1920001 (number)',
  });
  for (const step of [1599, 160_001])
    await assert.rejects(model.segmentation(one, { step }), /whole number from 1600 to 160000 for step/);
  await assert.rejects(model.embeddings(new Float32Array(480_001)), /Expected 1 to 480000 samples/);
  await assert.rejects(
    model.embeddings(one, { masks: 513, values: one }),
    /whole number from 0 to 512 for masks/,
  );
  const many = new Float32Array(1_048_578);
  await assert.rejects(model.embeddings(one, { masks: 2, values: many }), /Expected 1 to 1048576 samples/);
  await assert.rejects(model.embeddings(one, { masks: 2, values: one }), /masks of equal length/);
  await assert.rejects(model.embeddings(one, { masks: 1 }), /a Float32Array/);
});

test('the networks stop on a signal and are refused after close', { skip }, async () => {
  const samples = new Float32Array(1_920_000);
  for (const start of [
    (signal: AbortSignal) => model.segmentation(samples, { step: 1600 }, { signal }),
    (signal: AbortSignal) => model.embeddings(samples.subarray(0, 480_000), { masks: 0 }, { signal }),
  ]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 30);
    await assert.rejects(start(controller.signal), { name: 'AbortError' });
  }
  const other = await loadNative().loadSpeakers({ path });
  await other.close();
  await assert.rejects(other.embeddings(speech), { code: 'closed' });
});

test('a file of anything else is refused', async () => {
  for (const content of ['', 'GGUF', 'no model at all'])
    await assert.rejects(loadNative().loadSpeakers({ path: temporaryFile(content) }), {
      code: 'load_failed',
    });
});
