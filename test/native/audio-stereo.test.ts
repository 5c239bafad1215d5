/** What is heard of two channels, where the addon decodes them and where ffmpeg does. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { collect, folder, measure, RATE, requireFfmpeg, runFfmpeg } from '../audio-fixtures.ts';

const options = { engine: loadNative(), ffmpeg: await requireFfmpeg(), maxAudioSec: 60 };
const FILES: [name: string, ...encoding: string[]][] = [
  ['a.wav'],
  ['a.flac'],
  ['a.mp3', '-b:a', '128k'],
  ['a.m4a', '-b:a', '64k'],
  ['a.webm', '-c:a', 'libopus'],
  ['low.mka', '-c:a', 'libvorbis', '-b:a', '64k'],
  ['a.aiff'],
  ['times.ts', '-c:a', 'aac'],
];

/** Files of 3 s, each with this expression of both channels. */
function makeFiles(expression: string, rate: number): string[] {
  const outputs = FILES.flatMap(([name, ...encoding]) => [...encoding, join(folder, name)]);
  runFfmpeg('-f', 'lavfi', '-i', `aevalsrc='${expression}':s=${rate}:d=3`, ...outputs);
  return FILES.map(([name]) => join(folder, name));
}

test('where two channels cancel each other, one is heard, without a click where that begins and ends', async () => {
  const tone = '0.5*sin(2*PI*440*t)';
  for (const path of makeFiles(`${tone}|${tone}*if(between(t,1,2),-0.95,1)`, 48_000)) {
    const { samples } = await collect(path, options);
    for (const second of [0, 1, 2]) {
      const { decibel } = measure(samples.subarray(second * RATE, (second + 1) * RATE));
      assert.ok(Math.abs(decibel + 9) < 1, `${path}: second ${second} has ${decibel} dB`);
    }
    const inside = samples.subarray(RATE / 8, 2.9 * RATE);
    const step = inside.slice(1).reduce((most, x, i) => Math.max(most, Math.abs(x - (inside[i] ?? 0))), 0);
    assert.ok(step < 0.15, `${path}: a step of ${step}; those of the tone have 0.086`);
  }
});

test('a file of which all is in opposite phase is heard from its first sample to its last', async () => {
  const voice = '0.3*sin(2*PI*300*t)+0.2*sin(2*PI*710*t)';
  for (const path of makeFiles(`${voice}|-(${voice})`, 48_000)) {
    const { samples } = await collect(path, options);
    for (const from of [0.03, 1.5, 2.95]) {
      const part = samples.subarray(from * RATE, (from + 0.02) * RATE);
      const loudest = part.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      assert.ok(loudest > 0.2, `${path}: ${loudest} at ${from} s`);
    }
  }
});

test('other stereo that ffmpeg decodes is the average of its channels to the last bit, however wide it is', async () => {
  const paths = makeFiles('0.5*sin(2*PI*440*t)|-0.3*sin(2*PI*440*t)+0.1*random(0)', 44_100);
  for (const path of paths.slice(3)) {
    const { samples } = await collect(path, options);
    const mono = ['-rematrix_maxval', '1', '-af', 'aformat=channel_layouts=mono,aformat=sample_rates=16000'];
    const whole = runFfmpeg('-i', path, ...mono, '-f', 'f32le', 'pipe:1');
    const bytes = Buffer.from(samples.buffer);
    // In some containers the sound begins a moment after 0, which ffmpeg leaves out here.
    assert.ok(whole.length > 11 * RATE && bytes.subarray(-whole.length).equals(whole), path);
  }
});
