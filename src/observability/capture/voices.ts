/**
 * Keeps the voices of known speakers out of the captures. A request that names them is not captured at all, because its
 * body holds the voices, and a request without them could not be replayed.
 */
import type { CaptureWriter } from './capture.ts';

/** The name of the form field that holds a voice. */
const FIELD = Buffer.from('known_speaker_references');

/**
 * Abandons the capture as soon as the field is named anywhere in the request body. The bytes are searched as they come,
 * because a form that breaks off or cannot be parsed may hold a voice as well.
 */
export function withoutVoices(capture: CaptureWriter): CaptureWriter {
  let before: Buffer = Buffer.alloc(0);
  let found = false;
  return {
    ...capture,
    request(chunk) {
      if (found) return;
      // The name may be spread over two chunks.
      const seam = Buffer.concat([before, chunk.subarray(0, FIELD.length - 1)]);
      found = chunk.includes(FIELD) || seam.includes(FIELD);
      if (found) return capture.abandon();
      before = (chunk.length < FIELD.length ? Buffer.concat([before, chunk]) : chunk).subarray(
        -(FIELD.length - 1),
      );
      capture.request(chunk);
    },
  };
}
