/**
 * The sockets that a gateway listens on. A supervisor binds them once and hands them to each server (supervise.ts).
 * While no server accepts, as between two of them, new connections wait in the backlog of the kernel, 511 of each socket
 * at most, and the next server accepts them.
 */
import { lookup } from 'node:dns/promises';
import net, { type AddressInfo, type Server } from 'node:net';
import type { Config } from '../config/config.ts';

/** A server's first descriptor of an inherited socket. Those before are its input, its output and its supervisor. */
export const FIRST_SOCKET = 4;

export interface ListenAddress {
  host: string;
  port: number;
  /** The setting of the port. */
  setting: string;
}

/** That of HTTP, and that of Wyoming where it is spoken. */
export function listenAddresses({
  host,
  port,
  wyomingPort,
}: Config): [ListenAddress, ListenAddress | undefined] {
  const wyoming = wyomingPort === undefined ? undefined : { host, port: wyomingPort };
  return [{ host, port, setting: 'SVC_PORT' }, wyoming && { ...wyoming, setting: 'SVC_WYOMING_PORT' }];
}

/** @param descriptor of a socket that is bound already */
export function listen(
  server: Server,
  { host, port, setting }: ListenAddress,
  descriptor: number | null,
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE' ? `; ${setting} chooses another port` : '';
      reject(new Error(`Cannot listen on ${host}:${port}: ${error.message}${inUse}`));
    });
    server.listen(descriptor === null ? { host, port } : { fd: descriptor }, () =>
      resolve(server.address() as AddressInfo),
    );
  });
}

/** A socket that is bound and that this process never accepts from, so that every connection is left to a child. */
interface BoundSocket {
  getsockname(out: object): number;
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

async function bind({ host, port }: ListenAddress): Promise<BoundSocket | null> {
  const found = await lookup(host).catch(() => null);
  const handle = found === null ? 0 : createServerHandle(found.address, port, found.family);
  if (typeof handle === 'number') return null; // the number of an error
  // The system may tell only now that the port is in use.
  if (handle.getsockname({}) === 0) return handle;
  handle.close();
  return null;
}
