/** MP4 files (ISO 14496-12) whose tables lie, refer to other files, or hold no sound. */
import { good } from './cuts.ts';
import { ANY, type BadFile, BOMB, big, join, type Outcome, patch, REFUSED, repeat } from './file.ts';

type Row = [name: string, bytes: Buffer, expected: Outcome | readonly Outcome[]];

const box = (kind: string, ...body: (Uint8Array | string)[]) => {
  const content = join(...body);
  return join(big(content.length + 8, 4), kind, content);
};
const FTYP = box('ftyp', 'isom', big(512, 4), 'isomiso2mp41');

/** Boxes within boxes. */
function nested(kind: string, depth: number): Buffer {
  const levels = Array.from({ length: depth }, (_, i) => join(big(8 * (depth - i), 4), kind));
  return join(FTYP, ...levels);
}

export function lyingMp4s(): BadFile[] {
  const m4a = good('fast.m4a');
  const fragments = good('fragments.mp4');
  const lie = (kind: string, offset: number, value: number, bytes = 4) =>
    patch(m4a, kind, offset, big(value, bytes));
  const rows: Row[] = [
    ['a clock of 0 Hz', lie('mdhd', 16, 0), ANY],
    ['a clock of 4 GHz', lie('mdhd', 16, -1), ANY],
    ['a duration of 4 billion', lie('mdhd', 20, -1), ANY],
    ['a movie clock of 0 Hz', lie('mvhd', 16, 0), ANY],
    ['4 billion samples', lie('stsz', 12, -1), ANY],
    ['40 million samples of 1 byte', patch(m4a, 'stsz', 8, join(big(1, 4), big(40_000_000, 4))), ANY],
    ['80 million samples of 1 byte', patch(m4a, 'stsz', 8, join(big(1, 4), big(80_000_000, 4))), ANY],
    ['80 million samples of no byte', patch(m4a, 'stsz', 8, join(big(0, 4), big(80_000_000, 4))), ANY],
    ['40 million samples in one chunk', inOneChunk(m4a, 40_000_000), ANY],
    ['200 million samples in one chunk', inOneChunk(m4a, 200_000_000), ANY],
    ['samples of 4 GiB', patch(m4a, 'stsz', 8, big(-1, 4)), ANY],
    ['4 billion durations', lie('stts', 8, -1), ANY],
    ['samples that last 4 billion ticks', lie('stts', 16, -1), ANY],
    ['samples that last no time', lie('stts', 16, 0), ANY],
    ['4 billion chunks', lie('stco', 8, -1), ANY],
    ['chunks past the end', lie('stco', 12, -1), REFUSED],
    ['chunks at the start of the file', lie('stco', 12, 0), ANY],
    ['4 billion runs of chunks', lie('stsc', 8, -1), ANY],
    ['chunks of 4 billion samples', lie('stsc', 16, -1), ANY],
    ['chunks of no samples', lie('stsc', 16, 0), ANY],
    ['4 billion descriptions', lie('stsd', 8, -1), ANY],
    ['no description', lie('stsd', 8, 0), ANY],
    ['255 channels', lie('mp4a', 20, 255, 2), ANY],
    ['no channel', lie('mp4a', 20, 0, 2), ANY],
    ['65535 bits', lie('mp4a', 22, -1, 2), ANY],
    ['0 Hz', lie('mp4a', 28, 0), ANY],
    ['65535 Hz', lie('mp4a', 28, -1), ANY],
    ['a codec without a name', patch(m4a, 'mp4a', 0, Buffer.from('zzzz')), ANY],
    ['a codec set-up of 256 MiB', lie('esds', 9, 0xffffff7f), ANY],
    ['edits of 4 billion', patch(m4a, 'elst', 8, big(-1, 4)), ANY],
    ['edits that begin before the audio', patch(m4a, 'elst', 16, big(-(2 ** 31), 4)), ANY],
    ['edits that last 4 billion', patch(m4a, 'elst', 12, big(-1, 4)), ANY],
    ['media of no byte', patch(m4a, 'mdat', -4, big(8, 4)), ANY],
    ['media of 16 EiB', patch(m4a, 'mdat', -4, big(1, 4)), ANY],
    ['a movie of 4 GiB', patch(m4a, 'moov', -4, big(-1, 4)), ANY],
    ['a movie of 8 bytes', patch(m4a, 'moov', -4, big(8, 4)), ANY],
    ['a movie of 4 bytes', patch(m4a, 'moov', -4, big(4, 4)), ANY],
    ['a track of no byte', patch(m4a, 'trak', -4, big(0, 4)), ANY],
    ['a track of 4 GiB', patch(m4a, 'trak', -4, big(-1, 4)), ANY],
    ['a track that is video', patch(m4a, 'hdlr', 12, Buffer.from('vide')), ANY],
    ['a track that is text', patch(m4a, 'hdlr', 12, Buffer.from('text')), ANY],
    ['a fragment of 4 billion samples', patch(fragments, 'trun', 8, big(-1, 4)), ANY],
    ['a fragment at 16 EiB', patch(fragments, 'tfhd', 4, big(0x00000001, 4)), ANY],
    ['a fragment of another track', patch(fragments, 'tfhd', 8, big(99, 4)), ANY],
    ['its type alone', FTYP, REFUSED],
    ['an empty movie', join(FTYP, box('moov')), REFUSED],
    ['two movies', join(m4a, m4a), ANY],
    ['10,000 boxes within each other', nested('moov', 10_000), REFUSED],
    ['10,000 unknown boxes', join(FTYP, repeat(10_000, box('zzzz')), m4a), ANY],
    ['10,000 tracks', join(FTYP, box('moov', repeat(10_000, box('trak')))), REFUSED],
    ['a compressed movie of 64 MiB', join(FTYP, compressedMovie(0x0fffffff)), REFUSED],
    ['a compressed movie of 4 GiB', join(FTYP, compressedMovie(-1)), REFUSED],
    ['a box of 1 byte', join(FTYP, big(1, 4), 'moov', big(1, 8)), REFUSED],
    ['a box of 16 EiB', join(FTYP, big(1, 4), 'moov', big(-1, 8)), REFUSED],
    ['boxes of no end', join(FTYP, repeat(1000, join(big(0, 4), 'free'))), REFUSED],
    [
      'keys for a picture of 4 GiB',
      join(FTYP, box('moov', box('udta', box('meta', big(0, 4), box('ilst', join(big(-1, 4), 'covr')))))),
      REFUSED,
    ],
  ];
  return rows.map(([name, bytes, expected]) => ({ name: `mp4 with ${name}`, bytes, expected }));
}

/** Each sample takes 24 bytes of the index that ffmpeg makes. */
function inOneChunk(m4a: Buffer, samples: number): Buffer {
  const sizes = patch(m4a, 'stsz', 8, join(big(1, 4), big(samples, 4)));
  return patch(sizes, 'stsc', 16, big(samples, 4));
}

/** QuickTime's compressed movie: a bomb that says how large it becomes. */
function compressedMovie(says: number): Buffer {
  const movie = join(big(says, 4), BOMB);
  return box('moov', box('cmov', box('dcom', 'zlib'), box('cmvd', movie)));
}
