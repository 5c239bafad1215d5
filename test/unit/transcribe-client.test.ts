/** How `voxgate transcribe` and the Node API ask a gateway (src/cli/transcribe-client.ts). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { askFor } from '../../src/cli/transcribe-client.ts';
import type { Answers, AnswerTo, Fields } from '../../src/index.ts';

const skip = process.platform === 'win32' && 'Windows has no pipes with a path, nor folders that are locked';

test('a file that is not there is named', async () => {
  const { signal } = new AbortController();
  const asked = { base: 'http://127.0.0.1:9', key: undefined, audio: '/no/such.wav', fields: {}, signal };
  await assert.rejects(askFor(asked), /ENOENT.*\/no\/such\.wav/);
});

test('what is no file is refused, also a pipe that nobody writes into, and a pipe of the shell is read', {
  skip,
}, async () => {
  let received = '';
  const server = createServer(async (req, res) => {
    received = (await buffer(req)).toString('latin1');
    res.end('text');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-unread-'));
  const pipe = join(dir, 'pipe.wav');
  execFileSync('mkfifo', [pipe]);
  const { signal } = new AbortController();
  const asked = { base: `http://127.0.0.1:${port}`, key: undefined, fields: {}, signal };
  const writer = openSync(pipe, 'r+');
  try {
    for (const audio of [dir, pipe])
      await assert.rejects(askFor({ ...asked, audio }), { message: `${audio} is no regular file` });
    writeSync(writer, 'the sound');
    const read = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    closeSync(writer);
    assert.equal(await askFor({ ...asked, audio: `/dev/fd/${read}` }), 'text');
    assert.match(received, /the sound/);
  } finally {
    rmSync(dir, { recursive: true });
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
