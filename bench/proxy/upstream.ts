/** An upstream in this process, which takes what it is sent and answers at its end. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Returns its address. It does not keep the process running. */
export async function startUpstream(
  answer: (req: IncomingMessage, res: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((req, res) => {
    req.resume();
    req.on('end', () => answer(req, res));
  });
  server.listen(0, '127.0.0.1');
  server.unref();
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
