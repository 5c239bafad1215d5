/**
 * Supervises a command of Node, and does not wait as long for its heartbeats as `voxgate serve --supervised`. The first
 * argument says for how long it waits for the next server, in ms.
 */
import { bindSockets } from '../../src/cli/listening-sockets.ts';
import { supervise } from '../../src/cli/supervise.ts';
import { readConfig } from '../../src/config/config.ts';
import { createCrashes } from '../../src/crashes/crashes.ts';
import { createLog } from '../../src/observability/log.ts';

const { config } = readConfig();
const [, , patienceMs, ...command] = process.argv;
process.exitCode = await supervise({
  command,
  crashes: createCrashes(config.crashDir),
  log: createLog('info'),
  bind: () => bindSockets(config),
  onHeartbeat: () => undefined,
  stopMs: 5000,
  missedHeartbeats: 5,
  patienceMs: Number(patienceMs),
});
