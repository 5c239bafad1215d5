/** Finds the ffmpeg of this machine, and sets the limits under which it runs. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

const PROBE_TIMEOUT_MS = 10_000;
const ADDRESS_SPACE_BYTES = 1024 ** 3;

export interface Ffmpeg {
  path: string;
  /** The version that ffmpeg prints, such as `5.1.9`. */
  version: string;
  /** The path of prlimit (util-linux); null when it is missing or this account may not set the limits. */
  prlimitPath: string | null;
}

/**
 * Looks for `configured` (a name or a path, by default `ffmpeg`) in `searchPath`, the value of PATH. Returns null when
 * no ffmpeg runs.
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
 * The command that runs ffmpeg under limits, so that a crafted file cannot use up the memory or the processor of the
 * machine. With `--fsize=0` ffmpeg can write to its pipe but to no file.
 */
export function ffmpegCommand(ffmpeg: Ffmpeg, args: string[], cpuSec: number): [string, string[]] {
  if (ffmpeg.prlimitPath === null) return [ffmpeg.path, args];
  const limits = [`--as=${ADDRESS_SPACE_BYTES}`, `--cpu=${cpuSec}`, '--nofile=32', '--core=0', '--fsize=0'];
  return [ffmpeg.prlimitPath, [...limits, ffmpeg.path, ...args]];
}

/** The version of ffmpeg, run under the limits that it will have, because a container may forbid setting them. */
function probe(ffmpeg: Ffmpeg): string | null {
  const [command, args] = ffmpegCommand(ffmpeg, ['-version'], 60);
  try {
    const stdout = execFileSync(command, args, {
      timeout: PROBE_TIMEOUT_MS,
      cwd: '/',
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
