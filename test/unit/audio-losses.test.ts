/** What ffmpeg prints becomes losses only where it tells of damage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLossNotes } from '../../src/audio/losses.ts';

type Step = number | string;

/** Numbers are times of the sound, negative ones gaps before the next time, words are about damage. */
function lossesOf(
  steps: Step[],
  end: [number, number | null, boolean] = [100, null, true],
  isDamaged = false,
) {
  const notes = createLossNotes(isDamaged);
  for (const step of steps) {
    if (typeof step === 'string') notes.damage(step);
    else if (step < 0) notes.gap(-step);
    else notes.heard(step);
  }
  notes.end(...end);
  return notes.found.map(({ startSec, endSec }) => [startSec, endSec]);
}

test('a gap is a loss where damage is told of, or where the file is known to be damaged', () => {
  assert.deepEqual(lossesOf([0, 1, -5, 6, 7]), []);
  assert.deepEqual(lossesOf([0, 1, 'invalid', -5, 6, 7]), [[1, 6]]);
  assert.deepEqual(lossesOf([0, 1, -5, 6, 7], undefined, true), [[1, 6]]);
  assert.deepEqual(lossesOf([0, 1, 'invalid', 1.25, -5, 7, 20, -5, 30]), [[1, 7]]);
});

test('damage without a gap is between two times', () => {
  assert.deepEqual(lossesOf([0, 1, 'invalid', 'invalid', 1.25, 1.5, 9, 'invalid', 9.25]), [
    [1, 1.25],
    [9, 9.25],
  ]);
  assert.deepEqual(lossesOf(['invalid', 0, 1]), [], 'ffmpeg looks at the beginning twice');
});

test('an end that is missing is told where the header names it and nothing else explains it', () => {
  assert.deepEqual(lossesOf([0, 9], [9, 20, true]), [[9, 20]]);
  assert.deepEqual(lossesOf([0, 9], [9, 20, false]), []);
  assert.deepEqual(lossesOf([0, 9, 'File ended prematurely'], [9, 20, false]), [[9, 20]]);
  assert.deepEqual(lossesOf([0, 9], [9, 9.9, true]), []);
  assert.deepEqual(lossesOf([0, 9, 'File ended prematurely'], [9, null, true]), []);
  assert.deepEqual(lossesOf([0, 9, 'invalid'], [9.5, null, true]), [[9, 9.5]]);
  assert.deepEqual(lossesOf([0, 9, 'corrupt', -90, 99], [9.5, null, true]), [[9, 9.5]]);
});

test('a last packet that is cut is no loss, also where it is read before the last sound', () => {
  assert.deepEqual(lossesOf([0, 9, 'Packet corrupt', 9.25], [9.4, null, true]), []);
  assert.deepEqual(lossesOf([0, 9, 'incomplete frame', 'corrupt', 9.25], [9.4, null, true]), []);
  assert.deepEqual(lossesOf([0, 5, 'invalid', 5.25, 9, 'Packet corrupt', 9.25], [9.4, null, true]), [
    [5, 5.25],
  ]);
  assert.deepEqual(lossesOf([0, 9, 'Packet corrupt', 9.25], [9.4, 20, true]), [[9.4, 20]]);
  assert.deepEqual(lossesOf([0, 9, 'Packet corrupt', 9.25, 15], [15.4, null, true]), [[9, 9.25]]);
  assert.deepEqual(lossesOf([0, 9, 'invalid', 'corrupt', 9.25], [9.4, null, true]), [[9, 9.25]]);
});

test('losses that are close are one, and their number has a bound', () => {
  assert.deepEqual(lossesOf([0, 1, 'a', 1.25, 'b', 2]), [[1, 2]]);
  const many = Array.from({ length: 1000 }, (_, i): Step[] => [10 * i, 'invalid', 10 * i + 1]).flat();
  const found = lossesOf(many, [10_000, null, true]);
  assert.equal(found.length, 256);
  assert.deepEqual(found.at(-1), [2550, 9991]);
});
