/** These tests say who is served next of those that wait for the slot, and how a wait ends. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { CATEGORIES } from '../../src/category.ts';
import { createSlot } from '../../src/engine/slot.ts';
import { createWaitingLine } from '../../src/engine/waiting-line.ts';
import { GatewayError } from '../../src/errors.ts';
import { preferredWaitSec } from '../../src/http/admission.ts';
import { until } from '../until.ts';

const clientOf = (requestId: string) => /^(.*):/.exec(requestId)?.[1] ?? '127.0.0.1';
const FOREVER = new AbortController().signal;

function world(limits = {}) {
  const slot = createSlot();
  const line = createWaitingLine(slot, { requests: 32, calledMs: 60_000, ...limits });
  const served: string[] = [];
  const waits: number[] = [];
  /** The client of a request is what stands before a colon in its id, and its category may end it. */
  const ticket = (requestId: string, waitMs = 60_000) =>
    line.ticket({
      category: CATEGORIES.find((category) => requestId.endsWith(category)) ?? 'asr',
      requestId,
      network: clientOf(requestId),
      waitMs,
      onWaited: (ms) => void waits.push(ms),
    });
  /** A request that has its body at once. */
  async function come(requestId: string, waitMs?: number) {
    const own = ticket(requestId, waitMs);
    await own.comesUp(FOREVER);
    const hold = await own.take(FOREVER);
    served.push(requestId);
    return hold;
  }
  const ids = () => line.waiting().map(({ requestId }) => requestId);
  return { slot, line, served, waits, ticket, come, ids };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the first that came is served first, and each one when the one before it has let go', async () => {
  const { slot, come, served, ids } = world();
  const held = slot.take('tts', 'holder');
  const holds = ['a', 'b', 'c'].map((id) => come(id));
  await settled();
  assert.deepEqual([ids(), served], [['a', 'b', 'c'], []]);
  held[Symbol.dispose]();
  for (const [at, hold] of holds.entries()) {
    const own = await hold;
    await settled();
    assert.deepEqual(served, ['a', 'b', 'c'].slice(0, at + 1));
    own[Symbol.dispose]();
  }
  assert.equal(slot.status().holder, null);
});

test('addresses take turns, and of each the first that came is served first', async () => {
  const { slot, come, served, ids } = world();
  const held = slot.take('tts', 'holder');
  const holds = ['a:1', 'a:2', 'a:3', 'b:1', 'c:1', 'b:2'].map((id) => come(id));
  await settled();
  assert.deepEqual(ids(), ['a:1', 'b:1', 'c:1', 'a:2', 'b:2', 'a:3']);
  held[Symbol.dispose]();
  (await holds[0])?.[Symbol.dispose]();
  (await holds[3])?.[Symbol.dispose]();
  const late = ['a:4', 'd:1'].map((id) => come(id));
  await settled();
  assert.deepEqual(
    ids().slice(-4),
    ['b:2', 'd:1', 'a:3', 'a:4'],
    'who comes late is not before those of its round',
  );
  for (const next of [holds[4], holds[1], holds[5], late[1], holds[2], late[0]])
    (await next)?.[Symbol.dispose]();
  assert.deepEqual(served, ['a:1', 'b:1', 'c:1', 'a:2', 'b:2', 'd:1', 'a:3', 'a:4']);
});

test('speech waits for one chat at most, also where chats keep coming', async () => {
  const { come, served, ids } = world();
  const first = await come('a:1 llm');
  const chats = ['a:2 llm', 'a:3 llm', 'a:4 llm'].map((id) => come(id));
  const speech = ['a:1 tts', 'a:2 tts'].map((id) => come(id));
  const text = come('a:1 asr');
  await settled();
  assert.deepEqual(ids(), ['a:1 tts', 'a:1 asr', 'a:2 llm', 'a:2 tts', 'a:3 llm', 'a:4 llm']);
  const holds = [Promise.resolve(first), speech[0], text, chats[0], speech[1], chats[1], chats[2]];
  for (const [at, hold] of holds.entries()) {
    chats.push(come(`a:${5 + at} llm`));
    (await hold)?.[Symbol.dispose]();
  }
  for (const hold of chats.slice(3)) (await hold)[Symbol.dispose]();
  assert.deepEqual(served.slice(0, 7), [
    'a:1 llm',
    'a:1 tts',
    'a:1 asr',
    'a:2 llm',
    'a:2 tts',
    'a:3 llm',
    'a:4 llm',
  ]);
});

