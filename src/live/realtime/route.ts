/**
 * GET /v1/realtime: a live session over a WebSocket, by OpenAI's protocol for transcription. The request has passed the
 * checks of every other request when it comes here, so a refusal is an ordinary answer with the envelope.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import { type WebSocket, WebSocketServer } from 'ws';
import { GatewayError } from '../../errors.ts';
import { settingsOfSecret } from '../../http/access/api-key.ts';
import { notesOf } from '../../http/observe.ts';
import type { GracefulStop } from '../../http/server/graceful-stop.ts';
import { httpRefusal } from '../../http/server/refusals.ts';
import { type OfferedUpgrade, offeredUpgrade } from '../../http/server/upgrade.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { EventLoopShare, EventLoopShares } from '../../limits/event-loop-shares.ts';
import { createLargeMessages, type MessageSize } from '../../limits/large-messages.ts';
import { type LivePlaces, type LiveSession, tooManySessions } from '../../limits/live-places.ts';
import { networkOf } from '../../limits/network.ts';
import type { Exchange } from '../../observability/exchange.ts';
import { utteranceExchange } from '../utterance-exchange.ts';
import { type Connection, type ConnectionOptions, runConnection } from './connection.ts';
import { pacedSocket } from './paced-socket.ts';
import { requireServed, type SessionState, startingState, toLiveSettings } from './session-settings.ts';

export interface RealtimeDeps extends Pick<ConnectionOptions, 'shutdown' | 'log'> {
  live: Omit<ConnectionOptions['live'], 'network'>;
  limits: Budgets['live'];
  /** Those of the sessions of all protocols together. */
  places: LivePlaces;
  eventLoop: EventLoopShares;
  gracefulStop: GracefulStop;
  /** Called with the record of each utterance. */
  onExchange(exchange: Exchange): void;
  log: Logger;
}

export interface Realtime {
  handler: RequestHandler;
  /** Lets every session finish what was said, and closes it. */
  stop(): Promise<void>;
}

const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** The subprotocols, of which a browser must be told one that it has named. */
const SUBPROTOCOL = 'realtime';

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** True for the names of different subprotocols, or none (RFC 6455, section 4.1). */
function areSubprotocols(header: string | undefined): boolean {
  if (header === undefined) return true;
  const names = header.split(',').map((name) => name.trim());
  const isList = /^[\t -~]+$/.test(header) && names.every((name) => TOKEN.test(name));
  return isList && new Set(names).size === names.length;
}

/** A page can send no headers of its own, so the beta's clients name a subprotocol there. */
const asksForBeta = (req: Request) =>
  /realtime=v1/.test(req.get('OpenAI-Beta') ?? '') ||
  /(?:^|,)\s*openai-beta\.realtime-v1\s*(?:,|$)/.test(req.get('Sec-WebSocket-Protocol') ?? '');

const NOTHING = Buffer.alloc(0);

/**
 * What the session begins with: the settings of its client secret, or those of its address.
 * @throws GatewayError where that cannot be served
 */
function firstState(req: Request, res: Response, live: RealtimeDeps['live']): SessionState {
  const model = typeof req.query.model === 'string' ? req.query.model : undefined;
  const first = startingState(model, settingsOfSecret(res));
  notesOf(res).model = first.transcription?.model ?? undefined;
  requireServed(toLiveSettings(first, live.transcription.aliases), live, { beta: asksForBeta(req) });
  return first;
}

export function createRealtime(deps: RealtimeDeps): Realtime {
  const open = new Set<Connection>();
  const largeMessages = createLargeMessages(deps.limits);
  const accept = new WebSocketServer({
    noServer: true,
    maxPayload: deps.limits.messageBytes,
    perMessageDeflate: false,
    autoPong: false,
    handleProtocols: (names) => (names.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  });

  function run(
    socket: WebSocket,
    req: Request,
    res: Response,
    first: SessionState,
    share: EventLoopShare,
    message: MessageSize,
  ): Connection {
    const { requestId } = notesOf(res);
    const client = clientOf(req);
    const network = networkOf(req.ip ?? '');
    const connection = runConnection({
      socket,
      first,
      requestId,
      slice: share.slice,
      message,
      live: { ...deps.live, network },
      limits: deps.limits,
      shutdown: deps.shutdown,
      log: deps.log,
      beta: asksForBeta(req),
      onUtterance: (event) => deps.onExchange(utteranceExchange(event, client)),
    });
    open.add(connection);
    const session = sessionOf(connection, network);
    deps.places.take(session);
    deps.log.info('live session', { requestId, sessions: open.size });
    void connection.closed.then(() => {
      open.delete(connection);
      deps.places.release(session);
      share.leave();
      message.leave();
      // The response has no connection any more; this is its end for all who watch it.
      res.emit('close');
    });
    return connection;
  }

  const handler: RequestHandler = (req, res) => {
    deps.gracefulStop.assertServing();
    const offer = offerOf(req, res);
    const first = firstState(req, res, deps.live);
    const network = networkOf(req.ip ?? '');
    if (!deps.places.makeRoom({ network })) throw tooManySessions();
    detach(res, offer);
    const share = deps.eventLoop.join(network);
    let connection: Connection | undefined;
    const message = largeMessages.join(network, (why) => connection?.giveUp(why));
    const paced = pacedSocket(offer.socket, deps.limits, async (bytes) => {
      await message.grow(bytes);
      await share.slice();
    });
    accept.handleUpgrade(req, paced, NOTHING, (ws) => {
      connection = run(ws, req, res, first, share, message);
    });
  };

  return {
    handler,
    async stop() {
      await Promise.all([...open].map((connection) => connection.stop()));
    },
  };
}

/** What the places know of a connection. */
const sessionOf = (connection: Connection, network: string): LiveSession => ({
  protocol: 'realtime',
  network,
  idleMs: () => connection.idleMs(),
  giveUp: (why) => connection.giveUp(why),
});

/** The connection for the WebSocket. @throws GatewayError where the request asks for none, or wrongly */
function offerOf(req: Request, res: Response): OfferedUpgrade {
  const offer = offeredUpgrade(req);
  if (offer === undefined) {
    res.setHeader('Upgrade', 'websocket');
    throw new GatewayError('upgrade_required', {});
  }
  if (!isHandshake(req)) throw httpRefusal(400);
  return offer;
}

/** Takes the connection away from the response, which has ended for all who watch it. */
function detach(res: Response, { socket, head }: OfferedUpgrade): void {
  res.status(101);
  res.detachSocket(socket);
  res.emit('finish');
  socket.setNoDelay(true); // the events are small, and each is waited for
  socket.unshift(head); // the WebSocket would read all of it at once
}

/** Whether the request has what RFC 6455, section 4.2.1, asks of a client. */
function isHandshake(req: Request): boolean {
  return (
    KEY.test(req.get('Sec-WebSocket-Key') ?? '') &&
    req.get('Sec-WebSocket-Version') === '13' &&
    areSubprotocols(req.get('Sec-WebSocket-Protocol'))
  );
}

/** What the record of an utterance says of its client. */
function clientOf(req: Request) {
  return {
    method: req.method,
    path: '/v1/realtime',
    bytesIn: 0,
    clientIp: req.ip,
    userAgent: req.get('User-Agent'),
  };
}
