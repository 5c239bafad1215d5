/** Describes the paths of live sessions for OpenAPI. */
import { z } from 'zod';
import type { ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { betaSessionSchema, clientSecretSchema } from '../../http/openapi/openapi.ts';
import {
  bodyOf,
  json,
  NEEDS_UPGRADE,
  NO_SESSION,
  pathsOf,
  TOO_LARGE,
  UNSUPPORTED,
} from '../../http/openapi/parts.ts';
import { clientSecretRequest, transcriptionSessionRequest } from './client-secrets.ts';

const WEB_SOCKET: ZodOpenApiResponseObject = { id: 'WebSocket', description: '101: the WebSocket is open' };

export const livePaths = (): ZodOpenApiPathsObject =>
  pathsOf('speech to text', {
    '/v1/realtime': {
      get: {
        summary:
          'live transcription and conversations over a WebSocket, with the events of OpenAI’s Realtime API',
        needs: 'a client that opens a WebSocket; a plain request, such as from a page, gets a 426',
        query: z.object({
          model: z
            .string()
            .optional()
            .describe('the model, until an event names one; a chat model starts a conversation'),
          intent: z.string().optional().describe('`transcription` for a session that only transcribes'),
        }),
        responses: { 426: NEEDS_UPGRADE, 503: NO_SESSION, default: WEB_SOCKET },
      },
    },
    '/v1/realtime/client_secrets': {
      post: {
        summary: 'a short-lived key for live sessions, for pages and apps that must not hold a real one',
        body: bodyOf(
          'application/json',
          clientSecretRequest,
          { session: { type: 'transcription' } },
          { required: false },
        ),
        responses: { 200: json('the secret', clientSecretSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
      },
    },
    '/v1/realtime/transcription_sessions': beta('the same in the form of OpenAI’s beta, with flat fields'),
    '/v1/realtime/sessions': beta('the same for a conversation, in the form of OpenAI’s beta'),
  });

const beta = (summary: string) => ({
  post: {
    summary,
    body: bodyOf('application/json', transcriptionSessionRequest, {}, { required: false }),
    responses: { 200: json('the secret', betaSessionSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
  },
});