test('categories take turns in the rounds of their clients, and win no round for a client', async () => {
  const { come, served } = world();
  const first = await come('a:1 llm');
  const all = ['b:1 llm', 'c:1 llm', 'a:2 llm', 'a:1 tts', 'd:1 tts', 'd:1 asr', 'd:2 tts'].map((id) =>
    come(id),
  );
  await settled();
  first[Symbol.dispose]();
  const order = ['a:1 tts', 'd:1 asr', 'b:1 llm', 'c:1 llm', 'd:1 tts', 'a:2 llm', 'd:2 tts'];
  const left = new Set(all);
  while (left.size > 0) {
    const [hold, own] = await Promise.race([...left].map(async (own) => [await own, own] as const));
    left.delete(own);
    hold[Symbol.dispose]();
  }
  assert.deepEqual(served.slice(1), order);
});

test('an address that fills the line gives a place up to one that holds at least two fewer', async () => {
  const { slot, line, come, ids } = world({ requests: 3 });
  using _held = slot.take('tts', 'holder');
  const waiting = ['a:1', 'a:2', 'a:3'].map((id) => come(id));
  const gaveWay = assert.rejects(waiting[2] as Promise<unknown>, { code: 'slot_busy' });
  const other = come('b:1');
  await gaveWay;
  assert.deepEqual(ids(), ['a:1', 'b:1', 'a:2']);
  for (const id of ['a:4', 'b:2']) await assert.rejects(come(id), { code: 'slot_busy' });
  line.close();
  await Promise.allSettled([...waiting, other]);
});

test('one that has its body keeps its place before one that has not', async () => {
  const { slot, line, ticket, come, ids } = world({ requests: 3 });
  using _held = slot.take('tts', 'holder');
  const waiting = [come('a:1'), come('a:2'), ticket('a:3').take(FOREVER)];
  const gaveWay = assert.rejects(waiting[1] as Promise<unknown>, { code: 'slot_busy' });
  const other = come('b:1');
  await gaveWay;
  assert.deepEqual(ids(), ['a:1', 'b:1', 'a:3']);
  line.close();
  await Promise.allSettled([...waiting, other]);
});

test('a request that does not ask never waits, at a held slot nor behind those that do', async () => {
  const { slot, come, ticket } = world();
  const held = slot.take('tts', 'holder');
  await assert.rejects(come('now', 0), { code: 'slot_busy' });
  const waiting = ticket('waits');
  const called = waiting.comesUp(FOREVER);
  held[Symbol.dispose]();
  await called;
  (await come('now', 0))[Symbol.dispose](); // the slot is free, because the other one is still sending
  waiting.end();
});

test('a request whose time is over is refused as one that did not ask, and has left the line', async () => {
  const { slot, come, ids, waits } = world();
  using _held = slot.take('llm', 'holder');
  await assert.rejects(come('a', 20), (error: unknown) => {
    assert(error instanceof GatewayError);
    const { code, retryAfterSec, details } = error;
    assert.deepEqual([code, retryAfterSec, details.heldBy], ['slot_busy', 5, 'llm']);
    return true;
  });
  assert.deepEqual([ids(), waits.length], [[], 1]);
});

test('those that are ready at once do not stay ahead of an older one whose body is still to come', async () => {
  const { slot, ticket, served } = world();
  const ready = async (requestId: string) => {
    const hold = await ticket(requestId).take(FOREVER);
    served.push(requestId);
    return hold;
  };
  const held = slot.take('tts', 'holder');
  const file = ticket('file');
  const called = file.comesUp(FOREVER);
  const first = ready('first utterance');
  held[Symbol.dispose]();
  const second = ready('second utterance');
  await called; // while the first utterance holds the slot
  const own = file.take(FOREVER).then((hold) => {
    served.push('file');
    return hold;
  });
  for (const next of [first, own, second]) (await next)[Symbol.dispose]();
  assert.deepEqual(served, ['first utterance', 'file', 'second utterance']);
});

