/**
 * Client secrets: short-lived keys that open `GET /v1/realtime` and nothing else, for pages and apps that may not hold a
 * key of the gateway. One is made with the settings of its sessions, which begin with them; a session may change them
 * later, as with OpenAI. It can be used again until it expires.
 */
import express, { type RequestHandler } from 'express';
import { z } from 'zod';
import type { Tokens } from '../../http/access/tokens.ts';
import { post, type RouteRow } from '../../http/route-table.ts';
import type { GracefulStop } from '../../http/server/graceful-stop.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { networkOf } from '../../limits/network.ts';
import { checked } from '../checked.ts';
import {
  type Beginning,
  type ConversationState,
  firstConversation,
  updatedConversation,
} from './conversation-settings.ts';
import { newId } from './server-events.ts';
import {
  asServed,
  betaSessionUpdate,
  firstState,
  fromBeta,
  type LiveServing,
  requireServed,
  type SessionUpdate,
  sessionUpdate,
  toLiveSettings,
  updated,
} from './session-settings.ts';
import { shownSession } from './shown-session.ts';

/** The secrets that have not expired, with the settings that their sessions begin with. */
export type ClientSecrets = Tokens<Beginning>;

/** Seconds, as OpenAI's. */
const LIFETIME = { least: 10, most: 7200, usual: 600 };
const SECONDS = `Expected a whole number from ${LIFETIME.least} to ${LIFETIME.most}`;

const lifetime = z
  .object({
    anchor: z.literal('created_at', { error: 'Expected created_at' }).nullish(),
    seconds: z
      .int({ error: SECONDS })
      .min(LIFETIME.least, SECONDS)
      .max(LIFETIME.most, SECONDS)
      .nullish()
      .describe(`the lifetime of the secret; ${LIFETIME.usual} when absent`),
  })
  .nullish();

export const clientSecretRequest = z.object({ expires_after: lifetime, session: sessionUpdate.nullish() });

export const transcriptionSessionRequest = betaSessionUpdate.extend({
  client_secret: z.object({ expires_at: lifetime, expires_after: lifetime }).nullish(),
});

export interface ClientSecretDeps {
  secrets: ClientSecrets;
  live: LiveServing;
  limits: Budgets['clientSecrets'];
  gracefulStop: GracefulStop;
}

/** `POST /v1/realtime/client_secrets`, and the beta's `/v1/realtime/transcription_sessions` and `/v1/realtime/sessions`. */
export function clientSecretRoutes(deps: ClientSecretDeps): RouteRow[] {
  // A body of any type is read as JSON. If a body without a type were skipped, its settings would be lost silently.
  const json = express.json({ limit: deps.limits.bodyBytes, type: () => true });
  const secret = (path: string, readBody: (body: unknown) => Asked) =>
    post(`/v1/realtime/${path}`, json, issueSecret(deps, readBody));
  return [
    secret('client_secrets', read),
    secret('transcription_sessions', (body) => readBeta(body, null)),
    secret('sessions', (body) =>
      readBeta(body, updatedConversation(firstConversation(null), { session: body, beta: true })),
    ),
  ];
}

/** What a secret is asked for with. */
interface Asked {
  beta: boolean;
  update: SessionUpdate;
  seconds: number;
  conversation: ConversationState | null;
}

function issueSecret(
  { secrets, live, gracefulStop }: ClientSecretDeps,
  readBody: (body: unknown) => Asked,
): RequestHandler {
  return (req, res) => {
    gracefulStop.assertServing();
    const { beta, update, seconds, conversation } = readBody(req.body ?? {});
    const { aliases } = live.transcription;
    const state = updated(firstState(undefined), update);
    const settings = toLiveSettings(state, aliases);
    requireServed(settings, live, { beta });
    const { warnings } = asServed(settings, live);
    const owner = { network: networkOf(req.ip ?? ''), lifetimeMs: seconds * 1000 };
    const secret = {
      value: secrets.issue({ heard: state, conversation }, owner),
      expires_at: Math.floor(Date.now() / 1000) + seconds,
    };
    res.set('Cache-Control', 'no-store');
    const session = shownSession(state, conversation, { id: newId('sess'), warnings, aliases, beta });
    res.json(beta ? { ...session, client_secret: secret } : { ...secret, session });
  };
}

function read(body: unknown): Asked {
  const { session, expires_after: expires } = checked(clientSecretRequest, body, []);
  const sent: unknown = Object(body).session;
  const conversation =
    session?.type === 'realtime'
      ? updatedConversation(firstConversation(null), { session: sent, beta: false })
      : null;
  return { beta: false, update: session ?? {}, seconds: expires?.seconds ?? LIFETIME.usual, conversation };
}

function readBeta(body: unknown, conversation: ConversationState | null): Asked {
  const { client_secret: asked, ...session } = checked(transcriptionSessionRequest, body, []);
  const expires = asked?.expires_at ?? asked?.expires_after;
  return { beta: true, update: fromBeta(session), seconds: expires?.seconds ?? LIFETIME.usual, conversation };
}
