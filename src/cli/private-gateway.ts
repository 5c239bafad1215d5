/** A gateway for one process: on loopback, with a key that nobody else has, and without records of its traffic. */
import { randomBytes } from 'node:crypto';
import type { AppDeps } from '../app.ts';
import type { Config } from '../config/config.ts';
import type { ModelProgress } from '../models/source.ts';
import type { ModelStore } from '../models/store.ts';
import { createProgressView } from './model-progress.ts';
import { startGateway } from './start-gateway.ts';
import { BUSY_SEC } from './transcribe-client.ts';

export interface PrivateGateway extends AsyncDisposable {
  base: string;
  key: string | undefined;
}

/** It shows the progress of what it downloads on stderr. */
export async function startPrivateGateway(
  config: Config,
  { store, ...parts }: Pick<AppDeps, 'engine' | 'device' | 'store' | 'log'>,
): Promise<PrivateGateway> {
  const key = randomBytes(24).toString('base64url');
  const view = createProgressView();
  const shown: ModelStore = {
    ...store,
    ensure: (id, options) =>
      store
        .ensure(id, {
          ...options,
          onProgress(progress: ModelProgress) {
            view.update(progress);
            options?.onProgress?.(progress);
          },
        })
        .finally(() => view.close()),
  };
  const off = { metrics: false, accessLog: false, payload: false };
  // What is in the folders belongs to a gateway that serves, which may have other limits.
  const forever = Number.POSITIVE_INFINITY;
  const kept = { logMaxDays: forever, logMaxGb: forever, payloadMaxDays: forever, payloadMaxGb: forever };
  const observability = { ...config.observability, ...off, ...kept };
  const own = {
    host: '127.0.0.1',
    port: 0,
    wyomingPort: undefined,
    apiKeys: [key],
    adminKeys: [],
    keyNames: new Map(),
    maxWaitSec: BUSY_SEC,
  };
  const { app, base } = await startGateway(
    { ...config, ...own, observability },
    { ...parts, store: shown, crashes: { list: () => [] } },
  );
  return { base, key, [Symbol.asyncDispose]: () => app.close() };
}
