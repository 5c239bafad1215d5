/**
 * `voxgate serve --supervised`: a parent process (a watchdog) that starts the server as a child, starts it again when
 * it ends without being asked to, and records why. The parent loads no model and reads no request, so nothing that a
 * client sends can end it. It keeps the listening sockets, so that clients which come between two servers wait for the
 * next one. When the parent ends, the channel between the two closes and the child stops (serve.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Stream } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'winston';
import type { Crashes, SeenEnd } from '../crashes/crashes.ts';
import { BUDGETS } from '../limits/budgets.ts';
import type { KeptSockets } from './listening-sockets.ts';

/** The message that asks a child to stop. Unlike a signal, a second one changes nothing. */
export const STOP = 'stop';
/** The option of a child that inherits its sockets, from `FIRST_SOCKET` on. */
export const INHERITS = '--inherits';

/**
 * The messages of a child: a heartbeat from its event loop every `HEARTBEAT_MS` once it serves; the id of the request
 * that holds the slot, whenever that changes; and the stack of an uncaught exception. A message that was sent arrives even
 * if the child is killed right after it.
 */
type ChildMessage = 'heartbeat' | { holder: string | null } | { exception: string };
const HEARTBEAT_MS = 1000;
/** The heartbeats that a child may miss in a row. Nothing that it does takes its event loop for a second. */
const MISSED_HEARTBEATS = 20;

/** The time that clients wait for the next server. An engine on a slow disk has to start in it. */
const PATIENCE_MS = 120_000;
/** A child that never served, or lived for less, is a crash at the start, and after the second such crash there is a pause. */
const STEADY_MS = 10_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
/** The exit code of a child that found an invalid setting (program.ts). It is not restarted: the setting stays the same. */
const WRONG_SETTING = 2;
/** After the end of a child, its last lines may still be on their way. */
const LAST_LINES_MS = 200;

export interface Supervised {
  /** The arguments of Node that start the server. */
  command: readonly string[];
  crashes: Crashes;
  log: Logger;
  /** Binds the sockets that every server gets; null where the next server has to listen by itself. */
  bind(): Promise<KeptSockets | null>;
  /** Called with each heartbeat of a server. */
  onHeartbeat(): void;
  /** A child that was asked to stop and has not ended after this time is killed. */
  stopMs: number;
  /** After as many heartbeats that did not come the child is killed. Tests do not wait as long. */
  missedHeartbeats?: number;
  /** The time that clients wait for the next server before they are refused. Tests do not wait as long. */
  patienceMs?: number;
}

/**
 * Resolves to the exit code for this process, when the child has ended and this process was asked to stop or a setting
 * is wrong. SIGUSR2 asks for another server: the old one accepts nothing more and ends as in a stop, and then the next
 * one starts. They never run side by side, because there is one slot, and memory for one set of models.
 */
export async function supervise(options: Supervised): Promise<number> {
  const { command, crashes, log, stopMs, missedHeartbeats = MISSED_HEARTBEATS } = options;
  const stop = new AbortController();
  let child: ChildProcess | null = null;
  let leaving: ChildProcess | null = null;
  const sockets = keepSockets(options, () => child?.kill('SIGKILL'));
  const askWithin = (asked: ChildProcess | null) => {
    if (asked?.connected) asked.send(STOP, () => undefined); // a child without a channel is ending already
    setTimeout(() => asked?.kill('SIGKILL'), stopMs).unref();
  };
  const begin = () => {
    if (stop.signal.aborted) return;
    stop.abort();
    sockets.close();
    askWithin(child);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => (stop.signal.aborted ? child?.kill('SIGKILL') : begin()));
  }
  process.on('SIGHUP', begin); // a closed terminal signals the server too, possibly several times; unlike SIGINT, a second one must not kill
  process.on('SIGUSR2', () => {
    if (leaving === child) return;
    log.info('SIGUSR2: another server is started');
    leaving = child;
    askWithin(child);
  });
  for (let failures = 0; ; ) {
    const inherited = await sockets.forNext();
    if (stop.signal.aborted) return 0;
    const life = startChild(command, inherited?.handles ?? [], sockets.served);
    child = life.child;
    const watchdog = watch(life.child, missedHeartbeats, options);
    const end = await life.ended;
    clearInterval(watchdog);
    child = null;
    if (stop.signal.aborted) return end.exitCode ?? 1;
    if (end.exitCode === WRONG_SETTING) {
      sockets.close();
      return WRONG_SETTING;
    }
    if (end.served) sockets.unserved();
    if (leaving === life.child && end.exitCode === 0) continue;
    failures = !end.served || end.uptimeSec * 1000 < STEADY_MS ? failures + 1 : 0;
    const pauseMs = pauseAfter(failures);
    report(life.child.pid ?? 0, end, pauseMs, { crashes, log });
    await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => undefined);
    if (stop.signal.aborted) return 0;
  }
}

/**
 * Keeps the sockets from one server to the next one. When that does not serve in time, they are closed, so that clients
 * are refused and wait no more. A child that starts holds them too and is killed; the next one listens by itself, however
 * long its start takes.
 */
