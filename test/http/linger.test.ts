/** A client that was answered before it had sent everything may go on for a while, and no longer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { startGateway } from './harness.ts';

/** Announces a body that is refused, and returns the open connection when the refusal has come. */
async function refused(base: string): Promise<Socket> {
  const { port } = new URL(base);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n',
  );
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1.1 400 /);
  socket.resume();
  return socket;
}

/** The connection may be reset, because the client is still sending. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

test('a client that was refused and sends no more is closed', { timeout: 10_000 }, async () => {
  await using gateway = await startGateway({ budgets: { linger: { idleMs: 100 } } });
  const socket = await refused(gateway.base);
  await closed(socket);
});

test('a client that was refused and goes on sending is closed', { timeout: 10_000 }, async () => {
  await using gateway = await startGateway({ budgets: { linger: { idleMs: 5000, totalMs: 300 } } });
  const socket = await refused(gateway.base);
  const sending = setInterval(() => socket.write('more'), 20);
  await closed(socket);
  clearInterval(sending);
});

test('a client that wants the connection closed reads its refusal while it is still sending', async () => {
  await using gateway = await startGateway();
  for (let round = 0; round < 20; round++) {
    const { port } = new URL(gateway.base);
    const socket = connect(Number(port), '127.0.0.1');
    let failure: Error | null = null;
    socket.on('error', (error) => {
      failure = error;
    });
    let said = '';
    socket.on('data', (data) => {
      said += data;
    });
    const bytes = 8 * 1024 * 1024;
    const head = `POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
    socket.write(head);
    for (let sent = 0; sent < bytes; sent += 65_536) {
      if (!socket.write(Buffer.alloc(65_536)))
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
      if (socket.destroyed) break;
    }
    if (!socket.closed) await once(socket, 'close');
    assert.equal(failure, null, `round ${round}: ${failure}`);
    assert.match(said, /^HTTP\/1\.1 404 [\s\S]*"kind":"\w+"/);
  }
});
