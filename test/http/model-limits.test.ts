/** What strangers may make the gateway load: which models (SVC_MODEL_ALLOW), and how much memory (SVC_MODEL_MEMORY_MB). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until } from './harness.ts';

const ALL = CATALOGUE.map(({ id }) => id);
const INSTALLED = [...ALL, 'voice-activity'];
const MIB = 1024 * 1024;
const speech = toneWav(0.5);

async function ask(
  gateway: Gateway,
  model: string,
): Promise<{ status: number; code?: string; served?: string | undefined }> {
  const response = await post(gateway, form(speech, { model }));
  const served = response.headers.get('X-Voxgate-Model') ?? undefined;
  const { error } = await json(response);
  return { status: response.status, ...(error ? { code: error.code } : { served }) };
}

const admin = (gateway: Gateway, path: string) =>
  fetch(`${gateway.base}/admin/api/models/${path}`, {
    method: 'POST',
    headers: { Accept: 'application/json' },
  });

async function resident(gateway: Gateway): Promise<string[]> {
  const { data } = await json(await fetch(`${gateway.base}/v1/models`));
  return data.filter((entry: any) => entry.loaded && !entry.is_routing_alias).map((entry: any) => entry.id);
}

test('requests may use the models of SVC_MODEL_ALLOW under every name, and no other', async () => {
  const fetched: string[] = [];
  await using gateway = await startGateway({
    installed: ['multilingual-base', 'multilingual-small', 'voice-activity'],
    env: { SVC_MODEL_ALLOW: 'multilingual-base, cjk, parakeet-tdt-0.6b-v3' },
    ensure: async (id) => void fetched.push(id),
  });
  assert.deepEqual(await ask(gateway, 'multilingual-base'), { status: 200, served: 'multilingual-base' });
  assert.deepEqual(await ask(gateway, 'whisper-base'), { status: 200, served: 'multilingual-base' });
  assert.deepEqual(await ask(gateway, 'european'), { status: 200, served: 'european' });
  assert.deepEqual(await ask(gateway, 'auto'), { status: 200, served: 'multilingual-base' });
  fetched.length = 0;
  for (const model of ['multilingual-small', 'multilingual-large-v3', 'whisper-tiny', 'turbo']) {
    const { status, code } = await ask(gateway, model);
    assert.deepEqual([status, code], [403, 'model_not_allowed'], model);
  }
  assert.deepEqual(fetched, [], 'nothing is downloaded for them');
  assert(!gateway.loads.includes('multilingual-small'));
  assert.equal((await ask(gateway, 'multilingual-bas')).code, 'unknown_model');
});

test('models that requests may not use are not listed', async () => {
  await using gateway = await startGateway({ installed: INSTALLED, env: { SVC_MODEL_ALLOW: 'cjk' } });
  const { data } = await json(await fetch(`${gateway.base}/v1/models`));
  assert.deepEqual(
    data.map((entry: any) => entry.id),
    ['auto', 'cjk'],
  );
  assert.equal((await fetch(`${gateway.base}/v1/models/european`)).status, 404);
});

test('the operator may load and preload the other models', async () => {
  await using gateway = await startGateway({ installed: INSTALLED, env: { SVC_MODEL_ALLOW: 'cjk' } });
  await gateway.app.preload('multilingual-tiny');
  await admin(gateway, 'european/load');
  await until('both are loaded', () => gateway.loads.includes('european'));
  assert(gateway.loads.includes('multilingual-tiny'));
});

test('however many models are asked for, those in memory stay within SVC_MODEL_MEMORY_MB', async () => {
  await using gateway = await startGateway({
    installed: INSTALLED,
    weightBytes: () => 2000 * MIB, // what a model works with is little beside it
    env: { SVC_MODEL_MEMORY_MB: '5000' },
  });
  for (const [i, model] of ALL.entries()) {
    assert.equal((await ask(gateway, model)).status, 200, model);
    assert.deepEqual((await resident(gateway)).sort(), ALL.slice(Math.max(0, i - 1), i + 1).sort());
  }
});

test('a model that is larger than the memory is refused before it is downloaded or takes the slot', async () => {
  const fetched: string[] = [];
  await using gateway = await startGateway({
    installed: ['multilingual-base', 'voice-activity'],
    weightBytes: (id) => (id === 'multilingual-base' ? 80 * MIB : 0),
    env: { SVC_MODEL_MEMORY_MB: '500' },
    ensure: async (id) => void fetched.push(id),
  });
  const response = await post(gateway, form(speech, { model: 'multilingual-large-v3' }));
  assert.equal(response.status, 503);
  assert.equal(response.headers.get('Retry-After'), null);
  const { error } = await json(response);
  assert.equal(error.code, 'model_too_large');
  assert.match(error.message, /^multilingual-large-v3 needs about \d+ MiB, and models may use 500 MiB/);
  assert.deepEqual(fetched, []);
  assert.equal((await ask(gateway, 'multilingual-base')).status, 200);
});

test('a model that is larger than the memory is not listed, and auto does not choose it', async () => {
  const large = ['multilingual-small', 'multilingual-medium'];
  await using gateway = await startGateway({
    installed: INSTALLED,
    weightBytes: (id) => (large.includes(id) ? 1001 : 1) * MIB,
    env: { SVC_MODEL_MEMORY_MB: '1000', SVC_MODEL_DEFAULT_SIZE: 'small' },
  });
  const { data } = await json(await fetch(`${gateway.base}/v1/models`));
  const ids = data.map((entry: any) => entry.id);
  assert.deepEqual(ids.sort(), ['auto', ...ALL.filter((id) => !large.includes(id))].sort());
  assert.deepEqual(await ask(gateway, 'auto'), { status: 200, served: 'multilingual-base' });
  assert.deepEqual(await ask(gateway, 'multilingual-small'), { status: 503, code: 'model_too_large' });
  const { model, status } = gateway.exchanges.at(-1) ?? {};
  assert.deepEqual([model, status], ['multilingual-small', 503], 'who watches sees which model it is');
});
