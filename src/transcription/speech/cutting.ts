/** Decides how the audio of a request is cut: by the limits of the model family and the tuning of the client. Pure. */

import type { TranscriptionRequest } from '../request.ts';
import { type ChunkLimits, DEFAULT_LIMITS } from './chunks.ts';
import { DEFAULT_SEGMENTER, type SegmenterOptions, WINDOW_SEC } from './voice-activity.ts';

/** Speech ends when its probability is this far below the threshold at which it begins. */
const HYSTERESIS = 0.15;
/** The least probability below which speech ends, because the model's probability for silence is never quite 0. */
const LEAST_END = 0.01;
/** The longest span with the silence that is kept around it: all models take a chunk of this length. */
const MAX_PADDED_SEC = 28.4;
/** A stream is cut into shorter chunks, so that the first words come soon and the rest without long waits. */
const STREAM_MAX_SEC = 14;

/**
 * The options of the segmenter and the limits of the chunks for a request.
 * @param longest the limits of the model family
 */
export function cuttingFor(
  { voiceActivity, stream }: Pick<TranscriptionRequest, 'voiceActivity' | 'stream'>,
  longest: Partial<ChunkLimits> = {},
): { segmenter: SegmenterOptions; limits: ChunkLimits } {
  const { threshold, prefixPaddingMs, silenceDurationMs } = voiceActivity;
  const windows = (ms: number) => Math.max(1, Math.round(ms / 1000 / WINDOW_SEC));
  const padding = prefixPaddingMs === undefined ? DEFAULT_SEGMENTER.padding : windows(prefixPaddingMs);
  const maxSpeech = stream ? windows(STREAM_MAX_SEC * 1000) : DEFAULT_SEGMENTER.maxSpeech;
  const segmenter: SegmenterOptions = {
    ...DEFAULT_SEGMENTER,
    padding,
    maxSpeech: Math.min(maxSpeech, windows(MAX_PADDED_SEC * 1000) - 2 * padding),
    ...(threshold !== undefined && {
      threshold,
      endThreshold: Math.min(threshold, Math.max(LEAST_END, threshold - HYSTERESIS)),
    }),
    ...(silenceDurationMs !== undefined && { minSilence: windows(silenceDurationMs) }),
  };
  const limits = { ...DEFAULT_LIMITS, ...longest };
  if (!stream) return { segmenter, limits };
  const { maxGapSec: firstGapSec } = DEFAULT_LIMITS;
  return { segmenter, limits: { ...limits, maxSec: Math.min(limits.maxSec, STREAM_MAX_SEC), firstGapSec } };
}
