/** A file may not make more audio of its bytes by having them read again; one that is long for its bytes may be honest. */
import assert from 'node:assert/strict';
import { chmodSync, statSync } from 'node:fs';
import { test } from 'node:test';
import type { Ffmpeg } from '../../src/audio/ffmpeg-process.ts';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import {
  folder,
  openHandles,
  refusal,
  refusingEngine,
  requireFfmpeg,
  runFfmpeg,
  write,
} from '../audio-fixtures.ts';
import { mulaw, repeatingMatroska, repeatingMovie } from '../bad-files/repeats.ts';
import { until } from '../until.ts';

const real = await requireFfmpeg();
const options = (ffmpeg: Ffmpeg, more: Partial<OpenAudioOptions> = {}): OpenAudioOptions => ({
  ...{ engine: refusingEngine, ffmpeg, maxAudioSec: 21_600 },
  ...more,
});
const sound = mulaw(3);

/** Reads all of a file, and gives the seconds that came. */
async function read(path: string, ffmpeg = real): Promise<number> {
  await using source = await openAudio(path, options(ffmpeg));
  let samples = 0;
  for await (const block of source.blocks()) samples += block.length;
  return samples / 16_000;
}

test('a movie of 6 h that plays the same 3 s is refused before any of it is transcribed', async () => {
  const movie = repeatingMovie(sound, 7190);
  assert.ok(movie.length < 54_000, `${movie.length} bytes`);
  await assert.rejects(openAudio(write('movie', movie), options(real)), refusal('repeated_audio'));
});

test('Matroska that puts the same sound before each packet is refused while it is decoded', async () => {
  const path = write('matroska', repeatingMatroska(sound, 1000));
  await using source = await openAudio(path, options(real));
  let seconds = 0;
  await assert.rejects(async () => {
    for await (const block of source.blocks()) seconds += block.length / 16_000;
  }, refusal('repeated_audio'));
  assert.ok(seconds < 100, `${seconds} s`);
});

test('a repetition within the length that its bytes have anyway is read', async () => {
  assert.equal(await read(write('twice', repeatingMovie(sound, 10))), 30);
});

const SILENCE = ['-f', 'lavfi', '-i', 'anullsrc=r=16000:cl=mono', '-t', '60'];
const VOICE = ['-f', 'lavfi', '-i', 'sine=frequency=200:sample_rate=8000', '-t', '60'];
const OPUS = ['-c:a', 'libopus', '-b:a', '6k', '-frame_duration', '60'];
for (const [name, ...encoding] of [
  ['silence as FLAC in Matroska', ...SILENCE, '-c:a', 'flac', '-f', 'matroska'],
  ['silence as ALAC in mp4', ...SILENCE, '-c:a', 'alac', '-f', 'mp4'],
  ['silence as Opus in WebM without its length', ...SILENCE, ...OPUS, '-live', '1', '-f', 'webm'],
  ['sound as Speex of 2 kbit/s', ...VOICE, '-c:a', 'libspeex', '-q:a', '0', '-f', 'ogg'],
] as const) {
  test(`audio that is long for its bytes and honest is read: ${name}`, async () => {
    const path = `${folder}/honest`;
    runFfmpeg(...encoding, path);
    assert.ok(60 > 30 + statSync(path).size / 1000, 'its packets are counted');
    const seconds = await read(path);
    assert.ok(Math.abs(seconds - 60) < 0.2, `${seconds} s`);
  });
}

/** Stands in for an ffmpeg that decodes 100 s of a small file and hangs where its packets are counted. */
function stuck(limits: Partial<Ffmpeg['limits']>): Ffmpeg {
  const path = write(
    'stuck',
    '#!/bin/bash\n[[ "$*" == *copy* ]] && exec sleep 600\nhead -c 12800000 /dev/zero\n',
  );
  chmodSync(path, 0o755);
  return { path, version: 'script', limits: { ...real.limits, ...limits } };
}

test('an ffmpeg that hangs where packets are counted is ended, and its audio does not pass', async () => {
  const before = openHandles();
  await assert.rejects(
    read(write('small', repeatingMovie(sound, 1)), stuck({ wallMs: 300 })),
    refusal('undecodable_audio'),
  );
  assert.equal(openHandles().children, before.children);
});

test('a client that leaves while packets are counted ends the process', async () => {
  const before = openHandles();
  const client = new AbortController();
  const path = write('small', repeatingMovie(sound, 1));
  const source = await openAudio(path, options(stuck({}), { signal: client.signal }));
  const reading = (async () => {
    for await (const block of source.blocks()) assert.ok(block.length > 0);
  })();
  await until('the packets are counted', () => openHandles().children === before.children + 2);
  client.abort(new Error('left'));
  await assert.rejects(reading, /left/);
  assert.equal(openHandles().children, before.children);
});