function keepSockets(
  { bind, log, patienceMs = PATIENCE_MS }: Pick<Supervised, 'bind' | 'log' | 'patienceMs'>,
  killStarting: () => void,
) {
  let kept: KeptSockets | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const close = () => {
    clearTimeout(timer);
    kept?.close();
    kept = null;
  };
  return {
    async forNext() {
      if (!isOver) kept ??= await bind();
      return kept;
    },
    served() {
      clearTimeout(timer);
      isOver = false;
    },
    unserved() {
      timer = setTimeout(() => {
        isOver = true;
        log.error(`no server has served for ${patienceMs / 1000} s: clients wait no more and are refused`);
        close();
        killStarting();
      }, patienceMs).unref();
    },
    close,
  };
}

/** No pause after the first crash, so that one bad request costs less than a second; then 1 s, 2 s, 4 s up to 30 s. */
export function pauseAfter(failures: number): number {
  return failures < 2 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 2));
}

/** Tells the supervisor something, where there is one. */
export function notifySupervisor(message: ChildMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

/** Tells the supervisor, until the end of this process, that its event loop turns. */
export function sendHeartbeats(): void {
  notifySupervisor('heartbeat');
  setInterval(() => notifySupervisor('heartbeat'), HEARTBEAT_MS).unref();
}

/**
 * The watchdog: kills a child whose event loop stands still, which answers nobody and would never end. It begins with
 * the first heartbeat, however long the start takes. It counts its own turns and not the time, because a machine or
 * container that is paused stops both processes.
 */
function watch(
  child: ChildProcess,
  mostMissed: number,
  { log, onHeartbeat }: Pick<Supervised, 'log' | 'onHeartbeat'>,
): NodeJS.Timeout {
  let missed: number | null = null;
  child.on('message', (message) => {
    if (message !== 'heartbeat') return;
    missed = 0;
    onHeartbeat();
  });
  return setInterval(() => {
    if (missed === null) return;
    missed += 1;
    if (missed !== mostMissed + 1) return;
    const pid = child.pid;
    log.error(`the event loop of the server has stood still for ${mostMissed} s: it is killed`, { pid });
    child.kill('SIGKILL');
  }, HEARTBEAT_MS);
}

/** The end of a child, and whether it had begun to serve. */
interface End extends SeenEnd {
  served: boolean;
}

/** @param onServes is called when it begins to serve */
function startChild(
  command: readonly string[],
  sockets: KeptSockets['handles'],
  onServes: () => void,
): { child: ChildProcess; ended: Promise<End> } {
  const startedAt = performance.now();
  const args = sockets.length > 0 ? [...command, INHERITS] : command;
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc', ...(sockets as unknown as Stream[])],
    // In a group of its own it does not get the Ctrl-C of the terminal, which would count as a second signal.
    detached: true,
  });
  const lines = keepLastLines();
  const said = { served: false, requestId: null as string | null, message: '' };
  child.on('message', (message: ChildMessage) => {
    if (message === 'heartbeat') {
      if (!said.served) onServes();
      said.served = true;
    } else if ('holder' in message) said.requestId = message.holder;
    else said.message = message.exception;
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk);
    lines.add(chunk.toString());
  });
  child.on('error', (error) => lines.add(`${error.message}\n`));
  child.channel?.unref();
  const ended = ends(child).then(() => ({
    exitCode: child.exitCode,
    signal: child.signalCode,
    uptimeSec: (performance.now() - startedAt) / 1000,
    lines: lines.all(),
    ...said,
  }));
  return { child, ended };
}

async function ends(child: ChildProcess): Promise<void> {
  const channelEnd = new Promise((resolve) => child.once('disconnect', resolve));
  const closed = Promise.all([once(child, 'close').catch(() => undefined), channelEnd]);
  // A child that could not be started has no `exit`, and one that left a process with its output has no `close`.
  await Promise.race([closed, once(child, 'exit').catch(() => undefined)]);
  await Promise.race([closed, sleep(LAST_LINES_MS)]);
}

function keepLastLines() {
  const { lines: most, lineLength } = BUDGETS.crashes;
  let last: string[] = [''];
  return {
    add(text: string) {
      const [rest = '', ...next] = text.split('\n');
      const open = (last.at(-1) ?? '') + rest;
      last = [...last.slice(0, -1), open, ...next].slice(-most - 1).map((line) => line.slice(0, lineLength));
    },
    all: () => last.filter((line) => line !== ''),
  };
}

function report(
  pid: number,
  end: End,
  pauseMs: number,
  { crashes, log }: Pick<Supervised, 'crashes' | 'log'>,
): void {
  const how = end.signal ?? (end.exitCode === null ? 'no start' : `exit code ${end.exitCode}`);
  const details = { pid, uptimeSec: Number(end.uptimeSec.toFixed(1)), pauseSec: pauseMs / 1000 };
  try {
    log.error(`the server has ended (${how}) and is started again`, { ...details, requestId: end.requestId });
    if (!isFailedStart(end)) crashes.record(pid, end);
  } catch (error) {
    log.warn(`the crash is not recorded: ${(error as Error).message}`);
  }
}

/**
 * True for a server that could not start and has logged why, such as one whose port is taken. It is started again and
 * again until that works, and is no crash: a record of each attempt would push out those of real crashes.
 */
const isFailedStart = ({ exitCode, served }: End) => (exitCode === 0 || exitCode === 1) && !served;
