/** These tests read audio files with the addon. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadNative } from '../../src/engine/addon.ts';
import type { NativeFormat } from '../../src/engine/types.ts';
import { endlessSearch } from '../hostile-audio.ts';
import { interleave, wav } from '../wav.ts';
import { sine, speechFile, temporaryFile } from './fixtures.ts';

const native = loadNative();

async function readAll(path: string, format: NativeFormat, blockSize = 5000): Promise<Float32Array> {
  const file = await native.openAudio(path, format);
  const blocks: Float32Array[] = [];
  for (let block = await file.read(blockSize); block; block = await file.read(blockSize)) blocks.push(block);
  file.close();
  const all = new Float32Array(blocks.reduce((length, block) => length + block.length, 0));
  let offset = 0;
  for (const block of blocks) {
    all.set(block, offset);
    offset += block.length;
  }
  return all;
}

test('an audio file tells its rate, channels and the length in its header', async () => {
  const file = await native.openAudio(temporaryFile(wav(sine(440, 1, 44_100), 44_100, 2)), 'wav');
  assert.deepEqual(file.info, { sampleRate: 44_100, channels: 2, durationSec: 0.5 });
  file.close();
  const mp3 = await native.openAudio(speechFile, 'mp3');
  assert.deepEqual(mp3.info, { sampleRate: 16_000, channels: 1, durationSec: null });
  mp3.close();
});

test('an audio file is read in blocks that join to the whole', async () => {
  const small = await readAll(speechFile, 'mp3', 777);
  const large = await readAll(speechFile, 'mp3', 1_000_000);
  assert.equal(small.length, 176_000);
  assert.deepEqual(small, large);
  assert.ok(large.every((sample) => Math.abs(sample) <= 1));
});

test('one channel of an audio file is read alone', async () => {
  const [left, right] = [new Float32Array(16_000).fill(0.25), new Float32Array(16_000).fill(-0.5)];
  const path = temporaryFile(wav(interleave(left, right), 16_000, 2));
  const levelOf = async (channel?: number) => {
    const file = await native.openAudio(path, 'wav', { channel });
    const [level = 0] = (await file.read(16_000)) ?? [];
    file.close();
    return Math.round(level * 1000);
  };
  assert.deepEqual(await Promise.all([levelOf(0), levelOf(1), levelOf()]), [250, -500, -125]);
  for (const channel of [-2, 32, 0.5])
    await assert.rejects(native.openAudio(path, 'wav', { channel }), { code: 'invalid_argument' });
});

test('an audio file of any rate becomes 16 kHz', async () => {
  for (const rate of [8000, 22_050, 48_000]) {
    const samples = await readAll(temporaryFile(wav(sine(440, 1, rate), rate)), 'wav');
    assert.equal(samples.length, 16_000);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    assert.ok(Math.abs(Math.sqrt(power) - 0.345) < 0.02, `${rate}: ${Math.sqrt(power)}`);
  }
});

test('the frames of an mp3 have channels and a rate of their own, where files were joined', async () => {
  const tone = (hertz: number, ...how: string[]) =>
    execFileSync('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', `sine=${hertz}:duration=2`, ...how],
      ...['-write_xing', '0', '-f', 'mp3', '-'],
    ]);
  const mono = tone(440, '-ac', '1', '-ar', '44100');
  const stereo = tone(1760, '-ac', '2', '-ar', '44100');
  const slow = tone(880, '-ac', '1', '-ar', '22050');
  const pitchAt = (samples: Float32Array, sec: number) => {
    const second = samples.subarray(sec * 16_000, (sec + 1) * 16_000);
    return second.filter((sample, i) => i > 0 && sample < 0 !== (second[i - 1] ?? 0) < 0).length / 2;
  };
  for (const [name, pitches, parts] of [
    ['mono, then stereo', [440, 1760], [mono, stereo]],
    ['stereo, then mono', [1760, 440], [stereo, mono]],
    ['44.1, then 22.05 kHz', [440, 880], [mono, slow]],
    ['22.05, then 44.1 kHz in stereo', [880, 1760], [slow, stereo]],
  ] as const) {
    const samples = await readAll(temporaryFile(Buffer.concat(parts)), 'mp3');
    assert.ok(Math.abs(samples.length / 16_000 - 4) < 0.2, `${name}: ${samples.length / 16_000} s`);
    const heard = [pitchAt(samples, 0.6), pitchAt(samples, 2.6)];
    for (const [i, pitch] of pitches.entries())
      assert.ok(Math.abs((heard[i] ?? 0) - pitch) < 5, `${name}: ${heard} instead of ${pitches}`);
  }
});

test('an audio file that is broken is refused as bad_audio', async () => {
  const files = [
    '',
    'just text',
    wav(new Int16Array(0)),
    Buffer.alloc(9999),
    'OggS but not really',
    'RIFF1234WAVE',
  ];
  const formats = ['wav', 'mp3', 'flac', 'vorbis'] as const;
  for (const content of files)
    for (const format of formats)
      await assert.rejects(native.openAudio(temporaryFile(content), format), {
        name: 'NativeError',
        code: 'bad_audio',
      });
  await assert.rejects(native.openAudio('/nowhere.wav', 'wav'), { code: 'bad_audio' });
  await assert.rejects(native.openAudio(7 as never, 'wav'), { code: 'invalid_argument' });
  await assert.rejects(native.openAudio(speechFile, 'ogg' as never), {
    message: /^Expected wav, mp3, flac or vorbis for format but received "ogg"/,
  });
});

test('an audio file allows one read at a time', async () => {
  const file = await native.openAudio(speechFile, 'mp3');
  const first = file.read(100_000);
  await assert.rejects(file.read(1), { code: 'invalid_argument', message: /one read at a time/ });
  assert.equal((await first)?.length, 100_000);
  assert.equal((await file.read(1))?.length, 1);
  for (const samples of [0, 16_777_217])
    await assert.rejects(file.read(samples), {
      message: `Expected a whole number from 1 to 16777216 for maxSamples but received ${samples} (number)`,
    });
  file.close();
});

test('an audio file may be closed while a read runs, and again', async () => {
  const file = await native.openAudio(speechFile, 'mp3');
  const read = file.read(10_000_000);
  file.close();
  file.close();
  await assert.rejects(read, { code: 'closed' });
  await assert.rejects(file.read(1), { code: 'closed' });
});

/** Makes an hour of silence as MP3, with frames of 24 ms at 48 kHz and 32 kbit/s. */
function longFile(): string {
  const frame = Buffer.alloc(96);
  frame.set([0xff, 0xfb, 0x14, 0]);
  return temporaryFile(Buffer.alloc(150_000 * frame.length, frame));
}

