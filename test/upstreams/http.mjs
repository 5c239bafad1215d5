/** Both servers share this: JSON in and out, OpenAI's errors, the start and the end. It has no dependencies. */
import { createServer } from 'node:http';

const BODY_LIMIT = 10 * 2 ** 20;

/** A failure with its HTTP status, answered as `{error: {message, type, param, code}}`. */
export class HttpError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {string | null} [param] */
  constructor(status, code, message, param = null) {
    super(message);
    this.status = status;
    this.body = {
      error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param, code },
    };
  }
}

/** @param {import('node:http').IncomingMessage} req */
export async function readBody(req) {
  const chunks = [];
  let size = 0;
  // The loop must not cut the connection when it is left, because the answer says why.
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > BODY_LIMIT)
      throw new HttpError(413, 'body_too_large', `The body is larger than ${BODY_LIMIT} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** @param {import('node:http').IncomingMessage} req */
export async function readJson(req) {
  let value;
  try {
    value = JSON.parse((await readBody(req)).toString());
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, 'invalid_json', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new HttpError(400, 'invalid_json', 'The body is not a JSON object.');
  }
  return value;
}

/** @param {import('node:http').ServerResponse} res @param {number} status @param {unknown} body */
export function sendJson(res, status, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  res.writeHead(status, status === 413 ? { ...headers, connection: 'close' } : headers).end(bytes);
}

/** Aborts when the client goes away before the answer is complete. @param {import('node:http').ServerResponse} res */
export function clientSignal(res) {
  const gone = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** Counts the work that runs now and how the rest ended, for tests that read `GET /stats`. */
export class Jobs {
  running = 0;
  completed = 0;
  aborted = 0;
  failed = 0;

  /** @template T @param {AbortSignal} signal @param {() => Promise<T>} work */
  async track(signal, work) {
    this.running++;
    let outcome = 'failed';
    try {
      const result = await work();
      outcome = 'completed';
      return result;
    } finally {
      this.running--;
      this[signal.aborted ? 'aborted' : outcome]++;
    }
  }
}

/**
 * Serves `routes` ("GET /path"; a path that ends in "/*" takes one more segment, decoded, as third argument) on
 * 127.0.0.1. Prints its address as a line once it is ready to answer; ends with the process that forked it.
 * @param {string} name
 * @param {number} port
 * @param {Record<string, (req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse, segment: string) => unknown>} routes
 */
export function serve(name, port, routes) {
  const server = createServer(async (req, res) => {
    try {
      const { pathname } = new URL(req.url ?? '/', 'http://localhost');
      const cut = pathname.lastIndexOf('/') + 1;
      const handler =
        routes[`${req.method} ${pathname}`] ?? routes[`${req.method} ${pathname.slice(0, cut)}*`];
      if (handler === undefined) throw new HttpError(404, 'not_found', `No route ${req.method} ${pathname}.`);
      await handler(req, res, decoded(pathname.slice(cut)));
    } catch (error) {
      fail(res, error);
    }
  });
  server.listen(port, '127.0.0.1', () => {
    const address = /** @type {import('node:net').AddressInfo} */ (server.address());
    process.stdout.write(`${name} listening on http://127.0.0.1:${address.port}\n`);
  });
  process.on('disconnect', () => process.exit());
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError(400, 'invalid_path', 'The path is not percent-encoded UTF-8.');
  }
}

/** Once the answer has begun, only a cut connection can tell the client that it is not whole. */
function fail(res, error) {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const known = error instanceof HttpError ? error : new HttpError(500, 'internal', String(error?.message));
  if (known !== error) console.error(error);
  sendJson(res, known.status, known.body);
}
