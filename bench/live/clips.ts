/** Recorded sentences of 2 to 10 s as someone says them to a live session: with silence around, at their own pace. */
import { WINDOW_SAMPLES } from '../../src/transcription/speech/voice-activity.ts';
import { wav } from '../../test/wav.ts';
import type { Clip } from '../clips/clips.ts';
import { promptsOf } from '../clips/prompt-groups.ts';
import { sleep } from '../common/processes.ts';
import { wavSamples } from '../common/samples.ts';

export interface LiveClip extends Clip {
  text: string;
  /** 16 kHz mono, with the silence around it. */
  samples: Int16Array;
  /** The same samples as a wav file. */
  file: Buffer;
  /** Where the first word begins in the samples, ms. */
  firstWordMs: number;
  /** Where the last word ends, ms. */
  spokenEndMs: number;
}

export const SAMPLES_A_MS = 16;
const LEAST_SEC = 2;
const MOST_SEC = 10;
const BEFORE_MS = 400;
/** Longer than the silence that ends an utterance, because the clips end at different levels of noise. */
const AFTER_MS = 1200;
const FRAME_MS = 10;
/** A frame belongs to a word when it is at most this far below the loudest one. */
const SOFTEST_DB = 30;

/** @param tuning takes the half of the clips on which settings may be tuned, not the one that judges them */
export function liveClips(most: number, tuning: boolean): LiveClip[] {
  return promptsOf('en')
    .filter((clip) => clip.tuning === tuning && clip.seconds >= LEAST_SEC && clip.seconds <= MOST_SEC)
    .slice(0, most)
    .map((clip) => {
      const spoken = samplesOfFile(clip.audio);
      const length = spoken.length + (BEFORE_MS + AFTER_MS) * SAMPLES_A_MS;
      // Whole windows, so that a session which says several clips counts its time as we do.
      const samples = new Int16Array(Math.ceil(length / WINDOW_SAMPLES) * WINDOW_SAMPLES);
      const { start, end } = wordsIn(spoken);
      samples.set(spoken, BEFORE_MS * SAMPLES_A_MS);
      return {
        ...clip,
        samples,
        file: wav(samples),
        firstWordMs: BEFORE_MS + start,
        spokenEndMs: BEFORE_MS + end,
      };
    });
}

export interface Feed {
  samples: Int16Array;
  packetMs: number;
  send(packet: Int16Array): void;
}

/**
 * Sends packets as a microphone gives them: each when its last sample has been said. Resolves with a function that
 * tells when the packet was sent that completes the audio up to a time, ms; Infinity when none does.
 */
export async function feed({ samples, packetMs, send }: Feed): Promise<(audioMs: number) => number> {
  const startedAt = performance.now();
  const sentAt: number[] = [];
  const size = packetMs * SAMPLES_A_MS;
  for (let i = 0; i * size < samples.length; i += 1) {
    const leftMs = startedAt + (i + 1) * packetMs - performance.now();
    if (leftMs > 0) await sleep(leftMs);
    sentAt.push(performance.now());
    send(samples.subarray(i * size, (i + 1) * size));
  }
  return (audioMs) => sentAt[Math.ceil(audioMs / packetMs) - 1] ?? Number.POSITIVE_INFINITY;
}

function samplesOfFile(path: string): Int16Array {
  const bytes = wavSamples(path);
  return new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

/** From the first to the last frame that is not much softer than the loudest one, ms. */
function wordsIn(samples: Int16Array): { start: number; end: number } {
  const size = FRAME_MS * SAMPLES_A_MS;
  const levels = Array.from({ length: Math.floor(samples.length / size) }, (_, i) => {
    const frame = samples.subarray(i * size, (i + 1) * size);
    return 10 * Math.log10(frame.reduce((sum, sample) => sum + sample ** 2, 1) / size);
  });
  const least = Math.max(...levels) - SOFTEST_DB;
  const isLoud = (level: number) => level >= least;
  return { start: levels.findIndex(isLoud) * FRAME_MS, end: (levels.findLastIndex(isLoud) + 1) * FRAME_MS };
}
