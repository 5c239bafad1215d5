/** Disk operations for weights: the check for free space, the hash of a file, and syncing. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { freeBytes } from '../machine.ts';

/** The space that stays free for everything else that writes to the same disk. */
const MARGIN_BYTES = 64 * 1024 * 1024;

/** @throws Error when the disk of `dir` has less free space than `bytes` and a margin of 64 MiB */
export async function requireSpace(dir: string, bytes: number): Promise<void> {
  const free = await freeBytes(dir);
  if (free < bytes + MARGIN_BYTES) {
    throw new Error(
      `Not enough space in ${dir}: ${megabytes(bytes)} are needed and ${megabytes(free)} are free. Free some, or set SVC_MODEL_DIR to another disk.`,
    );
  }
}

/** The SHA-256 of a file in hexadecimal. @param onBytes gets the number of bytes hashed so far */
export async function hashFile(
  path: string,
  signal: AbortSignal,
  onBytes: (done: number) => void = () => {},
): Promise<string> {
  const hash = createHash('sha256');
  let done = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal })) {
    hash.update(chunk as Buffer);
    done += (chunk as Buffer).length;
    onBytes(done);
  }
  return hash.digest('hex');
}

/** Syncs what was written to a file. */
export const syncFile = (path: string): Promise<void> => sync(path, 'r+');

/** Syncs a folder. Call it after a rename, because a crash could otherwise lose the new name of synced data. */
export const syncFolder = (dir: string): Promise<void> => sync(dir, 'r');

async function sync(path: string, flags: 'r' | 'r+'): Promise<void> {
  await using handle = await open(path, flags);
  await handle.sync();
}

/** The size in units of 1,000,000 bytes, such as `81 MB` or `0.9 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
