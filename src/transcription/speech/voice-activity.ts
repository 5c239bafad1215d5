/**
 * Turns the speech probabilities of Silero VAD (https://github.com/snakers4/silero-vad) into spans of speech, both in
 * units of one window (512 samples, 32 ms). Pure, so that every rule can be tested without a model.
 */

export const WINDOW_SAMPLES = 512;
export const WINDOW_SEC = WINDOW_SAMPLES / 16_000;

/** A half-open range of windows. */
export interface Span {
  start: number;
  end: number;
}

/** A range of windows in which there may be speech. */
export interface SpeechSpan extends Span {
  /** The mean probability of speech in the surest quarter of a second of it, 0 to 1. */
  certainty: number;
}

export interface SegmenterOptions {
  /** Speech begins at this probability. */
  threshold: number;
  /** Speech ends when the probability has been below this one for `minSilence` windows. */
  endThreshold: number;
  /** A span of fewer windows is dropped, unless it is the rest of a span that was cut. */
  minSpeech: number;
  /** Windows of silence that end a span. */
  minSilence: number;
  /** Windows of silence kept on both sides, but never more than half of the silence between two spans. */
  padding: number;
  /** A span of more windows is cut at the window with the lowest probability in its second half. */
  maxSpeech: number;
  /** Replaces `maxSpeech` for the first span. */
  firstMaxSpeech?: number;
}

/** The windows in so many milliseconds. */
export const windowsIn = (ms: number): number => Math.round(ms / 1000 / WINDOW_SEC);

export const DEFAULT_SEGMENTER: SegmenterOptions = {
  threshold: 0.5,
  endThreshold: 0.35,
  minSpeech: windowsIn(250),
  minSilence: windowsIn(500),
  padding: windowsIn(200),
  maxSpeech: windowsIn(28_000),
};

/** As short as the shortest span, so that a word among other sounds is not averaged away. */
const CERTAINTY_WINDOWS = windowsIn(250);

/** The speech that goes on now. */
interface OpenSpan {
  start: number;
  probabilities: number[];
  lastSpeech: number;
  /** Whether it is the rest of a span that was cut. */
  continued: boolean;
}

/** @param continued true where the audio begins with the rest of a span that was cut */
export function createSegmenter(
  options: SegmenterOptions = DEFAULT_SEGMENTER,
  { continued = false }: { continued?: boolean } = {},
) {
  const { threshold, endThreshold, minSpeech, minSilence, padding } = options;
  let maxSpeech = options.firstMaxSpeech ?? options.maxSpeech;
  let position = 0;
  let open: OpenSpan | null = continued ? { start: 0, probabilities: [], lastSpeech: -1, continued } : null;
  let lastSpeech = -minSilence; // of the last span that closed
  let previousEnd = 0; // the padded end of the last span returned; no later span begins before it

  /** Closes the open span. @param room the windows of silence after `end` that may become padding */
  function close(span: OpenSpan, end: number, room: number): SpeechSpan[] {
    // The rest of a span that was cut is speech, however short it is.
    if (end - span.start < (span.continued ? 1 : minSpeech)) return [];
    maxSpeech = options.maxSpeech;
    const start = Math.max(previousEnd, span.start - padding);
    previousEnd = end + Math.min(padding, room);
    return [
      { start, end: previousEnd, certainty: certaintyOf(span.probabilities.slice(0, end - span.start)) },
    ];
  }

  function closeAfterSpeech(span: OpenSpan): SpeechSpan[] {
    open = null;
    lastSpeech = span.lastSpeech;
    return close(span, lastSpeech + 1, Math.floor((position - 1 - lastSpeech) / 2));
  }

  function cut(span: OpenSpan): SpeechSpan[] {
    let at = Math.floor(maxSpeech / 2);
    span.probabilities.forEach((p, i) => {
      if (i > at && p < (span.probabilities[at] ?? 1)) at = i;
    });
    const here = span.start + at;
    // The silence after the last word, which may not be long enough yet to end the span, is no speech to go on with.
    if (here > span.lastSpeech) return closeAfterSpeech(span);
    const out = close(span, here, 0);
    open = { ...span, start: here, probabilities: span.probabilities.slice(at), continued: true };
    return out;
  }

  function step(probability: number): SpeechSpan[] {
    const here = position++;
    if (open === null) {
      if (probability < threshold) return [];
      const continued = here - lastSpeech < minSilence; // it would be in the same span, but for a cut
      open = { start: here, probabilities: [], lastSpeech: here, continued };
    }
    open.probabilities.push(probability);
    if (probability >= endThreshold) open.lastSpeech = here;
    if (here - open.lastSpeech >= minSilence) return closeAfterSpeech(open);
    return open.probabilities.length >= maxSpeech ? cut(open) : [];
  }

  return {
    /** Takes the next probabilities, and returns the spans that can no longer change. */
    push: (probabilities: Float32Array) => Array.from(probabilities).flatMap(step),
    /** Ends the audio, and returns the span that was still open. */
    finish(): SpeechSpan[] {
      const span = open;
      open = null;
      if (span === null) return [];
      const end = span.lastSpeech + 1;
      return close(span, end, position - end);
    },
    /** No later span starts before this window, so the audio before it is no longer needed. */
    get settled() {
      return Math.max(previousEnd, (open?.start ?? position) - padding);
    },
    /** The speech that goes on now: its first window, and the window after the last one with speech; null in silence. */
    get open() {
      return open && { start: open.start, end: open.lastSpeech + 1, continued: open.continued };
    },
  };
}

/** The mean probability in the surest quarter of a second. */
export function certaintyOf(probabilities: ArrayLike<number>): number {
  const count = Math.min(CERTAINTY_WINDOWS, probabilities.length);
  let sum = 0;
  let most = 0;
  for (let i = 0; i < probabilities.length; i += 1) {
    sum += (probabilities[i] as number) - (probabilities[i - count] ?? 0);
    if (i >= count - 1) most = Math.max(most, sum);
  }
  return most / count;
}
