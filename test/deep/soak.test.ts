/** Three minutes of mixed traffic with faults; test/faults/ has half a minute of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFaults, soak, writeReport } from '../soak/soak.ts';

test('180 s of mixed traffic with faults leave the gateway as it was', async (t) => {
  const report = await soak({ seconds: 180, seed: 2 });
  t.diagnostic(writeReport(report));
  assert.deepEqual(findFaults(report), []);
});
