/**
 * The records of ends that a process did not choose, in a folder that outlives it. A living process has a note in the
 * folder (crash-note.ts). After the end of the process, the note and what its supervisor saw become a record. A process
 * without a supervisor is recorded by the next one that starts.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { BUDGETS } from '../limits/budgets.ts';
import { isAlive } from '../process-alive.ts';
import { type CrashNote, parseCrashNote } from './crash-note.ts';

const { kept, lines: MOST_LINES, lineLength } = BUDGETS.crashes;
const NOTE = /^(\d+)\.running$/;
/** The names that `write` gives. A file of anyone else is neither shown nor removed. */
const RECORD = /^[\dTZ-]+\.json$/;

const crashRecord = z.object({
  /** When the end was seen, as an ISO 8601 date. */
  at: z.iso.datetime(),
  pid: z.int(),
  /** Seconds; null when no supervisor saw the start. */
  uptimeSec: z.number().nullable(),
  exitCode: z.int().nullable(),
  /** `SIGKILL`, `SIGABRT` ...; null for an exit, and for an end that left no trace. */
  signal: z.string().nullable(),
  /** The message of an abort or the stack of an exception; empty for other ends. */
  message: z.string(),
  /** The request of the call that failed, or else the one that held the slot. */
  requestId: z.string().nullable(),
  /** The native call that failed, or else those that ran; null for none. */
  place: z.string().nullable(),
  /** The last lines of the log; empty without a supervisor. */
  lines: z.array(z.string()),
});
export type CrashRecord = z.infer<typeof crashRecord>;

/** What a supervisor has seen of an end. */
export interface SeenEnd {
  exitCode: number | null;
  signal: string | null;
  uptimeSec: number;
  lines: readonly string[];
}

export interface Crashes {
  /** Makes the folder and returns the path of the note of a process. @throws Error of the file system */
  notePath(pid: number): string;
  /** Makes a record of an end. @throws Error of the file system */
  record(pid: number, seen: SeenEnd): CrashRecord;
  /** Makes records of processes that ended without a supervisor. @throws Error of the file system */
  recordAbandoned(): CrashRecord[];
  /** The records, newest first. A folder that cannot be read has none, and a file of another kind is none. */
  list(): CrashRecord[];
}

export function createCrashes(dir: string): Crashes {
  const noteOf = (pid: number) => join(dir, `${pid}.running`);
  const names = () => readdirSync(dir).filter((name) => RECORD.test(name));

  function write(pid: number, at: Date, note: CrashNote, seen: SeenEnd | null): CrashRecord {
    const record = toRecord(pid, at, note, seen);
    mkdirSync(dir, { recursive: true });
    const name = `${record.at.replace(/[:.]/g, '-')}-${pid}.json`;
    // A reader must never see half of a record.
    writeFileSync(join(dir, `${name}.part`), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o640 });
    renameSync(join(dir, `${name}.part`), join(dir, name));
    rmSync(noteOf(pid), { force: true });
    for (const old of names().sort().slice(0, -kept)) rmSync(join(dir, old), { force: true });
    return record;
  }

  return {
    notePath(pid) {
      mkdirSync(dir, { recursive: true });
      return noteOf(pid);
    },
    record: (pid, seen) => write(pid, new Date(), readNote(noteOf(pid)), seen),
    recordAbandoned() {
      mkdirSync(dir, { recursive: true });
      return readdirSync(dir).flatMap((name) => {
        const pid = Number(NOTE.exec(name)?.[1] ?? 0);
        // In a container every process may have the same id. A note with the own id is then of an earlier one.
        if (pid === 0 || (pid !== process.pid && isAlive(pid))) return [];
        return [write(pid, statSync(noteOf(pid)).mtime, readNote(noteOf(pid)), null)];
      });
    },
    list() {
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

function readNote(path: string): CrashNote {
  try {
    return parseCrashNote(readFileSync(path));
  } catch {
    return parseCrashNote(Buffer.alloc(0)); // the process had no addon, or no folder to write to
  }
}

function readRecord(path: string): CrashRecord | null {
  try {
    return crashRecord.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}

function toRecord(pid: number, at: Date, note: CrashNote, seen: SeenEnd | null): CrashRecord {
  const failed = note.calls.find((call) => call.failed);
  const places = failed ? [failed.place] : note.calls.map(({ place }) => place);
  const holder = note.holder?.split(' ')[1] ?? null;
  return {
    at: at.toISOString(),
    pid,
    uptimeSec: seen === null ? null : Number(seen.uptimeSec.toFixed(1)),
    exitCode: seen?.exitCode ?? null,
    signal: seen?.signal ?? (note.cause?.startsWith('SIG') ? note.cause : null),
    message: note.message,
    requestId: failed?.requestId ?? holder ?? note.calls[0]?.requestId ?? null,
    place: places.length > 0 ? [...new Set(places)].join(', ') : null,
    lines: (seen?.lines ?? []).slice(-MOST_LINES).map((line) => line.slice(0, lineLength)),
  };
}
