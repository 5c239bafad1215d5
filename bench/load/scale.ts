/**
 * What docs/scale.md says of waits and gateways, from the times that docs/performance.md has measured: how long requests
 * wait before several gateways, and how many gateways a day's audio needs.
 *
 *   npm run bench -- scale [--write]
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../common/machine.ts';
import { total } from '../common/numbers.ts';
import { WRITE } from '../common/options.ts';
import { findPlace, markdownTable } from '../common/page.ts';
import { type Point, plot } from '../common/plot.ts';
import { simulateWaits } from './queue-simulation.ts';

/** Seconds of speech and of the slot: `multilingual-base` on 2 cores, from the table of growth in docs/performance.md. */
const MEASURED: readonly (readonly [audioSec: number, holdSec: number])[] = [
  [1, 0.07],
  [2, 0.08],
  [5, 0.11],
  [10, 0.22],
  [30, 0.53],
  [60, 1.0],
  [120, 1.91],
  [300, 4.15],
  [600, 8.31],
  [1800, 23.74],
  [3600, 46.77],
  [7200, 93.47],
  [10_800, 141.71],
];

/** The time of a request, by the two measured ones between which its length lies. */
export function holdSecOf(audioSec: number): number {
  const above = MEASURED.findIndex(([sec]) => sec >= audioSec);
  const [[fromSec, from], [toSec, to]] = [
    MEASURED[Math.max(0, above < 0 ? MEASURED.length - 2 : above - 1)] ?? [0, 0],
    MEASURED[above < 0 ? MEASURED.length - 1 : Math.max(1, above)] ?? [1, 0],
  ];
  return from + ((to - from) * (audioSec - fromSec)) / (toSec - fromSec);
}

/**
 * Recordings: their lengths are log-normal with a median of 5 min and a sigma of 1, between 1 s and 3 h, so the mean is
 * 8 min and one of twenty is longer than 26 min. An assumption; a reader's own lengths may be put here.
 */
const MEDIAN_SEC = 300;
const SIGMA = 1;
const LENGTHS_SEC = normalQuantiles(2000).map((z) =>
  Math.min(10_800, Math.max(1, MEDIAN_SEC * Math.exp(SIGMA * z))),
);
export const HOLDS = LENGTHS_SEC.map(holdSecOf);

const mean = (numbers: readonly number[]) => total(numbers) / numbers.length;
const MEAN_HOLD_SEC = mean(HOLDS);
/** Seconds of the slot for each second of audio, over all requests. */
const FACTOR = MEAN_HOLD_SEC / mean(LENGTHS_SEC);

const SLOTS = [1, 3, 10, 30];
const UTILIZATIONS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
const REQUESTS = 200_000;

/** Waits against the share of the time in which the slots are held. */
export function scalePicture(): string {
  const runs = SLOTS.map((slots) =>
    UTILIZATIONS.map((utilization) => ({
      utilization,
      ...simulateWaits({ slots, utilization, holdSec: HOLDS }, REQUESTS),
    })),
  );
  const series = (of: 'p50Sec' | 'p95Sec') =>
    SLOTS.map((slots, i) => ({
      name: slots === 1 ? '1 gateway' : String(slots),
      // A logarithmic axis has no place for a wait of nothing.
      points: (runs[i] ?? []).flatMap((run): Point[] =>
        run[of] < 0.01 ? [] : [{ x: run.utilization * 100, y: run[of] }],
      ),
    }));
  const ticks = (numbers: number[]) => numbers.map((value) => ({ value, text: String(value) }));
  const x = {
    label: '% of the time in which slots are held',
    scale: 'linear',
    ticks: ticks([20, 40, 60, 80, 90, 95]),
  } as const;
  const y = { label: 's in line', scale: 'log' } as const;
  return plot('Waits of recordings in one line before all gateways', [
    { title: 'Half of the requests wait for less', x, y, series: series('p50Sec') },
    { title: '95 % of the requests wait for less', x, y, series: series('p95Sec') },
  ]);
}

/** The busiest hour of a day has this many times the audio of its mean hour: an assumption. */
const BUSIEST = 2.5;
/** The wait that 95 % of the requests of the busiest hour may have. */
const LONGEST_P95_SEC = 10;
/** The share of that hour in which slots may be held: the rest is for gateways that restart, and for a day that is busier. */
const MOST_HELD = 0.85;

/** The fewest gateways with which the busiest hour is within both. */
function gatewaysFor(hoursADay: number) {
  const slotsHeld = (hoursADay / 24) * BUSIEST * FACTOR;
  const least = Math.ceil(slotsHeld / MOST_HELD);
  for (let slots = least; slots < least + 100; slots++) {
    const utilization = slotsHeld / slots;
    const waits = simulateWaits({ slots, utilization, holdSec: HOLDS }, REQUESTS);
    if (waits.p95Sec <= LONGEST_P95_SEC) return { slots, utilization, waits };
  }
  throw new Error(`The waits for ${hoursADay} h a day do not fall with more gateways`);
}

export function scaleReport(): string {
  const rows = [100, 1000, 10_000, 100_000, 1_000_000].map((hours) => {
    const { slots, utilization, waits } = gatewaysFor(hours);
    return [
      hours.toLocaleString('en'),
      String(slots),
      `${Math.round((utilization / BUSIEST) * 100)} %`,
      `${Math.round(utilization * 100)} %`,
      `${waits.p50Sec.toFixed(1)} s`,
      `${waits.p95Sec.toFixed(1)} s`,
    ];
  });
  return [
    `A mean request has ${(mean(LENGTHS_SEC) / 60).toFixed(1)} min of audio and holds the slot for ${MEAN_HOLD_SEC.toFixed(1)} s: a real-time factor of ${FACTOR.toFixed(4)}.`,
    markdownTable(
      [
        'Hours of audio a day',
        'gateways',
        'held, mean of the day',
        'held, busiest hour',
        'wait then, p50',
        'p95',
      ],
      rows,
    ),
    `The fewest gateways with which 95 % of the requests of the busiest hour wait for less than ${LONGEST_P95_SEC} s and the slots are held for at most ${MOST_HELD * 100} % of it, if it has ${BUSIEST} times the audio of a mean hour.`,
  ].join('\n\n');
}

/** The inverse of the normal distribution at evenly spaced probabilities, by bisection of its sum. */
function normalQuantiles(count: number): number[] {
  const step = 0.0005;
  const quantiles: number[] = [];
  let sum = 0;
  for (let z = -6; quantiles.length < count && z < 6; z += step) {
    sum += (step * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI);
    while (quantiles.length < count && sum >= (quantiles.length + 0.5) / count) quantiles.push(z);
  }
  return quantiles;
}

if (process.argv[1] === import.meta.filename) {
  const { values: options } = parseArgs({ options: { write: WRITE } });
  const place = options.write ? findPlace('scale', 'docs/scale.md') : null;
  const report = scaleReport();
  process.stdout.write(`${report}\n`);
  place?.write(report);
  if (options.write) writeFileSync(join(ROOT, 'docs/images/scale-waits.svg'), scalePicture());
}
