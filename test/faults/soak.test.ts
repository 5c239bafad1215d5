/** Some seconds of mixed traffic with faults; `npm run check:deep` has a minute of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFaults, soak, writeReport } from '../soak/soak.ts';

test('10 s of mixed traffic with faults leave the gateway as it was', async (t) => {
  const report = await soak({ seconds: 10, seed: 1 });
  t.diagnostic(writeReport(report));
  assert.deepEqual(findFaults(report), []);
});

test('a soak with an answer that nothing expects, or with a process that grows, is at fault', () => {
  const size = { memoryMiB: 100, descriptors: 30, threads: 10 };
  const counts = new Map([['transcribe', new Map([[200, 1]])]]);
  const well = { counts, unexpected: [], warm: size, end: size, peakMiB: 100, exitCode: 0, log: '' };
  assert.deepEqual(findFaults(well), []);
  for (const ill of [
    { unexpected: ['transcribe: 500'] },
    { end: { ...size, memoryMiB: 1000 } },
    { end: { ...size, threads: 100 } },
    { exitCode: 1 },
    { counts: new Map() },
  ])
    assert.equal(findFaults({ ...well, ...ill }).length, 1, JSON.stringify(ill));
});
