/** MPEG audio and ADTS whose headers and tags lie. */
import { deflateSync, gzipSync } from 'node:zlib';
import { good } from './cuts.ts';
import { ANY, type BadFile, BOMB, big, join, type Outcome, patch, REFUSED, repeat } from './file.ts';

/** Seven bits a byte (https://id3.org/id3v2.4.0-structure, section 6.2). */
const synchsafe = (value: number) => [21, 14, 7, 0].map((shift) => (value >> shift) & 0x7f);

function id3(body: Uint8Array, length = body.length, version = 4, flags = 0): Buffer {
  return join('ID3', [version, 0, flags], synchsafe(length), body);
}

const id3Frame = (name: string, body: Uint8Array, flags = 0, length = body.length) =>
  join(name, synchsafe(length), big(flags, 2), body);

const COMPRESSED_WITH_LENGTH = 0x0009;
const zeros = (mebibytes: number) => Buffer.alloc(mebibytes << 20);
const TITLE = id3Frame('TIT2', Buffer.from('\0hello'));

/** PNG of one bit a pixel, all of them the same (https://www.w3.org/TR/png-3/). */
function blackPng(side: number): Buffer {
  const header = join(big(side, 4), big(side, 4), [1, 0, 0, 0, 0]);
  const pixels = deflateSync(Buffer.alloc((Math.ceil(side / 8) + 1) * side));
  const chunk = (name: string, body: Buffer) => join(big(body.length, 4), name, body, big(0, 4));
  return join(
    '\x89PNG\r\n\x1a\n',
    chunk('IHDR', header),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  );
}

/** Tags that are made to cost memory or time, or to confuse. Each goes before audio. */
function badTags(): [name: string, tag: Buffer][] {
  const picture = join('\0image/png\0\x03\0', blackPng(20_000));
  const bomb = join(synchsafe(0x0fffffff), BOMB);
  return [
    ['a text of 64 MiB in 64 kB', id3(id3Frame('TXXX', bomb, COMPRESSED_WITH_LENGTH))],
    ['a picture of 64 MiB in 64 kB', id3(id3Frame('APIC', bomb, COMPRESSED_WITH_LENGTH))],
    ['cover art of 20,000 by 20,000 pixels', id3(id3Frame('APIC', picture))],
    ['cover art that is a link', id3(id3Frame('APIC', join('\0-->\0\x03\0', 'file:///etc/passwd')))],
    ['100,000 frames', id3(join(repeat(100_000, id3Frame('TIT2', Buffer.from('\0')))))],
    ['frames of 256 MiB', id3(join(id3Frame('TIT2', Buffer.alloc(4), 0, 0x0fffffff), TITLE))],
    ['a version from the future', id3(TITLE, TITLE.length, 255, 0xff)],
    ['an extended header past its end', id3(join([0x7f, 0x7f, 0x7f, 0x7f], TITLE), undefined, 4, 0x40)],
    ['another tag within', id3(id3(id3(TITLE)))],
    ['7 more after it', join(repeat(8, id3(TITLE)))],
    ['a length of 0', id3(Buffer.alloc(0))],
    [
      'text that lies about the duration',
      id3(id3Frame('TIT2', Buffer.from('\0\n  Duration: 99:00:00.00, start'))),
    ],
    ['text that lies about the streams', id3(id3Frame('TIT2', Buffer.from('\0matches no streams')))],
  ];
}

type Row = [name: string, bytes: Buffer, expected: Outcome | readonly Outcome[]];

/** The tag of LAME and Xing: `Info`, flags, frames and bytes. */
const xing = (frames: number, bytes: number) =>
  patch(good('a.mp3'), 'Info', 4, join(big(3, 4), big(frames, 4), big(bytes, 4)));

