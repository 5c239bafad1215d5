/** The audio of `voxgate live`: a microphone, a file or stdin, as 16-bit mono samples. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { onAbort } from '../abort.ts';

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
const SAMPLES = ['-f', 's16le', '-ac', '1', '-ar', String(RATE), '-flush_packets', '1', 'pipe:1'];
const ffmpeg = (...input: string[]): Command => [
  'ffmpeg',
  ...['-nostdin', '-hide_banner', '-loglevel', 'error', ...input, ...SAMPLES],
];
/** What hears the default microphone of each system. The first program that is there is used. */
const MICROPHONES: Readonly<Partial<Record<NodeJS.Platform, readonly Command[]>>> = {
  linux: [
    ['arecord', '-q', '-t', 'raw', '-f', 'S16_LE', '-c', '1', '-r', String(RATE)],
    ffmpeg('-f', 'alsa', '-i', 'default'),
  ],
  darwin: [ffmpeg('-f', 'avfoundation', '-i', ':default')],
};

/** A program and its arguments. */
type Command = readonly [program: string, ...args: string[]];

/** @throws Error on a system whose microphone no program is known for */
export function openMicrophone(): LiveInput {
  const commands = MICROPHONES[process.platform];
  if (commands === undefined)
    throw new Error(
      `There is no microphone for ${process.platform}: pipe audio in, as in "... | voxgate live -"`,
    );
  return openProgram(commands, 'the microphone');
}

/** Plays a file as if it were spoken now. */
export const openFile = (path: string): LiveInput => openProgram([ffmpeg('-re', '-i', path)], path);

/** Reads a container that ffmpeg knows, as it comes. */
export const openContainer = (stdin: Readable): LiveInput =>
  openProgram([ffmpeg('-i', 'pipe:0')], 'stdin', stdin);

/** Reads bare samples. */
export function openSamples(stdin: Readable, rate: number): LiveInput {
  let stopped = false;
  async function* bytes() {
    try {
      yield* stdin as AsyncIterable<Buffer>;
    } catch (error) {
      if (!stopped) throw error;
    }
  }
  return {
    rate,
    bytes: bytes(),
    stop() {
      stopped = true;
      stdin.destroy(); // an open stdin would keep the process
    },
  };
}

function openProgram(commands: readonly Command[], name: string, stdin?: Readable): LiveInput {
  const stopped = new AbortController();

  // The program starts with the iteration: Node throws away what a program that has ended wrote while nothing read it.
  async function* bytes() {
    if (stopped.signal.aborted) return;
    const child = await startFirst(commands);
    const ended = once(child, 'close');
    let said = '';
    child.stderr.on('data', (text) => {
      said = `${said}${text}`.slice(-1000);
    });
    child.stdin.on('error', () => undefined); // the program has read enough
    if (stdin === undefined) child.stdin.end();
    else stdin.pipe(child.stdin);
    using _stopped = onAbort(stopped.signal, () => {
      stdin?.unpipe();
      child.kill('SIGTERM');
    });
    yield* child.stdout as AsyncIterable<Buffer>;
    const [code] = await ended;
    // The last line is the failure; lines of the system's sound library may stand before it.
    const why = said.trim().split('\n').at(-1) || `exit status ${code}`;
    if (code !== 0 && !stopped.signal.aborted)
      throw new Error(`${child.spawnfile} cannot read ${name}: ${why}`);
  }

  return { rate: RATE, bytes: bytes(), stop: () => stopped.abort() };
}

/** Starts the first of these programs that is there. @throws Error that names them when none is */
async function startFirst(commands: readonly Command[]) {
  for (const [program, ...args] of commands) {
    // Ctrl-C reaches all processes of a terminal; this one ends when it is told to, so that no sample is lost.
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    try {
      await once(child, 'spawn');
      return child;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  const names = commands.map(([program]) => program).join(' or ');
  throw new Error(`There is no ${names} in PATH: install it, or pipe samples in with --raw`);
}
