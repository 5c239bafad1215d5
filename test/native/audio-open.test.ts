/** Opening audio with the real addon keeps the promises of test/unit/audio-open.test.ts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import { loadNative } from '../../src/engine/addon.ts';
import {
  collect,
  folder,
  makeTone,
  makeTones,
  measure,
  OWN_FORMATS,
  openHandles,
  RATE,
  refusal,
  refusingEngine,
  requireFfmpeg,
  runFfmpeg,
  untilClosed,
  write,
} from '../audio-fixtures.ts';
import { wav } from '../wav.ts';

const engine = loadNative();
const ffmpeg = await requireFfmpeg();
const alone = (more: Partial<OpenAudioOptions> = {}): OpenAudioOptions => ({
  ...{ engine, ffmpeg: null, maxAudioSec: 3600 },
  ...more,
});
const baseline = openHandles();
// The addon closes a file on its own thread, a moment after it was asked to.
after(() => untilClosed(baseline));

test('the addon alone decodes with the length, pitch and level that ffmpeg gives', async (t) => {
  const tones = makeTones(OWN_FORMATS);
  for (const [name, format] of OWN_FORMATS) {
    await t.test(name, async () => {
      const path = tones.get(name) ?? '';
      const own = await collect(path, alone());
      const external = await collect(path, alone({ engine: refusingEngine, ffmpeg }));
      assert.equal(own.format, format);
      const apart = Math.abs(own.samples.length - external.samples.length);
      assert.ok(apart < 0.15 * RATE, `${own.samples.length} samples, ffmpeg ${external.samples.length}`);
      const [a, b] = [measure(own.samples), measure(external.samples)];
      assert.ok(Math.abs(a.hertz - 440) < 4, `${a.hertz} Hz`);
      assert.ok(Math.abs(a.decibel - b.decibel) < 0.5, `${a.decibel} dB, ffmpeg ${b.decibel}`);
      assert.ok(own.durationSec === null || Math.abs(own.durationSec - 2) < 0.1, `${own.durationSec} s`);
    });
  }
});

test('MP3s that were joined are heard whole by the addon, whatever their tags say', async () => {
  const seconds = async (...parts: Uint8Array[]) => {
    const { samples, format } = await collect(write('tagged', Buffer.concat(parts)), alone());
    assert.equal(format, 'mp3');
    return samples.length / RATE;
  };
  const mp3 = readFileSync(makeTone('whole.mp3'));
  const whole = await seconds(mp3);
  assert.ok(Math.abs(whole - 2) < 0.03, `what fills up the last frame is no audio: ${whole} s`);
  const old = Buffer.from(`TAG${'x'.repeat(125)}`);
  const tag = Math.max(mp3.indexOf('Xing'), mp3.indexOf('Info'));
  const counted = Buffer.from(mp3); // its tag counts frames and no bytes
  counted[tag + 7] = 1;
  const unfinished = Buffer.from(mp3); // as an encoder leaves it that was killed
  unfinished.writeUInt32BE(0, tag + 8);
  for (const [name, parts, copies] of [
    ['an old tag at the end', [mp3, old], 1],
    ['an old tag between', [mp3, old, mp3, old], 2],
    ['three', [mp3, mp3, mp3], 3],
    ['frames alone are counted', [counted, mp3], 2],
    ['nothing is counted', [unfinished, mp3], 2],
  ] as const) {
    const heard = await seconds(...parts);
    assert.ok(Math.abs(heard - copies * whole) < 0.06 * copies, `${name}: ${heard} s`);
  }
});

test('a wav or Ogg file that the addon cannot read goes to ffmpeg', async () => {
  for (const [name, ...encoding] of [
    ['mp3inwav', '-c:a', 'libmp3lame', '-f', 'wav'],
    ['opus.ogg', '-c:a', 'libopus'],
    ['g722.wav', '-c:a', 'g722', '-ar', '16000'],
  ] as [string, ...string[]][]) {
    const path = makeTone(name, ...encoding);
    await assert.rejects(openAudio(path, alone()), refusal('undecodable_audio', 'unsupported_format'));
    const { samples } = await collect(path, alone({ ffmpeg }));
    assert.ok(Math.abs(measure(samples).hertz - 440) < 4, name);
  }
});

test('cut files give the audio that is there, or a refusal', async () => {
  for (const [name] of OWN_FORMATS) {
    const whole = readFileSync(join(folder, name));
    for (let part = 0; part < 40; part += 1) {
      const cut = write('cut', whole.subarray(0, 1 + Math.floor((whole.length * part) / 40)));
      const outcome = collect(cut, alone()).then(({ samples }) => assert.ok(samples.length > 0));
      await outcome.catch(refusal('undecodable_audio', 'unsupported_format'));
    }
    const { samples } = await collect(write('half', whole.subarray(0, whole.length * 0.6)), alone());
    assert.ok(samples.length > 0.5 * RATE, `${name}: ${samples.length} samples`);
  }
});

test('empty and too long files are refused, a tiny one is read, and a header without an end is not believed', async () => {
  await assert.rejects(
    openAudio(write('none', wav(new Int16Array(0))), alone({ ffmpeg })),
    refusal('empty_audio'),
  );
  assert.equal((await collect(write('tiny', wav(new Int16Array(160))), alone())).samples.length, 160);
  const bomb = join(folder, 'bomb.flac');
  runFfmpeg('-f', 'lavfi', '-i', 'anullsrc=r=16000:cl=mono', '-t', '3600', bomb);
  await assert.rejects(openAudio(bomb, alone({ maxAudioSec: 30 })), refusal('audio_too_long'));
  const long = join(folder, 'long.mp3');
  runFfmpeg('-f', 'lavfi', '-i', 'anullsrc=r=16000:cl=mono', '-t', '90', '-c:a', 'libmp3lame', long);
  await assert.rejects(collect(long, alone({ maxAudioSec: 30 })), refusal('audio_too_long'));
  const piped = wav(new Int16Array(2 * RATE));
  piped.writeUInt32LE(0x7ffff000, 40);
  assert.equal((await collect(write('piped', piped), alone())).samples.length, 2 * RATE);
});

test('an abort or an early leave closes the file', async () => {
  const path = write('two-minutes', wav(new Int16Array(120 * RATE)));
  for (let round = 0; round < 20; round += 1) {
    const controller = new AbortController();
    const reason = new Error('gone');
    await assert.rejects(async () => {
      await using source = await openAudio(path, alone({ signal: controller.signal }));
      for await (const _ of source.blocks()) controller.abort(reason);
    }, reason);
    const source = await openAudio(path, alone());
    for await (const _ of source.blocks()) break;
  }
});
