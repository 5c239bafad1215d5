/**
 * Decodes the formats that the addon cannot read with ffmpeg. The child process never outlives its decoder, and ends at
 * its timeout or at its limit of processor time or memory. Its pipe gives backpressure.
 */
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { onAbort } from '../abort.ts';
import type { GatewayError } from '../errors.ts';
import {
  closedWhileRead,
  type Decoder,
  type DecoderLimits,
  LENGTH_SLACK_SEC,
  type Loss,
  SAMPLE_RATE,
} from './decoder.ts';
import { readEdited } from './edits.ts';
import { decodingArguments, LONGEST_GAP_SEC } from './ffmpeg-arguments.ts';
import { type Notes, readNotes } from './ffmpeg-notes.ts';
import { type Exit, type Ffmpeg, isCutShort, isNotStarted, startFfmpeg } from './ffmpeg-process.ts';
import { createMidSide } from './mid-side.ts';
import { refuseAudio, refuseChannels, refuseDecoding } from './refusal.ts';
import type { Container } from './sniff.ts';
import type { Track } from './tracks.ts';

/** The demuxers of the formats whose header names the length. That of others is what their last packet says. */
const NAMES_LENGTH = new Set(['aiff', 'asf', 'au', 'avi', 'flv', 'matroska', 'mov', 'tta', 'wv']);

export interface FfmpegDecoder extends Decoder {
  /** The audio tracks of the file. Resolves when the first block is read, or the process has ended. */
  tracks(): Promise<readonly Track[]>;
}

/**
 * Decodes in a child process. The process gets the path, because an mp4 with its index at the end cannot be read from
 * a pipe, one demuxer, and no protocol but `file`. It decodes only as far ahead as the pipe holds, so a slow reader
 * pauses it.
 */
export async function openFfmpegDecoder(
  path: string,
  container: Container,
  ffmpeg: Ffmpeg,
  limits: DecoderLimits,
): Promise<FfmpegDecoder> {
  const { blockSamples, channel, track = 0, signal } = limits;
  signal?.throwIfAborted();
  const { stdout, stderr, exited, fed, kill } = await startDecoding(path, container, ffmpeg, limits);
  const leaving = onAbort(signal, kill);
  const beforeTimeout = createTimeout(kill);
  const notes = readNotes(stderr, LONGEST_GAP_SEC, container.isDamaged === true);
  let delivered = 0;
  let closed = false;
  const isMono = async () => (await notes.tracks)[track]?.layout === 'mono';
  const fill = createPcmReader(stdout, notes, () => closed, channel === undefined, isMono);
  let sides: Float32Array | null = null;

  /** @throws unless ffmpeg has read the file to its end */
  async function requireEnd(): Promise<void> {
    const exit = await exited;
    signal?.throwIfAborted();
    if (closed) throw closedWhileRead();
    if (isNotStarted(exit.code))
      throw new Error(`${ffmpeg.path} cannot be started under its limits (exit code ${exit.code})`);
    await fed;
    const refusal = refusalOf(exit, delivered === 0, notes, container);
    if (refusal !== null) throw refusal;
  }

  return {
    get durationSec() {
      return notes.durationSec;
    },
    get lost() {
      const { lost = [] } = container;
      const unknown = notes.lost.filter((own) => !lost.some((known) => isNear(own, known)));
      return [...lost, ...unknown].sort((a, b) => a.startSec - b.startSec);
    },
    get sides() {
      return sides;
    },
    tracks: () => notes.tracks,
    async read() {
      signal?.throwIfAborted();
      if (closed) throw closedWhileRead();
      const block = new Float32Array(blockSamples);
      const samples = await beforeTimeout(timeLimit('wallMs', delivered / SAMPLE_RATE, ffmpeg), async () => {
        const filled = await fill(block);
        const { samples } = filled;
        sides = filled.sides;
        delivered += samples;
        if (channel !== undefined) refuseOtherThanStereo((await notes.tracks)[track]?.layout, limits);
        if (samples < blockSamples) {
          await requireEnd();
          notes.end(delivered / SAMPLE_RATE, namedSecOf(container, notes));
        }
        return samples;
      });
      signal?.throwIfAborted();
      return samples === 0 ? null : block.subarray(0, samples);
    },
    async close() {
      closed = true;
      leaving[Symbol.dispose]();
      kill();
      // The 'close' event comes only when the pipe is empty or destroyed.
      stdout.destroy();
      await exited;
    },
  };
}

/** How long the sound is by the header of the file; null where that does not say it. */
function namedSecOf({ demuxer, namedSec }: Container, { durationSec, startSec }: Notes): number | null {
  const named = namedSec ?? (NAMES_LENGTH.has(demuxer) ? durationSec : null);
  return named === null ? null : named - startSec;
}

/** True where two losses overlap, or nearly. */
const isNear = (a: Loss, b: Loss) =>
  a.startSec - b.endSec < LENGTH_SLACK_SEC && b.startSec - a.endSec < LENGTH_SLACK_SEC;

/** The milliseconds that ffmpeg may take for so much audio. */
const timeLimit = (kind: 'cpuMs' | 'wallMs', audioSec: number, { limits }: Ffmpeg) =>
  limits[kind] + (audioSec / limits.audioSecPerSec) * 1000;

