/**
 * One live session over one WebSocket. The messages of the client are handled one after the other, and no more are read
 * while one takes its time, so that a client which sends faster than its speech can be heard is slowed down. A failure
 * is an event, and the session goes on if it can.
 */
import type { Socket } from 'node:net';
import type { Logger } from 'winston';
import type { WebSocket } from 'ws';
import { onAbort } from '../../abort.ts';
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { liveDecoder } from '../../audio/live/encodings.ts';
import type { ResponseDeps } from '../../conversation/response.ts';
import { GatewayError, invalidValue } from '../../errors.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { MessageSize } from '../../limits/large-messages.ts';
import type { LiveSession, LiveStatus } from '../../limits/live-places.ts';
import { type LiveDeps, type LiveEvent, openLiveSession } from '../../transcription/live/live-session.ts';
import { type ClientEvent, receivedEvent, unknownEvent } from './client-events.ts';
import { ConversationSession, type ConversationSessionOptions } from './conversation-session.ts';
import { type ConversationState, firstConversation, updatedConversation } from './conversation-settings.ts';
import { errorEvent, newId, type ServerEvent, toServerEvents } from './server-events.ts';
import {
  asServed,
  audioFormat,
  firstHeard,
  type LiveServing,
  requireServed,
  type SessionState,
  toLiveSettings,
  updated,
} from './session-settings.ts';
import { SessionStatus } from './session-status.ts';
import { shownSession } from './shown-session.ts';
import { watchSocket } from './socket-watch.ts';

export interface ConnectionOptions {
  socket: WebSocket;
  /** The connection below it. */
  link: Socket;
  /** What the session begins with. */
  first: SessionState;
  /** As which conversation it begins; null for one that only transcribes. */
  conversation: ConversationState | null;
  /** The upstreams of conversations, and what they may take. */
  answers: Omit<ResponseDeps, 'network' | 'newId'>;
  /** True for a client that says it speaks the beta of the protocol. */
  beta: boolean;
  live: Omit<LiveDeps, 'emit' | 'newId' | 'limits'> & LiveServing;
  limits: Budgets['live'];
  /** Aborts when the gateway may wait no longer. */
  shutdown: AbortSignal;
  /** Resolves when this client may use the event loop (`EventLoopShare`). */
  slice(): Promise<void>;
  /** The message that the client is sending. */
  message: MessageSize;
  log: Logger;
  requestId: string;
  /** Called with the outcome of each response of a conversation. */
  onOutcome: ConversationSessionOptions['onOutcome'];
  /** Called with each utterance that has its text or has failed. */
  onUtterance(event: LiveEvent & { type: 'completed' | 'failed' }): void;
}

/** The bytes of a message that are decoded at a time: at most one second of audio. */
const PIECE_BYTES = 8000;

/** The header of a ping or a pong of a client, with its mask (RFC 6455, section 5.2). */
const CONTROL_HEADER_BYTES = 6;

/** Close codes of RFC 6455, section 7.4.1, and of the registry of IANA. */
const CLOSE = { goingAway: 1001, policy: 1008, internal: 1011, tryAgainLater: 1013 };

export class RealtimeConnection implements LiveSession {
  readonly protocol = 'realtime';
  readonly network: string;
  readonly closed: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #session: { id: string; expiresAt: number };
  readonly #gone = new AbortController();
  readonly #status = new SessionStatus();
  readonly #watch: ReturnType<typeof watchSocket>;
  #state: SessionState;
  /** The part of the state that is supported; the client gets a warning about the rest. */
  #served: ReturnType<typeof asServed>;
  #decoder: ReturnType<typeof liveDecoder>;
  #beta: boolean;
  #handled: Promise<void> = Promise.resolve();
  #stopping = false;
  /** The audio that the client has sent. */
  #audioMs = 0;
  /** Whether the client had asked for log probabilities when an utterance ended, by its id, until it has its text. */
  readonly #withLogprobs = new Map<string, boolean>();
  #live: ReturnType<typeof openLiveSession> | null = null;
  /** Null in a session that only transcribes. */
  #conversation: ConversationSession | null = null;

