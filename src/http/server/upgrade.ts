/**
 * Upgrade requests. One for a WebSocket goes through the same checks as any other request, and its handler then takes
 * the connection. An upgrade to any other protocol is ignored, as HTTP allows (RFC 9110, section 7.8): Node has already
 * detached the connection, so it is handed back with a head that asks for no upgrade.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

export interface OfferedUpgrade {
  socket: Socket;
  /** What the client has sent after the head. */
  head: Buffer;
}

const offers = new WeakMap<IncomingMessage, OfferedUpgrade>();

export const offerUpgrade = (req: IncomingMessage, offer: OfferedUpgrade): void =>
  void offers.set(req, offer);

/** The connection of a request that asks for a WebSocket; undefined for any other request. */
export const offeredUpgrade = (req: IncomingMessage): OfferedUpgrade | undefined => offers.get(req);

/** RFC 6455, section 4.2.1. A request with a body is none. */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}

/** The header fields of an upgrade, which the new head must not have. */
const UPGRADE_FIELDS = new Set(['upgrade', 'http2-settings']);

/** Gives the connection back to the server as if the request had asked for no upgrade. */
export function withoutUpgrade(server: Server, req: IncomingMessage, socket: Socket, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(i, i + 2);
    if (UPGRADE_FIELDS.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${name.toLowerCase() === 'connection' ? otherOptions(value) : value}`);
  }
  const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.unshift(Buffer.concat([bytes, head]));
  server.emit('connection', socket);
  socket.resume();
}

/** The options of `Connection` without those of the upgrade; `keep-alive`, the default, when nothing is left. */
function otherOptions(value: string): string {
  const others = value.split(',').filter((option) => !UPGRADE_FIELDS.has(option.trim().toLowerCase()));
  return others.join(',').trim() || 'keep-alive';
}
