/**
 * A damaged file is heard as far as it can be, everything at its time, and the losses are listed. The pitch of the sound
 * rises with time, so the pitch shows from which moment of the file a sample comes.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { OpenAudioOptions } from '../../src/audio/open.ts';
import { loadNative } from '../../src/engine/addon.ts';
import {
  collect,
  folder,
  measure,
  openHandles,
  RATE,
  requireFfmpeg,
  runFfmpeg,
  untilClosed,
  write,
} from '../audio-fixtures.ts';
import { wav } from '../wav.ts';

const options: OpenAudioOptions = { engine: loadNative(), ffmpeg: await requireFfmpeg(), maxAudioSec: 3600 };
const baseline = openHandles();
after(() => untilClosed(baseline));

const SEC = 20;
const hertzAt = (sec: number) => 300 + 40 * sec;

function makeSweep(name: string, encoding: readonly string[], fromSec = 0, sec = SEC): Buffer {
  const path = join(folder, name);
  const sound = `aevalsrc='0.5*sin(2*PI*(300*(t+${fromSec})+20*(t+${fromSec})^2))':s=16000:d=${sec}`;
  runFfmpeg('-f', 'lavfi', '-i', sound, ...encoding, path);
  return readFileSync(path);
}

/** The second at which something sounds like what `samples` have at `sec`. */
function heardAt(samples: Float32Array, sec: number): number {
  const { hertz } = measure(samples.subarray((sec - 0.5) * RATE, (sec + 0.5) * RATE));
  return (hertz - hertzAt(0)) / (hertzAt(1) - hertzAt(0));
}

async function hear(bytes: Buffer) {
  const { samples, lost, format } = await collect(write('sweep', bytes), options);
  return { samples, lost, format, sec: samples.length / RATE };
}

const MP3 = ['-c:a', 'libmp3lame', '-b:a', '64k'];
/** Frames of many sizes. */
const LOUD_AND_SOFT = "aeval='val(0)*(0.6+0.4*sin(2*t))+0.02*(random(0)-0.5)*(1+sin(t))'";
const FORMATS: Record<string, readonly string[]> = {
  'a.mp3': MP3,
  'vbr.mp3': ['-af', LOUD_AND_SOFT, '-c:a', 'libmp3lame', '-q:a', '4', '-write_xing', '0'],
  'a.flac': ['-c:a', 'flac'],
  'a.ogg': ['-c:a', 'libvorbis', '-b:a', '64k'],
  'opus.ogg': ['-c:a', 'libopus', '-b:a', '48k'],
  'a.webm': ['-c:a', 'libopus', '-b:a', '48k'],
  'live.webm': ['-c:a', 'libopus', '-b:a', '48k', '-live', '1'],
  'a.mka': ['-c:a', 'flac'],
  'a.m4a': ['-c:a', 'aac', '-b:a', '64k', '-movflags', '+faststart'],
  'fragments.mp4': ['-c:a', 'aac', '-b:a', '64k', '-movflags', 'frag_keyframe+empty_moov'],
  'a.ts': ['-c:a', 'aac', '-b:a', '64k'],
  'a.flv': ['-c:a', 'aac', '-b:a', '64k'],
  'a.wma': ['-c:a', 'wmav2', '-b:a', '64k', '-f', 'asf'],
  'a.avi': MP3,
  'ac3.avi': ['-c:a', 'ac3', '-b:a', '64k'],
  'aac.avi': ['-c:a', 'aac', '-b:a', '64k'],
  'pcm.avi': [],
  'a.tta': [],
};

const noise = (length: number) =>
  Buffer.from(Array.from({ length }, (_, i) => (i * 7919 + (i >> 3) * 104729) & 255));
const DAMAGES: Record<string, (bytes: Buffer, at: number) => Buffer> = {
  'a byte is missing': (bytes, at) => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]),
  'a byte is added': (bytes, at) => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at - 1)]),
  '4 kB are zero': (bytes, at) =>
    Buffer.concat([bytes.subarray(0, at), Buffer.alloc(4096), bytes.subarray(at + 4096)]),
  '4 kB are noise': (bytes, at) =>
    Buffer.concat([bytes.subarray(0, at), noise(4096), bytes.subarray(at + 4096)]),
};
/** An index of places in the file, or the frame before, tells where each frame begins, so nothing is found behind the byte. */
const hasIndex = (name: string, damage: string) => /m4a|mp4|tta/.test(name) && damage.includes('byte');

