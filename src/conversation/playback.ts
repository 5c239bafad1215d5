/**
 * How much of a message a listener has heard: its audio is sent faster than it plays, and an interruption leaves the
 * rest unheard. The player is assumed to start with the first audio and not to pause.
 */

interface Sentence {
  text: string;
  /** Where its audio ends, ms of the audio of the message. */
  endMs: number;
}

export class Playback {
  readonly #bytesPerMs: number;
  readonly #now: () => number;
  readonly #sentences: Sentence[] = [];
  #bytes = 0;
  #startedAt: number | null = null;
  /** What the listener says to have heard, ms. */
  #heardMs: number | null = null;

  /** @param now the clock, ms */
  constructor(bytesPerMs: number, now: () => number = () => performance.now()) {
    this.#bytesPerMs = bytesPerMs;
    this.#now = now;
  }

  /** The audio that was sent, ms. */
  get sentMs(): number {
    return Math.round(this.#bytes / this.#bytesPerMs);
  }

  /** Whether the listener has said how much it has heard, which it knows better than this clock. */
  get isTold(): boolean {
    return this.#heardMs !== null;
  }

  /** The audio that the listener has heard by now, ms. */
  get heardMs(): number {
    if (this.#heardMs !== null) return this.#heardMs;
    return this.#startedAt === null ? 0 : Math.min(this.sentMs, Math.round(this.#now() - this.#startedAt));
  }

  /** The time until all of it is heard, ms. */
  get leftMs(): number {
    return this.#heardMs === null ? this.sentMs - this.heardMs : 0;
  }

  /** Begins a sentence, whose audio is added next. It may have the words of the one before. */
  begin(text: string): void {
    this.#sentences.push({ text, endMs: this.sentMs });
  }

  /** Notes that audio of the sentence is sent. */
  add(bytes: number): void {
    this.#startedAt ??= this.#now();
    this.#bytes += bytes;
    const sentence = this.#sentences.at(-1);
    if (sentence) sentence.endMs = this.sentMs;
  }

  /** Sets how much the listener says that it has heard. @returns that, and where it names more, all audio so far */
  setHeardMs(ms: number): number {
    this.#heardMs = Math.min(ms, this.sentMs);
    return this.#heardMs;
  }

  /** The words of the first `ms` of the audio. Within a sentence, they are taken to be spoken at an even pace. */
  textUntil(ms: number): string {
    let startMs = 0;
    const heard: string[] = [];
    for (const { text, endMs } of this.#sentences) {
      if (startMs >= ms) break;
      const part = endMs <= ms ? 1 : (ms - startMs) / (endMs - startMs);
      heard.push(part === 1 ? text : wordsOf(text, part));
      startMs = endMs;
    }
    return heard.filter((text) => text !== '').join(' ');
  }
}

/** The words of the first part, 0..1, of a text. */
function wordsOf(text: string, part: number): string {
  const end = Math.floor(text.length * part);
  const space = text.lastIndexOf(' ', end);
  const isSpaced = text.includes(' ');
  return isSpaced ? text.slice(0, Math.max(0, space)) : text.slice(0, end);
}
