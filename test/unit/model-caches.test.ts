/** Models share a GPU of 4 GB, which a scripted engine stands in for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LoadOptions, NativeError, type TranscriptionModel } from '../../src/engine/types.ts';
import { createModelCaches, type ModelCachesDeps } from '../../src/model-caches.ts';

const GB = 1e9;
const CARD_BYTES = 4 * GB;
/** What each takes of the GPU. */
const SIZES: Record<string, number> = {
  'multilingual-base': 0.5 * GB,
  'multilingual-small': 1.5 * GB,
  'multilingual-large-v3-turbo': 3 * GB,
  'multilingual-large-v3': 5 * GB,
};

function world() {
  /** Each model by its device, in the order of their loads. */
  const resident: { id: string; device: string }[] = [];
  const used = () =>
    resident.filter(({ device }) => device !== 'cpu').reduce((sum, { id }) => sum + (SIZES[id] ?? 0), 0);
  async function loadModel({ path: id, device }: LoadOptions): Promise<TranscriptionModel> {
    if (device !== 'cpu' && used() + (SIZES[id] ?? 0) > CARD_BYTES)
      throw new NativeError('out_of_memory', 'CUDA error: out of memory');
    const place = { id, device };
    resident.push(place);
    const model = {
      info: { lanes: 1, memoryBytes: SIZES[id] },
      transcribe: async () => [],
      lane: async () => model,
      close: async () => {
        resident.splice(resident.indexOf(place), 1);
      },
    } as unknown as TranscriptionModel;
    return model;
  }
  const silent = () => undefined;
  const caches = createModelCaches(
    {
      modelKeepAliveMs: Number.POSITIVE_INFINITY,
      modelMemoryBytes: 100 * GB,
      threads: 2,
    },
    {
      log: { info: silent, warn: silent },
      store: { filesOf: () => [], ensure: async (id: string) => ({ path: id }) },
      engine: { loadModel },
      device: { device: 'cuda:0', gpu: true },
      prometheus: { modelLoaded: silent, modelUnloaded: silent },
    } as unknown as ModelCachesDeps,
  );
  return {
    caches,
    lease: (id: string) => caches.models.lease(id),
    use: async (id: string) => (await caches.models.lease(id))[Symbol.asyncDispose](),
    where: () => resident.map(({ id, device }) => `${id} on ${device}`),
  };
}

test('models that fit stay on the GPU together', async () => {
  const { use, where, caches } = world();
  await use('multilingual-base');
  await use('multilingual-large-v3-turbo');
  assert.deepEqual(where(), ['multilingual-base on cuda:0', 'multilingual-large-v3-turbo on cuda:0']);
  await caches.close();
});

test('for a model that has no room the ones idle for the longest leave the GPU, and no more of them', async () => {
  const { use, where, caches } = world();
  await use('multilingual-small');
  await use('multilingual-base');
  await use('multilingual-large-v3-turbo');
  assert.deepEqual(where(), ['multilingual-base on cuda:0', 'multilingual-large-v3-turbo on cuda:0']);
  assert.deepEqual(caches.onCpu(), []);
  await caches.close();
});

test('a model in use keeps its place, and the other goes to the CPU', async () => {
  const { use, lease, where, caches } = world();
  const small = await lease('multilingual-small');
  await use('multilingual-large-v3-turbo');
  assert.deepEqual(where(), ['multilingual-small on cuda:0', 'multilingual-large-v3-turbo on cpu']);
  assert.equal(caches.onCpu()[0]?.model, 'multilingual-large-v3-turbo');
  await small[Symbol.asyncDispose]();
  await caches.close();
});

test('a model that is larger than the GPU goes to the CPU, and the next one has the GPU', async () => {
  const { use, where, caches } = world();
  await use('multilingual-small');
  await use('multilingual-large-v3');
  assert.deepEqual(where(), ['multilingual-large-v3 on cpu']);
  await use('multilingual-base');
  assert.deepEqual(where(), ['multilingual-large-v3 on cpu', 'multilingual-base on cuda:0']);
  await caches.close();
});
