/** A chat daemon that writes what a test tells it to. */
import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { type LocalServer, listening } from '../local-server.ts';

export interface Asked {
  messages: { role: string; content: string }[];
  [setting: string]: unknown;
}

/** A piece of an answer: a text, other fields of the delta, or the usage at the end. */
export type Piece = string | { reasoning_content: string } | { usage: object } | { wait: Promise<void> };

export interface ChatDaemon extends LocalServer {
  /** The body of each request. */
  asked: Asked[];
}

/** @param reply the pieces of each answer; null refuses */
export async function startChatDaemon(reply: (request: number) => Piece[] | null): Promise<ChatDaemon> {
  const asked: Asked[] = [];
  const server = createServer(async (req, res) => {
    if (req.url === '/v1/models') return void res.end('{"data":[{"id":"tiny"}]}');
    if (req.method === 'GET') return void res.writeHead(404).end();
    asked.push((await json(req)) as Asked);
    const pieces = reply(asked.length);
    if (pieces === null) return void res.writeHead(400).end('{"error":"out of luck"}');
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    await write(res, pieces);
  });
  return {
    ...(await listening(server)),
    asked,
  };
}

async function write(res: ServerResponse, pieces: Piece[]) {
  const send = (event: object) => res.write(`data: ${JSON.stringify(event)}\n\n`);
  let usage: object | null = null;
  for (const piece of pieces) {
    if (typeof piece === 'string') send({ choices: [{ delta: { content: piece } }] });
    else if ('usage' in piece) usage = piece.usage;
    else if ('wait' in piece) await piece.wait;
    else send({ choices: [{ delta: piece }] });
  }
  send({ choices: [{ delta: {}, finish_reason: 'stop' }] });
  if (usage !== null) send({ choices: [], usage });
  res.end('data: [DONE]\n\n');
}
