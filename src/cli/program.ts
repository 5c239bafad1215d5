/** The command line. Each command has a file of its own; this one gives it the parts it needs. */
import { Command } from 'commander';
import type { Logger } from 'winston';
import { VERSION } from '../app.ts';
import { type Config, ConfigError, readConfig } from '../config.ts';
import { loadNative } from '../engine/addon.ts';
import { type ChosenDevice, chooseDevice } from '../engine/device.ts';
import { missingEngine } from '../engine/missing-engine.ts';
import type { NativeEngine } from '../engine/types.ts';
import { fullMessage } from '../errors.ts';
import { ALL_WEIGHTS } from '../models/catalogue.ts';
import { createHubSource } from '../models/hub.ts';
import { createPackageIndexSource } from '../models/package-index.ts';
import { createModelStore, type ModelStore } from '../models/store.ts';
import { createLog } from '../observability/log.ts';
import { modelIdFor } from '../transcription/routing.ts';
import { registerCompletionCommand } from './completion.ts';
import { registerConfigCommand } from './config.ts';
import { registerDoctorCommand } from './doctor.ts';
import { registerLiveCommand } from './live.ts';
import { checkModelSettings } from './model-settings.ts';
import { registerModelsCommand } from './models.ts';
import { startPrivateGateway } from './private-gateway.ts';
import { registerReplayCommand } from './replay.ts';
import { registerServeCommand } from './serve.ts';
import { registerTranscribeCommand } from './transcribe.ts';

/** What the commands need of the native engine. */
interface Engine {
  engine: NativeEngine;
  device: ChosenDevice;
  store: ModelStore;
}

type EngineFor = (config: Config, log: Logger) => Engine;

/**
 * Runs the command in `argv` and sets the exit code of the process: 2 for a wrong setting, 1 for another failure.
 * @param engineFor tests give an engine of their own
 */
export async function run(argv: string[], engineFor?: EngineFor): Promise<void> {
  outliveReaders();
  try {
    await createProgram(engineFor).parseAsync(argv);
  } catch (error) {
    process.stderr.write(`voxgate: ${fullMessage(error)}\n`);
    process.exitCode = error instanceof ConfigError ? 2 : 1;
  }
}

export function createProgram(engineFor: EngineFor = openEngine): Command {
  const program = new Command('voxgate')
    .description('One HTTP gateway for speech-to-text, text-to-speech and chat, speaking the OpenAI API')
    .version(VERSION);
  registerServeCommand(program, {
    settings() {
      const { config, warnings } = readConfig();
      checkModelSettings(config);
      return { config, warnings, log: createLog(config.logLevel) };
    },
    open: (settings) => ({ ...settings, ...engineFor(settings.config, settings.log) }),
  });
  registerTranscribeCommand(program, {
    config() {
      const { config } = readConfig();
      checkModelSettings(config);
      return config;
    },
    start(config) {
      const log = createLog(config.logLevel === 'info' ? 'warn' : config.logLevel);
      return startPrivateGateway(config, { ...engineFor(config, log), log });
    },
  });
  registerModelsCommand(program, {
    openStore: async () => {
      const { config } = readConfig();
      const log = createLog(config.logLevel === 'info' ? 'warn' : config.logLevel);
      return engineFor(config, log).store;
    },
    modelId: (name) => modelIdFor(name, readConfig().config),
  });
  registerConfigCommand(program);
  registerDoctorCommand(program, () => {
    const { config } = readConfig();
    checkModelSettings(config);
    return { config, ...engineFor(config, createLog('error')) };
  });
  registerReplayCommand(program, () => readConfig().config);
  registerLiveCommand(program, () => readConfig().config);
  registerCompletionCommand(
    program,
    ALL_WEIGHTS.map(({ id }) => id),
  );
  return program;
}

/**
 * Lets the process go on when what it prints cannot be written: a log collector restarts, a terminal is closed, the
 * disk is full. The lines are lost. Without a listener, Node ends the process at the first such line.
 */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** Opens the engine, the device chosen for it, and a model store with the precision that suits the device. */
function openEngine(config: Config, log: Logger): Engine {
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
    const engine = loadNative(undefined, { gpus: config.device !== 'cpu' });
    // A call that fails throws, so what the libraries print is needed only for debugging.
    engine.setLogger((level, message) => log.debug(`${level}: ${message.trimEnd()}`));
    return engine;
  } catch (error) {
    log.error((error as Error).message);
    return missingEngine();
  }
}
