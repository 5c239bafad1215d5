/**
 * Refuses files whose container makes ffmpeg read the same bytes again and again: the tables of an mp4 may name one
 * place thousands of times, and Matroska may put the same bytes before each packet. Hours of speech from a few kB would
 * hold the slot for hours, so what is read is bounded against the bytes that came.
 *
 * Audio that is long for its bytes is no sign of that: a file of silence is coded at next to nothing. But the packets
 * of an honest file are never larger than the file. They are only counted where the audio is long for its bytes, by
 * another process, which ends when it has read as many bytes as the file has.
 */
import { stat } from 'node:fs/promises';
import { onAbort } from '../abort.ts';
import { type Decoder, type DecoderLimits, SAMPLE_RATE, withOverrides } from './decoder.ts';
import { inputArguments } from './ffmpeg-arguments.ts';
import { type Ffmpeg, isCutShort, startFfmpeg } from './ffmpeg-process.ts';
import { refuseAudio, refuseDecoding } from './refusal.ts';
import type { Container } from './sniff.ts';

/** Speech is seldom coded with less (Opus goes down to 750 bytes/s), so few honest files are searched at. */
const USUAL_BYTES_PER_SEC = 1000;
/** Audio of this length is not worth a look. */
const SHORT_SEC = 30;

/** The decoder of a file, which ends with GatewayError `repeated_audio` where the file repeats its bytes. */
export function withoutRepeats(
  decoder: Decoder,
  path: string,
  container: Container,
  ffmpeg: Ffmpeg,
  { signal, track }: Pick<DecoderLimits, 'signal' | 'track'>,
): Decoder {
  const closing = new AbortController();
  const stop = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
  let searching: Promise<unknown> = Promise.resolve();
  let hasSearched = false;
  let samples = 0;
  let size: number | undefined;

  async function search(): Promise<void> {
    size ??= (await stat(path)).size;
    const audioSec = Math.max(samples / SAMPLE_RATE, decoder.durationSec ?? 0);
    if (audioSec <= SHORT_SEC + size / USUAL_BYTES_PER_SEC) return;
    hasSearched = true;
    if (
      await hasMoreInPackets(size, ffmpeg, inputArguments(path, { demuxer: container.demuxer }, track), stop)
    )
      throw refuseAudio('repeated_audio');
  }

  return withOverrides(decoder, {
    async read() {
      const block = await decoder.read();
      samples += block?.length ?? 0;
      if (block !== null && !hasSearched) {
        const searched = search();
        searching = searched.catch(() => {});
        await searched;
      }
      return block;
    },
    async close() {
      closing.abort();
      await Promise.all([decoder.close(), searching]);
    },
  });
}

/** True when the packets of the audio have more than `bytes` bytes together. */
async function hasMoreInPackets(
  bytes: number,
  ffmpeg: Ffmpeg,
  input: string[],
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  const { cpuMs, wallMs } = ffmpeg.limits;
  const options = ['-hide_banner', '-v', 'quiet', '-nostdin'];
  const output = ['-c', 'copy', '-f', 'data', 'pipe:1'];
  const { stdout, stderr, exited, kill } = await startFfmpeg(
    ffmpeg,
    [...options, ...input, ...output],
    cpuMs,
  );
  const late = setTimeout(kill, wallMs);
  using _left = onAbort(signal, kill);
  stderr.resume();
  let read = 0;
  stdout.on('data', (packets: Buffer) => {
    read += packets.length;
    if (read > bytes) kill();
  });
  const exit = await exited;
  clearTimeout(late);
  signal.throwIfAborted();
  // ffmpeg gives what it can read of a damaged file, and may fail then.
  if (read <= bytes && (isCutShort(exit) || (exit.code !== 0 && read === 0)))
    throw refuseDecoding('undecodable_audio', 'decoding it takes more memory or time than is allowed');
  return read > bytes;
}
