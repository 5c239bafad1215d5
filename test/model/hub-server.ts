/** This is a real HTTP server that behaves as the hub does, or misbehaves as it is told to. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Weights } from '../../src/models/weights.ts';
import { listening } from '../local-server.ts';

export interface HubServer {
  url: string;
  requests: { url: string; headers: IncomingMessage['headers'] }[];
  /** Takes the next requests, in order; afterwards the server behaves as the hub does. */
  next: ((request: IncomingMessage, response: ServerResponse) => void)[];
  close(): PromiseLike<void>;
}

const ETAG = '"content-1"';

export async function startHub(content: Buffer): Promise<HubServer> {
  const requests: HubServer['requests'] = [];
  const next: HubServer['next'] = [];
  const server: Server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', headers: request.headers });
    const special = next.shift();
    if (special) special(request, response);
    else serveFile(content, request, response);
  });
  const { base: url, [Symbol.asyncDispose]: close } = await listening(server);
  return { url, requests, next, close };
}

export function serveFile(content: Buffer, request: IncomingMessage, response: ServerResponse): void {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? Number.NaN);
  const same = request.headers['if-range'] === undefined || request.headers['if-range'] === ETAG;
  if (Number.isNaN(from) || !same) {
    response.writeHead(200, { etag: ETAG, 'content-length': content.length }).end(content);
  } else if (from >= content.length) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
  } else {
    const range = `bytes ${from}-${content.length - 1}/${content.length}`;
    response
      .writeHead(206, { etag: ETAG, 'content-range': range, 'content-length': content.length - from })
      .end(content.subarray(from));
  }
}

export function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

export function someWeights(bytes = 300_000): Buffer {
  return randomBytes(bytes);
}

/** Makes a catalogue of one model whose q8_0 is published, or has to be made from the f16. */
export function oneModel(f16: Buffer, q8?: Buffer): Weights {
  const published = (file: string, data: Buffer) => ({
    repo: 'some/repo',
    revision: 'abc',
    file,
    bytes: data.length,
    sha256: sha256(data),
  });
  return {
    id: 'multilingual-base',
    family: 'whisper',
    quantizable: true,
    provider: 'multilingual',
    files: {
      f16: published('ggml-base.bin', f16),
      ...(q8 ? { q8_0: published('ggml-base-q8_0.bin', q8) } : {}),
    },
    derived: [],
  };
}
