/** Decides how the audio of a request is cut: by the limits of the model family and the tuning of the client. Pure. */
import type { TranscriptionRequest } from '../request.ts';
import { type ChunkLimits, DEFAULT_LIMITS } from './chunks.ts';
import { DEFAULT_SEGMENTER, type SegmenterOptions, windowsIn } from './voice-activity.ts';

/** Speech ends when its probability is this far below the threshold at which it begins. */
const HYSTERESIS = 0.15;
/** The least probability below which speech ends, because the model's probability for silence is never quite 0. */
const LEAST_END = 0.01;
/** The longest span with the silence that is kept around it: all models take a chunk of this length. */
const MAX_PADDED_SEC = 28.4;
/**
 * The first chunk of a file is shorter than the others, so that the first words of a stream come soon. It is so for an
 * answer as a whole, too: chunks that are cut elsewhere may have other words.
 */
const FIRST_MAX_SEC = 14;

/**
 * The options of the segmenter and the limits of the chunks for a request.
 * @param longest the limits of the model family
 * @param isFile false for an utterance of a live session, whose text is wanted as a whole
 */
export function cuttingFor(
  { voiceActivity }: Pick<TranscriptionRequest, 'voiceActivity'>,
  longest: Partial<ChunkLimits>,
  isFile: boolean,
): { segmenter: SegmenterOptions; limits: ChunkLimits } {
  const { threshold, prefixPaddingMs, silenceDurationMs } = voiceActivity;
  const windows = (ms: number) => Math.max(1, windowsIn(ms));
  const padding = prefixPaddingMs === undefined ? DEFAULT_SEGMENTER.padding : windows(prefixPaddingMs);
  const maxSpeech = Math.min(DEFAULT_SEGMENTER.maxSpeech, windows(MAX_PADDED_SEC * 1000) - 2 * padding);
  const segmenter: SegmenterOptions = {
    ...DEFAULT_SEGMENTER,
    padding,
    maxSpeech,
    ...(isFile && { firstMaxSpeech: Math.min(maxSpeech, windows(FIRST_MAX_SEC * 1000)) }),
    ...(threshold !== undefined && {
      threshold,
      endThreshold: Math.min(threshold, Math.max(LEAST_END, threshold - HYSTERESIS)),
    }),
    ...(silenceDurationMs !== undefined && { minSilence: windows(silenceDurationMs) }),
  };
  const limits = { ...DEFAULT_LIMITS, ...longest };
  if (!isFile) return { segmenter, limits };
  const firstSec = Math.min(limits.maxSec, FIRST_MAX_SEC);
  return { segmenter, limits: { ...limits, firstSec, firstGapSec: DEFAULT_LIMITS.maxGapSec } };
}
