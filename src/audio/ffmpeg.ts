/** Audio decoded by ffmpeg, for the formats that the addon cannot read; the child never outlives its decoder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve as absolute } from 'node:path';
import { GatewayError } from '../errors.ts';
import { closedWhileRead, type Decoder, type DecoderLimits, SAMPLE_RATE } from './decoder.ts';
import { type Ffmpeg, ffmpegCommand } from './find-ffmpeg.ts';
import { refuseAudio, refuseDecoding } from './refusal.ts';
import type { Container } from './sniff.ts';

/** ffmpeg's exit code when a signal ended it: it catches the one for used-up processor time and leaves in order. */
const ENDED_BY_SIGNAL = 255;
/** ffmpeg decodes hundreds of times faster than the audio plays: more than this is a file made to burn time. */
const CPU_BASE_SEC = 60;
const AUDIO_SEC_PER_CPU_SEC = 20;
const STDERR_WINDOW_CHARS = 4096;

/**
 * Decodes in a process of its own, which gets the path (an mp4 with its index at the end cannot be read from a
 * pipe), one demuxer and no protocol but `file`. It runs only as far ahead as the pipe holds: a slow reader pauses it.
 */
export async function openFfmpegDecoder(
  path: string,
  container: Container,
  ffmpeg: Ffmpeg,
  limits: DecoderLimits,
): Promise<Decoder> {
  const { maxAudioSec, blockSamples, signal } = limits;
  signal?.throwIfAborted();
  const cpuSec = CPU_BASE_SEC + Math.ceil(maxAudioSec / AUDIO_SEC_PER_CPU_SEC);
  const [command, args] = ffmpegCommand(
    ffmpeg,
    ffmpegArguments(path, container.demuxer, maxAudioSec),
    cpuSec,
  );
  const child = await start(command, args);
  child.on('error', () => {}); // a kill that came too late
  const exited = new Promise<[code: number | null, endSignal: string | null]>((resolve) => {
    child.once('close', (...how) => resolve(how));
  });
  const kill = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted) kill();

  const notes = readNotes(child.stderr);
  const chunks = child.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let rest: Buffer = Buffer.alloc(0);
  let delivered = 0;
  let closed = false;

  async function nextChunk(): Promise<Buffer | null> {
    try {
      const next = await chunks.next();
      return next.done ? null : next.value;
    } catch (error) {
      if (closed) return null; // the pipe was destroyed under us; `judgeExit` says so
      throw error;
    }
  }

  /** Fills `bytes` from the pipe. Chunks end anywhere, also within a sample; what is left over waits in `rest`. */
  async function fill(bytes: Buffer): Promise<number> {
    let filled = 0;
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

  async function judgeExit(): Promise<void> {
    const [code, endSignal] = await exited;
    signal?.throwIfAborted();
    if (closed) throw closedWhileRead();
    // Cut off by a limit, not by the end of the file: passing on half of it as if whole would be a lie.
    if (endSignal !== null || code === ENDED_BY_SIGNAL) {
      throw refuseDecoding('undecodable_audio', 'decoding it takes more memory or time than is allowed');
    }
    if (delivered > 0) return;
    if (notes.noStream) throw refuseAudio('no_audio_stream');
    if (code === 0) throw refuseAudio('empty_audio');
    throw refuseDecoding('undecodable_audio', `the file looks like ${container.name} but is damaged`);
  }

  return {
    get durationSec() {
      return notes.durationSec;
    },
    async read() {
      signal?.throwIfAborted();
      if (closed) throw closedWhileRead();
      const block = new Float32Array(blockSamples);
      const filled = await fill(Buffer.from(block.buffer));
      const samples = Math.floor(filled / Float32Array.BYTES_PER_ELEMENT);
      delivered += samples;
      if (samples < blockSamples) await judgeExit();
      signal?.throwIfAborted();
      return samples === 0 ? null : block.subarray(0, samples);
    },
    async close() {
      closed = true;
      signal?.removeEventListener('abort', kill);
      kill();
      // What is still in the pipe would keep 'close' from coming.
      child.stdout.destroy();
      await exited;
    },
  };
}

const REFUSALS = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

async function start(command: string, args: string[]) {
  try {
    const child = spawn(command, args, { cwd: '/', env: { LC_ALL: 'C' }, stdio: ['ignore', 'pipe', 'pipe'] });
    try {
      await once(child, 'spawn');
      return child;
    } catch (error) {
      child.stdout.destroy(); // nothing else closes the pipes of a process that never was
      child.stderr.destroy();
      throw error;
    }
  } catch (error) {
    throw REFUSALS.has((error as NodeJS.ErrnoException).code ?? '')
      ? new GatewayError('out_of_memory', {}, { cause: error })
      : error;
  }
}

function ffmpegArguments(path: string, demuxer: string, maxAudioSec: number): string[] {
  return [
    // "info" is the level that names the duration.
    ...['-hide_banner', '-v', 'info', '-nostats', '-nostdin', '-threads', '1'],
    ...['-protocol_whitelist', 'file', '-format_whitelist', demuxer, '-f', demuxer],
    // An mp4 may name another file as its media. Off is ffmpeg's default; here it must stay off.
    ...(demuxer === 'mov' ? ['-enable_drefs', '0', '-use_absolute_path', '0'] : []),
    ...['-i', `file:${absolute(path)}`, '-vn', '-sn', '-dn', '-map', '0:a:0'],
    // Without rematrix_maxval, mixing down to float adds the channels up: stereo comes out 3 dB louder, and clips.
    ...['-ar', String(SAMPLE_RATE), '-ac', '1', '-rematrix_maxval', '1'],
    // One second past what is allowed: enough to be seen as too long.
    ...['-t', String(maxAudioSec + 2), '-f', 'f32le', 'pipe:1'],
  ];
}

/** What ffmpeg says about the file. Its lines carry the file's own metadata, without bound: only a window is kept. */
function readNotes(stderr: NodeJS.ReadableStream): { durationSec: number | null; noStream: boolean } {
  const notes: { durationSec: number | null; noStream: boolean } = { durationSec: null, noStream: false };
  let window = '';
  stderr.setEncoding('utf8');
  stderr.on('data', (text: string) => {
    window += text;
    const [, hours, minutes, seconds] = /^ {2}Duration: (\d+):(\d\d):(\d\d\.\d+)/m.exec(window) ?? [];
    if (hours !== undefined)
      notes.durationSec ??= Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    notes.noStream ||= window.includes('matches no streams');
    window = window.slice(-STDERR_WINDOW_CHARS);
  });
  return notes;
}
