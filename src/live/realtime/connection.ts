/**
 * One live session over one WebSocket. The messages of the client are handled one after the other, and no more are read
 * while one takes its time, so that a client which sends faster than its speech can be heard is slowed down. A failure
 * is an event, and the session goes on if it can.
 */
import type { Logger } from 'winston';
import type { WebSocket } from 'ws';
import { onAbort } from '../../abort.ts';
import { liveDecoder } from '../../audio/live/encodings.ts';
import { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { type LiveDeps, type LiveEvent, openLiveSession } from '../../transcription/live/live-session.ts';
import { BadEvent, type ClientEvent, readClientEvent } from './client-events.ts';
import { errorEvent, newId, type ServerEvent, toServerEvents } from './server-events.ts';
import {
  asServed,
  type LiveServing,
  requireServed,
  type SessionState,
  shownBetaSession,
  shownSession,
  toLiveFormat,
  toLiveSettings,
  updated,
} from './session-settings.ts';
import { watchSocket } from './socket-watch.ts';

export interface ConnectionOptions {
  socket: WebSocket;
  /** What the session begins with. */
  first: SessionState;
  /** True for a client that says it speaks the beta of the protocol. */
  beta: boolean;
  live: Omit<LiveDeps, 'emit' | 'newId' | 'limits'> & LiveServing;
  limits: Budgets['live'];
  /** Aborts when the gateway may wait no longer. */
  shutdown: AbortSignal;
  /** Resolves in the next turn of this client (`LiveClient`). */
  turn(): Promise<void>;
  log: Logger;
  requestId: string;
  /** Called with each utterance that has its text or has failed. */
  onUtterance(event: LiveEvent & { type: 'completed' | 'failed' }): void;
}

export interface Connection {
  /** The time for which no audio of the client was heard. */
  idleMs(): number;
  /** Ends the session for another one. */
  giveUp(why: GatewayError): void;
  /** Reads no more, finishes the utterances that have ended, and closes with 1001. */
  stop(): Promise<void>;
  readonly closed: Promise<void>;
}

/** The bytes of a message that are decoded at a time: at most one second of audio. */
const PIECE_BYTES = 8000;

/** Close codes of RFC 6455, section 7.4.1, and of the registry of IANA. */
const CLOSE = { goingAway: 1001, policy: 1008, internal: 1011, tryAgainLater: 1013 };

export function runConnection(options: ConnectionOptions): Connection {
  const { socket, limits, log, requestId, shutdown, turn } = options;
  const session = { id: newId('sess'), expiresAt: Math.floor((Date.now() + limits.sessionMs) / 1000) };
  const gone = new AbortController();
  let state = options.first;
  let { settings, warnings } = asServed(toLiveSettings(state), options.live);
  let decoder = liveDecoder(toLiveFormat(state));
  let beta = options.beta;
  let stopping = false;
  /** Whether the client had asked for log probabilities when an utterance ended, by its id, until it has its text. */
  const withLogprobs = new Map<string, boolean>();
  let live: ReturnType<typeof openLiveSession> | null = null;

  const watch = watchSocket(socket, limits, (why) => end(CLOSE.policy, why));

  function send(event: ServerEvent): void {
    watch.send(JSON.stringify({ event_id: newId('event'), ...event }));
  }

  function emit(event: LiveEvent): void {
    if (event.type === 'completed' || event.type === 'failed') options.onUtterance(event);
    if (event.type === 'committed') withLogprobs.set(event.id, settings.request.logprobs);
    const logprobs = withLogprobs.get(event.id) ?? settings.request.logprobs;
    if (event.type === 'completed' || event.type === 'failed') withLogprobs.delete(event.id);
    for (const shown of toServerEvents(event, { beta, logprobs })) send(shown);
  }

  /** The domain's session begins with the first audio, because its weights may have to be fetched. */
  function opened() {
    const deps = { ...options.live, limits, newId: () => newId('item'), emit };
    live ??= openLiveSession(settings, deps, gone.signal);
    return live;
  }

  function sendSession(what: 'created' | 'updated'): void {
    if (beta)
      send({
        type: `transcription_session.${what}`,
        session: shownBetaSession(state, { ...session, warnings }),
      });
    else send({ type: `session.${what}`, session: shownSession(state, { ...session, warnings }) });
  }

  async function handle(event: ClientEvent): Promise<void> {
    switch (event.type) {
      case 'update': {
        const next = updated(state, event.update);
        const nextSettings = toLiveSettings(next);
        requireServed(nextSettings, options.live, event); // an unknown model is refused now
        if (JSON.stringify(next.format) !== JSON.stringify(state.format))
          decoder = liveDecoder(toLiveFormat(next));
        ({ settings, warnings } = asServed(nextSettings, options.live));
        [state, beta] = [next, beta || event.beta];
        (await live)?.configure(settings);
        return sendSession('updated');
      }
      case 'append':
        // Samples take up to 8 times the bytes of the audio, and minutes of it would keep all others waiting. So a
        // piece is decoded at a time, all other work has its turn before the next, and a client that left ends it.
        for (let at = 0; at < event.audio.length; at += PIECE_BYTES) {
          if (at > 0) await turn();
          gone.signal.throwIfAborted();
          const samples = decoder.take(event.audio.subarray(at, at + PIECE_BYTES));
          if (samples.length > 0) await watch.hear(async () => (await opened()).append(samples));
        }
        return;
      case 'commit': {
        const open = await opened();
        await open.append(decoder.end());
        return open.commit();
      }
      case 'clear':
        decoder.end(); // it may hold half of a sample
        (await live)?.clear();
        return send({ type: 'input_audio_buffer.cleared' });
    }
  }

  /** @param message null for a binary one */
  async function take(message: Buffer | null): Promise<void> {
    let eventId: string | null = null;
    try {
      if (message === null) throw new GatewayError('unknown_event', { event: 'a binary message' });
      const event = await readClientEvent(message, limits, turn);
      eventId = event.eventId;
      await handle(event);
    } catch (thrown) {
      if (gone.signal.aborted) return;
      const error = toGatewayError(thrown instanceof BadEvent ? thrown.error : thrown);
      send(errorEvent(error, thrown instanceof BadEvent ? thrown.eventId : eventId));
      if (error.status < 500) return;
      // Without its voice activity model the session cannot go on.
      log.error('live session failed', { requestId, cause: String(error.cause ?? error.message) });
      end(CLOSE.internal, error);
    }
  }

  function end(code: number, why: GatewayError): void {
    if (gone.signal.aborted) return;
    gone.abort(why);
    watch.close(code, why.message);
  }

  /** Ends the session, and says why in an event. */
  function endWithEvent(code: number, why: GatewayError): void {
    send(errorEvent(why, null));
    end(code, why);
  }

  const inbox = createInbox(socket, async (message) => {
    await turn();
    if (!stopping && !gone.signal.aborted) await take(message);
  });
  socket.on('message', (data, isBinary) => inbox.push(isBinary ? null : (data as Buffer)));
  const stopNow = () => end(CLOSE.goingAway, new GatewayError('shutting_down', {}));
  const expiry = setTimeout(() => {
    const hours = limits.sessionMs / 3_600_000;
    endWithEvent(CLOSE.goingAway, new GatewayError('session_expired', { hours }));
  }, limits.sessionMs);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      clearTimeout(expiry);
      stopped[Symbol.dispose]();
      if (!gone.signal.aborted) gone.abort(new GatewayError('client_left', {}));
      const over = live?.then((open) => open[Symbol.asyncDispose]()) ?? Promise.resolve();
      over.catch(() => undefined).finally(resolve);
    });
  });
  sendSession('created');
  const stopped = onAbort(shutdown, stopNow);

  return {
    idleMs: watch.idleMs,
    giveUp(why) {
      log.info('live session gave way', { requestId });
      endWithEvent(CLOSE.tryAgainLater, why);
    },
    closed,
    async stop() {
      stopping = true;
      await inbox.idle();
      await (await live?.catch(() => null))?.settled();
      stopNow();
      await closed;
    },
  };
}

/** Handles one message after the other. While one is handled, at most what came in the same piece as it waits. */
function createInbox(socket: WebSocket, take: (message: Buffer | null) => Promise<void>) {
  const waiting: (Buffer | null)[] = [];
  let running: Promise<void> = Promise.resolve();
  let isRunning = false;
  async function run(): Promise<void> {
    isRunning = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await take(next);
    isRunning = false;
    if (socket.isPaused) socket.resume();
  }
  return {
    push(message: Buffer | null) {
      waiting.push(message);
      if (!isRunning) running = run();
      else if (!socket.isPaused) socket.pause();
    },
    idle: () => running,
  };
}
