/** A gateway for one process: on loopback, with a key that nobody else has, and without records of its traffic. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AppDeps, buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import { ownBaseUrl } from '../http/address.ts';
import type { ModelProgress } from '../models/source.ts';
import type { ModelStore } from '../models/store.ts';
import { createProgressView } from './progress.ts';
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
  const observability = { ...config.observability, metrics: false, accessLog: false, payload: false };
  const app = buildApp(
    { ...config, host: '127.0.0.1', port: 0, apiKeys: [key], maxWaitSec: BUSY_SEC, observability },
    { ...parts, store: shown, crashes: { list: () => [] } },
  );
  app.server.listen(0, '127.0.0.1');
  await once(app.server, 'listening');
  return { base: ownBaseUrl(app.server) ?? '', key, [Symbol.asyncDispose]: () => app.close() };
}
