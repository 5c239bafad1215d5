/**
 * One call of the system after another fails during each kind of call to the gateway. VOXGATE_FAIL_MOST is the number
 * of calls that are tried of each kind; `all` tries every one, which takes hours.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../bench/common/random.ts';
import { sweepAll } from '../faults/fail-nth/world.ts';

const SEED = 2;
const MOST = process.env.VOXGATE_FAIL_MOST ?? '25';

test('whichever call of the system fails, the gateway answers, goes on and leaves nothing', async (t) => {
  const random = seededRandom(SEED);
  const sweeps = await sweepAll((calls) => {
    const most = MOST === 'all' ? calls : Math.min(calls, Number(MOST));
    // One of each of as many equal parts, so that all stages of the call are there; every call where there are few.
    return Array.from({ length: most }, (_, i) => 1 + Math.floor(((i + random()) * calls) / most));
  });
  if (typeof sweeps === 'string') return t.skip(sweeps);
  for (const line of sweeps.lines) t.diagnostic(line);
  t.diagnostic(`seed ${SEED}, ${sweeps.tried} failures`);
  assert.deepEqual(sweeps.findings, []);
  assert(sweeps.tried > 150, `only ${sweeps.tried} calls failed`);
});
