/**
 * The sockets that a gateway listens on. A supervisor binds them once and hands them to each server (supervise.ts).
 * While no server accepts, as between two of them, new connections wait in the backlog of the kernel, 511 of each socket
 * at most, and the next server accepts them.
 */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync, lstatSync, rmSync } from 'node:fs';
import net, { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { socketPathOf } from '../address.ts';
import type { Config } from '../config/config.ts';

/** A server's first descriptor of an inherited socket. Those before are its input, its output and its supervisor. */
export const FIRST_SOCKET = 4;
const LOOPBACK = '127.0.0.1';

export interface ListenAddress {
  /** A name, an address, or a Unix socket, which has no port. */
  host: string;
  port: number;
  /** The setting that chooses another one. */
  setting: string;
  /** The permissions of a Unix socket. */
  mode: number;
}

/** That of HTTP, and that of Wyoming where it is spoken: on loopback, where HTTP has a Unix socket. */
export function listenAddresses({
  host,
  port,
  socketMode: mode,
  wyomingPort,
}: Config): [ListenAddress, ListenAddress | undefined] {
  const isSocket = socketPathOf(host) !== undefined;
  const http = { host, port, mode, setting: isSocket ? 'SVC_HOST' : 'SVC_PORT' };
  if (wyomingPort === undefined) return [http, undefined];
  const wyomingHost = isSocket ? LOOPBACK : host;
  return [http, { host: wyomingHost, port: wyomingPort, mode, setting: 'SVC_WYOMING_PORT' }];
}

/**
 * Resolves to the port; 0 at a Unix socket.
 * @param descriptor of a socket that is bound already
 */
export async function listen(
  server: Server,
  { host, port, setting, mode }: ListenAddress,
  descriptor: number | null,
): Promise<number> {
  const path = socketPathOf(host);
  const failed = (why: string) => new Error(`Cannot listen on ${path ?? `${host}:${port}`}: ${why}`);
  if (path !== undefined) {
    server.prependListener('connection', comesFromLoopback);
    const problem = descriptor === null ? await clearPath(path) : null;
    if (problem !== null) throw failed(`${problem}; ${setting} chooses another path`);
  }
  const begun = once(server, 'listening');
  server.listen(descriptor !== null ? { fd: descriptor } : path !== undefined ? { path } : { host, port });
  if (path !== undefined && descriptor === null && server.listening) chmodSync(path, mode);
  try {
    await begun;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const another = `${setting} chooses another ${path === undefined ? 'port' : 'path'}`;
    if (code === 'EADDRINUSE') throw failed(`another program listens there; ${another}`);
    if (code === 'EACCES') throw failed(`this user may not listen there; ${another}`);
    const isElsewhere = code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND';
    throw failed(isElsewhere ? 'this machine has no such address; SVC_HOST chooses another' : message);
  }
  return (server.address() as AddressInfo | null)?.port ?? 0;
}

/** A client of a Unix socket has no address, and is on this machine: limits, logs and SVC_TRUST_PROXY see loopback. */
function comesFromLoopback(socket: Socket): void {
  Object.defineProperty(socket, 'remoteAddress', { value: LOOPBACK });
}

/** What lies at the path of a Unix socket. A server that has died leaves one that refuses connections. */
export async function socketState(path: string): Promise<'nothing' | 'left' | 'served' | 'no socket'> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 'nothing';
  if (!found.isSocket()) return 'no socket';
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return 'served';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'left' : 'served';
  } finally {
    socket.destroy();
  }
}

/** Removes the socket that a dead server has left. Returns what else is there, in words, or null. */
async function clearPath(path: string): Promise<string | null> {
  const found = await socketState(path);
  if (found === 'served') return 'another server listens there';
  if (found === 'no socket') return 'what is there is no socket, and stays';
  if (found === 'left') rmSync(path);
  return null;
}

/** A socket that is bound and that this process never accepts from, so that every connection is left to a child. */
interface BoundSocket {
  getsockname?(out: object): number;
  close(): void;
}

export interface KeptSockets {
  /** What a child inherits, from `FIRST_SOCKET` on. */
  handles: BoundSocket[];
  close(): void;
}

/** Null when one of them cannot be bound: a server that tries to listen by itself says why. */
export async function bindSockets(config: Config): Promise<KeptSockets | null> {
  const handles: BoundSocket[] = [];
  const close = () => {
    for (const handle of handles) handle.close();
  };
  for (const address of listenAddresses(config)) {
    const handle = address && (await bind(address));
    if (handle === null) {
      close();
      return null;
    }
    if (handle) handles.push(handle);
  }
  return { handles, close };
}

/** Node's `net.Server` accepts as soon as it listens. Its `cluster` binds in this way, and other programs have no other. */
const { _createServerHandle: createServerHandle } = net as unknown as {
  _createServerHandle(address: string, port: number, family: number): BoundSocket | number;
};
/** What stands for port and family of a Unix socket there. */
const NONE = -1;

async function bind({ host, port, mode }: ListenAddress): Promise<BoundSocket | null> {
  const path = socketPathOf(host);
  if (path !== undefined) {
    if ((await clearPath(path)) !== null) return null;
    const handle = createServerHandle(path, NONE, NONE);
    if (typeof handle === 'number') return null; // an error code in place of a handle
    chmodSync(path, mode);
    return handle;
  }
  const found = await lookup(host).catch(() => null);
  const handle = found === null ? NONE : createServerHandle(found.address, port, found.family);
  if (typeof handle === 'number') return null;
  // The system may tell only now that the port is in use.
  if (handle.getsockname?.({}) === 0) return handle;
  handle.close();
  return null;
}
