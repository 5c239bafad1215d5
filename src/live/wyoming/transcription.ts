/**
 * One transcription of a client, from `audio-start` to its transcript: a live session whose one utterance the client
 * ends.
 */
import { isDeepStrictEqual } from 'node:util';
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type LiveDecoder, pcmDecoder } from '../../audio/live/encodings.ts';
import type { PcmFormat } from '../../audio/wav-header.ts';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import {
  LEAST_COMMIT_SEC,
  type LiveDeps,
  type LiveEvent,
  type LiveSession,
  openLiveSession,
} from '../../transcription/live/live-session.ts';
import type { TranscriptionRequest } from '../../transcription/request.ts';
import { fullText } from '../../wire/formats.ts';

export interface TranscriptionOptions {
  id: string;
  request: TranscriptionRequest;
  live: Omit<LiveDeps, 'emit' | 'newId' | 'limits'>;
  limits: Pick<Budgets['live'], 'utteranceMs' | 'pendingMs'>;
  /** Aborts when the client is gone or may not go on. */
  signal: AbortSignal;
  send(type: string, data?: object): void;
  /** Resolves when this client may use the event loop (`EventLoopShare`). */
  slice(): Promise<void>;
}

/** How a transcription ended. */
export type Outcome = LiveEvent & { type: 'completed' | 'failed' };

/** Bytes that are decoded at a time: at most a second of audio, in the narrowest format. */
const PIECE_BYTES = 8000;

export class Transcription implements AsyncDisposable {
  readonly id: string;
  /** The time of the clock `performance.now()`. */
  readonly startedAt = performance.now();
  /** When the client ended the audio; null before. */
  endedAt: number | null = null;
  /** The bytes of audio that came. */
  bytes = 0;
  readonly #options: TranscriptionOptions;
  readonly #opening: Promise<LiveSession>;
  #decoder: { format: PcmFormat; decode: LiveDecoder } | null = null;
  #samples = 0;
  #hasBegun = false;
  #outcome: Outcome | null = null;

  constructor(options: TranscriptionOptions) {
    const { id, request, live, limits, signal } = options;
    this.id = id;
    this.#options = options;
    // The weights of the voice activity model may have to be fetched, and the audio waits for that.
    this.#opening = openLiveSession(
      { request, turns: null, delay: 'medium' },
      { ...live, limits, newId: () => id, emit: (event) => this.#emit(event) },
      signal,
    );
    this.#opening.catch(() => undefined); // the first audio says so
  }

  /** The seconds of audio that were heard. */
  get audioSec(): number {
    return this.#samples / SAMPLE_RATE;
  }

  /** @throws GatewayError `speech_too_long`, and as `openLiveSession` */
  async append(payload: Buffer, format: PcmFormat): Promise<void> {
    const decoder = this.#decoderFor(format);
    this.bytes += payload.length;
    for (let at = 0; at < payload.length; at += PIECE_BYTES) {
      if (at > 0) await this.#options.slice();
      this.#options.signal.throwIfAborted();
      await this.#append(decoder.take(payload.subarray(at, at + PIECE_BYTES)));
    }
  }

  /** Ends the audio, and resolves with what was heard. */
  async end(): Promise<Outcome> {
    this.endedAt = performance.now();
    const live = await this.#opening;
    if (this.#decoder !== null) await this.#append(this.#decoder.decode.end());
    // In less time nothing can be said; a client that sent nothing gets the empty text of silence.
    const missing = Math.ceil(LEAST_COMMIT_SEC * SAMPLE_RATE) - this.#samples;
    if (missing > 0) await this.#append(new Float32Array(missing));
    await live.commit();
    await live.settled();
    if (this.#outcome === null) throw this.#options.signal.reason ?? new Error('the utterance has no end');
    return this.#outcome;
  }

  /** Sends the transcript. It comes after the disposal, so that what it held is free when the client asks again. */
  answer({ outcome: { segments, summary } }: Outcome & { type: 'completed' }): void {
    const text = fullText(segments);
    this.#begin();
    this.#options.send('transcript', { text, ...(text !== '' && { language: summary.language }) });
    this.#options.send('transcript-stop');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opening.then((live) => live[Symbol.asyncDispose]()).catch(() => undefined);
  }

  #begin(): void {
    if (!this.#hasBegun) this.#options.send('transcript-start');
    this.#hasBegun = true;
  }

  #emit(event: LiveEvent): void {
    if (event.type === 'completed' || event.type === 'failed') this.#outcome = event;
    if (event.type !== 'delta') return;
    this.#begin();
    this.#options.send('transcript-chunk', { text: event.text });
  }

  #decoderFor(format: PcmFormat): LiveDecoder {
    if (this.#decoder === null || !isDeepStrictEqual(this.#decoder.format, format))
      this.#decoder = { format, decode: pcmDecoder(format) };
    return this.#decoder.decode;
  }

  async #append(heard: Float32Array): Promise<void> {
    this.#samples += heard.length;
    const { utteranceMs } = this.#options.limits;
    if (this.audioSec * 1000 > utteranceMs)
      throw new GatewayError('speech_too_long', { seconds: utteranceMs / 1000 });
    await (await this.#opening).append(heard);
  }
}