const noTasks = process.platform !== 'linux' && 'only Linux tells the threads of a process';

test('audio files that are open at the same time share four threads', { skip: noTasks }, async () => {
  const threads = () => readdirSync('/proc/self/task').length;
  // The first read starts some of the threads.
  await readAll(speechFile, 'mp3');
  const before = threads();
  const files = await Promise.all(Array.from({ length: 40 }, () => native.openAudio(speechFile, 'mp3')));
  await Promise.all(files.map((file) => file.read(1_000_000)));
  assert.ok(threads() - before <= 4, `${threads() - before} more`);
  for (const file of files) file.close();
});

test('audio files that are open at the same time are read in turns, so a short one does not wait for long ones', async () => {
  const long = longFile();
  const files = await Promise.all(Array.from({ length: 8 }, () => native.openAudio(long, 'mp3')));
  const reads = files.map((file) => file.read(16_000_000).then(() => 'long'));
  const short = readAll(temporaryFile(wav(sine(440, 1))), 'wav').then(() => 'short');
  assert.equal(await Promise.race([...reads, short]), 'short');
  for (const file of files) file.close();
  await Promise.allSettled(reads);
});

test('audio files that are open at the same time wait for no thread once an open or a read is aborted', async () => {
  const slow = temporaryFile(endlessSearch(4 << 20));
  const leaving = new AbortController();
  setMaxListeners(20, leaving.signal);
  const { signal } = leaving;
  const read = await native.openAudio(longFile(), 'mp3');
  const calls: Promise<unknown>[] = Array.from({ length: 12 }, () =>
    native.openAudio(slow, 'mp3', { signal }),
  );
  calls.push(read.read(16_000_000, { signal }));
  const started = process.cpuUsage();
  while (process.cpuUsage(started).user < 100_000) await sleep(1);
  leaving.abort(new Error('left'));
  const left = process.cpuUsage();
  const ends = await Promise.allSettled(calls);
  assert.ok(ends.every((end) => end.status === 'rejected' && end.reason === signal.reason));
  const { user } = process.cpuUsage(left);
  assert.ok(user < 1_000_000, `${user / 1000} ms of work for files that are not wanted`);
  read.close();
});
