/** Finds the audio files of `voxgate transcribe`. */
import { open, readdir, stat } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HEAD_BYTES, sniffContainer } from '../audio/sniff.ts';
import { watchUnchanged } from '../unchanged.ts';

export interface AudioFile {
  path: string;
  /** The path below the folder that was given; of a file that was given, its name. */
  name: string;
  /** Why the folder at this path cannot be read. */
  problem?: Error;
  /** Has the file come once more after a while, where the folder is watched. */
  again?(): void;
}

/**
 * Endings of audio and of video, whose sound is heard. In folders other files are left alone, and so is TypeScript,
 * which ends as a transport stream does.
 */
const ENDINGS = new Set(
  'wav mp3 m4a mp4 mpeg mpga webm flac ogg oga opus aac aif aiff amr au caf mka mkv mov avi wma 3gp ts'
    .split(' ')
    .map((ending) => `.${ending}`),
);

const POLL_MS = 1000;
/** A file that is still being copied into a folder grows or is touched within this time. */
const SETTLED_MS = 2000;
/** The pause before a file that could not be sent comes once more. */
const AGAIN_MS = 30_000;

/**
 * The files that are given, and those below the folders that are given, in the order of their names. With `watch` it
 * goes on with files that come into the folders, as soon as they have not changed for 2 s, until the signal. A folder
 * below them that cannot be read comes once, with its problem.
 * @throws Error when a path is not there, or when there is no folder to watch
 */
export async function* audioFiles(
  paths: readonly string[],
  { watch, signal, againMs = AGAIN_MS }: { watch: boolean; signal: AbortSignal; againMs?: number },
): AsyncGenerator<AudioFile, void, undefined> {
  const given = await Promise.all(paths.map(async (path) => ({ path, info: await stat(path) })));
  const folders = given.filter(({ info }) => info.isDirectory()).map(({ path }) => path);
  if (watch && folders.length === 0) throw new Error('--watch needs a folder');
  for (const { path, info } of given) {
    if (!info.isDirectory()) yield { path, name: relative(join(path, '..'), path) };
    else if (!watch) yield* await below(path);
  }
  if (watch) yield* watched(folders, signal, againMs);
}

async function below(folder: string): Promise<AudioFile[]> {
  const found = await inFolder(folder, folder);
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Symbolic links may lead to files. Pipes and devices, which may never end, are left alone. */
async function inFolder(folder: string, root: string): Promise<AudioFile[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const found = entries.map(async (entry): Promise<AudioFile[]> => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return await inFolder(path, root);
      const ending = extname(entry.name).toLowerCase();
      if (!ENDINGS.has(ending) || !(entry.isFile() || entry.isSymbolicLink())) return [];
      return ending !== '.ts' || (await isTransportStream(path))
        ? [{ path, name: relative(root, path) }]
        : [];
    });
    return (await Promise.all(found)).flat();
  } catch (error) {
    return [{ path: folder, name: relative(root, folder), problem: error as Error }];
  }
}

/** Whether a `.ts` file is video, and no TypeScript. One that cannot be read is nothing to hear, either. */
async function isTransportStream(path: string): Promise<boolean> {
  try {
    if (!(await stat(path)).isFile()) return false;
    await using file = await open(path);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return sniffContainer(buffer.subarray(0, bytesRead))?.demuxer === 'mpegts';
  } catch {
    return false;
  }
}

async function* watched(folders: readonly string[], signal: AbortSignal, againMs: number) {
  const unchangedMsOf = new Map<string, ReturnType<typeof watchUnchanged>>();
  const yielded = new Map<string, string>();
  const againAt = new Map<string, number>();
  const reported = new Set<string>();
  while (!signal.aborted) {
    const there = new Set<string>();
    const found = (await Promise.all(folders.map(below))).flat();
    const unread = found.filter(({ problem }) => problem !== undefined);
    for (const folder of unread) {
      // A folder that goes while it is read is read again.
      if ((folder.problem as NodeJS.ErrnoException).code === 'ENOENT' || reported.has(folder.path)) continue;
      reported.add(folder.path);
      yield folder;
    }
    for (const { path, name } of found) {
      const info = await stat(path).catch(() => null);
      if (info === null || info.isDirectory()) continue;
      there.add(path);
      const shown = `${info.size} ${info.mtimeMs}`;
      const unchangedMs = unchangedMsOf.get(path) ?? watchUnchanged();
      unchangedMsOf.set(path, unchangedMs);
      const isDue = performance.now() >= (againAt.get(path) ?? Number.POSITIVE_INFINITY);
      if (unchangedMs(shown) < SETTLED_MS || (yielded.get(path) === shown && !isDue)) continue;
      yielded.set(path, shown);
      againAt.delete(path);
      yield { path, name, again: () => void againAt.set(path, performance.now() + againMs) };
    }
    const isUnread = (path: string) => unread.some((folder) => path.startsWith(join(folder.path, '/')));
    for (const path of unchangedMsOf.keys()) {
      if (there.has(path) || isUnread(path)) continue;
      for (const known of [unchangedMsOf, yielded, againAt]) known.delete(path);
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}
