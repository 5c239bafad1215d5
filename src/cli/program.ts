/** The command line: one file a command, wired here to what they need. */
import { Command } from 'commander';
import type { Logger } from 'winston';
import { VERSION } from '../app.ts';
import { type Config, ConfigError, readConfig } from '../config.ts';
import { loadNative } from '../engine/addon.ts';
import { chooseDevice } from '../engine/device.ts';
import { type NativeEngine } from '../engine/types.ts';
import { createHubSource } from '../models/hub.ts';
import { createPackageIndexSource } from '../models/package-index.ts';
import { createModelStore, type ModelStore } from '../models/store.ts';
import { createLog } from '../observability/log.ts';
import { registerModelsCommand } from './models.ts';
import { registerReplayCommand } from './replay.ts';
import { registerServeCommand } from './serve.ts';

export async function run(argv: string[]): Promise<void> {
  const program = new Command('voxgate')
    .description('One HTTP gateway for speech-to-text, text-to-speech and chat, speaking the OpenAI API')
    .version(VERSION);
  registerServeCommand(program, () => {
    const { config, warnings } = readConfig();
    const log = createLog(config.logLevel);
    return {
      config,
      warnings,
      log,
      loadEngine: () => loadEngine(log),
      openStore: (engine) => openStore(config, log, engine),
    };
  });
  registerModelsCommand(program, {
    openStore: async () => {
      const { config } = readConfig();
      const log = createLog(config.logLevel === 'info' ? 'warn' : config.logLevel);
      return openStore(config, log, loadEngine(log));
    },
  });
  registerReplayCommand(program, () => readConfig().config);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`voxgate: ${message}\n`);
    process.exitCode = error instanceof ConfigError ? 2 : 1;
  }
}

function openStore(config: Config, log: Logger, engine: NativeEngine | null): ModelStore {
  return createModelStore({
    dir: config.modelDir,
    download: config.modelDownload,
    precision: chooseDevice(config.device, engine?.info.devices ?? []).gpu ? 'f16' : 'q8_0',
    sources: [
      createHubSource({ endpoint: config.hubEndpoint, token: config.hubToken }),
      createPackageIndexSource({ env: config.environment }),
    ],
    quantize: engine === null ? null : (job) => engine.quantize(job),
    log,
  });
}

function loadEngine(log: Logger): NativeEngine | null {
  try {
    const engine = loadNative();
    // What goes wrong in a call is thrown from it; the libraries' own words are for who looks closer.
    engine.setLogger((level, message) => log.debug(`${level}: ${message.trimEnd()}`));
    return engine;
  } catch (error) {
    log.error((error as Error).message);
    return null;
  }
}
