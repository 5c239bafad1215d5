/**
 * One call of the system after another fails during each kind of call to the gateway, as in SQLite's tests: a sample of
 * them here, and as many as time allows in test/deep.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../bench/common/random.ts';
import { sweepAll } from './fail-nth/world.ts';

const SEED = 1;
/** Of eight sweeps two: one in which a call fails alone, one in which all fail from there on. */
const [OF, WANTED] = [8, [0, 5]];

test('whichever call of the system fails, the gateway answers, goes on and leaves nothing', async (t) => {
  const random = seededRandom(SEED);
  let picked = 0;
  const pick = (calls: number) => {
    picked += Math.min(calls, 1);
    return calls === 0 ? [] : [1 + Math.floor(random() * calls)];
  };
  let turn = 0;
  const sweeps = await sweepAll(pick, () => WANTED.includes(turn++ % OF));
  if (typeof sweeps === 'string') return t.skip(sweeps);
  t.diagnostic(`seed ${SEED}, ${sweeps.tried} failures`);
  assert.deepEqual(sweeps.findings, []);
  // How many calls there are differs a little from run to run, so the last one of them may not come.
  assert(picked > 5 && sweeps.tried > picked / 2, `only ${sweeps.tried} of ${picked} calls failed`);
});
