/**
 * Forms made to stop the gateway: each is a few kilobytes. It is refused at once, what it costs stays small, and
 * whoever else asks is answered meanwhile.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorEnvelopeSchema } from '../../src/http/openapi.ts';
import { assertCheap } from '../cost.ts';
import { form, type Gateway, json, post, type Script, startGateway, toneWav, until } from './harness.ts';

const speech = toneWav(1);
/** Of a few requests and their answers, on both sides: the client is in this process too. */
const MAX_COST_MS = 100;

/** A gateway that has served before: what is compiled at the first request is no cost of the second. */
async function startWarm(script: Script = {}): Promise<Gateway> {
  const gateway = await startGateway(script);
  assert.equal((await post(gateway, form(speech))).status, 200);
  return gateway;
}

async function assertRefusedAtOnce(gateway: Gateway, send: () => Promise<Response>) {
  let refused: Response | undefined;
  await assertCheap('the refusal', MAX_COST_MS, async () => {
    const health = () => fetch(`${gateway.base}/health`);
    const [response, ...others] = await Promise.all([send(), health(), health()]);
    for (const other of others) assert.equal(other.status, 200);
    refused = response;
  });
  assert(refused);
  const body = await json(refused);
  assert.equal(refused.status, 400, JSON.stringify(body));
  const { error } = errorEnvelopeSchema.parse(body);
  assert.equal(error.kind, 'malformed');
  assert(error.message.length < 300, error.message);
  await until('no upload is left', () => gateway.uploads().length === 0);
  return error;
}

/** With the file after the fields, as a client would that wants them looked at first. */
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
  for (const name of ['prompt', 'anything']) {
    const error = await assertRefusedAtOnce(gateway, () => post(gateway, withFields([[name, `${whole}e`]])));
    assert.equal(error.param, name);
    assert.equal(error.code, 'invalid_value');
    assert.match(error.message, new RegExp(`"${name}" .*at most 65536 bytes`));
  }
});
