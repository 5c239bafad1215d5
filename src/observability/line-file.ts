/**
 * A stream of lines into daily files that survives failures of the disk. Every tenth of a second the waiting lines are
 * written and the file is opened anew, so the next line recreates a deleted file or folder, and at midnight only the
 * name changes. After an error, writing is tried again every second. The lines wait meanwhile, and a partly written
 * batch continues where it stopped, so that no line is torn or doubled.
 *
 * This is not winston-daily-rotate-file because of three faults measured with 5.0.0: after ENOSPC its stream is dead
 * until the next day, it does not recreate a deleted file even with `watchLog`, and the lines that it holds cannot be
 * counted, so they have no bound.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'winston';
import { makeFolder } from '../make-folder.ts';

export interface LineFileOptions {
  dir: string;
  /** The name of the file for a line. It depends on the line alone, so that a late write goes to the right file. */
  fileOf(line: string): string;
  log: Logger;
  /** Called before lines are appended to a file. */
  makeRoom?(path: string, bytes: number): Promise<void>;
  retryMs?: number;
}

const GATHER_MS = 100;

export function createLineFile({ dir, fileOf, log, makeRoom, retryMs = 1000 }: LineFileOptions) {
  const lastTry = new AbortController();
  let failing = false;

  const pause = (ms: number) =>
    sleep(ms, undefined, { ref: false, signal: lastTry.signal }).catch(() => undefined);

  async function deliver(lines: string[]): Promise<void> {
    await pause(GATHER_MS); // gathers lines, because opening the file costs more than writing them
    const texts = new Map<string, string>();
    for (const line of lines) {
      const name = fileOf(line);
      texts.set(name, (texts.get(name) ?? '') + line);
    }
    for (const [name, text] of texts) await persist(join(dir, name), Buffer.from(text));
  }

  async function persist(path: string, data: Buffer): Promise<void> {
    let done = 0;
    await makeRoom?.(path, data.length);
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
    stopRetrying: () => lastTry.abort(),
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
