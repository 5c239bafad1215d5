/** Speech is cut in the middle of its pauses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audibleSec, betweenPauses } from '../../src/transcription/whisper/pauses.ts';

const RATE = 16_000;

/** A tone that is loud and soft in turns. @param parts seconds, loud ones first */
function speech(parts: number[], soft = 0.001): Float32Array {
  const samples = parts.flatMap((sec, part) =>
    Array.from({ length: sec * RATE }, (_, i) => (part % 2 === 0 ? 0.3 : soft) * Math.sin(i / 8)),
  );
  return Float32Array.from(samples);
}

const cutsOf = (samples: Float32Array) => betweenPauses(samples).map(({ end }) => end / RATE);

test('a cut is in the middle of a pause, and the pieces cover everything', () => {
  const samples = speech([2, 0.4, 1.5, 0.6, 3]);
  const pieces = betweenPauses(samples);
  assert.deepEqual(cutsOf(samples), [2.2, 4.2, 7.5]);
  assert.deepEqual(
    pieces.map(({ start }) => start),
    [0, ...pieces.slice(0, -1).map(({ end }) => end)],
  );
});

test('a gap as short as between two sounds is no pause, and neither is one that is not much softer', () => {
  assert.deepEqual(cutsOf(speech([2, 0.2, 2])), [4.2]);
  assert.deepEqual(cutsOf(speech([2, 0.4, 2], 0.1)), [4.4]);
});

test('a piece is at least a second long, and silence around the speech makes none', () => {
  assert.deepEqual(cutsOf(speech([0.5, 0.4, 0.5, 0.4, 2])), [1.6, 3.8]);
  assert.deepEqual(cutsOf(speech([0, 0.5, 2, 0.4])), [2.9]);
  assert.deepEqual(cutsOf(new Float32Array(RATE)), [1]);
  assert.deepEqual(cutsOf(new Float32Array(0)), [0]);
});

test('what counts as loud does not depend on where it is', () => {
  assert.deepEqual(cutsOf(speech([2, 0.4, 2, 1])), [2.2, 5.4]);
});

test('speech is heard without its pauses, also at its ends, and with the closures of its consonants', () => {
  const heard = (parts: number[], soft?: number) => Number(audibleSec(speech(parts, soft)).toFixed(2));
  assert.equal(heard([2, 0.4, 1.5, 0.6, 3]), 6.5);
  assert.equal(heard([0, 0.5, 2, 0.4]), 2);
  assert.equal(heard([2, 0.08, 2]), 4.08);
  assert.equal(heard([2, 0.4, 2], 0.1), 4.4, 'a soft voice is no pause');
  assert.deepEqual(
    [0, RATE].map((length) => audibleSec(new Float32Array(length))),
    [0, 1],
  );
});
