/** The simulation of `npm run bench -- lanes` gives what Amdahl's law and plain arithmetic give where they have an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { simulateLanes } from '../../bench/load/lane-simulation.ts';

const near = (value: number, expected: number) =>
  assert(Math.abs(value - expected) < 1e-9, `${value} and not ${expected}`);
const atOnce = (chunks: number[], serial: number) => ({ chunks, foundSec: chunks.map(() => 0), serial });

test('one lane obeys Amdahl’s law', () => {
  const chunks = [3, 1, 2];
  for (const [serial, threads] of [
    [0, 4],
    [0.25, 3],
    [1, 8],
  ] as const) {
    const { wallSec, speedup } = simulateLanes(atOnce(chunks, serial), threads, 1);
    near(wallSec, 6 * (serial + (1 - serial) / threads));
    near(speedup, 6 / wallSec);
  }
});

test('work that is serial in each chunk gains from lanes alone', () => {
  near(simulateLanes(atOnce([1, 1, 1, 1, 1, 1], 1), 4, 3).wallSec, 2);
});

test('left over threads go to the first lanes, and those of a lane that ends go to the others', () => {
  // Two lanes have 2 and 1 of three threads. When the first one ends, half of the second one is left, for all three.
  near(simulateLanes(atOnce([1, 1], 0), 3, 2).wallSec, 0.5 + 0.5 / 3);
});

test('a chunk waits until it is found', () => {
  near(simulateLanes({ chunks: [1, 1], foundSec: [0.5, 4], serial: 0 }, 2, 2).wallSec, 4 + 0.5);
});

test('no number of lanes is faster than all threads, and none is slower than one', () => {
  const positive = fc.double({ min: 0.01, max: 10, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(positive, { minLength: 1, maxLength: 40 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 1, max: 32 }),
      fc.integer({ min: 1, max: 32 }),
      (chunks, serial, threads, lanes) => {
        const used = Math.min(lanes, threads);
        const { speedup } = simulateLanes(atOnce(chunks, serial), threads, used);
        assert(speedup <= threads + 1e-6 && speedup >= 1 - 1e-6, `${speedup}`);
      },
    ),
  );
});
