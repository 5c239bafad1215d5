/** Lets a gateway listen: on HTTP, and on Wyoming where that has a port. */
import { baseUrl } from '../address.ts';
import type { App, AppDeps } from '../app.ts';
import type { Config } from '../config/config.ts';
import { fullMessage } from '../errors.ts';
import { FIRST_SOCKET, listen, listenAddresses } from './listening-sockets.ts';

/**
 * @param inherits whether the sockets come from the supervisor
 * @throws Error that names the address, and the setting of a port that is in use
 */
export async function startGateway(config: Config, deps: AppDeps, inherits = false) {
  // Most commands need no gateway, and loading it takes most of their time.
  const { buildApp } = await import('../app.ts');
  const app = buildApp(config, deps);
  const [http, wyoming] = listenAddresses(config);
  const [httpSocket, wyomingSocket] = inherits ? [FIRST_SOCKET, FIRST_SOCKET + 1] : [null, null];
  try {
    const port = await listen(app.server, http, httpSocket);
    const wyomingPort = wyoming ? await listen(app.wyoming, wyoming, wyomingSocket) : 0;
    return {
      app,
      /** Where it listens, as the base of its URLs. */
      base: baseUrl(http.host, port),
      /** 0 at a Unix socket. */
      port,
      /** Where it speaks Wyoming; null when it does not. */
      wyoming: wyoming ? baseUrl(wyoming.host, wyomingPort, 'tcp') : null,
    };
  } catch (error) {
    await app.close(); // what listens already would keep the process alive
    throw error;
  }
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
