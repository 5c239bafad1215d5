/**
 * Writes one JSON line for every request to `access-YYYY-MM-DD.jsonl`, by the local day on which the request ended, or to
 * standard output.
 */
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'winston';
import { excerpt } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { makeFolder } from '../make-folder.ts';
import type { Exchange, TrafficClass } from './exchange.ts';
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
  const files = createDailyFiles(options, retention.makeRoom);
  const tooSlow = 'The disk of the access log is too slow; lines are dropped';
  const writeLine = boundedWriter(files.stream, { log, tooSlow, details: { dir } });
  let closing: Promise<void> | null = null;
  const sweep = () => retention.sweep(join(dir, fileOfDay(now())));
  const timer = setInterval(() => void sweep(), SWEEP_EVERY_MS);
  timer.unref();
  const firstSweep = sweep();

  async function shut(): Promise<void> {
    clearInterval(timer);
    await firstSweep;
    await files.close();
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

const GATHER_MS = 100;

/**
 * A stream of lines into daily files that survives failures of the disk. Every tenth of a second the waiting lines are
 * written and the file is opened anew, so the next line recreates a deleted file or folder, and at midnight only the
 * name changes. After an error, writing is tried again every second. The lines wait meanwhile, and a partly written
 * batch continues where it stopped, so that no line is torn or doubled.
 *
 * This is not winston-daily-rotate-file because of three faults measured with 5.0.0: after ENOSPC its stream is dead
 * until the next day, it does not recreate a deleted file even with `watchLog`, and the lines that it holds cannot be
 * counted, so they have no bound.
 * @param makeRoom called before lines are appended to a file
 */
function createDailyFiles(
  { dir, log, retryMs = 1000 }: AccessLogOptions,
  makeRoom: (path: string, bytes: number) => Promise<void>,
) {
  const lastTry = new AbortController();
  let failing = false;

  const pause = (ms: number) =>
    sleep(ms, undefined, { ref: false, signal: lastTry.signal }).catch(() => undefined);

  async function deliver(lines: string[]): Promise<void> {
    await pause(GATHER_MS); // gathers lines, because opening the file costs more than writing them
    const texts = new Map<string, string>();
    for (const line of lines) {
      const name = fileOfDay(new Date(JSON.parse(line).ts)); // also a late write goes to the right file
      texts.set(name, (texts.get(name) ?? '') + line);
    }
    for (const [name, text] of texts) await persist(join(dir, name), Buffer.from(text));
  }

  async function persist(path: string, data: Buffer): Promise<void> {
    let done = 0;
    await makeRoom(path, data.length);
    while (true) {
      try {
        const file = await openToAppend(path);
        try {
          // An empty file has replaced the one with the beginning of this line, so the line is written again.
          if (done > 0 && (await file.stat()).size === 0) done = data.lastIndexOf('\n', done - 1) + 1;
          while (done < data.length) done += (await file.write(data, done)).bytesWritten;
        } finally {
          await file.close();
        }
        if (failing) log.info('The access log is being written again', { path });
        failing = false;
        return;
      } catch (error) {
        if (!failing)
          log.error('Cannot write the access log; requests are still served', { path, error: String(error) });
        failing = true;
        if (lastTry.signal.aborted) {
          const lost = data.subarray(done).toString().split('\n').length - 1;
          log.error('Access log lines are lost', { path, lost });
          return;
        }
        await pause(retryMs);
      }
    }
  }

  /** Takes whole lines with their newline. It never emits an error. */
  const stream = new Writable({
    decodeStrings: false,
    writev: (chunks, done) => void deliver(chunks.map(({ chunk }) => chunk)).then(() => done(), done),
  });
  return {
    stream,
    /** Ends the waiting after a failed write. There is one last try, and then the lines are lost and counted. */
    async close(): Promise<void> {
      lastTry.abort();
      stream.end();
      await once(stream, 'finish');
    },
  };
}

async function openToAppend(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a', 0o640);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    makeFolder(dirname(path));
    return await open(path, 'a', 0o640);
  }
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
