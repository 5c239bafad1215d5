/** FLAC files (RFC 9639) whose headers lie, and silence that takes next to no space. */
import { ANY, type BadFile, big, join, type Outcome, patch, REFUSED, repeat } from './file.ts';

const table = (polynomial: number, bits: 8 | 16) =>
  Array.from({ length: 256 }, (_, byte) => {
    let rest = byte << (bits - 8);
    for (let i = 0; i < 8; i += 1) rest = (rest << 1) ^ (rest >> (bits - 1) ? polynomial | (1 << bits) : 0);
    return rest;
  });
const CRC8 = table(0x07, 8);
const CRC16 = table(0x8005, 16);
const crc8 = (bytes: Uint8Array) => bytes.reduce((crc, byte) => CRC8[crc ^ byte] ?? 0, 0);
const crc16 = (bytes: Uint8Array) =>
  bytes.reduce((crc, byte) => ((crc << 8) & 0xffff) ^ (CRC16[(crc >> 8) ^ byte] ?? 0), 0);

interface StreamInfo {
  blockSize?: number;
  rate?: number;
  channels?: number;
  bits?: number;
  samples?: number;
}

/** Section 8.2. */
function streamInfo({ blockSize = 65_535, rate = 16_000, channels = 1, bits = 16, samples = 0 }: StreamInfo) {
  const packed =
    (BigInt(rate) << 44n) | (BigInt(channels - 1) << 41n) | (BigInt(bits - 1) << 36n) | BigInt(samples);
  const body = Buffer.alloc(34);
  body.writeUInt16BE(blockSize, 0);
  body.writeUInt16BE(blockSize, 2);
  body.writeBigUInt64BE(packed, 10);
  return body;
}

const block = (type: number, body: Uint8Array, length = body.length, last = false) =>
  join([type | (last ? 0x80 : 0)], big(length, 3), body);

/** A block of 65535 samples of silence in 13 to 16 bytes (sections 9.1 and 9.2.3). */
function silentFrame(number: number): Buffer {
  const coded = number < 128 ? [number] : [...Buffer.from(String.fromCodePoint(number))];
  const header = join([0xff, 0xf8, 0x75, 0x08], coded, big(65_534, 2));
  const frame = join(header, [crc8(header)], [0, 0, 0]);
  return join(frame, big(crc16(frame), 2));
}

const HOUR_SAMPLES = 3600 * 16_000;

/** Silence at 16 kHz; 100 hours take 1.3 MB. The header says how long it is, or nothing. */
export function silentFlac(hours: number, says: number = hours * HOUR_SAMPLES): Buffer {
  // Code points from D800 to DFFF cannot be written as text, so the numbers of frames start again before them.
  const count = Math.ceil((hours * HOUR_SAMPLES) / 65_535);
  const frames = Array.from({ length: count }, (_, i) => silentFrame(i % 0xd000));
  return join('fLaC', block(0, streamInfo({ samples: says }), 34, true), ...frames);
}

const frames = Array.from({ length: 4 }, (_, i) => silentFrame(i));
const flac = (info: StreamInfo, ...blocks: Buffer[]) =>
  join('fLaC', block(0, streamInfo(info), 34, blocks.length === 0), ...blocks, ...frames);
const lastBlock = (type: number, body: Uint8Array, length = body.length) => block(type, body, length, true);

export function lyingFlacs(): BadFile[] {
  const rows: [name: string, bytes: Buffer, expected: Outcome | readonly Outcome[]][] = [
    ['nothing wrong', flac({}), 'silence'],
    ['100 h of silence', silentFlac(100), 'audio_too_long'],
    ['100 h of silence that it does not announce', silentFlac(100, 0), 'audio_too_long'],
    ['100 h of silence announced as a second', silentFlac(100, 16_000), ANY],
    ['0 Hz', flac({ rate: 0 }), ANY],
    ['1 Hz', flac({ rate: 1 }), ANY],
    ['1048575 Hz', flac({ rate: 1_048_575 }), ANY],
    ['8 channels in the header and 1 in the frames', flac({ channels: 8 }), ANY],
    ['1 bit a sample', flac({ bits: 1 }), ANY],
    ['32 bits a sample', flac({ bits: 32 }), ANY],
    ['blocks of 0 samples', flac({ blockSize: 0 }), ANY],
    ['blocks of 16 samples in the header', flac({ blockSize: 16 }), ANY],
    ['68 billion samples', flac({ samples: 2 ** 36 - 1 }), 'audio_too_long'],
    ['one sample in the header', flac({ samples: 1 }), ANY],
    ['no end of its metadata', flac({}, block(4, Buffer.alloc(8))), ANY],
    [
      '10,000 empty paddings',
      flac({}, repeat(10_000, block(1, Buffer.alloc(0))), lastBlock(1, Buffer.alloc(0))),
      ANY,
    ],
    ['a padding past its end', flac({}, lastBlock(1, Buffer.alloc(8), -1)), REFUSED],
    ['a picture of 4 GiB', flac({}, lastBlock(6, Buffer.alloc(32, 0xff))), ANY],
    ['a picture past its end', flac({}, lastBlock(6, Buffer.alloc(32), -1)), REFUSED],
    ['4 billion comments', flac({}, lastBlock(4, join(big(0, 4), big(-1, 4)))), ANY],
    ['a comment of 4 GiB', flac({}, lastBlock(4, join(big(0, 4), [1, 0, 0, 0], big(-1, 4)))), ANY],
    ['a seek table of 900,000 points', flac({}, lastBlock(3, Buffer.alloc(18 * 900_000, 0xff))), ANY],
    ['a cue sheet of 255 tracks', flac({}, lastBlock(5, Buffer.alloc(396, 0xff))), ANY],
    ['a second header', flac({}, lastBlock(0, streamInfo({ rate: 0 }))), ANY],
    [
      'blocks of the reserved types',
      flac({}, block(126, Buffer.alloc(9)), lastBlock(127, Buffer.alloc(9))),
      ANY,
    ],
    ['no frames', join('fLaC', lastBlock(0, streamInfo({}))), REFUSED],
    ['frames and no header', join('fLaC', ...frames), REFUSED],
    ['only its name', join('fLaC'), REFUSED],
    ['a header of 33 bytes', patch(flac({}), 'fLaC', 7, Uint8Array.of(33)), ANY],
  ];
  return rows.map(([name, bytes, expected]) => ({ name: `flac with ${name}`, bytes, expected }));
}
