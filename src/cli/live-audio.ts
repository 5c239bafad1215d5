/** The audio of `voxgate live`: a microphone, a file or stdin, as 16-bit mono samples. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';

export interface LiveInput {
  /** Hz. */
  rate: number;
  /** s16le, mono. Its iteration throws when the audio could not be opened or read. */
  bytes: AsyncIterable<Buffer>;
  /** Ends the audio; what was read already is kept. */
  stop(): void;
}

/** The rate that the Realtime API has when a client names none. */
const RATE = 24_000;
/** The default microphone of each system, as ffmpeg names it. */
const MICROPHONES: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  linux: ['-f', 'alsa', '-i', 'default'],
  darwin: ['-f', 'avfoundation', '-i', ':default'],
};

/** @throws Error on a system whose microphone ffmpeg cannot name */
export function openMicrophone(platform = process.platform): LiveInput {
  const input = MICROPHONES[platform];
  if (input === undefined)
    throw new Error(`There is no microphone for ${platform}: pipe audio in, as in "... | voxgate live -"`);
  return openFfmpeg(input, 'the microphone');
}

/** Plays a file as if it were spoken now. */
export const openFile = (path: string): LiveInput => openFfmpeg(['-re', '-i', path], path);

/** Reads a container that ffmpeg knows, as it comes. */
export const openContainer = (stdin: Readable): LiveInput => openFfmpeg(['-i', 'pipe:0'], 'stdin', stdin);

/** Reads bare samples. */
export function openSamples(stdin: Readable, rate: number): LiveInput {
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  const ifStopped = (error: unknown) => {
    if (!stop.signal.aborted) throw error;
  };
  async function* bytes() {
    const iterator = stdin[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    for (;;) {
      const next = await Promise.race([stopped, iterator.next()]).catch(ifStopped);
      if (!next || next.done) return;
      yield next.value;
    }
  }
  return {
    rate,
    bytes: bytes(),
    stop() {
      stop.abort();
      stdin.destroy(); // an open stdin would keep the process
    },
  };
}

function openFfmpeg(input: readonly string[], name: string, stdin?: Readable): LiveInput {
  const output = ['-f', 's16le', '-ac', '1', '-ar', String(RATE), '-flush_packets', '1', 'pipe:1'];
  const args = ['-nostdin', '-hide_banner', '-loglevel', 'error', ...input, ...output];
  // Ctrl-C reaches all processes of a terminal; this one ends when it is told to, so that no sample is lost.
  const child = spawn('ffmpeg', args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  let said = '';
  let stopped = false;
  child.stderr.on('data', (text) => {
    said = `${said}${text}`.slice(-1000);
  });
  child.stdin.on('error', () => undefined); // ffmpeg has read enough
  if (stdin === undefined) child.stdin.end();
  else stdin.pipe(child.stdin);
  const ended = once(child, 'close');
  ended.catch(() => undefined); // it is thrown by the iteration

  async function* bytes() {
    yield* child.stdout as AsyncIterable<Buffer>;
    const [code] = await ended.catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT'
        ? new Error('There is no ffmpeg in PATH: install it, or pipe samples in with --raw')
        : error;
    });
    if (code !== 0 && !stopped)
      throw new Error(`ffmpeg cannot read ${name}: ${said.trim() || `exit status ${code}`}`);
  }

  return {
    rate: RATE,
    bytes: bytes(),
    stop() {
      stopped = true;
      stdin?.unpipe();
      child.kill('SIGTERM');
    },
  };
}