  constructor(options: ConnectionOptions) {
    const { socket, limits, first, slice, message: size } = options;
    this.#options = options;
    this.network = options.live.network;
    this.#session = { id: newId('sess'), expiresAt: Math.floor((Date.now() + limits.sessionMs) / 1000) };
    this.#state = first;
    this.#served = asServed(toLiveSettings(first, options.live.transcription.aliases), options.live);
    this.#decoder = liveDecoder(audioFormat(first.format));
    this.#beta = options.beta;
    if (options.conversation !== null) this.#conversation = this.#openConversation(options.conversation);
    this.#watch = watchSocket(socket, limits, {
      link: options.link,
      onLate: (why) => this.#end(CLOSE.policy, why),
    });
    socket.on('message', (data, isBinary) => {
      size.complete();
      this.#handled = this.#handled.then(async () => {
        await slice();
        if (!this.#stopping && !this.#gone.signal.aborted)
          await this.#take(isBinary ? null : (data as Buffer));
        size.handled();
      });
    });
    for (const sign of ['ping', 'pong'])
      socket.on(sign, (data: Buffer) => size.without(CONTROL_HEADER_BYTES + data.length));
    const expiry = setTimeout(() => {
      const hours = limits.sessionMs / 3_600_000;
      this.#endWithEvent(CLOSE.goingAway, new GatewayError('session_expired', { hours }));
    }, limits.sessionMs);
    this.closed = new Promise<void>((resolve) => {
      socket.once('close', (code) => {
        options.log.debug('live connection closed', { requestId: options.requestId, code });
        clearTimeout(expiry);
        stopped[Symbol.dispose]();
        if (!this.#gone.signal.aborted) this.#gone.abort(new GatewayError('client_left', {}));
        const over = this.#live?.then((open) => open[Symbol.asyncDispose]()) ?? Promise.resolve();
        over.catch(() => undefined).finally(resolve);
      });
    });
    for (const [below, what] of [
      [socket, 'live session broken'], // a violation of the protocol, and its code is on its way
      [options.link, 'live connection broken'],
    ] as const)
      below.once('error', ({ message }: Error) =>
        options.log.info(what, { requestId: options.requestId, reason: message }),
      );
    this.#sendSession('created');
    const stopped = onAbort(options.shutdown, () => this.#stopNow());
  }

  /** Settles when every message that was read so far is handled. No more is read before that. */
  get handled(): Promise<void> {
    return this.#handled;
  }

  /** How long the client has sent no audio. */
  idleMs(): number {
    return this.#watch.idleMs();
  }

  status(): LiveStatus {
    return this.#status.now(this.#conversation);
  }

  giveUp(why: GatewayError): void {
    this.#endWithEvent(CLOSE.tryAgainLater, why);
  }

  /** Reads no more, finishes the utterances that have ended, and closes with 1001. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#handled;
    await (await this.#live?.catch(() => null))?.settled();
    await this.#conversation?.settled();
    this.#stopNow();
    await this.closed;
  }

  /** @param message null for a binary one */
  async #take(message: Buffer | null): Promise<void> {
    const { limits, log, requestId, slice } = this.#options;
    let eventId: string | null = null;
    try {
      if (message === null) throw unknownEvent('a binary message');
      const event = receivedEvent(message, limits);
      eventId = event.id;
      await this.#handle(await event.read(slice));
    } catch (thrown) {
      if (this.#gone.signal.aborted) return;
      const error = toGatewayError(thrown);
      this.#status.failed(error);
      this.#send(errorEvent(error, eventId));
      if (error.status < 500) return;
      // Without its voice activity model the session cannot go on.
      log.error('live session failed', { requestId, cause: String(error.cause ?? error.message) });
      this.#end(CLOSE.internal, error);
    }
  }

  async #handle(event: ClientEvent): Promise<void> {
    switch (event.type) {
      case 'update':
        return await this.#update(event);
      case 'append':
        return await this.#append(event.audio);
      case 'commit': {
        const open = await this.#opened();
        await open.append(this.#decoder.end());
        return open.commit();
      }
      case 'clear':
        this.#decoder.end(); // it may hold half of a sample
        (await this.#live)?.clear();
        return this.#send({ type: 'input_audio_buffer.cleared' });
      case 'other': {
        const conversation = this.#conversation;
        if (conversation === null) throw unknownEvent(event.name);
        return await this.#watch.whileProcessing(() => conversation.handle(event));
      }
    }
  }

  #openConversation(first: ConversationState): ConversationSession {
    const { answers, live, onOutcome } = this.#options;
    return new ConversationSession({
      ...answers,
      network: live.network,
      first,
      heard: this.#state,
      isBeta: () => this.#beta,
      audioMs: () => this.#audioMs,
      send: (event) => this.#sendAndWait(event),
      onOutcome: (request, outcome) => {
        this.#status.answered(outcome);
        onOutcome(request, outcome);
      },
      signal: this.#gone.signal,
    });
  }

  /**
   * Whether the session is a conversation after this event.
   * @throws GatewayError `invalid_value` for a change once something was heard, or while an answer goes on
   */
  #becomesConversation({ kind }: ClientEvent & { type: 'update' }): boolean {
    const isConversation = this.#conversation !== null;
    if (kind === undefined || (kind === 'realtime') === isConversation) return isConversation;
    if (this.#live !== null || this.#conversation?.isResponding)
      throw invalidValue('session.type', kind, 'It cannot change any more', 'session.type');
    return !isConversation;
  }

  /** Changes nothing unless all of it can be. */
  async #update(event: ClientEvent & { type: 'update' }): Promise<void> {
    const { live } = this.#options;
    const conversation = this.#becomesConversation(event)
      ? updatedConversation(this.#conversation?.state ?? firstConversation(null), event)
      : null;
    const begins = conversation !== null && this.#conversation === null;
    const next = updated(begins ? firstHeard(this.#state) : this.#state, event.update);
    const settings = toLiveSettings(next, live.transcription.aliases);
    requireServed(settings, live, event); // an unknown model is refused now
    if (JSON.stringify(next.format) !== JSON.stringify(this.#state.format))
      this.#decoder = liveDecoder(audioFormat(next.format));
    this.#served = asServed(settings, live);
    this.#state = next;
    this.#beta ||= event.beta;
    if (conversation === null) this.#conversation = null;
    else if (begins) this.#conversation = this.#openConversation(conversation);
    else this.#conversation?.configure(conversation, next);
    (await this.#live)?.configure(this.#served.settings);
    this.#sendSession('updated');
  }

  /**
   * Samples take up to 8 times the bytes of the audio, and minutes of it would keep all others waiting. So a piece is
   * decoded at a time, all other work may run before the next, and a client that left ends it.
   */
  async #append(audio: Buffer): Promise<void> {
    for (let at = 0; at < audio.length; at += PIECE_BYTES) {
      if (at > 0) await this.#options.slice();
      this.#gone.signal.throwIfAborted();
      const samples = this.#decoder.take(audio.subarray(at, at + PIECE_BYTES));
      this.#audioMs += (samples.length / SAMPLE_RATE) * 1000;
      if (samples.length > 0)
        await this.#watch.whileProcessing(async () => (await this.#opened()).append(samples));
    }
  }

  /** The domain's session begins with the first audio, because its weights may have to be fetched. */
  #opened() {
    const { live, limits } = this.#options;
    const emit = (event: LiveEvent) => this.#emit(event);
    const isAnswered = () => this.#conversation?.isAnswering ?? false;
    const loadVoiceActivity = async (signal: AbortSignal) => {
      const model = await live.loadVoiceActivity(signal);
      return this.#conversation?.withoutEcho(model) ?? model;
    };
    const deps = { ...live, loadVoiceActivity, limits, newId: () => newId('item'), emit, isAnswered };
    this.#live ??= openLiveSession(this.#served.settings, deps, this.#gone.signal);
    return this.#live;
  }

  #emit(event: LiveEvent): void {
    this.#status.heard(event);
    const isOver = event.type === 'completed' || event.type === 'failed';
    const asked = this.#served.settings.request.logprobs;
    if (isOver) this.#options.onUtterance(event);
    if (event.type === 'committed') this.#withLogprobs.set(event.id, asked);
    const logprobs = this.#withLogprobs.get(event.id) ?? asked;
    if (isOver) this.#withLogprobs.delete(event.id);
    const told = this.#conversation?.withPrevious(event) ?? event;
    const isShown = this.#conversation === null || this.#state.transcription !== null || !isText(event);
    if (isShown) for (const shown of toServerEvents(told, { beta: this.#beta, logprobs })) this.#send(shown);
    this.#conversation?.follow(event);
  }

  #send(event: ServerEvent): void {
    void this.#sendAndWait(event);
  }

  /** Resolves when the client has room for more, or is gone. */
  async #sendAndWait(event: ServerEvent): Promise<void> {
    await this.#watch.send(JSON.stringify({ event_id: newId('event'), ...event }));
  }

  #sendSession(what: 'created' | 'updated'): void {
    const beta = this.#beta;
    const conversation = this.#conversation?.state ?? null;
    const session = shownSession(this.#state, conversation, {
      ...this.#session,
      warnings: this.#served.warnings,
      aliases: this.#options.live.transcription.aliases,
      beta,
    });
    const kind = beta && conversation === null ? 'transcription_session' : 'session';
    this.#send({ type: `${kind}.${what}`, session });
  }

  /** Ends the session, and says why in an event. */
  #endWithEvent(code: number, why: GatewayError): void {
    this.#send(errorEvent(why, null));
    this.#end(code, why);
  }

  #end(code: number, why: GatewayError): void {
    const { log, requestId } = this.#options;
    if (this.#gone.signal.aborted) return;
    log.info('live session ended', { requestId, code, reason: why.message });
    this.#gone.abort(why);
    this.#watch.close(code, why.message);
  }

  #stopNow(): void {
    this.#end(CLOSE.goingAway, new GatewayError('shutting_down', {}));
  }
}

/** True for what a conversation tells of an utterance only where its client asked for the text. */
const isText = ({ type }: LiveEvent) =>
  ['delta', 'segment', 'unlabeled', 'completed', 'failed'].includes(type);
