/** Containers that play the same sound again and again without holding it more than once. */
import { big, join, repeat } from './file.ts';

const box = (kind: string, ...body: (Uint8Array | string)[]) => {
  const content = join(...body);
  return join(big(content.length + 8, 4), kind, content);
};
/** A box with a version and flags. */
const fullBox = (kind: string, ...body: (Uint8Array | string)[]) => box(kind, big(0, 4), ...body);
const MATRIX = join(...[0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].map((value) => big(value, 4)));

/** 200 Hz as mu-law at 8 kHz (ITU-T G.711), which is a loud noise as linear samples of 8 bits. */
export const mulaw = (seconds: number): Buffer =>
  Buffer.from(Uint8Array.from({ length: 8000 * seconds }, (_, i) => (i % 40 < 20 ? 0x90 : 0x10)));

/**
 * QuickTime whose table names the same chunk `times` times, in 4 bytes each.
 * @param sound mu-law at 8 kHz
 */
export function repeatingMovie(sound: Buffer, times: number): Buffer {
  const ftyp = box('ftyp', 'qt  ', big(512, 4), 'qt  ');
  const samples = sound.length * times;
  const description = join(
    big(0, 6),
    big(1, 2),
    big(0, 8),
    big(1, 2),
    big(16, 2),
    big(0, 4),
    big(8000 << 16, 4),
  );
  const table = box(
    'stbl',
    fullBox('stsd', big(1, 4), box('ulaw', description)),
    fullBox('stts', big(1, 4), big(samples, 4), big(1, 4)),
    fullBox('stsc', big(1, 4), big(1, 4), big(sound.length, 4), big(1, 4)),
    fullBox('stsz', big(1, 4), big(samples, 4)),
    fullBox('stco', big(times, 4), repeat(times, big(ftyp.length + 8, 4))),
  );
  const reference = fullBox('dref', big(1, 4), box('url ', big(1, 4)));
  const media = box(
    'mdia',
    fullBox('mdhd', big(0, 8), big(8000, 4), big(samples, 4), big(0, 4)),
    fullBox('hdlr', 'mhlr', 'soun', big(0, 13)),
    box('minf', fullBox('smhd', big(0, 4)), box('dinf', reference), table),
  );
  const head = (kind: string, ...times: Buffer[]) => fullBox(kind, big(0, 8), ...times);
  const movie = head(
    'mvhd',
    big(8000, 4),
    big(samples, 4),
    big(0x10000, 4),
    big(0x100, 2),
    big(0, 10),
    MATRIX,
    big(0, 24),
    big(2, 4),
  );
  const track = head('tkhd', big(1, 4), big(0, 4), big(samples, 4), big(0, 16), MATRIX, big(0, 8));
  return join(ftyp, box('mdat', sound), box('moov', movie, box('trak', track, media)));
}

/** An EBML element (RFC 8794); its size takes 4 bytes. */
const element = (id: number, ...body: (Uint8Array | string)[]) => {
  const content = join(...body);
  const idBytes = Math.ceil(id.toString(16).length / 2);
  return join(big(id, idBytes), big(0x10000000 + content.length, 4), content);
};
const number = (id: number, value: number) => element(id, big(value, 4));

/**
 * Matroska that puts the same sound before each of `times` packets of a byte (RFC 9559, section 5.1.4.1.31.6: header
 * stripping).
 * @param sound 8 bits at 8 kHz
 */
export function repeatingMatroska(sound: Buffer, times: number): Buffer {
  const rate = Buffer.alloc(8);
  rate.writeDoubleBE(8000);
  const stripped = element(0x5034, number(0x4254, 3), element(0x4255, sound));
  const track = element(
    0xae,
    ...[number(0xd7, 1), number(0x73c5, 1), number(0x83, 2), element(0x86, 'A_PCM/INT/LIT')],
    element(0xe1, element(0xb5, rate), number(0x9f, 1), number(0x6264, 8)),
    element(0x6d80, element(0x6240, stripped)),
  );
  const packetMs = (sound.length + 1) / 8;
  const clusters = Array.from({ length: times }, (_, i) =>
    element(0x1f43b675, number(0xe7, Math.round(i * packetMs)), element(0xa3, '\x81\x00\x00\x80', '\x80')),
  );
  const tracks = element(0x1654ae6b, track);
  const info = element(0x1549a966, number(0x2ad7b1, 1_000_000));
  const ebml = element(0x1a45dfa3, element(0x4282, 'matroska'), number(0x4287, 4), number(0x4285, 2));
  return join(ebml, element(0x18538067, info, tracks, ...clusters));
}
