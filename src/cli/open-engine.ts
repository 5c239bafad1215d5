/** Opens what transcribes: the native engine, the device chosen for it, and the store of the weights. */
import type { Logger } from 'winston';
import { type Config, ConfigError } from '../config/config.ts';
import { loadNative } from '../engine/addon.ts';
import { type ChosenDevice, chooseDevice } from '../engine/device.ts';
import { missingEngine } from '../engine/missing-engine.ts';
import { type LogLevel, type NativeEngine, NativeError } from '../engine/types.ts';
import { createHubSource } from '../models/hub.ts';
import { createPackageIndexSource } from '../models/package-index.ts';
import { createModelStore, type ModelStore } from '../models/store.ts';
import { createLog } from '../observability/log.ts';

/** What commands need of the native engine. */
export interface Engine {
  engine: NativeEngine;
  device: ChosenDevice;
  store: ModelStore;
  /** The errors that the native libraries log while they look for GPUs. They come a moment after the engine. */
  gpuErrors?: readonly string[];
}

/** Those of the beginning tell why no GPU was found. */
const MOST_GPU_ERRORS = 16;

/** Opens the engine, the device chosen for it, and a model store with the precision that suits the device. */
export function openEngine(config: Config, log: Logger): Engine {
  const gpuErrors: string[] = [];
  const engine = loadEngine(config, log, gpuErrors);
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
  return { engine, device, store, gpuErrors };
}

function loadEngine(config: Config, log: Logger, gpuErrors: string[]): NativeEngine {
  // A call that fails throws, so what the libraries print is needed only for debugging, and where no GPU is found.
  const write = (level: LogLevel, message: string) => {
    log.debug(`${level}: ${message.trimEnd()}`);
    if (level === 'error' && gpuErrors.length < MOST_GPU_ERRORS) gpuErrors.push(message.trimEnd());
  };
  try {
    return loadNative(undefined, { cpu: config.cpu, gpus: config.device !== 'cpu', log: write });
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
