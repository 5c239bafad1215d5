/** Audio that is aborted, closed or damaged half-way leaves no file, process or listener behind. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ffmpeg } from '../../src/audio/ffmpeg-process.ts';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import {
  collect,
  createFakeEngine,
  folder,
  openHandles,
  RATE,
  refusal,
  requireFfmpeg,
  runFfmpeg,
  untilClosed,
  write,
} from '../audio-fixtures.ts';
import { wav } from '../wav.ts';

const real = await requireFfmpeg();
const HOUR_SEC = 3600;
const long = join(folder, 'long.m4a');
runFfmpeg('-f', 'lavfi', '-i', 'anullsrc=r=16000:cl=mono', '-t', String(HOUR_SEC), '-c:a', 'aac', long);
const longWav = write('long.wav', wav(new Int16Array(120 * RATE)));
const options = (more: Partial<OpenAudioOptions> = {}): OpenAudioOptions => ({
  engine: createFakeEngine(),
  ffmpeg: real,
  maxAudioSec: 2 * HOUR_SEC,
  ...more,
});

const baseline = openHandles();
afterEach(() => untilClosed(baseline));

/** Stands in for ffmpeg and does what no file can be trusted to make the real one do. */
function script(name: string, body: string): Ffmpeg {
  const path = write(name, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return { ...real, path, version: 'script' };
}

test('leaving the loop early ends the process and closes the file', async () => {
  const engine = createFakeEngine();
  for (const path of [long, longWav]) {
    const source = await openAudio(path, options({ engine }));
    for await (const block of source.blocks()) {
      assert.ok(block.length > 0);
      break;
    }
    await source.close();
  }
  assert.deepEqual([engine.opened, engine.closed], [1, 1]);
});

test('a source that is never read is closed all the same', async () => {
  const engine = createFakeEngine();
  {
    await using source = await openAudio(long, options());
    assert.equal(openHandles().children, baseline.children + 1);
    assert.ok(Math.abs((source.durationSec ?? 0) - HOUR_SEC) < 1);
    await using file = await openAudio(longWav, options({ engine }));
    assert.equal(file.durationSec, 120);
  }
  assert.equal(engine.closed, 1);
});

test('the blocks come only once', async () => {
  await using source = await openAudio(longWav, options());
  source.blocks();
  assert.throws(() => source.blocks(), /only once/);
});

test('an abort in the middle rejects the loop with its reason, and the process is gone', async () => {
  for (const path of [long, longWav]) {
    const controller = new AbortController();
    const reason = new Error('the client left');
    await assert.rejects(async () => {
      await using source = await openAudio(path, options({ signal: controller.signal }));
      let blocks = 0;
      for await (const _ of source.blocks()) {
        blocks += 1;
        if (blocks === 3) controller.abort(reason);
        assert.ok(blocks <= 3);
      }
    }, reason);
  }
});

test('an abort before or during the opening rejects with its reason', async () => {
  const reason = new Error('gone');
  await assert.rejects(openAudio(long, options({ signal: AbortSignal.abort(reason) })), reason);
  const stuck = script('stuck', 'exec sleep 60');
  for (const delayMs of [0, 5, 100]) {
    const controller = new AbortController();
    const opening = openAudio(long, options({ ffmpeg: stuck, signal: controller.signal }));
    setTimeout(() => controller.abort(reason), delayMs);
    await assert.rejects(opening, reason);
  }
});

test('closing while a block is awaited ends the loop with an error, not as if the audio were over', async () => {
  const stuck = script('stuck-later', 'head -c 80000 /dev/zero; exec sleep 60');
  const source = await openAudio(long, options({ ffmpeg: stuck, blockSamples: 512 }));
  const loop = assert.rejects(async () => {
    for await (const _ of source.blocks());
  }, /closed while/);
  await sleep(50);
  await source.close();
  await loop;
});

test('a slow consumer holds the decoder back', async () => {
  await using source = await openAudio(long, options());
  await sleep(300);
  const before = process.memoryUsage().arrayBuffers;
  let blocks = 0;
  for await (const _ of source.blocks()) {
    blocks += 1;
    if (blocks < 5) await sleep(50);
    // All of it would be 460 MB; five blocks that are not yet collected are 25.
    if (blocks === 5) assert.ok(process.memoryUsage().arrayBuffers - before < 48 * 2 ** 20);
  }
  assert.equal(blocks, Math.ceil(HOUR_SEC / 16));
});

test('a decoder that is killed or gives nothing is a refusal, and one that fails late has given its audio', async () => {
  const run = (body: string) => collect(long, options({ ffmpeg: script('fake', body), blockSamples: 512 }));
  await assert.rejects(run('head -c 80000 /dev/zero; kill -9 $$'), refusal('undecodable_audio'));
  await assert.rejects(run('head -c 80000 /dev/zero; exit 255'), refusal('undecodable_audio'));
  await assert.rejects(run('echo oops /tmp/x >&2; exit 1'), refusal('undecodable_audio'));
  await assert.rejects(run('exit 0'), refusal('empty_audio'));
  // A sample comes as two floats: the average of the channels, and half their difference.
  assert.equal((await run('head -c 80003 /dev/zero; exit 1')).samples.length, 10_000);
  const chatty =
    'head -c 3000000 /dev/zero | tr "\\0" x >&2; printf "\\n  Duration: 00:00:05.25, start\\n" >&2; head -c 80000 /dev/zero';
  const audio = await run(chatty);
  assert.deepEqual([audio.samples.length, audio.durationSec], [10_000, 5.25]);
});

test("a decoder that cannot be started is our failure, not the file's", async () => {
  const missing = { ...real, path: '/nonexistent/ffmpeg' };
  await assert.rejects(openAudio(long, options({ ffmpeg: missing })), /cannot be started/);
});
