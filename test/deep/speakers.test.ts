/** All windows of which test/native/speakers.test.ts compares ten. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { weights } from '../native/fixtures.ts';
import { distancesFromTorch } from '../native/speakers.ts';

const { path, skip } = weights('VOXGATE_TEST_DIARIZATION');

test('all of a hundred windows in which there is sound have the logarithms and embeddings that torch computes', {
  skip,
}, async (t) => {
  const model = await loadNative().loadSpeakers({ path });
  try {
    const { logarithm, mean, cosine } = await distancesFromTorch(model, 1);
    t.diagnostic(`logarithms within ${logarithm}, means within ${mean}, least cosine ${cosine}`);
    assert(logarithm < 1e-4, `${logarithm}`);
    assert(mean < 1e-4, `${mean}`);
    assert(cosine > 0.9999, `${cosine}`);
  } finally {
    await model.close();
  }
});
