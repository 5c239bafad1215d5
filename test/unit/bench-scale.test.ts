/** The simulation of docs/scale.md gives what queueing theory gives where it has formulas: `npm run bench -- scale`. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { simulateWaits } from '../../bench/load/queue-simulation.ts';
import { HOLDS, holdSecOf, scalePicture, scaleReport } from '../../bench/load/scale.ts';

const near = (figure: number, expected: number, within: number, what: string) =>
  assert(Math.abs(figure / expected - 1) <= within, `${what}: ${figure}, and the formula has ${expected}`);

test('constant times wait as the Pollaczek-Khinchine formula says of M/D/1', () => {
  for (const utilization of [0.3, 0.5, 0.8]) {
    const { meanSec } = simulateWaits({ slots: 1, utilization, holdSec: [2] }, 400_000);
    near(meanSec, (2 * utilization) / (2 * (1 - utilization)), 0.05, `${utilization}`);
  }
});

test('the times of recordings wait as the Pollaczek-Khinchine formula says of M/G/1', () => {
  const mean = HOLDS.reduce((sum, sec) => sum + sec, 0) / HOLDS.length;
  const square = HOLDS.reduce((sum, sec) => sum + sec * sec, 0) / HOLDS.length;
  const { meanSec } = simulateWaits({ slots: 1, utilization: 0.6, holdSec: HOLDS }, 400_000);
  near(meanSec, ((0.6 / mean) * square) / (2 * (1 - 0.6)), 0.1, 'M/G/1');
});

/** The quantiles of an exponential distribution, to stand for it in `holdSec`. */
function exponentialHolds(meanSec: number): number[] {
  const count = 10_000;
  return Array.from({ length: count }, (_, i) => -meanSec * Math.log(1 - (i + 0.5) / count));
}

/** The probability that a request waits, in an M/M/c queue (Erlang's C formula). */
function erlangC(slots: number, utilization: number): number {
  const offered = slots * utilization;
  let blocked = 1; // Erlang's B formula, from no slot on
  for (let n = 1; n <= slots; n++) blocked = (offered * blocked) / (n + offered * blocked);
  return blocked / (1 - utilization * (1 - blocked));
}

test('exponential times wait as the formula of Erlang says of M/M/c, in the mean and in the percentiles', () => {
  const holdSec = exponentialHolds(3);
  for (const [slots, utilization] of [
    [1, 0.7],
    [3, 0.8],
    [10, 0.9],
    [30, 0.9],
  ] as const) {
    const waits = simulateWaits({ slots, utilization, holdSec }, 400_000);
    const waiting = erlangC(slots, utilization);
    const restSec = 3 / (slots * (1 - utilization));
    near(waits.meanSec, waiting * restSec, 0.06, `mean of ${slots}`);
    near(waits.p95Sec, restSec * Math.log(waiting / 0.05), 0.06, `p95 of ${slots}`);
  }
});

test('the same seed gives the same waits, and another one others', () => {
  const load = { slots: 3, utilization: 0.8, holdSec: HOLDS };
  assert.deepEqual(simulateWaits(load, 1000, 5), simulateWaits(load, 1000, 5));
  assert.notDeepEqual(simulateWaits(load, 1000, 5), simulateWaits(load, 1000, 6));
});

test('the times of the slot are those that were measured', () => {
  const growth = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8');
  const UNITS = { s: 1, min: 60, h: 3600 };
  const rows = [...growth.matchAll(/^\| (\d+) (s|min|h) +\| ([\d.]+) s +\| 0\.\d+ /gm)];
  assert(rows.length >= 10);
  for (const [, count, unit = 's', sec] of rows)
    near(holdSecOf(Number(count) * UNITS[unit as keyof typeof UNITS]), Number(sec), 1e-9, `${count} ${unit}`);
});

test('the table and the picture on the page are those of the simulation', () => {
  const page = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8');
  for (const row of scaleReport()
    .split('\n')
    .filter((line) => line.startsWith('|')))
    assert(page.includes(row), row);
  const picture = readFileSync(new URL('../../docs/images/scale-waits.svg', import.meta.url), 'utf8');
  assert.equal(picture, scalePicture());
});
