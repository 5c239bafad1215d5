/** Ogg, Matroska, AIFF, AU, CAF, Wave64, ASF, FLV, AVI, AMR and MPEG streams whose headers lie. */
import { endlessSearch, vorbisOfGigabytes } from '../hostile-audio.ts';
import { good } from './cuts.ts';
import {
  ANY,
  type BadFile,
  BOMB,
  big,
  join,
  little,
  type Outcome,
  patch,
  REFUSED,
  repeat,
  tone,
} from './file.ts';

type Row = [name: string, bytes: Buffer, expected: Outcome | readonly Outcome[]];

const OGG_CRC = Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let i = 0; i < 8; i += 1) rest = (rest << 1) ^ (rest < 0 ? 0x04c11db7 : 0);
  return rest >>> 0;
});

/** Makes the checksums of all pages right again (RFC 3533, section 6), because wrong ones are not read. */
function sealed(ogg: Buffer): Buffer {
  const file = Buffer.from(ogg);
  for (let at = 0; at >= 0 && at + 27 <= file.length; at = file.indexOf('OggS', at + 4, 'latin1')) {
    const segments = file.subarray(at + 27, at + 27 + (file[at + 26] ?? 0));
    const length = 27 + segments.length + segments.reduce((sum, size) => sum + size, 0);
    file.writeUInt32LE(0, at + 22);
    let crc = 0;
    for (const byte of file.subarray(at, at + length))
      crc = (((crc << 8) >>> 0) ^ (OGG_CRC[(crc >>> 24) ^ byte] ?? 0)) >>> 0;
    file.writeUInt32LE(crc, at + 22);
  }
  return file;
}

function lyingOggs(): Row[] {
  const opus = good('opus.ogg');
  const vorbis = good('a.ogg');
  const head = (offset: number, bytes: Buffer) => sealed(patch(opus, 'OpusHead', offset, bytes));
  const page = (file: Buffer, offset: number, bytes: Buffer) => sealed(patch(file, 'OggS', offset, bytes));
  return [
    ['opus with 0 channels', head(9, big(0, 1)), ANY],
    ['opus with 255 channels', head(9, big(255, 1)), ANY],
    ['opus with 65535 samples to skip', head(10, big(-1, 2)), ANY],
    ['opus of 0 Hz', head(12, big(0, 4)), ANY],
    ['opus of 4 GHz', head(12, big(-1, 4)), ANY],
    ['opus of a gain of 128 dB', head(16, little(0x7fff, 2)), ANY],
    ['opus with an unknown mapping', head(18, big(255, 1)), ANY],
    ['opus with comments of 4 GiB', sealed(patch(opus, 'OpusTags', 8, big(-1, 4))), ANY],
    ['opus of another version', head(8, big(255, 1)), ANY],
    ['vorbis of 0 Hz', sealed(patch(vorbis, '\x01vorbis', 12, big(0, 4))), ANY],
    ['vorbis of 4 GHz', sealed(patch(vorbis, '\x01vorbis', 12, big(-1, 4))), ANY],
    ['vorbis with 0 channels', sealed(patch(vorbis, '\x01vorbis', 11, big(0, 1))), ANY],
    ['vorbis with 255 channels', sealed(patch(vorbis, '\x01vorbis', 11, big(255, 1))), ANY],
    ['vorbis with comments of 4 GiB', sealed(patch(vorbis, '\x03vorbis', 7, big(-1, 4))), ANY],
    ['vorbis with 4 billion comments', sealed(patch(vorbis, '\x03vorbis', 7, Buffer.alloc(24, 0xff))), ANY],
    ['vorbis with codebooks of 55 GB', vorbisOfGigabytes(), 'undecodable_audio'],
    ['vorbis with codebooks of 55 GB and right checksums', sealed(vorbisOfGigabytes()), 'undecodable_audio'],
    ['vorbis with another version of Ogg', page(vorbis, 4, big(255, 1)), ANY],
    ['vorbis with pages of no segment', page(vorbis, 26, big(0, 1)), ANY],
    ['vorbis with pages of 255 segments', page(vorbis, 26, big(255, 1)), ANY],
    ['vorbis with wrong checksums', patch(vorbis, 'OggS', 22, big(-1, 4)), ANY],
    ['ogg with 4,000 streams', join(...Array.from({ length: 4000 }, (_, i) => emptyStream(i))), REFUSED],
    ['ogg with empty pages', join(repeat(20_000, emptyStream(1))), REFUSED],
    ['ogg with its name alone', join('OggS'), REFUSED],
    ['ogg of an unknown codec', sealed(patch(opus, 'OpusHead', 0, Buffer.from('Whatever'))), REFUSED],
    ['two ogg files of the same stream', join(vorbis, vorbis), 'speech'],
    ['an ogg file and half of another', join(vorbis, opus.subarray(0, opus.length / 2)), 'speech'],
  ];
}

