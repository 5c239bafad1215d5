/**
 * GET /v1/realtime: a live session over a WebSocket, by OpenAI's protocol for transcription. The request has passed the
 * checks of every other request when it comes here, so a refusal is an ordinary answer with the envelope.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Budgets } from '../../budgets.ts';
import { GatewayError } from '../../errors.ts';
import { classify, type Exchange } from '../../observability/exchange.ts';
import type { LiveEvent } from '../../transcription/live/live-session.ts';
import { toGatewayError } from '../error-handler.ts';
import type { GracefulStop } from '../graceful-stop.ts';
import { notesOf } from '../observe.ts';
import { httpRefusal } from '../refusals.ts';
import { offeredUpgrade } from '../upgrade.ts';
import { type Connection, type ConnectionOptions, runConnection } from './connection.ts';
import { firstState, toLiveSettings } from './session-settings.ts';

export interface RealtimeDeps extends Pick<ConnectionOptions, 'live' | 'shutdown' | 'log'> {
  limits: Budgets['live'];
  maxSessions: number;
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

export function createRealtime(deps: RealtimeDeps): Realtime {
  const open = new Set<Connection>();
  const accept = new WebSocketServer({
    noServer: true,
    maxPayload: deps.limits.messageBytes,
    perMessageDeflate: false,
    handleProtocols: (names) => (names.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  });

  function run(socket: WebSocket, req: Request, res: Response, model: string | undefined): void {
    const { requestId } = notesOf(res);
    const connection = runConnection({
      ...{ socket, model, requestId },
      ...{ live: deps.live, limits: deps.limits, shutdown: deps.shutdown, log: deps.log },
      beta: /realtime=v1/.test(req.get('OpenAI-Beta') ?? ''),
      onUtterance: (event) => deps.onExchange(toExchange(event, req)),
    });
    open.add(connection);
    deps.log.info('live session', { requestId, sessions: open.size });
    void connection.closed.then(() => {
      open.delete(connection);
      // The response has no connection any more; this is its end for all who watch it.
      res.emit('close');
    });
  }

  const handler: RequestHandler = (req, res) => {
    deps.gracefulStop.assertServing();
    const offer = offeredUpgrade(req);
    if (offer === undefined) {
      res.setHeader('Upgrade', 'websocket');
      throw new GatewayError('upgrade_required', {});
    }
    if (!KEY.test(req.get('Sec-WebSocket-Key') ?? '') || req.get('Sec-WebSocket-Version') !== '13')
      throw httpRefusal(400);
    const model = typeof req.query.model === 'string' ? req.query.model : undefined;
    deps.live.transcription.route(toLiveSettings(firstState(model)).request);
    if (open.size >= deps.maxSessions) throw new GatewayError('too_many_sessions', {});
    const { socket, head } = offer;
    res.status(101);
    res.detachSocket(socket);
    res.emit('finish');
    socket.setNoDelay(true); // the events are small, and each is waited for
    accept.handleUpgrade(req, socket, head, (ws) => run(ws, req, res, model));
  };

  return {
    handler,
    async stop() {
      await Promise.all([...open].map((connection) => connection.stop()));
    },
  };
}

/** The record of an utterance, in which it is a request that arrived when its speech ended. */
function toExchange(event: LiveEvent & { type: 'completed' | 'failed' }, req: Request): Exchange {
  const { id, audioSec, tookMs } = event;
  const round = (value: number, digits: number) => Number(value.toFixed(digits));
  const latencyMs = round(tookMs, 2);
  const common = {
    requestId: id,
    at: new Date(Date.now() - tookMs),
    ...{ method: req.method, path: '/v1/realtime', category: 'asr' as const },
    ...{ latencyMs, bytesIn: 0, bytesOut: 0 },
    ...{ clientIp: req.ip, userAgent: req.get('User-Agent'), audioSec: round(audioSec, 3) },
  };
  if (event.type === 'failed') {
    const { status, code, kind, provider } = toGatewayError(event.error);
    return { ...common, provider, status, class: classify(status, code), errorKind: kind };
  }
  const { route, summary, slotWaitMs } = event.outcome;
  return {
    ...common,
    ...{ provider: route.model.provider, model: route.model.id, route: route.reason },
    ...{ status: 200, class: classify(200, null), slotWaitMs: round(slotWaitMs, 2) },
    ...{ language: summary.language, rtf: round(summary.tookSec / audioSec, 4) },
  };
}
