/** Headers of wav files that lie, and samples that are no numbers. */
import { ANY, type BadFile, join, little, type Outcome, REFUSED, tone } from './file.ts';

interface Header {
  tag?: number;
  channels?: number;
  rate?: number;
  bits?: number;
  blockBytes?: number;
  /** What follows the 16 bytes of the format. */
  extra?: Buffer;
  formatBytes?: number;
  riffBytes?: number;
  dataBytes?: number;
  /** What stands before the format. */
  before?: Buffer;
  mark?: string;
}

const SECOND = tone(1);

function wav(header: Header, data: Buffer = SECOND): Buffer {
  const { tag = 1, channels = 1, rate = 16_000, bits = 16, extra = Buffer.alloc(0) } = header;
  const blockBytes = header.blockBytes ?? Math.ceil((channels * bits) / 8);
  const format = join(
    ...[little(tag, 2), little(channels, 2), little(rate, 4), little(rate * blockBytes, 4)],
    ...[little(blockBytes, 2), little(bits, 2), extra],
  );
  const body = join(
    ...['WAVE', header.before ?? '', 'fmt ', little(header.formatBytes ?? format.length, 4), format],
    ...['data', little(header.dataBytes ?? data.length, 4), data],
  );
  return join(header.mark ?? 'RIFF', little(header.riffBytes ?? body.length, 4), body);
}

const extensible = (validBits: number, guid: string) => ({
  tag: 0xfffe,
  extra: join(little(22, 2), little(validBits, 2), little(4, 4), Buffer.from(guid, 'hex')),
});
const PCM_GUID = '0100000000001000800000aa00389b71';

const floats = (bits: 32 | 64, ...values: number[]) => {
  const repeated = Array.from({ length: 16_000 }, (_, i) => values[i % values.length] ?? 0);
  const array = bits === 32 ? Float32Array.from(repeated) : Float64Array.from(repeated);
  return Buffer.from(array.buffer);
};
const { NaN: nan, POSITIVE_INFINITY: infinite, MAX_VALUE: largest, MIN_VALUE: least } = Number;

type Row = [name: string, header: Header, expected: Outcome | readonly Outcome[], data?: Buffer];

