/** Which form gives way where the text fields of all forms have used up their memory (src/http/field-memory.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFieldMemory } from '../../src/http/field-memory.ts';

test('the largest form gives way to one that would hold at most half as much, and to no other', () => {
  const memory = createFieldMemory(100);
  const gone: string[] = [];
  const open = (name: string) => memory.open(() => gone.push(name));
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
  const memory = createFieldMemory(100);
  const large = memory.open(() => assert.fail('it gave way'));
  assert.ok(large.take(100));
  large.arrived();
  const late = memory.open(() => undefined);
  assert.equal(late.take(10), false);
  large.release();
  assert.ok(late.take(10));
});
