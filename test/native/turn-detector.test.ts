/** The network that tells whether a turn is complete gives what onnxruntime gives, and refuses what it is not made for. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { TurnDetector } from '../../src/engine/types.ts';
import { readSpeech, temporaryFile, weights } from './fixtures.ts';
import { TURN_SAMPLES, turnWindows } from './turn-windows.ts';

const { path, skip } = weights('VOXGATE_TEST_TURN_DETECTION');
const EXPECTED: number[] = JSON.parse(readFileSync(new URL('data/turns.json', import.meta.url), 'utf8'));

let model: TurnDetector;
let windows: Float32Array[];
before(async () => {
  if (skip) return;
  windows = turnWindows(await readSpeech());
  model = await loadNative().loadTurnDetector({ path, threads: 2 });
});
after(() => model?.close());

test('pauses anywhere in speech, silence and noise have the probabilities that onnxruntime computes', {
  skip,
}, async () => {
  assert.equal(windows.length, EXPECTED.length);
  for (const [i, window] of windows.entries()) {
    const computed = await model.probability(window);
    const expected = EXPECTED[i] ?? Number.NaN;
    assert(Math.abs(computed - expected) < 2e-3, `window ${i}: ${computed}, expected ${expected}`);
    assert.equal(computed >= 0.5, expected >= 0.5, `window ${i}`);
  }
});

test('silence before the samples and the number of threads change nothing, to the last bit', {
  skip,
}, async () => {
  const whole = windows[16] ?? assert.fail();
  const first = whole.findIndex((sample) => sample !== 0);
  assert(first > 16_000, 'a window that begins with silence');
  const expected = await model.probability(whole);
  assert.equal(await model.probability(whole.subarray(first)), expected);
  for (const threads of [1, 3]) {
    const other = await loadNative().loadTurnDetector({ path, threads });
    assert.equal(await other.probability(whole), expected);
    await other.close();
  }
});

test('more than eight seconds, and none, are refused', { skip }, async () => {
  for (const count of [0, TURN_SAMPLES + 1])
    await assert.rejects(model.probability(new Float32Array(count)), {
      message: `Expected 1 to 128000 samples for samples.length but received ${count} (number)`,
    });
  const probability = await model.probability(Float32Array.of(0.5));
  assert(probability > 0 && probability < 1);
});

test('the network stops on a signal and is refused after close', { skip }, async () => {
  const controller = new AbortController();
  const waiting = Array.from({ length: 8 }, () =>
    model.probability(new Float32Array(TURN_SAMPLES), { signal: controller.signal }),
  );
  setTimeout(() => controller.abort(), 10);
  const outcomes = await Promise.allSettled(waiting);
  const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.name] : []));
  assert(reasons.length > 0);
  assert.deepEqual(new Set(reasons), new Set(['AbortError']));
  const other = await loadNative().loadTurnDetector({ path, threads: 1 });
  await other.close();
  await assert.rejects(other.probability(new Float32Array(1)), { code: 'closed' });
});

test('a file of anything else is no turn detection', async () => {
  for (const content of ['', 'GGUF', 'no model at all'])
    await assert.rejects(loadNative().loadTurnDetector({ path: temporaryFile(content), threads: 1 }), {
      code: 'load_failed',
    });
});
