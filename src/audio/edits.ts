/** Reads a damaged file as it should be: without bytes that do not belong there, and with those that are missing. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';

/** The bytes from `at` to `at + remove` are replaced by `insert`. */
export interface Edit {
  at: number;
  remove: number;
  insert: Uint8Array;
}

/** @param edits in the order of their places */
export function readEdited(path: string, edits: readonly Edit[]): Readable {
  async function* parts(): AsyncGenerator<Uint8Array> {
    let start = 0;
    for (const { at, remove, insert } of edits) {
      if (at > start) yield* createReadStream(path, { start, end: at - 1 });
      if (insert.length > 0) yield insert;
      start = at + remove;
    }
    yield* createReadStream(path, { start });
  }
  return Readable.from(parts());
}
