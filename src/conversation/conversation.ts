/**
 * A conversation: what people said and wrote, what the assistant answered, and whose turn it is. It knows no protocol.
 * An utterance with words is answered when it ends, and speech that begins interrupts the answer; a client may also
 * ask for answers itself. At most one answer of the conversation goes on at a time.
 */
import { EventEmitter, once } from 'node:events';
import { onAbort } from '../abort.ts';
import { liveDecoder } from '../audio/live/encodings.ts';
import type { Hold } from '../engine/slot.ts';
import type { SlotHandover } from '../engine/slot-handover.ts';
import type { VoiceActivityModel } from '../engine/types.ts';
import { excerpt, GatewayError } from '../errors.ts';
import { Echo } from './echo.ts';
import { History, hasCall, type Item, type Retention, saidBy, type ToolResult } from './items.ts';
import type { Playback } from './playback.ts';
import {
  type AnswerSettings,
  Cancelled,
  type ResponseDeps,
  type ResponseEvent,
  type ResponseOutcome,
  type ResponseRequest,
  runResponse,
} from './response.ts';

export interface ConversationSettings extends AnswerSettings {
  /** Whether each utterance that ends is answered. */
  answersUtterances: boolean;
  /** Whether speech that begins ends an answer. */
  isInterruptible: boolean;
  /** The silence after an answer, ms, that the assistant ends; null where it waits for ever. */
  idleMs: number | null;
  /** What is forgotten of a conversation that gets too long; null where an error tells that it is. */
  retention: Retention | null;
}

export interface ConversationOptions extends Omit<ResponseDeps, 'newId'> {
  settings: ConversationSettings;
  newId(kind: 'item' | 'call' | 'resp'): string;
  /** Resolves when the client has room for more. */
  emit(request: ResponseRequest, event: ResponseEvent): Promise<void>;
  /** Called with the outcome of each response. */
  onOutcome(request: ResponseRequest, outcome: ResponseOutcome): void;
  /** Called when `idle_timeout_ms` have passed, before the assistant speaks, with the item that stands for the silence. */
  onIdle(id: string, previousId: string | null): void;
  /** Aborts at the end of the session. */
  signal: AbortSignal;
}

/** What a client may ask for in one response, in place of the settings. */
export interface Asked extends Partial<AnswerSettings> {
  metadata?: ResponseRequest['metadata'];
  isInConversation?: boolean;
  /** What the model is to read in place of the conversation. */
  input?: readonly (Item | { reference: string })[];
}

/** What stands for a silence in the messages to the model. */
const SILENCE = '…';

/** What a response begins with. */
interface Start {
  input?: readonly Item[] | undefined;
  /** Why it fails at once. */
  error?: unknown;
  /** The slot, of the utterance that it answers. */
  hold?: Hold | null;
  /** When the speech that it answers ended, by `performance.now`. */
  speechEndedAt?: number | undefined;
}

interface Active {
  request: ResponseRequest;
  stop: AbortController;
  ended: Promise<unknown>;
}

