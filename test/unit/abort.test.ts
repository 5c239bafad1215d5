/** Work that a signal ends: who listens hears of it once, and not after it is done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onAbort } from '../../src/abort.ts';

test('a listener is called when the signal aborts, and at once where it has aborted', () => {
  const controller = new AbortController();
  let calls = 0;
  onAbort(controller.signal, () => {
    calls += 1;
  });
  assert.equal(calls, 0);
  controller.abort();
  assert.equal(calls, 1);
  onAbort(controller.signal, () => {
    calls += 1;
  });
  assert.equal(calls, 2);
});

test('a listener that was taken off is not called, and no signal never aborts', () => {
  const controller = new AbortController();
  for (const signal of [controller.signal, undefined]) {
    using _taken = onAbort(signal, () => assert.fail('called'));
  }
  controller.abort();
});
