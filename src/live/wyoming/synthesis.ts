/**
 * Speech for the texts of a client, made by the speech upstream: of a whole text, or of a text that comes piece by
 * piece, sentence by sentence. Each is one request to the upstream, which holds the slot like `POST /v1/audio/speech`.
 */
import { type PcmFormat, readWavHead } from '../../audio/wav-header.ts';
import type { Hold } from '../../engine/slot.ts';
import type { TurnRequest } from '../../engine/waiting-line.ts';
import { GatewayError, invalidValue } from '../../errors.ts';
import { newRequestId } from '../../http/server/request-id.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { classify, type Exchange } from '../../observability/exchange.ts';
import type { Upstream } from '../../proxy/upstream.ts';
import type { ErrorLimits } from '../../proxy/upstream-answer.ts';
import { type Answered, ask } from '../../proxy/upstream-call.ts';
import { endsSentence } from '../../transcription/text/sentences.ts';
import { parseSynthesize, parseVoice } from './requests.ts';

export interface SpeechDeps {
  upstream: Upstream;
  errorLimits: ErrorLimits;
  modelId: string;
  /** The longest wait for the slot. */
  waitMs: number;
  /** @throws GatewayError `slot_busy` */
  takeWaiting(
    request: Pick<TurnRequest, 'requestId' | 'network' | 'waitMs' | 'onWaited'>,
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

/** One request to the upstream, and what is known of it so far. */
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
    const chosen = voice === modelId ? undefined : voice; // it stands for the upstream's own choice
    await this.#pass(speech, {
      model: modelId,
      input,
      response_format: 'wav',
      ...(chosen && { voice: chosen }),
    });
    this.#speech = null;
    spoken(speech);
    send('audio-stop'); // the slot is free when the client asks for more
  }

  /** Passes the upstream's audio on, at the pace of the slower side. */
  async #pass(speech: Speech, request: object): Promise<void> {
    const { upstream, network, signal, waitMs, takeWaiting, send, sendAudio, hasRoom } = this.#options;
    const onWaited = (ms: number) => {
      speech.waitedMs += ms;
    };
    using hold = await takeWaiting({ requestId: speech.id, network, waitMs, onWaited }, signal);
    speech.slotWaitMs = performance.now() - speech.startedAt;
    const answered = await ask(upstream, '/v1/audio/speech', request, {
      signal: AbortSignal.any([signal, hold.signal]),
      requestId: speech.id,
      isUpstreamsTurn: hasRoom,
      limits: this.#options.errorLimits,
    });
    let hasBegun = false;
    for await (const { format, samples } of pcmOf(answered, upstream)) {
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
  const round = (ms: number) => Number(ms.toFixed(2));
  const tookMs = performance.now() - startedAt;
  return {
    requestId: id,
    at: new Date(Date.now() - tookMs),
    method: 'WYOMING',
    path: 'synthesize',
    category: 'tts',
    model,
    provider: error?.provider ?? 'tts',
    status: error?.status ?? 200,
    class: error === undefined ? classify(200) : classify(error.status, error.kind, error.code),
    latencyMs: round(tookMs),
    bytesIn,
    bytesOut,
    clientIp,
    ...(waitedMs > 0 && { waitedMs: round(waitedMs) }),
    ...(slotWaitMs !== undefined && { slotWaitMs: round(slotWaitMs) }),
    ...(error !== undefined && { errorKind: error.kind }),
  };
}

const unexpected = (event: string, when: string) => new GatewayError('unexpected_event', { event, when });

const PIECE_BYTES = 16 * 1024;
/** A longer head is none. */
const HEAD_BYTES = 16 * 1024;
const EMPTY: Buffer = Buffer.alloc(0);

/** The samples of an answer in whole frames, of which the first may be none. @throws GatewayError `upstream_failed` */
async function* pcmOf(
  { headers, body }: Answered,
  { name, category }: Upstream,
): AsyncGenerator<{ format: PcmFormat; samples: Buffer }> {
  const unreadable = (why: string) =>
    new GatewayError('upstream_failed', { upstream: name, why: `its answer ${why}` }, { provider: category });
  let format = bareFormat(headers);
  let left = Number.POSITIVE_INFINITY;
  let held = EMPTY;
  for await (const chunk of body) {
    let bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    if (format === null) {
      const head = headIn(bytes, unreadable);
      held = bytes;
      if (head === null) continue;
      format = head.format;
      left = head.bytes;
      bytes = bytes.subarray(head.start);
      yield { format, samples: EMPTY };
    }
    const frame = format.width * format.channels;
    const whole = Math.min(bytes.length, left);
    const end = whole - (whole % frame);
    const most = PIECE_BYTES - (PIECE_BYTES % frame);
    for (let at = 0; at < end; at += most)
      yield { format, samples: bytes.subarray(at, Math.min(end, at + most)) };
    left -= end;
    held = left < frame ? EMPTY : bytes.subarray(end); // other chunks of the file may follow the samples
  }
  if (format === null) throw unreadable('is no audio');
}

function headIn(bytes: Buffer, unreadable: (why: string) => GatewayError) {
  try {
    const head = readWavHead(bytes);
    if (head === null && bytes.length > HEAD_BYTES) throw new Error('has no samples');
    return head;
  } catch (error) {
    throw unreadable((error as Error).message);
  }
}

/** The format of samples without a head, where the answer says that it has none: OpenAI's, unless it names a rate. */
function bareFormat(headers: Answered['headers']): PcmFormat | null {
  if (!/^audio\/(pcm|l16)\b/i.test(headers['content-type'] ?? '')) return null;
  const rate = Number(headers['x-sample-rate'] ?? /\brate=(\d+)/.exec(headers['content-type'] ?? '')?.[1]);
  return { rate: Number.isInteger(rate) && rate > 0 ? rate : 24_000, width: 2, channels: 1 };
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'sentence' });
/** A word that is longer has no abbreviation at its end. */
const WORD_CHARACTERS = 100;

/**
 * The sentences of a text whose end is still to come. Unicode says where sentences may end in any script, and the rules
 * for transcripts know abbreviations. A sentence ends when the next one has begun.
 */
export function splitSentences(text: string): { sentences: string[]; rest: string } {
  const sentences: string[] = [];
  let open = '';
  for (const { segment } of segmenter.segment(text)) {
    if (/[\p{L}\p{N}]/u.test(segment) && isWhole(open, segment)) {
      sentences.push(open);
      open = '';
    }
    open += segment;
  }
  return { sentences, rest: open };
}

function isWhole(sentence: string, next: string): boolean {
  if (sentence.trim() === '') return false;
  if (sentence.slice(sentence.trimEnd().length).includes('\n')) return true;
  const word = (text = '') => ({ text, start: 0, end: 0 });
  const last = sentence.slice(-WORD_CHARACTERS).trim().split(/\s+/).at(-1);
  const [first] = next.slice(0, WORD_CHARACTERS).trim().split(/\s+/);
  return endsSentence(word(last), word(first));
}
