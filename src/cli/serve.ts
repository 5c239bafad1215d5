/**
 * `voxgate serve` starts the gateway and stops it on SIGINT, SIGTERM or SIGHUP. With `--supervised` this process only starts
 * another one that does so (supervise.ts).
 */
import { type Command, Option } from 'commander';
import type { Logger } from 'winston';
import type { App } from '../app.ts';
import type { Config } from '../config/config.ts';
import { createCrashes } from '../crashes/crashes.ts';
import { type ChosenDevice, explainCpu } from '../engine/device.ts';
import { hasGpu } from '../engine/nvidia.ts';
import type { NativeEngine } from '../engine/types.ts';
import type { ModelStore } from '../models/store.ts';
import { VERSION } from '../version.ts';
import { missingWeights } from './doctor-checks.ts';
import { folderChecks } from './folder-checks.ts';
import { bindSockets } from './listening-sockets.ts';
import { examples } from './options.ts';
import { preload, startGateway } from './start-gateway.ts';
import { INHERITS, notifySupervisor, STOP, sendHeartbeats, supervise } from './supervise.ts';
import { systemdHeartbeat } from './systemd.ts';

export interface ServeSettings {
  config: Config;
  warnings: string[];
  log: Logger;
}

export interface ServeDeps extends ServeSettings {
  engine: NativeEngine;
  device: ChosenDevice;
  store: ModelStore;
}

/** What a server that has a supervisor is told of itself. */
interface Origin {
  child?: boolean;
  /** Its sockets, too, are the supervisor's. */
  inherits?: boolean;
}

/** The time that the rest of a stop has, after the requests under way have had theirs; then the process exits anyway. */
const GRACE_MS = 10_000;

/** @param open loads the engine, which a supervisor does without */
export function registerServeCommand(
  program: Command,
  { settings, open }: { settings(): ServeSettings; open(settings: ServeSettings): ServeDeps },
): void {
  program
    .command('serve', { isDefault: false })
    .description('start the gateway')
    .addHelpText(
      'after',
      examples(
        'voxgate serve',
        'SVC_PORT=9000 SVC_MODEL_PRELOAD=multilingual-base voxgate serve --supervised',
      ),
    )
    .option('--supervised', 'run in a child process, and restart it when it crashes')
    .addOption(new Option('--child', 'the process that --supervised starts').hideHelp())
    .addOption(new Option(INHERITS, 'its sockets are those of --supervised').hideHelp())
    .action(async (options: { supervised?: true } & Origin) => {
      const set = settings();
      if (options.supervised) process.exitCode = await superviseServer(set);
      else await serve(open(set), options);
    });
}

async function superviseServer({ config, log }: ServeSettings): Promise<number> {
  const [, script = '', ...args] = process.argv;
  const server = args.map((arg) => (arg === '--supervised' ? '--child' : arg));
  return await supervise({
    command: [...process.execArgv, script, ...server],
    crashes: createCrashes(config.crashDir),
    log,
    bind: () => bindSockets(config),
    onHeartbeat: systemdHeartbeat(config, log),
    stopMs: config.drainMs + GRACE_MS + 2000,
  });
}

async function serve(
  { config, warnings, log, engine, device, store }: ServeDeps,
  { child: isChild = false, inherits = false }: Origin,
): Promise<void> {
  const onSignal = exitWhenAsked();
  for (const warning of warnings) log.warn(warning);
  exitOnUncaught(log);
  if (engine.info.families.length > 0) {
    const { devices, gpuLibraries } = engine.info;
    const cpu = explainCpu(config.device, devices, { libraries: gpuLibraries, present: hasGpu() });
    if (cpu !== null) log.log(cpu.level, cpu.message);
  }
  const crashes = createCrashes(config.crashDir);
  const onHolder = (requestId: string | null) => notifySupervisor({ holder: requestId });
  const deps = { log, store, engine, device, crashes, onHolder };
  const { app, base, wyoming } = await startGateway(config, deps, inherits);
  log.info(`voxgate ${VERSION} listens on ${base}`, {
    models: config.modelDir,
    threads: config.threads,
    device: engine.info.families.length === 0 ? 'none' : device.device,
    cpu: engine.info.cpuLevel || 'none',
    devices: engine.info.devices.map(({ name }) => name).join(',') || 'none',
    ...(wyoming && { wyoming }),
  });
  stopWhenAsked(app, { drainMs: config.drainMs, isChild, log, onSignal });
  void warnAboutFolders(config, log); // a file system that hangs must not keep the models from loading
  const lacks = config.modelDownload ? null : missingWeights(config, store);
  if (lacks !== null) log.error(lacks);
  const audioProblem = await app.audioProblem();
  if (audioProblem !== null) log.warn(audioProblem);
  await preload(app, config, { log });
}

/** Says which folders cannot be written, before a request finds out. */
async function warnAboutFolders(config: Config, log: Logger): Promise<void> {
  for (const { name, run } of folderChecks(config)) {
    const { state, says } = await run();
    if (state !== 'ok') log[state === 'problem' ? 'error' : 'warn'](`folder of ${name}: ${says}`);
  }
}

/**
 * Until the gateway serves, a stop ends the process at once, and in order: it is no crash. The listeners stay, because a
 * signal that has come and waits for the event loop is lost with them.
 * @returns sets what a signal does from then on
 */
function exitWhenAsked(): (then: (signal: NodeJS.Signals) => void) => void {
  let whenAsked = (_signal: NodeJS.Signals): void => process.exit(0);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => whenAsked(signal));
  return (then) => {
    whenAsked = then;
  };
}

/** An exception that nothing catches ends the process with 1, and the log and the supervisor have its stack. */
function exitOnUncaught(log: Logger): void {
  // Node reports a rejection that nothing handles here too, unless there is a listener of its own for it.
  process.on('uncaughtException', (error: unknown, origin) => {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log.error(`${origin}: ${stack}`);
    notifySupervisor({ exception: stack });
    process.exit(1);
  });
}

interface Stopping {
  drainMs: number;
  isChild: boolean;
  log: Logger;
  onSignal: ReturnType<typeof exitWhenAsked>;
}

function stopWhenAsked(app: App, { drainMs, isChild, log, onSignal }: Stopping): void {
  let stopping = false;
  const stop = (why: string) => {
    if (stopping) return;
    stopping = true;
    log.info(`${why}: stopping`);
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
  };
  // A second signal exits at once. The supervisor's message is no signal: a service manager may signal both processes,
  // and either may arrive first.
  let signaled = false;
  onSignal((signal) => {
    // The terminal was closed. Its shell may say so once more, so this is never a second signal.
    if (signal === 'SIGHUP') return stop(signal);
    if (signaled) process.exit(1);
    signaled = true;
    stop(signal);
  });
  if (!isChild) return;
  sendHeartbeats();
  process.on('message', (message) => {
    if (message === STOP) stop('asked by the supervisor');
  });
  process.on('disconnect', () => stop('the supervisor has ended'));
  process.channel?.unref(); // it must not keep the process alive after the stop
  if (!process.connected) stop('the supervisor has ended');
}