const emptyStream = (serial: number) =>
  sealed(join('OggS', [0, 2], Buffer.alloc(8), little(serial, 4), Buffer.alloc(8), [0]));

/** EBML with sizes of 8 bytes (RFC 8794, section 4). */
const ebml = (id: number[], ...body: (Uint8Array | string)[]) => {
  const content = join(...body);
  return join(id, [1], big(content.length, 7), content);
};
const HEADER = ebml([0x1a, 0x45, 0xdf, 0xa3], ebml([0x42, 0x82], 'matroska'));

interface Track {
  rate?: number;
  channels?: number;
  bits?: number;
  codec?: string;
  /** Compressed with zlib, all the same. */
  compressed?: Buffer;
  codecPrivate?: Buffer;
  type?: number;
}

function double(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

/** Matroska with one track and one block of PCM (https://www.matroska.org/technical/elements.html). */
function matroska(track: Track, ...more: Buffer[]): Buffer {
  const { rate = 16_000, channels = 1, bits = 16, codec = 'A_PCM/INT/LIT', type = 2 } = track;
  const encodings = ebml(
    [0x6d, 0x80],
    ebml([0x62, 0x40], ebml([0x50, 0x34], ebml([0x42, 0x54], [0] as never))),
  );
  const entry = ebml(
    [0xae],
    ...[ebml([0xd7], '\x01'), ebml([0x73, 0xc5], '\x01'), ebml([0x83], big(type, 1)), ebml([0x86], codec)],
    ...(track.codecPrivate === undefined ? [] : [ebml([0x63, 0xa2], track.codecPrivate)]),
    ...(track.compressed === undefined ? [] : [encodings]),
    ebml(
      [0xe1],
      ebml([0xb5], double(rate)),
      ebml([0x9f], big(channels, 4)),
      ebml([0x62, 0x64], big(bits, 4)),
    ),
  );
  const sound = track.compressed ?? tone(1);
  const cluster = ebml([0x1f, 0x43, 0xb6, 0x75], ebml([0xe7], '\0'), ebml([0xa3], '\x81\0\0\x80', sound));
  const info = ebml([0x15, 0x49, 0xa9, 0x66], ebml([0x2a, 0xd7, 0xb1], big(1_000_000, 4)));
  const body = join(info, ebml([0x16, 0x54, 0xae, 0x6b], entry), ...more, cluster);
  return join(HEADER, ebml([0x18, 0x53, 0x80, 0x67], body));
}

function lyingMatroskas(): Row[] {
  const nested = (id: number[], depth: number) =>
    Array.from({ length: depth }).reduce<Buffer>((inner) => ebml(id, inner), Buffer.alloc(0));
  return [
    ['nothing wrong', matroska({}), 'speech'],
    ['0 Hz', matroska({ rate: 0 }), ANY],
    ['NaN Hz', matroska({ rate: Number.NaN }), ANY],
    ['infinite Hz', matroska({ rate: Number.POSITIVE_INFINITY }), ANY],
    ['-1 Hz', matroska({ rate: -1 }), ANY],
    ['1e300 Hz', matroska({ rate: 1e300 }), ANY],
    ['0 channels', matroska({ channels: 0 }), ANY],
    ['255 channels', matroska({ channels: 255 }), ANY],
    ['4 billion channels', matroska({ channels: -1 }), ANY],
    ['0 bits', matroska({ bits: 0 }), ANY],
    ['17 bits', matroska({ bits: 17 }), ANY],
    ['4 billion bits', matroska({ bits: -1 }), ANY],
    ['an unknown codec', matroska({ codec: 'A_WHATEVER' }), REFUSED],
    ['a codec of 64 kB', matroska({ codec: 'A'.repeat(65_536) }), REFUSED],
    ['a codec without a name', matroska({ codec: '' }), REFUSED],
    ['opus without its header', matroska({ codec: 'A_OPUS' }), ANY],
    ['vorbis of lying sizes', matroska({ codec: 'A_VORBIS', codecPrivate: Buffer.alloc(64, 0xff) }), REFUSED],
    ['flac without its header', matroska({ codec: 'A_FLAC' }), ANY],
    ['samples of 64 MiB in 64 kB', matroska({ compressed: BOMB }), ANY],
    ['samples that are compressed badly', matroska({ compressed: Buffer.alloc(1000, 0xff) }), ANY],
    ['a track of video alone', matroska({ type: 1, codec: 'V_UNCOMPRESSED' }), REFUSED],
    ['a track of subtitles alone', matroska({ type: 17, codec: 'S_TEXT/UTF8' }), 'no_audio_stream'],
    ['a track of an unknown kind', matroska({ type: 99 }), REFUSED],
    ['5,000 levels of chapters', matroska({}, nested([0xb6], 5000)), ANY],
    ['5,000 levels of tags', matroska({}, nested([0x67, 0xc8], 5000)), ANY],
    [
      'an attachment of 8 MiB',
      matroska({}, ebml([0x19, 0x41, 0xa4, 0x69], Buffer.alloc(64 << 20))),
      'speech',
    ],
    ['an attachment past its end', matroska({}, join([0x19, 0x41, 0xa4, 0x69, 1], big(-1, 7))), ANY],
    ['100,000 empty elements', matroska({}, repeat(100_000, ebml([0xec]))), 'speech'],
    ['its header alone', HEADER, REFUSED],
    [
      'a segment of unknown size and nothing in it',
      join(HEADER, [0x18, 0x53, 0x80, 0x67, 1], big(-1, 7)),
      REFUSED,
    ],
    ['a document of 16 EiB', join([0x1a, 0x45, 0xdf, 0xa3, 1], big(-1, 7)), REFUSED],
  ].map(([name, bytes, expected]) => [`matroska with ${name}`, bytes, expected] as Row);
}

/** 80-bit numbers of AIFF: 16 kHz, nothing, infinity and NaN. */
const RATES = {
  nothing: '0'.repeat(20),
  infinity: '7fff8000000000000000',
  NaN: '7fffffffffffffffffff',
  least: '00000000000000000001',
};

function others(): Row[] {
  const [aiff, au, caf, w64] = [good('a.aiff'), good('a.au'), good('a.caf'), good('a.w64')];
  const [wma, flv, avi, ts, mpg] = [good('a.wma'), good('a.flv'), good('a.avi'), good('a.ts'), good('a.mpg')];
  const rawAu = (encoding: number, rate: number, channels: number, data: Buffer) =>
    join('.snd', big(24, 4), big(data.length, 4), big(encoding, 4), big(rate, 4), big(channels, 4), data);
  const nans = Buffer.from(Float32Array.from({ length: 16_000 }, () => Number.NaN).buffer).swap32();
  const infinite = Buffer.from(
    Float32Array.from({ length: 16_000 }, () => Number.POSITIVE_INFINITY).buffer,
  ).swap32();
  return [
    ...Object.entries(RATES).map(
      ([what, hex]): Row => [
        `aiff with a rate of ${what}`,
        patch(aiff, 'COMM', 16, Buffer.from(hex, 'hex')),
        ANY,
      ],
    ),
    ['aiff with 0 channels', patch(aiff, 'COMM', 8, big(0, 2)), ANY],
    ['aiff with 65535 channels', patch(aiff, 'COMM', 8, big(-1, 2)), ANY],
    ['aiff with 4 billion frames', patch(aiff, 'COMM', 10, big(-1, 4)), ANY],
    ['aiff with 17 bits', patch(aiff, 'COMM', 14, big(17, 2)), ANY],
    ['aiff with 65535 bits', patch(aiff, 'COMM', 14, big(-1, 2)), ANY],
    ['aiff with samples of 4 GiB', patch(aiff, 'SSND', 4, big(-1, 4)), ANY],
    ['aiff with samples that begin past the end', patch(aiff, 'SSND', 8, big(-1, 4)), ANY],
    ['au of NaN', rawAu(6, 16_000, 1, nans), 'silence'],
    ['au of infinity', rawAu(6, 16_000, 1, infinite), ANY],
    ['au of 0 Hz', rawAu(3, 0, 1, tone(1)), REFUSED],
    ['au of 1 Hz', rawAu(3, 1, 1, tone(1)), ANY],
    ['au of 4 GHz', rawAu(3, -1, 1, tone(1)), REFUSED],
    ['au with 0 channels', rawAu(3, 16_000, 0, tone(1)), REFUSED],
    ['au with 255 channels', rawAu(3, 16_000, 255, tone(1)), ANY],
    ['au with 4 billion channels', rawAu(3, 16_000, -1, tone(1)), REFUSED],
    ['au of an unknown encoding', rawAu(99, 16_000, 1, tone(1)), REFUSED],
    ['au with a header of 4 GiB', patch(au, '.snd', 4, big(-1, 4)), ANY],
    ['au with a header of 0 bytes', patch(au, '.snd', 4, big(0, 4)), ANY],
    ['caf of NaN Hz', patch(caf, 'desc', 12, double(Number.NaN)), ANY],
    ['caf of 0 Hz', patch(caf, 'desc', 12, double(0)), ANY],
    ['caf of 1e300 Hz', patch(caf, 'desc', 12, double(1e300)), ANY],
    ['caf with 4 billion bytes a packet', patch(caf, 'desc', 28, big(-1, 4)), ANY],
    ['caf with 4 billion channels', patch(caf, 'desc', 36, big(-1, 4)), ANY],
    ['caf with 4 billion bits', patch(caf, 'desc', 40, big(-1, 4)), ANY],
    ['caf with samples of 8 EiB', patch(caf, 'data', 4, join([0x7f], big(-1, 7))), ANY],
    ['caf with a table of packets of 8 EiB', patch(caf, 'data', 0, join('pakt', [0x7f], big(-1, 7))), ANY],
    ['w64 of 0 Hz', patch(w64, 'fmt \xf3', 28, big(0, 4)), ANY],
    ['w64 with a format of 16 EiB', patch(w64, 'fmt \xf3', 16, big(-1, 8)), ANY],
    ['w64 with samples of 16 EiB', patch(w64, 'data\xf3', 16, big(-1, 8)), ANY],
    ['w64 with a format of no byte', patch(w64, 'fmt \xf3', 16, big(0, 8)), ANY],
    ['asf with a header of 16 EiB', patch(wma, '\x30\x26\xb2\x75', 16, big(-1, 8)), ANY],
    ['asf with packets of 0 bytes', patch(wma, '\xa1\xdc\xab\x8c', 92, big(0, 8)), ANY],
    ['asf with packets of 4 GiB', patch(wma, '\xa1\xdc\xab\x8c', 92, big(-1, 8)), ANY],
    ['flv with tags of 16 MiB', patch(flv, 'FLV', 14, big(-1, 3)), ANY],
    ['flv that announces video alone', patch(flv, 'FLV', 4, big(1, 1)), ANY],
    ['flv that begins past its end', patch(flv, 'FLV', 5, big(-1, 4)), ANY],
    ['avi with 4 billion streams', patch(avi, 'avih', 32, big(-1, 4)), ANY],
    ['avi with a list of 4 GiB', patch(avi, 'hdrl', -4, big(-1, 4)), ANY],
    ['avi with a scale of 0', patch(avi, 'auds', 20, big(0, 4)), ANY],
    ['avi with a stream of video', patch(avi, 'auds', 0, Buffer.from('vids')), ANY],
    ['avi with an index of 4 GiB', patch(avi, 'idx1', 4, big(-1, 4)), ANY],
    [
      'ts of empty packets',
      Buffer.concat(Array(5000).fill(join('\x47\x1f\xff\x10', Buffer.alloc(184, 0xff)))),
      REFUSED,
    ],
    [
      'ts of 8192 programs',
      Buffer.concat(
        Array.from({ length: 5000 }, (_, i) =>
          join([0x47, 0x40 | ((i >> 8) & 0x1f), i & 0xff, 0x10], Buffer.alloc(184, i)),
        ),
      ),
      REFUSED,
    ],
    ['ts with adaptation fields of 255 bytes', patch(ts, '\x47', 3, big(0x3fff, 2)), ANY],
    ['mpeg with a stream of private data', patch(mpg, '\0\0\x01\xc0', 3, big(0xbd, 1)), ANY],
    ['mpeg of start codes alone', join(repeat(20_000, '\0\0\x01\xba')), REFUSED],
    ['amr of frames without data', join('#!AMR\n', Buffer.alloc(5000, 0x7c)), ANY],
    ['amr of an unknown mode', join('#!AMR\n', Buffer.alloc(5000, 0x5c)), ANY],
    ['amr of many channels', join('#!AMR_MC1.0\n', big(255, 4), Buffer.alloc(500, 0x3c)), ANY],
    ['amr of wide band that is too short', join('#!AMR-WB\n', Buffer.alloc(10, 0x24)), ANY],
    ['mp3 of a search without end', endlessSearch(1 << 20), ANY],
  ];
}

export function lyingContainers(): BadFile[] {
  return [...lyingOggs(), ...lyingMatroskas(), ...others()].map(([name, bytes, expected]) => ({
    name,
    bytes,
    expected,
  }));
}