export class Conversation {
  readonly #options: ConversationOptions;
  readonly #history: History;
  readonly #active = new Map<string, Active>();
  /** When the utterances ended whose texts are still to come, by `performance.now`. */
  readonly #untranscribed = new Map<string, number>();
  /** Emits `known` when one of them has its text, or will have none. */
  readonly #texts = new EventEmitter();
  readonly #playbacks = new Map<string, Playback>();
  readonly #echo = new Echo();
  #settings: ConversationSettings;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Whether the last response was started by the idle timeout. It starts no second one until somebody has spoken. */
  #hasPrompted = false;
  /** Whether somebody speaks. */
  #isSpeaking = false;
  /** An utterance that is answered once it is quiet; null where none is. */
  #due: Pick<Start, 'speechEndedAt'> | null = null;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#history = new History(options.limits);
    this.#history.retention = options.settings.retention;
  }

  configure(settings: ConversationSettings): void {
    this.#settings = settings;
    this.#history.retention = settings.retention;
  }

  /** Whether a response goes on. */
  get isResponding(): boolean {
    return this.#active.size > 0;
  }

  /** Wraps a voice activity model, so that it does not take the echo of an answer for speech. */
  withoutEcho(model: VoiceActivityModel): VoiceActivityModel {
    return {
      probabilities: async (samples, options, hooks) =>
        this.#echo.without(samples, await model.probabilities(samples, options, hooks)),
      close: () => model.close(),
    };
  }

  /** Whether a turn that ends now is answered. */
  get isAnswering(): boolean {
    return this.#settings.answersUtterances && this.#inConversation() === undefined;
  }

  /**
   * Adds what a client wrote, or said as a whole. @returns the id of the item before it
   * @throws GatewayError as `History.add`, and `invalid_tool_call_id` for the result of a call that there never was
   */
  add(item: Item, after?: string | null): string | null {
    if (item.kind === 'result' && !this.#history.hasCall(item.callId)) throw unknownCall(item);
    this.#history.requireRoom();
    return this.#history.add(item, after);
  }

  /** @throws GatewayError `item_retrieve_invalid_item_id` */
  find(id: string): Item {
    const item = this.#history.find(id);
    if (item === undefined) throw new GatewayError('item_retrieve_invalid_item_id', { id });
    return item;
  }

  /** @throws GatewayError `item_delete_invalid_item_id` */
  delete(id: string): void {
    if (!this.#history.delete(id)) throw new GatewayError('item_delete_invalid_item_id', { id });
    this.#playbacks.delete(id);
    this.#settleTranscript(id);
  }

  /**
   * Keeps of a message of the assistant what was heard of it.
   * @returns the end of what was heard, ms; where a client names a later one than there is, the end of the audio
   * @throws GatewayError `item_truncate_invalid_item_id`, also for what is no message with audio
   */
  truncate(id: string, audioEndMs: number): number {
    const playback = this.#playbacks.get(id);
    const item = this.#history.find(id);
    if (playback === undefined || item?.kind !== 'message')
      throw new GatewayError('item_truncate_invalid_item_id', { id });
    const endMs = playback.setHeardMs(audioEndMs);
    const [last] = [...this.#playbacks.keys()].slice(-1);
    if (id === last) this.#echo.stop(); // its player has stopped
    // An answer that goes on has its text still to come, and is cut when it has ended.
    if (item.status !== 'in_progress') item.parts = [{ kind: 'audio', text: playback.textUntil(endMs) }];
    return endMs;
  }

  /** Somebody begins to speak. */
  speechStarted(): void {
    clearTimeout(this.#idleTimer);
    this.#hasPrompted = false;
    this.#isSpeaking = true;
    if (this.#settings.isInterruptible) this.#inConversation()?.stop.abort(new Cancelled('turn_detected'));
  }

  /** What somebody began to say is not heard any more. */
  speechDropped(): void {
    this.#isSpeaking = false;
    this.#answerDueOrWait();
  }

  /** An utterance has ended, whose text is still to come. @returns the id of the item before it */
  committed(id: string): string | null {
    this.#isSpeaking = false;
    this.#untranscribed.set(id, performance.now());
    return this.#history.add(saidBy(id, null));
  }

  /**
   * An utterance has its text.
   * @param isTurn whether its speaker has ended it with a pause, and not the client with a commit
   * @param slot what its text was computed with; the answer takes it over
   */
  transcribed(id: string, text: string, isTurn: boolean, slot?: SlotHandover): void {
    const item = this.#history.find(id);
    if (item?.kind === 'message') item.parts = [{ kind: 'audio', text }];
    const endedAt = this.#untranscribed.get(id);
    this.#settleTranscript(id);
    if (isTurn && text !== '') this.#answerUtterance(endedAt, slot);
    else this.#answerDueOrWait();
  }

  /** An utterance has no text. Where it is to be answered, the answer fails for the same reason. */
  transcriptionFailed(id: string, isTurn: boolean, error: unknown): void {
    this.#settleTranscript(id);
    if (isTurn && this.#settings.answersUtterances && this.#inConversation() === undefined)
      void this.#run(this.#requestFor({}), { error });
    else this.#answerDueOrWait();
  }

  /**
   * Begins a response that a client asks for.
   * @throws GatewayError `conversation_already_has_active_response`, and for an input that the model could not read
   *   `item_retrieve_invalid_item_id` or `invalid_tool_call_id`
   */
  respond(asked: Asked): void {
    const { limits } = this.#options;
    const request = this.#requestFor(asked);
    const input = asked.input?.map((item) => ('reference' in item ? this.find(item.reference) : item));
    for (const item of input ?? [])
      if (item.kind === 'result' && !hasCall(input ?? [], item.callId)) throw unknownCall(item);
    const active = request.isInConversation ? this.#inConversation() : undefined;
    if (active !== undefined || this.#active.size >= limits.responses)
      throw new GatewayError('conversation_already_has_active_response', {
        id: (active ?? [...this.#active.values()][0])?.request.id ?? '',
      });
    void this.#run(request, { input });
  }

  /**
   * Ends a response, the one of the conversation where `id` is absent.
   * @throws GatewayError `response_cancel_not_active`
   */
  cancel(id?: string | null): void {
    const active = id ? this.#active.get(id) : this.#inConversation();
    if (active === undefined) throw new GatewayError('response_cancel_not_active', {});
    active.stop.abort(new Cancelled('client_cancelled'));
  }

  /** Resolves when every response that goes on has ended. */
  async settled(): Promise<void> {
    while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ ended }) => ended));
  }

  /** Begins to count the silence, from the time when the last answer has been heard. */
  #waitForSpeech(): void {
    const { idleMs } = this.#settings;
    clearTimeout(this.#idleTimer);
    if (idleMs === null || this.#hasPrompted) return;
    const leftMs = [...this.#playbacks.values()].at(-1)?.leftMs ?? 0;
    this.#idleTimer = setTimeout(() => this.#promptSpeaker(), leftMs + idleMs).unref();
  }

  #promptSpeaker(): void {
    const { signal, newId, onIdle } = this.#options;
    if (signal.aborted || this.#settings.idleMs === null || !this.#isQuiet()) return;
    this.#hasPrompted = true;
    const id = newId('item');
    onIdle(id, this.#history.add(saidBy(id, SILENCE)));
    void this.#run(this.#requestFor({}));
  }

  #inConversation(): Active | undefined {
    return [...this.#active.values()].find(({ request }) => request.isInConversation);
  }

  #answerUtterance(speechEndedAt?: number, slot?: SlotHandover): void {
    const { answersUtterances, isInterruptible } = this.#settings;
    this.#due = null;
    if (!answersUtterances) return;
    // Who has gone on speaking would interrupt the answer had it begun before, and gets one answer to all of it.
    const goesOn = (this.#isSpeaking && isInterruptible) || this.#untranscribed.size > 0;
    if (goesOn || this.#inConversation() !== undefined) this.#due = { speechEndedAt };
    else void this.#run(this.#requestFor({}), { hold: slot?.takeOver() ?? null, speechEndedAt });
  }

  #requestFor({ input: _, metadata = null, isInConversation = true, ...asked }: Asked): ResponseRequest {
    return { ...this.#settings, ...asked, id: this.#options.newId('resp'), metadata, isInConversation };
  }

  async #run(request: ResponseRequest, start: Start = {}): Promise<void> {
    const { emit, onOutcome, signal } = this.#options;
    const stop = new AbortController();
    const decoder = liveDecoder(request.format);
    using _leaving = onAbort(signal, () => stop.abort(signal.reason));
    const ran = runResponse({
      ...this.#options,
      request,
      hold: start.hold ?? null,
      speechEndedAt: start.speechEndedAt,
      items: (stopped) => this.#itemsFor(request, start, stopped),
      add: (item) => this.#history.add(item),
      onPlayback: (id, playback) => this.#remember(id, playback),
      emit: (event) => {
        if (event.type === 'audio' && !stop.signal.aborted) this.#echo.play(decoder.take(event.audio));
        return emit(request, event);
      },
      signal: stop.signal,
    });
    if (request.isInConversation) clearTimeout(this.#idleTimer);
    const active = { request, stop, ended: ran };
    this.#active.set(request.id, active);
    const outcome = await ran;
    this.#active.delete(request.id);
    this.#keepHeard(outcome);
    if (outcome.status === 'cancelled') this.#echo.stop();
    onOutcome(request, outcome);
    if (!request.isInConversation) return;
    if (['completed', 'incomplete'].includes(outcome.status)) this.#answerDueOrWait();
    else this.#answerDue();
  }

  #answerDueOrWait(): void {
    if (!this.#answerDue()) this.#waitForSpeech();
  }

  /** Answers what is due once it is quiet. False where nothing was answered. */
  #answerDue(): boolean {
    if (this.#due === null || !this.#isQuiet()) return false;
    this.#answerUtterance(this.#due.speechEndedAt);
    return true;
  }

  /** Whether neither side speaks, and everything that was said has its text. */
  #isQuiet(): boolean {
    return !this.#isSpeaking && this.#untranscribed.size === 0 && this.#inConversation() === undefined;
  }

  /** The items to send to the chat daemon. Resolves once every utterance has its text. */
  async #itemsFor(
    { isInConversation }: ResponseRequest,
    { input, error, hold }: Start,
    signal: AbortSignal,
  ): Promise<readonly Item[]> {
    if (error !== undefined) throw error;
    signal.throwIfAborted();
    // Who has the slot already does not wait for a text that needs it.
    if (!hold) for (const id of [...this.#untranscribed.keys()]) await this.#textKnown(id, signal);
    if (input !== undefined) return input;
    if (isInConversation) this.#due = null; // it reads what was to be answered
    this.#history.requireRoom();
    this.#history.forgetOldest();
    return this.#history.items.filter(({ status }) => status !== 'in_progress');
  }

  #remember(id: string, playback: Playback): void {
    this.#playbacks.set(id, playback);
    const [oldest] = this.#playbacks.keys();
    if (this.#playbacks.size > this.#options.limits.playbacks && oldest !== undefined)
      this.#playbacks.delete(oldest);
  }

  /** Cuts the text of an answer that was interrupted, or truncated while it went on, to what its listener has heard. */
  #keepHeard({ items, status }: ResponseOutcome): void {
    for (const item of items) {
      const playback = this.#playbacks.get(item.id);
      if (item.kind !== 'message' || playback === undefined) continue;
      if (status === 'cancelled' || playback.isTold)
        item.parts = [{ kind: 'audio', text: playback.textUntil(playback.heardMs) }];
    }
  }

  /** @throws the reason of the signal, when it aborts first */
  async #textKnown(id: string, signal: AbortSignal): Promise<void> {
    while (this.#untranscribed.has(id))
      await once(this.#texts, 'known', { signal }).catch(() => signal.throwIfAborted());
  }

  #settleTranscript(id: string): void {
    this.#untranscribed.delete(id);
    this.#texts.emit('known');
  }
}

const unknownCall = ({ callId }: ToolResult) =>
  new GatewayError('invalid_tool_call_id', { id: excerpt(callId) });
