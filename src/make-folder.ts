/**
 * Makes a folder and those above it. With `recursive`, `mkdir` of Node never returns where a folder above is there and
 * takes none, as in /proc, and neither a signal nor a timer ends the process then.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Does nothing for a folder that is there.
 * @param mode of each folder that is made
 * @throws the error of the file system, with its path
 */
export function makeFolder(path: string, { mode }: { mode?: number | undefined } = {}): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (isFolder(path)) return; // another process may have made it just now
    const above = dirname(path);
    if (code !== 'ENOENT' || existsSync(above) || above === path) throw error;
    makeFolder(above, { mode });
    makeFolder(path, { mode });
  }
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
