/**
 * A large upload is refused at once: the client is still writing when the answer comes, and must be able to read it.
 * The clients are real, and HAProxy stands between some of them and the gateway.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI, { toFile } from 'openai';
import { startGateway, until } from '../http/harness.ts';

const run = promisify(execFile);
const dir = mkdtempSync(join(tmpdir(), 'voxgate-refused-'));
const FILE = join(dir, 'large.wav');
const BYTES = 80_000_000;
writeFileSync(FILE, Buffer.alloc(BYTES));
after(() => rmSync(dir, { recursive: true, force: true }));

const gateway = await startGateway();
const held = gateway.app.slot.take('llm', 'somebody');
const haproxy = await startHaproxy(gateway.base);
after(async () => {
  held[Symbol.dispose]();
  await haproxy[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});

for (const [way, base] of [
  ['directly', gateway.base],
  ['through HAProxy', haproxy.base],
] as const) {
  const url = `${base}/v1/audio/transcriptions`;

  for (const [how, extra] of [
    ['a length', []],
    ['chunks', ['-H', 'Transfer-Encoding: chunked']],
    ['no wish to be told to go on', ['-H', 'Expect:']],
  ] as const) {
    test(`curl reads the refusal ${way}, sending ${how}`, async () => {
      const { stdout } = await run('curl', [
        '-sS',
        '-w',
        '\n%{http_code}',
        '-F',
        `file=@${FILE}`,
        ...extra,
        url,
      ]);
      const [body = '', status] = stdout.split('\n');
      assert.equal(status, '503');
      assert.equal(JSON.parse(body).error.code, 'slot_busy');
    });
  }

  test(`the OpenAI SDK reads the refusal ${way}`, async () => {
    const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0 });
    const file = await toFile(Buffer.alloc(BYTES), 'large.wav');
    await assert.rejects(
      client.audio.transcriptions.create({ file, model: 'whisper-1' }),
      (error: unknown) => {
        assert(error instanceof OpenAI.APIError, String(error));
        assert.deepEqual([error.status, error.code], [503, 'slot_busy']);
        return true;
      },
    );
  });
}

async function startHaproxy(backend: string): Promise<AsyncDisposable & { base: string }> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  const config = join(dir, 'haproxy.cfg');
  writeFileSync(
    config,
    `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend in
  bind 127.0.0.1:${port}
  default_backend gateway
backend gateway
  server one ${backend.replace('http://', '')}
`,
  );
  const child = spawn('haproxy', ['-f', config, '-db'], { stdio: ['ignore', 'ignore', 'inherit'] });
  await once(child, 'spawn');
  const base = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${base}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('HAProxy answers', answers);
  return {
    base,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
