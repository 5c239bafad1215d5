/** The API's own description (OpenAPI 3.1) as `/openapi.json`, and as a page at `/docs` (contract 1.7). */
import { type Express, type RequestHandler, Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { BEARER } from './openapi-parts.ts';
import { apiPaths } from './openapi-paths.ts';
import { pageHeaders } from './pages.ts';

export interface Description {
  version: string;
  /** The paths of the admin room, which are described where they are. */
  adminPaths(): ZodOpenApiPathsObject;
}

export async function describeApi({ version, adminPaths }: Description) {
  const { createDocument } = await import('zod-openapi');
  return createDocument({
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

/** Made when first asked for: what it needs would be a fifth of the time to start. */
export function openapi(description: Description): RequestHandler {
  let document: ReturnType<typeof describeApi> | null = null;
  return async (_req, res) => {
    document ??= describeApi(description);
    res.json(await document);
  };
}

/** The page itself answers at `/docs`; its assets are local files below `/docs/`. Loaded when first asked for. */
export function mountDocs(app: Express): void {
  let loaded: ReturnType<typeof loadDocs> | null = null;
  const docs = () => {
    loaded ??= loadDocs();
    return loaded;
  };
  // Swagger's page brings its styles inline.
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
  const options = { swaggerOptions: { url: '/openapi.json', validatorUrl: null } };
  const page = swaggerUi.generateHTML(undefined, options).replaceAll('"./', '"/docs/');
  return { page, assets: Router().use(...swaggerUi.serveFiles(undefined, options)) };
}
