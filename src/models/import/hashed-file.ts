/** Writes a file and its SHA-256 in one pass. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

export interface WrittenFile {
  bytes: number;
  sha256: string;
}

export interface HashedFile extends AsyncDisposable {
  write(data: Uint8Array): Promise<void>;
  /** Syncs and closes the file, which is complete only then. */
  finish(): Promise<WrittenFile>;
}

export async function createHashedFile(path: string): Promise<HashedFile> {
  const handle = await open(path, 'w', 0o644);
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    async write(data) {
      hash.update(data);
      await handle.appendFile(data);
      bytes += data.length;
    },
    async finish() {
      await handle.sync();
      await handle.close();
      return { bytes, sha256: hash.digest('hex') };
    },
    [Symbol.asyncDispose]: () => handle.close(), // once more it does nothing
  };
}
