/** Supervises a command of Node, and does not wait as long for its heartbeats as `voxgate serve --supervised`. */
import { supervise } from '../../src/cli/supervise.ts';
import { createCrashes } from '../../src/crashes/crashes.ts';
import { createLog } from '../../src/observability/log.ts';

process.exitCode = await supervise({
  command: process.argv.slice(2),
  crashes: createCrashes(process.env.SVC_CRASH_DIR ?? ''),
  log: createLog('info'),
  stopMs: 5000,
  missedHeartbeats: 5,
});
