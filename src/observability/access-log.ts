/**
 * Writes one JSON line for every request to `access-YYYY-MM-DD.jsonl`, by the local day on which the request ended, or to
 * standard output.
 */

import { once } from 'node:events';
import { join } from 'node:path';
import type { Logger } from 'winston';
import { excerpt } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import type { Exchange, TrafficClass } from './exchange.ts';
import { createLineFile } from './line-file.ts';
import { localDay } from './local-day.ts';
import { createLogRetention } from './log-retention.ts';

export interface AccessLog {
  /** Adds the line of a request. It never waits and never throws. */
  write(exchange: Exchange): void;
  /** Resolves when every line is on disk, or is lost because writing failed once more. */
  close(): Promise<void>;
}

export interface AccessLogOptions {
  /** The folder of the log, which is made with a line where it is missing. */
  dir: string;
  log: Logger;
  /** Files older than this are removed. */
  maxAgeMs?: number;
  /** The oldest files above this are removed. */
  maxBytes?: number;
  now?: () => Date;
  /** Milliseconds between two tries after a write has failed. */
  retryMs?: number;
}

/** The most characters that wait for the disk. Further lines are dropped, so that a stuck disk costs little memory. */
const MAX_WAITING = 8 * 1024 * 1024;

const SWEEP_EVERY_MS = 30 * 60_000;

/** Removes what is too old or too much at once and every half hour, and makes no file before the first line. */
export function createAccessLog(options: AccessLogOptions): AccessLog {
  const { dir, log, now = () => new Date() } = options;
  const { maxAgeMs = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = options;
  const retention = createLogRetention({ maxBytes, maxAgeMs, now: () => now().getTime(), log });
  const file = createLineFile({
    dir,
    log,
    makeRoom: retention.makeRoom,
    fileOf: (line) => fileOfDay(new Date(JSON.parse(line).ts)),
    ...(options.retryMs === undefined ? {} : { retryMs: options.retryMs }),
  });
  const tooSlow = 'The disk of the access log is too slow; lines are dropped';
  const writeLine = boundedWriter(file.stream, { log, tooSlow, details: { dir } });
  let closing: Promise<void> | null = null;
  const sweep = () => retention.sweep(join(dir, fileOfDay(now())));
  const timer = setInterval(() => void sweep(), SWEEP_EVERY_MS);
  timer.unref();
  const firstSweep = sweep();

  async function shut(): Promise<void> {
    clearInterval(timer);
    await firstSweep;
    file.stopRetrying();
    file.stream.end();
    await once(file.stream, 'finish');
  }

  return {
    write(exchange) {
      if (closing !== null) return;
      // The line goes straight to the file: with the pipeline of a logger in between it cost four times as much.
      writeLine(lineOf(exchange, now()));
    },
    close() {
      closing ??= shut();
      return closing;
    },
  };
}

/** Writes the lines to standard output, as containers want it. */
export function createStdoutLog(
  log: Logger,
  stdout: Pick<NodeJS.WriteStream, 'write' | 'writableLength'> = process.stdout,
): AccessLog {
  const tooSlow = 'The reader of standard output is too slow; access log lines are dropped';
  const writeLine = boundedWriter(stdout, { log, tooSlow, details: {} });
  return {
    write: (exchange) => writeLine(lineOf(exchange, new Date())),
    close: async () => undefined,
  };
}

/** Drops the lines for which more than `MAX_WAITING` characters wait already, and says so once, and how many they were. */
function boundedWriter(
  stream: Pick<NodeJS.WriteStream, 'write' | 'writableLength'>,
  { log, tooSlow, details }: { log: Logger; tooSlow: string; details: object },
): (line: string) => void {
  let dropped = 0;
  return (line) => {
    if (stream.writableLength > MAX_WAITING) {
      if (dropped === 0) log.error(tooSlow, details);
      dropped += 1;
      return;
    }
    if (dropped > 0) log.warn('Access log lines were dropped', { ...details, dropped });
    dropped = 0;
    stream.write(line);
  };
}

/** A busy slot and a client that leaves are normal, so their lines have the level `info`. */
const LEVELS: Record<TrafficClass, string> = {
  '2xx': 'info',
  '4xx': 'warn',
  '5xx': 'error',
  '503-busy': 'info',
  'client-disconnect': 'info',
};

/** What a client chooses is cut, so that a line has a bound. */
function bounded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : excerpt(text, BUDGETS.log.maxFieldCharacters);
}

/** JSON leaves out the undefined members. */
function lineOf(exchange: Exchange, endedAt: Date): string {
  const record = {
    ts: endedAt.toISOString(),
    level: LEVELS[exchange.class],
    request_id: exchange.requestId,
    method: bounded(exchange.method),
    path: bounded(exchange.path),
    category: exchange.category,
    model: bounded(exchange.model),
    status: exchange.status,
    class: exchange.class,
    latency_ms: exchange.latencyMs,
    bytes_in: exchange.bytesIn,
    bytes_out: exchange.bytesOut,
    client_ip: exchange.clientIp,
    user_agent: bounded(exchange.userAgent),
    extra: {
      provider: exchange.provider,
      rtf: exchange.rtf,
      audio_sec: exchange.audioSec,
      speakers: exchange.speakers,
      diarization_sec: exchange.diarizationSec,
      language: exchange.language,
      route: exchange.route,
      slot_wait_ms: exchange.slotWaitMs,
      waited_ms: exchange.waitedMs === undefined ? undefined : Math.round(exchange.waitedMs),
      error_kind: exchange.errorKind,
      key: exchange.key,
    },
  };
  return `${JSON.stringify(record)}\n`;
}

const fileOfDay = (date: Date) => `access-${localDay(date)}.jsonl`;
