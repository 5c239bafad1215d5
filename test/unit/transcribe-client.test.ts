/** How `voxgate transcribe` and the Node API ask a gateway (src/cli/transcribe-client.ts). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { askFor } from '../../src/cli/transcribe-client.ts';
import type { Answers, AnswerTo, Fields } from '../../src/index.ts';
import { listening } from '../local-server.ts';
import { until } from '../until.ts';

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
  await using gateway = await listening(server);
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-unread-'));
  const pipe = join(dir, 'pipe.wav');
  execFileSync('mkfifo', [pipe]);
  const { signal } = new AbortController();
  const asked = { base: gateway.base, key: undefined, fields: {}, signal };
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
  }
});

/** What asks a gateway that answers as the listener says, until the test is over. */
async function asking(t: TestContext, listener: RequestListener) {
  const server = await listening(createServer(listener));
  t.after(() => server[Symbol.asyncDispose]());
  return { base: server.base, key: undefined, audio: new Blob(['sound']), fields: {} };
}

test('the form holds the fields and all bytes of the file, whatever these are', async (t) => {
  const bytes = Buffer.alloc(2.5 * 1024 * 1024, 'the end\r\n------formdata-undici--\r\n');
  let form: FormData | undefined;
  const asked = await asking(t, async (req, res) => {
    const headers = { 'Content-Type': req.headers['content-type'] ?? '' };
    form = await new Response(await buffer(req), { headers }).formData();
    res.end('text');
  });
  const { signal } = new AbortController();
  await askFor({ ...asked, audio: new Blob([bytes]), fields: { model: 'm', keywords: ['a', 'b'] }, signal });
  const file = form?.get('file') as File;
  assert.ok(bytes.equals(Buffer.from(await file.arrayBuffer())));
  assert.deepEqual([form?.get('model'), form?.getAll('keywords[]')], ['m', ['a', 'b']]);
});

test('a gateway that is overloaded, which does not say when to come again, is asked again', async (t) => {
  let asks = 0;
  const refusals = [
    { status: 503, code: 'overloaded' },
    { status: 503, code: 'model_not_installed' },
  ];
  const asked = await asking(t, async (req, res) => {
    await buffer(req);
    const { status, code } = refusals[Math.min(asks, 1)] as (typeof refusals)[number];
    asks += 1;
    res.writeHead(status).end(JSON.stringify({ error: { message: code, kind: 'network', code } }));
  });
  const said: string[] = [];
  const { signal } = new AbortController();
  const answer = askFor({ ...asked, signal, onBusy: (message) => void said.push(message) });
  await assert.rejects(answer, { message: 'model_not_installed' });
  assert.deepEqual([asks, said], [2, ['overloaded']]);
});

test('the page of something else than a gateway is no text of the file', async (t) => {
  const { signal } = new AbortController();
  for (const onSegment of [undefined, () => undefined]) {
    const asked = await asking(t, async (req, res) => {
      await buffer(req);
      res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end('<h1>Sign in</h1>');
    });
    await assert.rejects(askFor({ ...asked, signal, onSegment }), {
      message: `${asked.base} is no gateway: it answered with text/html; charset=utf-8`,
    });
  }
});

test('an abort gives its reason, before the answer and in the rest after a refusal', async (t) => {
  const reason = new Error('no longer wanted');
  for (const headers of [null, { 'Retry-After': '60' }]) {
    const stop = new AbortController();
    const asked = await asking(t, (_req, res) => {
      if (headers === null) stop.abort(reason);
      else res.writeHead(503, headers).end();
    });
    const onBusy = () => void setImmediate(() => stop.abort(reason));
    await assert.rejects(askFor({ ...asked, signal: stop.signal, onBusy }), (error) => error === reason);
    await assert.rejects(askFor({ ...asked, signal: stop.signal }), (error) => error === reason);
  }
});

test('after its time nothing more is sent, and the request under way goes on', {
  timeout: 20_000, // the rest between two requests would be longer
}, async (t) => {
  const closed = new Error('closed');
  const { signal } = new AbortController();
  for (const status of [200, 503]) {
    const over = new AbortController();
    let requests = 0;
    const asked = await asking(t, (_req, res) => {
      requests += 1;
      over.abort(closed);
      setTimeout(() => res.writeHead(status, { 'Retry-After': '60' }).end('text'), 50);
    });
    const answer = askFor({ ...asked, signal, until: over.signal });
    if (status === 200) assert.equal(await answer, 'text');
    else await assert.rejects(answer, (error) => error === closed);
    await assert.rejects(askFor({ ...asked, signal, until: over.signal }), (error) => error === closed);
    assert.equal(requests, 1);
  }
});

test('the file of a call that was aborted is closed at once', {
  skip: process.platform !== 'linux' && 'only Linux lists the open files of a process',
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-aborted-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const audio = join(dir, 'long.wav');
  writeFileSync(audio, Buffer.alloc(32 * 1024 * 1024));
  const stop = new AbortController();
  const asked = await asking(t, (req) => void req.once('data', () => req.pause() && stop.abort()));
  await assert.rejects(askFor({ ...asked, audio, signal: stop.signal }), { name: 'AbortError' });
  const isOpen = (descriptor: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === audio;
    } catch {
      return false; // that of this very list
    }
  };
  await until('the file is closed', () => !readdirSync('/proc/self/fd').some(isOpen));
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
