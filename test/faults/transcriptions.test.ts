/**
 * A client, a disk or the engine fails at every stage of a transcription: these tests say what the client gets, what
 * the traffic counts as, and that nothing stays behind.
 */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import type { TrafficClass } from '../../src/observability/exchange.ts';
import {
  form,
  type Gateway,
  heard,
  json,
  post,
  type Script,
  startGateway,
  toneWav,
  until,
  untilAborted,
} from '../http/harness.ts';
import { joinWavs } from '../wav.ts';

type Transcribe = NonNullable<Script['transcribe']>;

/** Two bursts of tone have enough silence between them to be two chunks. */
const TWO_CHUNKS = joinWavs(toneWav(1), toneWav(4, 0), toneWav(1));

/** Transcribes the first chunk, and runs `then` for the second. */
const firstThen = (then: Transcribe): Transcribe => {
  let calls = 0;
  return (...args) => (++calls === 1 ? Promise.resolve(heard(' One.')) : then(...args));
};

interface Row {
  name: string;
  script?: Script;
  client(gateway: Gateway): Promise<unknown>;
  class: TrafficClass;
  status: number;
  code?: string;
}

const multipart = (length: number, type = 'multipart/form-data; boundary=x') =>
  `POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;
const PART = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';

function dial(gateway: Gateway): Socket {
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  return socket;
}

/** Sends a beginning, waits for `moment`, and is gone. */
async function sendAndLeave(gateway: Gateway, bytes: string, moment: () => Promise<unknown>): Promise<void> {
  const socket = dial(gateway);
  socket.resume();
  socket.write(bytes, 'latin1');
  await moment();
  socket.resetAndDestroy();
}

const itArrived = (gateway: Gateway) => until('it arrived', () => gateway.arrived() === 1);

/** These weights arrive when they are released. */
const lateWeights = (() => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { arrive: () => released, release: () => release() };
})();

/** Sends a request, and leaves when `moment` has come. */
async function leaveWhen(
  gateway: Gateway,
  moment: (response: Promise<Response>) => Promise<unknown>,
  fields: Record<string, string> = {},
  file: Buffer = TWO_CHUNKS,
): Promise<void> {
  const leave = new AbortController();
  const response = post(gateway, form(file, fields), { signal: leave.signal });
  response.catch(() => undefined);
  await moment(response);
  leave.abort();
}

const ROWS: Row[] = [
  {
    name: 'a client leaves after its headers',
    client: (gateway) => sendAndLeave(gateway, multipart(1000), () => itArrived(gateway)),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves in the middle of a part’s header',
    client: (gateway) => sendAndLeave(gateway, multipart(1000) + PART.slice(0, 20), () => itArrived(gateway)),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves in the middle of its file',
    client: (gateway) =>
      sendAndLeave(gateway, `${multipart(1_000_000)}${PART}${'x'.repeat(100_000)}`, () =>
        until('the file is on disk', () => gateway.uploads().length === 1),
      ),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves while weights are fetched',
    script: {
      ensure: (_id, { signal }) =>
        new Promise((_r, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    },
    client: (gateway) => leaveWhen(gateway, () => until('it is fetching', () => gateway.fetching() === 1)),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves while its first chunk is transcribed',
    script: { transcribe: untilAborted },
    client: (gateway) => leaveWhen(gateway, () => until('it runs', () => gateway.running() === 1)),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves while its second chunk is transcribed',
    script: { transcribe: firstThen(untilAborted) },
    client: (gateway) =>
      leaveWhen(gateway, () => until('the second chunk runs', () => gateway.begun() === 2)),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves after the first event of a stream',
    script: { transcribe: firstThen(untilAborted) },
    client: (gateway) =>
      leaveWhen(gateway, async (response) => (await response).body?.getReader().read(), { stream: 'true' }),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client leaves a stream before its first event',
    script: { transcribe: untilAborted },
    client: (gateway) => leaveWhen(gateway, (response) => response, { stream: 'true' }),
    ...{ class: 'client-disconnect', status: 499 },
  },
  {
    name: 'a client sends a form that ends early',
    client: (gateway) => {
      const body = `${PART}abc`;
      const socket = dial(gateway);
      socket.write(multipart(body.length) + body);
      return new Promise((resolve) => socket.once('data', resolve)).finally(() => socket.destroy());
    },
    ...{ class: '4xx', status: 400, code: 'malformed' },
  },
  {
    name: 'a client sends a form without a boundary',
    client: async (gateway) => {
      const socket = dial(gateway);
      socket.write(`${multipart(3, 'multipart/form-data')}abc`);
      await new Promise((resolve) => socket.once('data', resolve)).finally(() => socket.destroy());
    },
    ...{ class: '4xx', status: 400, code: 'malformed' },
  },
  {
    name: 'a client sends no audio',
    client: async (gateway) =>
      (await post(gateway, form(Buffer.from('not audio at all, just words')))).text(),
    ...{ class: '4xx', status: 400, code: 'malformed' },
  },
  {
    name: 'a client names a model that does not exist',
    client: async (gateway) => (await post(gateway, form(toneWav(1), { model: 'gpt-5' }))).text(),
    ...{ class: '4xx', status: 400, code: 'malformed' },
  },
  {
    name: 'a client sends more than the largest upload',
    script: { env: { SVC_MAX_UPLOAD_MB: '0.01' } },
    client: async (gateway) => (await post(gateway, form(toneWav(5)))).text(),
    ...{ class: '4xx', status: 413, code: 'too_large' },
  },
  {
    name: 'the model store fails in an unexpected way',
    script: { ensure: async () => Promise.reject(new Error('disk full')) },
    client: async (gateway) => (await post(gateway, form(toneWav(1)))).text(),
    ...{ class: '5xx', status: 500, code: 'internal' },
  },
  {
    name: 'the engine fails',
    script: { transcribe: async () => Promise.reject(new Error('out of memory')) },
    client: async (gateway) => (await post(gateway, form(toneWav(1)))).text(),
    ...{ class: '5xx', status: 500, code: 'internal' },
  },
  {
    name: 'the engine fails in the middle of a stream',
    script: { transcribe: firstThen(async () => Promise.reject(new Error('out of memory'))) },
    client: async (gateway) => {
      const text = await (await post(gateway, form(TWO_CHUNKS, { stream: 'true' }))).text();
      assert.match(text, /event: error/);
      assert(!text.includes('out of memory'));
    },
    ...{ class: '5xx', status: 500, code: 'internal' },
  },
  {
    name: 'the operator stops a request in the middle of a stream',
    script: { transcribe: firstThen(untilAborted) },
    client: async (gateway) => {
      const response = await post(gateway, form(TWO_CHUNKS, { stream: 'true' }));
      await until('the second chunk runs', () => gateway.begun() === 2);
      gateway.app.slot.stopHolder();
      assert.match(await response.text(), /stopped_by_operator/);
    },
    ...{ class: '5xx', status: 503, code: 'network' },
  },
  {
    name: 'a request is refused because another runs',
    client: async (gateway) => {
      using _held = gateway.app.slot.take('llm', 'other');
      await (await post(gateway, form(toneWav(1)))).text();
    },
    ...{ class: '503-busy', status: 503, code: 'network' },
  },
  {
    name: 'a request is refused after its upload because another came first',
    script: { ensure: lateWeights.arrive },
    client: async (gateway) => {
      const late = post(gateway, form(toneWav(1)));
      await until('it is past the door', () => gateway.fetching() === 1);
      using _held = gateway.app.slot.take('tts', 'other');
      lateWeights.release();
      assert.equal((await json(await late)).error.held_by, 'tts');
    },
    ...{ class: '503-busy', status: 503, code: 'network' },
  },
  {
    name: 'a request is served',
    client: async (gateway) => (await post(gateway, form(toneWav(1)))).text(),
    ...{ class: '2xx', status: 200 },
  },
];

for (const row of ROWS) {
  test(`asr: ${row.name}`, async () => {
    await using gateway = await startGateway(row.script);
    await row.client(gateway);
    await until('it is over', () => gateway.exchanges.length === 1);
    const [exchange] = gateway.exchanges;
    assert.deepEqual(
      { category: exchange?.category, class: exchange?.class, status: exchange?.status },
      { category: 'asr', class: row.class, status: row.status },
    );
    if (row.code !== undefined) assert.equal(exchange?.errorKind, row.code);
    await until('nothing runs', () => gateway.running() === 0);
    await until('the slot is free', () => gateway.app.slot.status().holder === null);
    await until('no file is left', () => gateway.uploads().length === 0);
  });
}

test('asr: the folder of the uploads that something removed is made again, and nothing of it is noticed', async () => {
  await using gateway = await startGateway();
  for (let i = 0; i < 2; i++) {
    const [folder] = gateway.uploadFolders();
    assert(folder);
    rmSync(folder, { recursive: true });
    assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
    await until('no file is left', () => gateway.uploads().length === 0);
  }
  rmSync(gateway.config.tmpDir, { recursive: true });
  assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
});

test('asr: a place for uploads that takes none is a 503 that hides why, and the next one is served', async () => {
  await using gateway = await startGateway();
  rmSync(gateway.config.tmpDir, { recursive: true });
  writeFileSync(gateway.config.tmpDir, 'a file where the folder should be');
  const response = await post(gateway, form(toneWav(1)));
  assert.equal(response.status, 503);
  const text = await response.text();
  assert.match(text, /"code":"storage_unavailable"/);
  assert.doesNotMatch(text, /ENOTDIR|EEXIST/);
  assert(gateway.logged.some((line) => /ENOTDIR|EEXIST/.test(line)));
  rmSync(gateway.config.tmpDir);
  assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
});
