/** One address takes all that it can get of a bounded resource and keeps it. Another one is served as if it were alone. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { form, type Gateway, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { rawClient, statusesIn } from '../http/raw-client.ts';

const [ATTACKER, HONEST] = ['127.0.0.5', '127.0.0.9'];
const HEAD = 'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n';
const FILE = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
const prompt = (characters: number) =>
  `--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n${'p'.repeat(characters)}\r\n`;

/** A form that is never sent to its end. */
const unfinished = (begin: string) =>
  `${HEAD}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2000000\r\n\r\n${begin}`;

/** Sends a request from the honest address. @returns the status of its answer */
async function ask(gateway: Gateway, request: string | Buffer): Promise<number | undefined> {
  using client = rawClient(gateway.base, request, HONEST);
  await until('it is answered', () => statusesIn(client.said()).length > 0 || client.closed());
  return statusesIn(client.said())[0];
}

async function transcribe(gateway: Gateway, seconds: number, fields = {}): Promise<number | undefined> {
  const request = new Response(form(toneWav(seconds), fields));
  const body = Buffer.from(await request.arrayBuffer());
  const type = `Content-Type: ${request.headers.get('Content-Type')}\r\n`;
  const head = `${HEAD}${type}Content-Length: ${body.length}\r\n\r\n`;
  return ask(gateway, Buffer.concat([Buffer.from(head), body]));
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;

interface Row {
  script: Script;
  /** What one of the attacker's clients sends. */
  attack: string;
  clients: number;
  /** True when the attacker has all; where it is absent, when something was refused. */
  isTaken?(gateway: Gateway): boolean;
  honest(gateway: Gateway): Promise<number | undefined>;
}

const ROWS: Record<string, Row> = {
  connections: {
    script: { env: { SVC_MAX_CONNECTIONS: '8' } },
    attack: unfinished(FILE),
    clients: 12,
    honest: (gateway) => ask(gateway, 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'),
  },
  'places for uploads': {
    script: { env: { SVC_MAX_UPLOADS: '4' }, budgets: { upload: { leadMs: 60_000 } } },
    attack: unfinished(`${FILE}${'x'.repeat(100_000)}`),
    clients: 8,
    honest: (gateway) => transcribe(gateway, 1),
  },
  'space for files': {
    script: { env: { SVC_MAX_UPLOAD_MB: '1', SVC_MAX_SPOOL_MB: '1' } },
    attack: unfinished(`${FILE}${'x'.repeat(1_000_000)}`),
    clients: 1,
    isTaken: (gateway) =>
      gateway
        .uploadFolders()
        .some((dir) => gateway.uploads().some((name) => sizeOf(join(dir, name)) === 1_000_000)),
    honest: (gateway) => transcribe(gateway, 10),
  },
  'memory for text fields': {
    script: { budgets: { upload: { maxFieldBytes: 400_000 } } },
    attack: unfinished(`${prompt(30_000)}${FILE}xx`),
    clients: 10,
    honest: (gateway) => transcribe(gateway, 1, { prompt: 'p'.repeat(60_000) }),
  },
};

for (const [name, { script, attack, clients, isTaken, honest }] of Object.entries(ROWS))
  test(`one address that takes all ${name} keeps no other one out`, async () => {
    await using gateway = await startGateway(script);
    const attackers = Array.from({ length: clients }, () => rawClient(gateway.base, attack, ATTACKER));
    try {
      const isRefused = () =>
        attackers.some((client) => client.closed() || client.said().includes('"overloaded"'));
      await until('it has all', () => isTaken?.(gateway) ?? isRefused());
      for (let i = 0; i < 3; i++) assert.equal(await honest(gateway), 200);
    } finally {
      for (const { socket } of attackers) socket.destroy();
    }
  });

test('one address that opens all live sessions keeps no other one out', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_LIVE_SESSIONS: '3' } });
  const open = async (localAddress: string) => {
    const socket = new WebSocket(`${gateway.base.replace('http', 'ws')}/v1/realtime`, { localAddress });
    socket.on('error', () => undefined);
    await once(socket, 'open');
    return socket;
  };
  const sockets: WebSocket[] = [];
  for (let i = 0; i < 3; i++) sockets.push(await open(ATTACKER));
  await assert.rejects(open(ATTACKER));
  sockets.push(await open(HONEST));
  for (const socket of sockets) socket.terminate();
});
