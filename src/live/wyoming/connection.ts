/**
 * One connection of a client. Its messages are handled one after the other. A failure is an `error` event, and then the
 * end of the connection: Home Assistant knows no such event and would wait for a transcript for as long as it is open.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Logger } from 'winston';
import { onAbort } from '../../abort.ts';
import type { PcmFormat } from '../../audio/wav-header.ts';
import { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import { newRequestId } from '../../http/server/request-id.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { setDeadline } from '../../limits/deadline.ts';
import type { EventLoopShare, JoinEventLoop } from '../../limits/event-loop-shares.ts';
import { type LivePlaces, type LiveSession, tooManySessions } from '../../limits/live-places.ts';
import { networkOf } from '../../limits/network.ts';
import type { Exchange } from '../../observability/exchange.ts';
import type { LiveDeps } from '../../transcription/live/live-session.ts';
import type { TranscriptionRequest } from '../../transcription/request.ts';
import { utteranceExchange } from '../exchanges.ts';
import { type Inbox, readAhead } from '../inbox.ts';
import { createMessageReader, type MessageReader, type Part, unexpected, writeMessage } from './messages.ts';
import { parseFormat, parseTranscribe } from './requests.ts';
import { Speaker, type SpeechDeps, speechExchange } from './synthesis.ts';
import { Transcription } from './transcription.ts';

export interface ConnectionDeps {
  live: Omit<LiveDeps, 'emit' | 'newId' | 'limits' | 'network'>;
  limits: Budgets['wyoming'] & Budgets['live'];
  speech: SpeechDeps;
  /** The data of `info`. */
  info(): Promise<object>;
  /** Those of the live sessions of all protocols together. */
  places: LivePlaces;
  joinEventLoop: JoinEventLoop;
  /** Aborts when the gateway may wait no longer. */
  shutdown: AbortSignal;
  log: Logger;
  /** Called with the record of each transcription and speech, and of a connection that ends for another fault. */
  onExchange(exchange: Exchange): void;
}

export interface ConnectionOptions extends ConnectionDeps {
  socket: Socket;
  /** Called when a transcription or speech begins; the function that it returns is called at its end. */
  beginWork(): () => void;
}

/** The longest time between two checks of whether the client has stalled. */
const CHECK_MS = 1000;

/** A transcription that goes on. `leave` gives back the place of the session, and `end` is called when all is free. */
interface Current {
  transcription: Transcription;
  leave(): void;
  end(): void;
}

export class WyomingConnection {
  readonly closed: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #clientIp: string | undefined;
  readonly #network: string;
  readonly #share: EventLoopShare;
  readonly #gone = new AbortController();
  readonly #inbox: Inbox;
  readonly #reader: MessageReader;
  readonly #speaker: Speaker;
  readonly #openedAt = performance.now();
  /** When the client began what it has not finished yet; null when it has finished everything. */
  #begunAt: number | null = null;
  #request: TranscriptionRequest | null = null;
  #current: Current | null = null;
  /** Settles when audio that has ended has its text, or a text its audio, or either its failure; null before. */
  #ending: Promise<void> | null = null;
  #late: NodeJS.Timeout | undefined;
  /** The bytes that had come at the last check, and for how long none have come and none were being handled. */
  #received = 0;
  #silentMs = 0;
  /** Settles when everything that transcriptions held is free. */
  #released: Promise<void> = Promise.resolve();

  constructor(options: ConnectionOptions) {
    const { socket, limits, shutdown } = options;
    this.#options = options;
    this.#clientIp = socket.remoteAddress;
    this.#network = networkOf(socket.remoteAddress ?? '');
    this.#share = options.joinEventLoop(this.#network);
    this.#inbox = readAhead(socket, limits);
    this.#reader = createMessageReader(limits);
    this.#speaker = this.#createSpeaker();
    socket.setNoDelay(true); // the events are small, and each is waited for
    socket.setKeepAlive(true, limits.pingMs); // a half-open connection ends
    socket.on('error', () => socket.destroy());
    const checkMs = Math.min(CHECK_MS, limits.stallMs / 4, limits.idleMs / 4);
    const checks = setInterval(() => this.#checkStalled(checkMs), checkMs);
    const running = this.#run();
    this.closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        this.#fail(new GatewayError('client_left', {}));
        clearTimeout(this.#late);
        clearInterval(checks);
        this.#share.leave();
        stopped[Symbol.dispose]();
        void running.then(() => this.#released).then(resolve);
      });
    });
    const stopped = onAbort(shutdown, () => this.#stopNow());
  }

