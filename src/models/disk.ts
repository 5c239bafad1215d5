/** What the models need of a disk: room for a file, its hash, and names that survive a crash. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, statfs } from 'node:fs/promises';

/** Left free for everything else that writes to the same disk. */
const MARGIN_BYTES = 64 * 1024 * 1024;

export async function requireSpace(dir: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir);
  const free = bavail * bsize;
  if (free < bytes + MARGIN_BYTES) {
    throw new Error(
      `Not enough space in ${dir}: ${megabytes(bytes)} are needed and ${megabytes(free)} are free. Free some, or set SVC_MODEL_DIR to another disk.`,
    );
  }
}

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

/** After a rename: without it a crash can lose the name although the data was synced. */
export async function syncFolder(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
