/** Plays sound while it arrives, where the browser can, and keeps it to be heard again. */
import { createPieces, playElement, toggleElement } from './piece-player.js';
import { RequestFailed } from './request.js';
import { createSamples } from './sample-player.js';

/** The most that one sound may take of this page's memory: three quarters of an hour of bare samples. */
const MAX_BYTES = 128 * 1024 ** 2;
const TOO_LONG = 'The audio is longer than this page can keep. What had arrived is kept.';

/**
 * @param audio the element that plays complete files, and some formats while they arrive
 * @param onPause (isPaused) => void, where sound can be paused; without it, a pause of the element is the end
 */
export function createStreamPlayer(audio, onPause = null) {
  const isPausable = onPause !== null;
  let url = '';
  /** What plays now. */
  let output = null;

  if (isPausable) {
    audio.addEventListener('pause', () => audio.ended || onPause(true));
    audio.addEventListener('play', () => onPause(false));
  }

  /** From now on the element plays the whole, from where it was. */
  function load(blob) {
    const at = audio.ended ? 0 : audio.currentTime;
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(blob);
    audio.src = url;
    if (at > 0) audio.currentTime = at;
  }

  function forget() {
    audio.removeAttribute('src');
    audio.load();
    URL.revokeObjectURL(url);
  }

  async function playWhole(blob, signal, onFirst) {
    const over = new AbortController();
    load(blob);
    const begun = () => onFirst(performance.now());
    audio.addEventListener('playing', begun, { once: true, signal: over.signal });
    const playing = playElement(audio, isPausable);
    output = { toggle: () => toggleElement(audio) };
    signal.addEventListener('abort', playing.stop, { signal: over.signal });
    await playing.over;
    over.abort();
  }

  return {
    forget,
    /** Pauses or resumes the sound. What arrives in the meantime is kept. */
    toggle: () => output?.toggle(),
    /**
     * Resolves when the sound has been heard, and rejects after that when it broke off; what had arrived is kept.
     * @param sound {headers, chunks}
     * @param on first(at) when sound begins, in ms of `performance.now`; arrived(blob, isWhole) when no more will come
     */
    async play({ headers, chunks }, signal, on) {
      forget();
      const type = (headers.get('Content-Type') ?? '').split(';')[0].trim().toLowerCase();
      const kept = createKept(type);
      const how = { onFirst: on.first, onPause: onPause ?? (() => undefined), isPausable };
      const streamed = createSamples(headers, kept, how) ??
        createPieces(type, audio, kept, how) ?? { ...SILENT, file: kept.blob, whole: kept.blob };
      output = streamed;
      signal.addEventListener('abort', streamed.stop);
      const failure = await receive(chunks, kept, streamed);
      if (kept.size === 0) forget();
      else {
        on.arrived(streamed.file(), failure === null);
        streamed.end();
        const wasHeard = await streamed.over();
        if (wasHeard || signal.aborted) load(streamed.whole());
        else await playWhole(streamed.whole(), signal, on.first);
      }
      output = null;
      signal.removeEventListener('abort', streamed.stop);
      if (failure !== null) throw failure;
      signal.throwIfAborted();
    },
  };
}

/** For a format that this browser plays only as a whole, or not at all. */
const SILENT = { more() {}, end() {}, stop() {}, toggle() {}, over: async () => false };

/** @returns why no more came; null at the end of the sound */
async function receive(chunks, kept, output) {
  try {
    for await (const chunk of chunks) {
      if (kept.size + chunk.length > MAX_BYTES) throw new RequestFailed({ message: TOO_LONG });
      kept.add(chunk);
      output.more();
    }
    if (kept.size === 0) throw new RequestFailed({ message: 'The speech server sent no audio.' });
    return null;
  } catch (error) {
    return error;
  }
}

/** The pieces as they came; each is taken once to be played, and all of them are the whole. */
function createKept(type) {
  const parts = [];
  let size = 0;
  let taken = 0;
  return {
    get size() {
      return size;
    },
    add(part) {
      size += part.length;
      parts.push(part);
    },
    /** The next piece, which stays the next one until it is taken; undefined where none has arrived yet. */
    next: () => parts[taken],
    take() {
      taken += 1;
    },
    blob: () => new Blob(parts, { type }),
  };
}
