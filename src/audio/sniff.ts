/**
 * Recognizes the container of a file by its first bytes, never by the name or type that a client declares. Only a
 * container recognized here reaches a decoder, and ffmpeg may use only the demuxer named here. If ffmpeg could guess,
 * a playlist (m3u8, ffconcat) would make it open other files and addresses.
 */
import type { NativeFormat } from '../engine/types.ts';
import type { Loss } from './decoder.ts';
import type { Edit } from './edits.ts';
import { mpegCodecOf } from './mpeg-audio.ts';

export interface Container {
  /** The name that messages show. */
  name: string;
  /** ffmpeg's name of the one demuxer that may read it. */
  demuxer: string;
  /** What the addon decodes it as, in the usual encodings; null where it does not. */
  native: NativeFormat | null;
  /** True where the file is known to be damaged. */
  isDamaged?: boolean;
  /** True where several streams follow one another. ffmpeg reads the clock of each as if it were that of the first. */
  isChained?: boolean;
  /** The sound that its header names beyond what there is of it, as a share of that. */
  beyond?: number;
  /** The seconds that its header names, where ffmpeg may not say them. */
  namedSec?: number | null;
  /** True where another file follows that cannot be read with it. */
  isJoined?: boolean;
  /** What has to be changed before a decoder can read all of the file. */
  edits?: readonly Edit[];
  /** The losses that are known before the file is decoded. */
  lost?: readonly Loss[];
}

function container(name: string, demuxer: string, native: NativeFormat | null = null): Container {
  return Object.freeze({ name, demuxer, native });
}

const WAV = container('wav', 'wav', 'wav');
const MP3 = container('mp3', 'mp3', 'mp3');
const MP2 = container('mp2', 'mp3');
const FLAC = container('flac', 'flac', 'flac');
/** Only if all of it is one stream, which its pages show. */
export const VORBIS = container('ogg vorbis', 'ogg', 'vorbis');
export const OGG = container('ogg', 'ogg');
const AAC = container('aac', 'aac');
const AC3 = container('ac3', 'ac3');
const EAC3 = container('eac3', 'eac3');
const MPEG_TS = container('mpeg ts', 'mpegts');

