/**
 * Keeps the turns that peers found, below build/bench-turns. They never change for the same versions and samples, so a
 * run that is after errors, not after times, need not wait for them again.
 */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { keptIn, keyOfSamples } from '../common/kept-lines.ts';
import type { Diarized, Diarizer, StartDiarizer } from '../peers/diarizer.ts';
import { ROOT } from '../peers/peer.ts';
import type { SpeakerSpan } from './conversations/reference.ts';

const FOLDER = join(ROOT, 'build/bench-turns');

interface Kept {
  key: string;
  turns: SpeakerSpan[];
}

/**
 * Writes down the turns of every file.
 * @param read takes turns that are known, too; they have NaN for the times
 */
export function keepingTurns(
  id: string,
  start: StartDiarizer,
  { read, folder = FOLDER }: { read: boolean; folder?: string },
): StartDiarizer {
  return async (options): Promise<Diarizer> => {
    const peer = await start(options);
    mkdirSync(folder, { recursive: true });
    const file = join(folder, `${id}.jsonl`);
    const known = keptIn<Kept>(file);
    return {
      ...peer,
      async diarize(audio): Promise<Diarized> {
        const key = keyOfSamples(`${peer.name} ${peer.version}`, audio);
        const kept = known.get(key);
        if (read && kept !== undefined) return { turns: kept.turns, wallMs: Number.NaN, cpuSec: Number.NaN };
        const diarized = await peer.diarize(audio);
        if (kept === undefined) {
          known.set(key, { key, turns: diarized.turns });
          appendFileSync(file, `${JSON.stringify({ key, turns: diarized.turns })}\n`);
        }
        return diarized;
      },
    };
  };
}
