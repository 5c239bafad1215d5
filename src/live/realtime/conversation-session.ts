/** The conversation part of a session: the client's requests, and the events sent to it. */
import { z } from 'zod';
import {
  Conversation,
  type ConversationOptions,
  type ConversationSettings,
} from '../../conversation/conversation.ts';
import type { ResponseEvent, ResponseOutcome, ResponseRequest } from '../../conversation/response.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';
import type { LiveEvent } from '../../transcription/live/live-session.ts';
import { fullText } from '../../wire/formats.ts';
import { checked } from '../checked.ts';
import { type OtherEvent, unknownEvent } from './client-events.ts';
import { toResponseEvents } from './conversation-events.ts';
import {
  answerFor,
  type ConversationState,
  responseFields,
  toConversationSettings,
} from './conversation-settings.ts';
import { itemCreated, readItem, referenceSchema, shownItem } from './items.ts';
import { newId, type ServerEvent, toServerEvents } from './server-events.ts';
import type { SessionState } from './session-settings.ts';

export interface ConversationSessionOptions
  extends Omit<ConversationOptions, 'settings' | 'newId' | 'emit' | 'onIdle' | 'onOutcome'> {
  first: ConversationState;
  heard: SessionState;
  isBeta(): boolean;
  /** The audio that the client has sent, ms. */
  audioMs(): number;
  /** Resolves when the client has room for more. */
  send(event: ServerEvent): Promise<void>;
  onOutcome(request: ResponseRequest, outcome: ResponseOutcome): void;
}

const named = z.object({ item_id: z.string() });
const truncation = named.extend({
  content_index: z.int().min(0).nullish(),
  audio_end_ms: z.number().min(0),
});

export class ConversationSession {
  readonly #options: ConversationSessionOptions;
  readonly #conversation: Conversation;
  readonly #id = newId('conv');
  /** The utterances that ended with a pause. */
  readonly #turns = new Set<string>();
  #state: ConversationState;
  #settings: ConversationSettings;

  constructor(options: ConversationSessionOptions) {
    this.#options = options;
    this.#state = options.first;
    this.#settings = toConversationSettings(options.first, options.heard);
    this.#conversation = new Conversation({
      ...options,
      settings: this.#settings,
      newId,
      emit: (request, event) => this.#emit(request, event),
      onIdle: (id, previousId) => this.#sendIdle(id, previousId),
    });
  }

  get state(): ConversationState {
    return this.#state;
  }

  configure(next: ConversationState, heard: SessionState): void {
    this.#state = next;
    this.#settings = toConversationSettings(next, heard);
    this.#conversation.configure(this.#settings);
  }

  /** Whether a response goes on. */
  get isResponding(): boolean {
    return this.#conversation.isResponding;
  }

  /** Whether a turn that ends now is answered. */
  get isAnswering(): boolean {
    return this.#conversation.isAnswering;
  }

  withoutEcho(model: VoiceActivityModel): VoiceActivityModel {
    return this.#conversation.withoutEcho(model);
  }

  settled(): Promise<void> {
    return this.#conversation.settled();
  }

  /** @throws GatewayError `unknown_event` for what no conversation knows, and for what cannot be done */
  async handle({ name, fields }: OtherEvent): Promise<void> {
    const { send, isBeta } = this.#options;
    const conversation = this.#conversation;
    const beta = isBeta();
    const read = <T>(schema: z.ZodType<T>) => checked(schema, fields, []);
    switch (name) {
      case 'conversation.item.create': {
        const { previous_item_id: after } = read(z.object({ previous_item_id: z.string().nullish() }));
        const item = readItem(fields.item, newId);
        const previousId = conversation.add(item, after);
        for (const created of itemCreated(item, previousId, beta)) await send(created);
        return;
      }
      case 'conversation.item.retrieve': {
        const item = shownItem(conversation.find(read(named).item_id), { beta });
        return await send({ type: 'conversation.item.retrieved', item });
      }
      case 'conversation.item.delete': {
        const { item_id } = read(named);
        conversation.delete(item_id);
        return await send({ type: 'conversation.item.deleted', item_id });
      }
      case 'conversation.item.truncate': {
        const { item_id, content_index, audio_end_ms: ms } = read(truncation);
        const audio_end_ms = conversation.truncate(item_id, Math.round(ms));
        const told = { item_id, content_index: content_index ?? 0, audio_end_ms };
        return await send({ type: 'conversation.item.truncated', ...told });
      }
      case 'response.create':
        return this.#respond(fields.response ?? {});
      case 'response.cancel':
        return conversation.cancel(read(z.object({ response_id: z.string().nullish() })).response_id);
      default:
        throw unknownEvent(name);
    }
  }

  #respond(response: unknown): void {
    const sent = checked(responseFields, response, ['response']);
    const input = sent.input?.map((item, i) => {
      const reference = referenceSchema.safeParse(item);
      if (reference.success) return { reference: reference.data.id };
      return readItem(item, newId, ['response', 'input', String(i)]);
    });
    this.#conversation.respond({
      ...answerFor(this.#state, sent),
      metadata: sent.metadata ?? null,
      isInConversation: sent.conversation !== 'none',
      ...(input && { input }),
    });
  }

  /** The event for the client: its item follows those of the conversation. */
  withPrevious(event: LiveEvent): LiveEvent {
    if (event.type !== 'committed') return event;
    return { ...event, previousId: this.#conversation.committed(event.id) };
  }

  /** Does what follows from an event. The client got it before. */
  follow(event: LiveEvent): void {
    const { id } = event;
    const conversation = this.#conversation;
    if (event.type === 'started') conversation.speechStarted();
    if (event.type === 'dropped') conversation.speechDropped();
    if (event.type === 'stopped') this.#turns.add(id);
    if (event.type === 'completed') {
      const { segments, slot } = event.outcome;
      conversation.transcribed(id, fullText(segments).trim(), this.#turns.delete(id), slot);
    }
    if (event.type === 'failed') conversation.transcriptionFailed(id, this.#turns.delete(id), event.error);
  }

  #sendIdle(id: string, previousId: string | null): void {
    const { send, audioMs, isBeta } = this.#options;
    const endMs = Math.round(audioMs());
    const startMs = Math.max(0, endMs - (this.#settings.idleMs ?? 0));
    const times = { audio_start_ms: startMs, audio_end_ms: endMs };
    void send({ type: 'input_audio_buffer.timeout_triggered', ...times, item_id: id });
    const committed = { type: 'committed', id, previousId } as const;
    for (const shown of toServerEvents(committed, { beta: isBeta(), logprobs: false })) void send(shown);
  }

  async #emit(request: ResponseRequest, event: ResponseEvent): Promise<void> {
    const answering = { request, conversationId: this.#id, beta: this.#options.isBeta() };
    for (const shown of toResponseEvents(event, answering)) await this.#options.send(shown);
  }
}
