/** Serves the description of the API (OpenAPI 3.1) at `/openapi.json`, and as a page at `/docs` (contract 1.7). */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { Express, RequestHandler } from 'express';
import type { createDocument, ZodOpenApiPathsObject } from 'zod-openapi';
import { compressedFolder, compressedJson } from '../compressed.ts';
import { pageHeaders } from '../pages.ts';
import { caseSensitiveRouter } from '../route-table.ts';
import { forwardedPrefix } from '../server/forwarded-prefix.ts';
import { BEARER, TAGS } from './parts.ts';
import { apiPaths } from './paths.ts';

export interface Description {
  version: string;
  /** The paths of the admin API and of live sessions, which are described beside their handlers. */
  adminPaths(): ZodOpenApiPathsObject;
  livePaths(): ZodOpenApiPathsObject;
}

export async function describeApi({
  version,
  adminPaths,
  livePaths,
}: Description): Promise<ReturnType<typeof createDocument>> {
  const { createDocument: create } = await import('zod-openapi');
  return create({
    openapi: '3.1.0',
    info: {
      title: 'voxgate',
      version,
      description: 'Speech to text, text to speech and chat with the OpenAI API. Details: docs/api.md.',
    },
    components: {
      securitySchemes: {
        [BEARER]: { type: 'http', scheme: 'bearer', description: 'a key from SVC_API_KEY, if that is set' },
      },
    },
    security: [{}, { [BEARER]: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: { ...apiPaths(livePaths()), ...adminPaths() },
  });
}

/** The document is made at the first request, because loading its modules would be a fifth of the time to start. */
export function openapi(description: Description): RequestHandler {
  let document: ReturnType<typeof describeApi> | null = null;
  const send = compressedJson();
  return async (req, res) => {
    document ??= describeApi(description);
    const prefix = forwardedPrefix(req);
    const servers = prefix !== '' && { servers: [{ url: prefix }] };
    await send(req, res, JSON.stringify({ ...(await document), ...servers }));
  };
}

/** Only these files of Swagger UI are served. The page itself is one of `mountPages`. */
const SWAGGER_UI = ['/swagger-ui-bundle.js', '/swagger-ui.css'];

/** Serves the files of Swagger UI below `/docs`. Its package loads at the first request. */
export function mountDocs(app: Express): void {
  let files: Promise<RequestHandler> | null = null;
  app.use('/docs', pageHeaders(), async (req, res, next) => {
    if (!SWAGGER_UI.includes(req.path)) return next();
    files ??= swaggerFiles();
    (await files)(req, res, next);
  });
}

async function swaggerFiles(): Promise<RequestHandler> {
  const { default: swaggerUi } = await import('swagger-ui-express');
  const require = createRequire(createRequire(import.meta.url).resolve('swagger-ui-express'));
  const folder = dirname(require.resolve('swagger-ui-dist/swagger-ui.css'));
  return caseSensitiveRouter().use(compressedFolder(folder), ...swaggerUi.serveFiles());
}
