/** The line of the calls of a program to its own gateway (src/cli/call-line.ts). */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { callLine } from '../../src/cli/call-line.ts';
import { gateOf } from '../gate.ts';

const never = new AbortController().signal;

test('calls go one at a time in their order, also after one that failed', async () => {
  const line = callLine();
  const seen: string[] = [];
  const call = (name: string) =>
    line.inTurn(never, async () => {
      seen.push(`${name} begins`);
      await setImmediate();
      seen.push(`${name} ends`);
      if (name === 'b') throw new Error('b failed');
      return name;
    });
  const results = await Promise.allSettled(['a', 'b', 'c'].map(call));
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('a call that is aborted leaves the line at once, and those behind it wait for those before it', async () => {
  const line = callLine();
  const gate = gateOf(2); // the second call opens it
  const stop = new AbortController();
  const seen: string[] = [];
  const under = line.inTurn(never, gate);
  const left = line.inTurn(stop.signal, async () => seen.push('left'));
  const behind = line.inTurn(never, async () => seen.push('behind'));
  const reason = new Error('no longer wanted');
  stop.abort(reason);
  await assert.rejects(left, (error) => error === reason);
  await setImmediate();
  assert.deepEqual(seen, []);
  await gate();
  await under;
  await behind;
  assert.deepEqual(seen, ['behind']);
});

test('a line that closes refuses those that wait and all later ones, and tells the one under way', async () => {
  const line = callLine();
  const gate = gateOf(2); // the second call opens it
  let seen: AbortSignal | undefined;
  const under = line.inTurn(never, (until) => {
    seen = until;
    return gate();
  });
  const waits = line.inTurn(never, () => assert.fail('it was called'));
  await setImmediate();
  const reason = new Error('closed');
  line.close(reason);
  await assert.rejects(waits, (error) => error === reason);
  assert.equal(seen?.reason, reason);
  await gate();
  await under;
  await assert.rejects(
    line.inTurn(never, () => assert.fail('it was called')),
    (error) => error === reason,
  );
});

test('a signal that many calls share keeps nothing of them, and brings no warning', async (t) => {
  const warned = t.mock.method(process, 'emitWarning', () => undefined);
  const line = callLine();
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 30 }, () => line.inTurn(signal, async () => undefined)));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.equal(warned.mock.callCount(), 0);
});
