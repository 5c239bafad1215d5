/** Runs a real gateway with real weights, as `npm start` would. Without weights it gives null and prints the reason. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import winston from 'winston';
import { type App, buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { createModelStore, type ModelStore } from '../../src/models/store.ts';

export { JFK } from '../wav.ts';

export const MODEL = 'multilingual-base';
export const JFK_TEXT =
  'And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.';

export interface RealGateway extends AsyncDisposable {
  base: string;
  /** The port of Wyoming; 0 unless the settings have one. */
  wyomingPort: number;
  app: App;
}

/**
 * @param files weights to use instead of the installed ones, by model id
 * @param env settings besides those of this process
 */
export async function startRealGateway(
  files: Record<string, string> = {},
  env: Record<string, string> = {},
): Promise<RealGateway> {
  const tmp = mkdtempSync(join(tmpdir(), 'voxgate-model-test-'));
  const { config } = readConfig({ ...process.env, ...env, SVC_PORT: '0', SVC_TMP_DIR: tmp });
  const engine = loadNative();
  const log = winston.createLogger({ silent: true });
  const store = createModelStore({
    dir: config.modelDir,
    download: false,
    precision: 'q8_0',
    sources: [],
    quantize: (job) => engine.quantize(job),
    log,
  });
  const app = buildApp(config, {
    log,
    engine,
    device: { device: 'cpu', gpu: false },
    store: { ...store, ...overlay(store, files) },
    crashes: { list: () => [] },
  });
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve));
  const { port } = app.server.address() as AddressInfo;
  if (config.wyomingPort !== undefined)
    await new Promise<void>((resolve) => app.wyoming.listen(config.wyomingPort, '127.0.0.1', resolve));
  return {
    base: `http://127.0.0.1:${port}`,
    wyomingPort: (app.wyoming.address() as AddressInfo | null)?.port ?? 0,
    app,
    async [Symbol.asyncDispose]() {
      await app.close();
      rmSync(tmp, { recursive: true, force: true });
    },
  };
}

function overlay(
  store: ModelStore,
  files: Record<string, string>,
): Pick<ModelStore, 'isInstalled' | 'ensure'> {
  return {
    isInstalled: (id) => files[id] !== undefined || store.isInstalled(id),
    ensure: async (id, options) => {
      const path = files[id];
      return path === undefined ? await store.ensure(id, options) : { path };
    },
  };
}

/** Skips the test, saying why, on a machine where `npm run check` has not fetched the weights. */
export function needsWeights(t: TestContext, ...others: string[]): boolean {
  const { config } = readConfig();
  const store = createModelStore({
    dir: config.modelDir,
    download: false,
    precision: 'q8_0',
    sources: [],
    quantize: null,
    log: { info: () => undefined, warn: () => undefined },
  });
  const missing = [MODEL, VOICE_ACTIVITY.id, ...others].filter((id) => !store.isInstalled(id));
  if (missing.length === 0) return true;
  t.skip(
    `weights of ${missing.join(', ')} are not in ${config.modelDir}: npx voxgate models pull ${missing[0]}`,
  );
  return false;
}

/** Keeps only the words: case, punctuation and spacing are the model's taste. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
