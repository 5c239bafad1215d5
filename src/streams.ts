/** Reads what comes in chunks into memory, within limits. */

/** Chunks that are held before they are joined. */
const MOST_CHUNKS = 256;

/**
 * Adds a chunk to those that are kept. A client may send a byte at a time, and the object around it takes hundreds of
 * times its memory, so many chunks are joined.
 */
export function addChunk(chunks: Buffer[], chunk: Buffer): void {
  chunks.push(chunk);
  if (chunks.length >= MOST_CHUNKS) chunks.splice(0, chunks.length, Buffer.concat(chunks));
}

/** Adds what comes to `chunks`, until it is more than `mostBytes`. @returns true when the source has ended before */
export async function readUpTo(
  source: AsyncIterable<Uint8Array>,
  mostBytes: number,
  chunks: Buffer[],
): Promise<boolean> {
  let bytes = 0;
  for await (const chunk of source) {
    addChunk(chunks, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    bytes += chunk.byteLength;
    if (bytes > mostBytes) return false;
  }
  return true;
}
