/** What one channel of a call holds of the other one is told from its own voice, and mono written as stereo from both. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBleed, levelsOf, withoutBleed } from '../../src/audio/bleed.ts';
import { seeded } from '../voices.ts';

const RATE = 16_000;
const WINDOW = 512;
const SECONDS = 24;
type Span = [start: number, end: number];
/** Who speaks when: the second 12 to 14 belongs to both. */
const TURNS: [left: Span[], right: Span[]] = [
  [[0.5, 4], [10, 14], [18, 20]], // biome-ignore format: a row of spans
  [[5, 9], [12, 16.5]], // biome-ignore format: a row of spans
];

/** A voice of syllables, each a burst of noise of its own length and loudness. */
function voice(spans: readonly Span[], seed: number): Float32Array {
  const random = seeded(seed);
  const samples = new Float32Array(SECONDS * RATE);
  for (const [start, end] of spans)
    for (let at = start; at < end; ) {
      const [seconds, pause] = [0.08 + 0.17 * random(), 0.02 + 0.12 * random()];
      const [from, to, loudness] = [at * RATE, Math.min(end, at + seconds) * RATE, 0.05 + 0.2 * random()];
      for (let i = Math.round(from); i < to; i += 1)
        samples[i] = loudness * Math.sin((Math.PI * (i - from)) / (to - from)) * (2 * random() - 1);
      at += seconds + pause;
    }
  return samples;
}

const LEFT = voice(TURNS[0], 1);
const RIGHT = voice(TURNS[1], 2);
const noise = (seed: number, decibels = -70) => {
  const random = seeded(seed);
  return (samples: Float32Array) =>
    samples.map((sample) => sample + 10 ** (decibels / 20) * (2 * random() - 1));
};
/** A sound as it comes in the other channel. */
const echo = (samples: Float32Array, decibels: number, lagSec: number) =>
  samples.map((_, i) => 10 ** (decibels / 20) * (samples[i - Math.round(lagSec * RATE)] ?? 0));
const sum = (a: Float32Array, b: Float32Array) => a.map((sample, i) => sample + (b[i] as number));

async function bleedIn(...channels: [left: Float32Array, right: Float32Array]) {
  async function* blocks(samples: Float32Array) {
    for (let at = 0; at < samples.length; at += 100 * WINDOW) yield samples.subarray(at, at + 100 * WINDOW);
  }
  const [left, right] = channels.map((samples) => levelsOf(blocks(samples)));
  return findBleed((await left) ?? assert.fail(), (await right) ?? assert.fail());
}

/** The share of the windows in these spans that are bleed. */
function share(bleed: Uint8Array, spans: readonly Span[]): number {
  const found = spans.flatMap(([start, end]) => [
    ...bleed.subarray(Math.round((start * RATE) / WINDOW), Math.round((end * RATE) / WINDOW)),
  ]);
  return found.reduce((all, one) => all + one, 0) / found.length;
}

function assertFound([inLeft, inRight]: readonly Uint8Array[], what: string): void {
  assert(inLeft !== undefined && inRight !== undefined);
  assert(share(inLeft, TURNS[0]) < 0.02, `${what}: left`);
  assert(share(inRight, TURNS[1]) < 0.02, `${what}: right`);
  // Half a second is left out where one stops and the other one begins.
  assert(share(inLeft, [[5.5, 8.5], [14.5, 16]]) > 0.95, `${what}: of the right one`); // biome-ignore format: a row of spans
  assert(share(inRight, [[1, 3.5], [10.5, 11.5], [18.5, 20]]) > 0.95, `${what}: of the left one`); // biome-ignore format: a row of spans
}

for (const [
  decibels,
  lag,
] of [[-15, 0], [-15, 0.06], [-15, 0.25], [-25, 0.06], [-25, -0.1], [-35, 0], [-35, 0.25]] as const) // biome-ignore format: a row of cases
  test(`bleed of ${decibels} dB after ${lag} s is found, and who speaks stays, also where both do`, async () => {
    const left = noise(3)(sum(LEFT, echo(RIGHT, decibels, lag)));
    const right = noise(4)(sum(RIGHT, echo(LEFT, decibels, lag)));
    const found = await bleedIn(left, right);
    assert(found !== null);
    assertFound(found, `${decibels} dB`);
  });

