/** A request needs weights that are not on disk; a real store asks a hub that serves them or fails to. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { createHubSource } from '../../src/models/hub.ts';
import { createModelStore } from '../../src/models/store.ts';
import type { Weights } from '../../src/models/weights.ts';
import { type HubServer, oneModel, someWeights, startHub } from '../model/hub-server.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until } from './harness.ts';

const weights = someWeights();
const base = oneModel(weights, weights);
const BASE_FILE = 'ggml-base-q8_0.bin';
const VOICE_ACTIVITY_FILE = 'voice-activity.bin';

const withFile = (model: Partial<Weights>, file: string): Weights => {
  const { f16 } = base.files;
  assert(f16);
  return { ...base, ...model, files: { f16: { ...f16, file } } };
};
const catalogue = [
  base,
  withFile({ id: 'multilingual-tiny' }, 'tiny.bin'),
  withFile({ id: VOICE_ACTIVITY.id, family: 'silero', provider: 'voxgate' }, VOICE_ACTIVITY_FILE),
];

interface World extends AsyncDisposable {
  gateway: Gateway;
  hub: HubServer;
}

/** @param onDisk files that are in the models folder from the start */
async function startWorld({
  onDisk = [VOICE_ACTIVITY_FILE],
  download = true,
  stallTimeoutMs = 400,
} = {}): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-downloads-test-'));
  for (const file of onDisk) writeFileSync(join(dir, file), weights);
  const hub = await startHub(weights);
  const limits = { attempts: 2, backoffMs: 5, connectTimeoutMs: 1000, stallTimeoutMs };
  const store = createModelStore({
    dir,
    download,
    precision: 'q8_0',
    sources: [createHubSource({ endpoint: hub.url, limits })],
    quantize: null,
    log: { info() {}, warn() {} },
    catalogue,
  });
  const gateway = await startGateway({ store, env: { SVC_MODEL_DOWNLOAD: download ? 'on' : 'off' } });
  return {
    gateway,
    hub,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await hub.close();
      rmSync(dir, { recursive: true });
    },
  };
}

const transcribe = ({ gateway }: World, model = 'multilingual-base') =>
  post(gateway, form(toneWav(1), { model }));

async function assertUnavailable(response: Response, provider: string, code: string): Promise<void> {
  const { error } = await json(response);
  assert.deepEqual(
    [response.status, error.kind, error.provider, error.code],
    [503, 'network', provider, code],
    JSON.stringify(error),
  );
  assert.equal(response.headers.get('retry-after'), null, 'only a busy slot says when to come back');
  assert.equal(response.headers.get('x-should-retry'), 'false');
}

const everyTime = (hub: HubServer, answer: (response: ServerResponse) => void) => {
  for (let i = 0; i < 10; i++) hub.next.push((_request, response) => answer(response));
};

for (const [what, answer] of [
  ['answers 500', (response) => response.writeHead(500).end()],
  ['answers 404', (response) => response.writeHead(404).end()],
  ['resets the connection', (response) => response.destroy()],
  ['says nothing', () => undefined],
  [
    'stops in the middle',
    (response) => {
      response.writeHead(200, { 'content-length': weights.length });
      response.write(weights.subarray(0, 1000));
    },
  ],
  ['sends other bytes', (response) => response.writeHead(200).end(Buffer.alloc(weights.length))],
] as [string, (response: ServerResponse) => void][]) {
  test(`a hub that ${what} is 503 network of the model, and the next request tries again`, async () => {
    await using world = await startWorld();
    const { gateway, hub } = world;
    everyTime(hub, answer);
    await assertUnavailable(await transcribe(world), 'multilingual', 'download_failed');
    assert(hub.requests.length > 0, 'the hub was asked');
    assert.equal(hub.requests[0]?.url, `/some/repo/resolve/abc/${BASE_FILE}`);
    await until('it was observed', () => gateway.exchanges.length === 1);
    assert.deepEqual([gateway.exchanges[0]?.class, gateway.exchanges[0]?.errorKind], ['5xx', 'network']);
    await until('the upload is gone', () => gateway.uploads().length === 0);

    hub.next.length = 0;
    assert.equal((await transcribe(world)).status, 200);
  });
}

test('a hub that is not there is 503 network of the model', async () => {
  await using world = await startWorld();
  await world.hub.close();
  await assertUnavailable(await transcribe(world), 'multilingual', 'download_failed');
});

test('weights for voice activity that cannot be fetched are 503 network of the gateway', async () => {
  await using world = await startWorld({ onDisk: [BASE_FILE] });
  everyTime(world.hub, (response) => response.writeHead(500).end());
  await assertUnavailable(await transcribe(world), 'voxgate', 'download_failed');
});

test('absent weights are 503 network while downloads are off, and the hub is not asked', async () => {
  await using world = await startWorld({ download: false });
  await assertUnavailable(await transcribe(world), 'multilingual', 'model_not_installed');
  assert.equal(world.hub.requests.length, 0);
});

/** Lets the next file end only when `finish` is called. */
function holdBack(hub: HubServer): { begun(): boolean; finish(): void } {
  let response: ServerResponse | undefined;
  hub.next.push((_request, held) => {
    held.writeHead(200, { 'content-length': weights.length });
    held.write(weights.subarray(0, 1000));
    response = held;
  });
  return { begun: () => response !== undefined, finish: () => response?.end(weights.subarray(1000)) };
}

test('a download does not hold the slot, so others are served meanwhile, then the request that waited', async () => {
  await using world = await startWorld({
    onDisk: [VOICE_ACTIVITY_FILE, 'tiny.bin'],
    stallTimeoutMs: 10_000,
  });
  const { gateway, hub } = world;
  const download = holdBack(hub);
  const waiting = transcribe(world);
  await until('the download has begun', download.begun);
  assert.equal(gateway.app.slot.status().holder, null);
  const other = await transcribe(world, 'multilingual-tiny');
  assert.equal(other.headers.get('x-voxgate-model'), 'multilingual-tiny');
  download.finish();
  const served = await waiting;
  assert.equal(served.status, 200);
  assert.equal(served.headers.get('x-voxgate-model'), 'multilingual-base');
});

test('weights for voice activity are fetched before the slot is taken', async () => {
  await using world = await startWorld({ onDisk: [BASE_FILE], stallTimeoutMs: 10_000 });
  const download = holdBack(world.hub);
  const waiting = transcribe(world);
  await until('the download has begun', download.begun);
  assert.equal(world.gateway.app.slot.status().holder, null);
  download.finish();
  assert.equal((await waiting).status, 200);
});
