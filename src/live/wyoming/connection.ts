/**
 * One connection of a client. Its messages are handled one after the other. A failure is an `error` event, and then the
 * end of the connection: Home Assistant knows no such event and would wait for a transcript for as long as it is open.
 */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Logger } from 'winston';
import { onAbort } from '../../abort.ts';
import { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import { newRequestId } from '../../http/server/request-id.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { LivePlaces } from '../../limits/live-places.ts';
import type { LiveTurns } from '../../limits/live-turns.ts';
import { networkOf } from '../../limits/network.ts';
import type { Exchange } from '../../observability/exchange.ts';
import type { LiveDeps } from '../../transcription/live/live-session.ts';
import type { TranscriptionRequest } from '../../transcription/request.ts';
import { readAhead } from '../inbox.ts';
import { utteranceExchange } from '../utterance-exchange.ts';
import { createMessageReader, type Part, writeMessage } from './messages.ts';
import { parseFormat, parseTranscribe } from './requests.ts';
import { beginTranscription, type Transcription } from './transcription.ts';

export interface ConnectionDeps {
  live: Omit<LiveDeps, 'emit' | 'newId' | 'limits' | 'network'>;
  limits: Budgets['wyoming'] & Budgets['live'];
  /** The data of `info`. */
  info(): object;
  /** Those of the live sessions of all protocols together. */
  places: LivePlaces;
  turns: LiveTurns;
  /** Aborts when the gateway may wait no longer. */
  shutdown: AbortSignal;
  log: Logger;
  /** Called with the record of each transcription, and of each connection that ends for another fault of its client. */
  onExchange(exchange: Exchange): void;
}

export interface ConnectionOptions extends ConnectionDeps {
  socket: Socket;
  /** Called when a transcription begins; `work` emits `close` at its end. */
  onWork(work: EventEmitter): void;
}

export interface Connection {
  /** Lets audio that has ended become text, and closes. */
  stop(): Promise<void>;
  readonly closed: Promise<void>;
}

/** The longest time between two looks at a client that may have stalled. */
const LOOK_MS = 1000;

export function runConnection(options: ConnectionOptions): Connection {
  const { socket, limits, log, live, shutdown } = options;
  const { remoteAddress: clientIp } = socket;
  const network = networkOf(clientIp ?? '');
  const turns = options.turns.join(network);
  const gone = new AbortController();
  const inbox = readAhead(socket, limits);
  const reader = createMessageReader(limits);
  const openedAt = performance.now();
  /** When the client began what it has not finished yet; null when it has finished everything. */
  let begunAt: number | null = null;
  let request: TranscriptionRequest | null = null;
  let current: { transcription: Transcription; work: EventEmitter; leave(): void } | null = null;
  /** Settles when audio that has ended has its text or its failure; null before its end. */
  let ending: Promise<void> | null = null;
  let late: NodeJS.Timeout | undefined;
  /** Settles when everything that transcriptions held is free. */
  let released: Promise<void> = Promise.resolve();

  function send(type: string, data?: object): void {
    if (!socket.writable) return;
    socket.write(writeMessage(type, data));
    if (socket.writableLength > limits.unreadBytes) socket.destroy();
  }

  function clientOf(of: Transcription | null) {
    const path = of === null ? 'message' : 'transcribe';
    const bytesIn = of?.bytes ?? 0;
    return { method: 'WYOMING', path, model: request?.model, bytesIn, clientIp, userAgent: undefined };
  }

  function note(error: GatewayError): void {
    const failed = current?.transcription ?? null;
    const id = failed?.id ?? newRequestId();
    const { kind, code, message } = error;
    if (kind === 'internal') log.error('wyoming failed', { requestId: id, cause: String(error.cause) });
    else log.debug('wyoming ended', { requestId: id, code, reason: message });
    if (failed === null && kind !== 'malformed') return; // nothing was asked for
    const tookMs = failed === null ? 0 : performance.now() - (failed.endedAt ?? failed.startedAt);
    const event = { type: 'failed', id, audioSec: failed?.audioSec ?? 0, tookMs, error } as const;
    const { category, ...exchange } = utteranceExchange(event, clientOf(failed));
    options.onExchange(failed === null ? exchange : { ...exchange, category });
  }

  /** Ends the connection; only the first failure counts. */
  function fail(error: GatewayError): void {
    if (gone.signal.aborted) return;
    note(error);
    gone.abort(error);
    inbox.close();
    late = setTimeout(() => socket.destroy(), limits.closeMs);
    void release().finally(() => {
      send('error', { text: error.message, code: error.code });
      socket.end();
    });
  }

  function begin(): void {
    options.places.makeRoom(network);
    const work = new EventEmitter();
    const asked = request ?? parseTranscribe({});
    const transcription = beginTranscription({
      id: newRequestId(),
      request: asked,
      live: { ...live, network },
      limits,
      signal: gone.signal,
      send,
      turn: turns.turn,
    });
    request = null;
    const leave = options.places.enter({ network, idleMs: inbox.silentMs, giveUp: fail });
    current = { transcription, work, leave };
    options.onWork(work);
  }

  function release(): Promise<void> {
    const over = current;
    current = null;
    over?.leave();
    released = released.then(async () => {
      await over?.transcription[Symbol.asyncDispose]();
      over?.work.emit('close');
    });
    return released;
  }

  async function finish(transcription: Transcription): Promise<void> {
    const outcome = await transcription.end();
    if (outcome.type === 'failed') throw outcome.error;
    await release();
    options.onExchange(utteranceExchange(outcome, clientOf(transcription)));
    transcription.answer(outcome);
  }

  /** The transcription that this event belongs to. */
  function under(type: string): Transcription {
    if (current === null) throw unexpected(type, 'before audio-start');
    return current.transcription;
  }

  async function handle({ type, data, payload, isFirst }: Part): Promise<void> {
    if (type === 'audio-chunk') return await under(type).hear(payload, parseFormat(data));
    if (!isFirst) return;
    switch (type) {
      case 'describe':
        return send('info', options.info());
      case 'ping':
        return send('pong', typeof data.text === 'string' ? { text: data.text } : {});
      case 'transcribe':
        if (current !== null) throw unexpected(type, 'before audio-stop');
        request = parseTranscribe(data);
        live.transcription.route(request); // an unknown model is refused now
        return;
      case 'audio-start':
        if (current !== null) throw unexpected(type, 'before audio-stop');
        parseFormat(data);
        return begin();
      case 'audio-stop':
        ending = finish(under(type));
        await ending;
        ending = null;
      // The protocol wants all other events to be ignored.
    }
  }

  async function run(): Promise<void> {
    try {
      for await (const chunk of inbox.chunks()) {
        await turns.turn();
        for (const part of reader.push(chunk)) {
          gone.signal.throwIfAborted();
          if (current === null && part.isFirst) begunAt = performance.now();
          await handle(part);
          await turns.turn(); // a chunk may hold thousands of messages
        }
        if (current === null) begunAt = reader.isWithin ? (begunAt ?? performance.now()) : null;
      }
    } catch (thrown) {
      fail(toGatewayError(thrown));
    }
  }

  /** Looks for a client that stays away. What waits for the gateway is not its fault. */
  function look(): void {
    const silentMs = inbox.silentMs();
    const now = performance.now();
    if (silentMs === 0) return;
    const { stallMs, unfinishedMs, idleMs, sessionMs } = limits;
    if (begunAt === null) {
      if (silentMs > idleMs) fail(new GatewayError('session_idle', { seconds: idleMs / 1000 }));
      else if (now - openedAt > sessionMs)
        fail(new GatewayError('session_expired', { hours: sessionMs / 3_600_000 }));
    } else if (silentMs > stallMs)
      fail(new GatewayError('client_stalled', { what: `sent nothing for ${stallMs / 1000} s` }));
    else if (now - begunAt > unfinishedMs)
      fail(new GatewayError('client_stalled', { what: `did not finish within ${unfinishedMs / 1000} s` }));
  }

  socket.setNoDelay(true); // the events are small, and each is waited for
  socket.setKeepAlive(true, limits.pingMs); // a half-open connection ends
  socket.on('error', () => socket.destroy());
  const looking = setInterval(look, Math.min(LOOK_MS, limits.stallMs / 4, limits.idleMs / 4));
  const stopNow = () => fail(new GatewayError('shutting_down', {}));
  const running = run();
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      fail(new GatewayError('client_left', {}));
      clearTimeout(late);
      clearInterval(looking);
      turns.leave();
      stopped[Symbol.dispose]();
      void running.then(() => released).then(resolve);
    });
  });
  const stopped = onAbort(shutdown, stopNow);

  return {
    closed,
    async stop() {
      await ending?.catch(() => undefined);
      stopNow();
      await closed;
    },
  };
}

const unexpected = (event: string, when: string) => new GatewayError('unexpected_event', { event, when });
