/** Writes a file and its SHA-256 in one pass. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

export interface WrittenFile {
  bytes: number;
  sha256: string;
}

export async function createHashedFile(path: string) {
  const handle = await open(path, 'w', 0o644);
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    async write(data: Uint8Array): Promise<void> {
      hash.update(data);
      await handle.appendFile(data);
      bytes += data.length;
    },
    /** Syncs and closes the file, which is complete only then. */
    async finish(): Promise<WrittenFile> {
      await handle.sync();
      await handle.close();
      return { bytes, sha256: hash.digest('hex') };
    },
    [Symbol.asyncDispose]: () => handle.close(), // once more it does nothing
  };
}
