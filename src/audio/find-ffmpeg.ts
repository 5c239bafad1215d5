/** The ffmpeg of this machine, and the limits under which it is run. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

const PROBE_TIMEOUT_MS = 10_000;
const ADDRESS_SPACE_BYTES = 1024 ** 3;

export interface Ffmpeg {
  path: string;
  /** e.g. `5.1.9`; for the log. */
  version: string;
  /** util-linux's prlimit, when there is one and this account may set the limits. */
  prlimitPath: string | null;
}

/**
 * Looks once, at start, in `searchPath` (the PATH variable) for `configured`, a name or a path. Null when there is
 * none that runs.
 */
export function findFfmpeg(options: { configured?: string | undefined; searchPath: string }): Ffmpeg | null {
  const wanted = options.configured ?? 'ffmpeg';
  const path = wanted.includes('/') ? resolve(wanted) : findExecutable(wanted, options.searchPath);
  if (path === null) return null;
  const prlimitPath = findExecutable('prlimit', options.searchPath);
  for (const limiter of prlimitPath === null ? [null] : [prlimitPath, null]) {
    const version = probe({ path, version: '', prlimitPath: limiter });
    if (version !== null) return { path, version, prlimitPath: limiter };
  }
  return null;
}

/**
 * The command that runs ffmpeg under limits, so that a crafted file cannot take the machine's memory or processor
 * with it. `--fsize=0`: it writes to a pipe and nowhere else.
 */
export function ffmpegCommand(ffmpeg: Ffmpeg, args: string[], cpuSec: number): [string, string[]] {
  if (ffmpeg.prlimitPath === null) return [ffmpeg.path, args];
  const limits = [`--as=${ADDRESS_SPACE_BYTES}`, `--cpu=${cpuSec}`, '--nofile=32', '--core=0', '--fsize=0'];
  return [ffmpeg.prlimitPath, [...limits, ffmpeg.path, ...args]];
}

/** Runs it for its version under the limits it will have: a container's own limits may forbid setting them. */
function probe(ffmpeg: Ffmpeg): string | null {
  const [command, args] = ffmpegCommand(ffmpeg, ['-version'], 60);
  try {
    const stdout = execFileSync(command, args, {
      timeout: PROBE_TIMEOUT_MS,
      env: {},
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
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