test('the wait before the body and the one after it share the time that was asked for', async () => {
  const { slot, ticket, waits } = world();
  const own = ticket('a', 400);
  const first = slot.take('llm', 'holder');
  const called = own.comesUp(FOREVER);
  setTimeout(() => first[Symbol.dispose](), 100);
  await called;
  using _second = slot.take('llm', 'holder');
  await assert.rejects(own.take(FOREVER), { code: 'slot_busy' });
  const all = waits.reduce((sum, ms) => sum + ms, 0);
  assert.equal(waits.length, 2);
  assert(all >= 395 && (waits[1] ?? 0) <= all - 95, `${waits} ms`);
});

test('at most 32 requests wait, and one more is refused at once', async () => {
  const { slot, line, come, ids } = world({ requests: 2 });
  using _held = slot.take('tts', 'holder');
  const waiting = [come('a'), come('b')];
  await assert.rejects(come('c'), { code: 'slot_busy' });
  assert.deepEqual(ids(), ['a', 'b']);
  line.close();
  await Promise.allSettled(waiting);
});

test('a client that leaves is out of the line at once', async () => {
  const { slot, ticket, ids } = world();
  using _held = slot.take('tts', 'holder');
  const left = new AbortController();
  const wait = ticket('a').comesUp(left.signal);
  assert.deepEqual(ids(), ['a']);
  left.abort(new GatewayError('client_left', {}));
  await assert.rejects(wait, { code: 'client_left' });
  assert.deepEqual(ids(), []);
});

test('one that was called and sends its body slowly keeps the next one waiting for a second only', async () => {
  const { slot, ticket, come, served } = world({ calledMs: 30 });
  const held = slot.take('tts', 'holder');
  const slow = ticket('slow');
  const called = slow.comesUp(FOREVER);
  const next = come('next');
  held[Symbol.dispose]();
  await called;
  await settled();
  assert.deepEqual(served, [], 'it is its turn first');
  const hold = await next;
  // What came first is served before all that came later, although it needs to wait again.
  const again = slow.take(FOREVER);
  const last = come('last');
  hold[Symbol.dispose]();
  (await again)[Symbol.dispose]();
  (await last)[Symbol.dispose]();
  assert.deepEqual(served, ['next', 'last']);
});

test('one that was called and fails before it takes the slot lets the next one through', async () => {
  const { slot, ticket, come } = world();
  const held = slot.take('tts', 'holder');
  const bad = ticket('bad');
  const called = bad.comesUp(FOREVER);
  const next = come('next');
  held[Symbol.dispose]();
  await called;
  bad.end();
  (await next)[Symbol.dispose]();
});

test('the stop of the gateway ends every wait, and nothing waits from then on', async () => {
  const { slot, line, come, ids } = world();
  using _held = slot.take('tts', 'holder');
  const waiting = [come('a'), come('b')];
  line.close();
  for (const wait of waiting) await assert.rejects(wait, { code: 'shutting_down' });
  assert.deepEqual(ids(), []);
  await assert.rejects(come('c'), { code: 'slot_busy' });
});

test('what outlasts the stop waits on, and still may come, until its own time is over', async () => {
  const { slot, line, come, ids } = world();
  const held = slot.take('tts', 'holder');
  const how = {
    category: 'asr',
    network: '127.0.0.1',
    waitMs: 60_000,
    isLive: true,
    onWaited: () => undefined,
  } as const;
  const ends = ['before', 'after'].map((requestId) => line.ticket({ requestId, ...how }));
  const before = ends[0]?.take(FOREVER);
  const refused = assert.rejects(come('a'), { code: 'shutting_down' });
  line.close();
  await refused;
  const after = ends[1]?.take(FOREVER);
  assert.deepEqual(ids(), ['before', 'after']);
  const late = line.ticket({ requestId: 'late', ...how, waitMs: 10 }).take(FOREVER);
  await assert.rejects(late, { code: 'slot_busy' });
  held[Symbol.dispose]();
  (await before)?.[Symbol.dispose]();
  (await after)?.[Symbol.dispose]();
  assert.equal(slot.status().holder, null);
});

