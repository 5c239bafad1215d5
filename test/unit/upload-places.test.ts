/** Which upload gives way to a new one when all places are taken: a scripted clock, and no bytes but their count. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../src/errors.ts';
import { networkOf } from '../../src/limits/network.ts';
import { createUploadBalance, createUploadPlaces } from '../../src/limits/upload-places.ts';

const RATE = { leastBytesPerSec: 1000, leadMs: 2000 };

function setUp(maxUploads: number) {
  let nowMs = 0;
  const places = createUploadPlaces({ maxUploads, graceMs: 0 });
  const ended: string[] = [];
  /** Begins an upload. It has arrived whole after `end`. */
  const begin = (name: string, address: string, signal = new AbortController().signal) => {
    const balance = createUploadBalance(RATE, () => nowMs);
    const claim = {
      ...{ network: networkOf(address), signal },
      behindMs: () => balance.behindMs(0),
      giveUp: ({ code }: GatewayError) => void ended.push(`${name} ${code}`),
    };
    const release = () => places.release(claim);
    return { ...balance, place: places.take(claim), release };
  };
  return {
    begin,
    ended,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const [A, B, C] = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
const OVERLOADED = { code: 'overloaded' };

test('an upload is behind by the time beyond what its bytes are worth, and its lead has a limit', () => {
  let nowMs = 50;
  const balance = createUploadBalance(RATE, () => nowMs);
  assert.equal(balance.behindMs(0), 0);
  nowMs += 500;
  assert.deepEqual([balance.behindMs(0), balance.behindMs(200)], [500, 300]);
  balance.received(1500);
  assert.equal(balance.behindMs(0), -1000);
  balance.received(1_000_000);
  assert.equal(balance.behindMs(0), -2000);
  nowMs += 2001;
  assert.equal(balance.behindMs(0), 1, 'a pause counts at once, however much came before');
  balance.restart(100);
  assert.equal(balance.behindMs(0), -100);
  balance.end();
  assert.equal(balance.behindMs(0), null);
});

test('an address without a place gets one from the address that holds most, which keeps the rate', async () => {
  const { begin, ended, pass } = setUp(4);
  for (const [name, address] of [
    ['a1', A],
    ['a2', A],
    ['a3', A],
    ['b1', B],
  ] as const)
    begin(name, address).received(name === 'a2' ? 100 : 1000);
  pass(50);
  await begin('c1', C).place;
  assert.deepEqual(ended, ['a2 overloaded']);
  await assert.rejects(begin('b2', B).place, OVERLOADED, 'two and two are equal');
  await assert.rejects(begin('a4', A).place, OVERLOADED);
  assert.equal(ended.length, 1);
});

test('an address that holds more gets no place from one that holds fewer, however slow that is', async () => {
  const { begin, ended, pass } = setUp(3);
  begin('b1', B);
  const [a1] = [begin('a1', A), begin('a2', A)];
  pass(5000);
  a1.received(9000);
  await begin('a3', A).place;
  assert.deepEqual(ended, ['a2 request_timeout']);
});

test('within an address the upload that is furthest behind gives way to one that keeps the rate', async () => {
  const { begin, ended, pass } = setUp(3);
  const [a1, a2] = [begin('a1', A), begin('a2', A), begin('a3', A)];
  a1.received(100);
  a2.received(50);
  pass(60);
  await assert.rejects(
    async () => {
      const slow = begin('a4', A);
      pass(1);
      await slow.place;
    },
    OVERLOADED,
    'it does not keep the rate',
  );
  await begin('a5', A).place;
  await begin('a6', A).place;
  assert.deepEqual(ended, ['a3 request_timeout', 'a2 request_timeout']);
  await assert.rejects(begin('a7', A).place, OVERLOADED, 'none is behind');
});

test('a new upload has a moment to show its bytes', async () => {
  const { begin, ended, pass } = setUp(1);
  const first = begin('a1', A);
  first.received(10);
  const second = begin('a2', A);
  pass(20);
  second.received(1000);
  await second.place;
  assert.deepEqual(ended, ['a1 request_timeout']);
});

test('an upload that has arrived whole keeps its place, whatever its address holds', async () => {
  const { begin, ended, pass } = setUp(2);
  const uploads = [begin('a1', A), begin('a2', A)];
  for (const upload of uploads) upload.end();
  pass(60_000);
  await assert.rejects(begin('b1', B).place, OVERLOADED);
  assert.deepEqual(ended, []);
  const waiting = begin('b2', B);
  uploads[0]?.release();
  await waiting.place;
});

test('uploads from 100 addresses give way like those of one', async () => {
  const { begin, ended, pass } = setUp(4);
  for (let i = 0; i < 4; i++) begin(`x${i}`, `198.51.100.${i}`).received(4 - i);
  pass(10);
  await begin('b1', B).place;
  assert.deepEqual(ended, ['x3 request_timeout']);
});

test('a network of IPv6 has one share', async () => {
  const { begin, ended } = setUp(2);
  begin('x1', '2001:db8::1');
  begin('x2', '2001:db8::2');
  await begin('b1', '2001:db8:0:1::1').place;
  assert.deepEqual(ended, ['x1 overloaded']);
});

test('a client that leaves before the decision takes no place', async () => {
  const { begin, ended, pass } = setUp(1);
  begin('a1', A);
  pass(10);
  const left = new AbortController();
  const { place } = begin('a2', A, left.signal);
  left.abort(new Error('left'));
  await assert.rejects(place, /left/);
  assert.deepEqual(ended, []);
});

test('an address whose uploads have all arrived does not shield another that holds too much', async () => {
  const { begin, ended } = setUp(5);
  for (const name of ['a1', 'a2', 'a3']) {
    const upload = begin(name, A);
    await upload.place;
    upload.end();
  }
  for (const name of ['b1', 'b2']) await begin(name, B).place;
  await begin('c', C).place;
  assert.deepEqual(ended, ['b1 overloaded']);
});
