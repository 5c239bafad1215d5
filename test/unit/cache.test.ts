/** The cache of loaded models loads once for all who wait, counts leases, and evicts a model that is not in use. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { createModelCache } from '../../src/engine/cache.ts';

function world(keepAliveMs: number) {
  const events: string[] = [];
  let loads = 0;
  const cache = createModelCache<{ n: number; close(): Promise<void> }>({
    keepAliveMs,
    load: async (key) => {
      if (key === 'broken') throw new Error('cannot load');
      loads += 1;
      const n = loads;
      events.push(`load ${key} ${n}`);
      return {
        n,
        close: async () => {
          events.push(`close ${key} ${n}`);
        },
      };
    },
  });
  return { cache, events, loads: () => loads };
}

/** Node's timers can count to this; a longer delay is taken for one millisecond. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('several leases share one load', async () => {
  const { cache, loads } = world(1000);
  const leases = await Promise.all([cache.lease('a'), cache.lease('a'), cache.lease('a')]);
  assert.equal(loads(), 1);
  assert.equal(cache.entries()[0]?.leases, 3);
  for (const lease of leases) await lease[Symbol.asyncDispose]();
  assert.equal(cache.entries()[0]?.leases, 0);
  await cache.close();
});

test('an idle model is closed after the keep-alive, and a lease in between restarts the wait', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { cache, events } = world(300);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    mock.timers.tick(200);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    mock.timers.tick(299);
    await settle();
    assert.deepEqual(events, ['load a 1']);
    mock.timers.tick(1);
    await settle();
    assert.deepEqual(events, ['load a 1', 'close a 1']);
    assert.deepEqual(cache.entries(), []);
  } finally {
    mock.timers.reset();
  }
});

test('keep-alive 0 closes at the last release, before the release is over', async () => {
  const { cache, events } = world(0);
  const one = await cache.lease('a');
  const two = await cache.lease('a');
  await one[Symbol.asyncDispose]();
  assert.deepEqual(events, ['load a 1']);
  await two[Symbol.asyncDispose]();
  assert.deepEqual(events, ['load a 1', 'close a 1']);
});

test('keep-alive Infinity never closes by itself', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { cache, events } = world(Number.POSITIVE_INFINITY);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    for (let n = 0; n < 3; n++) mock.timers.tick(LONGEST_TIMER_MS);
    await settle();
    assert.deepEqual(events, ['load a 1']);
    await cache.close();
    assert.deepEqual(events, ['load a 1', 'close a 1']);
  } finally {
    mock.timers.reset();
  }
});

test('a keep-alive longer than one timer can wait is waited out', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const yearMs = 365 * 24 * 3600 * 1000;
    const { cache, events } = world(yearMs);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    const timers = Math.floor(yearMs / LONGEST_TIMER_MS);
    for (let n = 0; n < timers; n++) mock.timers.tick(LONGEST_TIMER_MS);
    mock.timers.tick((yearMs % LONGEST_TIMER_MS) - 1);
    await settle();
    assert.deepEqual(events, ['load a 1']);
    mock.timers.tick(1);
    await settle();
    assert.deepEqual(events, ['load a 1', 'close a 1']);
  } finally {
    mock.timers.reset();
  }
});

test('a lease ends the wait of a long keep-alive, also after its first timer', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { cache, events } = world(LONGEST_TIMER_MS + 1000);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    mock.timers.tick(LONGEST_TIMER_MS);
    const lease = await cache.lease('a');
    mock.timers.tick(2000);
    await settle();
    assert.deepEqual(events, ['load a 1']);
    await lease[Symbol.asyncDispose]();
    await cache.close();
  } finally {
    mock.timers.reset();
  }
});

test('an evicted model lives until its lease ends, while the next request loads it again', async () => {
  const { cache, events } = world(1000);
  const old = await cache.lease('a');
  assert.equal(cache.evict(), 1);
  assert.deepEqual(cache.entries(), []);
  const fresh = await cache.lease('a');
  assert.notEqual(fresh.model.n, old.model.n);
  assert.equal(cache.lingering(), 1);
  await old[Symbol.asyncDispose]();
  assert.equal(cache.lingering(), 0);
  assert.deepEqual(events, ['load a 1', 'load a 2', 'close a 1']);
  await fresh[Symbol.asyncDispose]();
  await cache.close();
});

test('evicting one key leaves the others, and an idle model goes at once', async () => {
  const { cache, events } = world(1000);
  await (await cache.lease('a'))[Symbol.asyncDispose]();
  await (await cache.lease('b'))[Symbol.asyncDispose]();
  assert.equal(cache.evict('a'), 1);
  await settle();
  assert.deepEqual(events, ['load a 1', 'load b 2', 'close a 1']);
  await cache.close();
});

test('several evicted models that are in use linger, and closing the cache ends them', async () => {
  const { cache, events } = world(1000);
  for (const key of ['a', 'b', 'a']) {
    await cache.lease(key);
    cache.evict();
  }
  assert.equal(cache.lingering(), 3);
  await cache.close();
  assert.equal(cache.lingering(), 0);
  assert.deepEqual(events.slice(3).sort(), ['close a 1', 'close a 3', 'close b 2']);
});

test('a load that fails after it was evicted does not linger', async () => {
  const { cache } = world(1000);
  const lease = cache.lease('broken');
  cache.evict();
  assert.equal(cache.lingering(), 1);
  await assert.rejects(lease);
  assert.equal(cache.lingering(), 0);
});

test('a failed load reaches everyone who waited and is tried again by the next', async () => {
  const { cache } = world(1000);
  const results = await Promise.allSettled([cache.lease('broken'), cache.lease('broken')]);
  assert(results.every((r) => r.status === 'rejected'));
  assert.deepEqual(cache.entries(), []);
  await assert.rejects(cache.lease('broken'), /cannot load/);
  await cache.close();
});

test('disposing a lease twice counts once', async () => {
  const { cache } = world(1000);
  const one = await cache.lease('a');
  const two = await cache.lease('a');
  await one[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  assert.equal(cache.entries()[0]?.leases, 1);
  await two[Symbol.asyncDispose]();
  await cache.close();
});
