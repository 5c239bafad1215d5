/** Uploads come slowly or not at all; the receiver runs alone in a server, with a short limit. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { GatewayError } from '../../src/errors.ts';
import { clientSignal } from '../../src/http/server/client-signal.ts';
import { createSpool } from '../../src/http/upload/spool.ts';
import { createUploadReceiver } from '../../src/http/upload/upload.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { createUploadPlaces } from '../../src/limits/upload-places.ts';
import { listening } from '../local-server.ts';
import { until } from './harness.ts';

/** Long beside the pauses in which a busy machine stops this process: the limit and the client both run in it. */
const STALL_MS = 1000;
const HEAD = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
const END = '\r\n--x--\r\n';

interface Receiver extends AsyncDisposable {
  /** Begins an upload whose file has this many bytes. */
  dial(fileBytes: number): Socket;
  /** The end of each upload: the bytes of its file, or the reason why there is none. */
  ended: unknown[];
  files(): string[];
}

async function startReceiver(): Promise<Receiver> {
  const tmp = mkdtempSync(join(tmpdir(), 'voxgate-upload-test-'));
  const limits = { ...BUDGETS.upload, stallMs: STALL_MS };
  const { leastFreeBytes, graceMs } = limits;
  const uploads = createUploadReceiver({
    spool: createSpool({ tmpDir: tmp, log: { warn: () => undefined }, maxBytes: 1e7, leastFreeBytes }),
    places: createUploadPlaces({ maxUploads: 4, graceMs }),
    maxBytes: 1e6,
    limits,
  });
  const ended: unknown[] = [];
  const app = express();
  app.post('/', async (req, res) => {
    res.locals.notes = { requestBody: () => undefined };
    const signal = clientSignal(res, new AbortController().signal);
    try {
      await using upload = await uploads.receive(req, res, signal, { field: 'file' });
      ended.push(upload.bytes);
      res.send('whole');
    } catch (error) {
      ended.push(error);
      res.destroy();
    }
  });
  const server = await listening(createServer(app));
  return {
    ended,
    dial(fileBytes) {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      const length = HEAD.length + fileBytes + END.length;
      socket.write(
        `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: ${length}\r\n\r\n${HEAD}`,
      );
      return socket;
    },
    files: () => readdirSync(tmp).flatMap((dir) => readdirSync(join(tmp, dir))),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(tmp, { recursive: true });
    },
  };
}

test('an upload that stalls is given up after the limit, and leaves no file', async () => {
  await using receiver = await startReceiver();
  const socket = receiver.dial(100_000);
  socket.write('x'.repeat(50_000));
  const sentAt = performance.now();
  await until('the file is on disk', () => receiver.files().length === 1);
  await until('it is given up', () => receiver.ended.length === 1, 10 * STALL_MS);
  assert(performance.now() - sentAt >= STALL_MS - 5, 'not before the limit');
  await until('its connection is closed', () => socket.resume().destroyed);
  const [error] = receiver.ended;
  assert(error instanceof GatewayError);
  assert.equal(error.code, 'request_timeout');
  await until('the file is gone', () => receiver.files().length === 0);
});

test('an upload that moves may take many times the limit', async () => {
  await using receiver = await startReceiver();
  const socket = receiver.dial(20_000);
  for (let i = 0; i < 20; i++) {
    await sleep(STALL_MS / 10);
    socket.write('x'.repeat(1000));
  }
  socket.write(END);
  await until('it has ended', () => receiver.ended.length === 1);
  assert.deepEqual(receiver.ended, [20_000]);
  socket.destroy();
});