test('damage in the middle is silent, what follows has its time, and the place is told', async (t) => {
  for (const [name, encoding] of Object.entries(FORMATS)) {
    await t.test(name, async () => {
      const bytes = makeSweep(name, encoding);
      const whole = await hear(bytes);
      assert.deepEqual(whole.lost, []);
      for (const [damage, apply] of Object.entries(DAMAGES)) {
        const { lost, sec, samples } = await hear(apply(bytes, Math.floor(bytes.length * 0.4)));
        if (name === 'a.ts' && damage === 'a byte is added') continue; // it lies between two packets
        const [loss = { startSec: 0, endSec: 0 }] = lost;
        assert.equal(lost.length, 1, `${damage}: ${JSON.stringify(lost)}`);
        const isNear = loss.startSec > 5 && loss.startSec < 9 && loss.endSec > loss.startSec;
        assert.ok(isNear, `${damage}: ${JSON.stringify(lost)}`);
        if (hasIndex(name, damage)) {
          assert.ok(Math.abs(loss.endSec - SEC) < 0.2, `${damage}: ${JSON.stringify(lost)}`);
          continue;
        }
        assert.ok(loss.endSec < 12, `${damage}: ${JSON.stringify(lost)}`);
        assert.ok(Math.abs(sec - whole.sec) < 0.15, `${damage}: ${sec} s, whole ${whole.sec}`);
        for (const at of [4, 13, 18])
          assert.ok(
            Math.abs(heardAt(samples, at) - at) < 0.15,
            `${damage}: at ${at} s ${heardAt(samples, at)}`,
          );
      }
    });
  }
});

test('a frame of WavPack with a wrong checksum is silent, and what follows has its time', async () => {
  const bytes = makeSweep('a.wv', ['-ar', '44100']);
  const whole = await hear(bytes);
  assert.deepEqual(whole.lost, []);
  const { lost, sec, samples } = await hear(DAMAGES['4 kB are zero']?.(bytes, bytes.length >> 1) ?? bytes);
  assert.equal(sec, whole.sec);
  assert.equal(lost.length, 1, JSON.stringify(lost));
  const [{ startSec, endSec } = { startSec: 0, endSec: 0 }] = lost;
  assert.ok(startSec > 5 && endSec - startSec <= 2, JSON.stringify(lost));
  const silent = samples.subarray((endSec - 0.4) * RATE, (endSec - 0.1) * RATE);
  assert.ok(silent.every((sample) => sample === 0));
  for (const at of [3, 18]) assert.ok(Math.abs(heardAt(samples, at) - at) < 0.15, `at ${at} s`);
});

test('a file that was cut tells what its header names beyond it', async () => {
  const wave = makeSweep('a.wav', []);
  const named = {
    'a.wav': wave,
    'a.aiff': makeSweep('a.aiff', []),
    'rf64.wav': makeSweep('rf64.wav', ['-rf64', 'always']),
    'a.w64': makeSweep('a.w64', []),
    'a.caf': makeSweep('a.caf', ['-c:a', 'pcm_s16be']),
    'adpcm.wav': makeSweep('adpcm.wav', ['-c:a', 'adpcm_ima_wav']),
  } as Record<string, Buffer>;
  for (const name of ['a.mp3', 'a.flac', 'a.webm', 'a.mka', 'a.m4a', 'a.flv', 'a.wma', 'a.avi', 'ac3.avi'])
    named[name] = readFileSync(join(folder, name));
  for (const [name, bytes] of Object.entries(named)) {
    assert.deepEqual((await hear(bytes)).lost, [], name);
    const { lost, sec } = await hear(bytes.subarray(0, bytes.length * 0.6));
    assert.ok(sec > 8 && sec < 14, `${name}: ${sec} s`);
    assert.equal(lost.length, 1, `${name}: ${JSON.stringify(lost)}`);
    assert.ok(Math.abs((lost[0]?.endSec ?? 0) - SEC) < 0.2, `${name}: ${JSON.stringify(lost)}`);
    assert.ok(Math.abs((lost[0]?.startSec ?? 0) - sec) < 0.5, `${name}: ${JSON.stringify(lost)}`);
  }
  for (const name of ['a.ogg', 'opus.ogg', 'live.webm']) {
    const bytes = readFileSync(join(folder, name));
    assert.deepEqual((await hear(bytes.subarray(0, bytes.length * 0.6))).lost, [], `${name} names no length`);
  }
});

