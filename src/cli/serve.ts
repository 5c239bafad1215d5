/** `voxgate serve` starts the gateway and stops it on SIGINT or SIGTERM. */
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import type { Logger } from 'winston';
import { type App, buildApp, VERSION } from '../app.ts';
import type { Config } from '../config.ts';
import { type ChosenDevice, explainCpu, hasGpu } from '../engine/device.ts';
import type { NativeEngine } from '../engine/types.ts';
import { fullMessage } from '../errors.ts';
import { baseUrl } from '../http/address.ts';
import type { ModelStore } from '../models/store.ts';

export interface ServeDeps {
  config: Config;
  warnings: string[];
  log: Logger;
  engine: NativeEngine;
  device: ChosenDevice;
  store: ModelStore;
}

/** The time that the rest of a stop has, after the requests under way have had theirs; then the process exits anyway. */
const GRACE_MS = 10_000;

export function registerServeCommand(program: Command, open: () => ServeDeps): void {
  program
    .command('serve', { isDefault: false })
    .description('start the gateway')
    .action(async () => {
      await serve(open());
    });
}

async function serve({ config, warnings, log, engine, device, store }: ServeDeps): Promise<void> {
  for (const warning of warnings) log.warn(warning);
  if (engine.info.families.length > 0) {
    const { devices, cudaLibrary } = engine.info;
    const cpu = explainCpu(config.device, devices, { library: cudaLibrary, present: hasGpu() });
    if (cpu !== null) log.log(cpu.level, cpu.message);
  }
  const app = buildApp(config, { log, store, engine, device });
  const address = await listen(app, config);
  log.info(`voxgate ${VERSION} listens on ${address}`, {
    models: config.modelDir,
    threads: config.threads,
    device: engine.info.families.length === 0 ? 'none' : device.device,
    devices: engine.info.devices.map(({ name }) => name).join(',') || 'none',
  });
  stopOnSignals(app, config, log);
  const audioProblem = await app.audioProblem();
  if (audioProblem !== null) log.warn(audioProblem);
  for (const model of config.modelPreload) {
    await app.preload(model).catch((error) => log.error(`cannot preload ${model}: ${fullMessage(error)}`));
  }
}

function listen(app: App, config: Config): Promise<string> {
  return new Promise((resolve, reject) => {
    app.server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE' ? '; SVC_PORT chooses another port' : '';
      reject(new Error(`Cannot listen on ${config.host}:${config.port}: ${error.message}${inUse}`));
    });
    app.server.listen(config.port, config.host, () => {
      const { address, port } = app.server.address() as AddressInfo;
      resolve(baseUrl(address, port));
    });
  });
}

function stopOnSignals(app: App, { drainMs }: Config, log: Logger): void {
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1); // a second signal exits at once
      stopping = true;
      log.info(`${signal}: stopping`);
      setTimeout(() => process.exit(1), drainMs + GRACE_MS).unref();
      app.close(drainMs).then(
        () => {
          process.exitCode = 0;
        },
        (error: Error) => {
          log.error('stopping failed', { error: error.message });
          process.exitCode = 1;
        },
      );
    });
  }
}
