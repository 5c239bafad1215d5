/** The echo of an answer in the microphone is no speech, and a person who talks over it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Echo } from '../../src/conversation/echo.ts';
import { WINDOW_SAMPLES } from '../../src/transcription/speech/voice-activity.ts';
import { seeded } from '../voices.ts';

const RATE = 16_000;
const WINDOW_MS = (WINDOW_SAMPLES / RATE) * 1000;
/** The windows of 250 ms, after which speech is known. */
const KNOWN = 8;

/** Something like speech: syllables of a voice whose pitch wanders. */
function voice(seconds: number, pitch: number, seed: number): Float32Array {
  const random = seeded(seed);
  let [phase, hertz, level, aim] = [0, pitch, 0, 1];
  return Float32Array.from({ length: seconds * RATE }, (_, i) => {
    if (i % 1600 === 0) hertz = pitch * (0.8 + 0.4 * random());
    if (i % 2400 === 0) aim = random() < 0.2 ? 0.1 : 0.5 + random();
    level += (aim - level) / 400;
    phase += hertz / RATE;
    let sum = 0;
    for (let k = 1; k <= 12; k += 1) sum += Math.sin(2 * Math.PI * k * phase + k * k * seed) / k;
    return 0.1 * level * sum + 0.001 * (random() - 0.5);
  });
}

const mixed = (...parts: { samples: Float32Array; at: number; gain: number }[]) => {
  const length = Math.max(...parts.map(({ samples, at }) => samples.length + at));
  const sum = new Float32Array(Math.ceil(length / WINDOW_SAMPLES) * WINDOW_SAMPLES);
  for (const { samples, at, gain } of parts)
    for (const [i, sample] of samples.entries()) sum[at + i] = (sum[at + i] ?? 0) + gain * sample;
  return sum;
};

/** For each window of what the microphone hears while `answer` plays, whether it still counts as speech. */
function speechIn(mic: Float32Array, answer: Float32Array, stopAtMs = Number.POSITIVE_INFINITY): boolean[] {
  let now = 0;
  const echo = new Echo(() => now);
  for (let at = 0; at < answer.length; at += 7000) echo.play(answer.subarray(at, at + 7000));
  return Array.from({ length: mic.length / WINDOW_SAMPLES }, (_, i) => {
    now = (i + 1) * WINDOW_MS;
    if (now >= stopAtMs) echo.stop();
    const window = mic.subarray(i * WINDOW_SAMPLES, (i + 1) * WINDOW_SAMPLES);
    return (echo.without(window, Float32Array.of(0.9))[0] ?? 0) > 0;
  });
}

const delayed = (ms: number) => (ms / 1000) * RATE;
const minus20dB = 0.1;
/** Windows in which there is hardly anything but noise do not matter. */
const longestRun = (windows: readonly boolean[], mic: Float32Array) => {
  let [run, longest] = [0, 0];
  for (const [i, isSpeech] of windows.entries()) {
    const window = mic.subarray(i * WINDOW_SAMPLES, (i + 1) * WINDOW_SAMPLES);
    const isLoud = Math.sqrt(window.reduce((sum, s) => sum + s * s, 0) / WINDOW_SAMPLES) > 0.001;
    run = isSpeech && isLoud ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
};

test('an echo of -20 dB is no speech, at any delay', () => {
  const answer = voice(4, 120, 1);
  for (const ms of [50, 130, 210, 300]) {
    const mic = mixed({ samples: answer, at: delayed(ms), gain: minus20dB });
    assert(longestRun(speechIn(mic, answer), mic) < KNOWN, `${ms} ms`);
  }
});

test('a person who talks over the echo is heard within 100 ms', () => {
  const answer = voice(4, 120, 1);
  for (const [name, pitch, gain] of [
    ['another voice', 210, 1],
    ['a quiet one', 210, 0.3],
    ['one like that of the answer', 125, 1],
  ] as const) {
    const person = voice(1.5, pitch, 7);
    const onset = RATE;
    const mic = mixed(
      { samples: answer, at: delayed(180), gain: minus20dB },
      { samples: person, at: onset, gain },
    );
    const heard = speechIn(mic, answer);
    const from = Math.floor(onset / WINDOW_SAMPLES);
    const firstMs = (heard.indexOf(true, from) - from) * WINDOW_MS;
    assert(firstMs >= 0 && firstMs <= 100, `${name}: ${firstMs} ms`);
    const next = heard.slice(from + 3, from + 3 + KNOWN);
    assert(next.filter(Boolean).length >= KNOWN - 1, `${name}: ${next}`);
  }
});

test('without an answer, and after one that was stopped or is over, everything counts', () => {
  const answer = voice(2, 120, 1);
  const person = voice(2, 180, 3);
  assert(speechIn(person, new Float32Array(0)).every(Boolean));
  const echoOfUnplayed = mixed({ samples: answer.subarray(RATE), at: 2 * RATE, gain: minus20dB });
  const stopped = speechIn(echoOfUnplayed, answer, 500).slice((2 * RATE) / WINDOW_SAMPLES + KNOWN);
  assert(stopped.every(Boolean));
  const later = mixed({ samples: answer, at: 4 * RATE, gain: minus20dB });
  assert(
    speechIn(later, answer)
      .slice((4 * RATE) / WINDOW_SAMPLES + KNOWN)
      .every(Boolean),
  );
});

test('an hour of answers to which nobody says a word takes no memory', () => {
  setFlagsFromString('--expose-gc');
  const gc: () => void = runInNewContext('gc');
  const held = () => {
    gc();
    gc(); // it waits until the buffers that the first one found are freed, in the background
    return process.memoryUsage().arrayBuffers;
  };
  let now = 0;
  const echo = new Echo(() => now);
  const second = new Float32Array(RATE).fill(0.1);
  const before = held();
  for (let i = 0; i < 3600; i += 1) {
    echo.play(second);
    now += 1000;
  }
  const bytes = held() - before;
  echo.stop(); // it lives until here
  assert(bytes < 1e6, `${bytes} bytes`);
});