test('a length that nobody knew, or that is of something else, is no loss', async () => {
  const wave = wav(new Int16Array(2 * RATE));
  const withBytes = (bytes: number) => {
    const changed = Buffer.from(wave);
    changed.writeUInt32LE(bytes, 40);
    return changed;
  };
  for (const bytes of [0xffffffff, 0x7fffffff, 0x80000000, 0x7ffff000, 0x7fff0000, 2 * RATE, 4 * RATE + 2])
    assert.deepEqual((await hear(withBytes(bytes))).lost, [], `a wav of ${bytes} bytes`);
  const hours = await hear(withBytes(10 * 3600 * 2 * RATE));
  assert.deepEqual([hours.sec, hours.lost], [2, [{ startSec: 2, endSec: 36_000 }]]);
  for (const [name, ...encoding] of [
    ['late.m4a', '-c:a', 'aac'],
    ['late.webm', '-c:a', 'libopus'],
    ['late.wma', '-c:a', 'wmav2', '-f', 'asf'],
  ] as [string, ...string[]][])
    assert.deepEqual((await hear(makeSweep(name, [...encoding, '-output_ts_offset', '3']))).lost, [], name);
  const picture = [
    '-f',
    'lavfi',
    '-i',
    'color=s=16x16:r=5:d=9',
    '-map',
    '0:a',
    '-map',
    '1:v',
    '-c:v',
    'mpeg4',
  ];
  const mp3 = makeSweep('plain.mp3', [...MP3, '-write_xing', '0']);
  const files = {
    'an MP3 without a tag': mp3.subarray(0, mp3.length * 0.6),
    'MP3s that were joined': Buffer.concat([
      makeSweep('tag.mp3', MP3, 0, 3),
      makeSweep('tag2.mp3', MP3, 3, 3),
    ]),
    'a film that is longer than its sound': makeSweep('film.mp4', [...picture, '-c:a', 'aac'], 0, 4),
    'a Matroska film': makeSweep('film.mkv', [...picture, '-c:a', 'aac'], 0, 4),
    'raw AAC': makeSweep('a.aac', ['-c:a', 'aac']),
    WavPack: makeSweep('a.wv', ['-c:a', 'wavpack']),
  };
  for (const [name, bytes] of Object.entries(files)) assert.deepEqual((await hear(bytes)).lost, [], name);
});

test('files that were joined have each its rate and its channels', async () => {
  for (const [name, ...encoding] of [
    ['a.flac', '-c:a', 'flac'],
    ['a.ogg', '-c:a', 'libvorbis'],
    ['opus.ogg', '-c:a', 'libopus'],
  ] as [string, ...string[]][]) {
    const low = makeSweep(
      `low-${name}`,
      [...encoding, '-ar', '16000', '-serial_offset', '5'].slice(0, name === 'a.flac' ? -2 : undefined),
      0,
      5,
    );
    const high = makeSweep(`high-${name}`, [...encoding, '-ar', '48000', '-ac', '2'], 5, 5);
    const again = makeSweep(
      `again-${name}`,
      [...encoding, '-ar', '16000', '-serial_offset', '9'].slice(0, name === 'a.flac' ? -2 : undefined),
      10,
      5,
    );
    for (const [parts, places] of [
      [
        [low, high],
        [2, 7],
      ],
      [
        [low, high, again],
        [2, 7, 13],
      ],
    ] as [Buffer[], number[]][]) {
      const { samples, lost, sec } = await hear(Buffer.concat(parts));
      assert.ok(Math.abs(sec - 5 * parts.length) < 0.3, `${name}: ${sec} s`);
      assert.deepEqual(lost, [], name);
      for (const at of places)
        assert.ok(Math.abs(heardAt(samples, at) - at) < 0.2, `${name}: at ${at} s ${heardAt(samples, at)}`);
    }
  }
});

test('a second file behind the first one, which no decoder reads, is told of', async () => {
  for (const [name, ...encoding] of [
    ['twice.wav'],
    ['odd.wav', '-c:a', 'pcm_u8', '-t', '2.0000625'],
    ['rf64.wav', '-rf64', 'always'],
    ['twice.w64'],
    ['twice.aiff'],
    ['twice.caf', '-c:a', 'pcm_s16be'],
    ['twice.m4a', '-c:a', 'aac'],
    ['twice.flv', '-c:a', 'aac'],
    ['twice.tta'],
    ['twice.wma', '-c:a', 'wmav2', '-f', 'asf'],
    ['twice.voc', '-c:a', 'pcm_u8', '-ar', '8000'],
    ['fragments.mp4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov'],
  ] as [string, ...string[]][]) {
    const bytes = makeSweep(`twice-${name}`, encoding, 0, 3);
    const whole = await hear(bytes);
    assert.deepEqual(whole.lost, [], name);
    const { lost, sec } = await hear(Buffer.concat([bytes, bytes]));
    assert.equal(sec, whole.sec, name);
    assert.deepEqual(lost.at(-1), { startSec: sec, endSec: sec }, name);
  }
});

