/** One JSON line for every request, in `access-YYYY-MM-DD.jsonl` of the local day on which the request ended. */

import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import type { Logger } from 'winston';
import type { Exchange, TrafficClass } from './exchange.ts';
import { createLineFile } from './line-file.ts';
import { localDay } from './local-day.ts';

export interface AccessLog {
  /** Never waits and never throws. */
  write(exchange: Exchange): void;
  /** When it resolves every line written before is on disk, or was given up for a disk that refuses. */
  close(): Promise<void>;
}

export interface AccessLogOptions {
  /** Created if missing. */
  dir: string;
  log: Logger;
  now?: () => Date;
  /** How long a disk that refuses is left alone. */
  retryMs?: number;
}

/** Characters that may wait for the disk; beyond it lines are dropped, so that a stuck disk costs no memory. */
const MAX_WAITING = 8 * 1024 * 1024;

export function createAccessLog(options: AccessLogOptions): AccessLog {
  const { dir, log, now = () => new Date() } = options;
  try {
    mkdirSync(dir, { recursive: true });
  } catch (error) {
    log.error('Cannot create the folder of the access log; there will be none', {
      dir,
      error: String(error),
    });
    return { write: () => undefined, close: async () => undefined };
  }
  const file = createLineFile({
    dir,
    log,
    fileOf: createFileOfLine(),
    ...(options.retryMs === undefined ? {} : { retryMs: options.retryMs }),
  });
  let dropped = 0;
  let closing: Promise<void> | null = null;

  async function shut(): Promise<void> {
    file.stopRetrying();
    file.stream.end();
    await once(file.stream, 'finish');
  }

  return {
    write(exchange) {
      if (closing !== null) return;
      if (file.stream.writableLength > MAX_WAITING) {
        if (dropped === 0) log.error('The disk of the access log is too slow; lines are dropped', { dir });
        dropped += 1;
        return;
      }
      if (dropped > 0) log.warn('Access log lines were dropped', { dir, dropped });
      dropped = 0;
      const level = LEVELS[exchange.class];
      // Straight to the file: a logger's pipeline on the way cost four times what the line itself does.
      file.stream.write(`${JSON.stringify(toRecord(exchange, level, now()))}\n`);
    },
    close() {
      closing ??= shut();
      return closing;
    },
  };
}

/** Shedding load and a client that leaves are no one's fault. */
const LEVELS: Record<TrafficClass, string> = {
  '2xx': 'info',
  '4xx': 'warn',
  '5xx': 'error',
  '503-busy': 'info',
  'client-disconnect': 'info',
};

/** `ts` comes first: the file's day is read there. JSON leaves out what is undefined. */
function toRecord(exchange: Exchange, level: string, endedAt: Date) {
  return {
    ts: endedAt.toISOString(),
    level,
    request_id: exchange.requestId,
    method: exchange.method,
    path: exchange.path,
    category: exchange.category,
    model: exchange.model,
    status: exchange.status,
    class: exchange.class,
    latency_ms: exchange.latencyMs,
    bytes_in: exchange.bytesIn,
    bytes_out: exchange.bytesOut,
    client_ip: exchange.clientIp,
    user_agent: exchange.userAgent,
    extra: {
      provider: exchange.provider,
      rtf: exchange.rtf,
      audio_sec: exchange.audioSec,
      language: exchange.language,
      route: exchange.route,
      slot_wait_ms: exchange.slotWaitMs,
      error_kind: exchange.errorKind,
    },
  };
}

const TS_PREFIX = '{"ts":"';
const TO_THE_MINUTE = TS_PREFIX.length + '2026-01-31T23:59'.length;

/** Days begin at a full minute everywhere, and the lines of a minute come together: one look at the calendar each. */
function createFileOfLine(): (line: string) => string {
  let minute = '';
  let name = '';
  return (line) => {
    const current = line.slice(TS_PREFIX.length, TO_THE_MINUTE);
    if (current !== minute) {
      minute = current;
      name = `access-${localDay(new Date(`${current}Z`))}.jsonl`;
    }
    return name;
  };
}
