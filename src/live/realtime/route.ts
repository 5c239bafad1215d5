/**
 * GET /v1/realtime: a live session over a WebSocket, by OpenAI's protocol for transcription. The request has passed the
 * checks of every other request when it comes here, so a refusal is an ordinary answer with the envelope.
 */
import type { Request, RequestHandler, Response } from 'express';
import { type WebSocket, WebSocketServer } from 'ws';
import { GatewayError } from '../../errors.ts';
import { settingsOfSecret } from '../../http/access/api-key.ts';
import { notesOf } from '../../http/observe.ts';
import type { GracefulStop } from '../../http/server/graceful-stop.ts';
import { httpRefusal } from '../../http/server/refusals.ts';
import { type OfferedUpgrade, offeredUpgrade } from '../../http/server/upgrade.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { EventLoopShare, JoinEventLoop } from '../../limits/event-loop-shares.ts';
import { createLargeMessages, type MessageSize } from '../../limits/large-messages.ts';
import { type LivePlaces, tooManySessions } from '../../limits/live-places.ts';
import { networkOf } from '../../limits/network.ts';
import { CONVERSES, isOpenAiModel, withoutAlias } from '../../models/names.ts';
import type { AnswerRecord } from '../../observability/answer-record.ts';
import type { Exchange } from '../../observability/exchange.ts';
import { answerRecord, responseExchanges, utteranceExchange } from '../exchanges.ts';
import { type ConnectionOptions, RealtimeConnection } from './connection.ts';
import { type Beginning, firstConversation } from './conversation-settings.ts';
import { pacedSocket } from './paced-socket.ts';
import { firstHeard, requireServed, startingState, toLiveSettings } from './session-settings.ts';

export interface RealtimeDeps extends Pick<ConnectionOptions, 'shutdown' | 'log'> {
  live: Omit<ConnectionOptions['live'], 'network'>;
  answers: ConnectionOptions['answers'];
  /** Whether the chat daemon has a model of this name. */
  isChatModel(name: string): Promise<boolean>;
  limits: Budgets['live'];
  /** Those of the sessions of all protocols together. */
  places: LivePlaces;
  joinEventLoop: JoinEventLoop;
  gracefulStop: GracefulStop;
  /** Called with the record of each utterance. */
  onExchange(exchange: Exchange): void;
  /** Called with the record of each answer of a conversation. */
  onAnswer(answer: AnswerRecord): void;
}

const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** The subprotocols. A browser must get back one that it has offered. */
const SUBPROTOCOL = 'realtime';

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** True for the names of different subprotocols, or none (RFC 6455, section 4.1). */
function areSubprotocols(header: string | undefined): boolean {
  if (header === undefined) return true;
  const names = header.split(',').map((name) => name.trim());
  const isList = /^[\t -~]+$/.test(header) && names.every((name) => TOKEN.test(name));
  return isList && new Set(names).size === names.length;
}

/** A page cannot set headers on a WebSocket, so clients of the beta name a subprotocol instead. */
const asksForBeta = (req: Request) =>
  /realtime=v1/.test(req.get('OpenAI-Beta') ?? '') ||
  /(?:^|,)\s*openai-beta\.realtime-v1\s*(?:,|$)/.test(req.get('Sec-WebSocket-Protocol') ?? '');

const NOTHING = Buffer.alloc(0);

/**
 * What the session begins with: the settings of its client secret, or those of its address. It is a conversation where
 * the address names a model that converses and does not say that it only transcribes.
 * @throws GatewayError where that cannot be served
 */
