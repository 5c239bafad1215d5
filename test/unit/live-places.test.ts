/** Which live session gives way to a new one when all places are taken. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLivePlaces, tooManySessions } from '../../src/limits/live-places.ts';

const status = () =>
  ({ kind: 'transcription', state: 'waiting', lastError: null, lastAnswer: null }) as const;

function setUp(maxSessions: number) {
  const places = createLivePlaces(maxSessions);
  const ended: string[] = [];
  const begin = (network: string, idleMs = 0) => {
    if (!places.makeRoom({ network })) throw tooManySessions();
    const giveUp = ({ code }: Error & { code: string }) => void ended.push(`${network} ${idleMs} ${code}`);
    const session = { protocol: 'realtime', network, idleMs: () => idleMs, giveUp, status } as const;
    places.take(session);
    return () => places.release(session);
  };
  return { begin, ended };
}

const FULL = { code: 'too_many_sessions' };

test('an address gets a place from one that holds two more, whose idlest session ends', () => {
  const { begin, ended } = setUp(5);
  for (const idleMs of [20, 40, 10, 30]) begin('a', idleMs);
  begin('b', 90);
  begin('c');
  begin('b');
  assert.deepEqual(ended, ['a 40 too_many_sessions', 'a 30 too_many_sessions']);
  for (const network of ['a', 'b', 'c']) assert.throws(() => begin(network), FULL, network);
  assert.equal(ended.length, 2);
  begin('d');
  assert.equal(ended.at(-1), 'b 90 too_many_sessions', 'of the two that hold most');
});

test('a place that was given up is freed once, also when its session ends later', () => {
  const { begin } = setUp(2);
  const leave = [begin('a', 2), begin('a', 1)] as const;
  const leaveOther = begin('b');
  leave[0]();
  assert.throws(() => begin('b'), FULL);
  leaveOther();
  leaveOther();
  begin('b');
  assert.throws(() => begin('b'), FULL);
});
