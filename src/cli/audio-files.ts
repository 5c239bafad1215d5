/** Finds the audio files of `voxgate transcribe`. */
import { readdir, stat } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { watchUnchanged } from '../unchanged.ts';

export interface AudioFile {
  path: string;
  /** The path below the folder that was given; of a file that was given, its name. */
  name: string;
}

/** Endings of audio and of video, whose sound is heard. In folders other files are left alone. */
const ENDINGS = new Set(
  'wav mp3 m4a mp4 mpeg mpga webm flac ogg oga opus aac aif aiff amr au caf mka mkv mov avi wma 3gp ts'
    .split(' ')
    .map((ending) => `.${ending}`),
);

const LOOK_MS = 1000;
/** A file that is still being copied into a folder grows or is touched within this time. */
const SETTLED_MS = 2000;

/**
 * The files that are given, and those below the folders that are given, in the order of their names. With `watch` it
 * goes on with files that come into the folders, as soon as they have not changed for 2 s, until the signal.
 * @throws Error when a path is not there, or when there is no folder to watch
 */
export async function* audioFiles(
  paths: readonly string[],
  { watch, signal }: { watch: boolean; signal: AbortSignal },
): AsyncGenerator<AudioFile, void, undefined> {
  const given = await Promise.all(paths.map(async (path) => ({ path, info: await stat(path) })));
  const folders = given.filter(({ info }) => info.isDirectory()).map(({ path }) => path);
  if (watch && folders.length === 0) throw new Error('--watch needs a folder');
  for (const { path, info } of given) {
    if (!info.isDirectory()) yield { path, name: relative(join(path, '..'), path) };
    else if (!watch) yield* await below(path);
  }
  if (watch) yield* watched(folders, signal);
}

async function below(folder: string): Promise<AudioFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && ENDINGS.has(extname(entry.name).toLowerCase()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => ({ path, name: relative(folder, path) }));
}

async function* watched(folders: readonly string[], signal: AbortSignal) {
  const looks = new Map<string, ReturnType<typeof watchUnchanged>>();
  const taken = new Map<string, string>();
  while (!signal.aborted) {
    const there = new Set<string>();
    // A folder that goes while it is read, or that cannot be read just now, is looked at again.
    const found = await Promise.all(folders.map(below)).catch(() => null);
    for (const file of found?.flat() ?? []) {
      const info = await stat(file.path).catch(() => null);
      if (info === null) continue;
      there.add(file.path);
      const shown = `${info.size} ${info.mtimeMs}`;
      const look = looks.get(file.path) ?? watchUnchanged();
      looks.set(file.path, look);
      if (look(shown) < SETTLED_MS || taken.get(file.path) === shown) continue;
      taken.set(file.path, shown);
      yield file;
    }
    for (const path of found === null ? [] : looks.keys()) {
      if (there.has(path)) continue;
      looks.delete(path);
      taken.delete(path);
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}
