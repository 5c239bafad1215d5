/**
 * Joins Node's HTTP server, with its timeouts and the limit on connections, to the Express app. Both have answers of
 * their own for a missing Host, an unknown Expect, CONNECT and a target without a path. Here each of these becomes a
 * request like any other, with an id, a line in the access log and the envelope. The target of each request is read
 * here, once, before any handler sees it.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import { type HoldsKey, targetWithoutKeys } from '../../gateway-keys.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { boundConnections } from '../../limits/connections.ts';
import type { Exchange } from '../../observability/exchange.ts';
import { setBodyDeadline } from './body-deadline.ts';
import { createParserErrors, endSoon, type ParserErrors } from './parser-errors.ts';
import { httpRefusal } from './refusals.ts';
import { requestTarget, withoutAzure } from './request-target.ts';
import { isWebSocket, offerUpgrade, withoutUpgrade } from './upgrade.ts';
import { hasClearEnd } from './well-formed.ts';

export interface HttpServerParts {
  app: Express;
  limits: Budgets['connection'] & { maxConnections: number; keepAliveMs: number };
  /** The first handlers of the app. They run here for a request that Express cannot route at all. */
  arrival: readonly RequestHandler[];
  onError: ErrorRequestHandler;
  log: Logger;
  holdsKey: HoldsKey;
  /** Gets the exchange of each request that is refused before any handler sees it. */
  finished(exchange: Exchange): void;
}

type Take = (req: IncomingMessage, res: ServerResponse) => void;

export function createHttpServer(parts: HttpServerParts): Server {
  const { limits } = parts;
  const server = createServer({
    requireHostHeader: false, // `wellFormed` refuses a request without Host, with the envelope
    headersTimeout: limits.headMs,
    connectionsCheckingInterval: Math.min(1000, limits.headMs / 4),
    requestTimeout: 0, // the deadline of a body can be lifted, Node's cannot
    keepAliveTimeout: limits.keepAliveMs,
    maxHeaderSize: limits.headBytes,
  });
  // Node would drop the fields beyond its limit, Origin and Authorization among them. `wellFormed` counts instead.
  server.maxHeadersCount = 0;
  const begin = boundConnections(server, limits);
  const parserErrors = createParserErrors(parts.log, parts.finished);
  const take = requestTaker(parts, parserErrors);
  server.on('request', take);
  // The handler that reads the body sends `100 Continue`, so that a busy gateway can refuse before it.
  server.on('checkContinue', take);
  server.on('checkExpectation', take);
  server.on('connect', (req, duplex) => {
    const socket = duplex as Socket;
    if (isEarly(socket, parserErrors)) return;
    // The target of CONNECT is an authority. With a path the request reaches `wellFormed`, which refuses the method.
    take(Object.assign(req, { originalUrl: req.url, url: '/' }), responseOver(req, socket));
  });
  server.on('upgrade', (req, socket: Socket, head) => {
    if (isEarly(socket, parserErrors)) return;
    if (!isWebSocket(req)) {
      withoutUpgrade(server, req, socket, head);
      return;
    }
    const res = responseOver(req, socket);
    offerUpgrade(req, { socket, head });
    begin(req, res);
    take(req, res);
  });
  server.on('clientError', parserErrors.answer);
  return server;
}

/** Hands a request to Express, or refuses it where nothing that its connection brings can be trusted or answered. */
function requestTaker(
  { app, limits, arrival, onError, holdsKey }: HttpServerParts,
  errors: ParserErrors,
): Take {
  const nothing = () => undefined;
  /** Express calls this when the target has no path, before it has run any handler. */
  const unroutable = (req: Request, res: Response) => {
    if (res.locals.notes !== undefined) {
      res.destroy(); // the error handler itself has failed
      return;
    }
    for (const handler of arrival) handler(req, res, nothing);
    onError(httpRefusal(400), req, res, nothing);
  };
  return (incoming, outgoing) => {
    const [req, res] = [incoming as Request, outgoing as Response];
    const { socket } = req;
    if (!socket.writable) return; // an earlier request was refused, and its connection is being closed
    if (!hasClearEnd(req)) {
      // As after an error of the parser, nothing that this connection brings can be trusted any more.
      errors.answer(new Error('the end of the request is not clear'), socket, req);
      return;
    }
    if (errors.unanswered(socket) >= limits.unanswered) {
      errors.answer(new Error('too many requests before the first answer'), socket);
      parseNoMore(socket);
      return;
    }
    errors.watch(socket, res);
    setBodyDeadline(req, res, limits.bodyMs, () => {
      errors.answer(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
    });
    const target = requestTarget(req);
    // The log shows what was sent. The empty target has no path, so Express runs no handler for it.
    if (target === null) req.originalUrl = targetWithoutKeys(req.url, holdsKey);
    req.url = target === null ? '' : targetWithoutKeys(withoutAzure(req, target), holdsKey);
    app(req, res, () => unroutable(req, res));
  };
}

/**
 * Refuses a request for which Node has handed over the connection although earlier ones still wait for their answers, or
 * have had the last one: a connection has one response at a time.
 */
function isEarly(socket: Socket, errors: ParserErrors): boolean {
  if (socket.writable && errors.unanswered(socket) === 0) return false;
  socket.on('error', () => socket.destroy());
  if (socket.writable)
    errors.answer(new Error('an upgrade request before the answer to an earlier request'), socket);
  return true;
}

/** A response over a connection that Node has handed over: nothing else drains, reads or closes it. */
function responseOver(req: IncomingMessage, socket: Socket): ServerResponse {
  socket.on('error', () => socket.destroy());
  const res = new ServerResponse(req);
  socket.on('drain', () => res.emit('drain'));
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.once('finish', () => {
    if (res.socket === null) return; // it is a WebSocket now
    socket.resume(); // Node reports the client's `end` only when everything before it was read
    endSoon(socket);
  });
  return res;
}

/** What `parser.onIncoming` returns to Node's HTTP parser for a connection that is no longer HTTP. */
const NO_MORE_HTTP = 2;

/**
 * Keeps Node from making a request and a response of everything that has already arrived on a connection, also when
 * the connection is destroyed: more than a thousand requests fit into one read. Node has no public function for it.
 */
function parseNoMore(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: () => number } | null };
  if (parser != null) parser.onIncoming = () => NO_MORE_HTTP;
}
