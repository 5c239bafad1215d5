/** Opening audio decides which decoder a file gets, and refuses files before they cost anything. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { BLOCK_SAMPLES } from '../../src/audio/decoder.ts';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import { NativeError } from '../../src/engine/types.ts';
import {
  collect,
  createFakeEngine,
  FFMPEG_FORMATS,
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
  TONE,
  untilClosed,
  write,
} from '../audio-fixtures.ts';
import { wav } from '../wav.ts';

const ffmpeg = await requireFfmpeg();
const baseline = openHandles();
const withBoth = (more: Partial<OpenAudioOptions> = {}): OpenAudioOptions => ({
  engine: createFakeEngine(),
  ffmpeg,
  maxAudioSec: 3600,
  ...more,
});
const withoutFfmpeg = () => withBoth({ ffmpeg: null });
const silence = (seconds: number) => new Int16Array(Math.round(seconds * RATE));

after(() => untilClosed(baseline));

const FORMATS = [...OWN_FORMATS, ...FFMPEG_FORMATS];

test('every format keeps the length, the pitch and the level of a tone', async (t) => {
  const reference = measure(
    new Float32Array(
      Uint8Array.from(runFfmpeg('-f', 'lavfi', '-i', TONE, '-ar', '16000', '-f', 'f32le', 'pipe:1')).buffer,
    ),
  );
  const tones = makeTones(FORMATS);
  for (const [name, format] of FORMATS) {
    await t.test(name, async () => {
      const path = tones.get(name) ?? '';
      const audio = await collect(path, withBoth());
      assert.equal(audio.format, format);
      assert.ok(Math.abs(audio.samples.length - 2 * RATE) < 0.12 * RATE, `${audio.samples.length} samples`);
      const { hertz, decibel } = measure(audio.samples);
      assert.ok(Math.abs(hertz - 440) < 4, `${hertz} Hz`);
      assert.ok(Math.abs(decibel - reference.decibel) < 0.5, `${decibel} dB, not ${reference.decibel}`);
      const said = audio.durationSec;
      assert.ok(said === null || Math.abs(said - 2) < 0.3, `the header says ${said} s`);
    });
  }
});

test('stereo is averaged, not added up, and not just the left, but where it would cancel itself', async () => {
  const decibel = async (pan: string) =>
    measure((await collect(makeTone('pan.m4a', '-af', `pan=stereo|${pan}`), withBoth())).samples).decibel;
  const both = await decibel('c0=c0|c1=c0');
  assert.ok(Math.abs((await decibel('c0=c0|c1=0*c0')) - both + 6) < 0.5);
  assert.ok(Math.abs((await decibel('c0=0*c0|c1=c0')) - both + 6) < 0.5);
  assert.ok(Math.abs((await decibel('c0=c0|c1=-1*c0')) - both) < 0.5);
});

test('half the difference of two channels stands beside what ffmpeg decodes', async () => {
  const path = makeTone('differing.m4a', '-af', 'pan=stereo|c0=c0|c1=0.1*c0');
  await using source = await openAudio(path, withBoth());
  for await (const block of source.blocks()) {
    const { sides } = source;
    assert(sides);
    assert.equal(sides.length, block.length);
    const right = measure(block.map((mid, i) => mid - (sides[i] as number))).decibel;
    const left = measure(block.map((mid, i) => mid + (sides[i] as number))).decibel;
    assert.ok(Math.abs(left - right - 20) < 1, `${left} dB and ${right} dB`);
  }
  await using alone = await openAudio(path, withBoth({ channel: 0 }));
  assert.equal(alone.sides, null);
});

test('ffmpeg decodes one channel of two, and refuses any other number of channels', async () => {
  const stereo = makeTone('sides.m4a', '-af', 'pan=stereo|c0=c0|c1=0.1*c0');
  const decibel = async (channel?: 0 | 1) =>
    measure((await collect(stereo, withBoth({ channel }))).samples).decibel;
  const [left, right] = [await decibel(0), await decibel(1)];
  assert.ok(Math.abs(left - right - 20) < 1, `${left} dB and ${right} dB`);
  const others = { mono: '1', quad: 'quad', '5.1': '5.1' };
  for (const [layout, shown] of Object.entries(others)) {
    const path = makeTone(`${layout}.m4a`, '-af', `aformat=channel_layouts=${layout}`);
    const message = new RegExp(`two channels for it, and this has ${shown}`);
    const refused = { code: 'invalid_value', status: 400, param: 'speakers', message };
    await assert.rejects(openAudio(path, withBoth({ channel: 1 })), refused);
    await using _whole = await openAudio(path, withBoth());
  }
});

test('a video gives its sound, and one without sound is refused', async () => {
  const picture = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=5:duration=2'];
  const path = join(folder, 'film.mp4');
  runFfmpeg(...picture, '-f', 'lavfi', '-i', TONE, '-c:v', 'mpeg4', '-c:a', 'aac', path);
  assert.ok(Math.abs(measure((await collect(path, withBoth())).samples).hertz - 440) < 4);
  for (const name of ['mute.mp4', 'mute.mkv', 'mute.avi', 'mute.ts']) {
    const mute = join(folder, name);
    runFfmpeg(...picture, '-c:v', 'mpeg4', mute);
    await assert.rejects(openAudio(mute, withBoth()), refusal('no_audio_stream'));
  }
});

test('tags in front of the audio and chained Ogg files are read', async () => {
  const tag = Buffer.from('ID3\x04\0\0\0\0\x40\0', 'latin1');
  const art = Buffer.alloc(0x40 * 128, 'art');
  for (const name of ['a.flac', 'low.mp3', 'a.aac', 'a.tta', 'a.wv', 'a.ac3', 'a.dts', 'a.aiff', 'a.ogg']) {
    const path = write('tagged', Buffer.concat([tag, art, tag, art, readFileSync(join(folder, name))]));
    const { samples } = await collect(path, withBoth());
    assert.ok(Math.abs(samples.length - 2 * RATE) < 0.12 * RATE, `${name}: ${samples.length} samples`);
  }
  const links = ['first.ogg', 'second.ogg'].map((name) => readFileSync(makeTone(name, '-c:a', 'libvorbis')));
  const chained = await collect(write('chained', Buffer.concat(links)), withBoth());
  assert.equal(chained.format, 'ogg');
  assert.ok(Math.abs(chained.samples.length - 4 * RATE) < 0.2 * RATE, `${chained.samples.length} samples`);
});

test('an mp3 behind another one is read too, and one that begins in a frame is an mp3', async () => {
  const seconds = async (name: string, ...parts: Uint8Array[]) =>
    (await collect(write(name, Buffer.concat(parts)), withBoth())).samples.length / RATE;
  for (const [i, options] of [[], ['-write_xing', '0'], ['-ar', '16000', '-c:a', 'mp2']].entries()) {
    const mp3 = readFileSync(makeTone(`part${i}.${options.includes('mp2') ? 'mp2' : 'mp3'}`, ...options));
    const joined = await seconds('joined', mp3, mp3);
    assert.ok(Math.abs(joined - 4) < 0.3, `${options}: ${joined} s`);
    const cut = await seconds('cut', mp3.subarray(1500));
    assert.ok(cut > 1 && cut < 2.1, `${options}: ${cut} s`);
  }
  const mp3 = readFileSync(makeTone('whole.mp3'));
  const tail = Buffer.from(`TAG${'x'.repeat(125)}`);
  const unfinished = Buffer.from(mp3); // as an encoder leaves it that was killed
  unfinished.writeUInt32BE(0, Math.max(mp3.indexOf('Xing'), mp3.indexOf('Info')) + 12);
  for (const path of [
    write('whole', mp3),
    write('old tag', Buffer.concat([mp3, tail])),
    write('unfinished', unfinished),
  ])
    assert.equal((await collect(path, withBoth())).format, 'mp3');
});

test('sound has the time that its file gives it: a late start and gaps are silence, and nothing is lost', async () => {
  const gap = (sec: number, name: string) =>
    makeTone(name, '-c:a', 'libopus', '-af', `asetpts='if(gt(T,1),PTS+${sec}/TB,PTS)'`);
  const picture = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=5:duration=8'];
  const late = join(folder, 'late.mp4');
  runFfmpeg(...picture, '-itsoffset', '5', '-f', 'lavfi', '-i', TONE, '-c:v', 'mpeg4', '-c:a', 'aac', late);
  const webm = readFileSync(makeTone('part.webm', '-c:a', 'libopus'));
  const ac3 = ['2', '6'].map((channels) =>
    readFileSync(makeTone(`${channels}.ac3`, '-c:a', 'ac3', '-ac', channels)),
  );
  const changing = join(folder, 'changing.mkv');
  runFfmpeg('-f', 'ac3', '-i', write('changing', Buffer.concat(ac3)), '-c', 'copy', changing);
  for (const [path, seconds, silent] of [
    [gap(10, 'gap.webm'), 12, 6],
    [gap(7200, 'lost.webm'), 2, null], // as of a clock that was set
    [late, 7, 4],
    [write('joined.webm', Buffer.concat([webm, webm])), 4, null],
    [changing, 4, null],
  ] as const) {
    const { samples } = await collect(path, withBoth({ maxAudioSec: 10_000 }));
    assert.ok(Math.abs(samples.length / RATE - seconds) < 0.1, `${path}: ${samples.length / RATE} s`);
    const loud = (sec: number) =>
      measure(samples.subarray((sec - 0.4) * RATE, (sec + 0.4) * RATE)).decibel > -40;
    if (silent !== null) assert.ok(!loud(silent) && loud(seconds - 0.5), path);
    else assert.ok([0.5, seconds / 2 - 0.5, seconds / 2 + 0.5, seconds - 0.5].every(loud), path);
  }
});

test('WebM files that were joined are heard whole and without a loss, whether they name their length or not', async () => {
  const finished = readFileSync(makeTone('piece.webm', '-c:a', 'libopus'));
  const live = readFileSync(makeTone('live.webm', '-c:a', 'libopus', '-live', '1'));
  for (const [name, pieces] of [
    ['finished', [finished, finished, finished, finished]],
    ['live', [live, live, live, live]],
    ['mixed', [finished, finished, live, live]],
  ] as const) {
    const { samples, lost } = await collect(
      write(`joined-${name}.webm`, Buffer.concat(pieces)),
      withBoth({ maxAudioSec: 100 }),
    );
    assert.ok(Math.abs(samples.length / RATE - 8) < 0.1, `${name}: ${samples.length / RATE} s`);
    for (const sec of [1, 3, 5, 7])
      assert.ok(measure(samples.subarray((sec - 0.4) * RATE, (sec + 0.4) * RATE)).decibel > -40, name);
    assert.deepEqual(lost, [], name);
  }
});

test('every container with a clock keeps a gap in its sound, and the time before a late start', async () => {
  const picture = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=25:duration=20'];
  const gap = "asetpts='if(gt(T,1),PTS+11/TB,PTS)'";
  for (const [name, ...encoding] of [
    ['a.mkv', '-c:v', 'mpeg4', '-c:a', 'aac'],
    ['a.mp4', '-c:v', 'mpeg4', '-c:a', 'aac'],
    ['a.ts', '-c:v', 'mpeg2video', '-c:a', 'aac'],
    ['a.mpg', '-c:v', 'mpeg2video', '-c:a', 'mp2'],
    ['a.flv', '-c:v', 'flv1', '-c:a', 'aac', '-ar', '44100'],
    ['a.wmv', '-c:v', 'wmv2', '-c:a', 'wmav2'],
  ] as const) {
    for (const [kind, input, seconds] of [
      ['gap', ['-f', 'lavfi', '-i', `${TONE},${gap}`], 13],
      ['late', ['-itsoffset', '5', '-f', 'lavfi', '-i', TONE], 7],
    ] as const) {
      const path = join(folder, `${kind}-${name}`);
      runFfmpeg(...picture, ...input, ...encoding, path);
      const { samples } = await collect(path, withBoth());
      assert.ok(Math.abs(samples.length / RATE - seconds) < 0.15, `${path}: ${samples.length / RATE} s`);
      const end = measure(samples.subarray((seconds - 0.9) * RATE, (seconds - 0.1) * RATE)).decibel;
      const before = measure(samples.subarray((seconds - 2.9) * RATE, (seconds - 2.1) * RATE)).decibel;
      assert.ok(end > -20 && before < -40, `${path}: ${before} dB, then ${end} dB`);
    }
  }
});

test('broadcasts that were joined, or whose clock jumps far, lose nothing and get no hours of silence', async () => {
  const ts = readFileSync(makeTone('part.ts', '-c:a', 'aac'));
  const jump = readFileSync(
    makeTone('jump.ts', '-c:a', 'aac', '-af', "asetpts='if(gt(T,1),PTS+7200/TB,PTS)'"),
  );
  for (const [name, bytes, seconds] of [
    ['joined.ts', Buffer.concat([ts, ts]), 4],
    ['jumped.ts', jump, 2],
  ] as const) {
    const { samples } = await collect(write(name, bytes), withBoth({ maxAudioSec: 10_000 }));
    assert.ok(Math.abs(samples.length / RATE - seconds) < 0.15, `${name}: ${samples.length / RATE} s`);
  }
});

test('a length that ffmpeg guesses from the bit rate refuses nothing', async () => {
  const path = join(folder, 'quiet-then-loud.aac');
  const loud = 'anoisesrc=r=44100:a=0.3:d=20';
  const quiet = 'anullsrc=r=44100,atrim=duration=5';
  runFfmpeg('-f', 'lavfi', '-i', quiet, '-f', 'lavfi', '-i', loud, '-filter_complex', 'concat=v=0:a=1', path);
  const guessed = spawnSync(ffmpeg.path, ['-hide_banner', '-i', path], { encoding: 'utf8' }).stderr;
  const [, minutes = '0'] = /Duration: 00:(\d\d)/.exec(guessed) ?? [];
  assert.ok(Number(minutes) >= 1, guessed);
  const { samples } = await collect(path, withBoth({ maxAudioSec: 30 }));
  assert.ok(Math.abs(samples.length / RATE - 25) < 0.2, `${samples.length} samples`);
});

test('a wav goes to the addon, and its blocks have the promised size', async () => {
  const engine = createFakeEngine();
  const samples = silence(40.5).fill(8192);
  const audio = await collect(write('long.bin', wav(samples)), withBoth({ engine }));
  assert.deepEqual(
    audio.blocks.map((block) => block.length),
    [BLOCK_SAMPLES, BLOCK_SAMPLES, samples.length - 2 * BLOCK_SAMPLES],
  );
  assert.ok(audio.samples.every((sample) => sample === 0.25));
  assert.deepEqual([engine.opened, engine.closed, audio.durationSec], [1, 1, 40.5]);
});

test('ffmpeg gives the same blocks, and the same samples as one run of it', async () => {
  const path = makeTone('blocks.m4a', '-af', 'aloop=loop=19:size=96000', '-c:a', 'aac');
  const audio = await collect(path, withBoth());
  assert.deepEqual(audio.blocks.map((block) => block.length).slice(0, -1), [BLOCK_SAMPLES, BLOCK_SAMPLES]);
  const whole = runFfmpeg('-i', path, '-ar', '16000', '-ac', '1', '-f', 'f32le', 'pipe:1');
  assert.ok(Buffer.from(audio.samples.buffer).equals(whole));
});

test('10 ms are audio, no samples are a refusal, and a data size of 0 or of hours is not believed', async () => {
  const tiny = await collect(write('tiny', wav(silence(0.01))), withBoth());
  assert.equal(tiny.samples.length, 160);
  const empty = write('empty.wav', wav(silence(0)));
  await assert.rejects(openAudio(empty, withBoth()), refusal('empty_audio'));
  await assert.rejects(openAudio(empty, withoutFfmpeg()), refusal('undecodable_audio'));
  for (const size of [0, 0x7ffff000, 0xffffffff]) {
    const piped = wav(silence(2));
    piped.writeUInt32LE(size, 40);
    const audio = await collect(write('piped.wav', piped), withBoth());
    assert.equal(audio.samples.length, 2 * RATE, `data size ${size}`);
  }
});

test('NaN and infinity become silence, and what is above full scale becomes full scale', async () => {
  const given = [Number.NaN, 0.5, Number.POSITIVE_INFINITY, -0.5, 1e10, -1.5];
  const raw = Buffer.from(Float32Array.from(given).buffer);
  const path = join(folder, 'nan.wav');
  runFfmpeg(
    '-f',
    'f32le',
    '-ar',
    '16000',
    '-ac',
    '1',
    '-i',
    write('nan.raw', raw),
    '-c:a',
    'pcm_f32le',
    path,
  );
  const { samples } = await collect(path, withBoth({ engine: refusingEngine }));
  assert.deepEqual([...samples], [0, 0.5, 0, -0.5, 1, -1]);
});

test('files without usable audio are refused before any decoder runs', async () => {
  const engine = createFakeEngine();
  const options = withBoth({ engine, ffmpeg: { ...ffmpeg, path: '/nonexistent/ffmpeg' } });
  await assert.rejects(openAudio(write('empty', ''), options), refusal('empty_file'));
  for (const text of ['hello', '#EXTM3U\n', 'ffconcat version 1.0\nfile x\n', '<svg/>', '\0'.repeat(9000)]) {
    await assert.rejects(openAudio(write('text.wav', text), options), refusal('unsupported_format'));
  }
  assert.equal(engine.opened, 0);
});

test('an mp4 that says its media is in another file does not reach that file', async () => {
  const secret = makeTone('secret.mov', '-c:a', 'pcm_s16le');
  const bait = write('bait.mov', pointElsewhere(readFileSync(secret), secret));
  const followed = runFfmpeg(
    ...['-enable_drefs', '1', '-use_absolute_path', '1', '-i', bait, '-ar', '16000', '-f', 'f32le', 'pipe:1'],
  );
  const found = measure(new Float32Array(Uint8Array.from(followed).buffer));
  assert.ok(found.decibel > -30, 'the bait works where it is allowed');
  const samples = await collect(bait, withBoth()).then(
    (audio) => audio.samples,
    (error) => {
      refusal('empty_audio', 'undecodable_audio')(error);
      return new Float32Array(0);
    },
  );
  assert.ok(samples.every((sample) => sample === 0));
});

/** Blanks the media of a QuickTime file and makes its data reference an alias of `target`. */
function pointElsewhere(movie: Buffer, target: string): Buffer {
  const name = Buffer.from(target + (target.length % 2 === 0 ? '' : '\0'));
  const alias = Buffer.alloc(12 + 150 + 4 + name.length + 4);
  alias.writeUInt32BE(alias.length, 0);
  alias.write('alis', 4, 'latin1');
  let at = 12 + 10 + 1 + 27 + 12 + 1 + 63 + 16 + 2 + 2 + 16;
  at = alias.writeUInt16BE(2, at); // the absolute path
  at = alias.writeUInt16BE(name.length, at);
  at += name.copy(alias, at);
  alias.writeUInt32BE(0xffff0000, at);
  const rewrite = (atoms: Buffer): Buffer => {
    const parts: Buffer[] = [];
    for (let start = 0; start + 8 <= atoms.length; ) {
      const size = Math.max(8, atoms.readUInt32BE(start));
      const kind = atoms.toString('latin1', start + 4, start + 8);
      let body = atoms.subarray(start + 8, start + size);
      if (['moov', 'trak', 'mdia', 'minf', 'dinf'].includes(kind)) body = rewrite(body);
      if (kind === 'mdat') body = Buffer.alloc(body.length);
      if (kind === 'dref') body = Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), alias]);
      const head = Buffer.alloc(8);
      head.writeUInt32BE(body.length + 8, 0);
      head.write(kind, 4, 'latin1');
      parts.push(head, body);
      start += size;
    }
    return Buffer.concat(parts);
  };
  return rewrite(movie);
}

