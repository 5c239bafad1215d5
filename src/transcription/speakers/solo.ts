/**
 * Says what an embedding is computed of: the time in which one speaker speaks and no other. What two say at once would
 * give a voice between theirs. Pure.
 */
import { durationOf } from './frames.ts';

/** Below this an embedding says little of the voice. */
const MIN_SOLO_SEC = 0.4;

/** The seconds that local speaker `speaker` speaks alone; 0 where it is too little to know a voice by. */
export function soloSeconds(active: Uint8Array, speaker: number): number {
  let frames = 0;
  for (const set of active) if (set === 1 << speaker) frames += 1;
  const seconds = durationOf(frames);
  return seconds < MIN_SOLO_SEC ? 0 : seconds;
}

/** Sets to 1 the values of a mask in which the speaker speaks alone. @param from the mask's value of the first frame */
export function fillSolo(mask: Float32Array, from: number, active: Uint8Array, speaker: number): void {
  for (let frame = 0; frame < active.length; frame += 1)
    if (active[frame] === 1 << speaker && from + frame < mask.length) mask[from + frame] = 1;
}
