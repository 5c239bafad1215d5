/** Who gives way where all places or bytes are taken, who never does, and how a wait for a place ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedPlaces, type Holder, largestBy } from '../../src/limits/bounded-places.ts';

interface Named extends Holder {
  name: string;
}

/** The oldest holder of the network that holds most is evicted. The first letter of a name is its network. */
function setUp(most: number, options: { unit?: 'places' | 'bytes'; stays?: string } = {}) {
  const evicted: string[] = [];
  const places = new BoundedPlaces<Named>({
    most,
    unit: options.unit ?? 'places',
    isEvictable: ({ name }) => name !== options.stays,
    choose: ([oldest]) => oldest,
    evict: ({ name }) => void evicted.push(name),
  });
  const holders = new Map<string, Named>();
  const holder = (name: string): Named => {
    const known = holders.get(name) ?? { name, network: name.slice(0, 1) };
    holders.set(name, known);
    return known;
  };
  return {
    places,
    evicted,
    holder,
    take: (name: string, amount?: number) => places.take(holder(name), amount),
    wait: (name: string, maxWaitMs = 60_000, signal?: AbortSignal) =>
      places.takeOrWait(holder(name), maxWaitMs, signal),
    release: (name: string) => places.release(holder(name)),
    names: () => places.holders().map(({ name }) => name),
  };
}

test('a network that holds all places gives them up to another one until both hold the same', () => {
  const { take, evicted, names } = setUp(4);
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2']) assert.ok(take(name), name);
  assert.deepEqual(evicted, ['a1', 'a2']);
  assert.equal(take('b3'), false);
  assert.deepEqual(names(), ['a3', 'a4', 'b1', 'b2']);
});

test('two networks that ask in turn for ever do not take the same place from each other', () => {
  for (const most of [1, 2, 3, 5]) {
    const { take, evicted } = setUp(most);
    for (let i = 0; i < most; i++) take(`a${i}`);
    for (let i = 0; i < 20; i++) take(`${'ba'[i % 2]}${most + i}`);
    assert.ok(evicted.length <= most / 2, `${most} places: ${evicted}`);
  }
});

test('a newcomer gets a place from the networks that hold most, and from no other', () => {
  const { take, evicted } = setUp(6);
  for (const name of ['b1', 'a1', 'a2', 'c1', 'c2', 'c3']) take(name);
  assert.ok(take('d1'));
  assert.deepEqual(evicted, ['c1']);
  assert.ok(take('e1'), 'a and c hold two now');
  assert.deepEqual(evicted, ['c1', 'a1']);
});

test('one that may not give way counts for its network and stays', () => {
  const { take, evicted, names } = setUp(2, { stays: 'a1' });
  for (const name of ['a1', 'a2', 'b1']) assert.ok(take(name));
  assert.deepEqual([evicted, names()], [['a2'], ['a1', 'b1']]);
});

test('bytes go to a network that would hold at most half as much, from as many others as it takes', () => {
  const { take, places, holder, evicted } = setUp(100, { unit: 'bytes' });
  for (const name of ['a1', 'a2', 'a3', 'a4']) assert.ok(take(name, 25));
  assert.equal(places.hasRoom({ network: 'b' }, 51), false);
  assert.equal(take('b1', 51), false);
  assert.ok(places.hasRoom({ network: 'b' }, 37));
  assert.deepEqual(evicted, [], 'a question takes nothing');
  assert.ok(take('b1', 30));
  assert.deepEqual(evicted, ['a1', 'a2']);
  assert.equal(take('b1', 30), false, 'it would hold more than the half');
  assert.ok(take('b1', 20), 'as much as is left');
  assert.deepEqual([places.amountOf(holder('b1')), places.shares()({ network: 'a' })], [50, 50]);
});

test('what was released is free once, also when its holder had to give way before', () => {
  const { take, release, evicted } = setUp(2);
  for (const name of ['a1', 'a2', 'b1']) assert.ok(take(name));
  assert.deepEqual(evicted, ['a1']);
  release('a1');
  assert.equal(take('b2'), false);
  release('b1');
  release('b1');
  assert.ok(take('b2'));
  assert.equal(take('b3'), false);
});

test('a place that is released goes to the network that holds least of those that wait', async () => {
  const { take, wait, release, names } = setUp(3);
  for (const name of ['a1', 'b1', 'b2']) take(name);
  const waits = [wait('b3'), wait('a2')];
  release('a1');
  assert.deepEqual(names(), ['b1', 'b2', 'a2']);
  release('b1');
  assert.deepEqual(await Promise.all(waits), [true, true]);
  assert.deepEqual(names(), ['b2', 'a2', 'b3']);
});

test('a wait ends at its timeout and with its client, and takes no place after that', async () => {
  const { take, wait, release, names } = setUp(1);
  take('a1');
  assert.equal(await wait('a2', 5), false);
  const left = new AbortController();
  const waiting = wait('a3', 60_000, left.signal);
  left.abort(new Error('left'));
  await assert.rejects(waiting, /left/);
  await assert.rejects(wait('a4', 60_000, left.signal), /left/);
  release('a1');
  assert.deepEqual(names(), []);
  assert.equal(await wait('a5'), true);
});

test('the largest is the first of equals', () => {
  assert.equal(
    largestBy(['b', 'aa', 'cc'], ({ length }) => length),
    'aa',
  );
  assert.equal(
    largestBy([], () => 1),
    undefined,
  );
});
