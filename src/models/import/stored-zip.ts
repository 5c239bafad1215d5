/**
 * Reads zip archives whose entries are stored without compression, as torch writes them
 * (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16). An entry is a range
 * of the file, so that nothing is larger than the file itself.
 */
import { BUDGETS } from '../../limits/budgets.ts';
import { type BoundedFile, FieldReader } from './bounded-file.ts';
import { notImportable } from './failure.ts';

const DIRECTORY_MAGIC = 0x02014b50;
const LOCAL_MAGIC = 0x04034b50;
const LOCAL_BYTES = 30;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;
const MAX_NAME_BYTES = 256;

interface Entry {
  /** Where the header before the data is. */
  header: number;
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
  const { count, start } = await readEnd(file, refuse);
  const entries = new Map<string, Entry>();
  const reader = new FieldReader(file, start);
  for (let i = 0; i < count; i++) {
    if ((await reader.u32()) !== DIRECTORY_MAGIC) throw refuse('its directory is damaged');
    reader.skip(4);
    const flags = await reader.u16();
    const method = await reader.u16();
    reader.skip(8);
    const packed = await reader.u32();
    const bytes = await reader.u32();
    const [nameBytes, extraBytes, commentBytes] = [
      await reader.u16(),
      await reader.u16(),
      await reader.u16(),
    ];
    reader.skip(8);
    const header = await reader.u32();
    if (nameBytes > MAX_NAME_BYTES) throw refuse('the name of an entry is too long');
    const name = (await reader.bytes(nameBytes)).toString('utf8');
    reader.skip(extraBytes + commentBytes);
    if (method !== 0 || packed !== bytes || (flags & 1) !== 0) throw refuse('an entry of it is compressed');
    if (entries.has(name)) throw refuse('two of its entries have one name');
    entries.set(name, { header, bytes });
  }
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
      const local = await file.read(entry.header, LOCAL_BYTES);
      if (local.readUInt32LE(0) !== LOCAL_MAGIC) throw refuse('the header of an entry is damaged');
      const data = entry.header + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
      return file.read(data + start, length);
    },
  };
}

/** Finds the record at the end of the archive, behind which there may be a comment. */
async function readEnd(file: BoundedFile, refuse: (why: string) => Error) {
  const tailBytes = Math.min(file.size, END_BYTES + MAX_COMMENT_BYTES);
  const tail = await file.read(file.size - tailBytes, tailBytes);
  const at = tail.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  if (at < 0 || at + END_BYTES > tail.length) throw refuse('it has no directory');
  const count = tail.readUInt16LE(at + 10);
  const { maxEntries } = BUDGETS.checkpoint;
  if (count > maxEntries) throw refuse(`it has more than ${maxEntries} entries`);
  return { count, start: tail.readUInt32LE(at + 16) };
}
