/** The arguments with which ffmpeg decodes a file: one demuxer, one track, and filters that keep its times. */
import { resolve as absolute } from 'node:path';
import { type DecoderLimits, SAMPLE_RATE } from './decoder.ts';
import type { Container } from './sniff.ts';

/** A longer gap is an error in the file; ffmpeg would hold all of its silence in memory. */
export const LONGEST_GAP_SEC = 600;
/** A shorter one may be the rounding of the clock of the container. */
const SHORTEST_GAP_SEC = 0.01;
/** Where ffmpeg tells of damage, it is between two times that are printed this far from each other. */
const PRINT_SEC = 0.25;
/** What the filters remember from frame to frame, in seconds. */
const [END, BEGIN, TAKEN_OFF, NEXT_PRINT] = ['ld(0)', 'ld(1)', 'ld(2)', 'ld(3)'];
/**
 * Gives each frame of sound the time that it has in the file, but never one before the end of the sound so far: files that
 * were joined begin again at 0, and nothing may be lost. A frame without a time follows the last one, because NaN is
 * between no two numbers. The expression is one of ffmpeg's `asetpts`, which begins anew where the rate or the channels
 * change. It prints when the sound begins, the time as it goes on, and with a minus the length of each gap.
 */
const FROM_TIMES = [
  `st(1,PTS*TB-${TAKEN_OFF})`,
  `if(gt(${BEGIN}-${END},${LONGEST_GAP_SEC}),st(2,${TAKEN_OFF}+${BEGIN}-${END}))`,
  `st(1,if(between(${BEGIN}-${END},0,${LONGEST_GAP_SEC}),${BEGIN},${END}))`,
  `st(4,gt(N,0)*gt(${BEGIN}-${END},${SHORTEST_GAP_SEC}))`,
  `if(ld(4),print(${END}-${BEGIN}))`,
  `if(ld(4)+gte(${BEGIN},${NEXT_PRINT}),st(3,print(${BEGIN})+${PRINT_SEC}))`,
  `st(0,${BEGIN}+S/SR)`,
  `${BEGIN}/TB`,
].join(';');
/** Prints the time as the sound goes on, where the file has no clock. */
const COUNTED = `st(1,NB_CONSUMED_SAMPLES/SR);if(gte(${BEGIN},${NEXT_PRINT}),st(3,print(${BEGIN})+${PRINT_SEC}));PTS`;
/** Writes silence where recorders left out what was silent. */
const FILL_GAPS = 'aresample=async=1';
/**
 * The average of all channels, and beside it half the difference of two. Both come to the rate by themselves, so the
 * average is to the last bit what it is alone.
 */
const midSide = (rate: string) =>
  [
    `asplit[all][two];[all]aformat=channel_layouts=mono,${rate}[mid]`,
    `[two]aformat=channel_layouts=stereo,pan=mono|c0=0.5*c0-0.5*c1,${rate}[side]`,
    '[mid][side]join=inputs=2:channel_layout=stereo',
  ].join(';');
/** The demuxers of the formats that have a clock. */
const TIMED = new Set(['asf', 'flv', 'matroska', 'mov', 'mpeg', 'mpegts', 'ogg', 'tta', 'wv']);
/** The demuxers of formats whose frames have checksums. A damaged frame would be a second of noise. */
const CHECKED = new Set(['tta', 'wv']);
/**
 * By itself ffmpeg takes gaps of more than 10 s out of broadcasts and DVDs, and the time before their sound begins. It
 * leaves that time where the file is moved, even by a microsecond.
 */
const KEEP_TIMES = ['-dts_delta_threshold', String(LONGEST_GAP_SEC), '-itsoffset', '0.000001'];

/** An audio track of the file, read by the one demuxer, and by no protocol but `file` or a pipe. */
export function inputArguments(
  path: string,
  { demuxer, edits }: Pick<Container, 'demuxer' | 'edits'>,
  track = 0,
): string[] {
  const [protocol, input] = edits === undefined ? ['file', `file:${absolute(path)}`] : ['pipe', 'pipe:0'];
  return [
    ...['-protocol_whitelist', protocol, '-format_whitelist', demuxer, '-f', demuxer],
    // An mp4 may name another file as its media. ffmpeg's default is off, and here it must stay off.
    ...(demuxer === 'mov' ? ['-enable_drefs', '0', '-use_absolute_path', '0'] : []),
    ...['-i', input, '-vn', '-sn', '-dn', '-map', `0:a:${track}`],
  ];
}

/** Decodes a track to samples on standard output, and prints what `ffmpeg-notes.ts` reads. */
export function decodingArguments(
  path: string,
  container: Container,
  { maxAudioSec, channel, track }: Pick<DecoderLimits, 'maxAudioSec' | 'channel' | 'track'>,
): string[] {
  const { demuxer, isChained, isDamaged = false } = container;
  const isTimed = (TIMED.has(demuxer) || isDamaged) && isChained !== true;
  // Without `FILL_GAPS`, which takes any format, the conversion to the format of the pipe is one with that to the rate.
  // WavPack has 24 bits and floats.
  const isFloat = !isTimed || demuxer === 'wv';
  const rate = `aformat=sample_rates=${SAMPLE_RATE}${isFloat ? ':sample_fmts=fltp' : ''}`;
  const decoded = channel === undefined ? [midSide(rate)] : [`pan=mono|c0=c${channel}`, rate];
  // The gaps are filled last, because their silence is the smallest then.
  const filters = isTimed
    ? [`asetpts='${FROM_TIMES}'`, ...decoded, FILL_GAPS]
    : [`asetpts='${COUNTED}'`, ...decoded];
  return [
    // ffmpeg prints the duration only at the level "info".
    ...['-hide_banner', '-v', 'level+info', '-nostats', '-nostdin', '-threads', '1'],
    ...KEEP_TIMES,
    ...(CHECKED.has(demuxer) ? ['-err_detect', 'crccheck+explode'] : []),
    ...inputArguments(path, container, track),
    // Without rematrix_maxval, ffmpeg adds up the channels when it mixes down to float: stereo gets 3 dB louder and
    // clips.
    ...['-rematrix_maxval', '1', '-af', filters.join()],
    // One second more than `open.ts` allows, so that it sees when a file is too long.
    ...['-t', String(maxAudioSec + 2), '-f', 'f32le', 'pipe:1'],
  ];
}
