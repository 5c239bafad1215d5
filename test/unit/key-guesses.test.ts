/** Wrong keys are counted by address, in bounded memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyGuesses } from '../../src/limits/key-guesses.ts';

const LIMITS = { wrongKeys: 3, wrongKeysMs: 60_000, addresses: 5 } as Parameters<typeof createKeyGuesses>[0];

function setUp() {
  let nowMs = 0;
  const guesses = createKeyGuesses(LIMITS, () => nowMs);
  return {
    wrong: (address: string, count: number) => {
      for (let i = 0; i < count; i++) guesses.wrong(address);
    },
    mayTry(address: string) {
      try {
        guesses.assertMayTry(address);
        return true;
      } catch {
        return false;
      }
    },
    guesses,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('an address waits until a minute after its first wrong key', () => {
  const { wrong, mayTry, guesses, pass } = setUp();
  wrong('192.0.2.1', 2);
  pass(10_000);
  assert(mayTry('192.0.2.1'));
  wrong('192.0.2.1', 1);
  assert(!mayTry('192.0.2.1'));
  assert(mayTry('192.0.2.2'));
  assert.throws(() => guesses.assertMayTry('192.0.2.1'), { code: 'too_many_keys', retryAfterSec: 50 });
  pass(49_999);
  assert(!mayTry('192.0.2.1'));
  pass(1);
  assert(mayTry('192.0.2.1'));
  wrong('192.0.2.1', 2);
  assert(mayTry('192.0.2.1'), 'the count begins again');
});

test('the addresses of one IPv6 network count together, and those of IPv4 do not', () => {
  const { wrong, mayTry } = setUp();
  wrong('2001:db8::1', 2);
  wrong('2001:db8:0:0:ffff::1', 1);
  assert(!mayTry('2001:db8:0:0:1:2:3:4'));
  assert(mayTry('2001:db8:0:1::1'));
  wrong('::ffff:192.0.2.1', 3);
  assert(!mayTry('::ffff:192.0.2.1'));
  assert(mayTry('::ffff:192.0.2.2'));
});

test('the address that has been silent longest is forgotten first', () => {
  const { wrong, mayTry } = setUp();
  for (let i = 1; i <= 5; i++) wrong(`192.0.2.${i}`, 3);
  wrong('192.0.2.1', 1);
  wrong('192.0.2.6', 3);
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6].map((i) => mayTry(`192.0.2.${i}`)),
    [false, true, false, false, false, false],
  );
});