async function beginningOf(req: Request, res: Response, deps: RealtimeDeps): Promise<Beginning> {
  const { live } = deps;
  const model = typeof req.query.model === 'string' ? req.query.model : undefined;
  const ofSecret: Beginning | undefined = settingsOfSecret(res);
  const transcribes = ofSecret ? ofSecret.conversation === null : req.query.intent === 'transcription';
  if (!transcribes && (ofSecret || (model !== undefined && (await converses(model, deps))))) {
    const conversation = ofSecret?.conversation ?? firstConversation(null);
    const heard = firstHeard(ofSecret?.heard);
    notesOf(res).model = conversation.model ?? model;
    return { heard, conversation: { ...conversation, model: conversation.model ?? model ?? null } };
  }
  const first = startingState(model, ofSecret?.heard);
  notesOf(res).model = first.transcription?.model ?? undefined;
  requireServed(toLiveSettings(first, live.transcription.aliases), live, { beta: asksForBeta(req) });
  return { heard: first, conversation: null };
}

/** Whether the model of an address is one for conversations. */
async function converses(model: string, { live, isChatModel }: RealtimeDeps): Promise<boolean> {
  const { aliases } = live.transcription;
  return isOpenAiModel(CONVERSES, model, aliases) || (await isChatModel(withoutAlias(model, aliases)));
}

/** A request that has its place, and what it has besides. */
interface Accepted {
  req: Request;
  res: Response;
  begins: Beginning;
  share: EventLoopShare;
  message: MessageSize;
}

export function createRealtime(deps: RealtimeDeps): { handler: RequestHandler; stop(): Promise<void> } {
  const open = new Set<RealtimeConnection>();
  const joinLargeMessages = createLargeMessages(deps.limits);
  const accept = new WebSocketServer({
    noServer: true,
    maxPayload: deps.limits.messageBytes,
    perMessageDeflate: false,
    autoPong: false,
    handleProtocols: (names) => (names.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  });

  function run(socket: WebSocket, { req, res, begins, share, message }: Accepted): RealtimeConnection {
    const { requestId } = notesOf(res);
    const client = clientOf(req);
    const connection = new RealtimeConnection({
      socket,
      link: req.socket,
      first: begins.heard,
      conversation: begins.conversation,
      answers: deps.answers,
      onOutcome(request, outcome) {
        for (const exchange of responseExchanges(request, outcome, client, deps.answers.speechModel))
          deps.onExchange(exchange);
        deps.onAnswer(answerRecord(outcome));
      },
      requestId,
      slice: share.slice,
      message,
      live: { ...deps.live, network: networkOf(req.ip ?? '') },
      limits: deps.limits,
      shutdown: deps.shutdown,
      log: deps.log,
      beta: asksForBeta(req),
      onUtterance: (event) => deps.onExchange(utteranceExchange(event, client)),
    });
    open.add(connection);
    deps.places.take(connection);
    deps.log.info('live session', { requestId, sessions: open.size });
    void connection.closed.then(() => {
      open.delete(connection);
      deps.places.release(connection);
      share.leave();
      message.leave();
      // The WebSocket has taken the connection, so Node emits no `close` on the response; the observers need one.
      res.emit('close');
    });
    return connection;
  }

  const handler: RequestHandler = async (req, res) => {
    deps.gracefulStop.assertServing();
    const offer = offerOf(req, res);
    const begins = await beginningOf(req, res, deps);
    const network = networkOf(req.ip ?? '');
    if (!deps.places.makeRoom({ network })) throw tooManySessions();
    detach(res, offer);
    const share = deps.joinEventLoop(network);
    let connection: RealtimeConnection | undefined;
    const message = joinLargeMessages(network, (why) => connection?.giveUp(why));
    const paced = pacedSocket(offer.socket, deps.limits, async (bytes) => {
      await connection?.handled;
      await message.grow(bytes);
      await share.slice();
    });
    accept.handleUpgrade(req, paced, NOTHING, (socket) => {
      connection = run(socket, { req, res, begins, share, message });
    });
  };

  return {
    handler,
    /** Lets every session finish what was said, and closes it. */
    async stop(): Promise<void> {
      await Promise.all([...open].map((connection) => connection.stop()));
    },
  };
}

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
