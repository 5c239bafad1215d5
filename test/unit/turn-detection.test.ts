/** The model that tells whether a turn is complete: loaded early, and never fetched while someone speaks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelCache } from '../../src/engine/cache.ts';
import type { TurnDetector } from '../../src/engine/types.ts';
import { createTurnDetection, EAGERNESS, PATIENCE } from '../../src/transcription/live/turn-detection.ts';

function detection() {
  const counts = { loads: 0 };
  const files = new Set(['turn-detection']);
  const cache = new ModelCache<TurnDetector>({
    keepAliveMs: Number.POSITIVE_INFINITY,
    async load() {
      counts.loads += 1;
      return { probability: async () => 0.25, close: async () => undefined };
    },
  });
  return { counts, files, cache, turns: createTurnDetection(cache, { isInstalled: (id) => files.has(id) }) };
}
const samples = new Float32Array(160);
const { signal } = new AbortController();

test('a model that was made ready is not loaded again, and serves on without its file', async () => {
  const { counts, files, turns } = detection();
  await turns.warm();
  files.clear();
  assert.equal(turns.isInstalled(), true);
  assert.equal(await turns.probability(samples, signal), 0.25);
  assert.equal(counts.loads, 1);
});

test('weights that were removed are an error that names them, and are not loaded', async () => {
  const { counts, files, cache, turns } = detection();
  await turns.warm();
  files.clear();
  cache.evict();
  assert.equal(turns.isInstalled(), false);
  await turns.warm();
  await assert.rejects(turns.probability(samples, signal), {
    code: 'model_not_installed',
    message: /^The weights of turn-detection are not on this server: they were removed/,
  });
  assert.equal(counts.loads, 1);
});

test('every eagerness ends a turn after 8 s of silence at most, and an eager one is not more patient', () => {
  const silences = EAGERNESS.map((name) => PATIENCE[name].longestSilence * 0.032);
  for (const seconds of silences) assert(seconds >= 1.9 && seconds <= 8.1, String(silences));
  const { low, medium, high } = PATIENCE;
  assert(high.threshold < medium.threshold && medium.threshold < low.threshold);
  assert(high.longestSilence < medium.longestSilence && medium.longestSilence < low.longestSilence);
});
