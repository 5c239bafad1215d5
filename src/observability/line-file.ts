/**
 * A stream of lines into daily files that outlives what happens to files. Each batch (of a tenth of a second) opens its file anew, so a file
 * or folder that was deleted is made again by the next line, and midnight is only another name. A disk that refuses
 * is tried again every second: lines wait meanwhile, and what was written in part goes on where it stopped, so that
 * no line is torn or doubled.
 *
 * Not winston-daily-rotate-file: measured with 5.0.0, its stream is dead until the next day after ENOSPC, a deleted
 * file is not made again even with `watchLog`, and what it still holds cannot be counted, hence not bounded.
 */
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'winston';

export interface LineFileOptions {
  dir: string;
  /** The file's name, from the line itself, so that a late write lands where the line belongs. */
  fileOf(line: string): string;
  log: Logger;
  retryMs?: number;
}

export interface LineFile {
  /** Takes whole lines with their newline. Never emits an error. */
  readonly stream: Writable;
  /** After it, nothing waits for a disk that refuses: one last try, then the lines are lost and counted. */
  stopRetrying(): void;
}

const GATHER_MS = 100;

export function createLineFile({ dir, fileOf, log, retryMs = 1000 }: LineFileOptions): LineFile {
  const lastTry = new AbortController();
  let failing = false;

  const pause = (ms: number) =>
    sleep(ms, undefined, { ref: false, signal: lastTry.signal }).catch(() => undefined);

  async function deliver(lines: string[]): Promise<void> {
    await pause(GATHER_MS); // more lines come meanwhile: opening the file costs more than writing them
    for (const [name, batch] of groupBy(lines, fileOf)) {
      await persist(join(dir, name), Buffer.from(batch.join('')));
    }
  }

  async function persist(path: string, data: Buffer): Promise<void> {
    let done = 0;
    while (true) {
      try {
        const file = await openToAppend(path);
        try {
          // A new file in place of the one with the beginning of this line: begin the line again.
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
          log.error('Cannot write the access log; the gateway goes on', { path, error: String(error) });
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

  const stream = new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => void deliver([line]).then(() => done(), done),
    writev: (chunks, done) => void deliver(chunks.map(({ chunk }) => chunk)).then(() => done(), done),
  });
  return { stream, stopRetrying: () => lastTry.abort() };
}

async function openToAppend(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a', 0o640);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await mkdir(dirname(path), { recursive: true });
    return await open(path, 'a', 0o640);
  }
}

function groupBy(lines: string[], keyOf: (line: string) => string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const line of lines) {
    const key = keyOf(line);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [line]);
    else group.push(line);
  }
  return groups;
}
