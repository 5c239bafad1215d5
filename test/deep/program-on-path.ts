import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The file behind the first program of this name on PATH. @throws Error where there is none */
export function programOnPath(name: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return realpathSync(folders.map((folder) => join(folder, name)).find(existsSync) ?? name);
}
