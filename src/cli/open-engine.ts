/** Opens what transcribes: the native engine, the device chosen for it, and the store of the weights. */
import type { Logger } from 'winston';
import { type Config, ConfigError } from '../config/config.ts';
import { loadNative } from '../engine/addon.ts';
import { type ChosenDevice, chooseDevice } from '../engine/device.ts';
import { missingEngine } from '../engine/missing-engine.ts';
import { type NativeEngine, NativeError } from '../engine/types.ts';
import { createHubSource } from '../models/hub.ts';
import { createPackageIndexSource } from '../models/package-index.ts';
import { createModelStore, type ModelStore } from '../models/store.ts';
import { createLog } from '../observability/log.ts';

/** What commands need of the native engine. */
export interface Engine {
  engine: NativeEngine;
  device: ChosenDevice;
  store: ModelStore;
}

/** Opens the engine, the device chosen for it, and a model store with the precision that suits the device. */
export function openEngine(config: Config, log: Logger): Engine {
  const engine = loadEngine(config, log);
  const device = chooseDevice(config.device, engine.info.devices);
  const store = createModelStore({
    dir: config.modelDir,
    download: config.modelDownload,
    precision: device.gpu ? 'f16' : 'q8_0',
    sources: [
      createHubSource({ endpoint: config.hubEndpoint, token: config.hubToken }),
      createPackageIndexSource({ env: config.environment }),
    ],
    quantize: engine.info.families.includes('whisper') ? (job) => engine.quantize(job) : null,
    log,
  });
  return { engine, device, store };
}

function loadEngine(config: Config, log: Logger): NativeEngine {
  try {
    const engine = loadNative(undefined, { cpu: config.cpu, gpus: config.device !== 'cpu' });
    // A call that fails throws, so what the libraries print is needed only for debugging.
    engine.setLogger((level, message) => log.debug(`${level}: ${message.trimEnd()}`));
    return engine;
  } catch (error) {
    const message = (error as Error).message;
    if (error instanceof NativeError && error.code === 'invalid_argument')
      throw new ConfigError(`SVC_CPU cannot be "${config.cpu}": ${message}`);
    log.error(message);
    return missingEngine();
  }
}

/** The log of a command that is no server: warnings and errors only, unless SVC_LOG_LEVEL asks for debug output. */
export const quietLog = ({ logLevel }: Config): Logger => createLog(logLevel === 'info' ? 'warn' : logLevel);
