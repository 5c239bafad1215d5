/**
 * Stores uploads on the disk. The bytes of all uploads together have a limit, which addresses share, and the disk keeps
 * some free space for everything else that writes to it.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { GatewayError, isUsedUp } from '../../errors.ts';
import { type Body, createByteShares } from '../../limits/byte-shares.ts';
import { freeBytes } from '../../machine.ts';
import { createSpoolFolder, type SpoolFolderOptions } from './spool-folder.ts';

export interface SpooledFile {
  path: string;
  bytes: number;
  /** Removes the file and gives its bytes back to the limit. Idempotent. */
  remove(): Promise<void>;
}

export type Spool = ReturnType<typeof createSpool>;

export interface SpoolOptions extends SpoolFolderOptions {
  maxBytes: number;
  leastFreeBytes: number;
}

/** The bytes that an upload writes between two checks of the free space. */
const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

export function createSpool({ maxBytes, leastFreeBytes, ...folderOptions }: SpoolOptions) {
  const folder = createSpoolFolder(folderOptions);
  const space = createByteShares(maxBytes);

  async function write(source: Readable, dir: string, file: FileHandle, take: (bytes: number) => void) {
    let unchecked = CHECK_EVERY_BYTES; // an upload of unannounced length was not checked yet
    // The stream is not destroyed by a failure here: the form parser would report that instead of the failure.
    for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      take(chunk.length);
      unchecked += chunk.length;
      if (unchecked > CHECK_EVERY_BYTES) {
        await onDisk(() => assertFree(dir, 0, leastFreeBytes));
        unchecked = 0;
      }
      await onDisk(() => file.appendFile(chunk));
    }
  }

  return {
    /**
     * Checks, without reserving anything, that a file of this size has room now.
     * @param network the client, as `networkOf` names it
     * @throws GatewayError `overloaded` or `storage_unavailable`
     */
    async assertRoom(network: string, bytes: number): Promise<void> {
      if (!space.hasRoom({ network }, bytes)) throw new GatewayError('overloaded', {});
      await onDisk(async () => assertFree(await folder.ready(), bytes, leastFreeBytes));
    },
    /**
     * Stores `head`, if there is one, and all of a stream in a new file with a random name. After a failure nothing of it
     * is left.
     * @throws GatewayError `overloaded` or `storage_unavailable`; the error of the stream
     */
    async store(network: string, source: Readable, head?: Buffer): Promise<SpooledFile> {
      const body: Body = {
        network,
        isWhole: false,
        refuse: () => source.destroy(new GatewayError('overloaded', {})),
      };
      let bytes = 0;
      let path: string | null = null;
      const remove = async () => {
        if (path !== null) await rm(path, { force: true }).catch(() => undefined);
        space.release(body);
      };
      try {
        const { dir, file } = await onDisk(async () => {
          const dir = await folder.ready();
          path = join(dir, randomUUID());
          return { dir, file: await open(path, 'wx', 0o600) };
        });
        const take = (more: number) => {
          if (!space.take(body, more)) throw new GatewayError('overloaded', {});
          bytes += more;
        };
        try {
          if (head !== undefined && head.length > 0) {
            take(head.length);
            await onDisk(() => file.appendFile(head));
          }
          await write(source, dir, file, take);
        } finally {
          await file.close();
        }
        body.isWhole = true;
        return { path: path ?? '', bytes, remove };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    /** Removes the folder of the uploads. */
    close: folder.close,
  };
}

/** Checks that a file of this size leaves `leastFreeBytes` on the disk of the folder. */
async function assertFree(dir: string, bytes: number, leastFreeBytes: number): Promise<void> {
  const free = await freeBytes(dir);
  if (free - bytes >= leastFreeBytes) return;
  throw new Error(`${free} bytes are free on the disk of ${dir}, and ${leastFreeBytes} must stay free`);
}

async function onDisk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw diskFailure(cause);
  }
}

/** Makes a failure of the file system a refusal that hides the path from the client and not from the log. */
export const diskFailure = (cause: unknown) =>
  new GatewayError(isUsedUp(cause) ? 'out_of_memory' : 'storage_unavailable', {}, { cause });