/** A copy with other bytes at `offset` from `mark`. */
function patched(bytes: Buffer, mark: string, offset: number, ...numbers: number[]): Buffer {
  const copy = Buffer.from(bytes);
  copy.set(numbers, copy.indexOf(mark, 0, 'latin1') + offset);
  return copy;
}

test('a file whose header names no length, or less than it has, is read to its end', async () => {
  const [wave, aiff] = [makeSweep('open.wav', []), makeSweep('open.aiff', [])];
  const rf64 = makeSweep('open-rf64.wav', ['-rf64', 'always']);
  const [w64, caf] = [makeSweep('open.w64', []), makeSweep('open.caf', ['-c:a', 'pcm_s16be'])];
  const mulaw = makeSweep('open-mulaw.wav', ['-c:a', 'pcm_mulaw', '-ar', '8000']);
  for (const [name, bytes] of Object.entries({
    'an AIFF of 0 bytes': patched(aiff, 'SSND', 4, 0, 0, 0, 0),
    'an AIFF of 8 bytes': patched(aiff, 'SSND', 4, 0, 0, 0, 8),
    'an AIFF of 64 kB': patched(aiff, 'SSND', 4, 0, 1, 0, 8),
    'an RF64 of 0 bytes': patched(rf64, 'ds64', 8, ...Buffer.alloc(24)),
    'an RF64 of 64 kB': patched(rf64, 'ds64', 16, 0, 0, 1, 0),
    'a Wave64 of 24 bytes': patched(w64, 'data\xf3', 16, 24, 0, 0, 0),
    'a Wave64 of 64 kB': patched(w64, 'data\xf3', 16, 24, 0, 1, 0),
    'a CAF of 64 kB': patched(caf, 'data', 8, 0, 1, 0, 4),
    'a WAV of 64 kB': patched(wave, 'data', 4, 0, 0, 1, 0),
    'a WAV of 64 kB and a byte': patched(wave, 'data', 4, 1, 0, 1, 0),
    'a WAV of telephony': patched(mulaw, 'data', 4, 0, 0, 1, 0),
  })) {
    const { samples, lost, sec } = await hear(bytes);
    assert.deepEqual([sec, lost], [SEC, []], name);
    assert.ok(Math.abs(heardAt(samples, 18) - 18) < 0.15, `${name}: ${heardAt(samples, 18)}`);
  }
  const short = write('short', patched(wave, 'data', 4, 0, 0, 1, 0));
  await assert.rejects(
    collect(short, { ...options, ffmpeg: null }),
    /the wav is damaged or several files; .* needs ffmpeg/,
  );
});

test('what follows the samples and is no sound is not read', async () => {
  const wave = makeSweep('whole.wav', []);
  const large = 100_000;
  for (const [name, rest] of Object.entries({
    'a chunk': Buffer.from(`LIST\xa0\x86\x01\0${'x'.repeat(large)}`, 'latin1'),
    'an ID3 tag': Buffer.concat([Buffer.from('ID3\x04'), noise(large)]),
    'an APE tag': Buffer.concat([Buffer.from('APETAGEX'), noise(large)]),
    zeros: Buffer.alloc(large),
    padding: noise(4096),
  }))
    assert.deepEqual(await hear(Buffer.concat([wave, rest])), { ...(await hear(wave)) }, name);
});

test('MPEG frames are found behind a tag, zeros or the rest of a frame', async () => {
  const ape = Buffer.alloc(32 + 300);
  ape.write('APETAGEX');
  ape.writeUInt32LE(300, 12);
  const files = {
    mp3: makeSweep('front.mp3', MP3, 0, 5),
    aac: makeSweep('front.aac', ['-c:a', 'aac'], 0, 5),
  };
  for (const [name, bytes] of Object.entries(files))
    for (const [what, front] of Object.entries({
      'an APE tag': ape,
      zeros: Buffer.alloc(5000),
      'many zeros': Buffer.alloc(1_000_001),
      'a rest': noise(700),
    })) {
      const { samples, lost, format } = await hear(Buffer.concat([front, bytes]));
      assert.deepEqual([format, lost], [name, []], what);
      assert.ok(Math.abs(heardAt(samples, 3) - 3) < 0.2, `${name} behind ${what}: ${heardAt(samples, 3)}`);
    }
});

