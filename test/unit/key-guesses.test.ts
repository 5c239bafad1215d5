/** Wrong keys are counted by address, in bounded memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyGuesses } from '../../src/limits/key-guesses.ts';

const LIMITS = { wrongKeys: 3, wrongKeysMs: 60_000, addresses: 5 } as Parameters<typeof createKeyGuesses>[0];

function setUp() {
  let nowMs = 0;
  let sent = 0;
  const guesses = createKeyGuesses(LIMITS, () => nowMs);
  const isCounted = (address: string, digest: string) => {
    try {
      guesses(address, digest);
      return true;
    } catch {
      return false;
    }
  };
  return {
    guesses,
    isCounted,
    /** Sends so many different wrong keys. */
    wrong: (address: string, count: number) => {
      for (let i = 0; i < count; i++) assert(isCounted(address, `key ${sent++}`), `${address}, key ${i}`);
    },
    isLimited: (address: string) => !isCounted(address, `key ${sent++}`),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('an address that sent too many different wrong keys waits until a minute after the first', () => {
  const { wrong, isLimited, guesses, pass } = setUp();
  wrong('192.0.2.1', 2);
  pass(10_000);
  wrong('192.0.2.1', 1);
  assert.throws(() => guesses('192.0.2.1', 'another'), { code: 'too_many_keys', retryAfterSec: 50 });
  wrong('192.0.2.2', 1);
  pass(49_999);
  assert(isLimited('192.0.2.1'));
  pass(1);
  wrong('192.0.2.1', 3);
});

test('a wrong key that is sent again and again counts once, and is never too many', () => {
  const { wrong, isCounted, isLimited } = setUp();
  for (let i = 0; i < 100; i++) assert(isCounted('192.0.2.1', 'an old key'));
  wrong('192.0.2.1', 2);
  assert(isLimited('192.0.2.1'));
  assert(isCounted('192.0.2.1', 'an old key'));
});

test('the addresses of one IPv6 network count together, and those of IPv4 do not', () => {
  const { wrong, isLimited } = setUp();
  wrong('2001:db8::1', 2);
  wrong('2001:db8:0:0:ffff::1', 1);
  assert(isLimited('2001:db8:0:0:1:2:3:4'));
  wrong('2001:db8:0:1::1', 1);
  wrong('::ffff:192.0.2.1', 3);
  assert(isLimited('::ffff:192.0.2.1'));
  wrong('::ffff:192.0.2.2', 1);
});

test('the address that has been silent longest is forgotten first', () => {
  const { wrong, isLimited } = setUp();
  for (let i = 1; i <= 5; i++) wrong(`192.0.2.${i}`, 3);
  assert(isLimited('192.0.2.1'));
  wrong('192.0.2.6', 3);
  assert(isLimited('192.0.2.1'));
  wrong('192.0.2.2', 3);
});
