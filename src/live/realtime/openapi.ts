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
        summary: 'live transcription over a WebSocket, by the events of OpenAI’s transcription sessions',
        needs: 'a client that opens a WebSocket; a plain request, as a page sends it, is answered with 426',
        query: z.object({
          model: z.string().optional().describe('the model, until an event names one'),
          intent: z.string().optional().describe('not read; OpenAI’s clients send `transcription`'),
        }),
        responses: { 426: NEEDS_UPGRADE, 503: NO_SESSION, default: WEB_SOCKET },
      },
    },
    '/v1/realtime/client_secrets': {
      post: {
        summary: 'a short-lived key for live sessions, for pages and apps that may hold no other',
        body: bodyOf(
          'application/json',
          clientSecretRequest,
          { session: { type: 'transcription' } },
          { required: false },
        ),
        responses: { 200: json('the secret', clientSecretSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
      },
    },
    '/v1/realtime/transcription_sessions': {
      post: {
        summary: 'the same as OpenAI’s beta has it, with flat fields',
        body: bodyOf('application/json', transcriptionSessionRequest, {}, { required: false }),
        responses: { 200: json('the secret', betaSessionSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
      },
    },
  });
