/**
 * First bytes -> container. The name and the type a client declares are never looked at. Only what is recognized
 * here reaches a decoder, and under the demuxer named here: were ffmpeg left to guess, a playlist (m3u8, ffconcat)
 * would make it open other files and addresses.
 */

export interface Container {
  /** Shown to people. */
  name: string;
  /** ffmpeg's name of the one demuxer that may read it. */
  demuxer: string;
  /** The addon decodes the usual encodings in it. */
  native: boolean;
}

function container(name: string, demuxer: string, native = false): Container {
  return Object.freeze({ name, demuxer, native });
}

const WAV = container('wav', 'wav', true);
const MP3 = container('mp3', 'mp3', true);
const FLAC = container('flac', 'flac', true);
const VORBIS = container('ogg vorbis', 'ogg', true);
const OGG = container('ogg', 'ogg');
const AAC = container('aac', 'aac');
const MPEG_TS = container('mpeg ts', 'mpegts');

/** Formats told by bytes at a fixed place: [offset, bytes as latin1]... all must match. */
const SIGNATURES: [Container, ...[number, string][]][] = [
  [WAV, [0, 'RIFF'], [8, 'WAVE']],
  [WAV, [0, 'RIFX'], [8, 'WAVE']],
  [WAV, [0, 'RF64'], [8, 'WAVE']],
  [WAV, [0, 'BW64'], [8, 'WAVE']],
  [FLAC, [0, 'fLaC']],
  [container('webm', 'matroska'), [0, '\x1a\x45\xdf\xa3']],
  [container('aiff', 'aiff'), [0, 'FORM'], [8, 'AIFF']],
  [container('aiff', 'aiff'), [0, 'FORM'], [8, 'AIFC']],
  [container('w64', 'w64'), [0, 'riff\x2e\x91\xcf\x11']],
  [container('caf', 'caf'), [0, 'caff']],
  [container('amr', 'amr'), [0, '#!AMR']],
  [container('au', 'au'), [0, '.snd']],
  [container('avi', 'avi'), [0, 'RIFF'], [8, 'AVI ']],
  [container('flv', 'flv'), [0, 'FLV\x01']],
  [container('asf', 'asf'), [0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11']],
  [container('mpeg ps', 'mpeg'), [0, '\x00\x00\x01\xba']],
  [MPEG_TS, [0, '\x47'], [188, '\x47'], [376, '\x47']],
];

const MP4 = container('mp4', 'mov');
const MP4_FIRST_BOXES = new Set(['ftyp', 'styp', 'moov', 'wide', 'free', 'skip', 'pnot']);

/** How many bytes `sniffContainer` can make use of. */
export const HEAD_BYTES = 4096;

export function sniffContainer(head: Uint8Array): Container | null {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  for (const [found, ...marks] of SIGNATURES) {
    if (marks.every(([offset, mark]) => hasText(bytes, offset, mark))) return found;
  }
  if (hasText(bytes, 0, 'OggS')) return sniffOgg(bytes);
  const box = bytes.toString('latin1', 4, 8);
  // The size of any first box but the media itself is small: without this, text such as "The free ..." passes.
  if (box === 'mdat' || (MP4_FIRST_BOXES.has(box) && bytes[0] === 0)) return MP4;
  return sniffFrames(bytes);
}

/** What follows an ID3 tag. Encoders pad, and players forgive it, so unknown bytes are left to the mp3 decoder. */
export function sniffAfterTag(head: Uint8Array): Container {
  const found = sniffContainer(head);
  return found === FLAC || found === AAC || found === WAV ? found : MP3;
}

/** The length of the ID3v2 tag at the start, header included; 0 when there is none. */
export function tagLength(head: Uint8Array): number {
  if (head.length < 10 || Buffer.from(head.subarray(0, 3)).toString('latin1') !== 'ID3') return 0;
  let length = 0;
  for (const byte of head.subarray(6, 10)) length = length * 128 + (byte & 0x7f);
  const footer = ((head[5] ?? 0) & 0x10) === 0 ? 0 : 10;
  return 10 + length + footer;
}

/**
 * A chained or multiplexed Ogg file ends in another logical stream than it begins with. The addon would stop at
 * the end of the first one, ffmpeg reads on.
 */
export function sniffOggEnd(start: Container, head: Uint8Array, tail: Uint8Array): Container {
  if (start !== VORBIS) return start;
  const end = Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength);
  const page = end.lastIndexOf('OggS', end.length - 18, 'latin1');
  if (page < 0 || end.length < 18) return start;
  return end.subarray(page + 14, page + 18).equals(head.subarray(14, 18)) ? start : OGG;
}

function sniffOgg(bytes: Buffer): Container {
  const packet = 27 + (bytes[26] ?? 0);
  return hasText(bytes, packet, '\x01vorbis') ? VORBIS : OGG;
}

/** MPEG audio and ADTS have no header of the file, only of each frame; some files begin with zeros. */
function sniffFrames(bytes: Buffer): Container | null {
  const start = bytes.findIndex((byte) => byte !== 0);
  const [sync = 0, kind = 0, rates = 0] = bytes.subarray(Math.max(start, 0));
  if (sync !== 0xff || (kind & 0xe0) !== 0xe0) return null;
  const version = (kind >> 3) & 3;
  const layer = (kind >> 1) & 3;
  if (layer === 0) {
    const adts = (kind & 0xf0) === 0xf0 && ((rates >> 2) & 15) < 13;
    return adts ? AAC : null;
  }
  // Layer I is left out: nobody sends it, and the byte order mark of UTF-16 text looks like it.
  const valid = version !== 1 && layer !== 3 && rates >> 4 !== 15 && ((rates >> 2) & 3) !== 3;
  return valid ? MP3 : null;
}

function hasText(bytes: Buffer, offset: number, text: string): boolean {
  return bytes.toString('latin1', offset, offset + text.length) === text;
}