test('audio that is too long is refused at once by its header, and while decoding where the header is silent', async () => {
  const limit = { maxAudioSec: 30 };
  const bomb = join(folder, 'bomb.flac');
  runFfmpeg('-f', 'lavfi', '-i', 'anullsrc=r=16000:cl=mono', '-t', '3600', bomb);
  const engine = refusingEngine;
  await assert.rejects(openAudio(bomb, withBoth({ engine, ...limit })), refusal('audio_too_long'));
  const silent = join(folder, 'silent.webm');
  runFfmpeg('-f', 'lavfi', '-i', 'anullsrc=r=48000:cl=mono', '-t', '40', '-live', '1', '-f', 'webm', silent);
  await assert.rejects(collect(silent, withBoth(limit)), refusal('audio_too_long'));
  const long = write('long.wav', wav(silence(32)));
  await assert.rejects(openAudio(long, withBoth(limit)), refusal('audio_too_long'));
  const exact = await collect(write('exact.wav', wav(silence(30))), withBoth(limit));
  assert.equal(exact.samples.length, 30 * RATE);
});

test('without ffmpeg the formats that need it are refused with the remedy', async () => {
  const mp4 = makeTone('need.m4a', '-c:a', 'aac');
  await assert.rejects(openAudio(mp4, withoutFfmpeg()), (error: Error) => {
    assert.match(error.message, /mp4 needs ffmpeg.*apt-get install ffmpeg/);
    return refusal('unsupported_format')(error);
  });
  const adpcm = makeTone('need.wav', '-c:a', 'adpcm_ms');
  await assert.rejects(openAudio(adpcm, withoutFfmpeg()), refusal('undecodable_audio'));
});

test("damage in the middle ends the audio, and a failure that is not the file's passes through", async () => {
  const path = write('damaged.wav', wav(silence(3)));
  const blockSamples = 512 * 20;
  const damaged = createFakeEngine({ failAtRead: 3 });
  assert.equal(
    (await collect(path, withBoth({ engine: damaged, blockSamples }))).samples.length,
    2 * blockSamples,
  );
  for (const failAtRead of [1, 3]) {
    const error = new NativeError('out_of_memory', 'no memory');
    const engine = createFakeEngine({ failAtRead, error });
    await assert.rejects(collect(path, withBoth({ engine, blockSamples })), error);
    assert.deepEqual([engine.opened, engine.closed], [1, 1]);
  }
});

test('of a file that was cut, what is there is read', async () => {
  for (const name of ['a.mp3', 'a.aac', 'fast.m4a', 'a.flac', 'a.webm', 'a.ogg', 's16.wav']) {
    const whole = readFileSync(join(folder, name));
    const half = await collect(write('half', whole.subarray(0, whole.length * 0.6)), withBoth());
    assert.ok(half.samples.length > 0.5 * RATE, `${name}: ${half.samples.length} samples of the first half`);
  }
});
