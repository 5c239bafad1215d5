/** These tests say how clients of live connections share the event loop: who is next, and how much all of them get. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventLoopShares, type EventLoopShare } from '../../src/limits/event-loop-shares.ts';

const LIMITS = { share: 0.5, busyShare: 0.25, sliceMs: 1, burstMs: 5 };

/** A clock that only the slices move, so that other work on the machine counts for nothing. */
let clock = 0;
const now = () => clock;
const spin = (ms: number) => {
  clock += ms;
};

/** Takes slices of `ms` until `until`, and counts them. */
async function takeSlices(client: EventLoopShare, ms: number, until: number): Promise<number> {
  let count = 0;
  for (; clock < until; count += 1) {
    await client.slice();
    spin(ms);
  }
  return count;
}

test('all slices together have their part of the time of the event loop, and others run between them', async () => {
  for (const [isSlotHeld, share] of [
    [false, LIMITS.share],
    [true, LIMITS.busyShare],
  ] as const) {
    const shares = createEventLoopShares(LIMITS, { isSlotHeld: () => isSlotHeld });
    const clients = Array.from({ length: 10 }, (_, i) => shares(`192.0.2.${i}`));
    const startedAt = performance.now();
    let isOver = false;
    let laps = 0;
    const lap = () => {
      laps += 1;
      if (!isOver) setImmediate(lap);
    };
    setImmediate(lap);
    await Promise.all(
      clients.map(async (client) => {
        for (let i = 0; i < 10; i += 1) {
          await client.slice();
          for (const end = performance.now() + 1.5; performance.now() < end; );
        }
      }),
    );
    isOver = true;
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= (100 * 1.5) / share - 10, `${tookMs} ms`);
    assert.ok(laps >= 100, `${laps} laps`);
  }
});

test('a slice goes on for as long as it is short, and then another client is next', async () => {
  const shares = createEventLoopShares({ ...LIMITS, share: 1 }, { now });
  const [a, b] = [shares('192.0.2.1'), shares('192.0.2.2')];
  const order: string[] = [];
  const run = async (name: string, client: EventLoopShare) => {
    for (let i = 0; i < 4; i += 1) {
      await client.slice();
      order.push(name);
      spin(0.6);
    }
  };
  await Promise.all([run('a', a), run('b', b)]);
  assert.equal(order.join(''), 'aabbaabb');
});

test('a client that takes little waits for one slice of the others, however many they are', async () => {
  for (const network of ['192.0.2.1', '192.0.2.2']) {
    const shares = createEventLoopShares({ ...LIMITS, share: 1 }, { now });
    let taken = 0;
    let isOver = false;
    const greedy = Array.from({ length: 30 }, async () => {
      const client = shares('192.0.2.1');
      for (; !isOver; taken += 1) {
        await client.slice();
        spin(1.5);
      }
    });
    const modest = shares(network);
    await modest.slice();
    for (let i = 0; i < 10; i += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const before = taken;
      await modest.slice();
      assert.ok(taken - before <= 2, `${taken - before} slices of others`);
    }
    isOver = true;
    await Promise.all(greedy);
  }
});

test('an address has one share of the time, however many connections it has', async () => {
  const shares = createEventLoopShares({ ...LIMITS, share: 1 }, { now });
  const until = clock + 200;
  const many = Array.from({ length: 9 }, () => shares('192.0.2.1'));
  const [alone, ...others] = await Promise.all(
    [shares('192.0.2.2'), ...many].map((client) => takeSlices(client, 1.5, until)),
  );
  const together = others.reduce((sum, count) => sum + count, 0);
  assert.ok((alone ?? 0) > together / 2, `${alone} and ${together}`);
  assert.ok((alone ?? 0) < together * 2, `${alone} and ${together}`);
});

test('a client that has left no longer counts for its address', async () => {
  const shares = createEventLoopShares({ ...LIMITS, share: 1 }, { now });
  for (let i = 0; i < 100; i += 1) {
    const client = shares('192.0.2.1');
    client.leave();
    client.leave();
  }
  const until = clock + 100;
  const [a = 0, b = 0] = await Promise.all(
    ['192.0.2.1', '192.0.2.2'].map((network) => takeSlices(shares(network), 1.5, until)),
  );
  assert.ok(Math.abs(a - b) <= 3, `${a} and ${b}`);
});