test('an MP4 that was cut before its index says so', async () => {
  for (const [name, ...encoding] of [
    ['end.m4a', '-c:a', 'aac'],
    ['end.mov', '-c:a', 'pcm_s16le'],
  ] as [string, ...string[]][]) {
    const bytes = makeSweep(name, encoding, 0, 5);
    await assert.rejects(hear(bytes.subarray(0, bytes.length * 0.6)), {
      code: 'undecodable_audio',
      message: /is an MP4 or M4A without its index \(the moov box\), .* Send the whole file$/,
    });
  }
});

const UNCOMPRESSED: Record<string, readonly string[]> = {
  's16.wav': [],
  'stereo.wav': ['-ac', '2'],
  's24.wav': ['-c:a', 'pcm_s24le'],
  'f32.wav': ['-c:a', 'pcm_f32le'],
  's16.w64': [],
  's24.aiff': ['-c:a', 'pcm_s24be'],
  's16.au': ['-c:a', 'pcm_s16be'],
  's16.caf': ['-c:a', 'pcm_s16be'],
};

test('behind a missing or an added byte, uncompressed samples are whole again', async (t) => {
  for (const [name, encoding] of Object.entries(UNCOMPRESSED)) {
    await t.test(name, async () => {
      const bytes = makeSweep(name, encoding);
      assert.deepEqual((await hear(bytes)).lost, []);
      const at = Math.floor(bytes.length * 0.4);
      for (const damage of ['a byte is missing', 'a byte is added']) {
        const { samples, lost } = await hear((DAMAGES[damage] as (typeof DAMAGES)[string])(bytes, at));
        assert.equal(lost.length, 1, `${damage}: ${JSON.stringify(lost)}`);
        assert.ok(Math.abs((lost[0]?.startSec ?? 0) - 8) < 0.2, `${damage}: ${JSON.stringify(lost)}`);
        for (const sec of [4, 13, 18])
          assert.ok(Math.abs(heardAt(samples, sec) - sec) < 0.15, `${damage}: ${heardAt(samples, sec)}`);
      }
    });
  }
  const [whole, at] = [makeSweep('s16.wav', []), 100_001];
  const damaged = write('slip', Buffer.concat([whole.subarray(0, at), whole.subarray(at + 1)]));
  await assert.rejects(collect(damaged, { ...options, ffmpeg: null }), /the wav is damaged/);
});

test('a few samples are no sound that slipped', async () => {
  for (const samples of [1, 100, 1023, 1024, 1025, 2047, 2048, 2049, 3100]) {
    const { lost, sec } = await hear(wav(new Int16Array(samples).map((_, i) => (i * 7919) % 30_000)));
    assert.deepEqual([lost, sec], [[], samples / RATE]);
  }
});

test('sound that is loud, soft or left to chance is not taken for samples that slipped', async () => {
  const sounds = {
    noise: '2*random(0)-1',
    'noise of 8 bits': 'floor(256*random(0))/128-1',
    'noise of two values': 'sgn(random(0)-0.5)',
    'clipped noise': 'clip(20*(random(0)-0.5),-1,1)',
    square: 'sgn(sin(2*PI*440*t))',
    sawtooth: '2*mod(4811*t,1)-1',
    'a high tone': '0.999*sin(2*PI*7990*t)',
    soft: '0.002*sin(2*PI*300*t)',
    'very soft': '0.00003*sin(2*PI*300*t)',
    'noise beside a tone': '2*random(0)-1|0.5*sin(2*PI*300*t)',
    'noise of 8 bits beside a soft tone': 'floor(256*random(0))/128-1|0.002*sin(2*PI*300*t)',
  };
  const encodings = ['pcm_s16le', 'pcm_s24le', 'pcm_s32le', 'pcm_f32le'];
  const pathOf = (encoding: string) => join(folder, `healthy-${encoding}.wav`);
  const outputs = encodings.flatMap((encoding) => ['-c:a', encoding, pathOf(encoding)]);
  for (const [name, sound] of Object.entries(sounds)) {
    runFfmpeg('-f', 'lavfi', '-i', `aevalsrc='${sound}':s=16000:d=2`, ...outputs);
    for (const encoding of encodings)
      assert.deepEqual((await collect(pathOf(encoding), options)).lost, [], `${name}, ${encoding}`);
  }
});
