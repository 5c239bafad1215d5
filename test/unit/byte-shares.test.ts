/** Which body gives way where all bodies have used up the bytes that they share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ByteShares, createByteShares } from '../../src/limits/byte-shares.ts';

function body(shares: ByteShares, network: string, refuse: () => void) {
  const own = { network, isWhole: false, refuse };
  return {
    take: (bytes: number) => shares.take(own, bytes),
    arrived() {
      own.isWhole = true;
    },
    release: () => shares.release(own),
  };
}

test('the largest form gives way to one that would hold at most half as much, and to no other', () => {
  const memory = createByteShares(100);
  const gone: string[] = [];
  const open = (name: string) => body(memory, 'a', () => gone.push(name));
  const small = open('small');
  const large = open('large');
  assert.ok(small.take(20));
  assert.ok(large.take(80));
  const late = open('late');
  assert.equal(late.take(41), false);
  assert.deepEqual(gone, []);
  assert.ok(late.take(40));
  assert.deepEqual(gone, ['large']);
  assert.ok(late.take(40), 'what gave way has given its memory back');
  assert.equal(small.take(25), false);
  large.release();
  late.release();
  late.release();
  assert.ok(small.take(80));
});

test('a form that has arrived whole keeps what it holds', () => {
  const memory = createByteShares(100);
  const large = body(memory, 'a', () => assert.fail('it gave way'));
  assert.ok(large.take(100));
  large.arrived();
  const late = body(memory, 'a', () => undefined);
  assert.equal(late.take(10), false);
  large.release();
  assert.ok(late.take(10));
});

test('the address that holds most gives way to one that would hold at most half as much', () => {
  const shares = createByteShares(100);
  const gone: string[] = [];
  const open = (network: string, name: string) => body(shares, network, () => gone.push(name));
  for (const name of ['a1', 'a2', 'a3', 'a4']) assert.ok(open('a', name).take(20));
  const other = open('b', 'b1');
  assert.ok(other.take(20));
  assert.equal(open('a', 'a5').take(11), false, 'the largest body is of an address that holds less');
  assert.deepEqual(
    [['c', 41] as const, ['c', 40] as const, ['a', 11] as const].map(([network, bytes]) =>
      shares.hasRoom({ network }, bytes),
    ),
    [false, true, false],
  );
  assert.ok(other.take(20));
  assert.deepEqual(gone, ['a1']);
  assert.equal(other.take(20), false, 'they hold nearly the same');
});
