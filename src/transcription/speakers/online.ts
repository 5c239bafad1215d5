/**
 * Online diarization: who speaks in a stream. Each window is compared with the speakers so far. A voice unlike all of
 * them that is heard long enough is a new speaker. Speakers are never merged, split or renamed. Windows that come later
 * may hear the same frames otherwise, so turns are settled when they are first asked for: what was sent stays.
 */
import type { SpeakerModel } from '../../engine/types.ts';
import { TOGETHER } from './agglomerative.ts';
import {
  endOf,
  type LabeledWindow,
  labelsFor,
  sharesOf,
  UNKNOWN,
  type WindowSpeakers,
} from './assignment.ts';
import { type Diarization, type DiarizationOptions, WINDOWS_BEFORE, withLabel } from './diarization.ts';
import { createLabels, NAME_COSINE } from './names.ts';
import { frameAt } from './segmentation.ts';
import { type NumberedTurn, PAUSE_SEC, turnsOf } from './turns.ts';
import { type Centroid, centroidOf, cosine, joined, type LocalVoice } from './voice.ts';
import { createWindowAnalysis } from './window-analysis.ts';

/** A voice that is less like a speaker is another's. Single voices differ more than groups of them. */
const THRESHOLD = 0.55;
/** A new speaker must have said so much alone in the window. */
const LEAST_NEW_SEC = 2;
/**
 * A voice whose frames the windows before gave to a speaker, this share of them, may be so much less like that speaker
 * before it counts as new. It may also be someone new who was too short in those windows to be told apart.
 */
const CONTINUED = { share: 0.5, lenience: 0.2 };
/** Shorter voices are labeled, but a speaker's voice is not learned from them. */
const LEAST_LEARNED_SEC = 1;
/** How much a reference counts against the seconds that are heard in the audio. */
const REFERENCE_WEIGHT = 2;

export interface OnlineDiarization extends Diarization {
  /** Lets go of the turns that end before this time. They are in no answer any more. */
  forget(beforeSec: number): void;
  /** Begins a new audio with the speakers of the one before, as after a failure within it. Its times begin at 0. */
  restart(): void;
}

export interface OnlineOptions extends DiarizationOptions {
  /**
   * True to label windows again when a new speaker is heard, as far as no turn of them was asked for. It helps where
   * much audio comes before its turns are asked for, as with the utterances of a live session.
   */
  relabels?: boolean;
}

/** A window with what its labels are found by. */
interface HeardWindow extends LabeledWindow {
  speakers: WindowSpeakers;
}

export function createOnlineDiarization(model: SpeakerModel, options: OnlineOptions): OnlineDiarization {
  const { known, signal, relabels = false } = options;
  const registry = new SpeakerRegistry(options);
  const labelOf = createLabels(
    (speaker) => known[speaker]?.name,
    known.map(({ name }) => name),
  );
  let windows: HeardWindow[] = [];
  let turns = createSettledTurns();

  function label(window: WindowSpeakers): void {
    const hasNew = registry.addNew(window, windows);
    if (hasNew && relabels)
      windows.forEach((one, i) => {
        if (endOf(one) > turns.settledTo) one.labels = registry.labelsOf(one.speakers, windows.slice(0, i));
      });
    const given = registry.labelsOf(window, windows);
    const { firstFrame, active, expected } = window;
    windows.push({ firstFrame, active, expected, labels: given, speakers: window });
    registry.learn(window, given);
  }

  function settle(frame: number): void {
    if (!turns.settle(windows, frame)) return;
    // Windows that no frame needs any more, besides the last ones, to which the next is compared.
    const lastOnes = Math.max(0, windows.length - WINDOWS_BEFORE);
    windows = windows.filter((window, i) => i >= lastOnes || endOf(window) > turns.settledTo);
  }

  const turnsIn = (startSec: number, endSec: number) =>
    turns.between(startSec, endSec).map((turn) => withLabel(turn, labelOf(turn.speaker)));

  const openReader = () => createWindowAnalysis(model, { signal, atOnce: true }, label);
  let reader = openReader();

  return {
    push: (block) => reader.push(block),
    async turnsBetween(startSec, endSec) {
      const to = frameAt(endSec) + 1;
      await reader.reach(to);
      settle(to);
      return turnsIn(startSec, endSec);
    },
    async finish() {
      await reader.finish();
      settle(Number.POSITIVE_INFINITY);
      return turnsIn(0, Number.POSITIVE_INFINITY);
    },
    forget: (beforeSec) => turns.forget(beforeSec),
    restart() {
      reader = openReader();
      windows = [];
      turns = createSettledTurns();
    },
  };
}

/** The speakers so far. A speaker is an index of `#voices`. */
class SpeakerRegistry {
  /** The known voices are the first of them, from the beginning. They have a label only once they are heard. */
  readonly #voices: Centroid[];
  readonly #knownCount: number;
  readonly #maxCount: number;
  /** Those of whom enough was said to learn their voice from the audio. */
  readonly #established = new Set<number>();
  /** The speakers of whom something was said, also those heard too short to be learned from. */
  readonly #named = new Set<number>();

