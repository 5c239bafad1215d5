/** The records of ends that the server did not choose, in a folder that outlives it. Its supervisor makes them. */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { BUDGETS } from '../limits/budgets.ts';
import { makeFolder } from '../make-folder.ts';

const { kept, lines: MOST_LINES, lineLength, messageLength: MOST_CHARACTERS } = BUDGETS.crashes;
/** The names that `write` gives. A file of anyone else is neither shown nor removed. */
const RECORD = /^[\dTZ-]+\.json$/;

const crashRecord = z.object({
  /** When the end was seen, as an ISO 8601 date. */
  at: z.iso.datetime(),
  pid: z.int(),
  uptimeSec: z.number(),
  exitCode: z.int().nullable(),
  /** `SIGKILL`, `SIGABRT` ...; null for an exit. */
  signal: z.string().nullable(),
  /** The stack of an exception that nothing caught; empty for other ends. */
  message: z.string(),
  /** The request that held the slot; null for none. */
  requestId: z.string().nullable(),
  /** The last lines of the log. They have what ggml says where it aborts. */
  lines: z.array(z.string()),
});
export type CrashRecord = z.infer<typeof crashRecord>;

/** What a supervisor has seen of an end. */
export interface SeenEnd {
  exitCode: number | null;
  signal: string | null;
  uptimeSec: number;
  message: string;
  requestId: string | null;
  lines: readonly string[];
}

export type Crashes = ReturnType<typeof createCrashes>;

export function createCrashes(dir: string) {
  const names = () => readdirSync(dir).filter((name) => RECORD.test(name));
  return {
    /** Makes a record of an end. @throws Error of the file system */
    record(pid: number, seen: SeenEnd): CrashRecord {
      const record = toRecord(pid, seen);
      makeFolder(dir);
      const name = `${record.at.replace(/[:.]/g, '-')}-${pid}.json`;
      // A reader must never see half of a record.
      writeFileSync(join(dir, `${name}.part`), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o640 });
      renameSync(join(dir, `${name}.part`), join(dir, name));
      for (const old of names().sort().slice(0, -kept)) rmSync(join(dir, old), { force: true });
      return record;
    },
    /** The records, newest first. A folder that cannot be read has none, and a file of another kind is none. */
    list(): CrashRecord[] {
      try {
        return names()
          .sort()
          .reverse()
          .slice(0, kept)
          .flatMap((name) => readRecord(join(dir, name)) ?? []);
      } catch {
        return [];
      }
    },
  };
}

function readRecord(path: string): CrashRecord | null {
  try {
    return crashRecord.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}

function toRecord(pid: number, seen: SeenEnd): CrashRecord {
  return {
    at: new Date().toISOString(),
    pid,
    uptimeSec: Number(seen.uptimeSec.toFixed(1)),
    exitCode: seen.exitCode,
    signal: seen.signal,
    message: seen.message.slice(0, MOST_CHARACTERS),
    requestId: seen.requestId,
    lines: seen.lines.slice(-MOST_LINES).map((line) => line.slice(0, lineLength)),
  };
}
