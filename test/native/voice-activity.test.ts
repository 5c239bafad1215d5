/** Silero voice activity runs with real weights: it finds speech in one block and across blocks. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { VoiceActivityModel } from '../../src/engine/types.ts';
import { readSpeech, weights } from './fixtures.ts';

const { path, skip } = weights('VOXGATE_TEST_VAD');

let model: VoiceActivityModel;
let speech: Float32Array;
before(async () => {
  if (skip) return;
  speech = await readSpeech();
  model = await loadNative().loadVoiceActivity({ path });
});
after(() => model?.close());

test('voice activity is high in speech and low in silence', { skip }, async () => {
  const probabilities = await model.probabilities(speech, { reset: true });
  assert.equal(probabilities.length, Math.ceil(speech.length / 512));
  assert.ok(probabilities.filter((p) => p > 0.5).length > 150);
  const silence = await model.probabilities(new Float32Array(51_200), { reset: true });
  assert.ok(silence.every((p) => p < 0.2));
});

test('voice activity goes on where the last block of a stream ended', { skip }, async () => {
  const whole = await model.probabilities(speech, { reset: true });
  const parts: number[] = [];
  for (let begin = 0; begin < speech.length; begin += 512 * 7) {
    parts.push(
      ...(await model.probabilities(speech.subarray(begin, begin + 512 * 7), { reset: begin === 0 })),
    );
  }
  assert.deepEqual(Float32Array.from(parts), whole);
});

test('voice activity takes an hour in one call, and no more', { skip }, async () => {
  await assert.rejects(model.probabilities(new Float32Array(57_600_001), { reset: true }), {
    message: 'Expected 1 to 57600000 samples for samples.length but received 57600001 (number)',
  });
});

test('voice activity stops on a signal and is refused after close', { skip }, async () => {
  const hour = new Float32Array(3600 * 16_000);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 30);
  await assert.rejects(model.probabilities(hour, { reset: true }, { signal: controller.signal }), {
    name: 'AbortError',
  });
  const other = await loadNative().loadVoiceActivity({ path });
  await other.close();
  await assert.rejects(other.probabilities(speech, { reset: true }), { code: 'closed' });
});
