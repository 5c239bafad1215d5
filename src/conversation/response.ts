/**
 * One response of the assistant: the chat daemon writes, and its sentences are spoken while it goes on writing. A
 * response holds the slot once, from its first request to its last byte, and takes over the slot of the utterance that
 * it answers. However it ends, the calls of both upstreams are closed and the items it started are completed, so that
 * a client is never left with an open one.
 */
import { EventEmitter, once } from 'node:events';
import { onAbort } from '../abort.ts';
import type { LiveFormat } from '../audio/live/encodings.ts';
import type { Hold } from '../engine/slot.ts';
import type { Budgets } from '../limits/budgets.ts';
import type { Upstream } from '../proxy/upstream.ts';
import type { ErrorLimits } from '../proxy/upstream-answer.ts';
import { type AskOptions, ask } from '../proxy/upstream-call.ts';
import type { Item, Message, ToolCall } from './items.ts';
import { Playback } from './playback.ts';
import { createSpokenText } from './spoken-text.ts';
import {
  type ChatEvent,
  type ChatUsage,
  chatBody,
  chatEvents,
  inTime,
  type Tool,
  type ToolChoice,
} from './upstreams/chat-completions.ts';
import { speak } from './upstreams/speech.ts';

/**
 * OpenAI's API takes no longer ids of calls, so that a client may send back a hash of one (LiveKit does). vLLM's are
 * longer.
 */
const LONGEST_CALL_ID = 32;

/** How the assistant answers. */
export interface AnswerSettings {
  /** The name that the client gave; the chat daemon's first model if it has none of that name. */
  model: string | undefined;
  instructions: string;
  tools: readonly Tool[];
  toolChoice: ToolChoice;
  /** Null where there is no limit. */
  maxTokens: number | null;
  /** Whether the answer is spoken; otherwise it is text only. */
  isSpoken: boolean;
  voice: string | undefined;
  /** 0.25..4; 1 is as fast as the voice speaks by itself. */
  speed: number;
  format: LiveFormat;
}

export interface ResponseRequest extends AnswerSettings {
  id: string;
  /** Text that the client gave to know the response again. */
  metadata: Readonly<Record<string, string>> | null;
  /** False for a response "out of band", whose items are kept nowhere. */
  isInConversation: boolean;
}

/** `index` is that of the item among those of the response. */
export type ResponseEvent =
  | { type: 'created' }
  | { type: 'item-added'; index: number; item: Item; previousId: string | null }
  | { type: 'part-added'; index: number; item: Message }
  | { type: 'text'; index: number; item: Message; text: string }
  | { type: 'audio'; index: number; item: Message; audio: Buffer }
  | { type: 'part-done'; index: number; item: Message }
  | { type: 'arguments'; index: number; item: ToolCall }
  | { type: 'item-done'; index: number; item: Item; previousId: string | null }
  | { type: 'done'; outcome: ResponseOutcome };

export interface ResponseOutcome {
  status: 'completed' | 'cancelled' | 'failed' | 'incomplete';
  /** Why it was cancelled, or is not complete. */
  reason?: CancelReason | 'max_output_tokens' | 'content_filter';
  /** Why it failed. */
  error?: unknown;
  /** Null where the chat daemon tells none. */
  usage: ChatUsage | null;
  items: readonly Item[];
  stages: Stages;
}

/** A call of an upstream, or several of the same. */
export interface Stage {
  /** The first byte of use, in ms from the beginning of the response; null where none came. */
  firstMs: number | null;
  endMs: number;
  bytesIn: number;
  bytesOut: number;
}

export interface Stages {
  model: string | undefined;
  /** From the end of the speech that is answered to the beginning; null where it answers no speech. */
  textMs: number | null;
  /** Null where it never had the slot. */
  slotWaitMs: number | null;
  chat: Stage | null;
  speech: Stage | null;
}

export type CancelReason = 'turn_detected' | 'client_cancelled';

/** The reason of a signal that ends a response because somebody wanted it. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
  readonly reason: CancelReason;
  constructor(reason: CancelReason) {
    super(`the response was cancelled: ${reason}`);
    this.reason = reason;
  }
}

export interface ResponseDeps {
  chat: Upstream;
  speech: Upstream;
  speechModel: string;
  /** The name that the chat daemon knows for the one of the client. */
  chatModel(name: string | undefined): Promise<string | undefined>;
  /** The voice of this name, or undefined where the speech upstream has none of it. */
  voiceOf(name: string | undefined): Promise<string | undefined>;
  limits: Budgets['conversation'];
  errorLimits: ErrorLimits;
  network: string;
  /** The longest wait for the slot. */
  waitMs: number;
  /** @throws GatewayError `slot_busy` */
  takeWaiting(
    request: { requestId: string; network: string; waitMs: number },
    signal: AbortSignal,
  ): Promise<Hold>;
  newId(kind: 'item' | 'call'): string;
}

