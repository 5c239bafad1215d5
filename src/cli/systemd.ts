/**
 * Tells systemd, for a unit with `Type=notify` and `WatchdogSec=`, that the server lives. Each message follows from a
 * heartbeat of the server, so systemd hears nothing while an event loop stands still, the supervisor's own included.
 */
import { spawn } from 'node:child_process';
import type { Logger } from 'winston';
import type { Config } from '../config/config.ts';

/** The messages within the time after which systemd ends the service: one of them may be lost. */
const MESSAGES = 3;
/** systemd takes a message at once. */
const LIMIT_MS = 10_000;

/**
 * Returns what is called with each heartbeat. The program of systemd sends the messages, because Node cannot send
 * datagrams to a Unix socket.
 */
export function systemdHeartbeat(
  { systemd, environment }: Pick<Config, 'systemd' | 'environment'>,
  log: Pick<Logger, 'warn'>,
): () => void {
  const { notifySocket, watchdogMs } = systemd;
  let next = notifySocket ? 0 : Number.POSITIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now < next) return;
    next = now + watchdogMs / MESSAGES;
    spawn('systemd-notify', ['--ready', 'WATCHDOG=1'], {
      env: { ...environment, NOTIFY_SOCKET: notifySocket },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: LIMIT_MS,
    }).once('error', (error) => log.warn(`systemd is not told that the server lives: ${error.message}`));
  };
}
