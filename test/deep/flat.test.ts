/** As test/faults/flat.test.ts, with more requests. */
import { test } from 'node:test';
import { assertFlat, holdAfter } from '../faults/flat.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';

test('heap, descriptors and threads are flat over 10,000 requests', { skip }, async (t) => {
  const held = await holdAfter(10_000);
  t.diagnostic(JSON.stringify(held));
  assertFlat(held);
});
