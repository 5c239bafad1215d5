import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSlot } from '../../src/engine/slot.ts';
import { GatewayError } from '../../src/errors.ts';

test('a free slot can be taken and tells who holds it for how long', () => {
  let clock = 1000;
  const slot = createSlot(() => clock);
  assert.deepEqual(slot.status(), { holder: null, heldForMs: 0 });
  const held = slot.take('asr');
  clock += 250;
  assert.deepEqual(slot.status(), { holder: 'asr', heldForMs: 250 });
  held[Symbol.dispose]();
  assert.equal(slot.status().holder, null);
});

test('a held slot refuses every capability at once, with what the client needs to come back', () => {
  let clock = 0;
  const slot = createSlot(() => clock);
  using _held = slot.take('tts');
  clock = 1234;
  for (const capability of ['asr', 'tts', 'llm'] as const) {
    assert.throws(
      () => slot.take(capability),
      (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.status, 503);
        assert.equal(error.code, 'slot_busy');
        assert.equal(error.retryAfterSec, 5);
        assert.deepEqual(error.details, { held_by: 'tts', held_for_ms: 1234 });
        return true;
      },
    );
  }
  assert.throws(() => slot.assertFree());
});

test('releasing twice does not free the slot of the next holder', () => {
  const slot = createSlot();
  const first = slot.take('asr');
  first[Symbol.dispose]();
  using _second = slot.take('llm');
  first[Symbol.dispose]();
  assert.equal(slot.status().holder, 'llm');
});