async function startDecoding(path: string, container: Container, ffmpeg: Ffmpeg, limits: DecoderLimits) {
  const child = await startFfmpeg(
    ffmpeg,
    decodingArguments(path, container, limits),
    timeLimit('cpuMs', limits.maxAudioSec, ffmpeg),
    container.edits === undefined ? 'ignore' : 'pipe',
  );
  return { ...child, fed: feed(child.stdin, path, container) };
}

/**
 * Writes a file that needs edits to the process. Rejects where the file cannot be read, so that what was read of it does
 * not pass for the whole.
 */
async function feed(stdin: Writable | null, path: string, { edits = [] }: Container): Promise<void> {
  if (stdin === null) return;
  let broken: unknown;
  const edited = readEdited(path, edits).on('error', (error) => {
    broken = error;
  });
  await pipeline(edited, stdin).catch(() => {}); // the process may end before the file does
  if (broken !== undefined) throw broken;
}

const WITHOUT_INDEX =
  'the file is an MP4 or M4A without its index (the moov box), which says where the sound is and mostly stands at the ' +
  'end. Was a recording or an upload stopped before its end? Send the whole file';

/** Why the audio cannot be read, as the end of the process shows it; null where ffmpeg has read all of it. */
function refusalOf(
  exit: Exit,
  isEmpty: boolean,
  { noStream, noIndex }: Notes,
  container: Container,
): GatewayError | null {
  // A limit ended the decoding, not the end of the file. The part decoded so far must not pass for the whole.
  if (isCutShort(exit))
    return refuseDecoding('undecodable_audio', 'decoding it takes more memory or time than is allowed');
  if (!isEmpty) return null;
  if (noStream) return refuseAudio('no_audio_stream');
  if (exit.code === 0) return refuseAudio('empty_audio');
  return refuseDecoding(
    'undecodable_audio',
    noIndex ? WITHOUT_INDEX : `the file looks like ${container.name} but is damaged`,
  );
}

/**
 * Calls `late` when the gateway has waited for the process longer than `allowedMs`, in all waits together. The time
 * between two reads does not count.
 */
function createTimeout(late: () => void) {
  let waitedMs = 0;
  return async <T>(allowedMs: number, wait: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const timer = setTimeout(late, allowedMs - waitedMs);
    try {
      return await wait();
    } finally {
      clearTimeout(timer);
      waitedMs += performance.now() - startedAt;
    }
  };
}

/** Samples that are read from the pipe at a time. */
const PIECE = 16 * 1024;

/** Reads samples from the pipe into a block, and returns how many, with what stands beside them. */
function createPcmReader(
  stdout: NodeJS.ReadableStream,
  notes: Notes,
  isClosed: () => boolean,
  isMidSide: boolean,
  isMono: () => Promise<boolean>,
): (block: Float32Array) => Promise<{ samples: number; sides: Float32Array | null }> {
  const width = isMidSide ? 2 : 1;
  const frameBytes = width * Float32Array.BYTES_PER_ELEMENT;
  const toMono = isMidSide ? createMidSide() : (mono: Float32Array) => ({ mono, sides: null });
  const piece = new Float32Array(PIECE * width);
  const chunks = stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  /** A chunk may end within a sample, so the bytes left over stay here. */
  let rest: Buffer = Buffer.alloc(0);
  /** Bytes of silence that are still to come before the sound; null before the first of it is there. */
  let silence: number | null = null;

  async function nextChunk(): Promise<Buffer | null> {
    try {
      const next = await chunks.next();
      return next.done ? null : next.value;
    } catch (error) {
      if (isClosed()) return null; // `close` destroyed the pipe, and `requireEnd` throws for it
      throw error;
    }
  }

  async function silenceBefore(): Promise<number> {
    rest = (await nextChunk()) ?? rest;
    await setImmediate(); // then what ffmpeg has said before it wrote the sound is read, too
    notes.endTracks();
    return Math.round((notes.beginSec ?? 0) * SAMPLE_RATE) * frameBytes;
  }

  /** Writes what comes next into bytes that are 0, and returns how many of them. */
  async function readInto(bytes: Buffer): Promise<number> {
    silence ??= await silenceBefore();
    let filled = Math.min(silence, bytes.length);
    silence -= filled;
    while (filled < bytes.length) {
      if (rest.length === 0) {
        const next = await nextChunk();
        if (next === null) break;
        rest = next;
      }
      const copied = rest.copy(bytes, filled);
      filled += copied;
      rest = rest.subarray(copied);
    }
    return filled;
  }

  return async (block) => {
    let sides: Float32Array | null = null;
    let samples = 0;
    while (samples < block.length) {
      const frames = Math.min(PIECE, block.length - samples);
      piece.fill(0);
      const bytes = await readInto(Buffer.from(piece.buffer, 0, frames * frameBytes));
      const read = Math.floor(bytes / frameBytes);
      const { mono, sides: beside } = toMono(piece.subarray(0, read * width));
      block.set(mono, samples);
      if (isMidSide && sides === null && !(await isMono())) sides = new Float32Array(block.length);
      if (beside !== null) sides?.set(beside, samples);
      samples += read;
      if (read < frames) break;
    }
    return { samples, sides: sides?.subarray(0, samples) ?? null };
  };
}

/** @param layout undefined where the process ended before it named one; how it ended says why then */
function refuseOtherThanStereo(layout: string | undefined, limits: DecoderLimits): void {
  if (layout === undefined || ['stereo', 'downmix', '2 channels'].includes(layout)) return;
  throw refuseChannels(layout === 'mono' ? 1 : layout, limits);
}
