/**
 * The command line. Each command has a file of its own; this one gives it the parts it needs. To load all of them takes
 * longer than most commands run, so a command that is named is loaded alone.
 */
import { Command, CommanderError } from 'commander';
import type { Logger } from 'winston';
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { inWords } from '../errors.ts';
import type { RouteRequest } from '../transcription/routing.ts';
import { VERSION } from '../version.ts';
import type { Engine } from './open-engine.ts';
import type { Transcriber } from './question.ts';

type EngineFor = (config: Config, log: Logger) => Engine;

/**
 * Runs the command in `argv` and sets the exit code of the process: 2 for a wrong setting, 1 for another failure.
 * @param engineFor tests give an engine of their own
 */
export async function run(argv: string[], engineFor?: EngineFor): Promise<void> {
  outliveReaders();
  process.stdout.once('error', reportLostOutput);
  try {
    const program = (await createProgram(engineFor, argv[2])).hook('preAction', (_program, command) => {
      if (command.name() === 'serve') process.stdout.removeListener('error', reportLostOutput);
    });
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

/** In the order of the help. */
const COMMANDS: readonly {
  name: string;
  register(program: Command, engineFor?: EngineFor): Promise<void>;
}[] = [
  { name: 'serve', register: registerServe },
  { name: 'transcribe', register: registerTranscribe },
  { name: 'models', register: registerModels },
  {
    name: 'config',
    register: async (program) => (await import('./config.ts')).registerConfigCommand(program),
  },
  { name: 'doctor', register: registerDoctor },
  {
    name: 'replay',
    async register(program) {
      const { registerReplayCommand } = await import('./replay.ts');
      registerReplayCommand(program, () => readConfig().config);
    },
  },
  {
    name: 'live',
    async register(program) {
      const { registerLiveCommand } = await import('./live.ts');
      registerLiveCommand(program, () => readConfig().config);
    },
  },
  { name: 'build', register: async (program) => (await import('./build.ts')).registerBuildCommand(program) },
];

/** @param named the command that is wanted; where it is none of `COMMANDS`, all of them are loaded */
export async function createProgram(engineFor?: EngineFor, named = ''): Promise<Command> {
  const program = new Command('voxgate')
    .exitOverride() // an exit of its own would not wait until its help is written
    .description('One HTTP gateway for speech-to-text, text-to-speech and chat, speaking the OpenAI API')
    .version(VERSION);
  const wanted = COMMANDS.filter(({ name }) => name === named);
  for (const { register } of wanted.length > 0 ? wanted : COMMANDS) await register(program, engineFor);
  if (wanted.length === 0) await registerCompletion(program);
  return program;
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

async function registerServe(program: Command, engineFor?: EngineFor): Promise<void> {
  const { registerServeCommand } = await import('./serve.ts');
  const { checkedSettings } = await import('./model-settings.ts');
  const { createLog } = await import('../observability/log.ts');
  const { openEngine } = await import('./open-engine.ts');
  const open = engineFor ?? openEngine;
  registerServeCommand(program, {
    settings() {
      const settings = checkedSettings();
      return { ...settings, log: createLog(settings.config.logLevel) };
    },
    open: (settings) => ({ ...settings, ...open(settings.config, settings.log) }),
  });
}

async function registerTranscribe(program: Command, engineFor?: EngineFor): Promise<void> {
  const { registerTranscribeCommand } = await import('./transcribe.ts');
  const { checkedSettings } = await import('./model-settings.ts');
  registerTranscribeCommand(program, {
    config: () => checkedSettings().config,
    start: (config, request) => startHere(config, engineFor, request),
  });
}

async function startHere(
  config: Config,
  engineFor?: EngineFor,
  request?: RouteRequest,
): Promise<Transcriber> {
  const { startTranscriber } = await import('./transcriber.ts');
  const { openEngine, quietLog } = await import('./open-engine.ts');
  const log = quietLog(config);
  return startTranscriber(config, { ...(engineFor ?? openEngine)(config, log), log }, request);
}

async function registerModels(program: Command, engineFor?: EngineFor): Promise<void> {
  const { registerModelsCommand } = await import('./models.ts');
  const { openModels } = await import('./open-models.ts');
  const { openEngine } = await import('./open-engine.ts');
  const { checkedSettings } = await import('./model-settings.ts');
  registerModelsCommand(program, {
    open: () => openModels(engineFor ?? openEngine),
    start: () => startHere(checkedSettings().config, engineFor),
  });
}

async function registerDoctor(program: Command, engineFor?: EngineFor): Promise<void> {
  const { registerDoctorCommand } = await import('./doctor.ts');
  const { checkedSettings } = await import('./model-settings.ts');
  const { createLog } = await import('../observability/log.ts');
  const { openEngine } = await import('./open-engine.ts');
  registerDoctorCommand(program, () => {
    const settings = checkedSettings();
    return { ...settings, ...(engineFor ?? openEngine)(settings.config, createLog('error')) };
  });
}

/** It completes all the commands that were registered before it. */
async function registerCompletion(program: Command): Promise<void> {
  const { registerCompletionCommand } = await import('./completion.ts');
  const { ALL_WEIGHTS } = await import('../models/catalogue.ts');
  const { MODEL_IDS } = await import('../transcription/routing.ts');
  registerCompletionCommand(program, { stored: ALL_WEIGHTS.map(({ id }) => id), requested: MODEL_IDS });
}
