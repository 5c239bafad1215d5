/**
 * Reads the note that a process leaves of what it was doing when it ended. native/binding/crash_note.h has the layout;
 * here are the same figures.
 */
import { writeFileSync } from 'node:fs';

const CELL_BYTES = 256;
const CELLS = 32;
const ENDING_BYTES = 4 * CELL_BYTES;
const HOLDER_CELL = 4;

export interface RunningCall {
  /** What the call does: `transcribe: whisper`, `decode audio: mp3` ... */
  place: string;
  /** Null where the call serves the request that holds the slot, or none. */
  requestId: string | null;
  /** True for the call whose thread got the signal. */
  failed: boolean;
}

export interface CrashNote {
  /** A signal or `uncaughtException`; null when the process had no time to say it, as after SIGKILL. */
  cause: string | null;
  /** The message of an abort, or the stack of an exception; empty for other ends. */
  message: string;
  /** The request that held the slot, as `asr ID`; null for none. */
  holder: string | null;
  calls: RunningCall[];
}

/** A file that is cut or of another kind gives what can be read of it. */
export function parseCrashNote(note: Buffer): CrashNote {
  const [cause = '', thread = '', ...message] = textAt(note, 0, ENDING_BYTES).split('\t');
  const calls: RunningCall[] = [];
  for (let cell = HOLDER_CELL + 1; cell < CELLS; cell++) {
    const [by = '', place = '', requestId = ''] = textAt(note, cell * CELL_BYTES, CELL_BYTES).split('\t');
    if (place === '') continue;
    calls.push({ place, requestId: requestId || null, failed: cause !== '' && by === thread });
  }
  return {
    cause: cause || null,
    message: message.join('\t'),
    holder: textAt(note, HOLDER_CELL * CELL_BYTES, CELL_BYTES) || null,
    calls,
  };
}

function textAt(note: Buffer, offset: number, bytes: number): string {
  const cell = note.subarray(offset, offset + bytes);
  const end = cell.indexOf(0);
  return cell.toString('utf8', 0, end === -1 ? cell.length : end);
}

/** Notes that JavaScript ends the process, in the place of a signal. @throws Error of the file system */
export function writeEnding(path: string, cause: string, message: string): void {
  const text = Buffer.from(`${cause}\t\t${message}`).subarray(0, ENDING_BYTES - 1);
  writeFileSync(path, Buffer.concat([text, Buffer.alloc(1)]), { flag: 'r+' });
}
