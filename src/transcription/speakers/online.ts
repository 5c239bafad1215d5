/**
 * The diarization of a stream. Each window is compared with the speakers so far. A voice unlike all of them that is
 * heard long enough is a new speaker. Speakers are never merged, split or renamed. Windows that come later may hear the
 * same frames otherwise, so turns are settled when they are first asked for: what was sent stays.
 */

import type { SpeakerModel } from '../../engine/types.ts';
import { TOGETHER } from './agglomerative.ts';
import { type LabeledWindow, labelsFor, sharesOf, UNKNOWN, type WindowSpeakers } from './assignment.ts';
import { type Diarization, type DiarizationOptions, WINDOWS_BEFORE, withLabel } from './diarization.ts';
import { frameAt } from './frames.ts';
import { createListening } from './listening.ts';
import { createLabels, NAME_COSINE } from './names.ts';
import { type NumberedTurn, PAUSE_SEC, turnsOf } from './turns.ts';
import { type Centroid, centroidOf, cosine, joined, type LocalVoice } from './voice.ts';

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
  heard: WindowSpeakers;
}

export function createOnlineDiarization(model: SpeakerModel, options: OnlineOptions): OnlineDiarization {
  const { clustering, known, signal, relabels = false } = options;
  // Known voices are speakers from the beginning. They have a label only once they are heard.
  const speakers: Centroid[] = known.map(({ direction }) =>
    centroidOf({ direction, weight: REFERENCE_WEIGHT }, -1),
  );
  const heard = new Set<number>();
  /** The speakers of whom something was said, also those heard too short to be learned from. */
  const named = new Set<number>();
  let windows: HeardWindow[] = [];
  const labels = createLabels(
    (speaker) => known[speaker]?.name,
    known.map(({ name }) => name),
  );

  const thresholdOf = (speaker: number) =>
    speaker < known.length && !heard.has(speaker) ? NAME_COSINE : THRESHOLD;

  /** True when a voice is none of the speakers so far, and is heard well enough to be one. */
  function isNew(voice: LocalVoice, local: number, window: WindowSpeakers): boolean {
    if (named.size >= clustering.count.max || voice.aloneSec < LEAST_NEW_SEC) return false;
    const shares = sharesOf(window, local, windows.slice(-WINDOWS_BEFORE), speakers.length);
    return speakers.every(({ direction }, speaker) => {
      const lenience = (shares[speaker] ?? 0) >= CONTINUED.share ? CONTINUED.lenience : 0;
      const alike = cosine(direction, voice.direction);
      // As in the clustering: where another voice of the window is more like the speaker, this one is less so.
      const isOther = window.voices.some(
        (other, i) => i !== local && other !== null && cosine(direction, other.direction) > alike,
      );
      return alike - (isOther ? TOGETHER : 0) < thresholdOf(speaker) - lenience;
    });
  }

  function label(window: WindowSpeakers): void {
    const speakersBefore = speakers.length;
    window.voices.forEach((voice, local) => {
      if (voice === null || !isNew(voice, local, window)) return;
      heard.add(speakers.length);
      named.add(speakers.length);
      speakers.push(centroidOf(voice, window.firstFrame));
    });
    if (relabels && speakers.length > speakersBefore)
      windows.forEach((one, i) => {
        if (endOf(one) > settledTo) one.labels = labelsOf(one.heard, windows.slice(0, i));
      });
    const given = labelsOf(window, windows);
    const { firstFrame, active, expected } = window;
    windows.push({ firstFrame, active, expected, labels: given, heard: window });
    given.forEach((speaker, local) => {
      const voice = window.voices[local];
      if (speaker === UNKNOWN || !voice) return;
      named.add(speaker);
      const before = speakers[speaker] as Centroid;
      const similarity = cosine(before.direction, voice.direction);
      if (voice.aloneSec < LEAST_LEARNED_SEC || similarity < thresholdOf(speaker)) return;
      heard.add(speaker);
      speakers[speaker] = joined(before, centroidOf(voice, window.firstFrame));
    });
  }

  function labelsOf(window: WindowSpeakers, windowsBefore: readonly LabeledWindow[]): number[] {
    const candidates = [...heard, ...arriving(window)].sort((a, b) => a - b);
    const directions = candidates.map((i) => (speakers[i] as Centroid).direction);
    const before = windowsBefore.slice(-WINDOWS_BEFORE).map((one) => ({
      ...one,
      labels: one.labels.map((speaker) => candidates.indexOf(speaker)),
    }));
    return labelsFor(window, directions, before).map((candidate) => candidates[candidate] ?? UNKNOWN);
  }

  /** The known voices of which too little was heard so far. Those that had no label yet are as many as there may be. */
  function arriving({ voices }: WindowSpeakers): number[] {
    const likeness = ({ direction }: Centroid) =>
      Math.max(...voices.map((voice) => (voice === null ? -1 : cosine(voice.direction, direction))));
    const alike = speakers
      .slice(0, known.length)
      .map((centroid, speaker) => ({ speaker, likeness: likeness(centroid) }))
      .filter(({ speaker, likeness }) => !heard.has(speaker) && likeness >= NAME_COSINE)
      .sort((a, b) => b.likeness - a.likeness)
      .map(({ speaker }) => speaker);
    const room = Math.max(0, clustering.count.max - named.size);
    return [
      ...alike.filter((speaker) => named.has(speaker)),
      ...alike.filter((speaker) => !named.has(speaker)).slice(0, room),
    ];
  }

  const listening = () => createListening(model, { signal, atOnce: true }, label);
  let reader = listening();
  let settled: NumberedTurn[] = [];
  let settledTo = 0;

  function settle(frame: number): void {
    const heardTo = windows.reduce((end, window) => Math.max(end, endOf(window)), 0);
    const to = Math.min(frame, heardTo);
    if (to <= settledTo) return;
    for (const turn of turnsOf(windows, { from: settledTo, to })) {
      const last = settled.findLast(({ speaker }) => speaker === turn.speaker);
      if (last !== undefined && turn.start - last.end <= PAUSE_SEC) last.end = Math.max(last.end, turn.end);
      else settled.push(turn);
    }
    settledTo = to;
    // Windows that no frame needs any more, besides the last ones, to which the next is compared.
    const kept = Math.max(0, windows.length - WINDOWS_BEFORE);
    windows = windows.filter((window, i) => i >= kept || endOf(window) > settledTo);
  }
  const turnsIn = (startSec: number, endSec: number) =>
    settled
      .filter(({ start, end }) => start < endSec && end > startSec)
      .map((turn) => withLabel(turn, labels.of(turn.speaker)));

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
    forget(beforeSec) {
      settled = settled.filter(({ end }) => end > beforeSec);
    },
    restart() {
      reader = listening();
      [windows, settled, settledTo] = [[], [], 0];
    },
  };
}

const endOf = ({ firstFrame, active }: LabeledWindow) => firstFrame + active.length;
