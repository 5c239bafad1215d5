/** The Morse backend: letters and their times, nothing where no letter is, and weights that are checked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { keyed } from '../morse.ts';
import { chunkOptions, temporaryFile, textOf } from './fixtures.ts';

const load = (weights: string) =>
  loadNative().loadModel({ family: 'morse', path: temporaryFile(weights), device: 'cpu', threads: 1 });

test('letters have the times at which they are keyed', async () => {
  const model = await load('voxgate-morse 1\n700 60\n');
  const segments = await model.transcribe(keyed('SO OR'), chunkOptions);
  assert.equal(textOf(segments), ' SO OR');
  const units = segments.flatMap(({ tokens }) => tokens.map((t) => [t.startMs / 60, t.endMs / 60]));
  assert.deepEqual(units, [
    [0, 5],
    [8, 19],
    [26, 37],
    [40, 47],
  ]);
  await model.close();
});

test('silence and another tone hold no letters', async () => {
  const model = await load('voxgate-morse 1\n700 60\n');
  for (const samples of [new Float32Array(16_000), new Float32Array(1), keyed('SOS', 1500)])
    assert.deepEqual(await model.transcribe(samples, chunkOptions), []);
  await model.close();
});

for (const [what, weights] of [
  ['nothing', ''],
  ['another version', 'voxgate-morse 2\n700 60\n'],
  ['no tone', 'voxgate-morse 1\n0 60\n'],
  ['no number', 'voxgate-morse 1\n700 fast\n'],
  ['too much', `voxgate-morse 1\n700 60\n${' '.repeat(1000)}`],
] as const) {
  test(`weights that hold ${what} are refused`, () => assert.rejects(load(weights), { code: 'load_failed' }));
}
