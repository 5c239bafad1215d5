/**
 * Says what an embedding is computed of: the time in which one speaker speaks and no other. What two say at once would
 * give a voice between theirs, so it counts only where there is nothing else. Pure.
 */
import { durationOf } from './frames.ts';

/** Below this an embedding says little of the voice. */
const LEAST_SEC = 0.2;

/** The frames of a window that a voice is computed of. */
export interface Heard {
  frames: number[];
  /** The time in which the speaker speaks alone, in seconds; 0 where the frames are those with others. */
  aloneSec: number;
}

/** The frames of local speaker `speaker`; null where they are too few to know a voice by. */
export function heardOf(active: Uint8Array, speaker: number): Heard | null {
  const bit = 1 << speaker;
  const of = (isMine: (set: number) => boolean) => [...active.keys()].filter((i) => isMine(active[i] ?? 0));
  const alone = of((set) => set === bit);
  if (durationOf(alone.length) >= LEAST_SEC) return { frames: alone, aloneSec: durationOf(alone.length) };
  const all = of((set) => (set & bit) !== 0);
  return durationOf(all.length) >= LEAST_SEC ? { frames: all, aloneSec: 0 } : null;
}
