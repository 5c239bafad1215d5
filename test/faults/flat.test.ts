/** Many requests leave nothing in memory, and no descriptor or thread. */
import { test } from 'node:test';
import { assertFlat, holdAfter } from './flat.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';

test('heap, descriptors and threads are flat over 500 requests', { skip }, async (t) => {
  const held = await holdAfter(500);
  t.diagnostic(JSON.stringify(held));
  assertFlat(held);
});
