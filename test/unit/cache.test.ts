/** The cache of loaded models loads once for all who wait, counts leases, and evicts a model that is not in use. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { ModelCache } from '../../src/engine/cache.ts';
import { GatewayError } from '../../src/errors.ts';

function world(keepAliveMs: number) {
  const events: string[] = [];
  let loads = 0;
  const cache = new ModelCache<{ n: number; close(): Promise<void> }>({
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

/** Models whose names say how many bytes they need, in a memory of 100: `a40`, or `a40>60` that takes 60 when loaded. */
function memoryOf100() {
  const log: string[] = [];
  let used = 0;
  let most = 0;
  const cache = new ModelCache<{ bytes: number; close(): Promise<void> }>({
    keepAliveMs: Number.POSITIVE_INFINITY,
    memory: {
      maxBytes: 100,
      expected: (key) => Number(/\d+/.exec(key)?.[0]),
      used: (model) => model.bytes,
    },
    load: async (key) => {
      const bytes = Number(/\d+$/.exec(key)?.[0]);
      used += bytes;
      most = Math.max(most, used);
      log.push(`load ${key}`);
      await settle();
      if (key.startsWith('broken')) {
        used -= bytes;
        throw new Error('cannot load');
      }
      return {
        bytes,
        close: async () => {
          await settle();
          used -= bytes;
          log.push(`close ${key}`);
        },
      };
    },
  });
  const use = async (key: string) => (await cache.lease(key))[Symbol.asyncDispose]();
  return { cache, log, use, used: () => used, most: () => most };
}

const refusedAs = (code: string) => (error: unknown) => error instanceof GatewayError && error.code === code;

test('a model that finds no room closes the ones that were not used for the longest time, and only those', async () => {
  const { cache, log, use, most } = memoryOf100();
  for (const key of ['a40', 'b40', 'c20']) await use(key);
  await settle();
  await use('a40');
  await use('d60');
  assert.deepEqual(log, ['load a40', 'load b40', 'load c20', 'close b40', 'close c20', 'load d60']);
  assert.deepEqual(
    cache
      .entries()
      .map(({ key }) => key)
      .sort(),
    ['a40', 'd60'],
  );
  assert.equal(most(), 100, 'never more, also while a model was being loaded');
  await cache.close();
});

test('a model in use is never closed for another, which is refused', async () => {
  const { cache, log, use } = memoryOf100();
  const lease = await cache.lease('a60');
  await use('b40');
  await assert.rejects(cache.lease('c50'), refusedAs('out_of_memory'));
  assert.deepEqual(log, ['load a60', 'load b40', 'close b40']);
  await lease[Symbol.asyncDispose]();
  await use('c50');
  assert.deepEqual(log.slice(3), ['close a60', 'load c50']);
  await cache.close();
});

test('a model that is evicted while it is used counts until it is closed', async () => {
  const { cache, use, most } = memoryOf100();
  const lease = await cache.lease('a60');
  cache.evict();
  await assert.rejects(use('a60'), refusedAs('out_of_memory'));
  const released = lease[Symbol.asyncDispose]();
  await use('a60'); // it waits for the memory of the old one
  await released;
  assert.equal(most(), 60);
  await cache.close();
});

test('a model that is larger than the memory is refused before it is loaded, and no other is closed for it', async () => {
  const { cache, log, use } = memoryOf100();
  await use('a40');
  assert.throws(() => cache.assertFits('b101'), refusedAs('model_too_large'));
  await assert.rejects(cache.lease('b101'), refusedAs('model_too_large'));
  cache.assertFits('c100');
  assert.deepEqual(log, ['load a40']);
  await use('c100');
  await cache.close();
});

test('models that are loaded at the same time are counted from their beginning', async () => {
  const { cache, use, most } = memoryOf100();
  const results = await Promise.allSettled(['a60', 'b60', 'c40'].map(use));
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(most(), 100);
  await cache.close();
});

test('a load that fails gives its memory back', async () => {
  const { cache, use } = memoryOf100();
  for (let i = 0; i < 3; i++) await assert.rejects(use('broken80'), /cannot load/);
  await use('a80');
  await cache.close();
});

test('a model that takes more than was expected stays, and others are closed for it', async () => {
  const { cache, log, use } = memoryOf100();
  await use('a50');
  const lease = await cache.lease('b40>70');
  await settle();
  await settle();
  assert.deepEqual(log, ['load a50', 'load b40>70', 'close a50']);
  await lease[Symbol.asyncDispose]();
  await cache.close();
});

test('an idle model that is evicted is closed once, also when its keep-alive would have ended', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { cache, events } = world(300);
    await (await cache.lease('a'))[Symbol.asyncDispose]();
    cache.evict();
    await settle();
    mock.timers.tick(300);
    await settle();
    assert.deepEqual(events, ['load a 1', 'close a 1']);
  } finally {
    mock.timers.reset();
  }
});

test('the event of a load tells how long it took', async () => {
  let nowMs = 5000;
  const took: [string, number][] = [];
  const cache = new ModelCache({
    keepAliveMs: 0,
    now: () => nowMs,
    load: async () => {
      nowMs += 700;
      return {
        close: async () => {
          nowMs += 30;
        },
      };
    },
    onEvent: (event, _key, ms) => void took.push([event, ms]),
  });
  await (await cache.lease('a'))[Symbol.asyncDispose]();
  assert.deepEqual(took, [
    ['loaded', 700],
    ['unloaded', 30],
  ]);
});
