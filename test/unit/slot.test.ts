/** These tests say who holds the one slot, who is refused, and how a holder is stopped. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { createSlot } from '../../src/engine/slot.ts';
import { GatewayError } from '../../src/errors.ts';

test('a free slot can be taken and tells who holds it for how long', () => {
  let clock = 1000;
  const slot = createSlot({ now: () => clock });
  assert.deepEqual(slot.status(), { holder: null, heldForMs: 0, requestId: null });
  const held = slot.take('asr', 'r1');
  clock += 250;
  assert.deepEqual(slot.status(), { holder: 'asr', heldForMs: 250, requestId: 'r1' });
  held[Symbol.dispose]();
  assert.equal(slot.status().holder, null);
});

test('a held slot refuses every category at once, with what the client needs to come back', () => {
  let clock = 0;
  const slot = createSlot({ now: () => clock });
  using _held = slot.take('tts', 'r1');
  clock = 1234;
  for (const category of ['asr', 'tts', 'llm'] as const) {
    assert.throws(
      () => slot.take(category, 'r1'),
      (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.status, 503);
        assert.equal(error.code, 'slot_busy');
        assert.equal(error.retryAfterSec, 5);
        assert.deepEqual(error.details, { heldBy: 'tts', heldForMs: 1234 });
        return true;
      },
    );
  }
  assert.throws(() => slot.assertFree(), { code: 'slot_busy' });
});

test('releasing twice does not free the slot of the next holder', () => {
  const slot = createSlot();
  const first = slot.take('asr', 'r1');
  first[Symbol.dispose]();
  using _second = slot.take('llm', 'r1');
  first[Symbol.dispose]();
  assert.equal(slot.status().holder, 'llm');
});

test('stopping the holder aborts its signal, and the slot is free only when the holder has let go', () => {
  const slot = createSlot();
  assert.equal(slot.stopHolder(), false);
  const held = slot.take('asr', 'r1');
  assert.equal(slot.stopHolder(), true);
  assert.equal(held.signal.reason.code, 'stopped_by_operator');
  assert.equal(slot.status().holder, 'asr');
  held[Symbol.dispose]();
  assert.equal(slot.stopHolder(), false);
});

test('a hold that lasts too long is told to stop, and a shorter one never is', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const slot = createSlot({ maxHoldMs: 5000 });
    const short = slot.take('asr', 'r1');
    mock.timers.tick(4999);
    short[Symbol.dispose]();
    const held = slot.take('tts', 'r2');
    mock.timers.tick(4999);
    assert.deepEqual([short.signal.aborted, held.signal.aborted], [false, false]);
    mock.timers.tick(1);
    const { reason } = held.signal;
    assert.equal(short.signal.aborted, false);
    assert.deepEqual([reason.status, reason.code, reason.retryAfterSec], [503, 'held_too_long', undefined]);
    assert.match(reason.message, /5 s \(SVC_MAX_HOLD_SEC\)/);
    assert.equal(slot.status().holder, 'tts', 'until it has let go');
    held[Symbol.dispose]();
  } finally {
    mock.timers.reset();
  }
});

test('a holder that gives way lets every request have the slot, and is told to stop', () => {
  const slot = createSlot();
  const partial = slot.take('asr', 'live', { givesWay: true });
  assert.equal(slot.status().requestId, 'live');
  assert.throws(() => slot.take('asr', 'other', { givesWay: true }), { code: 'slot_busy' });
  slot.assertFree();
  assert.equal(slot.isFree(), true);
  const request = slot.take('tts', 'r1');
  assert.equal(partial.signal.reason.code, 'slot_busy');
  assert.equal(partial.keep(), false);
  partial[Symbol.dispose]();
  assert.deepEqual([slot.status().requestId, slot.isFree()], ['r1', false]);
  request[Symbol.dispose]();
});

test('a holder that keeps the slot gives way no more', () => {
  const slot = createSlot();
  using held = slot.take('asr', 'live', { givesWay: true });
  assert.equal(held.keep(), true);
  assert.throws(() => slot.take('asr', 'r1'), { code: 'slot_busy' });
  assert.equal(held.signal.aborted, false);
});
