/** Serves the description of the API (OpenAPI 3.1) at `/openapi.json`, and as a page at `/docs` (contract 1.7). */
import type { Express, RequestHandler } from 'express';
import type { createDocument, ZodOpenApiPathsObject } from 'zod-openapi';
import { BEARER } from './openapi-parts.ts';
import { apiPaths } from './openapi-paths.ts';
import { pageHeaders } from './pages.ts';
import { caseSensitiveRouter } from './route-table.ts';

export interface Description {
  version: string;
  /** The paths of the admin API, which `src/admin` describes beside their handlers. */
  adminPaths(): ZodOpenApiPathsObject;
}

export async function describeApi({
  version,
  adminPaths,
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
        [BEARER]: { type: 'http', scheme: 'bearer', description: 'a key of SVC_API_KEY, where that is set' },
      },
    },
    security: [{}, { [BEARER]: [] }],
    paths: { ...apiPaths(), ...adminPaths() },
  });
}

/** The document is made at the first request, because loading its modules would be a fifth of the time to start. */
export function openapi(description: Description): RequestHandler {
  let document: ReturnType<typeof describeApi> | null = null;
  return async (_req, res) => {
    document ??= describeApi(description);
    res.json(await document);
  };
}

/** Serves the page at `/docs` and its assets, which are local files, below `/docs/`. Both load at the first request. */
export function mountDocs(app: Express): void {
  let loaded: ReturnType<typeof loadDocs> | null = null;
  const docs = () => {
    loaded ??= loadDocs();
    return loaded;
  };
  // The page of Swagger has inline styles.
  const headers = pageHeaders({ inlineStyles: true });
  app.get('/docs', headers, async (_req, res) => {
    res.type('html').send((await docs()).page);
  });
  app.use('/docs', headers, async (req, res, next) => {
    (await docs()).assets(req, res, next);
  });
}

async function loadDocs(): Promise<{ page: string; assets: RequestHandler }> {
  const { default: swaggerUi } = await import('swagger-ui-express');
  const options = {
    swaggerOptions: { url: '/openapi.json', validatorUrl: null },
    customSiteTitle: 'voxgate API',
    customCss: '', // without it the page's style ends in the word `undefined`
  };
  const page = swaggerUi.generateHTML(undefined, options).replaceAll('"./', '"/docs/');
  return { page, assets: caseSensitiveRouter().use(...swaggerUi.serveFiles(undefined, options)) };
}
