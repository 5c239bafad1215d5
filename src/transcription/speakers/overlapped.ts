/**
 * Finds the speakers who are heard only while another speaks, as in a meeting that one person leads. What two say at
 * once gives a voice between theirs, so it makes no speakers beside those who are heard alone. But where two locals of a
 * window speak at once and both are most like one speaker, one of them is somebody else. Pure.
 */
import { centroidsOf, groupsBelow } from './agglomerative.ts';
import { type LabeledWindow, UNKNOWN, type WindowSpeakers } from './assignment.ts';
import { createVoicePool } from './clustering.ts';
import { durationOf } from './segmentation.ts';
import type { Centroid } from './voice.ts';

/** Two locals of a window speak at once for at least so long; less is the seam between two turns. */
const LEAST_AT_ONCE_SEC = 0.5;
/** Such voices that are less alike are of two persons. */
const ONE_VOICE = 0.5;
/** A speaker is heard so long in all; less is a window that took one person for two. */
const LEAST_SEC = 2;

/**
 * The speakers besides those of the labels, those who speak most first.
 * @param labeled the windows with labels, in the same order
 * @param maxPoints the most voices that are compared with each other
 */
export function overlappedSpeakers(
  windows: readonly WindowSpeakers[],
  labeled: readonly LabeledWindow[],
  maxPoints: number,
): Centroid[] {
  const pool = createVoicePool(maxPoints);
  windows.forEach((window, i) => {
    const labels = labeled[i]?.labels ?? [];
    for (const local of window.voices.keys()) {
      const voice = window.voices[local];
      if (voice && isOther(window, labels, local)) pool.add(voice, window.firstFrame);
    }
  });
  const points = pool.points();
  return centroidsOf(points, groupsBelow(points, ONE_VOICE)).filter(({ weight }) => weight >= LEAST_SEC);
}

/** True for a local whose label belongs to another one, who speaks at the same time and is heard more clearly. */
function isOther({ voices, active }: WindowSpeakers, labels: readonly number[], local: number): boolean {
  const label = labels[local] ?? UNKNOWN;
  const aloneSec = voices[local]?.aloneSec ?? 0;
  return voices.some((voice, other) => {
    if (!voice || other === local || label === UNKNOWN || labels[other] !== label) return false;
    if (voice.aloneSec < aloneSec || (voice.aloneSec === aloneSec && other > local)) return false;
    const both = (1 << local) | (1 << other);
    const frames = active.reduce((sum, set) => sum + ((set & both) === both ? 1 : 0), 0);
    return durationOf(frames) >= LEAST_AT_ONCE_SEC;
  });
}
