/** Finds the ffmpeg of this machine, and runs it under limits. */
import { type ChildProcessByStdio, execFile, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { GatewayError, isUsedUp } from '../errors.ts';
import { BUDGETS, type Budgets } from '../limits/budgets.ts';

/** POSIX has `sh` on every machine. Its `ulimit` sets the limits, which stay with the program that `exec` runs. */
const SHELL = '/bin/sh';
/** `sh` itself exits with 126 or 127 when it cannot run the program, so 125 is free for limits that cannot be set. */
const NOT_LIMITED = 125;

/** ffmpeg catches SIGXCPU, which the limit of processor time sends, and exits with this code. */
const ENDED_BY_SIGNAL = 255;

/** An ffmpeg that runs, and the limits under which it does. */
export interface Ffmpeg {
  path: string;
  /** The version that ffmpeg prints, such as `5.1.9`. */
  version: string;
  limits: Budgets['ffmpeg'];
}

/**
 * The command that runs ffmpeg under limits, so that a crafted file cannot use up the memory or the processor of the
 * machine. ffmpeg can write to its pipe, and to no file.
 * @param cpuMs the longest processor time
 */
export function ffmpegCommand({ path, limits }: Ffmpeg, args: string[], cpuMs: number): [string, string[]] {
  const options = {
    c: 0, // core dumps
    f: Math.floor(limits.fileBytes / 512),
    n: limits.openFiles,
    t: Math.ceil(cpuMs / 1000),
    v: Math.floor(limits.addressSpaceBytes / 1024),
  };
  const setLimits = Object.entries(options).map(([option, value]) => `ulimit -${option} ${value}`);
  const script = `{ ${setLimits.join(' && ')}; } 2>/dev/null || exit ${NOT_LIMITED}; exec "$@"`;
  return [SHELL, ['-c', script, SHELL, path, ...args]];
}

/** True for the exit codes with which ffmpeg did not run at all. */
export function isNotStarted(exitCode: number | null): boolean {
  return exitCode !== null && exitCode >= NOT_LIMITED && exitCode <= 127;
}

/** How a process ended: by itself, or by a signal. */
export interface Exit {
  code: number | null;
  endSignal: string | null;
}

/** True where ffmpeg was ended by a signal or by a limit. */
export const isCutShort = ({ code, endSignal }: Exit) => endSignal !== null || code === ENDED_BY_SIGNAL;

/**
 * Starts ffmpeg under its limits, with its standard output and its errors as pipes.
 * @param cpuMs the longest processor time
 */
export async function startFfmpeg(
  ffmpeg: Ffmpeg,
  args: string[],
  cpuMs: number,
  stdin: 'ignore' | 'pipe' = 'ignore',
) {
  const child = await spawnProgram(ffmpegCommand(ffmpeg, args, cpuMs), [stdin, 'pipe', 'pipe']);
  child.on('error', () => {}); // a kill fails when the process has already ended
  const { stdin: input, stdout, stderr } = child;
  return {
    /** Null unless its input is piped. */
    stdin: input,
    stdout,
    stderr,
    /** Resolves when the process is gone and its pipes are empty or destroyed. */
    exited: new Promise<Exit>((resolve) => {
      child.once('close', (code, endSignal) => resolve({ code, endSignal }));
    }),
    kill: () => child.kill('SIGKILL'),
  };
}

async function spawnProgram([command, args]: [string, string[]], stdio: StdioOptions) {
  let child: ChildProcessByStdio<Writable | null, Readable, Readable> | undefined;
  try {
    child = spawn(command, args, { cwd: '/', env: { LC_ALL: 'C' }, stdio }) as NonNullable<typeof child>;
    await once(child, 'spawn');
    return child;
  } catch (error) {
    // Nothing else closes the pipes of a process that did not start.
    for (const pipe of child?.stdio ?? []) pipe?.destroy();
    throw isUsedUp(error) ? new GatewayError('out_of_memory', {}, { cause: error }) : error;
  }
}

const PROBE_TIMEOUT_MS = 10_000;

/** Either an ffmpeg, or why there is none, as words for the operator. */
export type FoundFfmpeg = { ffmpeg: Ffmpeg; problem: null } | { ffmpeg: null; problem: string };

/**
 * Looks for an ffmpeg that runs under its limits. One that cannot be limited is not used.
 * @param searchPath the folders to look in, as PATH names them
 */
export async function findFfmpeg(searchPath: string, limits = BUDGETS.ffmpeg): Promise<FoundFfmpeg> {
  const path = findExecutable('ffmpeg', searchPath);
  if (path === null) return { ffmpeg: null, problem: 'there is no ffmpeg in PATH' };
  const ffmpeg = { path, version: '', limits };
  const limited = await probe(ffmpegCommand(ffmpeg, ['-version'], limits.cpuMs));
  if (limited !== null) return { ffmpeg: { ...ffmpeg, version: limited }, problem: null };
  const unlimited = await probe([path, ['-version']]);
  const why = unlimited === null ? 'does not run' : `cannot be limited here by the ulimit of ${SHELL}`;
  return { ffmpeg: null, problem: `${path} ${why}` };
}

/** The version that ffmpeg prints; null when it does not run. */
async function probe([command, args]: [string, string[]]): Promise<string | null> {
  try {
    const options = { timeout: PROBE_TIMEOUT_MS, cwd: '/', env: {} };
    const { stdout } = await promisify(execFile)(command, args, options);
    return /^ffmpeg version (\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

function findExecutable(name: string, searchPath: string): string | null {
  const paths = searchPath
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, name));
  return paths.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
