/** What a model will need before it is loaded: its memory, and how many chunks it decodes side by side. */
import { megabytes } from './disk.ts';
import { publishedFile } from './hub.ts';
import type { StoredModel } from './store.ts';
import type { Precision, Weights } from './weights.ts';

export interface MemoryNeeds {
  /** What the weights and one lane take. A loaded model says the same in `ModelInfo.memoryBytes`. */
  bytes: number;
  /** Whether the model needs more: what it works with is known of Whisper only. */
  isLeast: boolean;
  /** What each further lane adds. */
  laneBytes: number;
  /** `ModelInfo.lanes` on a CPU; 1 on a GPU, where it depends on what is free. */
  lanes: number;
}

/** The rules of native/backends/whisper/whisper_backend.cpp. A test compares both. */
const MOST_LANES = 8;
const MOST_LANE_THREADS = 256;
const MOST_LANE_BYTES = 2 ** 30;

/**
 * The keys and values of a lane: as many positions, of the audio and of the text, in 16 bits. The rest of what it works
 * with grows with the width, and was fitted to the shapes of tiny, base and small.
 */
const KEPT_BYTES = 2 * 2 * (1536 + 512);
const WORKING_BYTES = 60_500;

/** The part of an f16 file that its q8_0 file has. */
const QUANTIZED = 0.536;

/**
 * @param files the files of the model that are on disk
 * @returns null where not even the size of the weights is known
 */
export function memoryNeeds(
  model: Weights,
  precision: Precision,
  { threads, files }: { threads: number; files: StoredModel['files'] },
): MemoryNeeds | null {
  const weights = weightBytes(model, precision, files);
  if (weights === null) return null;
  if (model.checkpoint === undefined) return { bytes: weights, isLeast: true, laneBytes: 0, lanes: 1 };
  const [width, , textLayers] = model.checkpoint;
  const laneBytes = width * (KEPT_BYTES * textLayers + WORKING_BYTES);
  if (precision === 'f16') return { bytes: weights + laneBytes, isLeast: false, laneBytes, lanes: 1 };
  const more = Math.floor(MOST_LANE_BYTES / laneBytes);
  const lanes = Math.min(1 + more, MOST_LANES, threads, Math.floor(MOST_LANE_THREADS / threads));
  return { bytes: weights + laneBytes, isLeast: false, laneBytes, lanes: Math.max(1, lanes) };
}

/** Such as `193 MB (2 lanes)`, of all lanes together. */
export function needsInWords({ bytes, isLeast, laneBytes, lanes }: MemoryNeeds): string {
  const most = megabytes(bytes + (lanes - 1) * laneBytes);
  return isLeast ? `more than ${most}` : `${most}${lanes > 1 ? ` (${lanes} lanes)` : ''}`;
}

/**
 * The bytes of the weights that will be loaded. The stored file of the wanted precision is loaded if there is one. Without
 * it a q8_0 file is made from a stored f16 file, and any other stored file is loaded as it is.
 */
function weightBytes(model: Weights, precision: Precision, files: StoredModel['files']): number | null {
  const stored = files.find((file) => file.precision === precision) ?? files[0];
  const published = publishedFile(model, precision);
  const bytes = (stored ?? published)?.bytes ?? null;
  const has = stored?.precision ?? (published === model.files.f16 ? 'f16' : precision);
  const isMade = precision === 'q8_0' && has === 'f16' && model.quantizable === true;
  return bytes !== null && isMade ? Math.round(bytes * QUANTIZED) : bytes;
}
