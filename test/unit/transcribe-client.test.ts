/** How `voxgate transcribe` and the Node API ask a gateway (src/cli/transcribe-client.ts). */
import assert from 'node:assert/strict';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { askFor } from '../../src/cli/transcribe-client.ts';
import type { Answers, AnswerTo, Fields } from '../../src/index.ts';

test('a file that is not there is named', async () => {
  const { signal } = new AbortController();
  const asked = { base: 'http://127.0.0.1:9', key: undefined, audio: '/no/such.wav', fields: {}, signal };
  await assert.rejects(askFor(asked), /ENOENT.*\/no\/such\.wav/);
});

test('a file that cannot be read to its end is named, and the gateway is left', async () => {
  const server = createServer((req) => req.on('error', () => undefined).resume());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-unread-'));
  const { signal } = new AbortController();
  const asked = { base: `http://127.0.0.1:${port}`, key: undefined, audio: dir, fields: {}, signal };
  try {
    await assert.rejects(askFor(asked), { message: `${dir} cannot be read` });
  } finally {
    rmdirSync(dir);
    await new Promise((resolve) => server.close(resolve));
  }
});

test('the type of an answer follows what the type of the fields says of the format', () => {
  // The compiler checks these lines; a type that is wrong does not compile.
  type Same<A, B> = [A, B] extends [B, A] ? true : false;
  const checks: [
    Same<AnswerTo<Record<never, never>>, Answers['json']>,
    Same<AnswerTo<{ response_format: 'srt' }>, string>,
    Same<AnswerTo<{ response_format: 'verbose_json' | 'vtt' }>, Answers['verbose_json'] | string>,
    Same<AnswerTo<{ response_format?: 'text' }>, Answers['json'] | string>,
    Same<AnswerTo<Fields>, Answers[keyof Answers]>,
  ] = [true, true, true, true, true];
  assert.ok(checks.every(Boolean));
});
