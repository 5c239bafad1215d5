/** Containers are known by their first bytes alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { findAviDamage } from '../../src/audio/avi.ts';
import { sniffPages } from '../../src/audio/ogg-pages.ts';
import { HEAD_BYTES, isLaterChunk, sniffAfterTag, sniffContainer, tagLength } from '../../src/audio/sniff.ts';
import { makeTone } from '../audio-fixtures.ts';

const head = (text: string) => Buffer.from(text, 'latin1');
const nameOf = (text: string) => sniffContainer(head(text))?.name ?? null;

test('a container is told by its first bytes', () => {
  const cases: [string, string | null][] = [
    ['RIFF\x24\0\0\0WAVEfmt ', 'wav'],
    ['RF64\xff\xff\xff\xffWAVEds64', 'wav'],
    ['RIFF\x24\0\0\0AVI LIST', 'avi'],
    ['RIFF\x24\0\0\0WEBPVP8 ', null],
    ['fLaC\0\0\0\x22', 'flac'],
    ['FORM\0\0\0\x20AIFCCOMM', 'aiff'],
    ['\x1a\x45\xdf\xa3\x9fB\x86', 'webm'],
    ['\0\0\0\x20ftypM4A ', 'mp4'],
    ['\0\0\0\x14ftypqt  ', 'mp4'],
    ['\0\0\0\x08wide\0\0\0\0mdat', 'mp4'],
    ['\x7f\0\0\0mdat', 'mp4'],
    ['caff\0\x01', 'caf'],
    ['#!AMR-WB\n', 'amr'],
    ['\0\0\x01\xba\x44', 'mpeg ps'],
    ['NIST_1A\n   1024\n', 'sphere'],
    ['\x0b\x77\0\0\0\x40', 'ac3'],
    ['\x0b\x77\0\0\0\x80', 'eac3'],
    ['\x0b\x77\0\0\0\xff', null],
    ['\xff\xfb\x90\x64', 'mp3'],
    ['\xff\xfd\x90\x64', 'mp2'],
    ['\xff\xf3\x40\xc4', 'mp3'], // MPEG-2
    ['\xff\xe3\x18\xc4', 'mp3'], // MPEG-2.5
    ['\0\0\0\xff\xfb\x90\x64', 'mp3'],
    ['\xff\xf1\x50\x80\x10\x1f\xfc', 'aac'],
    ['\xff\xf1\x74\x80\x10\x1f\xfc', null], // a reserved sample rate
    ['\xff\xf1\x50\x80\0\x1f\xfc', null], // shorter than its header
    ['\xff\xfb\x00\x64', null], // a free bit rate
    ['\xff\xff\xff\xff', null],
    ['', null],
    ['\0\0\0\0\0\0\0\0', null],
  ];
  for (const [bytes, expected] of cases) assert.equal(nameOf(bytes), expected, JSON.stringify(bytes));
});

test('text is never taken for a container', () => {
  const texts = [
    '#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n',
    'ffconcat version 1.0\nfile /etc/passwd\n',
    '<svg xmlns="http://www.w3.org/2000/svg"/>',
    '<?xml version="1.0"?><MPD/>',
    'The free lunch and the wide road',
    '\xff\xfe#\0E\0X\0T\0', // UTF-16 with a byte order mark
    '\xef\xbb\xbfhello',
    '{"a": 1}',
    '[Script Info]\n',
    'RIFF is a format by the name of WAVE',
  ];
  for (const text of texts) assert.equal(nameOf(text), null, text);
});

test('a tag is stepped over by its length', () => {
  assert.equal(tagLength(head('ID3\x04\0\0\0\0\x02\x01payload')), 10 + 257);
  assert.equal(tagLength(head('ID3\x04\0\x10\0\0\0\x05')), 10 + 5 + 10);
  assert.equal(tagLength(head('ID3\x04')), 0);
  assert.equal(tagLength(head(`APETAGEX\xd0\x07\0\0\x45\0\0\0${'\0'.repeat(16)}`)), 32 + 0x45);
  assert.equal(tagLength(head('fLaC\0\0\0\0\0\0')), 0);
  assert.equal(sniffAfterTag(head('fLaC\0\0\0\x22')).name, 'flac');
  assert.equal(sniffAfterTag(head('\xff\xf1\x50\x80\x10\x1f\xfc')).name, 'aac');
  assert.equal(sniffAfterTag(head('\0\0\0\0\0\0')).name, 'mp3');
  assert.equal(sniffAfterTag(head('#EXTM3U\n')).demuxer, 'mp3');
});

const oggOf = (...encoding: string[]) => readFileSync(makeTone('tone.ogg', ...encoding));

test('Ogg is told apart by its first packet', () => {
  const found = sniffContainer(oggOf('-c:a', 'libvorbis').subarray(0, HEAD_BYTES));
  assert.deepEqual([found?.name, found?.native], ['ogg vorbis', 'vorbis']);
  assert.equal(sniffContainer(oggOf('-c:a', 'libopus'))?.native, null);
  assert.equal(sniffContainer(oggOf('-c:a', 'flac'))?.native, null);
});

test('the pages of an Ogg file show whether it is one stream, and whether it is damaged', async () => {
  const vorbis = oggOf('-c:a', 'libvorbis', '-page_duration', '200000');
  const other = oggOf('-c:a', 'libvorbis', '-serial_offset', '77');
  const at = vorbis.length >> 1;
  const changed = Buffer.from(vorbis);
  changed.fill(0, at, at + 5);
  const [second, last] = [vorbis.indexOf('OggS', 1), vorbis.lastIndexOf('OggS')];
  const sound = Array.from({ length: 400 }, () => vorbis.subarray(second, last));
  const long = Buffer.concat([vorbis.subarray(0, second), ...sound]);
  for (const [name, bytes, container] of [
    ['whole', vorbis, 'ogg vorbis'],
    ['cut', vorbis.subarray(0, -100), 'ogg vorbis'],
    ['with a tag behind it', Buffer.concat([vorbis, Buffer.from(`TAG${'x'.repeat(125)}`)]), 'ogg vorbis'],
    ['long', long, 'ogg vorbis'],
    ['chained', Buffer.concat([vorbis, other]), 'ogg'],
    ['without a byte', Buffer.concat([vorbis.subarray(0, at), vorbis.subarray(at + 1)]), 'ogg damaged'],
    ['with a byte more', Buffer.concat([vorbis.subarray(0, at), vorbis.subarray(at - 1)]), 'ogg damaged'],
    ['changed', changed, 'ogg damaged'],
    ['long, changed at the end', Buffer.concat([long, changed.subarray(second)]), 'ogg damaged'],
    ['twice the same', Buffer.concat([vorbis, vorbis]), 'ogg'],
    ['of zeros', Buffer.concat([vorbis.subarray(0, at), Buffer.alloc(9)]), 'ogg vorbis'],
    ['not Ogg', head('short, and no page at all'), 'ogg vorbis'],
  ] as const) {
    const readAt = async (position: number, length: number) => bytes.subarray(position, position + length);
    const { name: found, isDamaged } = await sniffPages(readAt, undefined);
    assert.equal(`${found}${isDamaged ? ' damaged' : ''}`, container, name);
  }
});

const riff = (kind: string, ...content: (string | Buffer)[]) => {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part as string, 'latin1')));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return Buffer.concat([Buffer.from(kind), size, bytes]);
};

/** An AVI of 8 kHz, 8 bits, with a second of sound in each of its chunks and a picture before each. */
function aviOf(seconds: number, change: (media: Buffer[]) => Buffer[] = (media) => media): Buffer {
  const strh = Buffer.alloc(56);
  strh.write('auds');
  for (const [at, value] of [
    [20, 1],
    [24, 8000],
    [32, 8000 * seconds],
    [44, 1],
  ] as const)
    strh.writeUInt32LE(value, at);
  const strf = Buffer.from('01000100401f0000401f000001000800', 'hex');
  const video = riff('LIST', 'strl', riff('strh', `vids${'\0'.repeat(52)}`));
  const hdrl = riff('LIST', 'hdrl', video, riff('LIST', 'strl', riff('strh', strh), riff('strf', strf)));
  const media = Array.from({ length: seconds }, () => [
    riff('00dc', Buffer.alloc(999, 1), '\0'),
    riff('01wb', Buffer.alloc(8000, 128)),
  ]).flat();
  return riff('RIFF', 'AVI ', hdrl, riff('LIST', 'movi', ...change(media)), riff('idx1'));
}

