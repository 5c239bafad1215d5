/**
 * A large upload is refused at once: the client is still writing when the answer comes, and must be able to read it.
 * The clients are real, and HAProxy stands between some of them and the gateway.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI, { toFile } from 'openai';
import { startGateway } from '../http/harness.ts';
import { startHaproxy } from './reverse-proxies.ts';

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
