/**
 * One transcription of a client, from `audio-start` to its transcript: a live session whose one utterance the client
 * ends.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type LiveDecoder, type PcmFormat, pcmDecoder } from '../../audio/live/encodings.ts';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import {
  LEAST_COMMIT_SEC,
  type LiveDeps,
  type LiveEvent,
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

export interface Transcription extends AsyncDisposable {
  readonly id: string;
  /** The time of the clock `performance.now()`. */
  readonly startedAt: number;
  /** When the client ended the audio; null before. */
  readonly endedAt: number | null;
  /** The bytes of audio that came. */
  readonly bytes: number;
  /** The seconds of audio that were heard. */
  readonly audioSec: number;
  /** @throws GatewayError `speech_too_long`, and as `openLiveSession` */
  hear(payload: Buffer, format: PcmFormat): Promise<void>;
  /** Ends the audio, and resolves with what was heard. */
  end(): Promise<Outcome>;
  /** Sends the transcript. It comes after the disposal, so that what it held is free when the client asks again. */
  answer(outcome: Outcome & { type: 'completed' }): void;
}

/** Bytes that are decoded at a time, of which the narrowest are a second of audio. */
const PIECE_BYTES = 8000;

export function beginTranscription(options: TranscriptionOptions): Transcription {
  const { id, request, limits, signal, send, slice } = options;
  let decoder: { format: PcmFormat; decode: LiveDecoder } | null = null;
  let samples = 0;
  let bytes = 0;
  let endedAt: number | null = null;
  let hasBegun = false;
  let outcome: Outcome | null = null;

  function begin(): void {
    if (!hasBegun) send('transcript-start');
    hasBegun = true;
  }

  function emit(event: LiveEvent): void {
    if (event.type === 'completed' || event.type === 'failed') outcome = event;
    if (event.type !== 'delta') return;
    begin();
    send('transcript-chunk', { text: event.text });
  }

  // The weights of the voice activity model may have to be fetched, and the audio waits for that.
  const opening = openLiveSession(
    { request, turns: null, delay: 'medium' },
    { ...options.live, limits, newId: () => id, emit },
    signal,
  );
  opening.catch(() => undefined); // the first audio says so

  function decoderFor(format: PcmFormat): LiveDecoder {
    const { rate, width, channels } = decoder?.format ?? {};
    if (decoder === null || rate !== format.rate || width !== format.width || channels !== format.channels)
      decoder = { format, decode: pcmDecoder(format) };
    return decoder.decode;
  }

  async function append(heard: Float32Array): Promise<void> {
    samples += heard.length;
    if ((samples / SAMPLE_RATE) * 1000 > limits.utteranceMs)
      throw new GatewayError('speech_too_long', { seconds: limits.utteranceMs / 1000 });
    await (await opening).append(heard);
  }

  return {
    id,
    startedAt: performance.now(),
    get endedAt() {
      return endedAt;
    },
    get bytes() {
      return bytes;
    },
    get audioSec() {
      return samples / SAMPLE_RATE;
    },
    async hear(payload, format) {
      const decoder = decoderFor(format);
      bytes += payload.length;
      for (let at = 0; at < payload.length; at += PIECE_BYTES) {
        if (at > 0) await slice();
        signal.throwIfAborted();
        await append(decoder.take(payload.subarray(at, at + PIECE_BYTES)));
      }
    },
    async end() {
      endedAt = performance.now();
      const live = await opening;
      if (decoder !== null) await append(decoder.decode.end());
      // In less time nothing can be said; a client that sent nothing gets the empty text of silence.
      const missing = Math.ceil(LEAST_COMMIT_SEC * SAMPLE_RATE) - samples;
      if (missing > 0) await append(new Float32Array(missing));
      await live.commit();
      await live.settled();
      if (outcome === null) throw signal.reason ?? new Error('the utterance has no end');
      return outcome;
    },
    answer({ outcome: { segments, summary } }) {
      const text = fullText(segments);
      begin();
      send('transcript', { text, ...(text !== '' && { language: summary.language }) });
      send('transcript-stop');
    },
    async [Symbol.asyncDispose]() {
      await opening.then((live) => live[Symbol.asyncDispose]()).catch(() => undefined);
    },
  };
}
