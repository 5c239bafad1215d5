/**
 * One call of the system after another fails during each kind of call to the gateway, as in SQLite's tests: a sample of
 * them here, and as many as time allows in test/deep.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../bench/common/random.ts';
import { sweepAll } from './fail-nth/world.ts';

const SEED = 1;

test('whichever call of the system fails, the gateway answers, goes on and leaves nothing', async (t) => {
  const random = seededRandom(SEED);
  const pick = (calls: number) => (calls === 0 ? [] : [1 + Math.floor(random() * calls)]);
  const sweeps = await sweepAll(pick, () => random() < 0.25);
  if (typeof sweeps === 'string') return t.skip(sweeps);
  t.diagnostic(`seed ${SEED}, ${sweeps.tried} failures`);
  assert.deepEqual(sweeps.findings, []);
  assert(sweeps.tried > 10, `only ${sweeps.tried} calls failed`);
});
