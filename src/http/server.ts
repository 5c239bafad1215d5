/**
 * Joins Node's HTTP server to the Express app, without the answers of their own that both have for what is odd: a
 * missing Host, an Expect that is not known, CONNECT, a target without a path. Each becomes a request like any other,
 * with an id, a line in the access log and the envelope.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';
import type { ParserErrors } from './parser-errors.ts';
import { httpRefusal } from './refusals.ts';

export interface HttpServerParts {
  app: Express;
  /** What the app does first with every request; run here for one that Express cannot route at all. */
  arrival: readonly RequestHandler[];
  onError: ErrorRequestHandler;
  parserErrors: ParserErrors;
}

export function createHttpServer({ app, arrival, onError, parserErrors }: HttpServerParts): Server {
  // A request without Host is refused by `wellFormed`, with the envelope.
  const server = createServer({ requireHostHeader: false });
  const nothing = () => undefined;

  /** Express comes here when it finds no path in the target, before it has run anything. */
  const unroutable = (req: Request, res: Response) => {
    if (res.locals.notes !== undefined) {
      res.destroy(); // the answer to a failure has failed itself
      return;
    }
    for (const handler of arrival) handler(req, res, nothing);
    onError(httpRefusal(400), req, res, nothing);
  };
  const take = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const [req, res] = [incoming as Request, outgoing as Response];
    parserErrors.watch(req.socket, res);
    app(req, res, () => unroutable(req, res));
  };

  server.on('request', take);
  // `100 Continue` is sent by whoever reads the body, so that a busy gateway refuses before it.
  server.on('checkContinue', take);
  server.on('checkExpectation', take);
  server.on('connect', (req, socket) => {
    // Node has let go of the connection: nothing else listens to its errors, or closes it.
    socket.on('error', () => socket.destroy());
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket as Socket);
    res.once('finish', () => socket.end());
    // Its target is an authority: routed by a path, it comes to where its method is refused.
    take(Object.assign(req, { originalUrl: req.url, url: '/' }), res);
  });
  server.on('clientError', parserErrors.answer);
  return server;
}