const aviDamageOf = (bytes: Buffer) =>
  findAviDamage(async (at, length) => bytes.subarray(at, at + length), bytes.length, undefined);

test('an AVI shows where sound is missing, and silence takes its place', async () => {
  const zeros = (media: Buffer[], at: number) =>
    media.map((chunk, i) => (i === at ? Buffer.alloc(chunk.length) : chunk));
  assert.equal(await aviDamageOf(aviOf(9)), null);
  assert.equal(await aviDamageOf(aviOf(9, (media) => zeros(media, 6))), null, 'a picture is no sound');
  const { lost, edits = [], isDamaged } = (await aviDamageOf(aviOf(9, (media) => zeros(media, 7)))) ?? {};
  assert.deepEqual([lost, isDamaged], [[{ startSec: 3, endSec: 4 }], true]);
  assert.deepEqual(
    edits.map(({ remove }) => remove),
    [8 + 8000],
  );
  assert.deepEqual(edits[0]?.insert, riff('01wb', Buffer.alloc(8000, 128)));
  const whole = aviOf(9);
  assert.deepEqual(await aviDamageOf(whole.subarray(0, whole.length - 8 - 3 * 9016)), {
    lost: [],
    beyond: 0.5,
  });
});

test('what only looks like chunks of an AVI costs little', async () => {
  const small = riff('01wb');
  const decoys = Buffer.from('01wb\xff\0\0\0', 'latin1');
  for (const [name, filling] of Object.entries({ small, decoys, digits: Buffer.from('01010101') })) {
    const bytes = aviOf(2, (media) => [...media, Buffer.alloc(8), Buffer.alloc(4 << 20, filling)]);
    const before = process.cpuUsage();
    await aviDamageOf(bytes);
    const { user } = process.cpuUsage(before);
    assert.ok(user < 5e6, `${name}: ${user / 1000} ms`);
  }
});

