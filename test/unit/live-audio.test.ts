/** Audio that arrives live: what the encodings decode to, and what the resampler keeps and removes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIVE_RATES, liveDecoder } from '../../src/audio/live/encodings.ts';
import { createResampler } from '../../src/audio/live/resampler.ts';

const tone = (hz: number, rate: number) =>
  Float32Array.from({ length: rate }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hz * i) / rate));

/** The root mean square of the middle, in dB of that of the tones above. */
function level(samples: Float32Array): number {
  const middle = samples.subarray(samples.length / 4, (3 * samples.length) / 4);
  const power = middle.reduce((sum, s) => sum + s * s, 0) / middle.length;
  return 10 * Math.log10(power / 0.125 + 1e-12);
}

test('each rate becomes 16 kHz: speech keeps its level, and what 16 kHz cannot hold is gone', () => {
  for (const rate of LIVE_RATES) {
    const out = createResampler(rate).take(tone(1000, rate));
    assert(Math.abs(out.length - 16_000) < 200, `${rate}: ${out.length} samples`);
    assert(Math.abs(level(out)) < 0.05, `${rate}: 1 kHz at ${level(out)} dB`);
    if (rate <= 22_050) continue;
    const alias = level(createResampler(rate).take(tone(9500, rate)));
    assert(alias < -60, `${rate}: 9.5 kHz at ${alias} dB`);
  }
});

test('a sound has the same phase at both rates', () => {
  const out = createResampler(24_000).take(tone(440, 24_000));
  const expected = tone(440, 16_000);
  for (let i = 1000; i < 15_000; i += 1)
    assert(Math.abs((out[i] ?? 0) - (expected[i] ?? 0)) < 1e-3, `sample ${i}`);
});

test('how the audio is cut into pieces changes no sample, also within one', () => {
  const bytes = new Uint8Array(Int16Array.from(tone(700, 24_000), (s) => s * 32_767).buffer);
  const whole = liveDecoder({ encoding: 'pcm16', rate: 24_000 }).take(bytes);
  const decoder = liveDecoder({ encoding: 'pcm16', rate: 24_000 });
  const pieces: number[] = [];
  for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7 + 3) % 1001)
    pieces.push(...decoder.take(bytes.slice(at, at + size)));
  assert.deepEqual(Float32Array.from(pieces), whole);
});

test('a stray byte makes no noise of what follows it', () => {
  const bytes = new Uint8Array(Int16Array.from(tone(733.3, 24_000), (s) => s * 32_767).buffer);
  const decoder = liveDecoder({ encoding: 'pcm16', rate: 24_000 });
  const pieces: number[] = [];
  for (let at = 0; at < bytes.length; at += 4800) {
    pieces.push(...decoder.take(bytes.slice(at, at + 4800)));
    if (at === 4800) pieces.push(...decoder.take(Uint8Array.of(7)));
  }
  const expected = tone(733.3, 16_000);
  for (let i = 0; i < pieces.length; i += 1)
    assert(Math.abs((pieces[i] ?? 0) - (expected[i] ?? 0)) < 0.02, `sample ${i}`);
  assert(Math.abs(pieces.length - expected.length) < 100);
});

test('the end of the audio gives all of it, half a sample aside, and what follows is something new', () => {
  for (const rate of LIVE_RATES) {
    const decoder = liveDecoder({ encoding: 'pcm16', rate });
    const bytes = new Uint8Array(Int16Array.from(tone(700, rate), (s) => s * 32_767).buffer);
    const heard = () => [...decoder.take(bytes), ...decoder.take(Uint8Array.of(1)), ...decoder.end()];
    const first = heard();
    assert(first.length >= 16_000 && first.length <= 16_001, `${first.length} of ${rate} Hz`);
    assert.deepEqual(heard(), first);
  }
});

test('the laws of telephony decode as in ITU-T G.711', () => {
  const decode = (encoding: 'mulaw' | 'alaw', codes: number[]) =>
    [...liveDecoder({ encoding, rate: 16_000 }).take(Uint8Array.from(codes))].map((s) => s * 32_768);
  assert.deepEqual(
    decode('mulaw', [0xff, 0x7f, 0x80, 0x00, 0xef]).map((s) => s + 0),
    [0, 0, 32_124, -32_124, 132],
  );
  assert.deepEqual(decode('alaw', [0xd5, 0x55, 0xaa, 0x2a, 0x80]), [8, -8, 32_256, -32_256, 5504]);
});