export function lyingMpegs(): BadFile[] {
  const mp3 = good('low.mp3');
  const adts = good('a.aac');
  const header = (bytes: Buffer, ...start: number[]) => join(start, bytes.subarray(start.length));
  const rows: Row[] = [
    ['mp3 of 4 billion frames', xing(-1, 4096), ANY],
    ['mp3 of 4 GiB', xing(100, -1), ANY],
    ['mp3 of no frames', xing(0, 0), ANY],
    ['mp3 in free format', header(mp3, 0xff, 0xfb, 0x00), ANY],
    ['mp3 of the reserved rate', header(mp3, 0xff, 0xfb, 0x9c), ANY],
    ['mp3 with one frame', mp3.subarray(0, 144), ANY],
    ['mp3 with half a frame', mp3.subarray(0, 72), ANY],
    ['mp3 of frames without bits', join(repeat(200, join([0xff, 0xfb, 0x10, 0xc4], Buffer.alloc(100)))), ANY],
    ['mp3 with zeros before it', join(Buffer.alloc(4000), mp3), 'speech'],
    ['mp3 with 4 MiB of zeros before it', join(zeros(4), mp3), ANY],
    ['mp3 with 1 MiB of zeros within', join(mp3.subarray(0, 2000), zeros(1), mp3.subarray(2000)), ANY],
    ['mp3 and nothing but headers', join(repeat(50_000, [0xff, 0xfb, 0x90, 0x64])), ANY],
    ['a tag and no audio', id3(TITLE), REFUSED],
    ['a tag past the end', join(id3(TITLE, 0x0fffffff), mp3), REFUSED],
    ['9 tags', join(repeat(9, id3(TITLE)), mp3), ANY],
    ['1,000 tags', join(repeat(1000, id3(TITLE)), mp3), ANY],
    ['a tag and text', join(id3(TITLE), 'This is no audio. '.repeat(100)), REFUSED],
    ['an APE tag and no audio', join('APETAGEX', Buffer.alloc(24, 0xff)), 'undecodable_audio'],
    ['mp3 and an APE tag of 4 GiB', join(mp3, 'APETAGEX', Buffer.alloc(24, 0xff)), 'speech'],
    ['mp3 and an ID3v1 tag of 0xff', join(mp3, 'TAG', Buffer.alloc(125, 0xff)), 'speech'],
    ['adts of the reserved rate', header(adts, 0xff, 0xf1, 0x7c), ANY],
    ['adts of frames of 0 bytes', join(repeat(1000, [0xff, 0xf1, 0x50, 0x80, 0, 0x1f, 0xfc])), REFUSED],
    ['adts with one frame', adts.subarray(0, 200), ANY],
    ['adts of 8 kB frames', join(repeat(1000, [0xff, 0xf1, 0x50, 0x83, 0xff, 0xff, 0xfc])), REFUSED],
    ...badTags().flatMap(([what, tag]): Row[] => [
      [`mp3 after a tag with ${what}`, join(tag, mp3), ANY],
      [`adts after a tag with ${what}`, join(tag, adts), ANY],
      [`flac after a tag with ${what}`, join(tag, good('a.flac')), ANY],
    ]),
    ['aiff and a tag of 64 MiB in 64 kB', taggedAiff(), ANY],
    ['gzip of 16 MiB', gzipSync(zeros(16)), 'unsupported_format'],
    ['gzip of a wav', gzipSync(good('s16.wav')), 'unsupported_format'],
  ];
  return rows.map(([name, bytes, expected]) => ({ name, bytes, expected }));
}

function taggedAiff(): Buffer {
  const bomb = join(synchsafe(0x0fffffff), BOMB);
  const tag = id3(id3Frame('TXXX', bomb, COMPRESSED_WITH_LENGTH));
  const aiff = good('a.aiff');
  const chunk = join('ID3 ', big(tag.length, 4), tag, tag.length % 2 === 0 ? '' : '\0');
  return patch(
    join(aiff.subarray(0, 12), chunk, aiff.subarray(12)),
    'FORM',
    4,
    big(aiff.length + chunk.length - 8, 4),
  );
}