  constructor({ known, clustering }: OnlineOptions) {
    this.#voices = known.map(({ direction }) => centroidOf({ direction, weight: REFERENCE_WEIGHT }, -1));
    this.#knownCount = known.length;
    this.#maxCount = clustering.count.max;
  }

  /** Adds the new speakers of a window; false where it has none. */
  addNew(window: WindowSpeakers, before: readonly LabeledWindow[]): boolean {
    const speakersBefore = this.#voices.length;
    window.voices.forEach((voice, local) => {
      if (voice === null || !this.#isNew(voice, local, window, before)) return;
      this.#established.add(this.#voices.length);
      this.#named.add(this.#voices.length);
      this.#voices.push(centroidOf(voice, window.firstFrame));
    });
    return this.#voices.length > speakersBefore;
  }

  /** True when a voice is none of the speakers so far, and is heard well enough to be one. */
  #isNew(
    voice: LocalVoice,
    local: number,
    window: WindowSpeakers,
    before: readonly LabeledWindow[],
  ): boolean {
    if (this.#named.size >= this.#maxCount || voice.aloneSec < LEAST_NEW_SEC) return false;
    const shares = sharesOf(window, local, before.slice(-WINDOWS_BEFORE), this.#voices.length);
    return this.#voices.every(({ direction }, speaker) => {
      const lenience = (shares[speaker] ?? 0) >= CONTINUED.share ? CONTINUED.lenience : 0;
      const alike = cosine(direction, voice.direction);
      // As in the clustering: where another voice of the window is more like the speaker, this one is less so.
      const isOther = window.voices.some(
        (other, i) => i !== local && other !== null && cosine(direction, other.direction) > alike,
      );
      return alike - (isOther ? TOGETHER : 0) < this.#thresholdOf(speaker) - lenience;
    });
  }

  /** The speaker of each local speaker of a window, or `UNKNOWN`. */
  labelsOf(window: WindowSpeakers, windowsBefore: readonly LabeledWindow[]): number[] {
    const candidates = [...this.#established, ...this.#arriving(window)].sort((a, b) => a - b);
    const directions = candidates.map((i) => (this.#voices[i] as Centroid).direction);
    const before = windowsBefore.slice(-WINDOWS_BEFORE).map((one) => ({
      ...one,
      labels: one.labels.map((speaker) => candidates.indexOf(speaker)),
    }));
    return labelsFor(window, directions, before).map((candidate) => candidates[candidate] ?? UNKNOWN);
  }

  /** Known voices that were heard too little so far. Those without a label are limited in number. */
  #arriving({ voices }: WindowSpeakers): number[] {
    const likeness = ({ direction }: Centroid) =>
      Math.max(...voices.map((voice) => (voice === null ? -1 : cosine(voice.direction, direction))));
    const alike = this.#voices
      .slice(0, this.#knownCount)
      .map((centroid, speaker) => ({ speaker, likeness: likeness(centroid) }))
      .filter(({ speaker, likeness }) => !this.#established.has(speaker) && likeness >= NAME_COSINE)
      .sort((a, b) => b.likeness - a.likeness)
      .map(({ speaker }) => speaker);
    const room = Math.max(0, this.#maxCount - this.#named.size);
    return [
      ...alike.filter((speaker) => this.#named.has(speaker)),
      ...alike.filter((speaker) => !this.#named.has(speaker)).slice(0, room),
    ];
  }

  /** Learns the voices of the speakers from a window that has its labels. */
  learn({ voices, firstFrame }: WindowSpeakers, labels: readonly number[]): void {
    labels.forEach((speaker, local) => {
      const voice = voices[local];
      if (speaker === UNKNOWN || !voice) return;
      this.#named.add(speaker);
      const before = this.#voices[speaker] as Centroid;
      const similarity = cosine(before.direction, voice.direction);
      if (voice.aloneSec < LEAST_LEARNED_SEC || similarity < this.#thresholdOf(speaker)) return;
      this.#established.add(speaker);
      this.#voices[speaker] = joined(before, centroidOf(voice, firstFrame));
    });
  }

  #thresholdOf(speaker: number): number {
    return speaker < this.#knownCount && !this.#established.has(speaker) ? NAME_COSINE : THRESHOLD;
  }
}

/** The turns that are settled, up to a frame. */
function createSettledTurns() {
  let turns: NumberedTurn[] = [];
  let settledTo = 0;
  return {
    get settledTo() {
      return settledTo;
    },
    /** Settles the turns up to a frame, as far as the windows reach; false where they are settled already. */
    settle(windows: readonly LabeledWindow[], frame: number): boolean {
      const analyzedTo = windows.reduce((end, window) => Math.max(end, endOf(window)), 0);
      const to = Math.min(frame, analyzedTo);
      if (to <= settledTo) return false;
      for (const turn of turnsOf(windows, { from: settledTo, to })) {
        const last = turns.findLast(({ speaker }) => speaker === turn.speaker);
        if (last !== undefined && turn.start - last.end <= PAUSE_SEC) last.end = Math.max(last.end, turn.end);
        else turns.push(turn);
      }
      settledTo = to;
      return true;
    },
    between: (startSec: number, endSec: number) =>
      turns.filter(({ start, end }) => start < endSec && end > startSec),
    forget(beforeSec: number): void {
      turns = turns.filter(({ end }) => end > beforeSec);
    },
  };
}
