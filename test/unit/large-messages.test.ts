/** Large messages of live sessions: a few at a time, fair by network, and bounded in time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../src/errors.ts';
import { createLargeMessages } from '../../src/limits/large-messages.ts';
import { until } from '../until.ts';

const KIB = 1024;

function fixture(limits: { largeMessages?: number; largeMessageMs?: number } = {}) {
  const messages = createLargeMessages({
    largeBytes: 256 * KIB,
    largeMessages: limits.largeMessages ?? 2,
    largeMessageMs: limits.largeMessageMs ?? 60_000,
  });
  const ended: string[] = [];
  const join = (name: string, network = 'a') =>
    messages(network, (why: GatewayError) => ended.push(`${name}: ${why.code}`));
  return { join, ended };
}

/** Whether the promise has resolved when all that could happen at once has happened. */
async function isRead(reading: Promise<void>): Promise<boolean> {
  let isOver = false;
  void reading.then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return isOver;
}

test('a session waits unread while others are in the middle of large messages, and goes on after one', async () => {
  const { join, ended } = fixture();
  const [first, second, third] = [join('first'), join('second'), join('third')];
  await first.grow(257 * KIB);
  await second.grow(300 * KIB);
  await third.grow(256 * KIB); // not large yet
  const waiting = third.grow(1);
  assert.equal(await isRead(waiting), false);
  first.complete();
  assert.equal(await isRead(waiting), false, 'the first is still in memory');
  first.handled();
  await waiting;
  assert.deepEqual(ended, []);
  for (const each of [first, second, third]) each.leave();
});

test('small messages without end, and pings between them, are never large', async () => {
  const { join } = fixture({ largeMessages: 1 });
  const [large, small] = [join('large'), join('small')];
  await large.grow(1024 * KIB);
  for (let i = 0; i < 1000; i++) {
    assert(await isRead(small.grow(16 * KIB)));
    small.complete();
    small.handled();
    assert(await isRead(small.grow(16 * KIB)));
    small.without(16 * KIB);
  }
  large.leave();
});

test('an address that holds all places gives one up to another address', async () => {
  const { join, ended } = fixture();
  const old = join('old');
  await old.grow(300 * KIB);
  const newest = join('newest');
  await newest.grow(300 * KIB);
  const other = join('other', 'b');
  assert(await isRead(other.grow(300 * KIB)));
  assert.deepEqual(ended, ['newest: overloaded']);
  for (const each of [old, newest, other]) each.leave(); // a deadline keeps the process alive
});

test('a client that does not finish a large message is ended, and so is one that waits for too long', async () => {
  const { join, ended } = fixture({ largeMessages: 1, largeMessageMs: 50 });
  const slow = join('slow');
  await slow.grow(300 * KIB);
  const waiting = join('waiting');
  void waiting.grow(300 * KIB);
  await until('both are ended', () => ended.length === 2);
  assert.deepEqual(ended.toSorted(), ['slow: client_stalled', 'waiting: overloaded']);
});

test('a message that has come may take its time to be handled', async () => {
  const { join, ended } = fixture({ largeMessageMs: 20 });
  const heard = join('heard');
  await heard.grow(300 * KIB);
  heard.complete();
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(ended, []);
  heard.leave();
});

test('a client that leaves while it waits is read on, and takes no place', async () => {
  const { join } = fixture({ largeMessages: 1 });
  const [held, left, next] = [join('held'), join('left'), join('next')];
  await held.grow(300 * KIB);
  const waiting = left.grow(300 * KIB);
  left.leave();
  await waiting;
  await left.grow(300 * KIB);
  held.leave();
  assert(await isRead(next.grow(300 * KIB)));
  next.leave();
});
