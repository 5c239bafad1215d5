/** The sound of live sessions, one after the other, while the page is open. */
import { wavHeader } from './pcm.js';

const RATE = 24_000;
const BYTES_PER_MS = (RATE * 2) / 1000;
/** About 1 h 44 min. */
const MAX_BYTES = 300_000_000;
/** Ten seconds. A browser may put a blob on its disk; small pieces it has to hold in memory. */
const BLOB_BYTES = 10_000 * BYTES_PER_MS;

/** @param maxBytes what is kept at most; what comes later is left out */
export function createKeptSound(maxBytes = MAX_BYTES) {
  let blobs = [];
  let pieces = [];
  let pieceBytes = 0;
  let bytes = 0;

  function pack() {
    blobs.push(new Blob(pieces));
    pieces = [];
    pieceBytes = 0;
  }

  return {
    /** @param piece bytes of 16-bit PCM, mono, 24 kHz */
    append(piece) {
      if (bytes + piece.length > maxBytes) return;
      pieces.push(piece);
      pieceBytes += piece.length;
      bytes += piece.length;
      if (pieceBytes >= BLOB_BYTES) pack();
    },
    get isEmpty() {
      return bytes === 0;
    },
    /** Within one piece of its limit. */
    get isFull() {
      return bytes + 100 * BYTES_PER_MS > maxBytes;
    },
    /** @returns a wav file */
    toBlob() {
      pack();
      return new Blob([wavHeader({ rate: RATE, channels: 1 }, bytes), ...blobs], { type: 'audio/wav' });
    },
    clear() {
      [blobs, pieces, pieceBytes, bytes] = [[], [], 0, 0];
    },
  };
}