  /** Lets audio that has ended become text, and closes. */
  async stop(): Promise<void> {
    await this.#ending?.catch(() => undefined);
    this.#stopNow();
    await this.closed;
  }

  #stopNow(): void {
    this.#fail(new GatewayError('shutting_down', {}));
  }

  async #run(): Promise<void> {
    try {
      for await (const chunk of this.#inbox.chunks()) {
        await this.#share.slice();
        for (const part of this.#reader.push(chunk)) {
          this.#gone.signal.throwIfAborted();
          if (this.#current === null && part.isFirst) this.#begunAt = performance.now();
          await this.#handle(part);
          await this.#share.slice(); // a chunk may hold thousands of messages
        }
        if (this.#current === null)
          this.#begunAt = this.#reader.isWithin ? (this.#begunAt ?? performance.now()) : null;
      }
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
    }
  }

  async #handle({ type, data, payload, isFirst }: Part): Promise<void> {
    if (type === 'audio-chunk') return await this.#under(type).append(payload, parseFormat(data));
    if (!isFirst) return;
    if (type.startsWith('synthesize')) return await this.#speak(type, data);
    switch (type) {
      case 'describe':
        return this.#send('info', await this.#options.info());
      case 'ping':
        return this.#send('pong', typeof data.text === 'string' ? { text: data.text } : {});
      case 'transcribe':
        if (this.#current !== null) throw unexpected(type, 'before audio-stop');
        this.#request = parseTranscribe(data);
        this.#options.live.transcription.route(this.#request); // an unknown model is refused now
        return;
      case 'audio-start':
        if (this.#current !== null) throw unexpected(type, 'before audio-stop');
        if (this.#speaker.isWithinText) throw unexpected(type, 'before synthesize-stop');
        parseFormat(data);
        return this.#begin();
      case 'audio-stop':
        this.#ending = this.#finish(this.#under(type));
        await this.#ending;
        this.#ending = null;
      // The protocol wants all other events to be ignored.
    }
  }

  /** The transcription that this event belongs to. */
  #under(type: string): Transcription {
    if (this.#current === null) throw unexpected(type, 'before audio-start');
    return this.#current.transcription;
  }

  #createSpeaker(): Speaker {
    const { socket, speech, limits, beginWork, onExchange } = this.#options;
    return new Speaker({
      ...speech,
      limits,
      network: this.#network,
      signal: this.#gone.signal,
      send: (type, data) => this.#send(type, data),
      sendAudio: (format, samples) => this.#sendAudio(format, samples),
      hasRoom: () => !socket.writableNeedDrain,
      begin: beginWork,
      spoken: (of) => onExchange(speechExchange(of, this.#clientIp)),
    });
  }

  async #speak(type: string, data: Part['data']): Promise<void> {
    if (this.#current !== null) throw unexpected(type, 'before audio-stop');
    this.#ending = this.#speaker.handle(type, data);
    this.#released = Promise.allSettled([this.#released, this.#ending]).then(() => undefined);
    await this.#ending;
    this.#ending = null;
  }

  #begin(): void {
    const { places, live, limits, beginWork } = this.#options;
    const network = this.#network;
    if (!places.makeRoom({ network })) throw tooManySessions();
    const asked = this.#request ?? parseTranscribe({});
    const transcription = new Transcription({
      id: newRequestId(),
      request: asked,
      live: { ...live, network },
      limits,
      signal: this.#gone.signal,
      send: (type, data) => this.#send(type, data),
      slice: () => this.#share.slice(),
    });
    this.#request = null;
    const session: LiveSession = {
      protocol: 'wyoming',
      network,
      idleMs: () => this.#silentMs,
      // An error ends the connection, so that there is none to tell.
      status: () => ({
        kind: 'transcription',
        state: this.#ending === null ? 'hearing' : 'transcribing',
        lastError: null,
        lastAnswer: null,
      }),
      giveUp: (why) => this.#fail(why),
    };
    places.take(session);
    this.#current = { transcription, leave: () => places.release(session), end: beginWork() };
  }

  async #finish(transcription: Transcription): Promise<void> {
    const outcome = await transcription.end();
    if (outcome.type === 'failed') throw outcome.error;
    await this.#release();
    this.#options.onExchange(utteranceExchange(outcome, this.#clientOf(transcription)));
    transcription.answer(outcome);
  }

  #release(): Promise<void> {
    const over = this.#current;
    this.#current = null;
    over?.leave();
    this.#released = this.#released.then(async () => {
      await over?.transcription[Symbol.asyncDispose]();
      over?.end();
    });
    return this.#released;
  }

  #send(type: string, data?: object): void {
    const { socket, limits } = this.#options;
    if (!socket.writable) return;
    socket.write(writeMessage(type, data));
    if (socket.writableLength <= limits.unreadBytes) return;
    this.#fail(new GatewayError('client_stalled', { what: `left ${limits.unreadBytes / 1024} KiB unread` }));
  }

  /** Waits for the client to read, but not for longer than it may be silent. */
  async #sendAudio(format: PcmFormat, samples: Buffer): Promise<void> {
    const { socket, limits } = this.#options;
    const { signal } = this.#gone;
    signal.throwIfAborted();
    if (socket.write(writeMessage('audio-chunk', format, samples))) return;
    const stalled = new GatewayError('client_stalled', { what: 'read its audio too slowly' });
    const lift = setDeadline(limits.stallMs, () => this.#fail(stalled));
    await once(socket, 'drain', { signal }).finally(lift);
  }

  /** Ends the connection; only the first failure counts. */
  #fail(error: GatewayError): void {
    const { socket, limits } = this.#options;
    if (this.#gone.signal.aborted) return;
    this.#note(error);
    this.#gone.abort(error);
    this.#inbox.close();
    this.#late = setTimeout(() => socket.destroy(), limits.closeMs);
    void this.#release().finally(() => {
      this.#send('error', { text: error.message, code: error.code });
      socket.end();
    });
  }

  #note(error: GatewayError): void {
    const { log, onExchange } = this.#options;
    const failed = this.#current?.transcription ?? null;
    const speech = this.#speaker.current;
    const id = (failed ?? speech)?.id ?? newRequestId();
    const { kind, code, message } = error;
    if (kind === 'internal') log.error('wyoming failed', { requestId: id, cause: String(error.cause) });
    else
      log.log(code === 'client_left' ? 'debug' : 'info', 'wyoming ended', {
        requestId: id,
        code,
        reason: message,
      });
    if (speech !== null) {
      onExchange(speechExchange(speech, this.#clientIp, error));
      return;
    }
    if (failed === null && kind !== 'malformed') return; // no request to record: neither audio nor text had come
    const tookMs = failed === null ? 0 : performance.now() - (failed.endedAt ?? failed.startedAt);
    const event = { type: 'failed', id, audioSec: failed?.audioSec ?? 0, tookMs, error } as const;
    const { category, ...exchange } = utteranceExchange(event, this.#clientOf(failed));
    onExchange(failed === null ? exchange : { ...exchange, category });
  }

  #clientOf(of: Transcription | null) {
    return {
      method: 'WYOMING',
      path: of === null ? 'message' : 'transcribe',
      model: this.#request?.model,
      bytesIn: of?.bytes ?? 0,
      clientIp: this.#clientIp,
      userAgent: undefined,
    };
  }

  /**
   * Looks for a client that stays away. What waits for the gateway is not its fault, also where the gateway could not run
   * and has not read it yet: the time is that of the looks, not of the clock.
   */
  #checkStalled(checkMs: number): void {
    const { bytesRead } = this.#options.socket;
    const isEmpty = this.#inbox.isEmpty();
    this.#silentMs = isEmpty && bytesRead === this.#received ? this.#silentMs + checkMs : 0;
    this.#received = bytesRead;
    if (!isEmpty) return;
    const silentMs = this.#silentMs;
    const now = performance.now();
    const { stallMs, unfinishedMs, idleMs, sessionMs } = this.#options.limits;
    if (this.#begunAt === null) {
      if (silentMs > idleMs) this.#fail(new GatewayError('session_idle', { seconds: idleMs / 1000 }));
      else if (now - this.#openedAt > sessionMs)
        this.#fail(new GatewayError('session_expired', { hours: sessionMs / 3_600_000 }));
    } else if (silentMs > stallMs)
      this.#fail(new GatewayError('client_stalled', { what: `sent nothing for ${stallMs / 1000} s` }));
    else if (now - this.#begunAt > unfinishedMs)
      this.#fail(
        new GatewayError('client_stalled', { what: `did not finish within ${unfinishedMs / 1000} s` }),
      );
  }
}
