/**
 * Forms of a few kilobytes try to stop the gateway. Each is refused at once, its cost stays small, and other clients
 * are answered meanwhile.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { assertCheap } from '../cost.ts';
import { form, type Gateway, json, post, type Script, startGateway, toneWav, until } from './harness.ts';
import { rawClient, statusesIn } from './raw-client.ts';

const speech = toneWav(1);
/** This is for a few requests and their answers on both sides, because the client is in this process too. */
const MAX_COST_MS = 100;

/** This bounds the growth of the most memory that this process ever had. */
const MAX_GROWTH_MIB = 64;

/** Starts a gateway that has served before: code that the first request compiles is no cost of the second. */
async function startWarm(script: Script = {}): Promise<Gateway> {
  const gateway = await startGateway(script);
  assert.equal((await post(gateway, form(speech))).status, 200);
  return gateway;
}

async function assertRefusedAtOnce(gateway: Gateway, send: () => Promise<Response>) {
  let refused: Response | undefined;
  const mostKiB = process.resourceUsage().maxRSS;
  await assertCheap('the refusal', MAX_COST_MS, async () => {
    const health = () => fetch(`${gateway.base}/health`);
    const [response, ...others] = await Promise.all([send(), health(), health()]);
    for (const other of others) assert.equal(other.status, 200);
    refused = response;
  });
  const grownMiB = (process.resourceUsage().maxRSS - mostKiB) / 1024;
  assert(grownMiB < MAX_GROWTH_MIB, `the process grew by ${Math.round(grownMiB)} MiB`);
  assert(refused);
  const body = await json(refused);
  assert.equal(refused.status, 400, JSON.stringify(body));
  const { error } = errorEnvelopeSchema.parse(body);
  assert.equal(error.kind, 'malformed');
  assert(error.message.length < 300, error.message);
  await until('no upload is left', () => gateway.uploads().length === 0);
  return error;
}

/** The file stands behind the fields, as with a client that wants the fields read first. */
const withFields = (fields: [string, string][]) => {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  data.append('file', new Blob([speech]), 'speech.wav');
  return data;
};

const LONG = 60 * 1024;

for (const [name, piece] of [
  ['temperature', '1'],
  ['model', 'a'],
  ['language', '-'],
  ['languages[]', '_'],
  ['response_format', ' '],
  ['chunking_strategy', '['],
  ['chunking_strategy[threshold]', '1'],
  ['translate', ' '],
  ['keywords', 'a'],
] as const) {
  test(`${name} of 60 KiB is refused at once, and everyone else is answered meanwhile`, async () => {
    await using gateway = await startWarm();
    const error = await assertRefusedAtOnce(gateway, () =>
      post(gateway, withFields([[name, `${piece.repeat(LONG)}x`]])),
    );
    assert.equal(error.param, name.split('[')[0]);
    assert.match(error.message, /at most (1024|200) characters/);
    assert.equal((await post(gateway, form(speech))).status, 200);
  });
}

test('a prompt of 64 KiB is used; a longer one is refused by its name and the limit', async () => {
  let prompt = '';
  await using gateway = await startWarm({
    transcribe: async (_samples, options) => {
      prompt = options.prompt;
      return [];
    },
  });
  const whole = 'é'.repeat(32 * 1024);
  assert.equal((await post(gateway, withFields([['prompt', whole]]))).status, 200);
  assert.equal(prompt, whole);
  const error = await assertRefusedAtOnce(gateway, () =>
    post(gateway, withFields([['prompt', `${whole}e`]])),
  );
  assert.equal(error.param, 'prompt');
  assert.equal(error.code, 'invalid_value');
  assert.match(error.message, /"prompt" .*at most 65536 bytes/);
});

/** Asserts that the form is answered 200 in little time and memory, while everyone else is answered. */
async function assertCheaplyServed(gateway: Gateway, fields: [string, string][]) {
  const mostKiB = process.resourceUsage().maxRSS;
  await assertCheap('the request', MAX_COST_MS, async () => {
    const [response, health] = await Promise.all([
      post(gateway, withFields(fields)),
      fetch(`${gateway.base}/health`),
    ]);
    assert.equal(response.status, 200, await response.text());
    assert.equal(health.status, 200);
  });
  const grownMiB = (process.resourceUsage().maxRSS - mostKiB) / 1024;
  assert(grownMiB < MAX_GROWTH_MIB, `the process grew by ${Math.round(grownMiB)} MiB`);
}

/**
 * A name is enough where its brackets become an array of so many places, or so many objects inside one another. `param`
 * is the known field that a transcription refuses; without it the name is skipped there.
 */
