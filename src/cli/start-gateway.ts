/** Lets a gateway listen: on HTTP, and on Wyoming where that has a port. */
import type { AddressInfo, Server } from 'node:net';
import type { App, AppDeps } from '../app.ts';
import type { Config } from '../config/config.ts';
import { fullMessage } from '../errors.ts';

export interface Started {
  app: App;
  address: AddressInfo;
  /** Null when Wyoming is not spoken. */
  wyoming: AddressInfo | null;
}

/** @throws Error that names the address, and the setting of a port that is in use */
export async function startGateway(config: Config, deps: AppDeps): Promise<Started> {
  // Most commands need no gateway, and loading it takes most of their time.
  const { buildApp } = await import('../app.ts');
  const app = buildApp(config, deps);
  const { host, port, wyomingPort } = config;
  try {
    const address = await listen(app.server, host, port, 'SVC_PORT');
    const speaks = wyomingPort !== undefined;
    const wyoming = speaks ? await listen(app.wyoming, host, wyomingPort, 'SVC_WYOMING_PORT') : null;
    return { app, address, wyoming };
  } catch (error) {
    await app.close(); // what listens already would keep the process alive
    throw error;
  }
}

/** @param setting that of the port */
function listen(server: Server, host: string, port: number, setting: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE' ? `; ${setting} chooses another port` : '';
      reject(new Error(`Cannot listen on ${host}:${port}: ${error.message}${inUse}`));
    });
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** Loads the models of SVC_MODEL_PRELOAD. One that cannot be loaded is an error in the log, and the others are loaded. */
export async function preload(
  app: App,
  { modelPreload }: Pick<Config, 'modelPreload'>,
  { log }: Pick<AppDeps, 'log'>,
): Promise<void> {
  for (const model of modelPreload)
    await app.preload(model).catch((error) => log.error(`cannot preload ${model}: ${fullMessage(error)}`));
}