/** Formats with fixed bytes at fixed offsets, as [offset, bytes in latin1]; all pairs of a format must match. */
const SIGNATURES: [Container, ...[number, string][]][] = [
  [WAV, [0, 'RIFF'], [8, 'WAVE']],
  [WAV, [0, 'RIFX'], [8, 'WAVE']],
  [WAV, [0, 'RF64'], [8, 'WAVE']],
  [WAV, [0, 'BW64'], [8, 'WAVE']],
  [FLAC, [0, 'fLaC']],
  [container('webm', 'matroska'), [0, '\x1a\x45\xdf\xa3']],
  [container('aiff', 'aiff'), [0, 'FORM'], [8, 'AIFF']],
  [container('aiff', 'aiff'), [0, 'FORM'], [8, 'AIFC']],
  [container('w64', 'w64', 'wav'), [0, 'riff\x2e\x91\xcf\x11']],
  [container('caf', 'caf'), [0, 'caff']],
  [container('amr', 'amr'), [0, '#!AMR']],
  [container('au', 'au'), [0, '.snd']],
  [container('avi', 'avi'), [0, 'RIFF'], [8, 'AVI ']],
  [container('flv', 'flv'), [0, 'FLV\x01']],
  [container('asf', 'asf'), [0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11']],
  [container('mpeg ps', 'mpeg'), [0, '\x00\x00\x01\xba']],
  [MPEG_TS, [0, '\x47'], [188, '\x47'], [376, '\x47']],
  [MPEG_TS, [4, '\x47'], [196, '\x47'], [388, '\x47']], // of a camcorder or a Blu-ray (m2ts)
  [container('dts', 'dts'), [0, '\x7f\xfe\x80\x01']],
  [container('wavpack', 'wv'), [0, 'wvpk']],
  [container('tta', 'tta'), [0, 'TTA1']],
  [container('voc', 'voc'), [0, 'Creative Voice File\x1a']],
  [container('sphere', 'nistsphere'), [0, 'NIST_1A\n']],
];

const MP4 = container('mp4', 'mov');
const MP4_FIRST_BOXES = new Set(['ftyp', 'styp', 'moov', 'wide', 'free', 'skip', 'pnot']);

const [APE_HEADER_BYTES, APE_SIZE_AT] = [32, 12];

/** The number of bytes at the start of a file that `sniffContainer` looks at. */
export const HEAD_BYTES = 4096;

/** The container of a file that begins with these bytes; null for an unknown one. */
export function sniffContainer(bytes: Buffer): Container | null {
  for (const [found, ...marks] of SIGNATURES) {
    if (marks.every(([offset, mark]) => hasText(bytes, offset, mark))) return found;
  }
  if (hasText(bytes, 0, 'OggS')) return sniffOgg(bytes);
  const box = bytes.toString('latin1', 4, 8);
  // Every first box except the media itself is small, so the first byte of its size is 0. Without this check, text
  // such as "The free ..." would pass.
  if (box === 'mdat' || (MP4_FIRST_BOXES.has(box) && bytes[0] === 0)) return MP4;
  const codec = mpegCodecOf(bytes);
  return sniffAc3(bytes) ?? (codec && { mp2: MP2, mp3: MP3, adts: AAC }[codec]);
}

/** True for what is cut out of a WebM or an MP4 that was written as it was recorded: it has no head. */
export function isLaterChunk(bytes: Buffer): boolean {
  const isSegment = hasText(bytes, 4, 'styp') && bytes[0] === 0;
  const box = 4 + (isSegment ? bytes.readUInt32BE(0) : 0);
  const isFragment = bytes[0] === 0 && (hasText(bytes, box, 'moof') || hasText(bytes, box, 'sidx'));
  return isFragment || hasText(bytes, 0, '\x1f\x43\xb6\x75') || isMatroskaBlock(bytes);
}

/** A block of the first track, as a recording of sound has no other (RFC 9559, section 10.2). */
function isMatroskaBlock(bytes: Buffer): boolean {
  const track = 2 + Math.clz32((bytes[1] ?? 0) << 24);
  return bytes[0] === 0xa3 && track < 6 && bytes[track] === 0x81 && ((bytes[track + 3] ?? 1) & 0x7f) === 0;
}

/**
 * Recognizes what follows a tag. Encoders put padding there and players accept it, so unknown bytes go to the
 * mp3 decoder.
 */
export const sniffAfterTag = (bytes: Buffer): Container => sniffContainer(bytes) ?? MP3;

/**
 * The bytes of the ID3v2 tag (ID3v2.4.0, section 3.1) or the APEv2 tag at the start, with its header; 0 without a tag.
 */
export function tagLength(bytes: Buffer): number {
  if (bytes.length >= APE_HEADER_BYTES && hasText(bytes, 0, 'APETAGEX'))
    return APE_HEADER_BYTES + bytes.readUInt32LE(APE_SIZE_AT);
  if (bytes.length < 10 || !hasText(bytes, 0, 'ID3')) return 0;
  let length = 0;
  for (const byte of bytes.subarray(6, 10)) length = length * 128 + (byte & 0x7f);
  const footer = ((bytes[5] ?? 0) & 0x10) === 0 ? 0 : 10;
  return 10 + length + footer;
}

function sniffOgg(bytes: Buffer): Container {
  const packet = 27 + (bytes[26] ?? 0);
  return hasText(bytes, packet, '\x01vorbis') ? VORBIS : OGG;
}

/** Recognizes AC-3 and E-AC-3 by their sync word and the version of their bit stream (ETSI TS 102 366). */
function sniffAc3(bytes: Buffer): Container | null {
  const version = (bytes[5] ?? 0xff) >> 3;
  if (!hasText(bytes, 0, '\x0b\x77') || version > 16) return null;
  return version > 10 ? EAC3 : AC3;
}

function hasText(bytes: Buffer, offset: number, text: string): boolean {
  return bytes.toString('latin1', offset, offset + text.length) === text;
}
