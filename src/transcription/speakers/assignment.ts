/** Gives the local speakers of one window the labels of the speakers of the whole audio. Pure. */
import { LOCAL_SPEAKERS } from './segmentation.ts';
import { cosine, type LocalVoice, type Voice } from './voice.ts';

/** No speaker of the audio. */
export const UNKNOWN = -1;

/** Voices of one window that are more alike are one person whom the segmentation took for two. */
const SAME_VOICE = 0.8;

/** What the segmentation says of one window. */
export interface WindowFrames {
  firstFrame: number;
  /** The set of local speakers of each frame, as bits. */
  active: Uint8Array;
  /** How many speak in each frame, 0 to 2; see `expectedSpeakers`. */
  expected: Float32Array;
}

/** The first frame of the audio behind the window. */
export const endOf = ({ firstFrame, active }: WindowFrames): number => firstFrame + active.length;

/** What one window says: who of its own speakers speaks when, and what they sound like. */
export interface WindowSpeakers extends WindowFrames {
  /** The voice of each local speaker; null where too little of it is heard. */
  voices: (LocalVoice | null)[];
}

/** A window whose local speakers have labels. */
export interface LabeledWindow extends WindowFrames {
  /** The label of each local speaker, an index of the speakers of the audio, or `UNKNOWN`. Two may have the same. */
  labels: number[];
}

/**
 * The label of each local speaker: the allocation with the largest sum of similarities in which two voices share a
 * label only if they are alike. One without a voice gets the label that the windows before gave the same frames.
 * @param speakers the directions of the speakers of the audio
 * @param before the labeled windows that share frames with this one
 */
export function labelsFor(
  window: WindowSpeakers,
  speakers: readonly Float32Array[],
  before: readonly LabeledWindow[],
): number[] {
  const { voices } = window;
  const scores = voices.map((voice) => voice && speakers.map((speaker) => cosine(voice.direction, speaker)));
  const labels = bestAllocation(voices, scores);
  return labels.map((label, local) => {
    if (label !== UNKNOWN || voices[local] !== null) return label;
    const share = sharesOf(window, local, before, speakers.length);
    const most = Math.max(0, ...share);
    return most > 0 ? share.indexOf(most) : UNKNOWN;
  });
}

function bestAllocation(voices: readonly (Voice | null)[], scores: readonly (number[] | null)[]): number[] {
  const choices = scores.map((of) =>
    of === null || of.length === 0
      ? [UNKNOWN]
      : of
          .map((_, label) => label)
          .sort((a, b) => (of[b] ?? 0) - (of[a] ?? 0))
          .slice(0, LOCAL_SPEAKERS),
  );
  let best: { labels: number[]; sum: number } | null = null;
  const visit = (labels: number[], sum: number): void => {
    const local = labels.length;
    if (local === voices.length) {
      if (best === null || sum > best.sum) best = { labels, sum };
      return;
    }
    const open = (choices[local] ?? []).filter((label) => mayHave(voices, labels, local, label));
    // With more local speakers than labels some have to share one.
    for (const label of open.length > 0 ? open : (choices[local] ?? []).slice(0, 1))
      visit([...labels, label], sum + (scores[local]?.[label] ?? 0));
  };
  visit([], 0);
  return (best as { labels: number[] } | null)?.labels ?? voices.map(() => UNKNOWN);
}

function mayHave(voices: readonly (Voice | null)[], labels: number[], local: number, label: number): boolean {
  if (label === UNKNOWN) return true;
  const mine = voices[local];
  return labels.every((taken, other) => {
    const theirs = voices[other];
    return taken !== label || !mine || !theirs || cosine(mine.direction, theirs.direction) >= SAME_VOICE;
  });
}

/**
 * For each speaker of the audio, the share (0 to 1) of a local speaker's frames at which the windows before had that
 * speaker. Only frames that those windows have count; 0 where there are none.
 */
export function sharesOf(
  { firstFrame, active }: WindowSpeakers,
  local: number,
  before: readonly LabeledWindow[],
  speakers: number,
): number[] {
  const common = new Array<number>(speakers).fill(0);
  let frames = 0;
  for (const window of before) {
    const from = Math.max(firstFrame, window.firstFrame);
    const to = Math.min(firstFrame + active.length, endOf(window));
    for (let frame = from; frame < to; frame += 1) {
      if (((active[frame - firstFrame] ?? 0) & (1 << local)) === 0) continue;
      frames += 1;
      const there = window.active[frame - window.firstFrame] ?? 0;
      window.labels.forEach((label, other) => {
        if (label !== UNKNOWN && (there & (1 << other)) !== 0) common[label] = (common[label] ?? 0) + 1;
      });
    }
  }
  return common.map((count) => (frames > 0 ? count / frames : 0));
}