const NAMES: [what: string, name: string, param?: string][] = [
  ['an index of 30 million in a field that is not known', 'anything[30000000]'],
  ['the highest index in a field that is not known', 'anything[4294967294]'],
  ['5,000 levels', `model${'[b]'.repeat(5000)}`, 'model'],
  ['5,000 levels of lists', `model${'[0]'.repeat(5000)}`, 'model'],
  ['5,000 levels of a field that is not known', `metadata${'[b]'.repeat(5000)}`],
  ['30 levels', `model${'[b]'.repeat(30)}`, 'model'],
  ['two levels', 'chunking_strategy[a][b]', 'chunking_strategy'],
  ['a name of 15,000 characters', 'n'.repeat(15_000)],
];

for (const [what, name, param] of NAMES) {
  test(`${what} costs little time and memory, for audio and on the admin pages`, async () => {
    await using gateway = await startWarm();
    if (param === undefined) await assertCheaplyServed(gateway, [[name, 'x']]);
    else {
      const inUpload = () => post(gateway, withFields([[name, 'x']]));
      const error = await assertRefusedAtOnce(gateway, inUpload);
      assert.deepEqual([error.code, error.param], ['invalid_value', param]);
    }
    for (const path of ['observability/toggle', 'slot/stop']) {
      const body = new FormData();
      body.append(name, 'x');
      const inForm = () => fetch(`${gateway.base}/admin/api/${path}`, { method: 'POST', body });
      assert.equal((await assertRefusedAtOnce(gateway, inForm)).code, 'invalid_form');
    }
    assert.equal((await post(gateway, form(speech))).status, 200);
  });
}

test('long values of fields that are not known are skipped, and the next request finds the memory free', async () => {
  await using gateway = await startWarm();
  const long = 'x'.repeat(1_000_000);
  for (let i = 0; i < 3; i++)
    await assertCheaplyServed(gateway, [
      ['anything', long],
      ['metadata[tags][0]', long],
    ]);
});

const multipart = (parts: string[], boundary = 'x') => ({
  method: 'POST',
  headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  body: `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--\r\n`,
});
const field = (name: string) => `Content-Disposition: form-data; name="${name}"\r\n\r\nx`;

for (const [what, part] of [
  ['fields', field('a')],
  ['parts without a name', 'X-Anything: x\r\n\r\nx'],
  ['fields without a name', 'Content-Disposition: form-data\r\n\r\nx'],
  ['fields with half a name', 'Content-Disposition: form-data; name\r\n\r\nx'],
  ['files', 'Content-Disposition: form-data; name="a"; filename="a"\r\n\r\nx'],
] as const) {
  test(`a form of 10,000 ${what} is refused at once`, async () => {
    await using gateway = await startWarm();
    for (const path of ['/v1/audio/transcriptions', '/admin/api/slot/stop']) {
      const send = () => fetch(gateway.base + path, multipart(Array(10_000).fill(part)));
      assert.equal((await assertRefusedAtOnce(gateway, send)).code, 'invalid_form');
    }
    assert.equal((await post(gateway, form(speech))).status, 200);
  });
}

test('fields do not count as audio, so a file of the largest size is accepted with them', async () => {
  await using gateway = await startWarm({ env: { SVC_MAX_UPLOAD_MB: '0.031' } });
  assert(speech.length > 31_000 && speech.length < 0.031 * 1024 * 1024);
  const fields: [string, string][] = [
    ['prompt', 'p'.repeat(64 * 1024)],
    ['anything', 'a'.repeat(64 * 1024)],
  ];
  assert.equal((await post(gateway, withFields(fields))).status, 200);
});

for (const [what, code, begins] of [
  ['too many fields', 'invalid_form', `--x\r\n${field('a')}\r\n`.repeat(200)],
  ['a part without a name', 'invalid_form', '--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n'],
  ['a long value', 'invalid_value', `--x\r\n${field('model')}${'x'.repeat(70_000)}\r\n`],
  ['nested brackets', 'invalid_value', `--x\r\n${field('model[b][c][d]')}\r\n`],
] as const)
  test(`a form with ${what} is refused before its client has sent the rest`, async () => {
    await using gateway = await startWarm();
    const head = 'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n';
    const type = 'Content-Type: multipart/form-data; boundary=x\r\n\r\n';
    using client = rawClient(gateway.base, `${head}${type}${begins}`);
    client.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n');
    await until('it is answered', () => client.said() !== '', 2000);
    assert.deepEqual(statusesIn(client.said()), [400]);
    assert(client.said().includes(`"code":"${code}"`), client.said());
    await until('no upload is left', () => gateway.uploads().length === 0);
  });