const ROWS: Row[] = [
  ['0 Hz', { rate: 0 }, 'undecodable_audio'],
  ['1 Hz', { rate: 1 }, ANY],
  ['1 Hz and 59 samples', { rate: 1 }, ANY, SECOND.subarray(0, 118)],
  ['1999 Hz', { rate: 1999 }, 'speech'],
  ['384 kHz', { rate: 384_000 }, 'silence'],
  ['2 GHz', { rate: 2 ** 31 - 1 }, ANY],
  ['4 GHz', { rate: -1 }, 'undecodable_audio'],
  ['no channel', { channels: 0, blockBytes: 2 }, 'undecodable_audio'],
  ['33 channels', { channels: 33 }, ANY],
  ['255 channels', { channels: 255 }, ANY],
  ['65535 channels', { channels: -1, blockBytes: -1 }, 'undecodable_audio'],
  ['255 channels in blocks of 2 bytes', { channels: 255, blockBytes: 2 }, ANY],
  ...[0, 1, 2, 3, 4, 7, 9, 12, 15, 17, 20, 31, 33, 40, 48, 63, 65, 128, 255, 256, 65_535].map(
    (bits): Row => [`${bits} bits a sample`, { bits }, ANY],
  ),
  ['float of 16 bits', { tag: 3, bits: 16 }, ANY],
  ['float of 24 bits', { tag: 3, bits: 24 }, ANY],
  ['float of 80 bits', { tag: 3, bits: 80 }, ANY],
  ...[0, 2, 5, 0x11, 0x31, 0x50, 0x55, 0x161, 0x2000, 0x566f, 0x674f, 0x9999, 0xf1ac, 0xffff].map(
    (tag): Row => [`format tag 0x${tag.toString(16)} on plain samples`, { tag }, ANY],
  ),
  ['ADPCM in blocks of 0 bytes', { tag: 2, bits: 4, blockBytes: 0 }, ANY],
  ['ADPCM in blocks of 65535 bytes', { tag: 2, bits: 4, blockBytes: -1 }, ANY],
  [
    'ADPCM with 65535 coefficients',
    { tag: 2, bits: 4, blockBytes: 256, extra: join(little(32, 2), little(-1, 2), little(-1, 2)) },
    ANY,
  ],
  ['IMA ADPCM in blocks of 1 byte', { tag: 0x11, bits: 4, blockBytes: 1 }, ANY],
  ['IMA ADPCM with 255 channels', { tag: 0x11, bits: 4, channels: 255, blockBytes: 1024 }, ANY],
  ['blocks of 0 bytes', { blockBytes: 0 }, ANY],
  ['blocks of 65535 bytes', { blockBytes: -1 }, ANY],
  ['an extension of its own', extensible(16, PCM_GUID), 'speech'],
  ['an extension with 0 valid bits', extensible(0, PCM_GUID), 'speech'],
  ['an extension with 65535 valid bits', extensible(-1, PCM_GUID), ANY],
  ['an extension of an unknown kind', extensible(16, 'ff'.repeat(16)), ANY],
  ['an extension that ends early', { tag: 0xfffe, extra: little(22, 2) }, ANY],
  ['a format of 0 bytes', { formatBytes: 0 }, ANY],
  ['a format of 4 GiB', { formatBytes: -1 }, REFUSED],
  ['a format of 2 GiB', { formatBytes: 2 ** 31 - 1 }, REFUSED],
  ['a RIFF of 0 bytes', { riffBytes: 0 }, 'speech'],
  ['a RIFF of 4 GiB', { riffBytes: -1 }, 'speech'],
  ['samples of 0 bytes', { dataBytes: 0 }, 'speech'],
  ['samples of 4 GiB', { dataBytes: -1 }, 'speech'],
  ['samples of 2 GiB', { dataBytes: 2 ** 31 }, 'speech'],
  ['one byte of samples', {}, REFUSED, Buffer.alloc(1)],
  ['an RF64 without its sizes', { mark: 'RF64', riffBytes: -1, dataBytes: -1 }, ANY],
  [
    'an RF64 of 16 EiB',
    {
      ...{ mark: 'RF64', riffBytes: -1, dataBytes: -1 },
      before: join('ds64', little(28, 4), Buffer.alloc(24, 0xff), little(0, 4)),
    },
    ANY,
  ],
  ['the order of bytes turned round', { mark: 'RIFX' }, ANY],
  ['100,000 empty chunks', { before: Buffer.from('junk\0\0\0\0'.repeat(100_000)) }, ANY],
  ['a chunk of 4 GiB before the format', { before: join('LIST', little(-1, 4)) }, REFUSED],
  ['a chunk that ends at itself', { before: join('LIST', little(-8, 4)) }, REFUSED],
  ['a list that holds a list of itself', { before: join('LIST', little(4, 4), 'LIST'.repeat(1000)) }, ANY],
  ['a sampler with 4 billion loops', { before: join('smpl', little(36, 4), Buffer.alloc(36, 0xff)) }, ANY],
  ['a bext of one byte', { before: join('bext', little(1, 4), [0, 0]) }, ANY],
  ['cue points that are not there', { before: join('cue ', little(4, 4), little(-1, 4)) }, ANY],
  ['two formats', { before: join('fmt ', little(16, 4), Buffer.alloc(16, 0xff)) }, ANY],
  ...([32, 64] as const).flatMap((bits): Row[] => [
    [`NaN of ${bits} bits`, { tag: 3, bits }, 'silence', floats(bits, nan)],
    [`infinity of ${bits} bits`, { tag: 3, bits }, ANY, floats(bits, infinite, -infinite)],
    [`NaN among samples of ${bits} bits`, { tag: 3, bits }, 'speech', floats(bits, nan, 0.5, -0.5)],
    [`the largest numbers of ${bits} bits`, { tag: 3, bits }, ANY, floats(bits, largest, -largest)],
    [`the least numbers of ${bits} bits`, { tag: 3, bits }, 'silence', floats(bits, least)],
  ]),
];

export function lyingWavs(): BadFile[] {
  return ROWS.map(([name, header, expected, data]) => ({
    name: `wav with ${name}`,
    bytes: wav(header, data),
    expected,
  }));
}
