/** What a model is said to need before it is loaded is what it has afterwards. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { writeSyntheticModel } from '../../bench/growth/synthetic-model.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { findModel } from '../../src/models/catalogue.ts';
import { memoryNeeds } from '../../src/models/memory.ts';
import type { CheckpointShape, Precision, Weights } from '../../src/models/weights.ts';

/** The most that the prediction may be off. */
const WRONG = 0.1;
const dir = mkdtempSync(join(tmpdir(), 'voxgate-needs-'));
after(() => rmSync(dir, { recursive: true }));

const base = findModel('multilingual-base') ?? assert.fail('no base');

/** Loads a file with as many threads and compares. @returns by how much the prediction was off */
async function compare(model: Weights, path: string, threads: number): Promise<number> {
  const files = [{ file: 'weights', precision: 'q8_0' as const, bytes: statSync(path).size }];
  const needs = memoryNeeds(model, 'q8_0', { threads, files }) ?? assert.fail('nothing is said');
  const loaded = await loadNative().loadModel({ family: 'whisper', path, device: 'cpu', threads });
  try {
    assert.equal(needs.lanes, loaded.info.lanes, `${threads} threads`);
    const { memoryBytes } = loaded.info;
    const wrong = needs.bytes / memoryBytes - 1;
    assert(Math.abs(wrong) < WRONG, `${needs.bytes} for ${memoryBytes}`);
    if (needs.lanes > 1) {
      const lane = await loaded.lane(1);
      assert(Math.abs(needs.laneBytes / lane.info.memoryBytes - 1) < WRONG, 'of a lane');
    }
    return wrong;
  } finally {
    await loaded.close();
  }
}

test('base takes the memory and has the lanes that were told', {
  skip: process.env.VOXGATE_TEST_MODEL === undefined && 'VOXGATE_TEST_MODEL names no weights',
}, async (t) => {
  for (const threads of [1, 2, 64]) {
    const wrong = await compare(base, process.env.VOXGATE_TEST_MODEL ?? '', threads);
    t.diagnostic(`${threads} threads: off by ${(wrong * 100).toFixed(1)} %`);
  }
});

/** The width of a published size with fewer layers, so that the file is small. */
const SHAPES: CheckpointShape[] = [
  [384, 4, 4, 80, 51865],
  [768, 4, 2, 80, 51865],
  [1280, 4, 2, 128, 51866],
];
for (const checkpoint of SHAPES)
  test(`weights of the shape ${checkpoint.join('-')} do, too`, async (t) => {
    const [state, audioLayers, textLayers, mels, vocab] = checkpoint;
    const path = join(dir, 'weights.bin');
    await writeSyntheticModel(path, { state, audioLayers, textLayers, mels, vocab });
    const wrong = await compare({ ...base, checkpoint }, path, 8);
    t.diagnostic(`off by ${(wrong * 100).toFixed(1)} %`);
  });

test('of sizes whose 8-bit file is made here its size is told, and of other families the least', () => {
  const model = (id: string) => findModel(id) ?? assert.fail(id);
  const needs = (weights: Weights, precision: Precision = 'q8_0') =>
    memoryNeeds(weights, precision, { threads: 2, files: [] });
  const large = model('multilingual-large-v2');
  const { q8_0: _, ...files } = large.files;
  const made = needs({ ...large, files })?.bytes ?? 0;
  assert(Math.abs(made / (needs(large)?.bytes ?? 0) - 1) < 0.01, `${made}`);
  assert.equal(needs(model('european'))?.isLeast, true);
  assert.equal(needs(model('cjk'), 'f16'), null);
});

test('of weights on disk in the other precision, theirs is told, or that of what is made of them', () => {
  const model = findModel('european') ?? assert.fail('no european');
  const bytes = (weights: Weights, wanted: Precision, stored: Precision) =>
    memoryNeeds(weights, wanted, {
      threads: 1,
      files: [{ file: 'weights', precision: stored, bytes: 1_000_000 }],
    })?.bytes;
  assert.equal(bytes(model, 'f16', 'q8_0'), 1_000_000);
  assert.equal(bytes(model, 'q8_0', 'f16'), 1_000_000, 'it cannot be made smaller here');
  const lane = memoryNeeds(base, 'q8_0', { threads: 1, files: [] })?.laneBytes ?? 0;
  assert.equal(bytes(base, 'q8_0', 'f16'), 536_000 + lane);
  assert.equal(bytes(base, 'f16', 'q8_0'), 1_000_000 + lane);
});
