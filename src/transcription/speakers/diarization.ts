/**
 * Who speaks when. A diarization gets the blocks of the audio as they are decoded, asks the two networks about each
 * window, and gives turns with labels. There are two kinds with one interface:
 *
 * - The one of a whole file waits for the end and then finds the speakers among all voices, which is the better answer.
 * - The one of a stream (`online.ts`) knows a speaker as soon as it has heard one, and never takes a label back.
 *
 * Embeddings are voices of persons. They live as long as the request, and nothing writes them anywhere.
 */
import type { SpeakerModel } from '../../engine/types.ts';
import { type LabeledWindow, labelsFor, type WindowSpeakers } from './assignment.ts';
import { type ClusteringOptions, clusterVoices, createVoicePool } from './clustering.ts';
import { createLabels, type KnownVoice, matchKnown } from './names.ts';
import { overlappedSpeakers } from './overlapped.ts';
import { labeledByPiece } from './pieces.ts';
import { leastExpected, type NumberedTurn, turnsOf } from './turns.ts';
import { createWindowAnalysis } from './window-analysis.ts';

/** One speaker speaks, under the label that the client sees. Times are seconds from the start of the audio. */
export interface Turn {
  speaker: string;
  start: number;
  end: number;
}

export interface Diarization {
  /** Takes the next block. Resolves when its full windows are computed, so that a slow network slows the source. */
  push(block: Float32Array): Promise<void>;
  /** The turns between two times, as far as they are known now (a stream), or once `finish` has resolved (a file). */
  turnsBetween(startSec: number, endSec: number): Promise<Turn[]>;
  /** All turns, by start. Call it once, after the last block. */
  finish(): Promise<Turn[]>;
}

export interface DiarizationOptions {
  clustering: ClusteringOptions;
  known: readonly KnownVoice[];
  signal: AbortSignal;
}

/** A voice of less says too little to find speakers by. It gets the label of the speaker that it is most like. */
const LEAST_CLUSTERED_SEC = 2;
/** The windows that share frames with a window lie among so many before it. */
export const WINDOWS_BEFORE = 4;

/** The diarization of a whole file. */
export function createDiarization(model: SpeakerModel, options: DiarizationOptions): Diarization {
  const { clustering, known, signal } = options;
  const seen: WindowSpeakers[] = [];
  const [pool, short] = [createVoicePool(clustering.maxPoints), createVoicePool(clustering.maxPoints)];
  let turns: Turn[] = [];
  const windows = createWindowAnalysis(model, { signal, atOnce: false }, (window) => {
    seen.push(window);
    for (const voice of window.voices)
      if (voice !== null && voice.aloneSec > 0)
        (voice.aloneSec >= LEAST_CLUSTERED_SEC ? pool : short).add(voice, window.firstFrame);
  });

  return {
    push: windows.push,
    async turnsBetween(startSec, endSec) {
      return turns.filter(({ start, end }) => start < endSec && end > startSec);
    },
    async finish() {
      await windows.finish();
      signal.throwIfAborted();
      const points = pool.points().length > 0 ? pool.points() : short.points();
      let speakers = clusterVoices(points, clustering).map(({ direction }) => direction);
      let labeled = labeledBy(speakers, seen);
      const others = overlappedSpeakers(seen, labeled, clustering.maxPoints)
        .slice(0, Math.max(0, clustering.count.max - speakers.length))
        .map(({ direction }) => direction);
      if (others.length > 0) {
        speakers = [...speakers, ...others];
        labeled = labeledBy(speakers, seen);
      }
      const names = matchKnown(speakers, known);
      const labelOf = createLabels(
        (speaker) => names[speaker],
        known.map(({ name }) => name),
      );
      turns = turnsOf(labeled, { least: leastExpected(labeled) }).map((turn) =>
        withLabel(turn, labelOf(turn.speaker)),
      );
      return turns;
    },
  };
}

function labeledBy(speakers: readonly Float32Array[], windows: readonly WindowSpeakers[]): LabeledWindow[] {
  const labeled: LabeledWindow[] = [];
  for (const window of windows) {
    const labels = labelsFor(window, speakers, labeled.slice(-WINDOWS_BEFORE));
    labeled.push(labeledByPiece(window, labels, speakers));
  }
  return labeled;
}

export const withLabel = ({ start, end }: NumberedTurn, speaker: string): Turn => ({ speaker, start, end });