export interface ResponseOptions extends ResponseDeps {
  request: ResponseRequest;
  /** The slot, where it has it from the beginning; it frees it. */
  hold: Hold | null;
  /** When the speech that it answers ended, by `performance.now`; undefined where it answers none. */
  speechEndedAt: number | undefined;
  /** What the chat daemon is to read, once all that was said has its text. */
  items(signal: AbortSignal): Promise<readonly Item[]>;
  /** Adds an item to the conversation, and returns the id of the one before it. */
  add(item: Item): string | null;
  /** Called with the playback of each message that is spoken. */
  onPlayback(id: string, playback: Playback): void;
  /** Resolves when the client has room for more. */
  emit(event: ResponseEvent): Promise<void>;
  signal: AbortSignal;
}

/** Runs the response to its end. It never throws: a failure is an outcome. */
export function runResponse(options: ResponseOptions): Promise<ResponseOutcome> {
  return new Response(options).run();
}

interface OpenMessage {
  index: number;
  item: Message;
  previousId: string | null;
  playback: Playback;
}

class Response {
  readonly #options: ResponseOptions;
  readonly #startedAt = performance.now();
  readonly #items: Item[] = [];
  /** The sentences that wait to be spoken; `more` is emitted with new ones, and when the last one is there. */
  readonly #sentences: string[] = [];
  readonly #writing = new EventEmitter();
  #isWritten = false;
  readonly #spoken = createSpokenText();
  readonly #calls: ToolCall[] = [];
  readonly #stages: Stages = {
    model: undefined,
    textMs: null,
    slotWaitMs: null,
    chat: null,
    speech: null,
  };
  #message: OpenMessage | null = null;
  #usage: ChatUsage | null = null;
  #characters = 0;
  /** True while a client takes its time, which is not that of an upstream. */
  #isSending = false;
  #finish = 'stop';

  constructor(options: ResponseOptions) {
    this.#options = options;
    const { speechEndedAt } = options;
    if (speechEndedAt !== undefined) this.#stages.textMs = this.#startedAt - speechEndedAt;
  }

  async run(): Promise<ResponseOutcome> {
    using _held = this.#options.hold; // frees the slot even if sending `created` fails
    await this.#emit({ type: 'created' });
    const outcome = await this.#answer().then(
      () => this.#completed(),
      (error) => this.#failed(error),
    );
    await this.#endMessage(outcome.status === 'completed' ? 'completed' : 'incomplete');
    if (outcome.status === 'completed') for (const call of this.#calls) await this.#addCall(call);
    await this.#emit({ type: 'done', outcome });
    return outcome;
  }

  #completed(): ResponseOutcome {
    const common = this.#common();
    if (this.#finish === 'length') return { status: 'incomplete', reason: 'max_output_tokens', ...common };
    if (this.#finish === 'content_filter') return { status: 'incomplete', reason: this.#finish, ...common };
    return { status: 'completed', ...common };
  }

  #failed(error: unknown): ResponseOutcome {
    const common = this.#common();
    if (error instanceof Cancelled) return { status: 'cancelled', reason: error.reason, ...common };
    return { status: 'failed', error, ...common };
  }

  /** `items` is the list itself and not a copy, so it also has the items that `run` adds once the outcome is known. */
  #common() {
    return { usage: this.#usage, items: this.#items, stages: this.#stages };
  }

  async #answer(): Promise<void> {
    const { request, network, waitMs, takeWaiting, signal, hold: held } = this.#options;
    const items = await this.#options.items(signal);
    using hold = held ?? (await takeWaiting({ requestId: request.id, network, waitMs }, signal));
    held?.pass('llm', request.id);
    this.#stages.slotWaitMs = this.#sinceMs();
    const stop = new AbortController();
    using _ending = onAbort(AbortSignal.any([signal, hold.signal]), () =>
      stop.abort(signal.aborted ? signal.reason : hold.signal.reason),
    );
    const failing = (work: Promise<void>) => work.catch((error) => stop.abort(error));
    await Promise.all([failing(this.#write(items, stop.signal)), failing(this.#speakAll(stop.signal))]);
    stop.signal.throwIfAborted();
  }

  /** Reads what the chat daemon writes. */
  async #write(items: readonly Item[], signal: AbortSignal): Promise<void> {
    const { request, chat, chatModel, limits } = this.#options;
    try {
      const model = await chatModel(request.model);
      this.#stages.model = model;
      const body = chatBody({ ...request, model, items });
      const stage = this.#begin('chat', JSON.stringify(body).length);
      const call = new AbortController();
      const asking = this.#asking(AbortSignal.any([signal, call.signal]));
      const answered = await ask(chat, '/v1/chat/completions', body, asking);
      const waits = { silentMs: chat.timeoutMs, closingMs: limits.chatClosingMs };
      for await (const event of inTime(chatEvents(answered, chat, limits), call, waits)) {
        stage.firstMs ??= this.#sinceMs();
        await this.#take(event);
        if (this.#characters > limits.answerCharacters) {
          this.#finish = 'length';
          break;
        }
      }
      stage.endMs = this.#sinceMs();
      stage.bytesOut = this.#characters;
    } finally {
      this.#isWritten = true;
      this.#addSentences(this.#spoken.end());
    }
  }

  async #take(event: ChatEvent): Promise<void> {
    const { request, newId } = this.#options;
    switch (event.kind) {
      case 'text': {
        const message = this.#message ?? (await this.#beginMessage());
        const [part] = message.item.parts;
        if (part) part.text = (part.text ?? '') + event.text;
        this.#characters += event.text.length;
        await this.#emit({ type: 'text', ...message, text: event.text });
        if (request.isSpoken) this.#addSentences(this.#spoken.push(event.text));
        return;
      }
      case 'call': {
        const callId = event.id !== '' && event.id.length <= LONGEST_CALL_ID ? event.id : newId('call');
        const call = { id: newId('item'), status: 'in_progress', name: event.name, arguments: '' } as const;
        this.#calls.push({ kind: 'call', ...call, callId });
        this.#characters += event.name.length;
        return;
      }
      case 'arguments': {
        const call = this.#calls[event.call];
        if (call) call.arguments += event.text;
        this.#characters += event.text.length;
        return;
      }
      case 'usage':
        this.#usage = event.usage;
        return;
      case 'finish':
        this.#finish = event.reason;
    }
  }

  async #speakAll(signal: AbortSignal): Promise<void> {
    const { request, speech, speechModel, voiceOf } = this.#options;
    if (!request.isSpoken) return;
    const voice = { model: speechModel, name: await voiceOf(request.voice), speed: request.speed };
    for await (const sentence of this.#allSentences(signal)) {
      const stage = this.#stages.speech ?? this.#begin('speech', 0);
      stage.bytesIn += Buffer.byteLength(sentence);
      this.#message?.playback.begin(sentence);
      for await (const audio of speak(sentence, voice, request.format, speech, this.#asking(signal))) {
        signal.throwIfAborted();
        if (this.#message === null) return;
        stage.firstMs ??= this.#sinceMs();
        stage.bytesOut += audio.length;
        this.#message.playback.add(audio.length);
        await this.#emit({ type: 'audio', ...this.#message, audio });
      }
      stage.endMs = this.#sinceMs();
    }
  }

  #addSentences(sentences: readonly string[]): void {
    this.#sentences.push(...sentences);
    this.#writing.emit('more');
  }

  async *#allSentences(signal: AbortSignal): AsyncGenerator<string> {
    for (;;) {
      signal.throwIfAborted();
      const next = this.#sentences.shift();
      if (next !== undefined) yield next;
      else if (this.#isWritten) return;
      else await once(this.#writing, 'more', { signal }).catch(() => signal.throwIfAborted());
    }
  }

  #asking(signal: AbortSignal): AskOptions {
    const { request, errorLimits: limits } = this.#options;
    return { signal, isUpstreamsTurn: () => !this.#isSending, requestId: request.id, limits };
  }

  #begin(stage: 'chat' | 'speech', bytesIn: number): Stage {
    const begun: Stage = { firstMs: null, endMs: this.#sinceMs(), bytesIn, bytesOut: 0 };
    this.#stages[stage] = begun;
    return begun;
  }

  async #beginMessage(): Promise<OpenMessage> {
    const { request, newId, onPlayback } = this.#options;
    const id = newId('item');
    const kind = request.isSpoken ? 'audio' : 'text';
    const item: Message = { kind: 'message', id, status: 'in_progress', role: 'assistant', parts: [] };
    const { index, previousId } = await this.#addItem(item);
    item.parts.push({ kind, text: '' });
    const bytesPerMs = ((request.format.encoding === 'pcm16' ? 2 : 1) * request.format.rate) / 1000;
    const message = { index, item, previousId, playback: new Playback(bytesPerMs) };
    if (request.isSpoken) onPlayback(id, message.playback);
    this.#message = message;
    await this.#emit({ type: 'part-added', index, item });
    return message;
  }

  async #endMessage(status: 'completed' | 'incomplete'): Promise<void> {
    if (this.#message === null) return;
    const { index, item, previousId } = this.#message;
    item.status = status;
    await this.#emit({ type: 'part-done', index, item });
    await this.#emit({ type: 'item-done', index, item, previousId });
  }

  async #addCall(item: ToolCall): Promise<void> {
    if (item.arguments.trim() === '') item.arguments = '{}'; // some clients drop a call without arguments
    const { index, previousId } = await this.#addItem(item);
    await this.#emit({ type: 'arguments', index, item });
    item.status = 'completed';
    await this.#emit({ type: 'item-done', index, item, previousId });
  }

  async #addItem(item: Item): Promise<{ index: number; previousId: string | null }> {
    const { request, add } = this.#options;
    const previousId = request.isInConversation ? add(item) : null;
    const index = this.#items.push(item) - 1;
    await this.#emit({ type: 'item-added', index, item, previousId });
    return { index, previousId };
  }

  async #emit(event: ResponseEvent): Promise<void> {
    this.#isSending = true;
    await this.#options.emit(event).finally(() => {
      this.#isSending = false;
    });
  }

  #sinceMs(): number {
    return performance.now() - this.#startedAt;
  }
}
