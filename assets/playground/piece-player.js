/** Plays compressed sound while it arrives, where the browser takes its format in pieces (Media Source Extensions). */

/** What was played stays for this long in a browser that has no room for more. */
const BEHIND_SEC = 5;

const LONG_NAMES = { 'audio/webm': 'audio/webm; codecs="opus"' };

/**
 * Plays what the element has been given.
 * @param isPausable false where a pause is the end of it
 * @returns {stop, over}; `over` resolves at the end, after a stop, and when the browser refuses or cannot play it
 */
export function playElement(audio, isPausable) {
  const { promise: over, resolve: stop } = Promise.withResolvers();
  const listening = new AbortController();
  const events = ['ended', 'error', ...(isPausable ? [] : ['pause'])];
  for (const event of events) audio.addEventListener(event, stop, { signal: listening.signal });
  // A browser may refuse to play what was clicked for long ago; its controls are there.
  audio.play().catch(({ name }) => name !== 'AbortError' && stop());
  return {
    stop() {
      audio.pause();
      stop();
    },
    over: over.finally(() => listening.abort()),
  };
}

export const toggleElement = (audio) => (audio.paused ? audio.play().catch(() => undefined) : audio.pause());

const nameOf = (type) => LONG_NAMES[type] ?? type;

/** Whether this browser plays a format before it is whole. */
export const takesPieces = (type) => globalThis.MediaSource?.isTypeSupported(nameOf(type)) ?? false;

/** @returns null for a format that this browser does not take in pieces */
export function createPieces(type, audio, kept, { onFirst, isPausable }) {
  const name = nameOf(type);
  if (!takesPieces(type)) return null;
  const source = new MediaSource();
  const url = URL.createObjectURL(source);
  const over = new AbortController();
  let buffer = null;
  let isWhole = false;
  let wasHeard = false;

  function more() {
    if (buffer === null || buffer.updating || source.readyState !== 'open') return;
    const piece = kept.next();
    if (piece === undefined) {
      if (isWhole) source.endOfStream();
      return;
    }
    try {
      buffer.appendBuffer(piece);
      kept.take();
    } catch (error) {
      if (error.name === 'QuotaExceededError') makeRoom();
      else over.abort(); // the element says what is wrong by itself
    }
  }

  /** A full buffer is tried again as the sound goes on. */
  function makeRoom() {
    const to = audio.currentTime - BEHIND_SEC;
    if (buffer.buffered.length > 0 && buffer.buffered.start(0) < to - 1) buffer.remove(0, to);
  }

  source.addEventListener(
    'sourceopen',
    () => {
      URL.revokeObjectURL(url);
      buffer = source.addSourceBuffer(name);
      buffer.addEventListener('updateend', more, { signal: over.signal });
      more();
    },
    { once: true },
  );
  audio.addEventListener('timeupdate', more, { signal: over.signal });
  const begun = () => {
    wasHeard = true;
    onFirst(performance.now());
  };
  audio.addEventListener('playing', begun, { once: true, signal: over.signal });
  audio.src = url;
  const playing = playElement(audio, isPausable);

  return {
    more,
    end() {
      isWhole = true;
      more();
    },
    stop: playing.stop,
    toggle: () => toggleElement(audio),
    async over() {
      await playing.over;
      over.abort();
      return wasHeard && audio.error === null;
    },
    file: kept.blob,
    whole: kept.blob,
  };
}