test('a soft channel in which the other one is louder than its own voice loses that one only', async () => {
  const soft = echo(RIGHT, -20, 0);
  const [left, right] = [sum(LEFT, echo(soft, -15, 0.06)), sum(soft, echo(LEFT, -15, 0.06))];
  // Where both speak at once, the bleed hides the soft voice.
  const [inLeft, inRight] = (await bleedIn(noise(3, -90)(left), noise(4, -90)(right))) ?? assert.fail();
  assert(share(inLeft, TURNS[0]) < 0.02);
  assert(share(inRight, [[5, 9], [14.5, 16.5]]) < 0.05); // biome-ignore format: a row of spans
  assert(share(inRight, [[1, 3.5], [10.5, 11.5], [18.5, 20]]) > 0.95); // biome-ignore format: a row of spans
});

test('a channel that is recorded so softly that its voice is louder in the other one is known by the turns', async () => {
  const [left, right] = [sum(LEFT, echo(RIGHT, -15, 0.06)), sum(RIGHT, echo(LEFT, -15, 0.06))];
  const found = await bleedIn(noise(3)(left), noise(4)(echo(right, -20, 0)));
  assertFound(found ?? assert.fail(), 'softly recorded');
});

test('where nothing bleeds nothing is silenced, however soft one of both is, and whatever is on the other side', async () => {
  const music = LEFT.map((_, i) => 0.1 * Math.sin(i / 9) * (1 + 0.5 * Math.sin(i / 3000)));
  for (const [left, right] of [
    [LEFT, RIGHT],
    [LEFT, echo(RIGHT, -20, 0)],
    [music, echo(RIGHT, -20, 0)],
    [LEFT, new Float32Array(LEFT.length)],
    [voice([[0, SECONDS]], 5), echo(voice([[0, SECONDS]], 6), -12, 0)],
  ] as const) {
    const [inLeft, inRight] = (await bleedIn(noise(3)(left), noise(4)(right))) ?? assert.fail();
    assert(![...inLeft, ...inRight].includes(1));
  }
});

test('two channels of one sound are known, and one who speaks alone with an echo is not two', async () => {
  const both = sum(LEFT, RIGHT);
  for (const other of [both, echo(both, -3, 0), echo(both, -10, 0.28), both.map((sample) => -sample)]) {
    assert.equal(await bleedIn(both, other), null);
    assert.equal(await bleedIn(noise(3, -50)(both), noise(4, -50)(other)), null);
  }
  const tones = LEFT.map((_, i) => (i % (4 * RATE) < 2 * RATE ? 0.3 * Math.sin(i / 9) : 0));
  assert.equal(await bleedIn(tones, tones), null, 'tones with pauses');
  const [inLeft, inRight] = (await bleedIn(LEFT, echo(LEFT, -15, 0.06))) ?? assert.fail();
  assert.equal(share(inLeft, [[0, SECONDS]]), 0);
  assert(share(inRight, [[1, 3.5], [10.5, 13.5]]) > 0.95); // biome-ignore format: a row of spans
});

test('bleed is measured anew within a long call', async () => {
  const repeated = (samples: Float32Array) => {
    const all = new Float32Array(8 * samples.length);
    for (let i = 0; i < 8; i += 1) all.set(samples, i * samples.length);
    return all;
  };
  const softer = (samples: Float32Array) =>
    samples.map((sample, i) => sample * (i < samples.length / 2 ? 0.18 : 0.02));
  const [left, right] = [repeated(LEFT), repeated(RIGHT)];
  const found = await bleedIn(noise(3)(sum(left, softer(right))), noise(4)(sum(right, softer(left))));
  const at = (bleed: Uint8Array, sec: number) =>
    bleed.subarray((sec * RATE) / WINDOW, ((sec + SECONDS) * RATE) / WINDOW);
  for (const sec of [SECONDS, 6 * SECONDS])
    assertFound(
      (found ?? assert.fail()).map((bleed) => at(bleed, sec)),
      `at ${sec} s`,
    );
});

test('bleed becomes silence without a click, across blocks, and all other samples stay as they are', async () => {
  const bleed = Uint8Array.from([0, 1, 1, 1, 0, 0]);
  async function* blocks() {
    for (const windows of [2, 2, 2]) yield new Float32Array(windows * WINDOW).fill(0.5);
  }
  const heard: number[] = [];
  for await (const block of withoutBleed(blocks(), bleed)) heard.push(...block);
  const at = (window: number) => heard.slice(window * WINDOW, (window + 1) * WINDOW);
  for (const window of [0, 4, 5]) assert(at(window).every((sample) => sample === 0.5));
  assert(at(2).every((sample) => sample === 0));
  assert(heard.every((sample, i) => i === 0 || Math.abs(sample - (heard[i - 1] ?? 0)) < 0.01));
});