test('whatever comes, waits, leaves and ends, one holds the slot and nothing is forgotten', async () => {
  const { slot, ticket, ids } = world({ calledMs: 1 });
  let holders = 0;
  let over = 0;
  let seed = 7;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const pause = (mostMs: number) => new Promise((resolve) => setTimeout(resolve, random() * mostMs));
  async function request(id: string) {
    const left = new AbortController();
    const own = ticket(id, random() < 0.2 ? 0 : random() * 80);
    if (random() < 0.3) setTimeout(() => left.abort(new GatewayError('client_left', {})), random() * 40);
    try {
      await own.comesUp(left.signal);
      await pause(3);
      if (random() < 0.1) throw new GatewayError('missing_file', { field: 'file', other: '' });
      using _hold = await own.take(left.signal);
      holders += 1;
      assert.equal(holders, 1);
      await pause(2);
      holders -= 1;
    } catch (error) {
      assert(error instanceof GatewayError, String(error));
    } finally {
      own.end();
      over += 1;
    }
  }
  for (let n = 0; n < 300; n += 1) {
    void request(`r${n}`);
    await pause(2);
  }
  await until('all are over', () => over === 300, 20_000);
  assert.deepEqual([ids(), slot.status().holder], [[], null]);
});

test('the wait is read from Prefer as RFC 7240 writes it, and what has no meaning is ignored', () => {
  const read = (value: string | undefined) => preferredWaitSec({ get: () => value } as never) ?? 0;
  assert.deepEqual(
    [
      'wait=10',
      'Wait = "10"',
      'respond-async, wait=10',
      'wait=10; x=y',
      'wait=10, wait=20',
      'a="b",wait=10',
    ].map(read),
    [10, 10, 10, 10, 10, 10],
  );
  for (const nothing of [
    undefined,
    '',
    'wait',
    'wait=',
    'wait=-1',
    'wait=1.5',
    'wait=ten',
    'waiting=10',
    'x;wait=1',
  ])
    assert.equal(read(nothing), 0, nothing);
});

test('a request that may wait does not, where the slot is free and nobody is before it', async () => {
  const { ticket, ids } = world();
  let isUp = false;
  void ticket('a', 500)
    .comesUp(FOREVER)
    .then(() => {
      isUp = true;
    });
  await settled();
  assert.deepEqual([isUp, ids()], [true, []]);
});

test('one that comes while the slot is free for a called one is behind those that wait', async () => {
  const { slot, ticket, come, ids, served } = world();
  const held = slot.take('tts', 'holder');
  const sending = ticket('sending');
  const called = sending.comesUp(FOREVER);
  const before = come('before');
  held[Symbol.dispose]();
  await called;
  const behind = come('behind');
  await settled();
  assert.deepEqual([ids(), served], [['before', 'behind'], []]);
  sending.end();
  (await before)[Symbol.dispose]();
  (await behind)[Symbol.dispose]();
  assert.deepEqual(served, ['before', 'behind']);
});

test('both waits together are no longer than was asked for, and the time waited so far is told', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    let nowMs = 0;
    const pass = (ms: number) => {
      nowMs += ms;
      mock.timers.tick(ms);
    };
    const slot = createSlot();
    const line = createWaitingLine(slot, { requests: 32, calledMs: 60_000 }, () => nowMs);
    const own = line.ticket({
      category: 'asr',
      requestId: 'a',
      network: '',
      waitMs: 400,
      onWaited: () => undefined,
    });
    const first = slot.take('llm', 'holder');
    const called = own.comesUp(FOREVER);
    pass(100);
    first[Symbol.dispose]();
    await called;
    using _second = slot.take('llm', 'holder');
    const refused = assert.rejects(own.take(FOREVER), { code: 'slot_busy' });
    assert.equal(line.waiting()[0]?.waitedMs, 100);
    pass(299);
    assert.equal(line.waiting()[0]?.waitedMs, 399);
    pass(1);
    assert.deepEqual(line.waiting(), []);
    await refused;
  } finally {
    mock.timers.reset();
  }
});
