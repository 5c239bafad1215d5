/**
 * Keeps the voices of known speakers out of the captures. A request that names them is not captured at all, because its
 * body holds the voices, and a request without them could not be replayed.
 */
import type { CaptureWriter } from './capture.ts';

/** The name of the field that holds a voice, however its words are joined: a request refused for that has one as well. */
const FIELD = /known(?:%5f|[^a-z\s]){0,8}speaker/i;
/** Voices are data URLs, so that outside of JSON each of them counts as one, whatever its field is called. */
const FIELD_OR_VOICE = /known(?:%5f|[^a-z\s]){0,8}speaker|data:audio/i;
/** The characters of the longest match, less one: it may begin at the end of one chunk and end in the next. */
const OVERLAP = 'known'.length + 8 * '%5f'.length + 'speaker'.length - 1;
/** A chat may have sounds in it, and is captured. Calls of chat and speech are JSON. */
const IS_JSON = /^\s*[{[]/;

/**
 * Abandons the capture as soon as a voice is named anywhere in the request body. The bytes are searched as they come,
 * because a form that breaks off or cannot be parsed may hold a voice as well.
 */
export function withoutVoices(capture: CaptureWriter): CaptureWriter {
  let before = '';
  let isJson: boolean | null = null;
  let found = false;
  return {
    ...capture,
    request(chunk) {
      if (found) return;
      const text = before + chunk.toString('latin1');
      if (text.trim() !== '') isJson ??= IS_JSON.test(text);
      found = (isJson ? FIELD : FIELD_OR_VOICE).test(text);
      if (found) return capture.abandon();
      before = text.slice(-OVERLAP);
      capture.request(chunk);
    },
  };
}
