/** Lets the server process leave a trace when it ends without having chosen to. */
import { rmSync, writeFileSync } from 'node:fs';
import type { Logger } from 'winston';
import type { NativeEngine } from '../engine/types.ts';
import { writeEnding } from './crash-note.ts';
import type { Crashes } from './crashes.ts';

/**
 * From now on a crash leaves a note in the folder of the crashes, and an exception that nothing catches ends the
 * process with 1. A folder that cannot be used is a warning, because requests matter more than records.
 */
export function recordCrashes(crashes: Crashes, engine: NativeEngine, log: Logger): void {
  const note = openNote(crashes, engine, log);
  let crashed = false;
  // Node reports a rejection that nothing handles here too, unless there is a listener of its own for it.
  process.on('uncaughtException', (error: unknown, origin) => {
    crashed = true;
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log.error(`${origin}: ${stack}`);
    try {
      if (note !== null) writeEnding(note, origin, stack);
    } finally {
      process.exit(1);
    }
  });
  process.on('exit', () => {
    if (note !== null && !crashed) rmSync(note, { force: true });
  });
}

/** The path of the note; null when there can be none. */
function openNote(crashes: Crashes, engine: NativeEngine, log: Logger): string | null {
  try {
    for (const { at, signal, requestId, place, message: reason } of crashes.recordAbandoned())
      log.warn('an earlier process has crashed', { at, signal, requestId, place, reason });
    const path = crashes.notePath(process.pid);
    writeFileSync(path, '', { mode: 0o640 });
    engine.recordCrashes(path);
    return path;
  } catch (error) {
    log.warn(`crashes are not recorded: ${(error as Error).message}`);
    return null;
  }
}
