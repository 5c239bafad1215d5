/** Many requests leave nothing in memory, and no descriptor or thread. */
import { test } from 'node:test';
import { assertFlat, holdAfter } from './flat.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';

test('heap, descriptors and threads are flat over 1,000 requests', { skip }, async (t) => {
  const held = await holdAfter(1000);
  t.diagnostic(JSON.stringify(held));
  assertFlat(held);
});
