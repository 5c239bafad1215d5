/**
 * Reads zip archives whose entries are stored without compression, as torch writes them. An entry is a range of the
 * file, so that nothing is larger than the file itself.
 */
import { GatewayError } from '../../errors.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import type { BoundedFile } from './bounded-file.ts';
import { notImportable } from './failure.ts';

const MAX_NAME_CHARS = 256;

interface Stored {
  /** Where its data begins in the file. */
  start: number;
  bytes: number;
}

export interface StoredZip {
  has(name: string): boolean;
  /** The size of an entry in bytes. @throws GatewayError `not_importable` when there is none of this name */
  bytes(name: string): number;
  /** Reads a part of an entry. @throws GatewayError `not_importable` when the entry does not have all of it */
  read(name: string, start: number, length: number): Promise<Buffer>;
}

/** @throws GatewayError `not_importable` for any other file and for entries that are compressed or encrypted */
export async function openStoredZip(file: BoundedFile): Promise<StoredZip> {
  const refuse = (why: string) => notImportable(`${file.path} is not an archive that torch wrote: ${why}.`);
  const entries = await readDirectory(file, refuse).catch((error) => {
    throw error instanceof GatewayError ? error : refuse(`its directory is damaged (${error.message})`);
  });
  const find = (name: string) => {
    const entry = entries.get(name);
    if (!entry) throw refuse(`it has no entry ${name}`);
    return entry;
  };
  return {
    has: (name) => entries.has(name),
    bytes: (name) => find(name).bytes,
    async read(name, start, length) {
      const entry = find(name);
      if (start + length > entry.bytes) throw refuse(`its entry ${name} is too short`);
      return file.read(entry.start + start, length);
    },
  };
}

async function readDirectory(
  file: BoundedFile,
  refuse: (why: string) => Error,
): Promise<Map<string, Stored>> {
  const { fromFdPromise } = await import('yauzl'); // loaded on demand, because imports are rare
  const zip = await fromFdPromise(file.fd, { autoClose: false });
  const { maxEntries } = BUDGETS.checkpoint;
  if (zip.entryCount > maxEntries) throw refuse(`it has more than ${maxEntries} entries`);
  const entries = new Map<string, Stored>();
  for await (const entry of zip.eachEntry()) {
    const { fileName, uncompressedSize: bytes } = entry;
    if (fileName.length > MAX_NAME_CHARS) throw refuse('the name of an entry is too long');
    if (entry.isCompressed() || entry.isEncrypted()) throw refuse('an entry of it is compressed');
    if (entries.has(fileName)) throw refuse('two of its entries have one name');
    const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true });
    entries.set(fileName, { start: fileDataStart, bytes });
  }
  return entries;
}
