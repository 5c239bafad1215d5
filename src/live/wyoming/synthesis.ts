/**
 * Speech for the texts of a client, made by the speech upstream: of a whole text, or of a text that comes piece by
 * piece, sentence by sentence. Each is one request to the upstream, which holds the slot like `POST /v1/audio/speech`.
 */
import type { PcmFormat } from '../../audio/wav-header.ts';
import { splitSentences } from '../../conversation/sentence-stream.ts';
import { speechOf } from '../../conversation/upstreams/speech.ts';
import type { Hold } from '../../engine/slot.ts';
import type { TicketRequest } from '../../engine/waiting-line.ts';
import { type GatewayError, invalidValue } from '../../errors.ts';
import { newRequestId } from '../../http/server/request-id.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { Exchange } from '../../observability/exchange.ts';
import type { Upstream } from '../../proxy/upstream.ts';
import type { ErrorLimits } from '../../proxy/upstream-answer.ts';
import { endingOf, rounded } from '../exchanges.ts';
import { unexpected } from './messages.ts';
import { parseSynthesize, parseVoice } from './requests.ts';

export interface SpeechDeps {
  upstream: Upstream;
  errorLimits: ErrorLimits;
  modelId: string;
  /** The longest wait for the slot. */
  waitMs: number;
  /** @throws GatewayError `slot_busy` */
  takeWaiting(
    request: Pick<TicketRequest, 'requestId' | 'network' | 'waitMs' | 'onWaited'>,
    signal: AbortSignal,
  ): Promise<Hold>;
}

export interface SpeakerOptions extends SpeechDeps {
  limits: Pick<Budgets['wyoming'], 'speechCharacters'>;
  network: string;
  /** Aborts when the client is gone or may not go on. */
  signal: AbortSignal;
  send(type: string, data?: object): void;
  /** Resolves when the client has room for more. @throws where it is gone */
  sendAudio(format: PcmFormat, samples: Buffer): Promise<void>;
  /** True while the client has read all of its audio so far. */
  hasRoom(): boolean;
  /** Called when a text comes; the function that it returns is called when all of its audio is sent. */
  begin(): () => void;
  /** Called with each speech that was sent to its end. */
  spoken(speech: Speech): void;
}

/** One request to the upstream, and its state so far. */
export interface Speech {
  id: string;
  /** The time of the clock `performance.now()`. */
  startedAt: number;
  model: string;
  bytesIn: number;
  bytesOut: number;
  waitedMs: number;
  /** Absent until it has the slot. */
  slotWaitMs?: number;
}

type Data = Readonly<Record<string, unknown>>;

/** A text that comes piece by piece. */
interface Stream {
  voice: string | undefined;
  /** What is not spoken yet. */
  text: string;
  end(): void;
}

export class Speaker {
  readonly #options: SpeakerOptions;
  #stream: Stream | null = null;
  #speech: Speech | null = null;

  constructor(options: SpeakerOptions) {
    this.#options = options;
  }

  /** True between `synthesize-start` and the last of its audio. */
  get isWithinText(): boolean {
    return this.#stream !== null;
  }

  /** The speech that is made now. */
  get current(): Speech | null {
    return this.#speech;
  }

  /** Resolves when all is sent that this event makes possible. @throws GatewayError */
  async handle(type: string, data: Data): Promise<void> {
    const { begin, send } = this.#options;
    const stream = this.#stream;
    switch (type) {
      case 'synthesize': {
        // The whole text comes again before `synthesize-stop`, for servers that know nothing of streams.
        if (stream !== null) return;
        const { text, voice } = parseSynthesize(data);
        this.#assertLength(text);
        if (text.trim() === '') throw invalidValue('text', text, 'Expected words to speak');
        const end = begin();
        return await this.#speak(text, voice).finally(end);
      }
      case 'synthesize-start':
        if (stream !== null) throw unexpected(type, 'before synthesize-stop');
        this.#stream = { voice: parseVoice(data), text: '', end: begin() };
        return;
      case 'synthesize-chunk':
        if (stream === null) throw unexpected(type, 'before synthesize-start');
        return await this.#speakSentences(stream, parseSynthesize(data).text);
      case 'synthesize-stop':
        if (stream === null) throw unexpected(type, 'before synthesize-start');
        if (stream.text.trim() !== '') await this.#speak(stream.text, stream.voice);
        this.#stream = null;
        send('synthesize-stopped');
        stream.end();
    }
  }

  async #speakSentences(stream: Stream, text: string): Promise<void> {
    this.#assertLength(stream.text + text);
    const { sentences, rest } = splitSentences(stream.text + text);
    stream.text = rest;
    for (const sentence of sentences) await this.#speak(sentence, stream.voice);
  }

  #assertLength(text: string): void {
    const most = this.#options.limits.speechCharacters;
    if (text.length > most)
      throw invalidValue(
        'text',
        text,
        `Expected at most ${most} characters, or sentences of at most as many`,
      );
  }

  async #speak(text: string, voice: string | undefined): Promise<void> {
    const { modelId, send, spoken } = this.#options;
    const input = text.trim();
    const speech: Speech = {
      id: newRequestId(),
      startedAt: performance.now(),
      model: modelId,
      bytesIn: Buffer.byteLength(input),
      bytesOut: 0,
      waitedMs: 0,
    };
    this.#speech = speech;
    const chosen = voice === '' || voice === modelId ? undefined : voice; // it stands for the upstream's own choice
    await this.#pass(speech, input, chosen);
    this.#speech = null;
    spoken(speech);
    send('audio-stop'); // the slot is free when the client asks for more
  }

  /** Passes the upstream's audio on, at the pace of the slower side. */
  async #pass(speech: Speech, text: string, voice: string | undefined): Promise<void> {
    const { upstream, modelId, network, signal, waitMs, takeWaiting, send, sendAudio, hasRoom } =
      this.#options;
    const onWaited = (ms: number) => {
      speech.waitedMs += ms;
    };
    using hold = await takeWaiting({ requestId: speech.id, network, waitMs, onWaited }, signal);
    speech.slotWaitMs = performance.now() - speech.startedAt;
    const options = {
      signal: AbortSignal.any([signal, hold.signal]),
      requestId: speech.id,
      isUpstreamsTurn: hasRoom,
      limits: this.#options.errorLimits,
    };
    const spoken = speechOf(text, { model: modelId, name: voice, speed: 1 }, upstream, options);
    let hasBegun = false;
    for await (const { format, samples } of spoken) {
      if (!hasBegun) send('audio-start', format);
      hasBegun = true;
      speech.bytesOut += samples.length;
      if (samples.length > 0) await sendAudio(format, samples);
    }
  }
}

/** The record of a speech. @param error why it failed; absent where it did not */
export function speechExchange(
  { id, startedAt, model, bytesIn, bytesOut, waitedMs, slotWaitMs }: Speech,
  clientIp: string | undefined,
  error?: GatewayError,
): Exchange {
  return {
    ...endingOf(performance.now() - startedAt, error ?? null),
    requestId: id,
    method: 'WYOMING',
    path: 'synthesize',
    category: 'tts',
    model,
    provider: error?.provider ?? 'tts',
    bytesIn,
    bytesOut,
    clientIp,
    ...(waitedMs > 0 && { waitedMs: rounded(waitedMs) }),
    ...(slotWaitMs !== undefined && { slotWaitMs: rounded(slotWaitMs) }),
  };
}
