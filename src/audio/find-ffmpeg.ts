/** Finds the ffmpeg of this machine. */
import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { BUDGETS, type Budgets } from '../limits/budgets.ts';
import { type Ffmpeg, ffmpegCommand, SHELL } from './ffmpeg-process.ts';

const PROBE_TIMEOUT_MS = 10_000;
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
