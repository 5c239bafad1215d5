/** The command line. Each command has a file of its own; this one gives it the parts it needs. */
import { Command, CommanderError } from 'commander';
import type { Logger } from 'winston';
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { excerpt, inWords } from '../errors.ts';
import { createModelCaches } from '../model-caches.ts';
import { ALL_WEIGHTS } from '../models/catalogue.ts';
import { createLog } from '../observability/log.ts';
import { createNaming, type Naming } from '../recognition.ts';
import { MODEL_IDS, nearestNames } from '../transcription/routing.ts';
import { VERSION } from '../version.ts';
import { registerBuildCommand } from './build.ts';
import { registerCompletionCommand } from './completion.ts';
import { registerConfigCommand } from './config.ts';
import { registerDoctorCommand } from './doctor.ts';
import { registerLiveCommand } from './live.ts';
import { checkModelSettings } from './model-settings.ts';
import { registerModelsCommand } from './models.ts';
import { type Engine, openEngine, quietLog } from './open-engine.ts';
import { startPrivateGateway } from './private-gateway.ts';
import { registerReplayCommand } from './replay.ts';
import { registerServeCommand } from './serve.ts';
import { registerTranscribeCommand } from './transcribe.ts';

type EngineFor = (config: Config, log: Logger) => Engine;

/**
 * Runs the command in `argv` and sets the exit code of the process: 2 for a wrong setting, 1 for another failure.
 * @param engineFor tests give an engine of their own
 */
export async function run(argv: string[], engineFor?: EngineFor): Promise<void> {
  const program = createProgram(engineFor).hook('preAction', (_program, command) => {
    if (command.name() === 'serve') process.stdout.removeListener('error', reportLostOutput);
  });
  outliveReaders();
  process.stdout.once('error', reportLostOutput);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) process.exitCode = error.exitCode; // commander has said why
      return;
    }
    process.stderr.write(`voxgate: ${inWords(error)}\n`);
    process.exitCode = error instanceof ConfigError ? 2 : 1;
  }
}

export function createProgram(engineFor: EngineFor = openEngine): Command {
  const program = new Command('voxgate')
    .exitOverride() // an exit of its own would not wait until its help is written
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
    start(config, request) {
      const log = quietLog(config);
      return startPrivateGateway(config, { ...engineFor(config, log), log }, request);
    },
  });
  registerModelsCommand(program, {
    async open() {
      const { config } = readConfig();
      const log = quietLog(config);
      const parts = engineFor(config, log);
      const prometheus = { modelLoaded: () => undefined, modelUnloaded: () => undefined };
      const naming = createNaming(config, parts, createModelCaches(config, { ...parts, log, prometheus }));
      return { store: parts.store, modelId: (name) => weightsNamed(name, naming) };
    },
  });
  registerConfigCommand(program);
  registerDoctorCommand(program, () => {
    const { config, warnings } = readConfig();
    checkModelSettings(config);
    return { config, warnings, ...engineFor(config, createLog('error')) };
  });
  registerReplayCommand(program, () => readConfig().config);
  registerLiveCommand(program, () => readConfig().config);
  registerBuildCommand(program);
  registerCompletionCommand(program, {
    stored: ALL_WEIGHTS.map(({ id }) => id),
    requested: MODEL_IDS,
  });
  return program;
}

/**
 * The id of a model that transcribes, or of other weights.
 * @throws Error that suggests the nearest names
 */
function weightsNamed(name: string, { modelId, aliases }: Pick<Naming, 'modelId' | 'aliases'>): string {
  const ids = ALL_WEIGHTS.map(({ id }) => id);
  const id = modelId(name) ?? name;
  if (ids.includes(id)) return id;
  const [nearest, ...others] = nearestNames(name, ids, aliases).slice(0, 3);
  const also = others.length > 0 ? ` (or ${others.join(', ')})` : '';
  throw new Error(
    `There is no model "${excerpt(name)}". Did you mean ${nearest}${also}? voxgate models list shows all of them`,
  );
}

/**
 * Lets the process go on when what it prints cannot be written: a log collector restarts, a terminal is closed, the
 * disk is full. The lines are lost. Without a listener, Node ends the process at the first such line.
 */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/**
 * What a command prints is its result, so losing it is a failure, unless the reader wants no more, as `head` does. The
 * commands that run long end their work at either.
 */
function reportLostOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return;
  process.exitCode = 1;
  process.stderr.write(`voxgate: the output cannot be written: ${inWords(error)}\n`);
}
