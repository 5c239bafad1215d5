/** The playground changes the microphone's rate to that of live sessions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

/** The page's own module, which has no types. */
const RESAMPLER = new URL('../../assets/playground/resampler.js', import.meta.url).href;
const {
  createResampler,
}: { createResampler(from: number, to: number): (samples: Float32Array) => number[] } = await import(
  RESAMPLER
);

const RATE = 24_000;
const sine = (hz: number, rate: number, sec = 0.5) =>
  Float32Array.from({ length: rate * sec }, (_, i) => Math.sin((2 * Math.PI * hz * i) / rate));
const rms = (values: number[]) =>
  Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / values.length);
/** Without the ends, where silence is heard with the tone. */
const middle = (values: number[]) => values.slice(200, -200);

for (const rate of [16_000, 22_050, 24_000, 44_100, 48_000, 96_000]) {
  test(`a tone stays the same tone at the same time: from ${rate} Hz`, () => {
    const heard = createResampler(rate, RATE)(sine(1000, rate));
    assert.ok(Math.abs(heard.length - RATE / 2) < 30, `${heard.length} samples`);
    const expected = sine(1000, RATE);
    assert.ok(rms(middle(heard.map((value, i) => value - (expected[i] ?? 0)))) < 1e-3);
  });
}

test('a tone that the lower rate cannot hold is gone, and comes back as no other', () => {
  for (const [hz, rate] of [
    [14_000, 48_000],
    [20_000, 44_100],
    [40_000, 96_000],
  ] as const)
    assert.ok(rms(middle(createResampler(rate, RATE)(sine(hz, rate)))) < 5e-3, `${hz} Hz`);
});

test('pieces of any length give the samples of the whole', () => {
  const samples = sine(440, 44_100);
  const whole = createResampler(44_100, RATE)(samples);
  const resample = createResampler(44_100, RATE);
  const pieces: number[] = [];
  for (let at = 0, length = 0; at < samples.length; at += length) {
    length = (length * 7 + 1) % 311;
    pieces.push(...resample(samples.subarray(at, at + length)));
  }
  assert.deepEqual(pieces, whole);
});
