/** A speech and chat upstream that answers, fails, stalls and breaks by chance. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LocalServer, listening } from '../local-server.ts';
import type { Random } from './random.ts';

const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'chat', object: 'model', owned_by: 'soak' }] });

async function inPieces(res: ServerResponse, random: Random, pieces: number): Promise<void> {
  for (let i = 0; i < pieces && !res.destroyed; i += 1) {
    res.write(random.bytes(1 + random.below(2000)));
    await sleep(random.below(20));
  }
}

/** What the upstream does with a call; most of the time it answers. */
const BEHAVIORS: ((res: ServerResponse, random: Random) => unknown)[] = [
  (res, random) => res.end(random.bytes(5000)),
  (res) => res.end('fine'),
  async (res, random) => {
    await inPieces(res, random, 10);
    res.end();
  },
  (res) => res.writeHead(500, { 'content-type': 'application/json' }).end('{"error":"upstream"}'),
  (res) => res.writeHead(429, { 'retry-after': '1' }).end('slow down'),
  (res) => res.writeHead(502).end(),
  (res) => res.destroy(),
  async (res, random) => {
    res.writeHead(200, { 'content-length': '1000000' });
    await inPieces(res, random, 3);
    res.destroy();
  },
  () => undefined, // silence, until the gateway gives up
];

export async function startFaultyUpstream(random: Random): Promise<LocalServer> {
  const server: Server = createServer((req, res) => {
    res.on('error', () => undefined);
    if (req.url === '/health') return res.end('ok');
    if (req.url === '/v1/models') return res.setHeader('content-type', 'application/json').end(MODELS);
    req.resume();
    req.on('error', () => undefined);
    return void random.pick(BEHAVIORS)(res, random);
  });
  return await listening(server);
}
