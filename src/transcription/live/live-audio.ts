/**
 * The audio of a live session with the probabilities of speech in it, by windows. Only what is still needed is held. A
 * part of it is handed to a transcription session like a file, and the probabilities with it, so that nothing is
 * searched for speech twice and the spans are those of the whole stream.
 */
import { joined } from '../../audio/decoder.ts';
import type { AudioSource } from '../../audio/open.ts';
import type { ModelCache } from '../../engine/cache.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';
import { createAudioWindow } from '../speech/audio-window.ts';
import { WINDOW_SAMPLES } from '../speech/voice-activity.ts';

/** A part of the audio. It belongs to its owner and does not change. */
export interface Excerpt {
  samples: Float32Array;
  /** One for each window of the samples. */
  probabilities: Float32Array;
  /** True where it begins with the rest of speech that was too long and has been cut. */
  continued: boolean;
}

export type LiveAudio = ReturnType<typeof createLiveAudio>;

export function createLiveAudio(vad: VoiceActivityModel) {
  const audio = createAudioWindow();
  /** One of each window of the audio. */
  const speech = createAudioWindow();
  let rest: Float32Array = new Float32Array(0);
  let reset = true;

  /** Adds samples, and returns the probabilities of the windows that they complete. */
  async function append(samples: Float32Array, signal: AbortSignal): Promise<Float32Array> {
    const all = joined([rest, samples]);
    const count = Math.floor(all.length / WINDOW_SAMPLES);
    rest = all.slice(count * WINDOW_SAMPLES);
    if (count === 0) return new Float32Array(0);
    const whole = all.slice(0, count * WINDOW_SAMPLES);
    const probabilities = await vad.probabilities(whole, { reset }, { signal });
    reset = false;
    audio.append(whole);
    speech.append(probabilities);
    return probabilities;
  }

  return {
    append,
    /** Fills up the last window with silence, and tells how much of that it took. */
    async fill(signal: AbortSignal) {
      const samples = (WINDOW_SAMPLES - rest.length) % WINDOW_SAMPLES;
      return { probabilities: await append(new Float32Array(samples), signal), samples };
    },
    /** Drops the samples of the window that is not complete. */
    dropRest(): void {
      rest = new Float32Array(0);
    },
    /** The next window is the first of something new: the voice activity model forgets what it heard before. */
    forgetVoice(): void {
      reset = true;
    },
    /** Windows `start` to `end`; none of them may have been forgotten. */
    excerpt: (start: number, end: number, continued = false): Excerpt => ({
      samples: audio.copy(start * WINDOW_SAMPLES, end * WINDOW_SAMPLES),
      probabilities: speech.copy(start, end),
      continued,
    }),
    /** Lets go of the windows before this one. */
    forget(before: number): void {
      audio.forget(before * WINDOW_SAMPLES);
      speech.forget(before);
    },
    /** The number of complete windows since the beginning. */
    get windows() {
      return speech.length;
    },
    /** Samples of a window that is not complete yet. */
    get rest() {
      return rest.length;
    },
  };
}

/** The excerpt as the source of a session. */
export function sourceOf({ samples }: Excerpt): AudioSource {
  const close = async () => undefined;
  return {
    durationSec: null,
    async *blocks() {
      yield samples;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Stands for the voice activity model in a session over the excerpt. */
export function knownProbabilities({
  probabilities,
}: Excerpt): Pick<ModelCache<VoiceActivityModel>, 'lease'> {
  const model = { probabilities: async () => probabilities, close: async () => undefined };
  return { lease: async () => ({ model, [Symbol.asyncDispose]: async () => undefined }) };
}