test('a later chunk of a recording is told from other unknown bytes', () => {
  const webm = readFileSync(
    makeTone('live.webm', '-c:a', 'libopus', '-live', '1', '-cluster_time_limit', '500'),
  );
  const mp4 = readFileSync(
    makeTone('live.mp4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov+default_base_moof'),
  );
  const cluster = webm.lastIndexOf('\x1f\x43\xb6\x75', undefined, 'latin1');
  const block = webm.indexOf(0xa3, cluster);
  const segment = Buffer.from('\0\0\0\x10stypmsdh\0\0\0\0', 'latin1');
  const fragment = mp4.subarray(mp4.indexOf('moof') - 4);
  for (const bytes of [
    webm.subarray(cluster),
    webm.subarray(block),
    fragment,
    Buffer.concat([segment, fragment]),
  ])
    assert.equal(isLaterChunk(bytes), true);
  for (const bytes of [webm, mp4, segment, head('\xa3\x20 pounds'), head('moof'), head('')])
    assert.equal(isLaterChunk(bytes), false);
});

test('transport streams need their sync byte in every packet', () => {
  const ts = readFileSync(makeTone('t.ts', '-c:a', 'aac', '-f', 'mpegts'));
  assert.equal(sniffContainer(ts)?.name, 'mpeg ts');
  assert.equal(nameOf(`G${'o'.repeat(600)}`), null);
});

test('any bytes give an answer from the table, the same one twice, and never an exception', () => {
  const demuxers = new Set(
    'wav w64 mp3 flac ogg mov matroska aiff aac caf amr mpegts mpeg avi flv asf au ac3 eac3 dts wv tta voc nistsphere'.split(
      ' ',
    ),
  );
  const anyHead = fc.oneof(
    fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(
        fc.constantFrom('RIFF', 'OggS', 'ID3\x04', 'FORM', '\xff\xfb', '\0\0\0\x20ftyp', 'G'),
        fc.uint8Array({ maxLength: 400 }),
      )
      .map(([mark, rest]) => Buffer.concat([head(mark), rest])),
  );
  fc.assert(
    fc.property(anyHead, (bytes) => {
      const found = sniffContainer(bytes);
      assert.equal(sniffContainer(Buffer.from(bytes)), found);
      assert.ok(found === null || demuxers.has(found.demuxer));
      assert.ok(tagLength(bytes) >= 0 && tagLength(bytes) <= 20 + 2 ** 28);
      assert.equal(typeof isLaterChunk(bytes), 'boolean');
    }),
    { numRuns: 2000 },
  );
});
