/** Finds the ffmpeg of this machine, and sets the limits under which it runs. */
import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { BUDGETS, type Budgets } from '../limits/budgets.ts';

const PROBE_TIMEOUT_MS = 10_000;
/** POSIX has `sh` on every machine. Its `ulimit` sets the limits, which stay with the program that `exec` runs. */
const SHELL = '/bin/sh';
/** `sh` itself exits with 126 or 127 when it cannot run the program, so 125 is free for limits that cannot be set. */
const NOT_LIMITED = 125;

/** An ffmpeg that runs, and the limits under which it does. */
export interface Ffmpeg {
  path: string;
  /** The version that ffmpeg prints, such as `5.1.9`. */
  version: string;
  limits: Budgets['ffmpeg'];
}

/** Either an ffmpeg, or why there is none, as words for the operator. */
export type FoundFfmpeg = { ffmpeg: Ffmpeg; problem: null } | { ffmpeg: null; problem: string };

export interface FfmpegSearch {
  /** The folders to look in, as PATH names them. */
  searchPath: string;
  limits?: Budgets['ffmpeg'];
}

/** Looks for an ffmpeg that runs under its limits. One that cannot be limited is not used. */
export async function findFfmpeg({
  searchPath,
  limits = BUDGETS.ffmpeg,
}: FfmpegSearch): Promise<FoundFfmpeg> {
  const path = findExecutable('ffmpeg', searchPath);
  if (path === null) return { ffmpeg: null, problem: 'there is no ffmpeg in PATH' };
  const ffmpeg = { path, version: '', limits };
  const limited = await probe(ffmpegCommand(ffmpeg, ['-version'], limits.cpuMs));
  if (limited !== null) return { ffmpeg: { ...ffmpeg, version: limited }, problem: null };
  const unlimited = await probe([path, ['-version']]);
  const why = unlimited === null ? 'does not run' : `cannot be limited here by the ulimit of ${SHELL}`;
  return { ffmpeg: null, problem: `${path} ${why}` };
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
